"""Folders of vectors: whole, in parts, through kills, full disks and odd text.

H = both directions.
"""

from __future__ import annotations

import errno
import json
import os
import random
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyseme
from builders import random_model, small_config
from polyseme import api, bulk_embedding
from polyseme.elmo import Elmo
from polyseme.errors import FormatError, UsageError
from polyseme.formats.models.pretrained import Pretrained
from polyseme.formats.models.save import save_pretrained
from polyseme.formats.vectors import manifest
from polyseme.formats.vectors.file_formats import VECTOR_FORMATS
from polyseme.io.progress import ProgressEvent
from programs import run_program

LINES = [" ".join(f"w{(7 * n + k) % 50}" for k in range(n % 9)) for n in range(200)]  # every ninth is empty
FORMATS = ["safetensors", "parquet", "npz", "hdf5"]
SMALL: Any = {"shard_mb": 500 / 2**20}  # a shard for every group of sentences


@pytest.fixture(autouse=True)
def small_batches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(bulk_embedding, "CHUNK", 1)


@pytest.fixture
def elmo() -> Elmo:
    return Elmo(random_model(small_config()), batch_tokens=64)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return written(tmp_path / "text.txt", LINES)


def written(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def assert_holds(folder: Path, elmo: Elmo, lines: list[str], **options: Any) -> None:
    """The folder has the vectors and tokens of exactly these lines, in their order."""
    with polyseme.open_vectors(folder) as vectors:
        assert len(vectors) == len(lines)
        for found, wanted in zip(vectors, elmo.embed(lines, **options), strict=True):
            np.testing.assert_allclose(found, wanted, atol=2e-3)
        assert [vectors.sentence(number) for number in range(len(lines))] == [line.split() for line in lines]


# ---- what is in a folder ----


@pytest.mark.parametrize("kind", FORMATS)
@pytest.mark.parametrize("options", [{}, {"layer": "all"}, {"pool": "mean"}], ids=str)
def test_a_folder_holds_every_sentence_once_in_its_order(kind, options, elmo, text, tmp_path):
    done = api.embed(elmo, text, tmp_path / "out", format=kind, **SMALL, **options)
    assert (done.sentences, done.tokens) == (200, sum(len(line.split()) for line in LINES))
    with polyseme.open_vectors(tmp_path / "out") as vectors:
        assert len(vectors) == 200
        assert vectors[0].dtype == np.float16
        for found, wanted in zip(vectors, elmo.embed(LINES, **options), strict=True):
            assert found.shape == wanted.shape
            np.testing.assert_allclose(found, wanted, atol=2e-3)
        vectors.verify()


def test_the_manifest_says_what_made_the_folder_and_what_is_in_it(elmo, text, tmp_path):
    api.embed(elmo, text, tmp_path / "out", layer="top", direction="forward", **SMALL)
    found = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert found["head"]["model"] == elmo.model.fingerprint()
    assert {"layer": [0, 0, 1], "pool": None, "direction": "forward", "dtype": "float16"}.items() <= (
        found["head"]["settings"].items()
    )
    assert found["head"]["share"] == [1, 1]
    shards = found["shards"]
    assert {shard["cut"] for shard in shards} == {0}
    assert len(shards) > 10
    assert sum(shard["sentences"] for shard in shards) == 200
    assert sorted([*(shard["file"] for shard in shards), "manifest.json"]) == sorted(
        content(tmp_path / "out")
    )
    assert all(shard["bytes"] < 5000 for shard in shards)


def test_shards_stay_near_their_size_however_long_a_paragraph_is(elmo, tmp_path):
    text = written(tmp_path / "text.txt", ["The bank failed . Why ? "] * 300)  # one paragraph, one block
    api.embed(elmo, text, tmp_path / "out", segment="en", **SMALL)
    sizes = [len(data) for name, data in content(tmp_path / "out").items() if name.startswith("shard")]
    assert len(sizes) > 10
    assert max(sizes) < 5000  # a header, a group of sentences and their tokens


def test_several_texts_follow_each_other(elmo, tmp_path):
    one, two = written(tmp_path / "one.txt", LINES[:50]), written(tmp_path / "two.txt", LINES[50:])
    api.embed(elmo, [one, two], tmp_path / "out", **SMALL)
    assert_holds(tmp_path / "out", elmo, LINES)
    api.embed(elmo, [one, two], tmp_path / "x.npz")
    assert len(polyseme.open_vectors(tmp_path / "x.npz")) == 200


def test_a_text_without_sentences_gives_a_folder_without_shards(elmo, tmp_path):
    api.embed(elmo, written(tmp_path / "empty.txt", []), tmp_path / "out")
    assert list(content(tmp_path / "out")) == ["manifest.json"]
    assert len(polyseme.open_vectors(tmp_path / "out")) == 0


def test_one_file_keeps_float32_and_a_folder_takes_it_if_asked(elmo, text, tmp_path):
    api.embed(elmo, text, tmp_path / "x.safetensors")
    api.embed(elmo, text, tmp_path / "out", dtype="float32")
    for path in (tmp_path / "x.safetensors", tmp_path / "out"):
        assert polyseme.open_vectors(path)[1].dtype == np.float32


def test_a_sum_that_float16_cannot_hold_is_refused(elmo, tmp_path):
    text = written(tmp_path / "text.txt", ["bank " * 5])
    with pytest.raises(UsageError, match=r"does not fit into float16\. Use `dtype=.float32.`"):
        api.embed(elmo, text, tmp_path / "out", pool="sum", layer=[1e6, 0, 1e6])


def test_the_command_writes_a_folder(elmo, text, tmp_path):
    save_pretrained(elmo.model, tmp_path / "model")
    ran = run_program("embed", tmp_path / "model", text, text.parent / "text.txt", "--out", tmp_path / "out")
    assert ran.out == f"{tmp_path / 'out'}: 200 sentences, {sum(len(x.split()) for x in LINES)} tokens\n"
    assert_holds(tmp_path / "out", elmo, LINES)


# ---- parts ----


@pytest.mark.parametrize("segment", ["split", "en"])
def test_parts_together_hold_what_one_process_writes(segment, elmo, tmp_path):
    lines = [f"{line}\n" for line in LINES] if segment == "en" else LINES
    text = written(tmp_path / "text.txt", lines)
    api.embed(elmo, text, tmp_path / "one", segment=segment, **SMALL)
    for number in (3, 1, 2):
        api.embed(elmo, text, tmp_path / "three", shard=f"{number}/3", segment=segment, **SMALL)
    one, three = content(tmp_path / "one"), content(tmp_path / "three")
    assert {name: data for name, data in three.items() if name.startswith("shard")} == (
        {name: data for name, data in one.items() if name.startswith("shard")}
    )
    assert set(three) - set(one) == {f"manifest-{number}-of-3.json" for number in (1, 2, 3)}
    found, wanted = polyseme.open_vectors(tmp_path / "three"), polyseme.open_vectors(tmp_path / "one")
    assert len(found) == len(wanted)
    assert all(np.array_equal(a, b) for a, b in zip(found, wanted, strict=True))


def test_a_folder_with_a_missing_part_is_not_opened(elmo, text, tmp_path):
    api.embed(elmo, text, tmp_path / "out", shard="2/3", **SMALL)
    with pytest.raises(FormatError, match=r"of 3 parts, 1, 3 are not finished\. Run the same `polyseme"):
        polyseme.open_vectors(tmp_path / "out")


def test_two_processes_never_write_the_same_part(elmo, text, tmp_path):
    def meanwhile(event: ProgressEvent) -> None:
        with pytest.raises(UsageError, match=r"another process is writing this part"):
            api.embed(elmo, text, tmp_path / "out", shard="1/2", **SMALL)

    api.embed(elmo, text, tmp_path / "out", shard="1/2", progress=meanwhile, **SMALL)


def test_parts_that_finish_while_another_starts_are_not_in_its_way(elmo, text, tmp_path, monkeypatch):
    api.embed(elmo, text, tmp_path / "out", shard="1/2", **SMALL)
    gone = tmp_path / "out" / "manifest-1-of-2.json.running"
    (tmp_path / "out" / "tmp1234_abc").touch()  # another process' unnamed file, where a disk has none
    listed = sorted([*(tmp_path / "out").iterdir(), gone])
    monkeypatch.setattr(Path, "iterdir", lambda self: iter(listed))
    assert "manifest-1-of-2.json" in manifest.read_headers(tmp_path / "out")
    monkeypatch.undo()
    assert api.embed(elmo, text, tmp_path / "out", shard="2/2", **SMALL).sentences > 0


# ---- going on ----


class StopError(Exception):
    """Stands in for a kill."""


def embed_until(elmo: Elmo, text: Path, folder: Path, groups: int, **options: Any) -> None:
    """Embed and stop after `groups` groups of sentences."""
    seen = 0

    def stop(event: ProgressEvent) -> None:
        nonlocal seen
        seen += 1
        if seen > groups:
            raise StopError

    with pytest.raises(StopError):
        api.embed(elmo, text, folder, progress=stop, **SMALL, **options)


@pytest.mark.parametrize("kind", FORMATS)
def test_what_was_interrupted_goes_on_and_gives_the_same_bytes(kind, elmo, text, tmp_path):
    api.embed(elmo, text, tmp_path / "whole", format=kind, **SMALL)
    for groups in (0, 3, 1, 6):
        embed_until(elmo, text, tmp_path / "out", groups, format=kind)
        with pytest.raises(FormatError, match="it is not finished"):
            polyseme.open_vectors(tmp_path / "out")
    events: list[ProgressEvent] = []
    done = api.embed(elmo, text, tmp_path / "out", format=kind, progress=events.append, **SMALL)
    assert done.sentences == 200
    assert 0 < int(events[-1].detail.split()[0].replace(",", "")) < done.tokens  # the rest was there
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_a_finished_folder_is_left_as_it_is(elmo, text, tmp_path):
    api.embed(elmo, text, tmp_path / "out", **SMALL)
    before, events = content(tmp_path / "out"), []
    done = api.embed(elmo, text, tmp_path / "out", progress=events.append, **SMALL)
    assert (done.sentences, events) == (200, [])
    assert content(tmp_path / "out") == before


def test_lost_and_shortened_shards_are_made_again_and_only_those(elmo, tmp_path):
    text = written(tmp_path / "text.txt", ["The bank failed . Why ? "] * 300)
    api.embed(elmo, text, tmp_path / "out", segment="en", **SMALL)
    before = content(tmp_path / "out")
    shards = sorted(tmp_path.glob("out/shard*"))
    shards[2].unlink()
    shards[3].unlink()
    shards[6].write_bytes(b"short")
    shards[-1].write_bytes(b"x" * shards[-1].stat().st_size)
    kept = shards[4].stat().st_mtime_ns
    api.embed(elmo, text, tmp_path / "out", segment="en", **SMALL)
    assert content(tmp_path / "out") == before
    assert shards[4].stat().st_mtime_ns == kept


def test_a_journal_whose_last_line_was_cut_off_loses_no_sentence(elmo, text, tmp_path):
    api.embed(elmo, text, tmp_path / "whole", **SMALL)
    embed_until(elmo, text, tmp_path / "out", 6)
    journal = tmp_path / "out" / "manifest.json.running"
    for cut in (20, journal.stat().st_size - 50):  # the last line; all but a part of the head
        journal.write_bytes(journal.read_bytes()[:-cut])
        embed_until(elmo, text, tmp_path / "out", 2)
    api.embed(elmo, text, tmp_path / "out", **SMALL)
    assert content(tmp_path / "out") == content(tmp_path / "whole")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"layer": "top"}, r"layer \[0\.33\d+, .*\], now \[0\.0, 0\.0, 1\.0\]"),
        ({"pool": "mean"}, "pool null, now mean"),
        ({"dtype": "float32"}, "dtype float16, now float32"),
        ({"segment": "en"}, "segment split, now en"),
        ({"format": "npz"}, "format safetensors, now npz"),
        ({"direction": "forward"}, "direction both, now forward"),
        ({"shard_mb": 4000 / 2**20}, "shard_bytes 500, now 4000"),
        ({"shard": "1/2"}, "1 parts, now 2"),
    ],
    ids=str,
)
@pytest.mark.parametrize("finished", [True, False])
def test_another_setting_in_the_same_folder_is_refused(finished, change, message, elmo, text, tmp_path):
    if finished:
        api.embed(elmo, text, tmp_path / "out", **SMALL)
    else:
        embed_until(elmo, text, tmp_path / "out", 3)
    before = content(tmp_path / "out")
    with pytest.raises(UsageError, match=f"was begun with {message}. Choose another folder, or "):
        api.embed(elmo, text, tmp_path / "out", **SMALL | change)
    assert content(tmp_path / "out") == before


