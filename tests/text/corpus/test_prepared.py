"""Prepared corpora: files, counts, held-out text, errors, constant memory."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from polyseme.errors import DataError, UsageError
from polyseme.io.progress import ProgressEvent
from polyseme.text.chars import SPECIALS, CodepointAlphabet
from polyseme.text.corpus import build, prepared
from polyseme.text.corpus.prepared import (
    Corpus,
    CorpusSettings,
    CorpusSpec,
    find_sentence_starts,
    open_corpus,
    prepare_corpus,
    read_types,
)
from polyseme.text.vocab import Vocab

PLAIN = CorpusSpec(CorpusSettings(documents="line"), segment="split", max_chars=12)


def changed(spec: CorpusSpec, **changes: Any) -> CorpusSpec:
    """Return the spec with changed fields or changed settings."""
    corpus = {
        name: changes.pop(name) for name in set(changes) & set(CorpusSettings.model_fields) - {"encoding"}
    }
    settings = CorpusSettings(**(spec.settings.model_dump() | corpus))
    return replace(spec, settings=settings, **changes)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def random_text(lines: int, seed: int = 0, exponent: float = 1.5) -> str:
    rng = np.random.default_rng(seed)
    rows = rng.zipf(exponent, size=(lines, 10)).clip(max=10**9).tolist()
    return "".join(" ".join(f"w{number:x}" for number in row) + "\n" for row in rows)


def types_of(corpus: Corpus) -> list[str]:
    return [word for block in read_types(corpus.folder) for word in block]


def words_of(corpus: Corpus, stream: np.ndarray) -> list[list[str]]:
    names = types_of(corpus)
    starts = [*find_sentence_starts(stream).tolist(), len(stream)]
    sentences = [stream[a:b].tolist() for a, b in pairwise(starts)]
    assert all(s[0] == 0 and s[-1] == 1 and 0 not in s[1:] and 1 not in s[:-1] for s in sentences)
    return [[names[number] for number in sentence[1:-1]] for sentence in sentences]


def test_types_are_sorted_by_frequency_and_then_by_first_occurrence(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", "b a c\nb a d\nb e\n")
    corpus = prepare_corpus([str(file)], tmp_path / "c", changed(PLAIN, valid_share=0))
    assert types_of(corpus) == ["<S>", "</S>", "<UNK>", "b", "a", "c", "d", "e"]
    assert corpus.vocab.words == ("<S>", "</S>", "<UNK>", "b", "a")
    assert corpus.counts.tolist() == [3, 3, 3, 3, 2]
    assert corpus.train.tolist() == [0, 3, 4, 5, 1, 0, 3, 4, 6, 1, 0, 3, 7, 1]
    assert corpus.targets(corpus.train).tolist() == [0, 3, 4, 2, 1, 0, 3, 4, 2, 1, 0, 3, 2, 1]
    assert (corpus.begin, corpus.end, corpus.unknown) == (0, 1, 2)
    assert corpus.train.dtype == np.uint32
    assert len(corpus.valid) == 0


def test_the_report_counts_everything(tmp_path: Path) -> None:
    text = random_text(3000) + "the same line twice\n" * 3 + "averyveryverylongword averyveryverylongword\n"
    corpus = prepare_corpus([write(tmp_path / "a.txt", text)], tmp_path / "c", PLAIN)
    report = corpus.report
    train, valid = words_of(corpus, corpus.train), words_of(corpus, corpus.valid)
    counts = Counter(word for sentence in train for word in sentence)
    assert sorted(map(tuple, train + valid)) == sorted(tuple(line.split()) for line in text.splitlines())
    assert (report.sentences, report.valid_sentences) == (len(train), len(valid))
    assert report.documents + report.valid_documents == 3004
    assert report.tokens == counts.total()
    assert report.tokens + report.valid_tokens == len(text.split())
    assert report.valid_tokens >= 2000
    assert report.types == corpus.n_types == len(types_of(corpus)) == 3 + len(set(text.split()))
    assert report.words == len(corpus.vocab) == 3 + sum(n >= 2 for n in counts.values())
    assert [counts[word] for word in corpus.vocab.words[3:]] == corpus.counts[3:].tolist()
    unknown = sum(word not in corpus.vocab for sentence in valid for word in sentence)
    assert report.valid_unknown == pytest.approx(unknown / report.valid_tokens)
    assert report.unknown == pytest.approx(corpus.counts[2] / report.tokens)
    assert report.cut_tokens == counts["averyveryverylongword"]
    distinct = len({tuple(line.split()) for line in text.splitlines()})
    assert report.repeated_sentences == report.repeated_documents == 3004 - distinct
    assert not report.repeats_estimated
    assert report.held_out == "documents"


def test_the_character_table_has_a_row_for_each_type(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", random_text(1000))
    for encoding in ("bytes", "codepoints"):
        spec = changed(PLAIN, encoding=encoding, valid_share=0)
        corpus = prepare_corpus([file], tmp_path / encoding, spec)
        assert corpus.alphabet is not None
        assert corpus.chars is not None
        assert corpus.chars.shape == (corpus.n_types, 12)
        assert corpus.chars.dtype == np.uint16
        np.testing.assert_array_equal(corpus.chars, corpus.alphabet.encode(types_of(corpus)))
        np.testing.assert_array_equal(corpus.chars[:2], corpus.alphabet.boundaries())
        assert corpus.report.characters == corpus.alphabet.size
    assert prepare_corpus([file], tmp_path / "none", changed(PLAIN, encoding=None)).chars is None


def test_the_corpus_does_not_depend_on_the_number_of_workers(tmp_path: Path) -> None:
    file = write(
        tmp_path / "a.txt", "他骑着马走了。她说：“走！”\n" * 300 + "Mr. Brown left.\nHe ran.\n\n" * 200
    )
    spec = CorpusSpec(CorpusSettings(documents="line", min_count=1))
    by_one, by_three = (
        prepare_corpus([file], tmp_path / f"c{workers}", spec, workers=workers, chunk_characters=5000)
        for workers in (1, 3)
    )
    for name in ("train.ids", "valid.ids", "types.txt", "chars.npy", "counts.npy"):
        assert (by_one.folder / name).read_bytes() == (by_three.folder / name).read_bytes(), name
    assert by_one.report == by_three.report
    assert by_one.fingerprint == by_three.fingerprint


def test_a_second_run_opens_the_prepared_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = write(tmp_path / "a.txt", random_text(500))
    first = prepare_corpus([file], tmp_path / "c", PLAIN)
    copy = write(tmp_path / "copy.txt", file.read_text())
    monkeypatch.setattr(prepared, "build_corpus", None)
    assert prepare_corpus([file], tmp_path / "c", PLAIN).fingerprint == first.fingerprint
    assert prepare_corpus([copy], tmp_path / "c", PLAIN).fingerprint == first.fingerprint
    assert open_corpus(tmp_path / "c").report == first.report


def test_the_fingerprint_of_a_corpus_is_the_same_on_every_machine(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", "a b c .\n" * 60)
    spec = CorpusSpec(CorpusSettings(min_count=1, valid_every=7), segment="split", max_chars=12, seed=3)
    corpus = prepare_corpus([file], tmp_path / "c", spec, workers=1)
    assert corpus.fingerprint == "0c18653483c9f3ffe34f743aa5069766"


def test_other_text_or_settings_prepare_the_corpus_again(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", random_text(500))
    first = prepare_corpus([file], tmp_path / "c", PLAIN)
    second = prepare_corpus([file], tmp_path / "c", changed(PLAIN, min_count=3))
    assert second.report.words < first.report.words
    write(file, random_text(600))
    assert prepare_corpus([file], tmp_path / "c", PLAIN).report.tokens > first.report.tokens
    assert [entry.name for entry in tmp_path.iterdir() if entry.name.startswith(".")] == []


def test_a_truncated_corpus_is_noticed_and_prepared_again(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", random_text(500))
    first = prepare_corpus([file], tmp_path / "c", PLAIN)
    whole = (first.folder / "train.ids").read_bytes()
    (first.folder / "train.ids").write_bytes(whole[:-4])
    with pytest.raises(DataError, match="missing or truncated"):
        open_corpus(tmp_path / "c")
    assert prepare_corpus([file], tmp_path / "c", PLAIN).train.tobytes() == whole


def test_a_folder_with_other_files_is_not_replaced(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", random_text(50))
    with pytest.raises(UsageError, match="exists, and is not a prepared corpus"):
        prepare_corpus([file], tmp_path, PLAIN)
    with pytest.raises(DataError, match="not a prepared corpus"):
        open_corpus(tmp_path)
    corpus = prepare_corpus([file], tmp_path / "c", PLAIN)
    write(corpus.folder / "notes.txt", "of the user")
    with pytest.raises(UsageError, match=r"c: contains other files, notes\.txt, which would be lost"):
        prepare_corpus([file], corpus.folder, changed(PLAIN, min_count=1))
    assert (corpus.folder / "notes.txt").exists()


def test_held_out_files_do_not_change_the_vocabulary(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", "a b\na b\nc c\n")
    valid = write(tmp_path / "v.txt", "a new\nnew new\n")
    corpus = prepare_corpus([file], tmp_path / "c", PLAIN, valid=[valid])
    assert corpus.vocab.words[3:] == ("a", "b", "c")
    assert words_of(corpus, corpus.valid) == [["a", "new"], ["new", "new"]]
    assert corpus.report.tokens == 6
    assert corpus.report.valid_unknown == 0.75
    assert corpus.report.held_out == "the given files"
    with pytest.raises(UsageError, match="both training text and held-out text"):
        prepare_corpus([file], tmp_path / "d", PLAIN, valid=[file])
    with pytest.raises(DataError, match=r"e.txt: contains no words"):
        prepare_corpus([file], tmp_path / "d", PLAIN, valid=[write(tmp_path / "e.txt", " \n")])


def test_every_nth_sentence_can_be_held_out(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", "".join(f"n {number}\n" for number in range(1, 201)))
    spec = changed(PLAIN, valid_every=50, documents="file", min_count=1)
    corpus = prepare_corpus([file], tmp_path / "c", spec)
    assert words_of(corpus, corpus.valid) == [["n", str(number)] for number in (50, 100, 150, 200)]
    assert corpus.report.sentences == 196
    assert corpus.report.valid_unknown == 0.5


def test_stretches_from_all_parts_of_a_novel_are_held_out(tmp_path: Path) -> None:
    text = "".join(f"{' '.join(['word'] * 9)} {number}\n" for number in range(20_000))
    file = write(tmp_path / "a.txt", text)
    spec = changed(PLAIN, documents="file", min_count=1)
    corpus = prepare_corpus([file], tmp_path / "c", spec)
    valid = [int(sentence[-1]) for sentence in words_of(corpus, corpus.valid)]
    train = {int(sentence[-1]) for sentence in words_of(corpus, corpus.train)}
    assert sorted((*valid, *train)) == list(range(20_000))
    assert 2000 <= corpus.report.valid_tokens < 2400
    stretches = 1 + sum(b - a > 1 for a, b in pairwise(valid))
    assert stretches == 8
    assert max(valid) - min(valid) > 15_000
    with_other_seed = prepare_corpus([file], tmp_path / "d", changed(spec, seed=1))
    assert words_of(with_other_seed, with_other_seed.valid) != words_of(corpus, corpus.valid)


def test_an_existing_vocabulary_keeps_its_order(tmp_path: Path) -> None:
    vocab = Vocab(["<oov>", "<bos>", "<eos>", "zebra", "b"], begin="<bos>", end="<eos>", unknown="<oov>")
    alphabet = CodepointAlphabet([*SPECIALS, "a", "b"], max_chars=6)
    file = write(tmp_path / "a.txt", "a b\na c\n<bos> <S>\n")
    corpus = prepare_corpus(
        [file], tmp_path / "c", changed(PLAIN, valid_share=0), vocab=vocab, alphabet=alphabet
    )
    assert corpus.vocab.words == vocab.words
    assert types_of(corpus) == ["<oov>", "<bos>", "<eos>", "zebra", "b", "a", "c"]
    assert corpus.train.tolist() == [1, 5, 4, 2, 1, 5, 6, 2, 1, 0, 0, 2]
    assert corpus.targets(corpus.train).tolist() == [1, 0, 4, 2, 1, 0, 0, 2, 1, 0, 0, 2]
    assert corpus.counts.tolist() == [5, 3, 3, 0, 1]
    assert corpus.chars is not None
    np.testing.assert_array_equal(corpus.chars[1:3], alphabet.boundaries())
    np.testing.assert_array_equal(corpus.chars[5], alphabet.encode(["a"])[0])
    assert open_corpus(tmp_path / "c").begin == 1


def test_names_of_special_words_in_the_text_are_unknown_words(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", "<S> a a </S>\n<UNK> b b\n")
    corpus = prepare_corpus([file], tmp_path / "c", changed(PLAIN, valid_share=0))
    assert corpus.train.tolist() == [0, 2, 3, 3, 2, 1, 0, 2, 4, 4, 1]
    assert corpus.report.tokens == 7


def test_pruned_words_have_characters_and_counts_of_the_vocabulary_are_exact(tmp_path: Path) -> None:
    text = random_text(8000)
    file = write(tmp_path / "a.txt", text)
    spec = changed(PLAIN, max_types=1000, min_count=1)
    corpus = prepare_corpus([file], tmp_path / "c", spec, chunk_characters=4000)
    report = corpus.report
    assert report.pruned_types > 1000
    assert report.count_error > 0
    train, valid = words_of(corpus, corpus.train), words_of(corpus, corpus.valid)
    assert sorted(map(tuple, train + valid)) == sorted(tuple(line.split()) for line in text.splitlines())
    counts = Counter(word for sentence in train for word in sentence)
    assert [counts[word] for word in corpus.vocab.words[3:]] == corpus.counts[3:].tolist()
    assert (np.diff(corpus.counts[3:]) <= 0).all()
    pruned = [times for word, times in counts.items() if word not in corpus.vocab]
    assert max(pruned) <= report.count_error
    assert not set(types_of(corpus)[report.words :]) & set(corpus.vocab.words)
    assert corpus.alphabet is not None
    np.testing.assert_array_equal(corpus.chars, corpus.alphabet.encode(types_of(corpus)))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "a.txt: contains no words"),
        (" \n\n \t\n", "a.txt: contains no words"),
        ("word", "only one distinct word"),
        ("word " * 5000 + "\n" + "word\n" * 10, "only one distinct word"),
        ("every word is here once", "0 of 5 words occur 2 times or more"),
        ("a b a b a b", "no text is left to train on|no text is held out"),
    ],
)
def test_a_corpus_that_is_too_small_raises_one_clear_error(tmp_path: Path, text: str, message: str) -> None:
    file = write(tmp_path / "a.txt", text)
    with pytest.raises(DataError, match=message):
        prepare_corpus([file], tmp_path / "c", PLAIN)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_a_file_that_changes_during_reading_is_refused(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", random_text(500))
    before = prepare_corpus([file], tmp_path / "c", PLAIN).train.tobytes()

    def append_to_file(*_: object) -> None:
        with file.open("a") as output:
            output.write("more\n")

    with pytest.raises(DataError, match=r"a.txt: changed while it was read"):
        prepare_corpus([file], tmp_path / "c", changed(PLAIN, min_count=1), on_progress=append_to_file)
    assert open_corpus(tmp_path / "c").train.tobytes() == before


def test_a_full_disk_raises_one_clear_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def raise_disk_full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(build.np, "save", raise_disk_full)
    file = write(tmp_path / "a.txt", random_text(500))
    with pytest.raises(UsageError, match=r"writing failed \(No space left on device\)"):
        prepare_corpus([file], tmp_path / "c", PLAIN)
    assert [entry.name for entry in tmp_path.iterdir()] == ["a.txt"]


def test_progress_is_reported_in_bytes_and_tokens(tmp_path: Path) -> None:
    file = write(tmp_path / "a.txt", random_text(2000))
    events: list[ProgressEvent] = []
    corpus = prepare_corpus([file], tmp_path / "c", PLAIN, on_progress=events.append)
    size = file.stat().st_size
    tokens = corpus.report.tokens + corpus.report.valid_tokens
    assert events[-1] == ProgressEvent("reading", events[-1].done, size, f"{tokens:,} tokens")
    assert size * 0.9 < events[-1].done <= size


OPENED = """
import re, sys
from pathlib import Path
from polyseme.text.corpus.prepared import find_sentence_starts, open_corpus
corpus = open_corpus(sys.argv[1])
find_sentence_starts(corpus.valid)
print(int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1]) // 1024)
"""


@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
def test_opening_a_corpus_takes_no_memory_for_its_streams(tmp_path: Path) -> None:
    prepare_corpus([write(tmp_path / "a.txt", random_text(500))], tmp_path / "c", PLAIN)
    peaks = []
    for size in (1 << 12, 1 << 28):  # bytes, all of which are words of type 1
        with (tmp_path / "c" / "valid.ids").open("wb") as file:
            file.write(np.ones(size // 4, np.uint32).tobytes())
        meta = json.loads((tmp_path / "c" / "meta.json").read_text())
        meta["sizes"]["valid.ids"] = size
        (tmp_path / "c" / "meta.json").write_text(json.dumps(meta))
        command = [sys.executable, "-c", OPENED, str(tmp_path / "c")]
        peaks.append(int(subprocess.run(command, capture_output=True, text=True, check=True).stdout))
    assert peaks[1] < peaks[0] + 24  # MB


MEASURED = """
import json, re, resource, sys
from pathlib import Path
from polyseme.text.corpus.prepared import CorpusSpec, prepare_corpus
settings = CorpusSpec(segment="split", max_types=100_000)
report = prepare_corpus([sys.argv[1]], sys.argv[2], settings, workers=2).report
# Not ru_maxrss for this process: it starts with the peak of the parent process.
main = int(re.search(r"VmHWM:\\s+(\\d+)", Path("/proc/self/status").read_text())[1])
workers = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss
print(json.dumps([main / 1024, workers / 1024, report.tokens, report.pruned_types]))
"""


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="the peak is read from /proc")
def test_500_megabytes_need_no_more_memory_than_50(tmp_path: Path) -> None:
    # 50 MB with more types than are counted at once; each copy has another letter, so that its words are new.
    base = "".join(random_text(50_000, seed, exponent=1.3) for seed in range(26))
    peaks = []
    for copies in (1, 10):
        file = tmp_path / f"{copies}.txt"
        with file.open("w") as out:
            for letter in "wghijklmno"[:copies]:
                out.write(base.replace("w", letter))
        command = [sys.executable, "-c", MEASURED, str(file), str(tmp_path / f"c{copies}")]
        completed = subprocess.run(command, capture_output=True, text=True, check=True, env={**os.environ})
        main, workers, tokens, pruned = json.loads(completed.stdout)
        assert tokens > 12_000_000 * copies
        assert pruned > 0
        peaks.append((main, workers))
    assert peaks[1][0] < peaks[0][0] + 24  # MB
    assert peaks[1][1] < peaks[0][1] + 24
