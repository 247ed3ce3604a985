"""The `polyseme` program: its output, files and exit codes.

L layers, T tokens, H = both directions.
"""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable
from pathlib import Path

import h5py
import numpy as np
import pyarrow.parquet as pq
import pytest
import zstandard

import polyseme
import reference
from builders import write_bilm
from programs import TEXT, Ran

L, H = 3, 8  # of small_config


def read_vectors(path: str) -> list[np.ndarray]:
    """The arrays of a vector file, in order."""
    if path.endswith(".npz"):
        with np.load(path, allow_pickle=False) as file:
            return [file[str(number)] for number in range(len(file.files))]
    with h5py.File(path) as file:
        return [file[str(number)][()] for number in range(len(file))]


def assert_close(arrays: list[np.ndarray], expected: list[np.ndarray], atol: float = 1e-6) -> None:
    assert [array.shape for array in arrays] == [array.shape for array in expected]
    for array, expected_array in zip(arrays, expected, strict=True):
        np.testing.assert_allclose(array, expected_array, atol=atol)


# ---- info ----


def test_info_describes_a_model(run, bilm):
    ran = run("info", bilm)
    assert ran.code == 0
    assert ran.err == ""
    facts = [" ".join(line.split()) for line in ran.out.splitlines()]
    assert facts == [
        "tokens char-CNN over bytes, at most 12 a word, 5 filters, relu, highways: 1, projected",
        "layers 3 (token layer and 2 of lstm 6 cells projected to 4, cell clip 3, output clip 3, residual)",
        "vector 8 values",
        "parameters 1,859 without the softmax",
        "segmentation split",
        "vocabulary 12 words",
        "softmax no",
        "origin: format bilm-tf/AllenNLP hdf5",
        "origin: file model.hdf5",
    ]


def test_info_can_be_json(run, bilm, models):
    facts = json.loads(run("info", bilm, "--json").out)
    assert (facts["path"], facts["layers"], facts["size"], facts["parameters"]) == (bilm, L, H, 1859)
    assert facts["vocabulary"] == 12
    assert facts["softmax"] is False
    assert polyseme.load(bilm).config.model_dump(mode="json") == facts["config"]
    chinese = run("info", models / "zh", "--json")
    assert json.loads(chinese.out)["config"]["segment"] == "zh"


def test_info_shows_brackets_verbatim(run, models, tmp_path):
    config = json.loads((models / "zh" / "config.json").read_text(encoding="utf-8"))
    config["origin"] = {"corpus": "[red]三国[/red] [/nothing] |"}
    for file in (models / "zh").iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "config.json").write_text(json.dumps(config), encoding="utf-8")
    assert "[red]三国[/red] [/nothing] |" in run("info", tmp_path).out


# ---- convert ----


def test_convert_works_in_both_directions(run, bilm):
    ran = run("convert", bilm, "native", "--to", "native")
    assert ran == Ran(0, f"{bilm} -> native (native)\n", "")
    assert sorted(file.name for file in Path("native").iterdir()) == [
        "README.md",
        "config.json",
        "model.safetensors",
        "vocab.txt",
    ]
    assert run("convert", "native", "back", "--to", "hdf5").code == 0
    with h5py.File(Path(bilm, "model.hdf5")) as original, h5py.File("back/model.hdf5") as converted:
        names: list[str] = []
        original.visititems(lambda name, item: names.append(name) if isinstance(item, h5py.Dataset) else None)
        assert names
        assert all(original[name][()].tobytes() == converted[name][()].tobytes() for name in names)
    text = "the bank failed"
    np.testing.assert_array_equal(polyseme.load("back").embed(text), polyseme.load(bilm).embed(text))


def test_convert_writes_the_native_format_by_default(run, bilm):
    assert run("convert", bilm, "new/model").code == 0
    assert Path("new/model/model.safetensors").is_file()


def test_convert_overwrites_only_with_force(run, bilm):
    run("convert", bilm, "native")
    ran = run("convert", bilm, "native")
    assert ran.code == 2
    assert "native: exists already" in ran.err
    assert run("convert", bilm, "native", "--force").code == 0


def test_the_options_file_of_an_hdf5_model_can_be_named(run, tmp_path):
    write_bilm(tmp_path / "a", weights="w.hdf5", options="o.json")
    write_bilm(tmp_path / "b", weights="w.hdf5", options="o.json")
    moved = (tmp_path / "a" / "o.json").rename(tmp_path / "elsewhere.json")
    assert run("info", "a/w.hdf5").code == 2
    for verb in (("info",), ("convert", "out"), ("embed", "text.txt", "--out", "x.npz")):
        arguments = (verb[0], "a/w.hdf5", *verb[1:], "--options", moved)
        assert run(*arguments).code == 0


