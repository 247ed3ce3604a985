"""What an index keeps beside its blocks, and what happens when a part is damaged, doubled or cut off."""

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
from polyseme.search import build
from polyseme.search.build import build_index
from polyseme.search.index import Index, open_index
from polyseme.search.space import measure_anisotropy, uncorrected_space
from polyseme.search.usage_writer import WordFilter

TEXT = "He sat on the river bank .\nThe bank failed , and the bank closed .\nThe river rose .\n"


@pytest.fixture
def elmo() -> Elmo:
    return Elmo(random_model(small_config()), batch_tokens=3)


@pytest.fixture
def corpus(tmp_path: Path) -> Path:
    return write(tmp_path / "a.txt", TEXT)


@pytest.fixture
def index(tmp_path: Path, elmo: Elmo, corpus: Path, monkeypatch: pytest.MonkeyPatch) -> Index:
    monkeypatch.setattr(build, "BLOCK_USAGES", 8)
    build_index(elmo, [corpus], tmp_path / "index")
    return open_index(tmp_path / "index", elmo)


def write(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def everything(index: Index) -> np.ndarray:
    return index.raw_vectors(np.arange(len(index)))


def test_the_cone_is_measured_before_and_after(index: Index):
    measured = index.anisotropy
    assert measured is not None
    assert measured.before == pytest.approx(measure_anisotropy(everything(index)), abs=1e-6)
    assert measured.after == pytest.approx(measure_anisotropy(everything(index), index.space), abs=1e-6)
    assert abs(measured.after) < abs(measured.before)


def test_an_index_from_before_the_cone_was_measured_still_opens(index: Index, elmo: Elmo, corpus: Path):
    del index.head["anisotropy"]
    write(index.folder / "index.json", json.dumps(index.head))
    assert open_index(index.folder).anisotropy is None
    build_index(elmo, [corpus], index.folder)  # the same command again measures it
    assert open_index(index.folder).anisotropy is not None


@pytest.mark.parametrize("kind", ["none", "centre", "components", "whiten"])
def test_without_a_correction_words_are_left_as_they_are_too(
    tmp_path: Path, elmo: Elmo, corpus: Path, kind: str
):
    build_index(elmo, [corpus], tmp_path / "i", space=kind)  # type: ignore[arg-type]
    index = open_index(tmp_path / "i", elmo)
    one, other = index.words["bank"], index.words["river"]
    raw = one @ other / np.linalg.norm(one) / np.linalg.norm(other)
    same = index.similarity("bank", "river") == pytest.approx(raw, abs=1e-5)
    assert same == (kind == "none")
    assert index.anisotropy is not None
    assert (index.anisotropy.before == index.anisotropy.after) == (kind == "none")


def test_the_correction_may_be_left_out_of_a_query(tmp_path: Path, elmo: Elmo, corpus: Path, index: Index):
    build_index(elmo, [corpus], tmp_path / "plain", space="none")
    plainly, wanted = open_index(index.folder, elmo, corrected=False), open_index(tmp_path / "plain", elmo)
    assert plainly.most_similar("bank") != index.most_similar("bank")
    for word in wanted.words.words:  # int8: nearly the same
        assert plainly.similarity("bank", word) == pytest.approx(wanted.similarity("bank", word), abs=0.02)
    found, expected_ones = (i.usages("bank", "The bank failed .", 5) for i in (plainly, wanted))
    assert [usage.number for usage in found] == [usage.number for usage in expected_ones]
    with pytest.raises(UsageError, match="opened uncorrected"):
        plainly.usages("bank", "The bank failed .", 1, approximate=True)
    assert uncorrected_space(8).kind == plainly.space.kind


PARTS = ["space", "lengths", "words"]


@pytest.mark.parametrize("missing", [True, False])
@pytest.mark.parametrize("part", PARTS)
def test_a_damaged_file_is_named_and_the_same_call_computes_it_again(
    index: Index, elmo: Elmo, corpus: Path, part: str, missing: bool
):
    path = index.folder / f"{part}.safetensors"
    whole = path.read_bytes()
    if missing:
        path.unlink()
    else:
        path.write_bytes(whole[:-3])
    with pytest.raises(FormatError, match=rf"{part}\.safetensors.*same `polyseme\.index.*` again"):
        open_index(index.folder)
    build_index(elmo, [corpus], index.folder)
    assert path.read_bytes() == whole
    assert open_index(index.folder, elmo).usages("bank", "The bank failed .", 1)


@pytest.mark.parametrize("missing", [True, False])
def test_a_damaged_block_is_named_and_force_rebuilds_the_index(
    index: Index, elmo: Elmo, corpus: Path, missing: bool
):
    path = index.folder / "block-00001.safetensors"
    whole = path.read_bytes()
    path.unlink()
    if not missing:
        path.write_bytes(whole[:-40])
    with pytest.raises(FormatError, match=r"block-00001.*force=True"):
        open_index(index.folder)
    write(index.folder / ".block-00002-abc_1234.safetensors", "left by a killed process")
    build_index(elmo, [corpus], index.folder, force=True)
    assert path.read_bytes() == whole
    assert len(open_index(index.folder)) == len(index)


def test_vectors_that_are_not_finite_are_refused_with_their_location(
    tmp_path: Path, elmo: Elmo, corpus: Path, monkeypatch: pytest.MonkeyPatch
):
    read = elmo.run_batch
    for value, says in ((np.nan, r"a\.txt:1: a vector is not finite"), (7e4, "above 65504.*fp32")):
        monkeypatch.setattr(elmo, "run_batch", lambda *asked, value=value: filled(read(*asked), value))
        with pytest.raises(DataError, match=says):
            build_index(elmo, [corpus], tmp_path / str(value))
    build_index(elmo, [corpus], tmp_path / "wide", precision="fp32")
    assert (everything(open_index(tmp_path / "wide")) == 7e4).all()


def test_a_usage_without_a_direction_is_like_nothing(tmp_path: Path, elmo: Elmo):
    (tmp_path / "same.txt").write_text("good film\n" * 12, encoding="utf-8")
    for kind in ("centre", "whiten"):
        out = tmp_path / kind
        build_index(elmo, [tmp_path / "same.txt"], out, filters=WordFilter(only=("film",)), space=kind)
        index = open_index(out, elmo)
        assert [usage.cosine for usage in index.usages("film", "a film", 12)] == [0.0] * 12


def _spoil(path: Path, name: str) -> None:
    tensors = {key: values.copy() for key, values in load_file(path).items()}
    tensors[name][0] = np.nan
    save_file(tensors, path)


@pytest.mark.parametrize(
    ("part", "name"),
    [("space", "centre"), ("space", "turn"), ("lengths", "lengths"), ("block-00000", "vectors")],
)
def test_numbers_that_are_none_are_found_where_they_are_read(
    tmp_path: Path, elmo: Elmo, corpus: Path, index: Index, part: str, name: str
):
    path = index.folder / f"{part}.safetensors"
    _spoil(path, name)
    with pytest.raises(FormatError, match=rf"{part}\.safetensors: damaged: "):
        open_index(index.folder, elmo).vectors(np.array([0]))
    if part != "block-00000":
        build_index(elmo, [corpus], index.folder)  # rebuilds the file
        assert np.isfinite(open_index(index.folder, elmo).vectors(np.array([0]))).all()


def test_a_vector_that_is_none_cannot_be_looked_for(index: Index):
    with pytest.raises(UsageError, match="not finite"):
        index.nearest(np.full(index.head["size"], np.nan, np.float32))


def test_a_text_that_changed_is_not_added_beside_its_old_self(elmo: Elmo, corpus: Path, index: Index):
    with corpus.open("a", encoding="utf-8") as file:
        file.write("One more line .\n")
    for add in (False, True):
        with pytest.raises(UsageError, match=r"a\.txt: has changed since .*force=True"):
            build_index(elmo, [corpus], index.folder, add=add)


def test_sentences_that_nothing_is_kept_of_are_not_read_by_the_model(
    tmp_path: Path, elmo: Elmo, corpus: Path, monkeypatch: pytest.MonkeyPatch
):
    read: list[list[str]] = []
    vectors = elmo.embed_tokens
    monkeypatch.setattr(elmo, "embed_tokens", lambda some, *more: read.extend(some) or vectors(some, *more))
    build_index(elmo, [corpus], tmp_path / "rose", filters=WordFilter(only=("rose",)))
    assert [tokens for tokens in read if "rose" not in tokens] == []


def test_an_index_needs_a_folder_that_can_be_written(tmp_path: Path, elmo: Elmo, corpus: Path):
    for path, says in ((corpus, "is a file"), (Path("/proc/x"), "cannot be written")):
        with pytest.raises(UsageError, match=says):
            build_index(elmo, [corpus], path)


def test_an_empty_corpus_leaves_nothing_in_the_way(tmp_path: Path, elmo: Elmo, corpus: Path):
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


def test_no_text_comes_into_an_index_twice(tmp_path: Path, elmo: Elmo, corpus: Path, index: Index):
    more = write(tmp_path / "b.txt", "A new bank .\n")
    build_index(elmo, [more], index.folder, add=True)
    for again in (corpus, more):  # whole corpora that are there: nothing to do
        build_index(elmo, [again], index.folder, add=True)
        build_index(elmo, [again], index.folder)
    copy = write(tmp_path / "copy.txt", TEXT)
    new = write(tmp_path / "c.txt", "Another one .\n")
    with pytest.raises(UsageError, match=r"copy\.txt: already in the index"):
        build_index(elmo, [new, copy], index.folder, add=True)
    assert len(open_index(index.folder)) == len(index) + 4


def test_of_an_older_index_single_files_are_known(tmp_path: Path, elmo: Elmo, corpus: Path, index: Index):
    del index.head["corpora"][0]["contents"]
    write(index.folder / "index.json", json.dumps(index.head))
    with pytest.raises(UsageError, match=r"a\.txt: already in the index"):
        build_index(elmo, [corpus, write(tmp_path / "b.txt", "New .\n")], index.folder, add=True)


@pytest.mark.parametrize("block_usages", [8, 100_000])
def test_killed_while_adding_it_goes_on_without_doubles(
    tmp_path: Path, elmo: Elmo, corpus: Path, monkeypatch: pytest.MonkeyPatch, block_usages: int
):
    monkeypatch.setattr(build, "BLOCK_USAGES", block_usages)
    more = write(tmp_path / "b.txt", "A new bank .\n" * 3 + TEXT)
    for name in ("whole", "index"):
        build_index(elmo, [corpus], tmp_path / name)
    build_index(elmo, [more], tmp_path / "whole", add=True)
    calls: list[ProgressEvent] = []

    def stop(event: ProgressEvent) -> None:
        calls.append(event)
        if len(calls) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build_index(elmo, [more], tmp_path / "index", add=True, on_progress=stop)
    if block_usages == 8:
        with pytest.raises(FormatError, match="not finished"):
            open_index(tmp_path / "index")
    with pytest.raises(UsageError, match="not finished, and of another text"):
        build_index(elmo, [corpus], tmp_path / "index")
    build_index(elmo, [more], tmp_path / "index", add=True)
    one, two = open_index(tmp_path / "whole"), open_index(tmp_path / "index")
    assert [one.usage(n) for n in range(len(one))] == [two.usage(n) for n in range(len(two))]
    assert one.words.words == two.words.words


def test_words_that_are_too_frequent_are_left_out(tmp_path: Path, elmo: Elmo, corpus: Path):
    build_index(elmo, [corpus], tmp_path / "i", filters=WordFilter(max_count=2))
    words = open_index(tmp_path / "i").words
    assert words.count("river") == 2
    assert not {"bank", "."} & set(words.words)


@pytest.mark.parametrize("layer", [0, "mean", [0.2, 0.3, 0.5], ([0.2, 0.3, 0.5], 2.0)])
def test_an_index_of_another_layer_is_asked_with_that_layer(
    tmp_path: Path, elmo: Elmo, corpus: Path, layer: Any
):
    build_index(elmo, [corpus], tmp_path / "i", layer=layer)
    index = open_index(tmp_path / "i", elmo)
    wanted = elmo.embed("The bank failed , and the bank closed .", layer=layer)
    np.testing.assert_allclose(everything(index)[7:16], wanted, atol=2e-2)
    np.testing.assert_allclose(
        index.vector("The river rose .", "river"),
        index.space.to_directions(elmo.embed("The river rose .", layer=layer)[1][None])[0],
        atol=1e-5,
    )
    (best,) = index.usages("river", "The river rose .", 1)
    assert best.line == (1 if layer == 0 else 3)  # layer 0 knows no context: the first of equals
    assert best.cosine == pytest.approx(1, abs=0.01)
    index.check_layer(layer)
    with pytest.raises(UsageError, match="Build one of the other layer"):
        index.check_layer("top")
    build_index(elmo, [corpus], tmp_path / "i", layer=layer)  # nothing to do


def test_the_top_layer_may_be_called_by_its_number(index: Index):
    index.check_layer(2)
    with pytest.raises(UsageError, match="an index of layer top"):
        index.check_layer(1)


def test_a_word_never_seen_is_found_by_its_characters(index: Index):
    assert "banks" not in index.words
    found = index.usages("banks", "The banks failed .", 3)
    assert len(found) == 3
    with pytest.raises(KeyError, match="Did you mean bank"):
        index.usages("banks", "The banks failed .", 3, same_word=True)
