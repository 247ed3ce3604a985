"""A biLM that knows nothing but pairs of neighbours, its weights set by hand: what it says is known.

    pairs of words  ->  bigrams.bigram_model  ->  Elmo

V words. Each half of the one layer says which word it has just read (as tanh of a one-hot vector): the
forward half in the first V of D = 2V values, the backward half in the last V. The softmax, which both
halves share, has a high score for each pair.
"""

from __future__ import annotations

from collections.abc import Iterable
from itertools import pairwise

import torch

from polyseme.config import ModelSettings
from polyseme.elmo import Elmo
from polyseme.formats.models.pretrained import assemble
from polyseme.text.vocab import Vocab

MARKS = ("<S>", "</S>", "<UNK>")


def bigram_model(sentences: Iterable[str], height: float = 8.0, segment: str = "split") -> Elmo:
    """A model that finds the pairs of `sentences` e**height times as likely as others, by their counts."""
    texts = [sentence.split() for sentence in sentences]
    vocab = Vocab([*MARKS, *dict.fromkeys(word for text in texts for word in text)])
    size = len(vocab)
    pairs = torch.zeros(size, size)  # (before, behind)
    for text in texts:
        rows = vocab.ids(["<S>", *text, "</S>"]) - 1
        for before, behind in pairwise(rows):
            pairs[before, behind] += 1
    scores = torch.where(pairs > 0, height + pairs.log(), 0)
    config = ModelSettings.model_validate(
        {
            "segment": segment,
            "words": {"dim": 2 * size},
            "recurrent": {"cell": "rnn", "layers": 1, "cells": 2 * size, "outputs": 2 * size},
        }
    )
    one_hot = torch.eye(size)
    nothing = torch.zeros(size, size)
    read = torch.cat([torch.cat([20 * one_hot, nothing], 1), torch.cat([nothing, nothing], 1)])
    stack = {"hidden_weight": torch.zeros(2 * size, 2 * size), "bias": torch.zeros(2 * size)}
    tensors = {
        f"{d}_stack.cells.0.{name}": value for d in ("forward", "backward") for name, value in stack.items()
    }
    tensors |= {
        "tokens.words.weight": torch.cat([torch.zeros(1, 2 * size), torch.cat([one_hot, nothing], 1)]),
        "forward_stack.cells.0.input_weight": read,
        "backward_stack.cells.0.input_weight": read.roll(size, 0),  # the last V rows
        "softmax.weight": torch.cat([scores.t(), scores], 1),  # (V, 2V): after a word, and before it
        "softmax.bias": torch.zeros(size),
    }
    model = assemble(config, tensors, alphabet=None, vocab=vocab, origin={}, source="bigrams")
    return Elmo(model)
