"""The verbs about words in a corpus."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import polyseme
from programs import Ran

LINES = ["He sat on the river bank .", "The bank failed .", "The river rose ."] * 6


@pytest.fixture
def indexed(run: Callable[..., Ran], bilm: str) -> Callable[..., Ran]:
    """Run the program in a folder that contains `index`, an index of LINES."""
    write("corpus.txt", "\n".join(LINES) + "\n")
    built = run("index", bilm, "corpus.txt", "--out", "index")
    assert built.code == 0, built.err
    return run


def write(name: str, text: str) -> None:
    Path(name).write_text(text, encoding="utf-8")


def assert_refused(ran: Ran, message: str) -> None:
    assert ran.code == 2
    assert message in ran.err
    assert len(ran.err.strip().splitlines()) == 1


def test_an_index_is_built_and_searched(run: Callable[..., Ran], bilm: str):
    write("corpus.txt", "\n".join(LINES) + "\n")
    built = run("index", bilm, "corpus.txt", "--out", "index")
    assert built.code == 0, built.err
    measured = polyseme.open_index("index").anisotropy
    assert built.out.splitlines() == [
        "index: 90 usages of 10 words in 1 block",
        f"mean cosine of random usages: {measured.before:.3f}, corrected (whiten) {measured.after:.3f}",
    ]
    assert len(run("nearest", "index", "bank", "-k", "3").out.splitlines()) == 3
    lines = run("nearest", "index", "bank", "--context", "The bank failed .", "-k", "2").out.splitlines()
    assert lines[0].split("\t")[1:] == ["corpus.txt:2", "The [bank] failed ."]
    rows = json.loads(run("nearest", "index", "bank", "--context", "The bank .", "--same-word", "--json").out)
    assert {row["word"] for row in rows} == {"bank"}
    assert run("senses", "index", "bank").out.startswith("bank: ")
    assert json.loads(run("senses", "index", "bank", "--json").out)["word"] == "bank"


def test_a_k_above_the_number_of_results_gives_all(indexed: Callable[..., Ran]):
    assert len(indexed("nearest", "index", "bank", "-k", "50").out.splitlines()) == 9
    assert (
        len(indexed("nearest", "index", "bank", "-k", "500", "--context", "the bank").out.splitlines()) == 90
    )


def test_another_model_and_rare_words_are_refused(indexed: Callable[..., Ran], models: Path):
    assert_refused(indexed("nearest", "index", "bank", "--model", models / "zh"), "an index of another model")
    assert_refused(
        indexed("change", "index", "index", "--min-count", "99"),
        "No word has 99 usages in both, river has most: 12. Lower --min-count.",
    )
    assert_refused(indexed("nearest", "index", "river", "--context", "the banks"), "mark the word: [river]")
    assert_refused(indexed("nearest", "index", "RIVER"), "Did you mean river")


def test_change_between_small_texts_says_what_is_missing(run: Callable[..., Ran], bilm: str) -> None:
    write("corpus.txt", "The bank failed .\nThe river rose .\nThe bank rose .\n")
    assert run("index", bilm, "corpus.txt", "--out", "index", "--documents", "line").code == 0
    compare = ("change", "index", "index", "--documents", "1-2", "--against")
    assert_refused(
        run(*compare, "3", "--min-count", "1"),
        "No word has 5 usages in both, bank has most: 1. Compare more text",
    )
    assert_refused(
        run("change", "index", "index", "--documents", "1", "--against", "2"), "No word is in both."
    )


def test_an_invalid_graph_type_is_refused_before_any_work(run: Callable[..., Ran], bilm: str):
    write("corpus.txt", "\n".join(LINES) + "\n")
    assert_refused(run("index", bilm, "corpus.txt", "--out", "new", "--graph", "foo"), "'foo' is not one of")
    assert not Path("new").exists()


def test_disambiguate_predicts_the_senses_of_unlabelled_rows(run: Callable[..., Ran], bilm: str):
    write("train.tsv", "bank\tthe river [bank]\tshore\nbank\tthe [bank] failed\tmoney\n" * 2)
    write("test.tsv", "bank\ton the river [bank]\nbank\tthe [bank] failed\n")
    ran = run("disambiguate", bilm, "--train", "train.tsv", "--test", "test.tsv")
    assert ran.code == 0, ran.err
    assert set(ran.out.split()) <= {"shore", "money"}
    assert len(ran.out.split()) == 2


def test_export_writes_the_mean_vectors_of_an_index(indexed: Callable[..., Ran]):
    index = polyseme.open_index("index")
    assert (
        indexed("export", "index", "words.vec").out == f"words.vec: 10 words of {index.head['size']} values\n"
    )
    np.testing.assert_array_equal(
        polyseme.read_vectors("words.vec").matrix, index.words.vectors - index.words.centre
    )
    assert indexed("export", "index", "words.bin", "--uncorrected", "--min-count", "12").code == 0
    frequent = index.words.counts >= 12
    np.testing.assert_array_equal(polyseme.read_vectors("words.bin").matrix, index.words.vectors[frequent])
    assert_refused(indexed("export", "index", "words.vec"), "--force")
    assert_refused(indexed("export", "index", "words.pdf"), "--format")


def test_a_single_word_can_be_a_string(indexed: Callable[..., Ran]):
    (change,) = polyseme.change("index", "index", "bank")
    assert change.word == "bank"
    assert {usage.word for usage in polyseme.map_usages("index", "river").usages} == {"river"}


def test_change_prints_each_measure_with_its_p_value(indexed: Callable[..., Ran]):
    lines = indexed("change", "index", "index", "bank", "river").out.splitlines()
    assert lines[0] == "change\t95% interval\tq\tusual\tpercentile\tchanged\tusages\tword"
    assert len(lines) == 3
    assert all(line.split("\t")[5] == "no" for line in lines[1:])
    rows = json.loads(indexed("change", "index", "index", "--min-count", "5", "--json").out)
    assert len(rows) > 3
    assert {"p", "distance_p", "shift_p", "changed"} <= set(rows[0])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nearest", "{bilm}", "bank", "--context", "the bank"], "--context needs an index"),
        (["nearest", "{bilm}", "bank", "--layer", "1"], "--out OUT --layer 1"),
        (["nearest", "{bilm}", "bank", "--uncorrected"], "--uncorrected needs an index"),
        (["nearest", "index", "bank", "--layer", "1"], "an index of layer top"),
        (["nearest", "index", "bank", "--layer", "9"], "the model has layers 0 to 2"),
        (["nearest", "index", "bank", "--same-word"], "--same-word needs --context"),
        (["nearest", "index", "bank", "--which", "1"], "--which needs --context"),
        (["nearest", "index", "bank", "--approximate"], "--approximate needs --context"),
        (
            ["nearest", "index", "bank", "--context", "the bank", "--like", "river"],
            "--like has no effect with --context",
        ),
        (
            ["nearest", "index", "bank", "--context", "the bank", "--min-count", "2"],
            "--min-count has no effect",
        ),
        (["nearest", "index", "bank", "--context", "the bank", "--approximate"], "no graph"),
        (["nearest", "index", "banks", "--unlike", "rivers"], "Did you mean bank"),
        (["senses", "{bilm}", "bank"], "no index.json in it"),
        (["senses", "index", "failed"], "too few to tell senses apart"),
        (["concordance", "{bilm}", "bank"], "no index.json in it"),
        (["concordance", "index", "banks"], "Did you mean bank"),
        (["concordance", "index", "bank", "--sort", "similarity"], "needs --usage, the number of a line"),
        (["concordance", "index", "bank", "--usage", "2"], "--sort similarity is what --usage needs"),
        (["concordance", "index", "bank", "--collocate", "rose"], "No usage has 'rose' within 5 words"),
        (["concordance", "index", "bank", "--sort", "size"], "'size' is not one of 'document', 'left'"),
        (["collocates", "index", "banks"], "Did you mean bank"),
        (["passage", "index", "999"], "There is no usage 999: the index has usages 0 to"),
        (["index", "{bilm}", "none.txt", "--out", "x"], "no such file"),
        (["index", "{bilm}", "text.txt", "--out", "x", "--layer", "all"], "a usage has one vector"),
        (["index", "{bilm}", "text.txt", "--out", "x", "--layer", "1,2"], "the model has 3 layers"),
        (["index", "{bilm}", "text.txt", "--out", "x", "--add"], "no index to add to"),
        (["index", "{bilm}", "-", "--out", "x"], "cannot come from standard input"),
        (["similarity", "index", "bank"], "two or more to compare"),
        (["similarity", "index", "the [bank]", "the bank"], "mark one in each, or in none"),
        (["similarity", "index", "the [bank] [failed]", "the [bank]"], "not one pair"),
        (["similarity", "index", "banks", "river"], "Did you mean bank"),
        (["similarity", "index", "bank", "river", "--layer", "0"], "an index of layer top"),
        (["similarity", "{bilm}", "bank", "river"], "no word vectors"),
        (["map", "index", "bank", "--out", "map.gif"], "a .png or .html"),
        (["map", "index", "bink", "--out", "map.html"], "Did you mean bank"),
        (["change", "index", "index", "bank", "--out", "x.pdf"], "must be a .png"),
        (["change", "index", "index", "bink"], "Did you mean bank"),
        (
            ["disambiguate", "{bilm}", "--train", "text.txt", "--test", "text.txt"],
            "text.txt:1: 1 columns, expected a word",
        ),
    ],
)
def test_invalid_arguments_for_indexes_are_a_one_line_error(
    indexed: Callable[..., Ran], bilm: str, arguments: list[str], message: str
):
    assert_refused(indexed(*(argument.format(bilm=bilm) for argument in arguments)), message)
    assert not Path("x").exists()


def test_the_help_of_index_does_not_mention_stdin(run: Callable[..., Ran]):
    assert "stdin" not in run("index", "--help").out


def test_like_and_unlike_solve_analogies(indexed: Callable[..., Ran]):
    rows = json.loads(
        indexed("nearest", "index", "bank", "--like", "rose", "--unlike", "failed", "-k", "4", "--json").out
    )
    expected = polyseme.open_index("index").most_similar(["bank", "rose"], ["failed"], topn=4)
    assert [(row["word"], row["cosine"]) for row in rows] == expected
    assert not {"bank", "rose", "failed"} & {row["word"] for row in rows}


def test_the_layer_of_the_index_is_accepted(indexed: Callable[..., Ran], bilm: str):
    default = indexed("nearest", "index", "bank")
    assert indexed("nearest", "index", "bank", "--layer", "top") == default
    assert indexed("nearest", "index", "bank", "--layer", "2") == default
    mixed = indexed("index", bilm, "corpus.txt", "--out", "mixed", "--layer", "0.2,0.3,0.5*1.4")
    assert mixed.code == 0, mixed.err
    nearest = indexed(
        "nearest", "mixed", "bank", "--context", "The bank failed .", "--layer", "0.2,0.3,0.5*1.4"
    )
    assert nearest.code == 0, nearest.err
    assert nearest.out.splitlines()[0].startswith("1.000\t")


def test_nearest_can_be_uncorrected(indexed: Callable[..., Ran]):
    expected = polyseme.open_index("index", corrected=False).most_similar("bank", topn=2)
    rows = json.loads(indexed("nearest", "index", "bank", "-k", "2", "--uncorrected", "--json").out)
    assert [(row["word"], row["cosine"]) for row in rows] == expected


def test_an_unfinished_index_is_refused(indexed: Callable[..., Ran]):
    head = json.loads(Path("index/index.json").read_text(encoding="utf-8"))
    write("index/index.json", json.dumps(head | {"finished": 0}))
    assert_refused(indexed("nearest", "index", "bank"), "not finished")
    with pytest.raises(polyseme.FormatError, match="not finished"):
        polyseme.nearest("index", "bank")


def test_a_graph_is_built_and_searched(run: Callable[..., Ran], bilm: str):
    pytest.importorskip("usearch")
    write("corpus.txt", "\n".join(LINES) + "\n")
    built = run("index", bilm, "corpus.txt", "--out", "index", "--graph", "float16")
    assert built.code == 0, built.err
    arguments = ("nearest", "index", "bank", "--context", "The bank failed .", "-k", "1")
    approximate = run(*arguments, "--approximate")
    assert approximate.code == 0, approximate.err
    assert approximate.out.split("\t")[2] == run(*arguments).out.split("\t")[2]
    assert_refused(
        run("index", bilm, "corpus.txt", "--out", "index", "--graph", "float8"), "'float8' is not one of"
    )


def test_unseen_words_repeated_words_and_a_memory_limit(indexed: Callable[..., Ran]):
    unseen = indexed("nearest", "index", "banks", "--context", "The banks failed .", "-k", "2")
    assert (unseen.code, len(unseen.out.splitlines())) == (0, 2)
    twice = ("nearest", "index", "bank", "--context", "The bank and the bank .", "-k", "1")
    assert_refused(indexed(*twice), "say which")
    assert indexed(*twice, "--which", "2").code == 0
    assert indexed(*twice, "--which", "2", "--memory", "0").code == 0
    for arguments in (["senses", "index", "bank"], ["change", "index", "index", "bank"]):
        assert indexed(*arguments, "--memory", "0").out == indexed(*arguments).out


def test_similarity_of_words_usages_and_sentences(indexed: Callable[..., Ran], bilm: str):
    index = polyseme.open_index("index")
    assert indexed("similarity", "index", "bank", "river").out == (
        f"{index.similarity('bank', 'river'):.3f}\tbank\triver\n"
    )
    usages = "He sat on the river [bank] .", "The [bank] failed ."
    values = json.loads(indexed("similarity", "index", *usages, "--json").out)
    assert values["kind"] == "usages"
    assert values["pairs"][0]["cosine"] == pytest.approx(index.similarity_of_usages(*usages))
    sentences = [text.replace("[", "").replace("]", "") for text in usages]
    values = json.loads(indexed("similarity", "index", *sentences, "--json").out)
    assert (values["kind"], values["odd_one_out"]) == ("sentences", None)
    assert values["pairs"][0]["cosine"] == pytest.approx(index.similarity_of_sentences(*sentences))
    by_model = json.loads(indexed("similarity", bilm, *sentences, "--layer", "1", "--json").out)
    means = polyseme.load(bilm).embed(sentences, layer=1, pool="mean")
    expected = means[0] @ means[1] / np.linalg.norm(means[0]) / np.linalg.norm(means[1])
    assert by_model["pairs"][0]["cosine"] == pytest.approx(expected, abs=1e-5)


def test_similarity_takes_any_layer_of_a_model_and_reads_a_single_word_as_a_sentence(
    indexed: Callable[..., Ran],
):
    texts = ("玄德拜关羽为将", "将军引兵")
    values = json.loads(indexed("similarity", "zh-classic", *texts, "--layer", "mean", "--json").out)
    assert values["kind"] == "sentences"
    words = ("玄德", "曹操")
    values = json.loads(indexed("similarity", "zh-classic", *words, "--layer", "mean", "--json").out)
    first, second = polyseme.load("zh-classic").embed([[word] for word in words], layer="mean", pool="mean")
    expected = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
    assert values["kind"] == "sentences"
    assert values["pairs"][0]["cosine"] == pytest.approx(expected, abs=1e-5)
    values = json.loads(indexed("similarity", "zh-classic", *words, "--json").out)
    assert values["kind"] == "words"


def test_similarity_prints_the_odd_one_out(indexed: Callable[..., Ran]):
    lines = indexed("similarity", "index", "bank", "river", "rose").out.splitlines()
    assert len(lines) == 4
    odd = polyseme.open_index("index").doesnt_match(["bank", "river", "rose"])
    assert lines[-1] == f"odd one out: {odd}"


def test_map_and_change_overwrite_pictures_only_with_force(indexed: Callable[..., Ran]):
    for arguments in (
        ["map", "index", "bank", "river", "--out", "map.html"],
        ["change", "index", "index", "bank", "--out", "shares.png"],
    ):
        built = indexed(*arguments)
        assert built.code == 0, built.err
        assert Path(arguments[-1]).stat().st_size > 0
        assert_refused(indexed(*arguments), "exists already")
        assert indexed(*arguments, "--force").code == 0


def test_disambiguate_segments_raw_text(run: Callable[..., Ran], models: Path):
    write("senses.tsv", "银行\t他他[银行]了。\tmoney\n银行\t一行[银行]river\tshore\n")
    zh = str(models / "zh")
    predicted = run("disambiguate", zh, "--train", "senses.tsv", "--test", "senses.tsv", "--predictions")
    assert predicted.code == 0, predicted.err
    assert predicted.out.splitlines()[:3] == ["money", "shore", "accuracy 1.0000, mean over words 1.0000"]
    split = run("disambiguate", zh, "--train", "senses.tsv", "--test", "senses.tsv", "--segment", "split")
    assert split.code == 0


def test_one_sense_has_no_stability(run: Callable[..., Ran], bilm: str):
    write("same.txt", "The bank failed .\n" * 12)
    assert run("index", bilm, "same.txt", "--out", "same").code == 0
    assert run("senses", "same", "bank").out.startswith("bank: one group")
    assert json.loads(run("senses", "same", "bank", "--json").out)["stability"] is None


def test_the_usages_of_a_word_are_written_as_a_table_that_spreadsheets_do_not_run(
    run: Callable[..., Ran], bilm: str
):
    Path("speeches").mkdir()
    write("speeches/1901.txt", "=cmd() bank .\nThe bank failed .\n")
    write("speeches/1902.txt", 'The bank , "he" said .\n')
    assert run("index", bilm, "speeches", "--out", "index").code == 0
    assert run("export", "index", "usages.csv", "--word", "bank").out == "usages.csv: 3 usages of bank\n"
    rows = list(csv.reader(Path("usages.csv").read_text("utf-8-sig").splitlines()))
    assert rows[0] == ["left", "word", "right", "document", "title", "line"]
    assert [row[:3] for row in rows[1:]] == [
        ["'=cmd() ", "bank", " ."],
        ["The ", "bank", " failed ."],
        ["The ", "bank", ' , "he" said .'],
    ]
    assert [Path(row[3]).name + ":" + row[5] for row in rows[1:]] == [
        "1901.txt:1",
        "1901.txt:2",
        "1902.txt:1",
    ]
    second_document = run("export", "index", "usages.csv", "--word", "bank", "--documents", "2", "--force")
    assert second_document.out == "usages.csv: 1 usage of bank\n"


def test_a_csv_file_may_lack_a_byte_order_mark_and_has_no_formulas(run: Callable[..., Ran], bilm: str):
    write("corpus.txt", "=1+1 bank ＝2 .\n")
    assert run("index", bilm, "corpus.txt", "--out", "index").code == 0
    for options, mark in (((), b"\xef\xbb\xbf"), (("--no-bom", "--force"), b"")):
        assert run("export", "index", "usages.csv", "--word", "bank", *options).code == 0
        assert Path("usages.csv").read_bytes().startswith(mark + b"left,word")
        (row,) = csv.DictReader(Path("usages.csv").read_text("utf-8-sig").splitlines())
        assert row["left"].startswith("'=1")
        assert row["right"].lstrip().startswith("＝2")  # not at the beginning of its cell


def test_lines_of_a_concordance_are_printed(indexed: Callable[..., Ran]):
    out = indexed("concordance", "index", "bank", "-k", "3", "--sort", "right", "--width", "9").out
    rows = [line.split("\t") for line in out.splitlines()]
    assert rows[0][1:] == ["corpus.txt:1", "river [bank] . The"]
    assert len(rows) == 3
    by = indexed("concordance", "index", "bank", "--by", "document", "--start", "11")
    assert by.out.splitlines()[-1] == "12\t1333.33\tcorpus.txt"
    assert "more lines" not in by.err
    assert (
        indexed("concordance", "index", "bank", "-k", "5").err.splitlines()[-1].startswith("polyseme: 7 more")
    )
    values = json.loads(indexed("concordance", "index", "bank", "--sort", "sense", "--json").out)
    assert (values["total"], values["lines"][0]["sense"]) == (12, 0)
    like = indexed(
        "concordance", "index", "bank", "--sort", "similarity", "--usage", rows[1][0], "-k", "1"
    ).out
    assert like.split("\t")[2] == "1.000"


def test_collocates_and_passages_are_printed(indexed: Callable[..., Ran]):
    heads, first, *_ = indexed("collocates", "index", "bank", "--all-words", "--senses").out.splitlines()
    assert heads == "log-likelihood\tnear\texpected\tleft\tright\tusages\tsenses\tword"
    assert first.split("\t")[-1] in " ".join(LINES).split()
    assert json.loads(indexed("collocates", "index", "bank", "--json").out)[0]["left"] >= 0
    number = indexed("concordance", "index", "bank", "-k", "1", "--start", "1").out.split("\t")[0]
    passage = indexed("passage", "index", number, "--sentences", "1").out.splitlines()
    assert passage == [
        "corpus.txt:2",
        "",
        "He sat on the river bank .",
        "The [bank] failed .",
        "The river rose .",
    ]
    assert json.loads(indexed("passage", "index", number, "--json").out)["line"] == 2


def test_usages_go_to_csv_files_of_an_index_only(indexed: Callable[..., Ran], models: Path):
    assert_refused(indexed("export", "index", "usages.csv"), "a .csv file gets the usages of a word")
    assert_refused(indexed("export", "index", "usages.vec", "--word", "bank"), "usages are written as .csv")
    assert_refused(indexed("export", "index", "words.vec", "--documents", "1"), "no effect without --word")
    assert_refused(indexed("export", "index", "usages.csv", "--word", "banks"), "Did you mean bank")
    assert not Path("usages.csv").exists()
