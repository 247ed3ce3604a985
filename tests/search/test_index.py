"""An index: what it stores of a corpus, what a search returns, and which input is refused."""

from __future__ import annotations

import copy
import json
import multiprocessing
import pickle
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np
import pytest
import torch

from builders import random_model, small_config
from polyseme import api
from polyseme.elmo import Elmo
from polyseme.errors import DataError, FormatError, UsageError
from polyseme.io.progress import ProgressEvent
from polyseme.search import exact
from polyseme.search.build import build_index
from polyseme.search.index import Index, open_index
from polyseme.search.sense_data import LabelledUsage
from polyseme.search.space import fit_space, make_uncorrected_space, measure_anisotropy
from polyseme.search.statistics import measure_lengths
from polyseme.search.usage_store import UsageBlockWriter, read_head, write_head
from polyseme.search.usage_vectors import embed_usages
from polyseme.search.usage_writer import WordFilter, read_indexed_sentences
from polyseme.text.corpus.documents import read_documents
from polyseme.text.reading import read_lines
from polyseme.text.segment.stream import segment_lines

TEXT = (
    "He sat on the river bank .\n"
    "The bank failed , and the bank closed .\n"
    "她 在 河 边 。\n"
    "\n"
    "The river rose .\n"
)


@pytest.fixture
def elmo() -> Elmo:
    return Elmo(random_model(small_config()), batch_tokens=3)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    (tmp_path / "a.txt").write_text(TEXT, encoding="utf-8")
    return tmp_path / "a.txt"


@pytest.fixture
def index(tmp_path: Path, elmo: Elmo, corpus: Path) -> Index:
    build_index(elmo, [corpus], tmp_path / "index", block_usages=8)
    return open_index(tmp_path / "index", elmo)


def tokens() -> list[list[str]]:
    return [line.split() for line in TEXT.splitlines() if line]


def test_every_usage_is_stored_with_its_sentence_and_location(index: Index, corpus: Path):
    flat = [(word, number) for number, line in enumerate(TEXT.splitlines(), 1) for word in line.split()]
    assert len(index) == len(flat)
    assert len(index.blocks) > 1
    for number, (word, line) in enumerate(flat):
        usage = index.usage(number)
        assert usage.word == word
        assert usage.sentence[usage.start : usage.stop] == word
        assert (usage.document, usage.line) == (str(corpus), line)


def test_vectors_are_those_of_the_model(index: Index, elmo: Elmo):
    expected = np.concatenate(elmo.embed(tokens(), layer="top"))
    vectors = np.concatenate([np.asarray(block.vectors, np.float32) for block in index.blocks])
    np.testing.assert_allclose(vectors, expected, atol=2e-3)


def test_exact_search_sorts_all_usages_by_cosine(index: Index, elmo: Elmo):
    vectors = np.concatenate([np.asarray(block.vectors, np.float32) for block in index.blocks])
    directions = index.space.to_directions(vectors)
    query = directions[5]
    order = np.argsort(-(directions @ query), kind="stable")
    nearest = index.nearest(query, 6)
    assert [usage.number for usage in nearest] == order[:6].tolist()
    np.testing.assert_allclose(
        [usage.cosine for usage in nearest], (directions @ query)[order[:6]], atol=1e-5
    )
    assert len(index.nearest(query, 10_000)) == len(index)  # more than there are