# ---- embed: sources of text ----


def test_embed_writes_the_vectors_of_each_line(run, bilm):
    ran = run("embed", bilm, "text.txt", "--out", "x.hdf5")
    assert ran == Ran(0, "x.hdf5: 3 sentences, 11 tokens\n", "")
    assert_close(read_vectors("x.hdf5"), polyseme.load(bilm).embed(TEXT.split("\n")[:-1]))
    with h5py.File("x.hdf5") as file:
        assert [file[key].attrs["sentence"] for key in "012"] == TEXT.split("\n")[:-1]


def test_text_can_come_from_a_pipe_a_compressed_file_or_a_folder(run, bilm):
    run("embed", bilm, "text.txt", "--out", "x.npz")
    expected = read_vectors("x.npz")
    Path("t.gz").write_bytes(gzip.compress(TEXT.encode()))
    Path("t.zst").write_bytes(zstandard.compress(TEXT.encode()))
    Path("folder/.hidden").mkdir(parents=True)
    Path("folder/1.txt").write_text("He sat on the river bank .\n\n")
    Path("folder/2.txt").write_text("The bank failed .")
    Path("folder/.hidden/3.txt").write_text("never read")
    for number, source in enumerate(("-", "t.gz", "t.zst", "folder")):
        ran = run("embed", bilm, source, "--out", f"{number}.npz", stdin=TEXT.encode())
        assert ran == Ran(0, f"{number}.npz: 3 sentences, 11 tokens\n", "")
        assert_close(read_vectors(f"{number}.npz"), expected)


def test_an_empty_text_gives_an_empty_file(run, bilm):
    for ending in ("hdf5", "npz", "parquet"):
        ran = run("embed", bilm, "-", "--out", f"x.{ending}")
        assert ran == Ran(0, f"x.{ending}: 0 sentences, 0 tokens\n", "")
    assert read_vectors("x.hdf5") == read_vectors("x.npz") == []
    assert len(pq.read_table("x.parquet")) == 0


# ---- embed: options ----


@pytest.mark.parametrize(
    ("option", "layer"),
    [
        ("mean", "mean"),
        ("top", "top"),
        ("all", "all"),
        ("0", 0),
        ("2", 2),
        ("0.2,0.3,0.5", [0.2, 0.3, 0.5]),
        ("0.2, 0.3, 0.5*1.5", ([0.2, 0.3, 0.5], 1.5)),
        ("1,-1,0*-2", ([1, -1, 0], -2.0)),
    ],
)
def test_layer_takes_every_value_of_elmo_embed(run, bilm, option, layer):
    assert run("embed", bilm, "text.txt", "--out", "x.npz", "--layer", option).code == 0
    assert_close(read_vectors("x.npz"), polyseme.load(bilm).embed(TEXT.split("\n")[:-1], layer=layer))


@pytest.mark.parametrize("pool", ["mean", "max", "first", "last", "sum"])
def test_pool_gives_one_vector_per_sentence(run, bilm, pool):
    run("embed", bilm, "text.txt", "--out", "x.npz", "--pool", pool, "--direction", "forward")
    expected = polyseme.load(bilm).embed(TEXT.split("\n")[:-1], pool=pool, direction="forward")
    assert_close(read_vectors("x.npz"), list(expected))
    run("embed", bilm, "text.txt", "--out", "x.parquet", "--pool", pool, "--layer", "all")
    table = pq.read_table("x.parquet")
    assert table["text"].to_pylist() == TEXT.split("\n")[:-1]
    assert table.schema.metadata[b"shape"] == b"3,8"


def test_raw_english_is_segmented(run, bilm):
    Path("raw.txt").write_text('"Don\'t!" he said\nto Mr. Smith. It\nrained.\n\nThe end.')
    ran = run("embed", bilm, "raw.txt", "--out", "x.parquet", "--segment", "en")
    assert ran.out.startswith("x.parquet: 3 sentences, ")
    table = pq.read_table("x.parquet")
    assert "Mr." in table["token"].to_pylist()
    assert table["token"].to_pylist()[-3:] == ["The", "end", "."]
    assert table["sentence"].to_pylist()[-6:] == [1, 1, 1, 2, 2, 2]


