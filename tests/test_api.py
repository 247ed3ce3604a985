"""One function per verb: paths in, files or plain values out.

L layers, H = both directions.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pyarrow.parquet as pq
import pytest
import torch

import polyseme
from builders import assert_same_vectors, random_model, small_config, write_bilm
from polyseme import api
from polyseme.bulk_embedding import check_embed_output
from polyseme.elmo import Elmo
from polyseme.errors import DataError, FormatError, UsageError
from polyseme.formats.models.open import open_pretrained
from polyseme.io.result_list import ResultList
from polyseme.text.corpus.documents import expand_inputs
from polyseme.text.reading import measure_bytes

TEXT = "the bank of the river\n\nnaïve 银行 !\nfailed\n"
LINES = TEXT.split("\n")[:-1]


@pytest.fixture
def elmo() -> Elmo:
    return Elmo(random_model(small_config()))


@pytest.fixture
def text(tmp_path: Path) -> Path:
    path = tmp_path / "text.txt"
    path.write_text(TEXT, encoding="utf-8")
    return path


def read_npz(path: Path) -> list[np.ndarray]:
    with np.load(path, allow_pickle=False) as file:
        return [file[str(number)] for number in range(len(file.files))]


def assert_close(arrays: list[np.ndarray], expected: list[np.ndarray]) -> None:
    assert [array.shape for array in arrays] == [array.shape for array in expected]
    for array, expected_array in zip(arrays, expected, strict=True):
        np.testing.assert_allclose(array, expected_array, atol=1e-6)


def test_the_verbs_are_public_names():
    verbs = ("info", "convert", "embed", "evaluate", "score", "rerank", "substitutes", "generate", "pretrain")
    assert all(getattr(polyseme, verb) is getattr(api, verb) for verb in verbs)


# ---- info, convert ----


def test_info_returns_plain_values(tmp_path):
    write_bilm(tmp_path / "bilm")
    facts = api.info(tmp_path / "bilm")
    assert json.loads(json.dumps(facts)) == facts
    assert facts["layers"] == 3
    assert facts["size"] == 8
    assert facts["config"]["recurrent"]["cells"] == 6
    assert facts["origin"]["format"] == "bilm-tf/AllenNLP hdf5"
    assert facts["parameters"] == sum(
        value.numel() for value in open_pretrained(tmp_path / "bilm").network.state_dict().values()
    )


def test_a_model_is_the_same_after_every_conversion(tmp_path):
    write_bilm(tmp_path / "bilm", weights="w.hdf5", options="odd.json")
    source, options = tmp_path / "bilm" / "w.hdf5", tmp_path / "bilm" / "odd.json"
    api.convert(source, str(tmp_path / "native"), options=str(options))
    api.convert(tmp_path / "native", tmp_path / "folder", to="hdf5")
    api.convert(tmp_path / "folder", tmp_path / "files" / "x.hdf5", to="hdf5")
    expected = open_pretrained(source, options)
    for name in ("native", "folder", "files/x.hdf5"):
        model = open_pretrained(tmp_path / name)
        assert model.config == expected.config
        assert all(torch.equal(value, expected.tensors()[key]) for key, value in model.tensors().items())
        assert_same_vectors(model, expected)


def test_an_invalid_conversion_is_refused_and_writes_nothing(tmp_path):
    write_bilm(tmp_path / "bilm")
    with pytest.raises(UsageError, match=r"to is 'onxn'.*Did you mean onnx\?"):
        api.convert(tmp_path / "bilm", tmp_path / "new", to="onxn")  # type: ignore[arg-type]
    with pytest.raises(FormatError, match="no such file or folder"):
        api.convert(tmp_path / "nowhere", tmp_path / "a" / "new")
    with pytest.raises(UsageError, match="exists already"):
        api.convert(tmp_path / "bilm", tmp_path / "bilm", to="hdf5")
    assert os.listdir(tmp_path) == ["bilm"]


# ---- embed ----


def test_embed_writes_the_vectors_of_elmo_embed_and_returns_counts(elmo, text, tmp_path):
    done = api.embed(elmo, text, tmp_path / "x.npz", layer="all")
    assert done == api.EmbedResult(tmp_path / "x.npz", sentences=4, tokens=9, truncated=0)
    assert_close(read_npz(tmp_path / "x.npz"), elmo.embed(LINES, layer="all"))
    api.embed(elmo, text, tmp_path / "joined.npz", layer="concat")
    assert_close(read_npz(tmp_path / "joined.npz"), elmo.embed(LINES, layer="concat"))


def test_embed_takes_the_path_of_a_model(elmo, text, tmp_path):
    elmo.save(tmp_path / "model")
    done = api.embed(str(tmp_path / "model"), str(text), str(tmp_path / "x.npz"), batch_tokens=7)
    assert done.out == tmp_path / "x.npz"
    assert_close(read_npz(tmp_path / "x.npz"), elmo.embed(LINES))


def test_sentences_in_memory_are_scored_as_those_of_a_file(text):
    elmo = Elmo(random_model(small_config(), softmax=True))
    lines = text.read_text(encoding="utf-8").splitlines()
    streamed = [scored.totals for scored in api.score(elmo, text)]
    scores = api.score(elmo, lines)
    np.testing.assert_allclose([scored.totals for scored in scores], streamed, rtol=1e-5)
    assert isinstance(scores, ResultList)
    assert "forward" in repr(scores)
    tokens = api.score(elmo, [line.split() for line in lines])
    np.testing.assert_allclose([scored.totals for scored in tokens], streamed, rtol=1e-5)


def test_a_sentence_in_place_of_a_file_is_refused_before_the_first_score():
    elmo = Elmo(random_model(small_config(), softmax=True))
    with pytest.raises(UsageError, match=r"The bank failed \.: no such file or folder"):
        api.score(elmo, "The bank failed .")


def test_a_tilde_means_the_home_folder(elmo, text, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    assert api.embed(elmo, f"~/{text.name}", "~/new/x.npz").out == tmp_path / "new" / "x.npz"
    assert len(read_npz(tmp_path / "new" / "x.npz")) == 4


def test_every_verb_expands_the_home_folder(text, tmp_path, monkeypatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    elmo = Elmo(random_model(small_config(), softmax=True))
    (tmp_path / "lists.txt").write_text("1\tthe bank\n1\tthe river\n")
    assert list(api.evaluate(elmo, f"~/{text.name}").files) == [str(text)]
    assert len(list(api.score(elmo, f"~/{text.name}"))) == 4
    assert len(list(api.rerank(elmo, "~/lists.txt"))) == 2
    assert expand_inputs([f"~/{text.name}"]) == [text]
    assert expand_inputs(["~/te*.txt"]) == [text]
    assert measure_bytes(f"~/{text.name}") == text.stat().st_size
    elmo.save(tmp_path / "model")
    api.convert("~/model", "~/new", to="hdf5")
    with pytest.raises(UsageError, match="new: exists already"):
        api.convert("~/model", "~/new", to="hdf5")
    api.embed("~/model", f"~/{text.name}", "~/x.npz")
    with pytest.raises(UsageError, match=r"x\.npz: exists already"):
        check_embed_output(Path("~/x.npz"), dtype="float32", force=False)


@pytest.mark.parametrize("batch_tokens", [1, 3, 4096])
@pytest.mark.parametrize("stateful", [False, True])
def test_vectors_do_not_depend_on_the_size_of_chunks(batch_tokens, stateful, tmp_path):
    lines = [f"w{number} " * (number % 5) for number in range(60)]
    (tmp_path / "long.txt").write_text("\n".join(lines))
    model = random_model(small_config())
    done = api.embed(
        Elmo(model, batch_tokens=batch_tokens), tmp_path / "long.txt", tmp_path / "x.npz", stateful=stateful
    )
    assert (done.sentences, done.tokens) == (60, 120)
    elmo = Elmo(model)
    assert_close(read_npz(tmp_path / "x.npz"), [elmo.embed(line, stateful=stateful) for line in lines])


def test_a_stateful_run_starts_from_zero_state(elmo, text, tmp_path):
    api.embed(elmo, text, tmp_path / "x.npz", stateful=True)
    elmo.embed("something else", stateful=True)
    api.embed(elmo, text, tmp_path / "y.npz", stateful=True)
    assert_close(read_npz(tmp_path / "y.npz"), read_npz(tmp_path / "x.npz"))


def test_text_is_segmented_as_the_model_was_trained_by_default(tmp_path):
    elmo = Elmo(random_model(small_config(segment="en")))
    (tmp_path / "raw.txt").write_text("He didn't\nfall. She did!")
    api.embed(elmo, tmp_path / "raw.txt", tmp_path / "default.parquet")
    default = pq.read_table(tmp_path / "default.parquet")
    assert default["token"].to_pylist() == ["He", "did", "n't", "fall", ".", "She", "did", "!"]
    assert default["sentence"].to_pylist() == [0, 0, 0, 0, 0, 1, 1, 1]
    api.embed(elmo, tmp_path / "raw.txt", tmp_path / "split.parquet", segment="split")
    split = pq.read_table(tmp_path / "split.parquet")
    assert split["token"].to_pylist() == ["He", "didn't", "fall.", "She", "did!"]


def test_embedding_reports_bytes_and_tokens(elmo, text, tmp_path):
    events, size = [], text.stat().st_size
    api.embed(elmo, text, tmp_path / "x.npz", progress=events.append)
    assert (events[-1].stage, events[-1].done, events[-1].total) == ("embedding", size, size)
    assert events[-1].detail.startswith("9 tokens, ")
    events.clear()
    api.embed(elmo, text, tmp_path / "y.npz", stateful=True, progress=events.append)
    assert [event.detail.split(",")[0] for event in events] == [
        "5 tokens",
        "5 tokens",
        "8 tokens",
        "9 tokens",
    ]
    events.clear()
    api.embed(elmo, text, tmp_path / "folder", progress=events.append)
    assert (events[-1].stage, events[-1].done, events[-1].total) == ("embedding", size, size)


def test_reading_and_converting_a_model_report_bytes_with_a_total_and_a_rate(elmo, tmp_path):
    elmo.save(tmp_path / "model")
    steps: list[tuple[str, str, dict[str, Any], list[str]]] = [
        ("model", "int8", {"precision": "int8"}, ["reading", "rounding to int8"]),
        ("model", "x.hdf5", {"to": "hdf5"}, ["reading", "writing"]),
        ("x.hdf5", "back", {}, ["reading"]),
    ]
    for source, target, options, stages in steps:
        events = []
        api.convert(tmp_path / source, tmp_path / target, **options, progress=events.append)
        counted = [event for event in events if event.total]
        assert list(dict.fromkeys(event.stage for event in counted)) == stages
        last = {event.stage: event for event in counted}
        if source != "x.hdf5":  # a small hdf5 file is mostly headers
            assert all(event.done == event.total for event in last.values())
        assert all(re.fullmatch(r"[\d,.]+ MB, [\d,.]+ MB/s", event.detail) for event in counted)
    events = []
    api.info(tmp_path / "model", progress=events.append)
    assert events[-1].done == events[-1].total > 0


def test_truncated_tokens_are_counted_per_call(elmo, text, tmp_path):
    elmo.embed("supercalifragilistic")
    assert api.embed(elmo, text, tmp_path / "x.npz").truncated == 0
    text.write_text("supercalifragilistic word")
    assert api.embed(elmo, text, tmp_path / "y.npz").truncated == 1
    assert elmo.counts.truncated == 2


def test_truncated_tokens_are_reported_once_for_any_number_of_chunks(tmp_path, caplog):
    model = random_model(small_config(), softmax=True)
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("supercalifragilistic word\n" * 5)
    warning = "10 of 20 tokens are longer than 10 bytes and were truncated."
    sentences = [["supercalifragilistic", "word"]] * 10
    for call in (
        lambda elmo: api.embed(elmo, tmp_path, tmp_path / "new" / "x.npz"),
        lambda elmo: api.evaluate(elmo, tmp_path),
        lambda elmo: list(api.score(elmo, tmp_path)),
        lambda elmo: list(api.score(elmo, tmp_path, stateful=True)),
        lambda elmo: polyseme.mean_vectors(elmo, sentences, min_count=1),
        lambda elmo: elmo.embed(sentences),
    ):
        caplog.clear()
        call(Elmo(model, batch_tokens=1))
        assert [message.startswith(warning) for message in caplog.messages] == [True]
        for file in tmp_path.glob("new/*"):
            file.unlink()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layer": "last"}, "layer is 'last'"),
        ({"pool": "average"}, "pool is 'average'"),
        ({"direction": "left"}, "direction is 'left'"),
        ({"segment": "chinese"}, "'chinese' is not a segmentation"),
        ({"segment": ""}, "'' is not a segmentation"),
        ({"dtype": "float64"}, "dtype is 'float64', expected float32 or float16"),
    ],
)
def test_an_invalid_option_is_refused_even_for_an_empty_text(elmo, options, message, tmp_path):
    (tmp_path / "empty.txt").touch()
    with pytest.raises(UsageError, match=message):
        api.embed(elmo, tmp_path / "empty.txt", tmp_path / "x.npz", **options)
    assert os.listdir(tmp_path) == ["empty.txt"]


def test_an_error_in_the_text_leaves_no_output(elmo, tmp_path):
    (tmp_path / "bad.txt").write_bytes(b"fine\n" * 1000 + b"\xff\n")
    with pytest.raises(DataError, match=r"bad\.txt:1001: not UTF-8"):
        api.embed(Elmo(elmo.model, batch_tokens=10), tmp_path / "bad.txt", tmp_path / "a" / "x.npz")
    assert os.listdir(tmp_path) == ["bad.txt"]


# ---- search ----

SENTENCES = ("He sat on the river bank .", "The bank failed .", "The river rose .", "a bank of the river")


@pytest.fixture
def index(elmo: Elmo, tmp_path: Path) -> Path:
    (tmp_path / "corpus.txt").write_text("\n".join(SENTENCES * 6) + "\n", encoding="utf-8")
    elmo.save(tmp_path / "model")
    api.index(tmp_path / "model", tmp_path / "corpus.txt", tmp_path / "index")
    return tmp_path / "index"


def test_nearest_returns_words_or_usages_if_there_is_a_context(index):
    opened = polyseme.open_index(index)
    assert api.nearest(index, "bank", 3) == opened.words.nearest("bank", 3)
    usages = api.nearest(index, "bank", 4, context="The bank failed .", same_word=True)
    assert usages == opened.usages("bank", "The bank failed .", 4, same_word=True)
    assert {usage.word for usage in usages} == {"bank"}
    second = api.nearest(opened, "bank", 1, context="The bank of the bank .", which=2)
    assert second == opened.usages("bank", "The bank of the bank .", 1, which=2)


def test_nearest_adds_and_subtracts_words(index):
    words = polyseme.open_index(index).words
    nearest = api.nearest(index, "bank", 3, like=["rose"], unlike=["failed"], min_count=6, min_chars=2)
    weights = [("bank", 1.0), ("rose", 1.0), ("failed", -1.0)]
    assert nearest == words.nearest_to_sum(weights, 3, min_count=6, min_chars=2)


def test_nearest_takes_the_options_of_opening_an_index(index, tmp_path):
    plain = polyseme.open_index(index, corrected=False)
    assert api.nearest(index, "bank", 3, uncorrected=True, memory=1) == plain.words.nearest("bank", 3)
    moved = (tmp_path / "model").rename(tmp_path / "moved")
    assert api.nearest(index, "bank", 1, context="The bank .", model=moved, layer="top")[0].cosine > 0


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"same_word": True}, "`same_word` needs `context`"),
        ({"which": 1}, "`which` needs `context`"),
        ({"context": "the bank", "like": ["river"]}, "`like` has no effect with `context`"),
        ({"layer": 0}, r"Build one of the other layer: `polyseme.index\(model, text, out, layer=0\)`"),
        ({"context": "the river"}, "'bank' is not in the sentence"),
    ],
)
def test_arguments_of_nearest_that_do_not_go_together_are_refused(index, options, message):
    with pytest.raises(UsageError, match=message):
        api.nearest(index, "bank", **options)


def test_an_open_index_and_word_vectors_refuse_options_that_need_a_path(index):
    opened = polyseme.open_index(index)
    with pytest.raises(UsageError, match="`memory` needs the path of the index"):
        api.nearest(opened, "bank", memory=1)
    with pytest.raises(UsageError, match="WordVectors: `context` needs an index"):
        api.nearest(opened.words, "bank", context="the bank")


def test_similarity_compares_two_or_more_texts(index, elmo):
    opened = polyseme.open_index(index)
    assert api.similarity(index, "bank", "river").cosine == pytest.approx(opened.similarity("bank", "river"))
    three = api.similarity(index, "bank", "river", "rose")
    assert three.cosines.shape == (3, 3)
    assert three.odd_one_out == opened.doesnt_match(["bank", "river", "rose"])
    with pytest.raises(UsageError, match="3 texts have more than one cosine"):
        three.cosine  # noqa: B018
    texts = ("the [bank] failed", "the river [bank]")
    assert api.similarity(elmo, *texts).cosine == api.similarity(elmo, *texts, layer="top").cosine


def test_stop_words_can_be_a_list_or_a_file(elmo, tmp_path):
    (tmp_path / "corpus.txt").write_text("\n".join(SENTENCES) + "\n", encoding="utf-8")
    (tmp_path / "stop.txt").write_text("the . The\na\n", encoding="utf-8")
    for name, stop in (("file", tmp_path / "stop.txt"), ("words", ["the", ".", "The", "a"])):
        words = api.index(elmo, tmp_path / "corpus.txt", tmp_path / name, stop=stop).words
        assert not {"the", ".", "The", "a"} & set(words.words)
        assert "bank" in words


def test_change_returns_the_named_words_or_the_top_k(index):
    assert [change.word for change in api.change(index, index, ["river", "bank"], k=1)] != []
    assert len(api.change(index, index, ["river", "bank"], k=1)) == 2
    assert len(api.change(index, index, min_count=6, k=2)) == 2


def test_a_loaded_model_stands_for_its_path(elmo, tmp_path):
    bundled = polyseme.load("en-classic")
    assert bundled.path == "en-classic"
    assert api.nearest(bundled, "king", 3) == api.nearest("en-classic", "king", 3)
    cosines = [api.similarity(source, "mother", "father").cosine for source in (bundled, "en-classic")]
    assert cosines[0] == cosines[1]
    assert api.info(bundled) == api.info("en-classic")
    elmo.save(tmp_path / "model")
    loaded = polyseme.load(tmp_path / "model")
    (tmp_path / "corpus.txt").write_text("\n".join(SENTENCES * 6) + "\n", encoding="utf-8")
    api.index(loaded, tmp_path / "corpus.txt", tmp_path / "index")
    assert len(api.nearest(tmp_path / "index", "bank", 2, context="The bank failed .")) == 2


def test_a_model_without_a_path_has_no_word_vectors_beside_it(elmo):
    assert elmo.path is None
    with pytest.raises(FormatError, match="not loaded from a folder"):
        api.nearest(elmo, "bank")
    with pytest.raises(FormatError, match="not loaded from a folder"):
        api.similarity(elmo, "bank", "river")


def test_an_output_that_is_no_path_is_refused_in_one_line(elmo, text):
    frame: Any = pd.DataFrame({"text": ["a"]})
    calls: list[Callable[[], object]] = [
        lambda: api.embed(elmo, text, frame),
        lambda: api.convert(elmo, frame),
        lambda: api.cache(elmo, text, frame),
        lambda: api.index(elmo, text, frame),
        lambda: api.pretrain(text, frame),
        lambda: elmo.save(frame),
    ]
    for call in calls:
        with pytest.raises(UsageError, match="is of type DataFrame, expected a path"):
            call()