def test_another_model_or_text_is_refused_unless_force_begins_anew(elmo, text, tmp_path):
    api.embed(elmo, text, tmp_path / "out", **SMALL)
    other = Elmo(random_model(small_config(), seed=1))
    with pytest.raises(UsageError, match=r"begun with the model \w{12}, now \w{12}\."):
        api.embed(other, text, tmp_path / "out", **SMALL)
    written(text, [*LINES[:-1], "else"])
    with pytest.raises(UsageError, match=r"another text: .*text\.txt has changed"):
        api.embed(elmo, text, tmp_path / "out", **SMALL)
    api.embed(elmo, text, tmp_path / "out", force=True)
    assert_holds(tmp_path / "out", elmo, [*LINES[:-1], "else"])
    assert len(list(tmp_path.glob("out/shard*"))) == 1


def test_a_text_under_another_name_is_the_same_text(elmo, text, tmp_path):
    embed_until(elmo, text, tmp_path / "out", 3)
    api.embed(elmo, text.rename(tmp_path / "moved.txt"), tmp_path / "out", **SMALL)
    assert_holds(tmp_path / "out", elmo, LINES)


EMBED = """
import sys, polyseme
from polyseme import bulk_embedding
bulk_embedding.CHUNK = 1
polyseme.embed(sys.argv[1], sys.argv[2], sys.argv[3], batch_tokens=64, shard_mb=500 / 2**20)
"""


