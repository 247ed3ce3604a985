"""Broken and hostile files: one clear error each, no crash, no hang, no huge allocation."""

from __future__ import annotations

import gzip
import json
import struct
import sys
import zipfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

from builders import Bilm, random_model, small_config, write_bilm
from manylangs_reference import architecture, write_folder
from polyseme.errors import ConfigError, DataError, FormatError, PolysemeError
from polyseme.formats.models.open import open_pretrained
from polyseme.formats.models.save import save_pretrained

CELL = "RNN_0/RNN/MultiRNNCell/Cell0/LSTMCell"


@pytest.fixture(autouse=True)
def limited_memory() -> Iterator[None]:
    """Limit new memory to 4 GB (on Linux), so that a huge allocation fails on any machine."""
    if not sys.platform.startswith("linux"):
        yield
        return
    import resource

    used = int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (used + (4 << 30), before[1]))
    yield
    resource.setrlimit(resource.RLIMIT_AS, before)


def options_with(**changes: Any) -> dict[str, Any]:
    """Options of a small model; `lstm__dim=7` changes a key."""
    options = Bilm().options()
    for name, value in changes.items():
        section, _, key = name.partition("__")
        if key:
            options[section][key] = value
        else:
            options[section] = value
    return options


# Weights


@pytest.mark.parametrize("name", sorted(Bilm().datasets()))
def test_each_missing_dataset_is_named(name: str, tmp_path: Path):
    write_bilm(tmp_path, changes={name: None})
    with pytest.raises(FormatError, match=name.split("/")[0]) as problem:
        open_pretrained(tmp_path)
    assert "missing" in str(problem.value)


@pytest.mark.parametrize("name", sorted(Bilm().datasets()))
def test_each_wrong_shape_is_named_with_the_shape_that_the_options_require(name: str, tmp_path: Path):
    shape = Bilm().datasets()[name].shape
    for wrong in ((*shape, 1), shape[:-1], (*shape[:-1], shape[-1] + 1)):
        write_bilm(tmp_path, changes={name: np.zeros(wrong, np.float32)})
        with pytest.raises(FormatError, match=r"options\.json require"):
            open_pretrained(tmp_path)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("name", ["char_embed", "CNN_high_0/b_carry", f"{CELL}/W_P_0"])
def test_weights_with_nan_or_infinite_values_are_named(name: str, value: float, tmp_path: Path):
    values = Bilm().datasets()[name].copy()
    values.flat[-1] = value
    write_bilm(tmp_path, changes={name: values})
    with pytest.raises(FormatError, match=f"{name} contains NaN or infinite"):
        open_pretrained(tmp_path)


@pytest.mark.parametrize("dtype", ["int32", "complex64", "S4", "bool"])
def test_weights_that_are_not_floating_point_are_refused(dtype: str, tmp_path: Path):
    write_bilm(tmp_path, changes={"CNN_proj/b_proj": np.zeros(4, dtype)})
    with pytest.raises(FormatError, match="expected floating-point numbers"):
        open_pretrained(tmp_path)


def test_an_empty_dataset_is_refused(tmp_path: Path):
    write_bilm(tmp_path, changes={"char_embed": h5py.Empty("f")})
    with pytest.raises(FormatError, match="char_embed has no data"):
        open_pretrained(tmp_path)


def test_a_group_instead_of_a_dataset_is_refused(tmp_path: Path):
    write_bilm(tmp_path, changes={"char_embed": None})
    with h5py.File(tmp_path / "model.hdf5", "a") as file:
        file.create_group("char_embed")
    with pytest.raises(FormatError, match="dataset char_embed is missing"):
        open_pretrained(tmp_path)


