"""Adapt a trained model to a new corpus, for fine-tuning.

    formats.models.pretrained, text.corpus.prepared  ->  training.fine_tuning  ->  training.pretrain

The network is copied. With the old vocabulary the softmax is copied, too; with a new one, the rows of words
in both vocabularies are copied, also in the word table, and the others start as in a new model.
"""

from __future__ import annotations

from copy import deepcopy

import torch

from polyseme.errors import UsageError
from polyseme.formats.models.pretrained import Pretrained, build_network
from polyseme.model.bilm import BiLM
from polyseme.model.init import initialise
from polyseme.model.softmax import AnySoftmax, Softmax
from polyseme.text.corpus.prepared import Corpus
from polyseme.training.settings import PretrainSettings


def adapt_modules(base: Pretrained, corpus: Corpus, config: PretrainSettings) -> tuple[BiLM, AnySoftmax]:
    """Copy the network of `base`, with a softmax over the vocabulary of the corpus.

    Raises:
        UsageError: The word table is frozen and the vocabulary is new, or the alphabet does not fit.

    """
    torch.manual_seed(config.train.seed)
    same = base.vocab is not None and base.vocab.words == corpus.vocab.words
    if same and base.softmax is not None:
        return deepcopy((base.network, base.softmax))
    words = base.config.words
    if words is not None and not words.trained and not same:
        raise UsageError(
            "The word table of this model is frozen, so new words would keep random vectors. "
            "Fine-tune it with its own vocabulary: leave out `new_vocabulary=True`."
        )
    network = build_network(
        base.config,
        n_chars=base.alphabet.size if base.alphabet else 1,
        n_words=len(corpus.vocab),
        padding=base.alphabet.padding if base.alphabet else 0,
    )
    size, table = base.config.recurrent.outputs, network.tokens.words
    tied = table if config.softmax.tied and table is not None and table.embedding_dim == size else None
    softmax = Softmax(len(corpus.vocab), size, tied=tied)
    initialise(network, softmax)
    _copy_all_but_words(base.network, network)
    _copy_shared_words(base, corpus, network, softmax)
    return network, softmax


@torch.no_grad()
def _copy_all_but_words(old: BiLM, new: BiLM) -> None:
    """Copy all weights but the word table."""
    weights = dict(old.named_parameters())
    for name, parameter in new.named_parameters():
        if name == "tokens.words.weight":
            continue
        if parameter.shape != weights[name].shape:
            raise UsageError(f"{name} of the model does not fit its alphabet: it cannot be fine-tuned.")
        parameter.copy_(weights[name])


@torch.no_grad()
def _copy_shared_words(base: Pretrained, corpus: Corpus, network: BiLM, softmax: Softmax) -> None:
    """Copy the rows of the words in both vocabularies."""
    if base.vocab is None:
        return
    known = base.vocab
    pairs = [(row, known.id(word) - 1) for row, word in enumerate(corpus.vocab.words) if word in known]
    if not pairs:
        return
    new, old = (torch.tensor(rows, dtype=torch.long) for rows in zip(*pairs, strict=True))
    if network.tokens.words is not None and base.network.tokens.words is not None:
        network.tokens.words.weight[new + 1] = base.network.tokens.words.weight[old + 1]
    if isinstance(base.softmax, Softmax):
        softmax.bias[new] = base.softmax.bias[old]
        if softmax.weight is not None:
            softmax.weight[new] = base.softmax.rows()[old]