def test_killed_at_any_moment_a_run_goes_on_without_a_lost_or_doubled_sentence(elmo, tmp_path):
    text = written(tmp_path / "text.txt", LINES * 10)
    save_pretrained(elmo.model, tmp_path / "model")
    api.embed(str(tmp_path / "model"), text, tmp_path / "whole", batch_tokens=64, **SMALL)
    command = [sys.executable, "-c", EMBED, tmp_path / "model", text, tmp_path / "out"]
    moments, killed = random.Random(0), 0
    for _ in range(4):
        before = len(list(tmp_path.glob("out/shard*")))
        process = subprocess.Popen(command)
        while process.poll() is None and len(list(tmp_path.glob("out/shard*"))) <= before:
            time.sleep(0.001)
        time.sleep(moments.uniform(0, 0.1))
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
    assert killed >= 2
    subprocess.run(command, check=True)
    assert content(tmp_path / "out") == content(tmp_path / "whole")


# ---- full disks ----


@pytest.mark.parametrize("kind", FORMATS)
def test_a_full_disk_leaves_finished_shards_and_nothing_half_written(kind, elmo, text, tmp_path, monkeypatch):
    save_pretrained(elmo.model, tmp_path / "model")
    dump: Any = VECTOR_FORMATS[kind].writer
    add, calls = dump.add, 0

    def full(self: Any, *arguments: Any) -> None:
        nonlocal calls
        calls += 1
        if calls > 60:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        add(self, *arguments)

    monkeypatch.setattr(dump, "add", full)
    out = tmp_path / "out"
    sizes = ("--batch-tokens", 64, "--shard-mb", 500 / 2**20)
    command = ("embed", tmp_path / "model", text, "--out", out, "--format", kind, *sizes)
    ran = run_program(*command)
    assert ran.code == 2
    assert ran.err.startswith(f"polyseme: {out}/shard-")
    assert ran.err.endswith("writing failed (No space left on device). Free space, or choose another path.\n")
    assert not list(out.glob(".*"))
    finished = {name: data for name, data in content(out).items() if name.startswith("shard")}
    assert len(finished) > 2
    monkeypatch.setattr(dump, "add", add)
    assert run_program(*command).code == 0
    assert finished.items() <= content(out).items()
    assert len(polyseme.open_vectors(out)) == 200