@pytest.mark.parametrize("use_native", [True, False])
@pytest.mark.parametrize("dtype", [np.float16, np.float32])
@pytest.mark.parametrize("count", [1, 9, 300])
def test_one_query_and_many_give_the_same_results(monkeypatch, count: int, dtype: type, use_native: bool):
    rng = np.random.default_rng(3)
    rows, k = rng.standard_normal((9000, 40)).astype(dtype), 12
    rows[7000] = rows[10]  # of equals, the earlier one comes first
    space = fit_space(rows, "whiten")
    directions = space.to_directions(rows)
    queries = np.concatenate([directions[10:11], directions[20:319]])[:count]
    keep = rng.random(9000) < 0.9
    keep[[10, 7000]] = True
    if not use_native:
        monkeypatch.setattr("polyseme.search.exact.native.is_available", lambda: False)
    blocks, lengths = [rows[:8500], rows[8500:]], measure_lengths(space, [rows])
    for query, (numbers, cosines) in zip(
        queries, exact.find_nearest(blocks, lengths, queries, space, k, keep), strict=True
    ):
        expected = np.where(keep, directions @ query, -np.inf)
        assert numbers.tolist() == np.argsort(-expected, kind="stable")[:k].tolist()
        np.testing.assert_allclose(cosines, expected[numbers], atol=1e-5)


def test_several_cores_return_the_first_of_equals_and_report_each_block_once(monkeypatch):
    monkeypatch.setattr(torch, "get_num_threads", lambda: 4)
    rows, queries = np.ones((6000, 8), np.float16), np.full((3, 8), 8**-0.5, np.float32)
    lengths = np.full(6000, 2, np.float32)
    lengths[[300, 2900, 2901, 5999]] = 1  # nearer
    blocks, space = [rows[:2900], rows[2900:2900], rows[2900:]], make_uncorrected_space(8)
    done: list[int] = []
    piece_rows = exact.dots.TOGETHER
    for _ in range(20):
        for numbers, _ in exact.find_nearest(
            blocks, lengths, queries, space, 7, done=done.append, piece_rows=piece_rows
        ):
            assert numbers.tolist() == [300, 2900, 2901, 5999, 0, 1, 2]
        assert sorted(done) == [0, 1, 2]
        done.clear()


@pytest.mark.parametrize("use_native", [True, False])
def test_many_queries_find_the_last_usages_and_no_excluded_ones(monkeypatch, use_native: bool):
    if not use_native:
        monkeypatch.setattr("polyseme.search.exact.native.is_available", lambda: False)
    rows, queries = np.ones((1000, 8), np.float32), np.full((6, 8), 8**-0.5, np.float32)
    falling, keep = np.linspace(9, 1, 1000, dtype=np.float32), np.zeros(1000, np.bool_)  # shorter is nearer
    space = make_uncorrected_space(8)
    for numbers, cosines in exact.find_nearest([rows[:500], rows[500:]], falling, queries, space, 5):
        assert numbers.tolist() == [999, 998, 997, 996, 995]
        assert (np.diff(cosines) < 0).all()
    for numbers, _ in exact.find_nearest([rows], np.ones(1000, np.float32), queries, space, 5):
        assert numbers.tolist() == [0, 1, 2, 3, 4]  # of equals, the earlier ones
    keep[[3, 700]] = True
    for numbers, cosines in exact.find_nearest([rows], falling, queries, space, 5, keep):
        assert (numbers.tolist(), len(cosines)) == ([700, 3], 2)


@pytest.mark.parametrize("kind", ["none", "centre", "components", "whiten"])
def test_in_every_space_a_usage_is_nearest_to_itself(tmp_path: Path, elmo: Elmo, corpus: Path, kind: str):
    build_index(elmo, [corpus], tmp_path / "index", space=kind)  # type: ignore[arg-type]
    index = open_index(tmp_path / "index", elmo)
    (best,) = index.usages("river", "He sat on the river bank .", 1)
    assert (best.word, best.line) == ("river", 1)
    assert best.cosine == pytest.approx(1, abs=0.01)
    assert best.marked() == "He sat on the [river] bank ."


def test_a_search_can_be_limited_to_the_same_word(index: Index):
    usages = index.usages("bank", "He sat on the river bank .", 10, same_word=True)
    assert [usage.word for usage in usages] == ["bank"] * 3


