"""pool="sentence": weights by rarity, common directions, and where it is stored."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import polyseme
from builders import ROUNDING, SENTENCES, random_model, small_config
from polyseme.elmo import Elmo
from polyseme.errors import FormatError, UsageError

TEXT = [
    ["the", "bank", "failed", "!"],
    ["the", "river", "of", "the", "bank"],
    ["他", "银行", "!"],
    ["the", "naïve", "river", "failed"],
    ["of", "the", "the", "bank", "!"],
    ["他", "the", "银行"],
]
L, H = 3, 8  # of small_config


@pytest.fixture(scope="module")
def elmo() -> Elmo:
    return Elmo(random_model(small_config())).fit_sentences(TEXT)


def reference(elmo: Elmo, sentence: list[str], smoothing: float) -> np.ndarray:
    """The same vector, written out in numpy."""
    counts = {word: sum(text.count(word) for text in TEXT) for word in elmo.model.vocab.words}
    total = sum(map(len, TEXT))
    weights = np.array(
        [smoothing / (smoothing + counts[word] / total) if word in counts else 1.0 for word in sentence]
    )
    joined = np.concatenate(list(elmo.embed([sentence], layer="all")[0]), axis=-1)  # (T, LH)
    joined[:, 2 * H :] = 0  # only the two lowest layers count
    return weights @ joined / weights.sum()


def test_the_vector_is_the_weighted_mean_in_the_fitted_directions(elmo: Elmo):
    from polyseme.model.sentence_pooling import SHRINKAGE, SMOOTHING

    averages = np.stack([reference(elmo, sentence, SMOOTHING) for sentence in TEXT])
    centre = averages.mean(axis=0)
    _, deviations, axes = np.linalg.svd(averages - centre, full_matrices=False)
    variances = np.concatenate([deviations**2 / (len(TEXT) - 1), np.zeros(H)])[:H]
    scale = 1 / np.sqrt(variances[:5] + SHRINKAGE * variances.mean())
    expected = (np.stack([reference(elmo, s, SMOOTHING) for s in SENTENCES]) - centre) @ axes[:5].T * scale
    vectors = elmo.embed(SENTENCES, pool="sentence")
    assert vectors.shape == (3, H)
    np.testing.assert_allclose(np.abs(vectors[:, :5]), np.abs(expected), rtol=2e-3, atol=1e-3)
    assert not vectors[:, 5:].any()  # five directions span six sentences


def test_the_vector_does_not_depend_on_the_batch(elmo: Elmo):
    together = elmo.embed([*SENTENCES, []], pool="sentence")
    for sentence, vector in zip([*SENTENCES, []], together, strict=True):
        np.testing.assert_allclose(elmo.embed([sentence], pool="sentence")[0], vector, atol=1e-5)
    assert not together[3].any()
    assert elmo.embed([], pool="sentence").shape == (0, H)
    assert elmo.embed("the bank", pool="sentence").shape == (H,)


def test_it_is_kept_by_save_convert_and_pickle(elmo: Elmo, tmp_path: Path):
    expected = elmo.embed(SENTENCES, pool="sentence")
    elmo.save(tmp_path / "model")
    polyseme.convert(tmp_path / "model", tmp_path / "copy")
    loaded = polyseme.load(tmp_path / "copy")
    for other in (polyseme.load(tmp_path / "model"), loaded, pickle.loads(pickle.dumps(loaded))):
        np.testing.assert_allclose(other.embed(SENTENCES, pool="sentence"), expected, rtol=0.02, atol=0.02)
    copy = pickle.loads(pickle.dumps(elmo)).embed(SENTENCES, pool="sentence")
    np.testing.assert_allclose(copy, expected, rtol=0, atol=ROUNDING)


def test_a_model_that_was_never_fitted_says_how(tmp_path: Path):
    plain = Elmo(random_model(small_config()))
    with pytest.raises(UsageError, match=r"never fitted for it. Fit it with `elmo.fit_sentences"):
        plain.embed(SENTENCES, pool="sentence")
    with pytest.raises(UsageError, match="no vocabulary"):
        Elmo(random_model(small_config(), words=None)).fit_sentences(TEXT)
    with pytest.raises(UsageError, match="1 sentences with tokens, expected 2 or more"):
        plain.fit_sentences([["the"], []])


@pytest.mark.parametrize("options", [{"layer": "top"}, {"layer": 1}, {"direction": "forward"}], ids=str)
def test_it_chooses_layers_and_directions_itself(elmo: Elmo, options):
    with pytest.raises(UsageError, match="leave layer and direction out"):
        elmo.embed(SENTENCES, pool="sentence", **options)


def test_a_file_of_another_model_is_refused(elmo: Elmo, tmp_path: Path):
    elmo.save(tmp_path / "model")
    other = Elmo(random_model(small_config(), words=["the", "bank"])).fit_sentences(TEXT)
    other.save(tmp_path / "other")
    (tmp_path / "model" / "sentence.safetensors").write_bytes(
        (tmp_path / "other" / "sentence.safetensors").read_bytes()
    )
    with pytest.raises(FormatError, match=r"weights is \(5,\), the model requires \(12,\)"):
        polyseme.load(tmp_path / "model")


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("weights", lambda values: values.view(torch.uint8)[: len(values)]),
        ("weights", torch.zeros_like),
        ("weights", torch.neg),
        ("weights", lambda values: values * torch.nan),
        ("directions", torch.Tensor.int),
        ("centre", torch.Tensor.double),
    ],
)
def test_a_damaged_file_is_refused(
    name: str, change: Callable[[torch.Tensor], torch.Tensor], elmo: Elmo, tmp_path: Path
):
    elmo.save(tmp_path / "model")
    path = tmp_path / "model" / "sentence.safetensors"
    tensors = load_file(path)
    save_file(tensors | {name: change(tensors[name])}, path)
    with pytest.raises(FormatError, match=rf"sentence\.safetensors: {name} "):
        polyseme.load(tmp_path / "model")