LIMITED = f"""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (6000, {resource.RLIM_INFINITY}))
from polyseme.cli import main
main()
"""


@pytest.mark.parametrize("kind", ["safetensors", "parquet"])
def test_a_file_that_may_not_grow_is_one_line_and_exit_code_2(kind, elmo, text, tmp_path):
    save_pretrained(elmo.model, tmp_path / "model")
    command = [
        sys.executable,
        "-c",
        LIMITED,
        "embed",
        "model",
        "text.txt",
        "--out",
        "out",
        "--format",
        kind,
    ]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr.count("\n")) == (2, 1), ran.stderr
    assert "writing failed (" in ran.stderr
    assert [name for name in os.listdir(tmp_path / "out") if not name.endswith(".running")] == []


# ---- odd text ----


def test_a_sentence_of_100_000_tokens_is_one_sentence(tmp_path):
    elmo = Elmo(random_model(small_config()))
    lines = ["a b", "w " * 100_000, "", "c"]
    api.embed(elmo, written(tmp_path / "text.txt", lines), tmp_path / "out")
    with polyseme.open_vectors(tmp_path / "out") as vectors:
        assert [len(array) for array in vectors] == [2, 100_000, 0, 1]
        assert vectors.sentence(1) == ["w"] * 100_000


def test_very_many_sentences_of_one_token(tmp_path):
    elmo = Elmo(random_model(small_config()))
    text = written(tmp_path / "text.txt", [str(number % 1000) for number in range(20_000)])
    done = api.embed(elmo, text, tmp_path / "out", shard_mb=50_000 / 2**20)
    assert (done.sentences, done.tokens) == (20_000, 20_000)
    vectors = polyseme.open_vectors(tmp_path / "out")
    np.testing.assert_allclose(vectors[19_999], elmo.embed("999"), atol=2e-3)
    assert vectors.sentence(12_345) == ["345"]