def test_a_word_vector_is_the_mean_of_its_usages(index: Index, elmo: Elmo):
    usages = [
        vector
        for line, vectors in zip(tokens(), elmo.embed(tokens(), layer="top"), strict=True)
        for word, vector in zip(line, vectors, strict=True)
        if word == "bank"
    ]
    np.testing.assert_allclose(index.words["bank"], np.mean(usages, axis=0), atol=0.02)
    assert index.words.count("bank") == 3
    assert index.most_similar("bank", topn=2) == index.words.nearest("bank", 2)
    assert len(index.most_similar(positive=["bank", "river"], negative=["rose"], topn=3)) == 3
    assert index.doesnt_match(["bank", "river", "rose"]) in {"bank", "river", "rose"}


def test_an_unknown_word_raises_a_key_error_with_similar_spellings(index: Index):
    with pytest.raises(KeyError, match="Did you mean river"):
        index.most_similar("rivers")


def test_filters_select_the_words(tmp_path: Path, elmo: Elmo, corpus: Path):
    build_index(elmo, [corpus], tmp_path / "i", filters=WordFilter(min_count=2, stop=("the", ".")))
    assert set(open_index(tmp_path / "i").words.words) == {"bank", "river", "The"}
    build_index(elmo, [corpus], tmp_path / "o", filters=WordFilter(only=("bank",)))
    assert len(open_index(tmp_path / "o")) == 3


def test_an_interrupted_index_resumes_without_duplicates(tmp_path: Path, elmo: Elmo, corpus: Path):
    build_index(elmo, [corpus], tmp_path / "whole", block_usages=8)
    events: list[ProgressEvent] = []

    def stop(event: ProgressEvent) -> None:
        events.append(event)
        if len(events) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_index(elmo, [corpus], tmp_path / "index", block_usages=8, on_progress=stop)
    with pytest.raises(FormatError, match="not finished"):
        open_index(tmp_path / "index")
    assert [path.name for path in sorted((tmp_path / "index").glob("block-*"))] == ["block-00000.safetensors"]
    assert not list((tmp_path / "index").glob(".block-*"))  # the unfinished block is deleted
    (tmp_path / "index" / ".block-00001-abc_1234.safetensors").write_text("left by a killed process")
    build_index(elmo, [corpus], tmp_path / "index", block_usages=8)
    assert not list((tmp_path / "index").glob(".block-*"))
    whole, resumed = open_index(tmp_path / "whole"), open_index(tmp_path / "index")
    assert [resumed.usage(n) for n in range(len(resumed))] == [whole.usage(n) for n in range(len(whole))]


def test_a_full_disk_is_an_error_and_complete_blocks_remain(
    tmp_path: Path, elmo: Elmo, corpus: Path, monkeypatch: pytest.MonkeyPatch
):
    add_vectors, counts = UsageBlockWriter.add_vectors, []

    def fail_third_call(self: UsageBlockWriter, rows: np.ndarray) -> None:
        counts.append(len(rows))
        if len(counts) == 3:
            raise OSError(28, "No space left on device")
        add_vectors(self, rows)

    monkeypatch.setattr(UsageBlockWriter, "add_vectors", fail_third_call)
    with pytest.raises(UsageError, match=r"block-00001.*: writing failed \(No space left on device\)"):
        build_index(elmo, [corpus], tmp_path / "index", block_usages=8)
    assert [block["usages"] for block in read_head(tmp_path / "index")["blocks"]] == [sum(counts[:2])]
    assert not list((tmp_path / "index").glob(".block-*"))
    build_index(elmo, [corpus], tmp_path / "index", block_usages=8)
    assert len(open_index(tmp_path / "index")) == sum(map(len, tokens()))


