"""ELMoForManyLangs folders, checked against an independent implementation in numpy."""

from __future__ import annotations

import io
import json
import os
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from builders import all_layers, assert_same_vectors
from manylangs_reference import FILTERS, SENTENCES, WORDS, P, architecture, save, their_layers, write_folder
from polyseme.errors import ConfigError, FormatError
from polyseme.formats.models.manylangs import PUBLISHED_NAME, is_manylangs, read
from polyseme.formats.models.open import open_pretrained
from polyseme.formats.models.save import save_pretrained

VARIANTS: dict[str, dict[str, Any]] = {
    "released": {},
    "characters alone": {"token_embedder__word_dim": 0},
    "words alone": {"token_embedder__char_dim": 0},
    "tanh": {"token_embedder__activation": "tanh"},
    "no highway": {"token_embedder__n_highway": 0},
    "one layer": {"encoder__n_layers": 1},
    "three layers": {"encoder__n_layers": 3},
    "no clips": {"encoder__cell_clip": 0, "encoder__proj_clip": None},
    "square": {"encoder__dim": P},
    "token as wide as the output": {"encoder__projection_dim": 10, "encoder__dim": 11},
}


@pytest.mark.parametrize("changes", VARIANTS.values(), ids=VARIANTS)
def test_vectors_equal_those_of_the_reference(changes: dict[str, Any], tmp_path: Path):
    values = architecture(**changes)
    model = read(write_folder(tmp_path, values))
    sentences = SENTENCES if values["token_embedder"]["char_dim"] else [["the", "银行", "x"]]
    for sentence, layers in zip(sentences, all_layers(model, sentences), strict=True):
        np.testing.assert_allclose(layers, their_layers(values, sentence), atol=1e-5)


def test_both_pickle_formats_of_torch_are_read(tmp_path: Path):
    old = read(write_folder(tmp_path / "old", architecture()))
    new = read(write_folder(tmp_path / "new", architecture(), old=False))
    assert_same_vectors(new, old, atol=0)


def test_conversion_to_the_native_format_keeps_the_vectors(tmp_path: Path):
    model = open_pretrained(write_folder(tmp_path / "theirs", architecture()))
    save_pretrained(model, tmp_path / "ours")
    again = open_pretrained(tmp_path / "ours")
    assert again.config == model.config
    assert again.vocab is not None
    assert again.vocab.words == tuple(WORDS)
    assert (again.vocab.begin, again.vocab.end, again.vocab.unknown) == ("<bos>", "<eos>", "<oov>")
    for sentence, layers in zip(SENTENCES, all_layers(again, SENTENCES), strict=True):
        np.testing.assert_allclose(layers, their_layers(architecture(), sentence), atol=1e-5)


def test_a_plain_softmax_is_read_and_a_sampled_one_ignored(tmp_path: Path):
    write_folder(tmp_path, architecture(classifier__name="softmax"))
    weight, bias = np.random.default_rng(5).normal(size=(len(WORDS), P)), np.arange(float(len(WORDS)))
    save(tmp_path / "classifier.pkl", {"hidden2tag.weight": weight, "hidden2tag.bias": bias})
    softmax = read(tmp_path).softmax
    assert softmax is not None
    np.testing.assert_allclose(softmax.weight.detach().numpy(), weight, rtol=1e-6)
    (tmp_path / "arch.json").write_text(json.dumps(architecture()))
    assert read(tmp_path).softmax is None


def test_a_missing_architecture_file_means_the_released_architecture(tmp_path: Path):
    write_folder(tmp_path, architecture(), name=PUBLISHED_NAME)
    (tmp_path / PUBLISHED_NAME).unlink()
    with pytest.raises(FormatError, match=r"word_emb_layer.*\(8, 3\).*\(any, 100\)"):
        read(tmp_path)  # this model does not have the released sizes


