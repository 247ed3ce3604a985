"""A bigram model as a biLM, with weights set by hand, so that its predictions are known.

    pairs of words  ->  bigrams.bigram_model  ->  Elmo

V words. Each direction of the only layer outputs the word it has just read (as tanh of a one-hot vector):
the forward direction in the first V of D = 2V values, the backward direction in the last V. The softmax,
which both directions share, has a high score for each pair.
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


def bigram_model(sentences: Iterable[str], log_odds: float = 8.0, segment: str = "split") -> Elmo:
    """Make each pair of neighbours in `sentences` count * e**log_odds times as likely as other pairs."""
    texts = [sentence.split() for sentence in sentences]
    vocab = Vocab([*MARKS, *dict.fromkeys(word for text in texts for word in text)])
    size = len(vocab)
    pairs = torch.zeros(size, size)  # (word, next word)
    for text in texts:
        rows = vocab.ids(["<S>", *text, "</S>"]) - 1
        for word, following in pairwise(rows):
            pairs[word, following] += 1
    scores = torch.where(pairs > 0, log_odds + pairs.log(), 0)
    config = ModelSettings.model_validate(
        {
            "segment": segment,
            "words": {"dim": 2 * size},
            "recurrent": {"cell": "rnn", "layers": 1, "cells": 2 * size, "outputs": 2 * size},
        }
    )
    one_hot = torch.eye(size)
    zeros = torch.zeros(size, size)
    input_weight = torch.cat([torch.cat([20 * one_hot, zeros], 1), torch.cat([zeros, zeros], 1)])
    stack = {"hidden_weight": torch.zeros(2 * size, 2 * size), "bias": torch.zeros(2 * size)}
    tensors = {
        f"{d}_stack.cells.0.{name}": value for d in ("forward", "backward") for name, value in stack.items()
    }
    tensors |= {
        "tokens.words.weight": torch.cat([torch.zeros(1, 2 * size), torch.cat([one_hot, zeros], 1)]),
        "forward_stack.cells.0.input_weight": input_weight,
        "backward_stack.cells.0.input_weight": input_weight.roll(size, 0),  # the last V rows
        "softmax.weight": torch.cat([scores.t(), scores], 1),  # (V, 2V): scores after and before a word
        "softmax.bias": torch.zeros(size),
    }
    model = assemble(config, tensors, alphabet=None, vocab=vocab, origin={}, source="bigrams")
    return Elmo(model)
