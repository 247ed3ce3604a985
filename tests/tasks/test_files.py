"""Files of examples in every format, and errors with their locations."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import zstandard

import task_files as toys
from polyseme.errors import ConfigError, DataError, PolysemeError, UsageError
from polyseme.tasks.examples import Segmenter
from polyseme.tasks.experiment import Experiment, prepare
from polyseme.tasks.task_model import make_store

SEGMENTER = Segmenter("split")
MARKED = '1\t"<e1>a</e1> hits <e2>b</e2>"'


def read(task: str, path: Path, *settings: str) -> list:
    return Experiment(task, settings=settings).make_task().read(str(path), SEGMENTER)


def write(tmp_path: Path, name: str, text: str) -> Path:
    (tmp_path / name).write_text(text, encoding="utf-8")
    return tmp_path / name


def test_csv_fields_may_contain_quotes_commas_and_newlines(tmp_path: Path):
    path = write(tmp_path, "a.csv", 'label,text\n1,"a ""b"", c\nd e"\n0,f\n')
    first, second = read("classification", path)
    assert first.sentences[0] == ("a", '"b",', "c", "d", "e")
    assert (first.labels, first.location) == (("1",), f"{path}:2")
    assert second.location == f"{path}:4"


def test_classification_reads_lines_fasttext_json_lines_and_folders(tmp_path: Path):
    assert read("classification", write(tmp_path, "a.train", "1 a film\n0 b\n"))[0].labels == ("1",)
    fast = write(tmp_path, "f.txt", "__label__x __label__y some words\n")
    assert read("classification", fast, "data.multi=true")[0].labels == ("x", "y")
    rows = [{"text": "a b", "label": 1}, {"text": "c", "label": 0}]
    lines = write(tmp_path, "a.jsonl", "".join(json.dumps(row) + "\n" for row in rows))
    assert [example.labels for example in read("classification", lines)] == [("1",), ("0",)]
    for label in ("neg", "pos"):
        (tmp_path / "texts" / label).mkdir(parents=True)
        write(tmp_path / "texts" / label, "1.txt", f"a {label}\ntext\n")
    assert [e.labels for e in read("classification", tmp_path / "texts")] == [("neg",), ("pos",)]


def test_a_label_and_its_text_may_have_a_tab_between_them(tmp_path: Path):
    first, second = read("classification", write(tmp_path, "a.txt", "1\tgood film\n0\tbad film\n"))
    assert (first.labels, first.sentences[0], second.labels) == (("1",), ("good", "film"), ("0",))


def test_a_line_that_is_not_utf8_is_reported_with_a_guess_of_its_encoding(tmp_path: Path):
    rows = ["label,text", *(f"{n % 2},好 电影" for n in range(60))]
    (tmp_path / "a.csv").write_bytes(
        b"\n".join(r.encode("gbk" if n == 40 else "utf-8") for n, r in enumerate(rows))
    )
    with pytest.raises(DataError, match=r"a\.csv:41: not UTF-8 .*encoding='gb18030'"):
        read("classification", tmp_path / "a.csv")


def test_lines_may_end_with_a_carriage_return(tmp_path: Path):
    (tmp_path / "a.csv").write_bytes(b'label,text\r1,"a\r\nb"\r0,c\r')
    assert [e.sentences[0] for e in read("classification", tmp_path / "a.csv")] == [("a", "b"), ("c",)]


def test_labels_are_sorted_by_value_only_if_all_are_numbers(tmp_path: Path):
    def labels(*names: str) -> tuple[str, ...]:
        path = write(tmp_path, "a.csv", "label,text\n" + "".join(f"{name},a\n" for name in names))
        return Experiment("classification").make_task().learn(read("classification", path)).labels

    assert labels("10", "9", "-1") == ("-1", "9", "10")
    assert labels("②", "①") == ("①", "②")
    assert labels("--1", "²") == ("--1", "²")
    assert labels("1", "01", "0") == ("0", "01", "1")


def test_tagging_reads_columns_conllu_and_slashes(tmp_path: Path):
    conll = write(tmp_path, "a.conll", "-DOCSTART- O\n\nEU NNP I-ORG\nsays VB O\n\nx NN O\n")
    first, second = read("tagging", conll)
    assert (first.sentences[0], first.tags, first.scheme) == (("EU", "says"), ("S-ORG", "O"), "iob1")
    assert second.location == f"{conll}:6"
    assert read("tagging", conll, "data.tag=1")[0].tags == ("NNP", "VB")
    row = "{}\t{}\tl\tNOUN\tNN\t_\t0\troot\t_\t_\n"
    text = "# text = x\n" + row.format("1-2", "ab") + row.format(1, "a") + row.format(2, "b") + "\n"
    conllu = write(tmp_path, "a.conllu", text)
    assert read("tagging", conllu)[0].tags == ("NOUN", "NOUN")
    assert read("tagging", conllu, "data.tag=xpos")[0].sentences[0] == ("a", "b")
    slashed = write(tmp_path, "a.txt", "迈向/v  1/2/m\n")
    assert read("tagging", slashed)[0].sentences[0] == ("迈向", "1/2")


def test_relations_reads_marked_entities(tmp_path: Path):
    text = '1\t"the <e1>big fire</e1> burns <e2>wood</e2> ."\nCause(e1,e2)\nComment:\n\n'
    (example,) = read("relations", write(tmp_path, "a.txt", text))
    assert example.sentences[0] == ("the", "big", "fire", "burns", "wood", ".")
    assert [(m.start, m.stop) for m in example.entities] == [(1, 3), (4, 5)]
    assert example.label == "Cause(e1,e2)"


def test_a_number_starts_the_next_sentence_without_a_blank_line(tmp_path: Path):
    text = "".join(f"{MARKED.replace('1', str(n), 1)}\nR{n}\nComment: c\n" for n in range(3))
    assert [example.label for example in read("relations", write(tmp_path, "a.txt", text))] == [
        "R0",
        "R1",
        "R2",
    ]
    alone = write(tmp_path, "b.txt", f"{MARKED}\n{MARKED}\n\n{MARKED}\nComment: c\n")
    task = Experiment("relations").make_task()
    assert len(task.read(str(alone), SEGMENTER, labelled=False)) == 3


@pytest.mark.parametrize(
    ("task", "name", "text", "message"),
    [
        (
            "classification",
            "a.csv",
            "label,text\n1,a,b\n",
            r"a\.csv:2: 3 columns, expected 2 \(label, text\)",
        ),
        ("classification", "a.csv", "x,y\n1,a\n", r"a\.csv:2: no field 'text', 'label'; there are x, y"),
        ("classification", "a.csv", "", r"a\.csv:1: no header"),
        ("classification", "a.csv", 'label,text\n1,"a\n', r"a\.csv:\d+: .*quotation mark"),
        ("classification", "a.jsonl", "[1]\n", r"a\.jsonl:1: .*expected a record"),
        ("classification", "a.jsonl", "{\n", r"a\.jsonl:1: not valid JSON"),
        ("classification", "a.jsonl", '{"label": ["a", "b"], "text": "x"}\n', r"2 labels .*data\.multi=true"),
        ("classification", "a.train", "label\n", r"a\.train:1: .*expected a label, a space and a text"),
        ("tagging", "a.conll", "a O\nb X O\n", r"a\.conll:2: 3 columns, expected 2"),
        ("tagging", "a.conll", "a\n", r"a\.conll:1: 1 column"),
        ("tagging", "a.conllu", "1\ta\n", r"a\.conllu:1: 2 columns, expected 10"),
        ("tagging", "a.conll", "a\tO\nb\t\n", r"a\.conll:2: the tag is empty"),
        ("classification", "a.csv", "pos,a film\nneg,b\n", r"Is the first line, .* the columns, missing\?"),
        ("pairs", "a.jsonl", '{"sentence1": "a", "label": "x"}\n', r"a\.jsonl:1: no field 'sentence2'"),
        ("relations", "a.txt", '1\t"no marks"\nR\n\n', r"a\.txt:1: expected one <e1>"),
        ("relations", "a.txt", '1\t"<e1></e1> a <e2>b</e2>"\nR\n\n', r"a\.txt:1: expected one <e1>"),
        ("relations", "a.txt", "no number\nR\n\n", r"a\.txt:1: expected a number"),
        ("relations", "a.txt", f"{MARKED}\nComment: x\n\n", r"a\.txt:1: expected .*its relation on the next"),
        ("relations", "a.txt", f"{MARKED}\n{MARKED}\nR\n", r"a\.txt:1: expected .*its relation on the next"),
        ("relations", "a.txt", f"{MARKED}\nR\nmore\n", r"a\.txt:3: expected Comment: or the next numbered"),
        ("classification", "a.csv", "text,label,text\na,1,b\n", r"a\.csv:1: two columns are named 'text'"),
    ],
)
def test_errors_start_with_the_location(tmp_path: Path, task: str, name: str, text: str, message: str):
    with pytest.raises(DataError, match=message):
        read(task, write(tmp_path, name, text))


def test_illegal_tags_are_refused_with_their_line(tmp_path: Path):
    path = write(tmp_path, "a.conll", "a O\nb I-PER\n")
    with pytest.raises(DataError, match=r"a\.conll:2: I-PER cannot follow O in IOB2"):
        read("tagging", path, "data.scheme=iob2")


@pytest.mark.parametrize(
    ("mistake", "message"),
    [
        ("x O\ny I-PER\n", r"a\.conll:62: I-PER cannot follow O in IOB2\. .*data\.scheme to iob1"),
        ("x PER\n", r"a\.conll:61: PER is no tag in IOB2"),
        ("x X-PER\n", r"a\.conll:61: X-PER is no tag in IOB2"),
        ("x B\n", r"a\.conll:61: B is no tag in IOB2"),
    ],
)
def test_a_mistake_in_a_file_of_one_scheme_is_refused_with_its_line(
    tmp_path: Path, mistake: str, message: str
):
    path = write(tmp_path, "a.conll", "a B-PER\nb I-PER\n\n" * 20 + mistake)
    with pytest.raises(DataError, match=message):
        read("tagging", path)
    assert len(read("tagging", path, "data.scheme=none")) == 21


def test_a_few_slips_of_a_published_file_are_mended_with_a_warning(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
):
    good = "张 B-NAME\n三 E-NAME\n丰 O\n\n"
    path = write(tmp_path, "resume.bmes", good * 150 + "中 O\n国 M-ORG\n人 O\n\n" + good * 149)
    examples = read("tagging", path)
    assert len(examples) == 300
    assert examples[150].tags == ("O", "S-ORG", "O")
    (record,) = caplog.records
    assert "1 of 300 sentences have tags that break BMES" in record.message
    assert "resume.bmes:602: M-ORG cannot follow O" in record.message


def test_the_advice_for_bmes_does_not_name_iob1(tmp_path: Path):
    path = write(tmp_path, "a.bmes", "张 B-NAME\n三 E-NAME\n\n" * 20 + "国 M-ORG\n")
    with pytest.raises(DataError, match=r"in BMES\. Correct the line; or set data\.scheme to none"):
        read("tagging", path)


def test_tags_without_types_are_not_read_as_spans(tmp_path: Path):
    path = write(tmp_path, "a.conll", "a B\nb E\nc S\n")
    assert read("tagging", path)[0].tags == ("B", "E", "S")
    with pytest.raises(DataError, match=r"a\.conll:1: B is no tag in BMES\. .*none"):
        read("tagging", path, "data.scheme=bmes")


def test_compressed_conllu_is_read(tmp_path: Path):
    row = "1\ta\tl\tNOUN\tNN\t_\t0\troot\t_\t_\n\n"
    (tmp_path / "a.conllu.zst").write_bytes(zstandard.compress(("# text = a\n" + row).encode()))
    assert read("tagging", tmp_path / "a.conllu.zst")[0].tags == ("NOUN",)


def test_spaces_around_several_labels_are_removed(tmp_path: Path):
    path = write(tmp_path, "a.tsv", "text\tlabel\nx\ta | b\ny\ta|b\n")
    assert [e.labels for e in read("classification", path, "data.multi=true")] == [("a", "b")] * 2
    with pytest.raises(DataError, match=r"a\.tsv:2: an empty label"):
        read("classification", write(tmp_path, "a.tsv", "text\tlabel\nx\ta||b\n"), "data.multi=true")


def test_labels_must_be_numbers_if_the_answer_is_a_number(tmp_path: Path):
    row = '{"sentence1": "a", "sentence2": "b", "label": "much"}\n'
    with pytest.raises(DataError, match="expected a number"):
        read("pairs", write(tmp_path, "a.jsonl", row), "head.answer=number")


def test_long_sentences_are_truncated_or_refused(tmp_path: Path):
    long = "word " * 2000
    (example,) = read("classification", write(tmp_path, "a.csv", f"label,text\n1,{long}\n"))
    assert len(example.sentences[0]) == 1000
    tall = "".join("word O\n" for _ in range(2000))
    with pytest.raises(DataError, match=r"2,000 tokens, more than data\.max_tokens"):
        read("tagging", write(tmp_path, "a.conll", tall))
    assert read("tagging", write(tmp_path, "a.conll", tall), "data.max_tokens=3000")


def test_labels_that_are_not_in_the_training_data_are_refused(tmp_path: Path):
    train = write(tmp_path, "a.csv", "label,text\n1,a\n0,b\n1,c\n")
    test = write(tmp_path, "t.csv", "label,text\n1,a\n2,b\n")
    with pytest.raises(DataError, match=r"t\.csv:3: the label '2' is not in the training data \(0, 1\)"):
        prepare(Experiment("classification"), toys.elmo(), (train, train, test))


UNSEEN = {
    "tagging": ("a O\nb B-PER\n\n", "a O\nc O\nb B-LOC\n\n", r":3: the type 'LOC' is not in the training"),
    "pairs": ('{"sentence1": "a", "sentence2": "b", "label": "%s"}\n', "maybe", r":1: the label 'maybe'"),
    "relations": ('1\t"<e1>a</e1> <e2>b</e2>"\n%s\n\n', "Other", r":1: the label 'Other'"),
}


@pytest.mark.parametrize("task", UNSEEN)
def test_unknown_labels_are_refused_in_every_task(tmp_path: Path, task: str):
    row, new, message = UNSEEN[task]
    known = "".join(row % label for label in ("A", "B")) if "%s" in row else row * 3
    train = write(tmp_path, "train.jsonl" if task == "pairs" else "train.txt", known)
    test = write(tmp_path, f"test{train.suffix}", row % new if "%s" in row else new)
    with pytest.raises(DataError, match=message):
        prepare(Experiment(task), toys.elmo(), (train, train, test))


def test_an_unknown_tag_is_reported_with_its_line(tmp_path: Path):
    train = write(tmp_path, "a.conll", "a NN\nb VB\n\n" * 3)
    test = write(tmp_path, "t.conll", "a NN\nb VB\nc XX\n")
    with pytest.raises(DataError, match=r"t\.conll:3: the tag 'XX' is not in the training data"):
        prepare(Experiment("tagging"), toys.elmo(), (train, train, test))


def test_data_with_one_label_only_is_refused(tmp_path: Path):
    path = write(tmp_path, "a.csv", "label,text\n1,a\n1,b\n")
    with pytest.raises(DataError, match="only one label, 1"):
        prepare(Experiment("classification"), toys.elmo(), (path, path, None))


def test_a_single_file_is_split_by_the_seed(tmp_path: Path):
    rows = "".join(f"{n % 2},text {n}\n" for n in range(50))
    path = write(tmp_path, "a.csv", "label,text\n" + rows)
    files = (path, None, None)
    data, repeated = (prepare(Experiment("classification"), toys.elmo(), files)[1] for _ in range(2))
    assert (len(data.train), len(data.dev)) == (40, 10)
    assert data == repeated
    experiment = Experiment("classification", settings=["train.seed=2"])
    assert prepare(experiment, toys.elmo(), files)[1].dev != data.dev


@pytest.mark.parametrize("seed", range(1, 9))
def test_a_rare_label_stays_in_the_training_part_of_a_single_file(tmp_path: Path, seed: int):
    rows = "".join(f"{n % 2},text {n}\n" for n in range(18))
    path = write(tmp_path, "a.csv", "label,text\n" + rows + "rare,a text\nseldom,another\n")
    experiment = Experiment("classification", settings=[f"train.seed={seed}"])
    data, repeated = (prepare(experiment, toys.elmo(), (path, None, None))[1] for _ in range(2))
    assert data == repeated
    assert (len(data.train), len(data.dev)) == (16, 4)
    assert {"rare", "seldom"} <= {label for example in data.train for label in example.labels}  # type: ignore[attr-defined]


def test_a_rare_entity_type_stays_in_the_training_part_of_a_single_file(tmp_path: Path):
    text = "a B-PER\nb O\n\n" * 9 + "c B-LOC\nd I-LOC\n"
    for seed in range(1, 9):
        experiment = Experiment("tagging", settings=[f"train.seed={seed}"])
        data = prepare(experiment, toys.elmo(), (write(tmp_path, "a.conll", text), None, None))[1]
        assert len(data.dev) == 2
        assert any("B-LOC" in example.tags for example in data.train)  # type: ignore[attr-defined]


def test_a_file_that_is_too_small_to_split_is_refused(tmp_path: Path):
    path = write(tmp_path, "a.csv", "label,text\n1,a\n0,b\n")
    with pytest.raises(DataError, match=r"a\.csv: no example can be held out.*`dev`"):
        prepare(Experiment("classification"), toys.elmo(), (path, None, None))


def test_labels_in_data_skip_are_skipped(tmp_path: Path):
    path = write(tmp_path, "a.csv", "label,text\n1,a\n-,b\n")
    assert len(read("classification", path, 'data.skip=["-"]')) == 1


@pytest.mark.parametrize(
    ("task", "settings", "message"),
    [
        ("classification", ["input.elmo=none", "input.words=0"], "has no input"),
        ("classification", ["head.pool=last", "encoder.directions=0"], 'head.pool="last"'),
        ("tagging", ["train.class_weights=balanced"], "class_weights"),
        ("tagging", ["data.multi=true"], "data.multi"),
        ("tagging", ["head.pool=mean"], "head.pool"),
        ("pairs", ["head.pool=max"], "head.pool"),
        ("relations", ["head.pool=mean"], "head.pool"),
        ("classification", ["data.positive=yes"], "data.positive"),
        ("tagging", ["input.elmmo=none"], "elmo"),
        ("taging", [], "Did you mean tagging"),
    ],
)
def test_settings_that_do_not_fit_the_task_are_refused(task: str, settings: list[str], message: str):
    with pytest.raises(ConfigError, match=message):
        Experiment(task, settings=settings).make_task()


def test_a_preset_of_another_task_is_refused():
    with pytest.raises(ConfigError, match="a preset of pairs, not of tagging"):
        Experiment("tagging", "pairs").make_task()


def test_invalid_shares_and_numbers_of_runs_are_refused():
    with pytest.raises(UsageError, match="share of the curve"):
        Experiment("tagging", curve=[1.5]).list_runs(1)
    with pytest.raises(UsageError, match="runs is 0"):
        Experiment("tagging", runs=0).list_runs(1)


def test_a_layer_that_does_not_exist_is_refused(tmp_path: Path):
    task = Experiment("tagging", settings=["input.layers=9"]).make_task()
    with pytest.raises(PolysemeError, match="has layers 0 to 2"):
        make_store(task.settings.input, toys.elmo())