@pytest.mark.parametrize(
    ("text", "segment"),
    [
        ("玄德曰：“将军 何往？”\n\n云长大喜，拜谢而去。", "zh"),
        ("He said\n“no” no .  No,\nno! And  no.", "en"),
        ("a  a b\na", "split"),
    ],
)
def test_offsets_give_the_words_of_a_sentence(tmp_path: Path, text: str, segment: str):
    (tmp_path / "t.txt").write_text(text + "\n", encoding="utf-8")
    documents = read_documents([tmp_path / "t.txt"])
    sentences = [sentence for _, sentence in read_indexed_sentences(documents, segment)]
    token_lists = segment_lines(read_lines(tmp_path / "t.txt"), segment)
    assert [sentence.words for sentence in sentences] == [words for words in token_lists if words]
    for sentence in sentences:
        pairs = zip(sentence.starts, sentence.words, strict=True)
        assert [sentence.text[start : start + len(word)] for start, word in pairs] == sentence.words
        assert sentence.starts == sorted(set(sentence.starts))


def test_text_can_be_added_to_an_index(tmp_path: Path, elmo: Elmo, corpus: Path, index: Index):
    (tmp_path / "b.txt").write_text("A new bank .\n", encoding="utf-8")
    with pytest.raises(UsageError, match="add=True"):
        build_index(elmo, [tmp_path / "b.txt"], tmp_path / "index")
    build_index(elmo, [tmp_path / "b.txt"], tmp_path / "index", add=True)
    more = open_index(tmp_path / "index")
    assert len(more) == len(index) + 4
    assert more.words.count("bank") == 4
    assert more.usage(len(more) - 1).document == str(tmp_path / "b.txt")


@pytest.mark.parametrize("layer", ["top", "mean", 0])
def test_a_context_index_stores_the_context_of_words_without_the_words(
    tmp_path: Path, elmo: Elmo, corpus: Path, layer: str | int
):
    build_index(elmo, [corpus], tmp_path / "context", layer=layer, view="context", precision="fp32")
    index = open_index(tmp_path / "context", elmo)
    assert index.is_context_view
    usages = [
        LabelledUsage("", word, tuple(words), position, position + 1)
        for words in tokens()
        for position, word in enumerate(words)
    ]
    expected = np.stack(list(embed_usages(elmo, usages, layer, "context")))
    np.testing.assert_allclose(index.raw_vectors(np.arange(len(index))), expected, atol=1e-6)
    (best,) = index.usages("failed", "The bank failed , and the bank closed .", 1)
    assert best.word == "failed"
    assert best.cosine == pytest.approx(1, abs=1e-5)


def test_word_and_context_indexes_cannot_be_mixed(tmp_path: Path, elmo: Elmo, corpus: Path, index: Index):
    with pytest.raises(UsageError, match="another view"):
        build_index(elmo, [corpus], tmp_path / "index", view="context")
    build_index(elmo, [corpus], tmp_path / "context", view="context")
    with pytest.raises(UsageError, match="differ in their view"):
        api.change(index, open_index(tmp_path / "context", elmo), ["bank"])
    with pytest.raises(UsageError, match="view is 'sentence', expected one of word, context"):
        build_index(elmo, [corpus], tmp_path / "s", view="sentence")  # type: ignore[arg-type]
    head = json.loads((tmp_path / "index" / "index.json").read_text(encoding="utf-8"))
    del head["view"]  # older indexes have none
    write_head(tmp_path / "index", head)
    assert not open_index(tmp_path / "index", elmo).is_context_view
    build_index(elmo, [corpus], tmp_path / "index")
    write_head(tmp_path / "index", {**head, "view": "sideways"})
    with pytest.raises(FormatError, match="damaged: view"):
        open_index(tmp_path / "index")


