"""Zips of models: every kind is opened, every trick is refused, and nothing is left behind."""

from __future__ import annotations

import gzip
import stat
import struct
import tempfile
import warnings
import zipfile
from pathlib import Path

import pytest

from builders import Bilm, assert_same_vectors, random_model, small_config, write_bilm
from manylangs_reference import architecture, write_folder
from polyseme.errors import FormatError
from polyseme.formats.models import archive
from polyseme.formats.models.open import open_pretrained
from polyseme.formats.models.save import save_pretrained


@pytest.fixture(autouse=True)
def temporary(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Where zips are unpacked; it must be empty after every test."""
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


def nlpl(folder: Path) -> Path:
    """A folder as NLPL packs it."""
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
        nlpl(folder)
    elif kind == "native":
        save_pretrained(random_model(small_config()), folder)
    else:
        write_folder(folder, architecture())
    model = open_pretrained(pack(folder, tmp_path / "model.zip", top=top, method=method))
    wanted = open_pretrained(folder)
    assert_same_vectors(model, wanted)
    assert model.origin["archive"] == "model.zip"
    assert (model.vocab is None) == (wanted.vocab is None)


def test_a_zip_needs_no_ending(tmp_path: Path):
    pack(nlpl(tmp_path / "folder"), tmp_path / "136")
    assert open_pretrained(tmp_path / "136").config.recurrent.cells == 6


def test_options_can_be_given_for_a_zip(tmp_path: Path):
    folder = nlpl(tmp_path / "folder")
    (folder / "options.json").rename(tmp_path / "mine.json")
    model = open_pretrained(pack(folder, tmp_path / "model.zip"), tmp_path / "mine.json")
    assert model.config.recurrent.cells == 6


def test_what_no_model_needs_stays_packed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = pack(nlpl(tmp_path / "folder"), tmp_path / "model.zip", top="elmo/")
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
    seen: list[str] = []
    with archive.unpack_archive(path) as folder:
        seen = sorted(entry.name for entry in folder.iterdir())
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    assert seen == ["meta.json", "model.hdf5", "options.json", "vocab.txt.gz"]
    assert open_pretrained(path).config.recurrent.cells == 6


def test_errors_inside_a_zip_name_the_zip(tmp_path: Path):
    folder = nlpl(tmp_path / "folder")
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
def test_names_that_lead_elsewhere_are_refused(name: str, reason: str, tmp_path: Path):
    path = pack(nlpl(tmp_path / "folder"), tmp_path / "model.zip")
    with zipfile.ZipFile(path, "a") as packed:
        packed.writestr(name, "{}")
    with pytest.raises(FormatError, match=reason):
        open_pretrained(path)
    assert not list(tmp_path.rglob("*evil*"))


def test_a_name_cut_at_a_nul_is_refused(tmp_path: Path):
    path = pack(nlpl(tmp_path / "folder"), tmp_path / "model.zip")
    path.write_bytes(path.read_bytes().replace(b"meta.json", b"meta\0json"))
    with pytest.raises(FormatError, match="unprintable"):
        open_pretrained(path)


@pytest.mark.parametrize(
    ("kind", "reason"), [(stat.S_IFLNK, "is a link"), (stat.S_IFIFO, "not a regular file")]
)
def test_links_and_devices_are_refused(kind: int, reason: str, tmp_path: Path):
    path = pack(nlpl(tmp_path / "folder"), tmp_path / "model.zip")
    with zipfile.ZipFile(path, "a") as packed:
        link = zipfile.ZipInfo("vocab.txt")
        link.external_attr = (kind | 0o777) << 16
        packed.writestr(link, "/etc/passwd")
    with pytest.raises(FormatError, match=reason):
        open_pretrained(path)


def test_duplicates_are_refused(tmp_path: Path):
    path = pack(nlpl(tmp_path / "folder"), tmp_path / "model.zip")
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
    path = pack(nlpl(tmp_path / "folder"), tmp_path / "model.zip")
    content = bytearray(path.read_bytes())
    for signature, offset in ((b"PK\x03\x04", 6), (b"PK\x01\x02", 8)):
        at = content.find(signature)
        struct.pack_into("<H", content, at + offset, 1)
    path.write_bytes(content)
    with pytest.raises(FormatError, match="is encrypted"):
        open_pretrained(path)


def test_a_bomb_is_stopped_by_the_bytes_that_come_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(archive, "SMALL_BYTES", 1 << 20)
    path = pack(nlpl(tmp_path / "folder"), tmp_path / "model.zip")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("bomb.txt", bytes(16 << 20))
    with pytest.raises(FormatError, match="unpacks to more than"):
        open_pretrained(path)


def test_the_ratio_matters_only_above_a_size(tmp_path: Path):
    path = pack(nlpl(tmp_path / "folder"), tmp_path / "model.zip")
    with zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED) as packed:
        packed.writestr("zeros.txt", bytes(16 << 20))
    assert open_pretrained(path).config.recurrent.cells == 6


def test_no_archive_unpacks_beyond_the_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(archive, "MAX_BYTES", 10_000)
    with pytest.raises(FormatError, match="unpacks to more than 10,000 bytes"):
        open_pretrained(pack(nlpl(tmp_path / "folder"), tmp_path / "model.zip"))


def test_a_declared_size_that_lies_is_found_out(tmp_path: Path):
    path = pack(nlpl(tmp_path / "folder"), tmp_path / "model.zip")
    content = bytearray(path.read_bytes())
    at = content.find(b"PK\x01\x02")
    while at >= 0:
        struct.pack_into("<I", content, at + 24, 10)  # the uncompressed size, in the directory
        at = content.find(b"PK\x01\x02", at + 4)
    path.write_bytes(content)
    with pytest.raises(FormatError, match="damaged or not a zip"):
        open_pretrained(path)


def test_too_many_members_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setattr(archive, "MAX_MEMBERS", 3)
    with pytest.raises(FormatError, match="contains 5 files"):
        open_pretrained(pack(nlpl(tmp_path / "folder"), tmp_path / "model.zip"))


def test_two_models_in_one_archive_are_named(tmp_path: Path):
    write_bilm(tmp_path / "folder", Bilm())
    path = pack(tmp_path / "folder", tmp_path / "model.zip", top="one/")
    with zipfile.ZipFile(path, "a") as packed:
        packed.write(tmp_path / "folder" / "model.hdf5", "two/model.hdf5")
    with pytest.raises(FormatError, match=r"several folders \(one, two\)"):
        open_pretrained(path)


def test_an_archive_without_a_model_says_what_it_holds(tmp_path: Path):
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


def test_a_truncated_or_false_zip_is_refused(tmp_path: Path):
    path = pack(nlpl(tmp_path / "folder"), tmp_path / "model.zip")
    whole = path.read_bytes()
    for content in (b"", b"PK", whole[: len(whole) // 2], b"not a zip"):
        path.write_bytes(content)
        with pytest.raises(FormatError, match=r"damaged or not a zip.*Copy it again"):
            open_pretrained(path)
    damaged = bytearray(whole)
    damaged[200:220] = bytes(20)
    path.write_bytes(damaged)
    with pytest.raises(FormatError, match="damaged or not a zip"):
        open_pretrained(path)


def test_a_full_disk_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    path = pack(nlpl(tmp_path / "folder"), tmp_path / "model.zip")

    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(archive, "_unpack", full)
    with pytest.raises(FormatError, match=r"No space left on device.*load the folder"):
        open_pretrained(path)
