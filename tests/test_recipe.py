"""The training texts of the bundled models: which are read, left out and held out."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import tarfile
from pathlib import Path
from types import ModuleType

import pytest
import zstandard

FOLDER = Path(__file__).parent.parent / "models"


@pytest.fixture
def prepare() -> ModuleType:
    spec = importlib.util.spec_from_file_location("prepare", FOLDER / "prepare.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_wrapped_lines_become_paragraphs(prepare: ModuleType):
    text = "CHAPTER I\r\n\r\nShe never looked _through_ them\r\nfor so small a thing.\r\n \r\n\r\n“TOM!”\r\n"
    expected = "CHAPTER I\n\nShe never looked through them for so small a thing.\n\n“TOM!”\n"
    assert prepare.unwrapped(text) == expected


def test_the_last_chapters_of_each_novel_are_held_out(tmp_path: Path, prepare: ModuleType):
    chapters = [f"第{n}回　题\r\n\r\n    话说{n}．\r\n" for n in "一二三四五"]
    (tmp_path / "书.txt").write_text("《书》\r\n" + "".join(chapters), encoding="utf-8", newline="")
    checksum = hashlib.sha256((tmp_path / "书.txt").read_bytes()).hexdigest()
    parts = prepare.chinese(tmp_path, {"书": checksum})
    assert parts["train"] == {"书": "《书》\n\n第一回　题\n\n话说一。\n\n第二回　题\n\n话说二。\n"}
    assert parts["valid"]["书"].startswith("第三回")


def test_a_novel_with_another_checksum_is_refused(tmp_path: Path, prepare: ModuleType):
    for name in prepare.NOVELS:
        (tmp_path / f"{name}.txt").write_text("第一回 x\n", encoding="utf-8")
    with pytest.raises(SystemExit, match=r"三国演义\.txt: SHA-256 is [0-9a-f]+, expected 48922aa"):
        prepare.chinese(tmp_path)


def write_modern(folder: Path, texts: dict[str, str]) -> None:
    manifest = {}
    for name, text in texts.items():
        parts = {}
        for part in ("train", "valid", "test"):
            (folder / part).mkdir(exist_ok=True)
            content = f"{part} of {text}".encode()
            (folder / part / f"{name}.txt.zst").write_bytes(zstandard.ZstdCompressor().compress(content))
            parts[part] = {"sha256": hashlib.sha256(content).hexdigest()}
        manifest[name] = {"parts": parts}
    (folder / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")


def test_a_share_of_the_documents_is_kept_spread_over_the_source(prepare: ModuleType):
    text = "".join(f"{n}\nmore of {n}\n\n" for n in range(8))
    assert [line for line in prepare.thin(text, 0.5).splitlines() if line.isdigit()] == ["1", "3", "5", "7"]
    assert prepare.thin(text, 1.0) == text.strip() + "\n"


def test_only_the_training_text_of_a_modern_source_is_cut(tmp_path: Path, prepare: ModuleType):
    write_modern(tmp_path, {"wiki": "a\n\nb\n\nc\n\nd\n", "chat": "a\n\nb\n"})
    parts = prepare.modern(tmp_path, {"wiki": 0.5})
    assert parts["train"] == {"wiki": "b\n\nd\n", "chat": "train of a\n\nb\n"}
    assert parts["valid"]["wiki"] == "valid of a\n\nb\n\nc\n\nd\n"
    assert parts["test"]["chat"] == "test of a\n\nb\n"


def test_a_modern_source_with_another_checksum_is_refused(tmp_path: Path, prepare: ModuleType):
    write_modern(tmp_path, {"wiki": "a\n"})
    manifest = json.loads((tmp_path / "manifest.json").read_text(encoding="utf-8"))
    manifest["wiki"]["parts"]["valid"]["sha256"] = "0" * 64
    (tmp_path / "manifest.json").write_text(json.dumps(manifest), encoding="utf-8")
    with pytest.raises(SystemExit, match=r"valid/wiki\.txt\.zst: SHA-256 is [0-9a-f]+, expected 0000"):
        prepare.modern(tmp_path, {})


def test_novels_that_are_not_in_the_public_domain_are_left_out(
    tmp_path: Path, prepare: ModuleType, monkeypatch
):
    archive = tmp_path / "novels.tar.xz"
    with tarfile.open(archive, "w:xz") as pack:
        for name in ("11_alice", "174_dorian_gray", "1155_the_secret_adversary", "2891_howards_end"):
            content = f"{name}.\n".encode()
            entry = tarfile.TarInfo(f"original/{name}.txt")
            entry.size = len(content)
            pack.addfile(entry, io.BytesIO(content))
    monkeypatch.setattr(prepare, "sample", lambda name: f"{name}\n")
    monkeypatch.setattr(prepare, "speeches", lambda: "Fellow-citizens!\n")
    parts = prepare.english(archive, hashlib.sha256(archive.read_bytes()).hexdigest())
    assert sorted(parts["train"]) == ["11_alice", "kjv", "sotu"]
    assert sorted(parts["valid"]) == ["174_dorian_gray"]


def test_speeches_of_presidents_who_died_after_1955_are_left_out(prepare: ModuleType, monkeypatch):
    patterns = []
    monkeypatch.setattr(prepare, "fetch_archive", lambda name: name)
    monkeypatch.setattr(prepare, "read_members", lambda archive, names: patterns.append(names) or [])
    prepare.speeches()
    years = [year for year in range(1780, 2030) if patterns[0].fullmatch(f"package/data/{year}_x.json")]
    assert years[0] == 1790
    assert years[-1] == 1945
    assert not set(years) & {1929, 1930, 1931, 1932}