def test_raw_chinese_is_segmented(run, bilm, models):
    text = "他在银行工作。下雨了！\n第二段。".encode()
    ran = run("embed", models / "zh", "-", "--out", "x.parquet", stdin=text)  # as the model was trained
    assert ran.out == "x.parquet: 3 sentences, 10 tokens\n"
    table = pq.read_table("x.parquet")
    assert " ".join(table["token"].to_pylist()) == "他 在 银行 工作 。 下雨 了 ！ 第二段 。"
    assert table["sentence"].to_pylist() == [0, 0, 0, 0, 0, 1, 1, 1, 2, 2]
    for segment, tokens in (("zh", 10), ("zh-char", 15), ("split", 2)):
        ran = run("embed", bilm, "-", "--out", f"{segment}.npz", "--segment", segment, stdin=text)
        assert f", {tokens} tokens" in ran.out


def test_stateful_carries_the_state_from_sentence_to_sentence_as_bilm_tf_does(run, bilm):
    lines = [line for line in TEXT.splitlines() if line] * 2
    text = "\n".join(lines).encode()
    run("embed", bilm, "-", "--out", "x.hdf5", "--stateful", "--layer", "all", stdin=text)
    model = polyseme.load(bilm).model
    weights = {name: value.numpy() for name, value in model.network.state_dict().items()}
    state, expected = None, []
    for line in lines:
        chars = [[reference.byte_row(token, 12) for token in ["<S>", *line.split(), "</S>"]]]
        read = reference.read(model.config, weights, [len(chars[0])], chars=np.array(chars), state=state)
        state = read.state
        expected.append(read.layers[0][:, 1:-1])
    assert_close(read_vectors("x.hdf5"), expected, atol=1e-5)
    assert np.abs(expected[0] - expected[2]).max() > 1e-3  # the same line, another state


def test_float16_rounds_vectors_and_small_batches_change_nothing(run, bilm):
    run("embed", bilm, "text.txt", "--out", "x.npz")
    run("embed", bilm, "text.txt", "--out", "y.npz", "--batch-tokens", "1")
    assert_close(read_vectors("y.npz"), read_vectors("x.npz"))
    run("embed", bilm, "text.txt", "--out", "z.hdf5", "--dtype", "float16")
    assert all(array.dtype == np.float16 for array in read_vectors("z.hdf5"))
    assert_close(read_vectors("z.hdf5"), read_vectors("x.npz"), atol=2e-3)


def test_truncated_tokens_are_reported(run, bilm):
    words = ["short"] * 10
    ran = run("embed", bilm, "-", "--out", "x.npz", stdin=" ".join(["much-too-long", *words]).encode())
    report = "1 token longer than the model reads: truncated."
    assert ran == Ran(0, f"x.npz: 1 sentence, 11 tokens\n{report}\n", "")


def test_raw_text_for_a_model_of_tokenised_text_gives_advice(run, bilm):
    text = "他在银行工作。\n下雨了！\n".encode()
    assert run("embed", bilm, "-", "--out", "x.npz", stdin=text).out.endswith(
        "truncated. If the text is not tokenised, use --segment en, zh or auto.\n"
    )
    assert "tokenised" not in run("embed", bilm, "-", "--out", "y.npz", "--segment", "zh", stdin=text).out


def test_force_replaces_a_file(run, bilm):
    Path("x.npz").write_text("old")
    assert run("embed", bilm, "text.txt", "--out", "x.npz").code == 2
    assert Path("x.npz").read_text() == "old"
    assert run("embed", bilm, "text.txt", "--out", "x.npz", "--force").code == 0
    assert len(read_vectors("x.npz")) == 3


def test_the_command_advised_for_a_model_without_softmax_works(run, bilm):
    Path("words.txt").write_text("the bank of the river failed\nthe river of the bank\n" * 50)
    advice = run("score", bilm, "words.txt").err.partition("train one from it: polyseme ")[2]
    values = {"TEXT": "words.txt", "MODEL": bilm, "OUT": "trained"}
    quick = ("--config", "tiny", "--set", "corpus.documents=line", "--set", "train.epochs=1")
    assert run(*(values.get(word, word) for word in advice.strip(".\n").split()), *quick).code == 0
    assert run("score", "trained", "words.txt").code == 0


# ---- nearest ----