def test_truncated_weights_are_refused(tmp_path: Path):
    write_bilm(tmp_path)
    intact = (tmp_path / "model.hdf5").read_bytes()
    for length in (0, 1, 8, 100, len(intact) // 2, len(intact) - 1):
        (tmp_path / "model.hdf5").write_bytes(intact[:length])
        with pytest.raises(
            FormatError, match=r"model\.hdf5.*(not an hdf5 file, or damaged|cannot be read|missing)"
        ):
            open_pretrained(tmp_path)


def test_a_dataset_that_declares_40_terabytes_is_refused_unread(tmp_path: Path):
    write_bilm(tmp_path, changes={"char_embed": None})
    for layout in ({}, {"chunks": (1024, 3)}, {"chunks": (1024, 3), "compression": "gzip"}):
        with h5py.File(tmp_path / "model.hdf5", "a") as file:
            if "char_embed" in file:
                del file["char_embed"]
            file.create_dataset("char_embed", shape=(10**13 // 3, 3), dtype="float32", **layout)
        with pytest.raises(FormatError, match=r"char_embed declares .* truncated or hostile"):
            open_pretrained(tmp_path)


def test_a_dataset_with_a_false_size_is_refused_unread(tmp_path: Path):
    write_bilm(tmp_path)
    content = (tmp_path / "model.hdf5").read_bytes()
    rows, size = struct.pack("<QQ", 261, 3), struct.pack("<Q", 261 * 3 * 4)
    assert content.count(rows) >= 1
    assert content.count(size) >= 1
    content = content.replace(rows, struct.pack("<QQ", 10**12, 3)).replace(
        size, struct.pack("<Q", 10**12 * 12)
    )
    (tmp_path / "model.hdf5").write_bytes(content)
    with pytest.raises(FormatError, match="char_embed"):
        open_pretrained(tmp_path)


def test_data_from_outside_the_file_is_not_read(tmp_path: Path):
    write_bilm(tmp_path / "model", changes={"char_embed": None})
    secret = tmp_path / "secret.raw"
    secret.write_bytes(bytes(261 * 3 * 4))
    with h5py.File(tmp_path / "other.hdf5", "w") as file:
        file["char_embed"] = np.zeros((261, 3), np.float32)
    virtual = h5py.VirtualLayout((261, 3), "float32")
    virtual[:] = h5py.VirtualSource(tmp_path / "other.hdf5", "char_embed", (261, 3))
    sources: dict[str, Any] = {
        "soft link": h5py.SoftLink("/CNN_proj/W_proj"),
        "external link": h5py.ExternalLink(str(tmp_path / "other.hdf5"), "char_embed"),
        "external data": [(str(secret), 0, 261 * 3 * 4)],
        "virtual data": virtual,
    }
    for kind, value in sources.items():
        with h5py.File(tmp_path / "model" / "model.hdf5", "a") as file:
            if file.get("char_embed", getlink=True) is not None:
                del file["char_embed"]
            if kind == "external data":
                file.create_dataset("char_embed", (261, 3), "float32", external=value)
            elif kind == "virtual data":
                file.create_virtual_dataset("char_embed", value)
            else:
                file["char_embed"] = value
        with pytest.raises(FormatError, match=r"refused"):
            open_pretrained(tmp_path / "model")


def test_a_link_instead_of_a_group_is_not_followed(tmp_path: Path):
    write_bilm(tmp_path / "other")
    write_bilm(tmp_path / "model")
    with h5py.File(tmp_path / "model" / "model.hdf5", "a") as file:
        del file["RNN_0"]
        file["RNN_0"] = h5py.ExternalLink(str(tmp_path / "other" / "model.hdf5"), "RNN_0")
    with pytest.raises(FormatError, match=r"RNN_0.*is a link"):
        open_pretrained(tmp_path / "model")


def test_a_folder_instead_of_a_file_is_refused(tmp_path: Path):
    write_bilm(tmp_path / "model")
    (tmp_path / "x.hdf5").mkdir()
    with pytest.raises(FormatError, match="not a model in a known format"):
        open_pretrained(tmp_path / "x.hdf5")
    with pytest.raises(PolysemeError, match=r"x\.hdf5"):
        open_pretrained(tmp_path / "model", tmp_path / "x.hdf5")


# Options


@pytest.mark.parametrize(
    "text",
    [
        "",
        "{",
        "[]",
        "3",
        "null",
        '"text"',
        "{'lstm': 1}",
        "[" * 200_000,
        '{"lstm":' * 100_000,
        "1" * 5000,
        "\xff\xfe",
    ],
    ids=lambda text: text[:10],
)
def test_options_that_are_not_a_json_object_are_refused(text: str, tmp_path: Path):
    write_bilm(tmp_path)
    (tmp_path / "options.json").write_text(text, encoding="latin-1")
    with pytest.raises(ConfigError, match=r"options\.json"):
        open_pretrained(tmp_path)


@pytest.mark.parametrize(
    "changes",
    [
        {"lstm": None},
        {"lstm": []},
        {"char_cnn": 3},
        {"lstm__dim": "many"},
        {"lstm__dim": -1},
        {"lstm__dim": 0},
        {"lstm__dim": 1.5},
        {"lstm__dim": None},
        {"lstm__dim": [6]},
        {"lstm__n_layers": 0},
        {"lstm__projection_dim": 7},
        {"lstm__cell_clip": "x"},
        {"lstm__cell_clip": -3},
        {"lstm__cell_clip": float("nan")},
        {"lstm__use_skip_connections": 7},
        {"char_cnn__filters": []},
        {"char_cnn__filters": [[1]]},
        {"char_cnn__filters": [[0, 3]]},
        {"char_cnn__filters": {"1": 2}},
        {"char_cnn__filters": [[99, 3]]},
        {"char_cnn__embedding": 16},
        {"char_cnn__embedding": {}},
        {"char_cnn__activation": "gelu"},
        {"char_cnn__n_characters": 300},
        {"char_cnn__n_characters": {"a": 1}},
        {"char_cnn__n_highway": -1},
        {"char_cnn__max_characters_per_token": 2},
    ],
    ids=str,
)
def test_options_of_wrong_types_are_refused(changes: dict[str, Any], tmp_path: Path):
    write_bilm(tmp_path)
    (tmp_path / "options.json").write_text(json.dumps(options_with(**changes)))
    with pytest.raises((ConfigError, FormatError), match=r"options\.json"):
        open_pretrained(tmp_path)


@pytest.mark.parametrize("number", [10**6, 10**12, 10**30])
@pytest.mark.parametrize(
    "name",
    [
        "lstm__dim",
        "lstm__n_layers",
        "lstm__projection_dim",
        "char_cnn__n_highway",
        "char_cnn__embedding",
        "filters",
    ],
)
def test_huge_sizes_in_the_options_are_refused_without_allocating(name: str, number: int, tmp_path: Path):
    write_bilm(tmp_path)
    changes: dict[str, Any] = {name: number}
    if name == "char_cnn__embedding":
        changes = {name: {"dim": number}}
    elif name == "filters":
        changes = {"char_cnn__filters": [[1, number]]}
    (tmp_path / "options.json").write_text(json.dumps(options_with(**changes)))
    with pytest.raises((ConfigError, FormatError)):
        open_pretrained(tmp_path)


# Vocabularies


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("<S>\n</S>\n<UNK>\na\n\nb\n", r"vocab\.txt:5: blank line"),
        ("<S>\n</S>\n<UNK>\na\na\n", r"vocab\.txt:5: 'a' is on line 4"),
        ("a\nb\n", r"vocab\.txt:1: the vocabulary lacks <S> </S> <UNK>"),
        ("", r"vocab\.txt:1: the vocabulary lacks"),
    ],
)
def test_a_broken_vocabulary_is_refused_with_its_line(text: str, reason: str, tmp_path: Path):
    write_bilm(tmp_path, Bilm(filters=()))
    (tmp_path / "vocab.txt").write_text(text)
    with pytest.raises(DataError, match=reason):
        open_pretrained(tmp_path)


@pytest.mark.parametrize("bilm", [Bilm(filters=()), Bilm(softmax=True)], ids=["words", "softmax"])
def test_the_vocabulary_of_another_model_is_refused(bilm: Bilm, tmp_path: Path):
    write_bilm(tmp_path, bilm)
    (tmp_path / "vocab.txt").write_text("<S>\n</S>\n<UNK>\n")
    with pytest.raises(FormatError, match=r"has 12 rows, but the vocabulary 3 words"):
        open_pretrained(tmp_path)


def test_a_damaged_compressed_vocabulary_is_refused(tmp_path: Path):
    write_bilm(tmp_path, vocab=None)
    packed = gzip.compress("\n".join(f"word{n}" for n in range(1000)).encode())
    for content in (packed[:50], b"not gzip", packed[:-4] + b"xxxx"):
        (tmp_path / "vocab.txt.gz").write_bytes(content)
        with pytest.raises(PolysemeError, match=r"vocab\.txt\.gz"):
            open_pretrained(tmp_path)


# Random damage


KINDS = (
    "model.hdf5",
    "options.json",
    "model.safetensors",
    "config.json",
    "encoder.pkl",
    "char.dic",
    "model.zip",
)


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> dict[str, tuple[Path, Path, bytes]]:
    """For each kind of file: the path to load, the file to damage, its content."""
    folder = tmp_path_factory.mktemp("models")
    write_bilm(folder / "bilm")
    save_pretrained(random_model(small_config(), softmax=True), folder / "native")
    write_folder(folder / "manylangs", architecture())
    with zipfile.ZipFile(folder / "model.zip", "w", zipfile.ZIP_DEFLATED) as packed:
        for file in (folder / "bilm").iterdir():
            packed.write(file, file.name)
    files = {
        file.name: file for kind in ("manylangs", "native", "bilm") for file in (folder / kind).iterdir()
    }
    files["config.json"] = folder / "native" / "config.json"
    models = {
        name: (files[name].parent, files[name], files[name].read_bytes()) for name in KINDS if name in files
    }
    path = folder / "model.zip"
    return models | {"model.zip": (path, path, path.read_bytes())}


@pytest.mark.parametrize("kind", KINDS)
def test_random_damage_gives_a_model_or_a_clear_error(kind: str, models: dict[str, tuple[Path, Path, bytes]]):
    path, file, intact = models[kind]
    rng = np.random.default_rng(8)
    for _ in range(150):
        content = np.frombuffer(intact, np.uint8).copy()
        positions = rng.integers(0, len(content), rng.integers(1, 5))
        content[positions] = rng.integers(0, 256, len(positions))
        length = len(content) if rng.random() < 0.8 else rng.integers(len(content))
        file.write_bytes(content[:length].tobytes())
        with suppress(PolysemeError):
            open_pretrained(path)
    file.write_bytes(intact)