def test_an_index_whose_head_uses_the_old_names_opens_and_resumes(tmp_path: Path, elmo: Elmo, corpus: Path):
    build_index(elmo, [corpus], tmp_path / "old", view="context")
    original = open_index(tmp_path / "old", elmo)
    head = json.loads((tmp_path / "old" / "index.json").read_text(encoding="utf-8"))
    head["crowding"] = head.pop("anisotropy")
    write_head(tmp_path / "old", head | {"view": "place"})
    old = open_index(tmp_path / "old", elmo)
    assert old.is_context_view
    assert old.anisotropy == original.anisotropy
    assert old.usages("failed", "The bank failed .", 3) == original.usages("failed", "The bank failed .", 3)
    build_index(elmo, [corpus], tmp_path / "old", view="context")  # the same settings: nothing to do
    with pytest.raises(UsageError, match="another view"):
        build_index(elmo, [corpus], tmp_path / "old", view="word")


def test_another_model_or_layer_is_refused(tmp_path: Path, elmo: Elmo, corpus: Path, index: Index):
    other_model = Elmo(random_model(small_config(), seed=9))
    with pytest.raises(UsageError, match="another model"):
        build_index(other_model, [corpus], tmp_path / "index")
    with pytest.raises(UsageError, match="another layer"):
        build_index(elmo, [corpus], tmp_path / "index", layer=1)
    with pytest.raises(UsageError, match="index of another model"):
        open_index(tmp_path / "index", other_model).usages("bank", "the bank", 1)


def test_a_word_that_is_missing_or_repeated_in_the_sentence_is_refused(index: Index):
    with pytest.raises(UsageError, match="not in the sentence"):
        index.usages("river", "The bank failed .")
    with pytest.raises(UsageError, match="occurs 2 times"):
        index.usages("bank", "The bank and the bank .")
    assert index.usages("bank", "The bank and the bank .", 1, which=2)


def test_a_damaged_file_is_named(tmp_path: Path, index: Index):
    path = tmp_path / "index" / "block-00001.safetensors"
    path.write_bytes(path.read_bytes()[:-40])
    with pytest.raises(FormatError, match="block-00001"):
        open_index(tmp_path / "index")


def test_an_empty_corpus_is_refused(tmp_path: Path, elmo: Elmo):
    (tmp_path / "e.txt").write_text("\n\n", encoding="utf-8")
    with pytest.raises(DataError, match="no usage to index"):
        build_index(elmo, [tmp_path / "e.txt"], tmp_path / "index")


def test_a_malformed_head_is_refused(tmp_path: Path, index: Index):
    (tmp_path / "index" / "index.json").write_text(json.dumps({"polyseme_index": 99}), encoding="utf-8")
    with pytest.raises(FormatError, match="not an index"):
        open_index(tmp_path / "index")


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("space", None),
        ("documents", 3),
        ("blocks", None),
        ("blocks", [1]),
        ("model", 1),
        ("segment", 5),
        ("layer", {}),
    ],
)
def test_a_head_with_a_damaged_field_is_refused(index: Index, elmo: Elmo, name: str, value: object):
    path = index.folder / "index.json"
    path.write_text(
        json.dumps(json.loads(path.read_text(encoding="utf-8")) | {name: value}), encoding="utf-8"
    )
    with pytest.raises(FormatError, match=rf"index\.json: damaged: {name}|not finished"):
        open_index(index.folder, elmo)


def test_a_document_that_is_not_listed_is_refused(index: Index, elmo: Elmo):
    path = index.folder / "index.json"
    path.write_text(
        json.dumps(json.loads(path.read_text(encoding="utf-8")) | {"documents": [], "titles": []}),
        encoding="utf-8",
    )
    with pytest.raises(FormatError, match="a document is not listed"):
        open_index(index.folder, elmo).usage(0)


def test_the_word_can_be_marked_in_its_sentence(index: Index):
    expected = index.query_vector("bank", "The bank failed , and the bank closed .", 2)
    np.testing.assert_array_equal(
        index.query_vector("bank", "The bank failed , and the [bank] closed ."), expected
    )


