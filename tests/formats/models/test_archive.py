"""Zip archives of models: every format opens, every attack is refused, no temporary file stays."""

from __future__ import annotations

import gzip
import pickle
import stat
import struct
import tempfile
import warnings
import zipfile
from pathlib import Path

import numpy as np
import pytest

import polyseme
from builders import Bilm, assert_same_vectors, random_model, small_config, write_bilm
from manylangs_reference import architecture, write_folder
from polyseme.errors import FormatError
from polyseme.formats.models import archive
from polyseme.formats.models.open import open_pretrained
from polyseme.formats.models.save import save_pretrained


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """The folder where zips are unpacked; it must be empty after every test."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    yield folder
    assert list(folder.glob("polyseme-*")) == []


def pack(folder: Path, path: Path, *, top: str = "", method: int = zipfile.ZIP_DEFLATED) -> Path:
    with zipfile.ZipFile(path, "w", method) as packed:
        for file in sorted(folder.iterdir()):
            packed.write(file, top + file.name)
    return path


def write_nlpl(folder: Path) -> Path:
    """Write a folder like those of the NLPL repository."""
    write_bilm(folder, vocab=None)
    (folder / "meta.json").write_text('{"language": "eng", "lstm": "no section"}')
    (folder / "README").write_text("about")
    (folder / "vocab.txt.gz").write_bytes(gzip.compress(b"<S>\n</S>\n<UNK>\nthe\n"))
    return folder


@pytest.mark.parametrize(
    "method", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED, zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA]
)
@pytest.mark.parametrize("top", ["", "elmo/", "a/b/"])
@pytest.mark.parametrize("kind", ["nlpl", "native", "manylangs"])
def test_a_zip_opens_like_its_folder(kind: str, top: str, method: int, tmp_path: Path):
    folder = tmp_path / "folder"
    if kind == "nlpl":
        write_nlpl(folder)
    elif kind == "native":
        save_pretrained(random_model(small_config()), folder)
    else:
        write_folder(folder, architecture())
    model = open_pretrained(pack(folder, tmp_path / "model.zip", top=top, method=method))
    expected = open_pretrained(folder)
    assert_same_vectors(model, expected)
    assert model.origin["archive"] == "model.zip"
    assert (model.vocab is None) == (expected.vocab is None)


def test_the_name_of_a_zip_needs_no_ending(tmp_path: Path):
    pack(write_nlpl(tmp_path / "folder"), tmp_path / "136")
    assert open_pretrained(tmp_path / "136").config.recurrent.cells == 6


def test_the_options_of_a_zip_can_be_a_separate_file(tmp_path: Path):
    folder = write_nlpl(tmp_path / "folder")
    (folder / "options.json").rename(tmp_path / "mine.json")
    model = open_pretrained(pack(folder, tmp_path / "model.zip"), tmp_path / "mine.json")
    assert model.config.recurrent.cells == 6


def test_files_that_no_model_needs_are_not_unpacked(tmp_path: Path):
    path = pack(write_nlpl(tmp_path / "folder"), tmp_path / "model.zip", top="elmo/")
    with zipfile.ZipFile(path, "a") as packed:
        for name in (
            "__MACOSX/elmo/._model.hdf5",
            "elmo/.hidden.json",
            "elmo/run.py",
            "elmo/inner.zip",
            "notes.txt",
        ):
            packed.writestr(name, "x")
        packed.mkdir("elmo/empty")
    with archive.unpack_archive(path) as folder:
        unpacked = sorted(entry.name for entry in folder.iterdir())
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert unpacked == ["meta.json", "model.hdf5", "options.json", "vocab.txt.gz"]
    assert open_pretrained(path).config.recurrent.cells == 6


def test_errors_inside_a_zip_name_the_zip(tmp_path: Path):
    folder = write_nlpl(tmp_path / "folder")
    (folder / "options.json").write_text("{")
    with pytest.raises(Exception, match=r"model\.zip/options\.json") as problem:
        open_pretrained(pack(folder, tmp_path / "model.zip"))
    assert "polyseme-" not in str(problem.value)


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        ("../evil.json", "points outside the archive"),
        ("elmo/../../evil.json", "points outside the archive"),
        ("..", "points outside the archive"),
        ("/etc/evil.json", "is an absolute or a Windows path"),
        ("C:/evil.json", "is an absolute or a Windows path"),
        ("..\\evil.json", "is an absolute or a Windows path"),
        ("\\\\server\\evil.json", "is an absolute or a Windows path"),
        ("evil.json:stream", "is an absolute or a Windows path"),
        ("evil\n.json", "unprintable"),
    ],
)
def test_names_that_point_outside_the_archive_are_refused(name: str, reason: str, tmp_path: Path):
    path = pack(write_nlpl(tmp_path / "folder"), tmp_path / "model.zip")
    with zipfile.ZipFile(path, "a") as packed:
        packed.writestr(name, "{}")
    with pytest.raises(FormatError, match=reason):
        open_pretrained(path)
    assert not list(tmp_path.rglob("*evil*"))


def test_a_name_with_a_nul_is_refused(tmp_path: Path):
    path = pack(write_nlpl(tmp_path / "folder"), tmp_path / "model.zip")
    path.write_bytes(path.read_bytes().replace(b"meta.json", b"meta\0json"))
    with pytest.raises(FormatError, match="unprintable"):
        open_pretrained(path)


@pytest.mark.parametrize(
    ("kind", "reason"), [(stat.S_IFLNK, "is a link"), (stat.S_IFIFO, "not a regular file")]
)
def test_links_and_devices_are_refused(kind: int, reason: str, tmp_path: Path):
    path = pack(write_nlpl(tmp_path / "folder"), tmp_path / "model.zip")
    with zipfile.ZipFile(path, "a") as packed:
        link = zipfile.ZipInfo("vocab.txt")
        link.external_attr = (kind | 0o777) << 16
        packed.writestr(link, "/etc/passwd")
    with pytest.raises(FormatError, match=reason):
        open_pretrained(path)


def test_duplicates_are_refused(tmp_path: Path):
    path = pack(write_nlpl(tmp_path / "folder"), tmp_path / "model.zip")
    with zipfile.ZipFile(path, "a") as packed, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        packed.writestr("options.json", "{}")
    with pytest.raises(FormatError, match=r"'options\.json' occurs twice"):
        open_pretrained(path)
    path = pack(tmp_path / "folder", tmp_path / "model.zip")
    with zipfile.ZipFile(path, "a") as packed:
        packed.writestr("Options.JSON", "{}")
    with pytest.raises(FormatError, match="upper and lower case"):
        open_pretrained(path)


def test_an_encrypted_archive_is_refused(tmp_path: Path):
    path = pack(write_nlpl(tmp_path / "folder"), tmp_path / "model.zip")
    content = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.find(signature)
        struct.pack_into("<H", content, at + offset, 1)
    path.write_bytes(content)
    with pytest.raises(FormatError, match="is encrypted"):
        open_pretrained(path)


def test_a_zip_bomb_is_stopped_by_the_bytes_that_come_out(tmp_path: Path):
    path = pack(write_nlpl(tmp_path / "folder"), tmp_path / "model.zip")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("bomb.txt", bytes(16 << 20))
    with (
        pytest.raises(FormatError, match="unpacks to more than"),
        archive.unpack_archive(path, small_bytes=1 << 20),
    ):
        pass


def test_small_archives_may_have_any_compression_ratio(tmp_path: Path):
    path = pack(write_nlpl(tmp_path / "folder"), tmp_path / "model.zip")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("zeros.txt", bytes(16 << 20))
    assert open_pretrained(path).config.recurrent.cells == 6


def test_the_unpacked_size_is_limited(tmp_path: Path):
    path = pack(write_nlpl(tmp_path / "folder"), tmp_path / "model.zip")
    with (
        pytest.raises(FormatError, match="unpacks to more than 10,000 bytes"),
        archive.unpack_archive(path, max_bytes=10_000),
    ):
        pass


def test_a_false_declared_size_is_refused(tmp_path: Path):
    path = pack(write_nlpl(tmp_path / "folder"), tmp_path / "model.zip")
    content = bytearray(path.read_bytes())
    at = content.find(b"PK\x01\x02")
    while at >= 0:
        struct.pack_into("<I", content, at + 24, 10)  # the uncompressed size, in the directory
        at = content.find(b"PK\x01\x02", at + 4)
    path.write_bytes(content)
    with pytest.raises(FormatError, match="damaged or not a zip"):
        open_pretrained(path)


def test_too_many_files_are_refused(tmp_path: Path):
    path = pack(write_nlpl(tmp_path / "folder"), tmp_path / "model.zip")
    with pytest.raises(FormatError, match="contains 5 files"), archive.unpack_archive(path, max_members=3):
        pass


def test_two_models_in_one_archive_are_refused_with_their_folders(tmp_path: Path):
    write_bilm(tmp_path / "folder", Bilm())
    path = pack(tmp_path / "folder", tmp_path / "model.zip", top="one/")
    with zipfile.ZipFile(path, "a") as packed:
        packed.write(tmp_path / "folder" / "model.hdf5", "two/model.hdf5")
    with pytest.raises(FormatError, match=r"several folders \(one, two\)"):
        open_pretrained(path)


def test_an_archive_without_a_model_is_refused_with_its_contents(tmp_path: Path):
    with zipfile.ZipFile(tmp_path / "inner.zip", "w") as packed:
        packed.writestr("model.hdf5", "x")
    with zipfile.ZipFile(tmp_path / "model.zip", "w") as packed:
        packed.write(tmp_path / "inner.zip", "inner.zip")
    with pytest.raises(FormatError, match=r"contains no model\. Looked for \*\.hdf5.*found inner\.zip"):
        open_pretrained(tmp_path / "model.zip")
    with zipfile.ZipFile(tmp_path / "empty.zip", "w"):
        pass
    with pytest.raises(FormatError, match="found nothing"):
        open_pretrained(tmp_path / "empty.zip")


def test_a_truncated_or_damaged_zip_is_refused(tmp_path: Path):
    path = pack(write_nlpl(tmp_path / "folder"), tmp_path / "model.zip")
    intact = path.read_bytes()
    for content in (b"", b"PK", intact[: len(intact) // 2], b"not a zip"):
        path.write_bytes(content)
        with pytest.raises(FormatError, match=r"damaged or not a zip.*Copy it again"):
            open_pretrained(path)
    damaged = bytearray(intact)
    damaged[200:220] = bytes(20)
    path.write_bytes(damaged)
    with pytest.raises(FormatError, match="damaged or not a zip"):
        open_pretrained(path)


def test_a_full_disk_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = pack(write_nlpl(tmp_path / "folder"), tmp_path / "model.zip")

    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archive, "_unpack", fail)
    with pytest.raises(FormatError, match=r"No space left on device.*load the folder"):
        open_pretrained(path)


def test_a_zip_of_nlpl_is_found_by_its_number(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("POLYSEME_CACHE", str(tmp_path / "cache"))
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FormatError, match=r"nlpl:193: no 193\.zip in the working folder or in .*cache/nlpl"):
        polyseme.load("nlpl:193")
    (tmp_path / "cache" / "nlpl").mkdir(parents=True)
    pack(write_nlpl(tmp_path / "folder"), tmp_path / "cache" / "nlpl" / "193.zip")
    elmo = polyseme.load("nlpl:193")
    assert elmo.config == polyseme.load(tmp_path / "folder").config
    again = pickle.loads(pickle.dumps(elmo))
    assert np.array_equal(again.embed("a b"), elmo.embed("a b"))
