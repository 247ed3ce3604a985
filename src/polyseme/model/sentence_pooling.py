"""Pool the tokens of a sentence to one vector: rare words weigh more, common directions weigh less.

    model.output  ->  model.sentence_pooling  ->  formats (a file of the model), elmo

A word with probability p has the weight a / (a + p), smooth inverse frequency (Arora et al. 2017); the
weighted mean of the two lowest layers, joined, is centred, and its principal directions are scaled towards
equal variance, so that what all sentences have in common no longer decides their similarity. The constants
were chosen on the training part of SICK (relatedness of sentences): the layers above know the next word
better than the sentence. All of it is fitted
once and stored with the model: the vector of a sentence depends on nothing but the sentence.

V words, L layers, H values per layer and per sentence, N sentences, T tokens. Knows no files and no words.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

SMOOTHING = 1e-3  # a: a word of this probability has half the weight of a rare one
SHRINKAGE = 1.0  # added to all variances, as a share of their mean: weak directions are not blown up
LAYERS = 2  # the token layer and the first recurrent layer


@dataclass(frozen=True)
class SentencePooling:
    """How to pool the sentences of one model.

    Attributes:
        weights: (V,) of the words of the vocabulary, in its order; 1 for the unknown word.
        centre: (LH,) mean of the sentences that it was fitted on.
        directions: (LH, H) their principal directions, each divided by its deviation.

    """

    weights: Tensor
    centre: Tensor
    directions: Tensor

    def average(self, vectors: Tensor, ids: Tensor) -> Tensor:
        """The weighted mean (LH,) of token vectors (T, LH); `ids` (T,) count the vocabulary from 1."""
        shares = self.weights[ids - 1]
        return (vectors * shares[:, None]).sum(dim=0) / shares.sum()

    def pool(self, vectors: Tensor, ids: Tensor) -> Tensor:
        """Pool token vectors (T, LH) to (H,), with the word ids of the tokens, or zeros without tokens."""
        if not len(vectors):
            return vectors.new_zeros(self.directions.shape[1])
        # A sum of products, not a matrix product, whose rounding may depend on the machine's threads.
        return ((self.average(vectors, ids) - self.centre)[:, None] * self.directions).sum(dim=0)


def weigh_words(counts: Tensor, unknown: int) -> Tensor:
    """The weights (V,) of words that were counted (V,); the word at `unknown` stands for many rare ones."""
    weights = SMOOTHING / (SMOOTHING + counts.double() / counts.sum().clamp(min=1))
    weights[unknown] = 1.0
    return weights.float()


def fit_directions(averages: Tensor, size: int) -> tuple[Tensor, Tensor]:
    """Return the centre (LH,) and the scaled directions (LH, H = `size`) of averages (N, LH).

    Those of the layers from LAYERS on are zero.

    Directions without variance are zero: there may be fewer sentences than directions, and the two halves of
    the token layer are equal.
    """
    values = averages.double()
    values[:, LAYERS * size :] = 0.0
    centre = values.mean(dim=0)
    covariance = (values - centre).T @ (values - centre) / max(1, len(values) - 1)
    variances, axes = torch.linalg.eigh(covariance)  # ascending
    variances, axes = variances.flip(0)[:size].clamp(min=0), axes.flip(1)[:, :size]
    scale = (variances + SHRINKAGE * variances.mean()).rsqrt()
    scale[variances <= variances.max() * 1e-9] = 0.0
    signs = torch.where(axes.gather(0, axes.abs().argmax(dim=0)[None]) < 0, -1.0, 1.0)  # else arbitrary
    return centre.float(), (axes * signs * scale).float()