def test_correcting_the_space_removes_anisotropy():
    rng = np.random.default_rng(0)
    vectors = rng.normal(size=(500, 16)) * np.linspace(3, 0.1, 16) + 5
    directions = vectors / np.linalg.norm(vectors, axis=1, keepdims=True)
    cosines = (directions @ directions.T)[~np.eye(500, dtype=bool)]
    assert measure_anisotropy(vectors) == pytest.approx(cosines.mean(), abs=1e-6)
    assert cosines.mean() > 0.8
    for kind in ("centre", "components", "whiten"):
        assert abs(measure_anisotropy(vectors, fit_space(vectors, kind))) < 0.05


@pytest.mark.parametrize("dtype", ["float16", "int8"])
def test_a_graph_finds_nearly_the_same_usages(tmp_path: Path, elmo: Elmo, dtype: str):
    rng = np.random.default_rng(3)
    words = [f"w{number}" for number in range(60)]
    lines = [" ".join(rng.choice(words, 8)) for _ in range(150)]
    (tmp_path / "c.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    build_index(elmo, [tmp_path / "c.txt"], tmp_path / "index")
    index = open_index(tmp_path / "index", elmo)
    with pytest.raises(UsageError, match="no graph"):
        index.approximate_nearest(index.vectors(np.array([0]))[0])
    events: list[ProgressEvent] = []
    index.add_graph(dtype, events.append)  # type: ignore[arg-type]
    assert events[-1].done == events[-1].total == len(index)
    reopened = open_index(tmp_path / "index", elmo)
    recalls = []
    for number in range(0, len(reopened), 60):
        query = reopened.vectors(np.array([number]))[0]
        nearest, approximate = reopened.nearest(query, 10), reopened.approximate_nearest(query, 10)
        recalls.append(len({u.number for u in nearest} & {u.number for u in approximate}) / 10)
        assert approximate[0].cosine == pytest.approx(1, abs=0.01)
    assert np.mean(recalls) >= 0.9
    (tmp_path / "index" / "graph.usearch").write_bytes(b"short")
    with pytest.raises(FormatError, match="missing or damaged"):
        open_index(tmp_path / "index", elmo).approximate_nearest(query)


def test_vectors_can_be_stored_in_fp32(tmp_path: Path, elmo: Elmo, corpus: Path):
    build_index(elmo, [corpus], tmp_path / "index", precision="fp32")
    index = open_index(tmp_path / "index", elmo)
    expected = np.concatenate(elmo.embed(tokens(), layer="top"))
    np.testing.assert_allclose(np.concatenate([block.vectors for block in index.blocks]), expected, atol=1e-6)
    (best,) = index.usages("river", "He sat on the river bank .", 1)
    assert best.cosine == pytest.approx(1, abs=1e-5)


@pytest.mark.parametrize("settings", [{"space": "flat"}, {"precision": "fp8"}])
def test_an_invalid_setting_is_refused_before_any_work(
    tmp_path: Path, elmo: Elmo, corpus: Path, settings: dict
):
    with pytest.raises(UsageError, match="expected one of"):
        build_index(elmo, [corpus], tmp_path / "index", **settings)
    assert not (tmp_path / "index").exists()


def resident_kb(folder: Path) -> int:
    """Kilobytes of the blocks of an index that are in the memory of this process."""
    total, in_block = 0, False
    for line in Path("/proc/self/smaps").read_text().splitlines():
        if "-" in line.split(" ")[0]:
            in_block = str(folder / "block-") in line
        elif in_block and line.startswith("Rss:"):
            total += int(line.split()[1])
    return total


@pytest.mark.skipif(not Path("/proc/self/smaps").exists(), reason="reads /proc/self/smaps")
def test_vectors_beyond_the_memory_limit_are_released(tmp_path: Path, elmo: Elmo, corpus: Path):
    build_index(elmo, [corpus], tmp_path / "index", block_usages=8)
    numbers, results = np.arange(sum(len(line) for line in tokens())), []
    for memory in (0, None):
        index = open_index(tmp_path / "index", elmo, memory=memory)
        vectors = index.raw_vectors(numbers)
        resident = resident_kb(index.folder)  # before `nearest`, which reads the text of usages
        results.append((resident, vectors, [usage.number for usage in index.nearest(vectors[0])]))
        del index
    (limited_kb, vectors, nearest), (unlimited_kb, same_vectors, same_nearest) = results
    assert limited_kb == 0 < unlimited_kb
    assert nearest == same_nearest
    np.testing.assert_array_equal(vectors, same_vectors)


def test_a_negative_memory_limit_is_refused(index: Index, elmo: Elmo):
    with pytest.raises(UsageError, match="0 or more"):
        open_index(index.folder, elmo, memory=-1)


def test_an_index_pickles_as_its_folder_and_is_refused_when_rebuilt(index: Index):
    unpickled = pickle.loads(pickle.dumps(index))
    assert unpickled.folder.is_absolute()
    assert len(unpickled) == len(index)
    word = index.words.words[0]
    assert unpickled.most_similar(word) == index.most_similar(word)
    assert len(copy.deepcopy(index)) == len(copy.copy(index)) == len(index)
    pickled = pickle.dumps(index)
    (index.folder / "index.json").write_text(
        json.dumps(json.loads((index.folder / "index.json").read_text()) | {"name": "another"})
    )
    with pytest.raises(FormatError, match="not the index that was pickled"):
        pickle.loads(pickled)


def count_and_search(index: Index) -> tuple[int, list[str]]:
    """The work of a worker process: count the usages and search."""
    usages = index.usages("bank", "He sat on the river bank .", 3)
    return len(index), [usage.marked() for usage in usages]


@pytest.mark.parametrize("method", ["spawn", "fork"])
def test_an_index_works_in_other_processes(index: Index, method: str):
    expected = count_and_search(index)
    context = multiprocessing.get_context(method)
    with ProcessPoolExecutor(1, mp_context=context) as pool:
        assert pool.submit(count_and_search, index).result(timeout=60) == expected


def test_an_index_works_with_joblib(index: Index):
    joblib = pytest.importorskip("joblib")
    expected = count_and_search(index)
    run = joblib.Parallel(n_jobs=2, timeout=60)
    assert run(joblib.delayed(count_and_search)(index) for _ in range(2)) == [expected] * 2


def test_reprs_are_short_and_notebooks_get_tables(tmp_path: Path, elmo: Elmo):
    (tmp_path / "x.txt").write_text("a <b> bank & c .\nthe bank .\n", encoding="utf-8")
    build_index(elmo, [tmp_path / "x.txt"], tmp_path / "<i>")
    index = open_index(tmp_path / "<i>", elmo)
    assert repr(index).endswith("<i>', 9 usages, 7 words)")
    assert "<i>" not in index._repr_html_()
    assert "&lt;i&gt;" in index._repr_html_()
    usages = index.usages("bank", "a <b> bank & c .", 2)
    assert "a &lt;b&gt; <b>bank</b> &amp; c ." in usages._repr_html_()
    assert repr(usages).splitlines()[0].split() == ["cosine", "usage", "location"]
    assert "a <b> [bank] & c ." in repr(usages)
    assert usages[0].location == f"{tmp_path / 'x.txt'}:1"


def test_a_comparison_of_texts_has_pairs_and_the_odd_one_out(index: Index):
    comparison = api.similarity(index, "bank", "river", "rose")
    assert comparison.odd_one_out == index.doesnt_match(["bank", "river", "rose"])
    assert [(pair.first, pair.second) for pair in comparison.pairs] == [
        ("bank", "river"),
        ("bank", "rose"),
        ("river", "rose"),
    ]
    assert comparison.pairs[0].cosine == pytest.approx(index.similarity("bank", "river"), abs=1e-6)
    assert f"Odd one out: {comparison.odd_one_out}" in comparison._repr_html_()
    assert repr(comparison).splitlines()[0] == f"Odd one out: {comparison.odd_one_out}"
