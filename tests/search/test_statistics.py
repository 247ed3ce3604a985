"""The files of an index beside its blocks, and indexes with damaged, repeated or unfinished parts."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import load_file, save_file

from builders import filled, random_model, small_config
from polyseme.elmo import Elmo
from polyseme.errors import DataError, FormatError, UsageError
from polyseme.io.progress import ProgressEvent
from polyseme.search.build import build_index
from polyseme.search.index import Index, open_index
from polyseme.search.space import make_uncorrected_space, measure_anisotropy
from polyseme.search.usage_writer import WordFilter

TEXT = "He sat on the river bank .\nThe bank failed , and the bank closed .\nThe river rose .\n"


@pytest.fixture
def elmo() -> Elmo:
    return Elmo(random_model(small_config()), batch_tokens=3)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write(tmp_path / "a.txt", TEXT)


@pytest.fixture
def index(tmp_path: Path, elmo: Elmo, corpus: Path) -> Index:
    build_index(elmo, [corpus], tmp_path / "index", block_usages=8)
    return open_index(tmp_path / "index", elmo)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def all_vectors(index: Index) -> np.ndarray:
    return index.raw_vectors(np.arange(len(index)))


def test_anisotropy_is_measured_before_and_after_the_correction(index: Index):
    measured = index.anisotropy
    assert measured is not None
    assert measured.before == pytest.approx(measure_anisotropy(all_vectors(index)), abs=1e-6)
    assert measured.after == pytest.approx(measure_anisotropy(all_vectors(index), index.space), abs=1e-6)
    assert abs(measured.after) < abs(measured.before)


def test_an_index_without_a_measured_anisotropy_still_opens(index: Index, elmo: Elmo, corpus: Path):
    del index.head["anisotropy"]
    write(index.folder / "index.json", json.dumps(index.head))
    assert open_index(index.folder).anisotropy is None
    build_index(elmo, [corpus], index.folder)  # the same command again measures it
    assert open_index(index.folder).anisotropy is not None


@pytest.mark.parametrize("kind", ["none", "centre", "components", "whiten"])
def test_only_a_correction_changes_the_similarity_of_words(
    tmp_path: Path, elmo: Elmo, corpus: Path, kind: str
):
    build_index(elmo, [corpus], tmp_path / "i", space=kind)  # type: ignore[arg-type]
    index = open_index(tmp_path / "i", elmo)
    bank, river = index.words["bank"], index.words["river"]
    cosine = bank @ river / np.linalg.norm(bank) / np.linalg.norm(river)
    same = index.similarity("bank", "river") == pytest.approx(cosine, abs=1e-5)
    assert same == (kind == "none")
    assert index.anisotropy is not None
    assert (index.anisotropy.before == index.anisotropy.after) == (kind == "none")


def test_an_index_can_be_opened_uncorrected(tmp_path: Path, elmo: Elmo, corpus: Path, index: Index):
    build_index(elmo, [corpus], tmp_path / "plain", space="none")
    uncorrected = open_index(index.folder, elmo, corrected=False)
    plain = open_index(tmp_path / "plain", elmo)
    assert uncorrected.most_similar("bank") != index.most_similar("bank")
    for word in plain.words.words:  # int8: nearly the same
        assert uncorrected.similarity("bank", word) == pytest.approx(plain.similarity("bank", word), abs=0.02)
    usages, expected = (opened.usages("bank", "The bank failed .", 5) for opened in (uncorrected, plain))
    assert [usage.number for usage in usages] == [usage.number for usage in expected]
    with pytest.raises(UsageError, match="opened uncorrected"):
        uncorrected.usages("bank", "The bank failed .", 1, approximate=True)
    assert make_uncorrected_space(8).kind == uncorrected.space.kind


PARTS = ["space", "lengths", "words"]


@pytest.mark.parametrize("missing", [True, False])
@pytest.mark.parametrize("part", PARTS)
def test_a_damaged_file_is_named_and_the_same_call_computes_it_again(
    index: Index, elmo: Elmo, corpus: Path, part: str, missing: bool
):
    path = index.folder / f"{part}.safetensors"
    content = path.read_bytes()
    if missing:
        path.unlink()
    else:
        path.write_bytes(content[:-3])
    with pytest.raises(FormatError, match=rf"{part}\.safetensors.*same `polyseme\.index.*` again"):
        open_index(index.folder)
    build_index(elmo, [corpus], index.folder)
    assert path.read_bytes() == content
    assert open_index(index.folder, elmo).usages("bank", "The bank failed .", 1)


@pytest.mark.parametrize("missing", [True, False])
def test_a_damaged_block_is_named_and_force_rebuilds_the_index(
    index: Index, elmo: Elmo, corpus: Path, missing: bool
):
    path = index.folder / "block-00001.safetensors"
    content = path.read_bytes()
    path.unlink()
    if not missing:
        path.write_bytes(content[:-40])
    with pytest.raises(FormatError, match=r"block-00001.*force=True"):
        open_index(index.folder)
    write(index.folder / ".block-00002-abc_1234.safetensors", "left by a killed process")
    build_index(elmo, [corpus], index.folder, force=True, block_usages=8)
    assert path.read_bytes() == content
    assert len(open_index(index.folder)) == len(index)


def test_vectors_that_are_not_finite_are_refused_with_their_location(
    tmp_path: Path, elmo: Elmo, corpus: Path, monkeypatch: pytest.MonkeyPatch
):
    run_batch = elmo.run_batch
    for value, message in ((np.nan, r"a\.txt:1: a vector is not finite"), (7e4, "above 65504.*fp32")):
        monkeypatch.setattr(elmo, "run_batch", lambda *args, value=value: filled(run_batch(*args), value))
        with pytest.raises(DataError, match=message):
            build_index(elmo, [corpus], tmp_path / str(value))
    build_index(elmo, [corpus], tmp_path / "wide", precision="fp32")
    assert (all_vectors(open_index(tmp_path / "wide")) == 7e4).all()


def test_a_usage_that_is_zero_in_the_corrected_space_has_cosine_0(tmp_path: Path, elmo: Elmo):
    (tmp_path / "same.txt").write_text("good film\n" * 12, encoding="utf-8")
    for kind in ("centre", "whiten"):
        out = tmp_path / kind
        build_index(elmo, [tmp_path / "same.txt"], out, filters=WordFilter(only=("film",)), space=kind)
        index = open_index(out, elmo)
        assert [usage.cosine for usage in index.usages("film", "a film", 12)] == [0.0] * 12


def _write_nan(path: Path, name: str) -> None:
    tensors = {key: values.copy() for key, values in load_file(path).items()}
    tensors[name][0] = np.nan
    save_file(tensors, path)


@pytest.mark.parametrize(
    ("part", "name"),
    [("space", "centre"), ("space", "turn"), ("lengths", "lengths"), ("block-00000", "vectors")],
)
def test_values_that_are_not_finite_are_reported_as_damage(
    tmp_path: Path, elmo: Elmo, corpus: Path, index: Index, part: str, name: str
):
    path = index.folder / f"{part}.safetensors"
    _write_nan(path, name)
    with pytest.raises(FormatError, match=rf"{part}\.safetensors: damaged: "):
        open_index(index.folder, elmo).vectors(np.array([0]))
    if part != "block-00000":
        build_index(elmo, [corpus], index.folder)  # rebuilds the file
        assert np.isfinite(open_index(index.folder, elmo).vectors(np.array([0]))).all()


def test_a_query_that_is_not_finite_is_refused(index: Index):
    with pytest.raises(UsageError, match="not finite"):
        index.nearest(np.full(index.head["size"], np.nan, np.float32))


def test_a_query_that_is_no_vector_of_the_index_is_refused(index: Index):
    with pytest.raises(UsageError, match=r"not the word 'bank'.*`index\.words\.nearest\('bank'\)`"):
        index.nearest("bank")  # type: ignore[arg-type]
    size = index.head["size"]
    for query in (np.zeros(3, np.float32), np.zeros((2, size), np.float32), np.array(["a"] * size)):
        for search in (index.nearest, index.approximate_nearest):
            with pytest.raises(UsageError, match=rf"one vector of {size} numbers"):
                search(query)


def test_a_file_that_has_changed_is_not_indexed_again(elmo: Elmo, corpus: Path, index: Index):
    with corpus.open("a", encoding="utf-8") as file:
        file.write("One more line .\n")
    for add in (False, True):
        with pytest.raises(UsageError, match=r"a\.txt: has changed since .*force=True"):
            build_index(elmo, [corpus], index.folder, add=add)


def test_sentences_without_an_indexed_word_are_not_embedded(
    tmp_path: Path, elmo: Elmo, corpus: Path, monkeypatch: pytest.MonkeyPatch
):
    embedded: list[list[str]] = []
    embed = elmo.embed_tokens
    monkeypatch.setattr(
        elmo, "embed_tokens", lambda batch, *rest: embedded.extend(batch) or embed(batch, *rest)
    )
    build_index(elmo, [corpus], tmp_path / "rose", filters=WordFilter(only=("rose",)))
    assert [tokens for tokens in embedded if "rose" not in tokens] == []


def test_an_output_that_cannot_be_a_folder_is_refused(tmp_path: Path, elmo: Elmo, corpus: Path):
    for path, message in ((corpus, "is a file"), (Path("/proc/x"), "cannot be written")):
        with pytest.raises(UsageError, match=message):
            build_index(elmo, [corpus], path)


def test_an_empty_corpus_leaves_no_files_and_no_trace_in_an_index(tmp_path: Path, elmo: Elmo, corpus: Path):
    empty = write(tmp_path / "e.txt", "\n\n")
    with pytest.raises(DataError, match="no usage to index"):
        build_index(elmo, [empty], tmp_path / "index")
    assert not (tmp_path / "index").exists()
    build_index(elmo, [corpus], tmp_path / "index")
    before = len(open_index(tmp_path / "index"))
    with pytest.raises(DataError, match="no usage to index"):
        build_index(elmo, [empty], tmp_path / "index", add=True)
    assert len(open_index(tmp_path / "index")) == before
    build_index(elmo, [write(tmp_path / "b.txt", "A bank .\n")], tmp_path / "index", add=True)
    assert len(open_index(tmp_path / "index")) == before + 3


def test_a_text_is_indexed_only_once(tmp_path: Path, elmo: Elmo, corpus: Path, index: Index):
    more = write(tmp_path / "b.txt", "A new bank .\n")
    build_index(elmo, [more], index.folder, add=True)
    for file in (corpus, more):  # indexed already: nothing to do
        build_index(elmo, [file], index.folder, add=True)
        build_index(elmo, [file], index.folder)
    copy = write(tmp_path / "copy.txt", TEXT)
    new = write(tmp_path / "c.txt", "Another one .\n")
    with pytest.raises(UsageError, match=r"copy\.txt: already in the index"):
        build_index(elmo, [new, copy], index.folder, add=True)
    assert len(open_index(index.folder)) == len(index) + 4


def test_an_older_index_knows_corpora_of_a_single_file(
    tmp_path: Path, elmo: Elmo, corpus: Path, index: Index
):
    del index.head["corpora"][0]["contents"]
    write(index.folder / "index.json", json.dumps(index.head))
    with pytest.raises(UsageError, match=r"a\.txt: already in the index"):
        build_index(elmo, [corpus, write(tmp_path / "b.txt", "New .\n")], index.folder, add=True)


@pytest.mark.parametrize("block_usages", [8, 100_000])
def test_an_interrupted_addition_resumes_without_duplicates(
    tmp_path: Path, elmo: Elmo, corpus: Path, block_usages: int
):
    more = write(tmp_path / "b.txt", "A new bank .\n" * 3 + TEXT)
    for name in ("whole", "index"):
        build_index(elmo, [corpus], tmp_path / name, block_usages=block_usages)
    build_index(elmo, [more], tmp_path / "whole", add=True, block_usages=block_usages)
    events: list[ProgressEvent] = []

    def stop(event: ProgressEvent) -> None:
        events.append(event)
        if len(events) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_index(elmo, [more], tmp_path / "index", add=True, block_usages=block_usages, on_progress=stop)
    if block_usages == 8:
        with pytest.raises(FormatError, match="not finished"):
            open_index(tmp_path / "index")
        with pytest.raises(UsageError, match="not finished, and of another text"):
            build_index(elmo, [corpus], tmp_path / "index")
    else:  # no block was complete: the index is as it was
        assert len(open_index(tmp_path / "index")) < len(open_index(tmp_path / "whole"))
    build_index(elmo, [more], tmp_path / "index", add=True, block_usages=block_usages)
    whole, resumed = open_index(tmp_path / "whole"), open_index(tmp_path / "index")
    assert [resumed.usage(n) for n in range(len(resumed))] == [whole.usage(n) for n in range(len(whole))]
    assert resumed.words.words == whole.words.words


def test_words_that_are_too_frequent_are_left_out(tmp_path: Path, elmo: Elmo, corpus: Path):
    build_index(elmo, [corpus], tmp_path / "i", filters=WordFilter(max_count=2))
    words = open_index(tmp_path / "i").words
    assert words.count("river") == 2
    assert not {"bank", "."} & set(words.words)


@pytest.mark.parametrize("layer", [0, "mean", [0.2, 0.3, 0.5], ([0.2, 0.3, 0.5], 2.0)])
def test_an_index_of_another_layer_is_searched_with_that_layer(
    tmp_path: Path, elmo: Elmo, corpus: Path, layer: Any
):
    build_index(elmo, [corpus], tmp_path / "i", layer=layer)
    index = open_index(tmp_path / "i", elmo)
    expected = elmo.embed("The bank failed , and the bank closed .", layer=layer)
    np.testing.assert_allclose(all_vectors(index)[7:16], expected, atol=2e-2)
    np.testing.assert_allclose(
        index.query_vector("river", "The river rose ."),
        index.space.to_directions(elmo.embed("The river rose .", layer=layer)[1][None])[0],
        atol=1e-5,
    )
    (best,) = index.usages("river", "The river rose .", 1)
    assert best.line == (1 if layer == 0 else 3)  # layer 0 has no context: the first of equals
    assert best.cosine == pytest.approx(1, abs=0.01)
    index.check_layer(layer)
    with pytest.raises(UsageError, match="Build one of the other layer"):
        index.check_layer("top")
    build_index(elmo, [corpus], tmp_path / "i", layer=layer)  # nothing to do


def test_the_top_layer_can_be_given_as_a_number(index: Index):
    index.check_layer(2)
    with pytest.raises(UsageError, match="an index of layer top"):
        index.check_layer(1)


def test_an_unseen_word_is_searched_by_its_characters(index: Index):
    assert "banks" not in index.words
    assert len(index.usages("banks", "The banks failed .", 3)) == 3
    with pytest.raises(KeyError, match="Did you mean bank"):
        index.usages("banks", "The banks failed .", 3, same_word=True)