def test_the_architecture_is_never_read_from_outside_the_folder(tmp_path: Path):
    write_folder(tmp_path / "model", architecture())
    (tmp_path / "outside.json").write_text(json.dumps(architecture()))
    for path in (str(tmp_path / "outside.json"), "../outside.json", "..\\outside.json"):
        (tmp_path / "model" / "config.json").write_text(json.dumps({"config_path": path}))
        with pytest.raises(FormatError, match=r"outside\.json: no such file.*Copy it"):
            read(tmp_path / "model")
    for wrong in ("", "configs/..", None, 7):
        (tmp_path / "model" / "config.json").write_text(json.dumps({"config_path": wrong}))
        with pytest.raises(FormatError, match="config_path is"):
            read(tmp_path / "model")


def test_unusual_lines_of_a_dic_are_read_like_in_the_original_program(tmp_path: Path):
    write_folder(tmp_path, architecture())
    text = (tmp_path / "word.dic").read_text(encoding="utf-8")
    (tmp_path / "word.dic").write_text(
        text.replace("银行\t6\n", "\xa0银行 \t6\r\n\n").rstrip("\n"), encoding="utf-8"
    )
    vocab = read(tmp_path).vocab
    assert vocab is not None
    assert vocab.id("\u3000") == WORDS.index("\u3000") + 1
    assert vocab.id("银行 ") == WORDS.index("银行") + 1


@pytest.mark.parametrize(
    ("file", "line", "reason"),
    [
        ("word.dic", "word", r"word\.dic:9.*expected an entry, a tab and its number"),
        ("word.dic", "a\tb\t3", r"word\.dic:9"),
        ("word.dic", "a\t-1", r"word\.dic:9"),
        ("word.dic", "a\t99999999999999999999", r"word\.dic:9"),
        ("word.dic", "a\t8", r"'a' has number 8, but there are 8 rows"),
    ],
)
def test_a_broken_dic_is_refused_with_its_line(file: str, line: str, reason: str, tmp_path: Path):
    write_folder(tmp_path, architecture())
    with (tmp_path / file).open("a", encoding="utf-8") as opened:
        opened.write(line + "\n")
    with pytest.raises(FormatError, match=reason):
        read(tmp_path)


def test_missing_marks_are_named(tmp_path: Path):
    write_folder(tmp_path, architecture())
    text = (tmp_path / "char.dic").read_text(encoding="utf-8")
    (tmp_path / "char.dic").write_text(text.replace("<oov>", "<unk>"), encoding="utf-8")
    with pytest.raises(FormatError, match=r"char\.dic.*lacks <oov>"):
        read(tmp_path)
    write_folder(tmp_path, architecture())
    text = (tmp_path / "word.dic").read_text(encoding="utf-8")
    (tmp_path / "word.dic").write_text(text.replace("<bos>", "<s>"), encoding="utf-8")
    with pytest.raises(FormatError, match=r"word\.dic.*lacks <bos>"):
        read(tmp_path)


@pytest.mark.parametrize("file", ["encoder.pkl", "token_embedder.pkl", "char.dic", "word.dic", "arch.json"])
def test_a_missing_file_is_named(file: str, tmp_path: Path):
    write_folder(tmp_path, architecture())
    (tmp_path / file).unlink()
    assert is_manylangs(tmp_path)
    with pytest.raises(FormatError, match=file):
        read(tmp_path)


def test_unsupported_encoders_are_refused_with_the_reason(tmp_path: Path):
    write_folder(tmp_path, architecture(encoder__name="lstm"))
    with pytest.raises(FormatError, match="feeds both directions into each upper layer"):
        read(tmp_path)
    write_folder(tmp_path, architecture(token_embedder__name="LSTM"))
    with pytest.raises(FormatError, match="reads characters with an LSTM"):
        read(tmp_path)


@pytest.mark.parametrize(
    ("changes", "tensor", "setting"),
    [
        ({"encoder__dim": 7}, "input_linearity", "encoder.n_layers, dim"),
        ({"encoder__n_layers": 3}, "forward_layer_2", "encoder.n_layers"),
        ({"encoder__n_layers": 1}, "more layers", "encoder.n_layers"),
        ({"token_embedder__char_dim": 9}, "char_emb_layer", "char_dim"),
        ({"token_embedder__n_highway": 1}, "highways._layers.1", "architecture"),
        ({"token_embedder__n_highway": 3}, "highways._layers.2", "n_highway"),
        ({"token_embedder__filters": FILTERS[:2]}, "convolutions.2|highways", "filters|architecture"),
        ({"token_embedder__word_dim": 4}, "word_emb_layer", "word_dim"),
    ],
)
def test_an_architecture_that_contradicts_the_weights_is_named_with_the_tensor(
    changes: dict[str, Any], tensor: str, setting: str, tmp_path: Path
):
    write_folder(tmp_path, architecture())
    (tmp_path / "arch.json").write_text(json.dumps(architecture(**changes)))
    with pytest.raises(FormatError, match=tensor) as problem:
        read(tmp_path)
    assert any(name in str(problem.value) for name in setting.split("|"))


