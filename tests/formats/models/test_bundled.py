"""Bundled models by name: complete or refused, and a folder of that name takes precedence."""

from __future__ import annotations

import hashlib
import logging
from pathlib import Path

import pytest

from builders import assert_same_vectors, random_model, small_config
from polyseme.errors import FormatError
from polyseme.formats.models import bundled
from polyseme.formats.models.open import open_pretrained
from polyseme.formats.models.save import save_pretrained


@pytest.fixture
def bundle(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of bundled models with the model xx-classic, instead of the package's."""
    folder = tmp_path / "bundled"
    save_pretrained(random_model(small_config()), folder / "xx-classic", precision="int8", tables=True)
    files = sorted((folder / "xx-classic").iterdir())
    lines = [f"{hashlib.sha256(f.read_bytes()).hexdigest()}  xx-classic/{f.name}\n" for f in files]
    (folder / "SHA256SUMS").write_text("".join(lines), encoding="utf-8")
    monkeypatch.setattr(bundled, "FOLDER", folder)
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    return folder


def test_a_bundled_model_opens_by_its_name(bundle: Path):
    assert bundled.list_bundled() == ["xx-classic"]
    assert_same_vectors(open_pretrained("xx-classic"), open_pretrained(bundle / "xx-classic"))


def test_a_folder_of_that_name_takes_precedence_with_a_warning(
    bundle: Path, caplog: pytest.LogCaptureFixture
):
    model = random_model(small_config(recurrent={"cells": 7, "outputs": 4}))
    save_pretrained(model, "xx-classic")
    with caplog.at_level(logging.WARNING):
        assert open_pretrained("xx-classic").config.recurrent.cells == 7
    assert "xx-classic: using the file or folder of that name, not the bundled model" in caplog.text


@pytest.mark.parametrize("file", ["model.safetensors", "vocab.txt", "config.json"])
def test_a_changed_file_is_refused_with_its_checksum(bundle: Path, file: str):
    path = bundle / "xx-classic" / file
    path = path if path.exists() else bundle / "xx-classic" / "README.md"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(FormatError, match=rf"{path.name}: damaged: its SHA-256 is [0-9a-f]+.*pip install"):
        open_pretrained("xx-classic")


def test_a_missing_file_is_named(bundle: Path):
    (bundle / "xx-classic" / "config.json").unlink()
    with pytest.raises(FormatError, match=r"config.json: cannot be read .*pip install"):
        open_pretrained("xx-classic")


def test_an_unknown_name_is_answered_with_the_known_names(bundle: Path):
    with pytest.raises(
        FormatError,
        match=r"no bundled model of that name \(there are xx-classic\)\. Did you mean xx-classic\?",
    ):
        open_pretrained("xx-clasic")


def test_without_bundled_models_every_name_is_a_path(bundle: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(bundled, "FOLDER", bundle.parent / "here")
    assert bundled.list_bundled() == []
    with pytest.raises(FormatError, match="no such file or folder"):
        open_pretrained("xx-classic")
