"""Classify the sentiment of reviews: mean of ELMo vectors with a trained mix, and a dense layer of 256.

python examples/movie_reviews.py [REVIEWS.csv] [MODEL]      # columns label, text
"""

import sys
from pathlib import Path

import polyseme

reviews = sys.argv[1] if len(sys.argv) > 1 else str(Path(__file__).parent / "data" / "reviews.csv")
model = sys.argv[2] if len(sys.argv) > 2 else "en"

classifier = polyseme.train(
    "classification",
    model,
    train=reviews,  # a fifth is held out
    config="classification-mixed",
    settings=["train.epochs=30", "train.patience=30"],
)
print("held out:", classifier.results[0].dev)
print("layers:", [round(share, 3) for share in classifier.mix.shares])
for text in ("A lovely, moving play.", "Tedious and far too loud."):
    prediction = classifier.predict(text)
    print(f"{prediction.label} {prediction.probability:.2f}  {text}")
