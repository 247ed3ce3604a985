"""Folders of vectors: contents, parts, interruptions, full disks, unusual text and memory.

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
import threading
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyseme
from builders import random_model, small_config
from polyseme import api
from polyseme.elmo import Elmo
from polyseme.errors import DataError, FormatError, UsageError
from polyseme.formats.models.pretrained import Pretrained
from polyseme.formats.models.save import save_pretrained
from polyseme.formats.vectors import manifest
from polyseme.formats.vectors.file_formats import VECTOR_FORMATS
from polyseme.io.progress import ProgressEvent
from programs import run_program

LINES = [" ".join(f"w{(7 * n + k) % 50}" for k in range(n % 9)) for n in range(200)]  # every ninth is empty
FORMATS = ["safetensors", "parquet", "npz", "hdf5"]
SMALL: Any = {"shard_mb": 500 / 2**20}  # a shard for every group of sentences
BATCH_TOKENS = 32  # so that a group of sentences is small, too


@pytest.fixture
def elmo() -> Elmo:
    return Elmo(random_model(small_config()), batch_tokens=BATCH_TOKENS)


@pytest.fixture
def text(tmp_path: Path) -> Path:
    return write_lines(tmp_path / "text.txt", LINES)


def write_lines(path: Path, lines: list[str]) -> Path:
    path.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return path


def read_files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


def assert_has_vectors_of(folder: Path, elmo: Elmo, lines: list[str], **options: Any) -> None:
    """Check that the folder has the vectors and tokens of exactly these lines, in order."""
    with polyseme.open_vectors(folder) as vectors:
        assert len(vectors) == len(lines)
        for array, expected in zip(vectors, elmo.embed(lines, **options), strict=True):
            np.testing.assert_allclose(array, expected, atol=2e-3)
        assert [vectors.sentence(number) for number in range(len(lines))] == [line.split() for line in lines]


# ---- contents ----


@pytest.mark.parametrize("format_name", FORMATS)
@pytest.mark.parametrize("options", [{}, {"layer": "all"}, {"pool": "mean"}], ids=str)
def test_a_folder_has_every_sentence_once_and_in_order(format_name, options, elmo, text, tmp_path):
    counts = api.embed(elmo, text, tmp_path / "out", format=format_name, **SMALL, **options)
    assert (counts.sentences, counts.tokens) == (200, sum(len(line.split()) for line in LINES))
    with polyseme.open_vectors(tmp_path / "out") as vectors:
        assert len(vectors) == 200
        assert vectors[0].dtype == np.float16
        for array, expected in zip(vectors, elmo.embed(LINES, **options), strict=True):
            assert array.shape == expected.shape
            np.testing.assert_allclose(array, expected, atol=2e-3)
        vectors.verify()


def test_the_manifest_has_the_settings_and_the_shards(elmo, text, tmp_path):
    api.embed(elmo, text, tmp_path / "out", layer="top", direction="forward", **SMALL)
    values = json.loads((tmp_path / "out" / "manifest.json").read_text())
    assert values["head"]["model"] == elmo.model.fingerprint()
    assert {"layer": [0, 0, 1], "pool": None, "direction": "forward", "dtype": "float16"}.items() <= (
        values["head"]["settings"].items()
    )
    assert values["head"]["share"] == [1, 1]
    shards = values["shards"]
    assert {shard["cut"] for shard in shards} == {0}
    assert len(shards) > 10
    assert sum(shard["sentences"] for shard in shards) == 200
    assert sorted([*(shard["file"] for shard in shards), "manifest.json"]) == sorted(
        read_files(tmp_path / "out")
    )
    assert all(shard["bytes"] < 5000 for shard in shards)


def test_a_long_paragraph_is_written_in_several_shards(elmo, tmp_path):
    text = write_lines(tmp_path / "text.txt", ["The bank failed . Why ? "] * 300)  # one paragraph, one block
    api.embed(elmo, text, tmp_path / "out", segment="en", **SMALL)
    sizes = [len(data) for name, data in read_files(tmp_path / "out").items() if name.startswith("shard")]
    assert len(sizes) > 10
    assert max(sizes) < 5000  # a header, a group of sentences and their tokens


def test_several_texts_are_written_in_order(elmo, tmp_path):
    texts = [write_lines(tmp_path / "one.txt", LINES[:50]), write_lines(tmp_path / "two.txt", LINES[50:])]
    api.embed(elmo, texts, tmp_path / "out", **SMALL)
    assert_has_vectors_of(tmp_path / "out", elmo, LINES)
    api.embed(elmo, texts, tmp_path / "x.npz")
    assert len(polyseme.open_vectors(tmp_path / "x.npz")) == 200


def test_a_text_without_sentences_gives_a_folder_without_shards(elmo, tmp_path):
    api.embed(elmo, write_lines(tmp_path / "empty.txt", []), tmp_path / "out")
    assert list(read_files(tmp_path / "out")) == ["manifest.json"]
    assert len(polyseme.open_vectors(tmp_path / "out")) == 0


def test_a_file_has_float32_and_a_folder_if_requested(elmo, text, tmp_path):
    api.embed(elmo, text, tmp_path / "x.safetensors")
    api.embed(elmo, text, tmp_path / "out", dtype="float32")
    for path in (tmp_path / "x.safetensors", tmp_path / "out"):
        assert polyseme.open_vectors(path)[1].dtype == np.float32


def test_vectors_too_large_for_float16_are_refused(elmo, tmp_path):
    text = write_lines(tmp_path / "text.txt", ["bank " * 5])
    with pytest.raises(UsageError, match=r"does not fit into float16\. Use `dtype=.float32.`"):
        api.embed(elmo, text, tmp_path / "out", pool="sum", layer=[1e6, 0, 1e6])


def test_the_command_writes_a_folder(elmo, text, tmp_path):
    save_pretrained(elmo.model, tmp_path / "model")
    result = run_program(
        "embed", tmp_path / "model", text, text.parent / "text.txt", "--out", tmp_path / "out"
    )
    assert result.out == f"{tmp_path / 'out'}: 200 sentences, {sum(len(x.split()) for x in LINES)} tokens\n"
    assert_has_vectors_of(tmp_path / "out", elmo, LINES)


# ---- parts ----


@pytest.mark.parametrize("segment", ["split", "en"])
def test_parts_together_equal_the_folder_of_one_process(segment, elmo, tmp_path):
    lines = [f"{line}\n" for line in LINES] if segment == "en" else LINES
    text = write_lines(tmp_path / "text.txt", lines)
    api.embed(elmo, text, tmp_path / "one", segment=segment, **SMALL)
    for number in (3, 1, 2):
        api.embed(elmo, text, tmp_path / "three", shard=f"{number}/3", segment=segment, **SMALL)
    single, parts = read_files(tmp_path / "one"), read_files(tmp_path / "three")
    assert {name: data for name, data in parts.items() if name.startswith("shard")} == (
        {name: data for name, data in single.items() if name.startswith("shard")}
    )
    assert set(parts) - set(single) == {f"manifest-{number}-of-3.json" for number in (1, 2, 3)}
    vectors, expected = polyseme.open_vectors(tmp_path / "three"), polyseme.open_vectors(tmp_path / "one")
    assert len(vectors) == len(expected)
    assert all(np.array_equal(left, right) for left, right in zip(vectors, expected, strict=True))


def test_a_folder_with_a_missing_part_is_not_opened(elmo, text, tmp_path):
    api.embed(elmo, text, tmp_path / "out", shard="2/3", **SMALL)
    with pytest.raises(FormatError, match=r"of 3 parts, 1, 3 are not finished\. Run the same `polyseme"):
        polyseme.open_vectors(tmp_path / "out")


def test_two_processes_cannot_write_the_same_part(elmo, text, tmp_path):
    def start_second(event: ProgressEvent) -> None:
        with pytest.raises(UsageError, match=rf"out-1-of-2: process {os.getpid()} is writing it"):
            api.embed(elmo, text, tmp_path / "out", shard="1/2", **SMALL)

    api.embed(elmo, text, tmp_path / "out", shard="1/2", progress=start_second, **SMALL)


def test_a_part_can_start_while_another_one_finishes(elmo, text, tmp_path, monkeypatch):
    api.embed(elmo, text, tmp_path / "out", shard="1/2", **SMALL)
    removed = tmp_path / "out" / "manifest-1-of-2.json.running"
    (tmp_path / "out" / "tmp1234_abc").touch()  # a temporary file of another process
    listed = sorted([*(tmp_path / "out").iterdir(), removed])
    monkeypatch.setattr(Path, "iterdir", lambda self: iter(listed))
    assert "manifest-1-of-2.json" in manifest.read_headers(tmp_path / "out")
    monkeypatch.undo()
    assert api.embed(elmo, text, tmp_path / "out", shard="2/2", **SMALL).sentences > 0


# ---- interrupted runs ----


class InterruptedReadError(Exception):
    """Interrupts a run in this process."""


def embed_until(elmo: Elmo, text: Path, folder: Path, groups: int, **options: Any) -> None:
    """Embed and stop after `groups` groups of sentences."""
    seen = 0

    def stop(event: ProgressEvent) -> None:
        nonlocal seen
        seen += 1
        if seen > groups:
            raise InterruptedReadError

    with pytest.raises(InterruptedReadError):
        api.embed(elmo, text, folder, progress=stop, **SMALL, **options)


@pytest.mark.parametrize("format_name", FORMATS)
def test_an_interrupted_run_resumes_and_writes_the_same_bytes(format_name, elmo, text, tmp_path):
    api.embed(elmo, text, tmp_path / "whole", format=format_name, **SMALL)
    for groups in (0, 3, 1, 6):
        embed_until(elmo, text, tmp_path / "out", groups, format=format_name)
        with pytest.raises(FormatError, match="it is not finished"):
            polyseme.open_vectors(tmp_path / "out")
    events: list[ProgressEvent] = []
    counts = api.embed(elmo, text, tmp_path / "out", format=format_name, progress=events.append, **SMALL)
    assert counts.sentences == 200
    assert 0 < int(events[-1].detail.split()[0].replace(",", "")) < counts.tokens  # the rest was on disk
    assert read_files(tmp_path / "out") == read_files(tmp_path / "whole")


def test_an_interrupted_run_leaves_no_thread(elmo, text, tmp_path):
    elmo.embed(LINES[1])  # starts the threads that run the two directions
    before = threading.active_count()
    embed_until(elmo, text, tmp_path / "out", 2)
    assert threading.active_count() == before


def test_shards_before_an_unreadable_line_are_written(elmo, tmp_path):
    text = write_lines(tmp_path / "text.txt", LINES)
    with text.open("ab") as file:
        file.write(b"caf\xe9\n")
    with pytest.raises(DataError, match=r"text\.txt:201: not UTF-8"):
        api.embed(elmo, text, tmp_path / "out", encoding="utf-8", **SMALL)
    assert len(list(tmp_path.glob("out/shard*"))) > 10


def test_a_finished_folder_is_not_written_again(elmo, text, tmp_path):
    api.embed(elmo, text, tmp_path / "out", **SMALL)
    before, events = read_files(tmp_path / "out"), []
    counts = api.embed(elmo, text, tmp_path / "out", progress=events.append, **SMALL)
    assert (counts.sentences, events) == (200, [])
    assert read_files(tmp_path / "out") == before


def test_only_missing_and_damaged_shards_are_written_again(elmo, tmp_path):
    text = write_lines(tmp_path / "text.txt", ["The bank failed . Why ? "] * 300)
    api.embed(elmo, text, tmp_path / "out", segment="en", **SMALL)
    before = read_files(tmp_path / "out")
    shards = sorted(tmp_path.glob("out/shard*"))
    shards[2].unlink()
    shards[3].unlink()
    shards[6].write_bytes(b"short")
    shards[-1].write_bytes(b"x" * shards[-1].stat().st_size)
    modified = shards[4].stat().st_mtime_ns
    api.embed(elmo, text, tmp_path / "out", segment="en", **SMALL)
    assert read_files(tmp_path / "out") == before
    assert shards[4].stat().st_mtime_ns == modified


def test_a_truncated_journal_loses_no_sentence(elmo, text, tmp_path):
    api.embed(elmo, text, tmp_path / "whole", **SMALL)
    embed_until(elmo, text, tmp_path / "out", 6)
    journal = tmp_path / "out" / "manifest.json.running"
    for cut in (20, journal.stat().st_size - 50):  # the last line; all but a part of the header
        journal.write_bytes(journal.read_bytes()[:-cut])
        embed_until(elmo, text, tmp_path / "out", 2)
    api.embed(elmo, text, tmp_path / "out", **SMALL)
    assert read_files(tmp_path / "out") == read_files(tmp_path / "whole")


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
def test_a_folder_cannot_be_resumed_with_other_settings(finished, change, message, elmo, text, tmp_path):
    if finished:
        api.embed(elmo, text, tmp_path / "out", **SMALL)
    else:
        embed_until(elmo, text, tmp_path / "out", 3)
    before = read_files(tmp_path / "out")
    with pytest.raises(UsageError, match=f"was begun with {message}. Choose another folder, or "):
        api.embed(elmo, text, tmp_path / "out", **SMALL | change)
    assert read_files(tmp_path / "out") == before


def test_another_model_or_text_is_refused_unless_force_restarts(elmo, text, tmp_path):
    api.embed(elmo, text, tmp_path / "out", **SMALL)
    another_elmo = Elmo(random_model(small_config(), seed=1))
    with pytest.raises(UsageError, match=r"begun with the model \w{12}, now \w{12}\."):
        api.embed(another_elmo, text, tmp_path / "out", **SMALL)
    write_lines(text, [*LINES[:-1], "else"])
    with pytest.raises(UsageError, match=r"another text: .*text\.txt has changed"):
        api.embed(elmo, text, tmp_path / "out", **SMALL)
    api.embed(elmo, text, tmp_path / "out", force=True)
    assert_has_vectors_of(tmp_path / "out", elmo, [*LINES[:-1], "else"])
    assert len(list(tmp_path.glob("out/shard*"))) == 1


def test_a_renamed_text_can_be_resumed(elmo, text, tmp_path):
    embed_until(elmo, text, tmp_path / "out", 3)
    api.embed(elmo, text.rename(tmp_path / "moved.txt"), tmp_path / "out", **SMALL)
    assert_has_vectors_of(tmp_path / "out", elmo, LINES)


EMBED = f"""
import sys, polyseme
polyseme.embed(sys.argv[1], sys.argv[2], sys.argv[3], batch_tokens={BATCH_TOKENS}, shard_mb=500 / 2**20)
"""


def test_a_killed_run_resumes_without_losing_or_repeating_a_sentence(elmo, tmp_path):
    text = write_lines(tmp_path / "text.txt", LINES * 10)
    save_pretrained(elmo.model, tmp_path / "model")
    api.embed(str(tmp_path / "model"), text, tmp_path / "whole", batch_tokens=BATCH_TOKENS, **SMALL)
    command = [sys.executable, "-c", EMBED, tmp_path / "model", text, tmp_path / "out"]
    rng, killed = random.Random(0), 0
    for _ in range(4):
        before = len(list(tmp_path.glob("out/shard*")))
        process = subprocess.Popen(command)
        while process.poll() is None and len(list(tmp_path.glob("out/shard*"))) <= before:
            time.sleep(0.001)
        time.sleep(rng.uniform(0, 0.1))
        process.send_signal(signal.SIGKILL)
        killed += process.wait() == -signal.SIGKILL
    assert killed >= 2
    subprocess.run(command, check=True)
    assert read_files(tmp_path / "out") == read_files(tmp_path / "whole")


# ---- full disks ----


@pytest.mark.parametrize("format_name", FORMATS)
def test_a_full_disk_leaves_only_complete_shards(format_name, elmo, text, tmp_path, monkeypatch):
    save_pretrained(elmo.model, tmp_path / "model")
    writer: Any = VECTOR_FORMATS[format_name].writer
    add, calls = writer.add, 0

    def add_until_full(self: Any, *arguments: Any) -> None:
        nonlocal calls
        calls += 1
        if calls > 60:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        add(self, *arguments)

    monkeypatch.setattr(writer, "add", add_until_full)
    out = tmp_path / "out"
    sizes = ("--batch-tokens", BATCH_TOKENS, "--shard-mb", 500 / 2**20)
    command = ("embed", tmp_path / "model", text, "--out", out, "--format", format_name, *sizes)
    result = run_program(*command)
    assert result.code == 2
    assert result.err.startswith(f"polyseme: {out}/shard-")
    assert result.err.endswith(
        "writing failed (No space left on device). Free space, or choose another path.\n"
    )
    assert not list(out.glob(".*"))
    finished = {name: data for name, data in read_files(out).items() if name.startswith("shard")}
    assert len(finished) > 2
    monkeypatch.setattr(writer, "add", add)
    assert run_program(*command).code == 0
    assert finished.items() <= read_files(out).items()
    assert len(polyseme.open_vectors(out)) == 200


EMBED_WITH_FILE_LIMIT = f"""
import resource, signal
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (6000, {resource.RLIM_INFINITY}))
from polyseme.cli import main
main()
"""


@pytest.mark.parametrize("format_name", ["safetensors", "parquet"])
def test_a_write_error_prints_one_line_and_exits_with_2(format_name, elmo, text, tmp_path):
    save_pretrained(elmo.model, tmp_path / "model")
    command = [
        sys.executable,
        "-c",
        EMBED_WITH_FILE_LIMIT,
        "embed",
        "model",
        "text.txt",
        "--out",
        "out",
        "--format",
        format_name,
    ]
    result = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (result.returncode, result.stderr.count("\n")) == (2, 1), result.stderr
    assert "writing failed (" in result.stderr
    assert [name for name in os.listdir(tmp_path / "out") if not name.endswith(".running")] == []


# ---- unusual text ----


def test_a_sentence_of_100_000_tokens_is_not_split(tmp_path):
    elmo = Elmo(random_model(small_config()))
    lines = ["a b", "w " * 100_000, "", "c"]
    api.embed(elmo, write_lines(tmp_path / "text.txt", lines), tmp_path / "out")
    with polyseme.open_vectors(tmp_path / "out") as vectors:
        assert [len(array) for array in vectors] == [2, 100_000, 0, 1]
        assert vectors.sentence(1) == ["w"] * 100_000


def test_many_sentences_of_one_token_are_written(tmp_path):
    elmo = Elmo(random_model(small_config()), batch_tokens=2048)
    text = write_lines(tmp_path / "text.txt", [str(number % 1000) for number in range(20_000)])
    counts = api.embed(elmo, text, tmp_path / "out", shard_mb=50_000 / 2**20)
    assert (counts.sentences, counts.tokens) == (20_000, 20_000)
    vectors = polyseme.open_vectors(tmp_path / "out")
    np.testing.assert_allclose(vectors[19_999], elmo.embed("999"), atol=2e-3)
    assert vectors.sentence(12_345) == ["345"]


def test_unknown_scripts_and_empty_lines_keep_their_order(elmo, tmp_path):
    lines = ["", "ᚠᛇᚻ ᛒᛦᚦ", "", "", "𒀀𒁀 \u200b \x07 🏴\u200d☠️", "ກຂ", ""]
    api.embed(elmo, write_lines(tmp_path / "text.txt", lines), tmp_path / "out")
    assert_has_vectors_of(tmp_path / "out", elmo, lines)


# ---- memory ----

PRINT_PEAK_MEMORY = """
import resource, sys, polyseme
polyseme.embed(sys.argv[1], sys.argv[2], sys.argv[3], pool="mean", shard_mb=4)
print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)
"""


def measure_peak_memory(model: Path, text: Path, out: Path) -> int:
    """Peak memory (KiB) of a process that embeds a text."""
    command = [sys.executable, "-c", PRINT_PEAK_MEMORY, *map(str, (model, text, out))]
    return int(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


@pytest.mark.slow
def test_memory_does_not_grow_with_ten_million_sentences(elmo, tmp_path):
    save_pretrained(elmo.model, tmp_path / "model")
    peaks = []
    for count in (300_000, 10_000_000):
        with (tmp_path / f"{count}.txt").open("w") as file:
            file.writelines(f"{number % 1000}\n" for number in range(count))
        peaks.append(
            measure_peak_memory(tmp_path / "model", tmp_path / f"{count}.txt", tmp_path / f"out{count}")
        )
    assert peaks[1] - peaks[0] < 40 << 10
    assert len(polyseme.open_vectors(tmp_path / f"out{10_000_000}")) == 10_000_000


def test_the_weights_are_hashed_once_for_all_shards_and_verbs(elmo, text, tmp_path, monkeypatch):
    calls = []
    hash_weights = Pretrained._hash_weights
    monkeypatch.setattr(Pretrained, "_hash_weights", lambda self: calls.append(1) or hash_weights(self))
    for shard in ("1/2", "2/2", "2/2"):
        api.embed(elmo, text, tmp_path / "out", shard=shard)
    api.index(elmo, text, tmp_path / "index").elmo  # noqa: B018
    rows = [f"{label}\t{line or 'empty'}" for label, line in zip("ab" * 10, LINES[:20], strict=True)]
    train = write_lines(tmp_path / "train.tsv", ["label\ttext", *rows])
    api.train("classification", elmo, train=train, out=tmp_path / "task", settings=["train.epochs=1"])
    assert len(calls) == 1
