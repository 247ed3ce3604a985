"""Classify texts into four topics in three ways: words and ELMo, ELMo alone, and frozen ELMo vectors.

python examples/text_topics.py [TOPICS.csv] [MODEL]      # columns label, text
"""

import sys
from pathlib import Path

import polyseme

topics = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).parent / "data" / "topics.csv")
model = polyseme.load(sys.argv[2] if len(sys.argv) > 2 else "en")

for preset in ("classification-joined", "classification-elmo", "classification-pooled"):
    settings = ["train.epochs=30", "train.patience=30", "train.batch=4"]
    classifier = polyseme.train("classification", model, train=topics, config=preset, settings=settings)
    prediction = classifier.predict("The boat was thrown upon the rocks.")
    print(f"{preset:24} held out {classifier.results[0].dev['accuracy']:.2f}; the boat: {prediction.label}")
