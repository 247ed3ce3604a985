"""A word table that starts from static vectors, frozen or trained further."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import polyseme
import training_story as story
from polyseme.errors import ConfigError, DataError, UsageError
from polyseme.formats.models.open import open_pretrained
from polyseme.text.vocab import Vocab
from polyseme.training.pretrain import PretrainResult, pretrain
from polyseme.training.settings import read_pretrain_settings
from polyseme.training.static_words import fill_word_table_from_file

DIM = 12
# "anna" is in lower case, as in GloVe; "boat" and the marks have no vector.
WORDS = ("anna", "Bruno", "Clara", "David", "sees", "buys", "reads", "the", "old", ".", "river", "elsewhere")


def write_vectors(path: Path, dim: int = DIM, words: tuple[str, ...] = WORDS) -> dict[str, np.ndarray]:
    values = np.random.default_rng(0).normal(0, 0.3, (len(words), dim)).astype(np.float32)
    rows = zip(words, values, strict=True)
    path.write_text("".join(f"{word} {' '.join(map(repr, row.tolist()))}\n" for word, row in rows))
    return dict(zip(words, values, strict=True))


def run(tmp_path: Path, *settings: str, **options: Any) -> PretrainResult:
    text = story.write(tmp_path / "story.txt", 200)
    config = read_pretrain_settings("tiny", [*story.SETTINGS, "train.epochs=2", *settings])
    return pretrain([text], tmp_path / "model", config, workers=1, **options)


def rows_of(folder: Path, *words: str) -> np.ndarray:
    model = open_pretrained(folder)
    assert model.vocab is not None
    assert model.network.tokens.words is not None
    table = model.network.tokens.words.weight.detach().numpy()
    return table[model.vocab.ids(words)]


def test_a_frozen_table_keeps_the_static_vectors_exactly(tmp_path: Path) -> None:
    vectors = write_vectors(tmp_path / "glove.txt")
    static = f"model.words.static={tmp_path / 'glove.txt'}"
    run(tmp_path, static, "model.words.trained=false")  # the file sets the size of the vectors
    words = ("Bruno", "sees", "the", "river", ".")
    np.testing.assert_array_equal(
        rows_of(tmp_path / "model", *words), np.stack([vectors[word] for word in words])
    )
    np.testing.assert_array_equal(rows_of(tmp_path / "model", "Anna")[0], vectors["anna"])
    random_rows = rows_of(tmp_path / "model", "boat", "<UNK>")
    assert 0.1 < random_rows.std() < 0.6  # on the scale of the vectors, 0.3
    card = (tmp_path / "model" / "README.md").read_text()
    assert "glove.txt: 11 of" in card
    assert "frozen" in card
    assert polyseme.load(tmp_path / "model").embed("Anna sees the boat .").shape == (5, 32)


def test_a_trained_table_starts_from_the_static_vectors_and_changes(tmp_path: Path) -> None:
    vectors = write_vectors(tmp_path / "glove.txt")
    run(tmp_path, f"model.words.static={tmp_path / 'glove.txt'}", f"model.words.dim={DIM}")
    row = rows_of(tmp_path / "model", "the")[0]
    assert not np.array_equal(row, vectors["the"])
    assert np.abs(row - vectors["the"]).max() < 1


def test_a_frozen_table_survives_a_stop_and_resume(tmp_path: Path) -> None:
    vectors = write_vectors(tmp_path / "glove.txt")
    settings = (f"model.words.static={tmp_path / 'glove.txt'}", "model.words.trained=false")
    run(tmp_path, *settings, "train.save_seconds=0.001")
    random_rows = rows_of(tmp_path / "model", "boat")
    run(tmp_path, *settings, "train.save_seconds=0.001", resume=True)
    np.testing.assert_array_equal(rows_of(tmp_path / "model", "the")[0], vectors["the"])
    np.testing.assert_array_equal(rows_of(tmp_path / "model", "boat"), random_rows)
    write_vectors(tmp_path / "other.txt")
    with pytest.raises(ConfigError, match=r"differs in model\.words\.static \(was .*glove"):
        run(tmp_path, f"model.words.static={tmp_path / 'other.txt'}", *settings[1:], resume=True)


def test_the_same_seed_gives_the_same_random_rows(tmp_path: Path) -> None:
    write_vectors(tmp_path / "glove.txt")
    vocab = Vocab(["<S>", "</S>", "<UNK>", "the", "boat"])
    tables = [torch.nn.Embedding(6, DIM) for _ in range(2)]
    for table in tables:
        fill_word_table_from_file(table, vocab, str(tmp_path / "glove.txt"), seed=5)
    assert torch.equal(tables[0].weight, tables[1].weight)
    assert not tables[0].weight[0].any()


@pytest.mark.parametrize(
    ("settings", "error", "message"),
    [
        (["model.words.dim=8", "model.words.trained=false"], ConfigError, r"needs model\.words\.static"),
        (["model.words.dim=8", "model.words.static=glove.txt"], ConfigError, r"glove\.txt.* 12 .*words\.dim"),
        (["model.words.static=nowhere.txt"], UsageError, r"nowhere\.txt"),
        (["model.words.static=foreign.txt"], DataError, r"foreign\.txt: .*no word of the vocabulary"),
    ],
)
def test_settings_and_files_that_do_not_fit_are_refused(
    settings: list[str], error: type[Exception], message: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write_vectors(tmp_path / "glove.txt")
    write_vectors(tmp_path / "foreign.txt", words=("eins", "zwei"))
    with pytest.raises(error, match=message):
        run(tmp_path, *settings)


def test_fine_tuning_keeps_a_frozen_table_and_refuses_to_add_words_to_it(tmp_path: Path) -> None:
    vectors = write_vectors(tmp_path / "glove.txt")
    run(tmp_path, f"model.words.static={tmp_path / 'glove.txt'}", "model.words.trained=false")
    text = story.write(tmp_path / "more.txt", 100, seed=4)
    options: dict[str, Any] = {
        "settings": [*story.SETTINGS, "train.epochs=1"],
        "base": tmp_path / "model",
        "workers": 1,
    }
    polyseme.pretrain([text], tmp_path / "tuned", "tiny", **options)
    np.testing.assert_array_equal(rows_of(tmp_path / "tuned", "the")[0], vectors["the"])
    with pytest.raises(UsageError, match="word table of this model is frozen"):
        polyseme.pretrain([text], tmp_path / "wider", "tiny", new_vocabulary=True, **options)