def test_nearest_prints_words_with_cosines_and_counts(run: Callable[..., Ran], models: Path, bilm: str):
    words = polyseme.mean_vectors(polyseme.load(bilm), TEXT.splitlines(), min_count=1)
    words.save("w.safetensors")
    word = words.words[0]
    expected = polyseme.open_words("w.safetensors").nearest(word, 2)
    ran = run("nearest", "w.safetensors", word, "-k", "2")
    assert ran.out.splitlines() == [f"{c:.3f}\t{words.count(w)}\t{w}" for w, c in expected]
    rows = json.loads(run("nearest", "w.safetensors", word, "-k", "2", "--json").out)
    assert [(row["word"], row["cosine"]) for row in rows] == expected


def test_nearest_to_an_unknown_word_suggests_a_spelling(run: Callable[..., Ran], bilm: str):
    words = polyseme.mean_vectors(polyseme.load(bilm), [["river", "bank"]], min_count=1)
    words.save("w.safetensors")
    ran = run("nearest", "w.safetensors", "rivers")
    assert ran.code == 2
    assert "Did you mean river?" in ran.err
    assert run("nearest", bilm, "river").code == 2


# ---- train, predict, evaluate of a task ----

DATA = Path(__file__).parent.parent / "examples" / "data"


def test_a_task_is_trained_and_then_predicts_and_is_evaluated(run: Callable[..., Ran], bilm: str):
    settings = ("--set", "train.epochs=1", "--set", "encoder.size=8")
    trained = run(
        "train", "tagging", bilm, "--train", DATA / "names.conll", "--out", "names", *settings, "--compare"
    )
    assert trained.code == 0, trained.err
    assert "with ELMo" in trained.out
    assert "without ELMo" in trained.out
    assert "Mix 1: layer 0:" in trained.out
    assert "with ELMo, seed 1: epoch 1: F1" in trained.err
    lines = run("predict", "names", DATA / "names.conll").out.splitlines()
    assert len(lines) == 10
    assert json.loads(lines[0])["tokens"] == ["Anna", "Weber", "went", "to", "Hamburg", "."]
    columns = run("predict", "names", DATA / "names.conll", "--format", "columns").out
    assert columns.startswith("Anna\t")
    Path("raw.txt").write_text("Anna left .\n\nLondon\n", encoding="utf-8")
    raw = run(
        "predict", "names", "raw.txt", "--plain-text"
    ).out.splitlines()  # one per line, also for blank lines
    assert [json.loads(line)["tokens"] for line in raw] == [["Anna", "left", "."], [], ["London"]]
    assert run("evaluate", "names", DATA / "names.conll").out.startswith("F1\t")
    scores = json.loads(run("evaluate", "names", DATA / "names.conll", "--json").out)
    assert scores["main"] == "F1"


def test_a_dry_run_checks_files_and_trains_nothing(run: Callable[..., Ran], bilm: str):
    ran = run("train", "classification", bilm, "--train", DATA / "reviews.zh.csv", "--dry-run")
    assert ran.code == 0, ran.err
    assert "train: 8 examples" in ran.out
    assert "dev: 2 examples" in ran.out
    assert "test:" not in ran.out  # none was given
    assert not Path("out").exists()


def test_probes_print_one_row_per_layer(run: Callable[..., Ran], bilm: str):
    epochs = ("--set", "train.epochs=1")
    ran = run("train", "probes", bilm, "--train", DATA / "names.conll", "--out", "probes", *epochs)
    assert ran.code == 0, ran.err
    assert [line.split("|")[1].strip() for line in ran.out.splitlines()[2:5]] == [
        "layer 0",
        "layer 1",
        "layer 2",
    ]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["train", "taging", "{bilm}", "--train", "text.txt", "--out", "x"], "Did you mean tagging?"),
        (["train", "tagging", "{bilm}", "--train", "none.conll", "--out", "x"], "no such file"),
        (["train", "tagging", "{bilm}", "--train", "text.txt"], "needs --out"),
        (["train", "pairs", "{bilm}", "--train", "text.txt", "--out", "x", "--curve", "a"], "shares such as"),
        (["predict", "{bilm}", "text.txt"], "no task.json in it"),
    ],
)
def test_invalid_arguments_for_tasks_are_a_one_line_error(
    run: Callable[..., Ran], bilm: str, arguments: list[str], message: str
):
    ran = run(*(argument.format(bilm=bilm) for argument in arguments))
    assert ran.code == 2
    assert message in ran.err
    assert len(ran.err.strip().splitlines()) == 1
    assert not Path("x").exists()
