"""What an attack once found, each with the damage that showed it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
import torch
from safetensors.torch import load_file, save_file

import polyseme
from faults import readers
from polyseme.config import read_values
from polyseme.elmo import Elmo
from polyseme.errors import ConfigError, DataError, FormatError, PolysemeError, UsageError
from polyseme.formats.models.open import open_pretrained
from polyseme.formats.safe_hdf5 import SafeFile
from polyseme.json_text import parse_digits, parse_json
from polyseme.search.sense_data import read_sense_data
from polyseme.server.served_models import open_models
from polyseme.training.pretrain import pretrain
from polyseme.training.settings import read_pretrain_settings
from polyseme.word_vectors import WordVectors, open_words

Change = Callable[[dict[str, Any]], object]


def rewrite_json(path: Path, change: Change) -> None:
    values = json.loads(path.read_text(encoding="utf-8"))
    change(values)
    path.write_text(json.dumps(values), encoding="utf-8")


def rewrite_tensors(path: Path, **tensors: Any) -> None:
    save_file(load_file(path) | tensors, path)


# ---- hdf5 ----


def loop_the_tree(path: Path) -> None:
    """Let the tree of names of the root group be its own child."""
    content = bytearray(path.read_bytes())
    node = content.index(b"TREE")
    content[node + 5] = 1  # its children are nodes, too
    content[node + 32 : node + 40] = node.to_bytes(8, "little")
    path.write_bytes(content)


def test_a_tree_of_names_that_contains_itself_is_refused(tmp_path: Path):
    with h5py.File(tmp_path / "dump.hdf5", "w") as file:
        for number in range(40):
            file[str(number)] = np.ones((2, 3), np.float32)
    loop_the_tree(tmp_path / "dump.hdf5")
    with pytest.raises(FormatError, match=r"dump\.hdf5: (damaged|not a)"):
        polyseme.open_vectors(tmp_path / "dump.hdf5")


def test_other_files_stay_open_when_one_ends_the_process_that_reads(tmp_path: Path):
    with h5py.File(tmp_path / "good.hdf5", "w") as file:
        file["0"] = np.ones((2, 3), np.float32)
    good = SafeFile(tmp_path / "good.hdf5")
    good._process._process.kill()  # as the system does when the time is over
    good._process._process.wait()
    with pytest.raises(FormatError, match=r"good\.hdf5: damaged: reading '0' does not end, or crashes"):
        good.read("0")
    assert good.read("0").sum() == 6  # in a new process
    good.close()


@pytest.mark.parametrize("dtype", ["i4", "u1", "S3", "c8"])
def test_dumps_of_other_numbers_are_no_vectors(dtype: str, tmp_path: Path):
    with h5py.File(tmp_path / "dump.hdf5", "w") as file:
        file["0"] = np.ones((2, 3)).astype(dtype)
    refused = pytest.raises(FormatError, match="expected floating-point numbers")
    with polyseme.open_vectors(tmp_path / "dump.hdf5") as vectors, refused:
        vectors[0]


@pytest.mark.parametrize("ending", [".npz", ".safetensors", ".hdf5"])
def test_vectors_that_are_not_finite_are_refused(ending: str, tmp_path: Path):
    path = tmp_path / f"v{ending}"
    values = np.full((2, 3), np.nan, np.float32)
    if ending == ".npz":
        np.savez(path, **{"0": values})  # type: ignore[arg-type]
    elif ending == ".hdf5":
        with h5py.File(path, "w") as file:
            file["0"] = values
    else:
        (tmp_path / "t.txt").write_text("the bank\n", encoding="utf-8")
        polyseme.embed(readers.small_elmo(), tmp_path / "t.txt", path)
        content = path.read_bytes()
        path.write_bytes(content[:1024] + b"\xff" * 16 + content[1040:])
    with pytest.raises(FormatError, match="sentence 0 contains NaN"):
        polyseme.open_vectors(path)[0]


def test_an_npz_archive_of_integers_or_of_an_unknown_version_is_refused(tmp_path: Path):
    np.savez(tmp_path / "v.npz", **{"0": np.ones((2, 3), np.uint8)})  # type: ignore[arg-type]
    with pytest.raises(FormatError, match="uint8, not vectors"):
        polyseme.open_vectors(tmp_path / "v.npz")[0]
    content = bytearray((tmp_path / "v.npz").read_bytes())
    content[content.index(b"PK\1\2") + 6] = 99  # the version that is needed to extract it
    (tmp_path / "v.npz").write_bytes(content)
    with pytest.raises(FormatError, match=r"not a \.npz file, or damaged"):
        polyseme.open_vectors(tmp_path / "v.npz")


def test_an_int8_model_with_scales_that_are_not_finite_is_refused(tmp_path: Path):
    readers.make_native("int8", tmp_path)
    path = tmp_path / "model" / "model.safetensors"
    name = next(name for name in load_file(path) if name.endswith(".scales"))
    for value in (torch.nan, torch.inf, 3e38):
        rewrite_tensors(path, **{name: torch.full_like(load_file(path)[name], value)})
        with pytest.raises(FormatError, match=r"model\.safetensors: .*(NaN|infinite|too large)"):
            Elmo(open_pretrained(tmp_path / "model", precision=None)).embed(readers.SENTENCES)


# ---- indexes ----


@pytest.fixture(scope="module")
def intact_index(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("intact")
    readers.make_index(folder)
    return folder / "index"


TENSORS: dict[str, Callable[[Path], None]] = {
    "lengths of float64": lambda f: rewrite_tensors(
        f / "lengths.safetensors", lengths=load_file(f / "lengths.safetensors")["lengths"].double()
    ),
    "lengths of int64": lambda f: rewrite_tensors(
        f / "lengths.safetensors", lengths=load_file(f / "lengths.safetensors")["lengths"].long() + 1
    ),
    "lengths of bf16": lambda f: rewrite_tensors(
        f / "lengths.safetensors", lengths=load_file(f / "lengths.safetensors")["lengths"].bfloat16()
    ),
    "a wide centre": lambda f: rewrite_tensors(f / "space.safetensors", centre=torch.zeros(99)),
    "a turn of NaN": lambda f: rewrite_tensors(f / "space.safetensors", turn=torch.full((8, 8), torch.nan)),
    "narrow vectors": lambda f: rewrite_tensors(
        f / "block-00000.safetensors",
        vectors=load_file(f / "block-00000.safetensors")["vectors"][:, :4].clone(),
    ),
    "sentences out of order": lambda f: rewrite_tensors(
        f / "block-00000.safetensors",
        sentences=load_file(f / "block-00000.safetensors")["sentences"].flip(0).contiguous(),
    ),
    "vectors of bf16": lambda f: rewrite_tensors(
        f / "block-00000.safetensors", vectors=load_file(f / "block-00000.safetensors")["vectors"].bfloat16()
    ),
}
VALUES: dict[str, Change] = {
    "numbers as documents": lambda head: head.update(documents=[3]),
    "no anisotropy values": lambda head: head.update(anisotropy={}),
    "a size of another type": lambda head: head.update(size=True),
    "an unknown space": lambda head: head.update(space="x"),
    "usages below zero": lambda head: head["blocks"][0].update(usages=-1),
    "no content": lambda head: head["corpora"][0].pop("content"),
    "a list as name": lambda head: head.update(name=[]),
}


@pytest.mark.parametrize("damage", [*TENSORS, *VALUES])
def test_a_damaged_index_is_refused_when_it_is_opened(damage: str, intact_index: Path, tmp_path: Path):
    folder = tmp_path / "index"
    shutil.copytree(intact_index, folder)
    if damage in TENSORS:
        TENSORS[damage](folder)
    else:
        rewrite_json(folder / "index.json", VALUES[damage])
    with pytest.raises(FormatError, match=rf"{folder}.*"):
        polyseme.open_index(folder, readers.small_elmo())


def test_a_graph_with_links_out_of_bounds_is_refused(tmp_path: Path):
    pytest.importorskip("usearch")
    readers.make_graph_index(tmp_path)
    path = tmp_path / "index" / "graph.usearch"
    intact = path.read_bytes()
    ask = partial(polyseme.nearest, context="the river bank", approximate=True, k=3)
    assert ask(polyseme.open_index(tmp_path / "index", readers.small_elmo()), "bank")
    for offset in (40, 100, 200):  # in the nodes, from the end
        damaged = bytearray(intact)
        damaged[-offset : -offset + 4] = b"\xff\xff\xff\x7f"
        path.write_bytes(damaged)
        with suppress(FormatError):  # never a crash
            ask(polyseme.open_index(tmp_path / "index", readers.small_elmo()), "bank")
    path.write_bytes(intact[: -(len(intact) // 2)] + b"\xff" * (len(intact) // 2))
    with pytest.raises(FormatError, match="not the graph of this index, or damaged"):
        ask(polyseme.open_index(tmp_path / "index", readers.small_elmo()), "bank")


# ---- tasks ----


@pytest.fixture(scope="module")
def intact_task(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("intact")
    readers.make_task("tagging", "train.conll", readers.TAGGING, folder)
    return folder / "task"


@pytest.mark.parametrize("dtype", [torch.float64, torch.bfloat16, torch.int8, torch.bool])
def test_head_tensors_of_another_type_are_refused(dtype: torch.dtype, intact_task: Path, tmp_path: Path):
    shutil.copytree(intact_task, tmp_path / "task")
    head = tmp_path / "task" / "head.safetensors"
    name = min(load_file(head))
    rewrite_tensors(head, **{name: load_file(head)[name].to(dtype)})
    with pytest.raises(FormatError, match=r"head\.safetensors: .* does not fit task\.json"):
        polyseme.load_task(tmp_path / "task")


@pytest.mark.parametrize(
    "change",
    [
        lambda values: values.pop("elmo"),
        lambda values: values.update(elmo={"path": 3}),
        lambda values: values.update(elmo={"path": "a" * 5000, "fingerprint": "x"}),
        lambda values: values.update(scores={"dev": 3}),
        lambda values: values["learned"].update(labels=[1.5]),
    ],
)
def test_values_of_a_task_of_another_type_are_refused(change: Change, intact_task: Path, tmp_path: Path):
    shutil.copytree(intact_task, tmp_path / "task")
    rewrite_json(tmp_path / "task" / "task.json", change)
    with pytest.raises(FormatError, match=r"task"):
        polyseme.load_task(tmp_path / "task")


# ---- text and settings ----


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("t.conllu", "1\tAnna\t_\tX\t_\t_\t0\t_\t_\t_\n2\tsees\t_\tX\t_\t_\t1\t_\t_\t_\n\n"),
        ("t.jsonl", '{"text": "Anna sees"}\n'),
    ],
)
def test_a_text_of_two_tokens_trains_or_is_refused(name: str, content: str, tmp_path: Path):
    (tmp_path / name).write_text(content, encoding="utf-8")
    config = read_pretrain_settings("tiny", ["train.epochs=1", "corpus.valid_tokens=1"])
    try:
        pretrain([tmp_path / name], tmp_path / "model", config, workers=1)
    except DataError as problem:
        assert name in str(problem)  # noqa: PT017
        return
    assert len(open_words(tmp_path / "model")) == 0
    assert open_pretrained(tmp_path / "model").vocab is not None


def test_word_vectors_of_no_words_can_be_written_and_read(tmp_path: Path):
    empty = np.zeros((0, 4), np.float32)
    WordVectors((), np.zeros(0, np.int64), empty, np.zeros(4, np.float32)).save(tmp_path / "w.safetensors")
    assert len(open_words(tmp_path / "w.safetensors")) == 0


def test_a_very_long_name_in_the_config_of_manylangs_is_refused(tmp_path: Path):
    readers.READERS["manylangs"].make(tmp_path)
    path = tmp_path / "m" / "config.json"
    rewrite_json(path, lambda values: values.update(config_path="configs/" + "a" * 5000))
    with pytest.raises(FormatError, match=r"aaa: no such file, but config\.json names it"):
        open_pretrained(tmp_path / "m")


def test_a_very_long_name_of_a_model_is_refused():
    with pytest.raises(UsageError, match="a text of 5,000 characters"):
        polyseme.load("a" * 5000)


@pytest.mark.parametrize("text", ["a." * 40_000 + "b = 1\n", f"[{'a.' * 40_000}b]\n", "a = 1\n" * 200_000])
def test_hostile_toml_is_refused_before_it_costs_a_gigabyte(text: str, tmp_path: Path):
    (tmp_path / "x.toml").write_text(text, encoding="utf-8")
    with pytest.raises(ConfigError, match=r"x\.toml.*(parts|characters)"):
        read_values(tmp_path / "x.toml")


def test_brackets_without_an_end_are_read_in_linear_time(tmp_path: Path):
    line = "1\tdog\t_\tX\t_\t_\t0\t_\t_\tEntity=" + "a." * 200_000 + "\n\n"
    (tmp_path / "x.conllu").write_text(line, encoding="utf-8")
    with pytest.raises(DataError):
        readers.api.count_examples("coref", readers.small_elmo(), train=tmp_path / "x.conllu")


def test_a_message_never_breaks_the_line_or_controls_the_terminal():
    problem = PolysemeError("a\nb\x1b[2J\u202e" + "x" * 9000)
    assert str(problem).startswith("a b\\x1b[2J\\u202e")
    assert len(str(problem)) < 2100


# ---- a third attack ----


def test_half_a_character_in_json_is_read_as_damaged_text(intact_index: Path, tmp_path: Path):
    assert parse_json(r'{"a": "\ud83d\ude00 \ud83d!"}') == {"a": "😀 \ufffd!"}
    (tmp_path / "t.jsonl").write_text('{"text": "the bank \\ud83d", "label": "\\udc00"}\n' * 9, "utf-8")
    polyseme.index(readers.small_elmo(), tmp_path / "t.jsonl", tmp_path / "index")
    shutil.copytree(intact_index, tmp_path / "other")
    head = tmp_path / "other" / "index.json"
    text = head.read_text("utf-8").replace('{\n "', '{"unknown": "\\ud800",\n "', 1)
    assert '"unknown"' in text
    head.write_text(text, "utf-8")
    (tmp_path / "b.txt").write_text("the boat\n", "utf-8")
    polyseme.index(readers.small_elmo(), tmp_path / "b.txt", tmp_path / "other", add=True)


@pytest.mark.parametrize("digits", ["²", "٣", "9" * 5000, "-1", ""])
def test_only_digits_that_fit_into_a_number_are_one(digits: str, tmp_path: Path):
    assert parse_digits(digits) is None
    word = tmp_path / "wsd" / "bank"
    word.mkdir(parents=True)
    (word / "train.data.txt").write_text(f"{digits}\tthe bank failed\n", encoding="utf-8")
    (word / "train.gold.txt").write_text("0\n", encoding="utf-8")
    with pytest.raises(DataError, match=r"train\.data\.txt:1: expected the position of a word"):
        read_sense_data(tmp_path / "wsd", "train")


def test_metadata_of_thousands_of_digits_selects_nothing(tmp_path: Path):
    (tmp_path / "t.txt").write_text(readers.TEXT, encoding="utf-8")
    (tmp_path / "meta.tsv").write_text(f"file\tyear\nt.txt\t{'9' * 5000}\n", encoding="utf-8")
    index = polyseme.index(
        readers.small_elmo(), tmp_path / "t.txt", tmp_path / "index", meta=tmp_path / "meta.tsv"
    )
    with pytest.raises(UsageError, match="no document has year=1900-1910"):
        polyseme.nearest(index, "bank", documents="year=1900-1910")
    assert polyseme.senses(index, "bank", by="year").word == "bank"


def test_a_tied_softmax_needs_a_table_of_its_width(tmp_path: Path):
    readers.make_native("fp32", tmp_path)
    path = tmp_path / "model" / "model.safetensors"
    tensors = load_file(path)
    tensors["unknown.weight"] = tensors.pop("softmax.weight")
    save_file(tensors, path)
    with pytest.raises(FormatError, match=r"model\.safetensors: .*(missing|not part)"):
        open_pretrained(tmp_path / "model")
    tensors.pop("unknown.weight")
    save_file(tensors, path)
    with pytest.raises(FormatError, match=r"model\.safetensors: weight is missing"):
        open_pretrained(tmp_path / "model")


def test_rows_of_characters_have_a_bound(tmp_path: Path):
    readers.READERS["manylangs-old"].make(tmp_path)

    def change(values: dict[str, Any]) -> None:
        values["token_embedder"]["max_characters_per_token"] = 2**31 - 1

    names = list((tmp_path / "m").rglob("*.json"))
    for path in names:
        if "token_embedder" in path.read_text(encoding="utf-8"):
            rewrite_json(path, change)
    with pytest.raises(ConfigError, match=r"max_chars is 2147483647"):
        open_pretrained(tmp_path / "m")


def test_settings_of_a_task_take_no_memory_before_they_fit_its_weights(tmp_path: Path):
    readers.READERS["task-roles"].make(tmp_path)

    def change(values: dict[str, Any]) -> None:
        values["settings"]["head"]["mark"] = 2**31 - 1

    rewrite_json(tmp_path / "task" / "task.json", change)
    with pytest.raises(FormatError, match=r"head\.safetensors: .* does not fit|task\.json: not settings"):
        polyseme.load_task(tmp_path / "task")


@pytest.mark.parametrize("name", ["index", "task"])
def test_an_unknown_segmentation_is_refused_when_a_folder_is_opened(
    name: str, intact_index: Path, intact_task: Path, tmp_path: Path
):
    intact = intact_index if name == "index" else intact_task
    shutil.copytree(intact, tmp_path / name)
    rewrite_json(tmp_path / name / f"{name}.json", lambda values: values.update(segment="x"))
    with pytest.raises(FormatError, match=rf"{name}\.json: .*segment"):
        polyseme.open_index(tmp_path / name) if name == "index" else polyseme.load_task(tmp_path / name)


@pytest.mark.parametrize(
    "line", ['{"event": "validation", "tokens": NaN}', "[" * 100_000 + '"validation"', "\xff"]
)
def test_a_server_describes_a_model_with_damaged_curves(line: str, tmp_path: Path):
    readers.make_served(tmp_path)
    with (tmp_path / "model" / "metrics.jsonl").open("a", encoding="latin-1") as file:
        file.write(f'{line}\n{{"event": "validation"}}\n')
    (tmp_path / "model" / "README.md").write_bytes(b"\xff\xfe")
    catalog = open_models(tmp_path / "model").first
    assert len(catalog.info["model"]["curves"]) == 3
    json.dumps(catalog.info, allow_nan=False).encode("utf-8")


def test_a_run_whose_result_lost_its_metrics_is_trained_again(tmp_path: Path):
    readers.make_run(tmp_path)
    for path in (tmp_path / "task" / "runs").rglob("result.json"):
        rewrite_json(path, lambda values: values.update(dev={}))
    assert readers.resume_run(tmp_path)


@pytest.mark.parametrize("plan", ['{"plan": [1], "format": 3}', '{"plan": "x"}', "[" * 100_000])
def test_a_damaged_plan_is_not_resumed(plan: str, tmp_path: Path):
    readers.make_run(tmp_path)
    (tmp_path / "task" / "plan.json").write_text(plan, encoding="utf-8")
    with pytest.raises(UsageError, match=r"task: (no run to resume|its runs were started by another)"):
        readers.resume_run(tmp_path)
