"""spaCy in the duel: `spacy pretrain` of a tok2vec layer, by its own update and objective.

The objective is that of the default configuration: the first and last characters of each word, from its
hashed features and their window. The loop is that of `spacy.training.pretrain`, with a rate that follows the
CPU time. Chinese words are jieba's.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import numpy as np
import spacy
from rival import EmbedBatch, Run, Sentence, Settings, main, segment_chinese, spread_words
from spacy.ml.models.multi_task import create_pretrain_characters
from spacy.ml.models.tok2vec import MaxoutWindowEncoder, MultiHashEmbed, build_Tok2Vec_model
from spacy.tokens import Doc
from spacy.training.pretrain import make_update
from spacy.vocab import Vocab
from thinc.api import Adam, Model, fix_random_seed, set_dropout_rate

DEFAULTS: Settings = {
    "width": 96,
    "depth": 4,
    "rows": 5000,  # of the table of word norms; half as many for prefix, suffix and shape
    "characters": 4,
    "hidden": 300,
    "dropout": 0.2,
    "words": 3000,  # of a batch
    "rate": 0.001,
}


def build(settings: Settings) -> Model:
    """The layers of spaCy's default tok2vec."""
    half = settings["rows"] // 2
    embed = MultiHashEmbed(
        settings["width"],
        ["NORM", "PREFIX", "SUFFIX", "SHAPE"],
        [settings["rows"], half, half, half],
        include_static_vectors=False,
    )
    encode = MaxoutWindowEncoder(settings["width"], window_size=1, maxout_pieces=3, depth=settings["depth"])
    return build_Tok2Vec_model(embed, encode)


def pretrain(run: Run) -> Settings:
    """Train until the budget is over."""
    settings = run.settings
    fix_random_seed(run.seed)
    shuffle = random.Random(run.seed)
    vocabulary = spacy.blank(run.language).vocab
    segment = str.split if run.language == "en" else segment_chinese
    sentences = [words for line in run.read_lines() if (words := segment(line))]
    tok2vec = build(settings)
    doc = make_doc(vocabulary, sentences[0])
    tok2vec.initialize(X=[doc])
    model = create_pretrain_characters(3, settings["hidden"], settings["characters"])(vocabulary, tok2vec)
    model.initialize(X=[doc])
    set_dropout_rate(model, settings["dropout"])
    optimizer = Adam(settings["rate"], L2=0.01, L2_is_weight_decay=True, grad_clip=1.0, use_averages=True)
    words = steps = 0
    while not run.budget.is_over:
        shuffle.shuffle(sentences)
        batch: list[Doc] = []
        for sentence in sentences:
            batch.append(make_doc(vocabulary, sentence))
            if sum(map(len, batch)) >= settings["words"]:
                optimizer.learn_rate = run.budget.rate(settings["rate"])
                make_update(model, batch, optimizer, model.attrs["loss"])
                words, steps = words + sum(map(len, batch)), steps + 1
                batch = []
                if run.budget.is_over:
                    break
    with model.use_params(optimizer.averages):
        (run.out / "model.bin").write_bytes(tok2vec.to_bytes())
    return {"steps": steps, "tokens": words}


def make_doc(vocabulary: Vocab, words: Sentence) -> Doc:
    """A document of one sentence."""
    return Doc(vocabulary, words=words)


def load(folder: Path, language: str, characters: bool) -> EmbedBatch:
    """The output of the layer."""
    settings = json.loads((folder / "run.json").read_text())["settings"]
    vocabulary = spacy.blank(language).vocab
    tok2vec = build(settings)
    tok2vec.initialize(X=[make_doc(vocabulary, ["a"])])
    tok2vec.from_bytes((folder / "model.bin").read_bytes())

    def embed(sentences: list[Sentence]) -> list[np.ndarray]:
        return tok2vec.predict([make_doc(vocabulary, sentence) for sentence in sentences])

    return spread_words(embed) if characters else embed


if __name__ == "__main__":
    main(__doc__, DEFAULTS, pretrain, load)