def test_unknown_scripts_and_empty_lines_keep_their_places(elmo, tmp_path):
    lines = ["", "ᚠᛇᚻ ᛒᛦᚦ", "", "", "𒀀𒁀 \u200b \x07 🏴\u200d☠️", "ກຂ", ""]
    api.embed(elmo, written(tmp_path / "text.txt", lines), tmp_path / "out")
    assert_holds(tmp_path / "out", elmo, lines)


# ---- memory ----

PEAK = """
import resource, sys, polyseme
polyseme.embed(sys.argv[1], sys.argv[2], sys.argv[3], pool="mean", shard_mb=4)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def peak(model: Path, text: Path, out: Path) -> int:
    """KiB that a process needs to embed a text."""
    command = [sys.executable, "-c", PEAK, *map(str, (model, text, out))]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.slow
def test_memory_does_not_grow_with_ten_million_sentences(elmo, tmp_path):
    save_pretrained(elmo.model, tmp_path / "model")
    peaks = []
    for count in (300_000, 10_000_000):
        with (tmp_path / f"{count}.txt").open("w") as file:
            file.writelines(f"{number % 1000}\n" for number in range(count))
        peaks.append(peak(tmp_path / "model", tmp_path / f"{count}.txt", tmp_path / f"out{count}"))
    assert peaks[1] - peaks[0] < 40 << 10
    assert len(polyseme.open_vectors(tmp_path / f"out{10_000_000}")) == 10_000_000


def test_the_weights_are_hashed_once_for_all_shards_and_verbs(elmo, text, tmp_path, monkeypatch):
    hashed = []
    whole = Pretrained._hash_weights
    monkeypatch.setattr(Pretrained, "_hash_weights", lambda self: hashed.append(1) or whole(self))
    for shard in ("1/2", "2/2", "2/2"):
        api.embed(elmo, text, tmp_path / "out", shard=shard)
    api.index(elmo, text, tmp_path / "index").elmo  # noqa: B018
    rows = [f"{label}\t{line or 'empty'}" for label, line in zip("ab" * 10, LINES[:20], strict=True)]
    train = written(tmp_path / "train.tsv", ["label\ttext", *rows])
    api.train("classification", elmo, train=train, out=tmp_path / "task", settings=["train.epochs=1"])
    assert len(hashed) == 1