def test_settings_of_the_wrong_type_are_refused(tmp_path: Path):
    write_folder(tmp_path, architecture())
    for changes in ({"encoder__dim": "many"}, {"token_embedder__filters": 3}, {"encoder__n_layers": None}):
        (tmp_path / "arch.json").write_text(json.dumps(architecture(**changes)))
        with pytest.raises(ConfigError, match=r"arch\.json"):
            read(tmp_path)
    (tmp_path / "arch.json").write_text('{"encoder": []}')
    with pytest.raises(FormatError, match="no section 'encoder'"):
        read(tmp_path)


class Payload:
    """Creates a folder when it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return os.mkdir, (str(self.path),)


@pytest.mark.parametrize("old", [True, False])
@pytest.mark.parametrize("file", ["encoder.pkl", "token_embedder.pkl", "classifier.pkl"])
def test_code_in_a_pickle_is_refused_and_not_run(file: str, old: bool, tmp_path: Path):
    write_folder(tmp_path, architecture(classifier__name="softmax"))
    state = {"weight": torch.zeros(2), "payload": Payload(tmp_path / "pwned")}
    torch.save(state, tmp_path / file, _use_new_zipfile_serialization=not old)
    with pytest.raises(FormatError, match=rf"{file}.*refused, and nothing in it was run"):
        read(tmp_path)
    (tmp_path / file).write_bytes(pickle.dumps(Payload(tmp_path / "pwned")))
    with pytest.raises(FormatError, match=file):
        read(tmp_path)
    assert not (tmp_path / "pwned").exists()


def test_truncated_and_damaged_pickles_are_refused(tmp_path: Path):
    for old in (True, False):
        write_folder(tmp_path, architecture(), old=old)
        intact = (tmp_path / "encoder.pkl").read_bytes()
        for content in (
            b"",
            intact[:10],
            intact[: len(intact) // 2],
            intact[:-8],
            b"text",
            pickle.dumps([1, 2]),
        ):
            (tmp_path / "encoder.pkl").write_bytes(content)
            with pytest.raises(FormatError, match=r"encoder\.pkl"):
                read(tmp_path)


@pytest.mark.parametrize(
    "state",
    [
        [torch.zeros(2)],
        {"a": 3},
        {1: torch.zeros(2)},
        {"a": torch.zeros(2, 2).to_sparse()},
        {"forward_layer_0.state_linearity.bias": torch.zeros(24, dtype=torch.int64)},
        {"forward_layer_0.state_linearity.bias": torch.full((24,), torch.nan)},
        {"forward_layer_0.input_linearity.weight": torch.zeros(1).expand(10**6, 10**6)},
    ],
    ids=["list", "number", "unnamed", "sparse", "int", "nan", "stride 0"],
)
@pytest.mark.filterwarnings("ignore:Sparse")
def test_pickles_without_usable_weights_are_refused(state: object, tmp_path: Path):
    write_folder(tmp_path, architecture())
    torch.save(state, tmp_path / "encoder.pkl")
    with pytest.raises(FormatError, match=r"encoder\.pkl"):
        read(tmp_path)


def test_a_compressed_pickle_is_refused(tmp_path: Path):
    write_folder(tmp_path, architecture(), old=False)
    packed = io.BytesIO()
    with (
        zipfile.ZipFile(tmp_path / "encoder.pkl") as source,
        zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as target,
    ):
        for name in source.namelist():
            target.writestr(name, source.read(name))
    (tmp_path / "encoder.pkl").write_bytes(packed.getvalue())
    with pytest.raises(FormatError, match="compressed records"):
        read(tmp_path)
