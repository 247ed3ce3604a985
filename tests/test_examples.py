"""The examples do what their docstrings say; here with tiny models."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from dataclasses import replace
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest
from rich.cells import cell_len

import polyseme
from builders import write_bilm
from polyseme.api import count_examples
from polyseme.search.senses import find_senses

EXAMPLES = Path(__file__).parent.parent / "examples"


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> ModuleType:
    """The example named by the test, imported from the examples folder."""
    monkeypatch.syspath_prepend(str(EXAMPLES))
    return import_module(request.param)


@pytest.mark.parametrize("example", ["pytorch_task"], indirect=True)
def test_a_classifier_over_elmo_learns(example, tmp_path, capsys):
    write_bilm(tmp_path)
    assert example.train(str(tmp_path), epochs=100) > 0.5
    assert "layer weights" in capsys.readouterr().out


@pytest.mark.parametrize("example", ["join_static"], indirect=True)
def test_static_vectors_are_joined_in_three_ways(example, tmp_path, capsys):
    model = write_bilm(tmp_path / "model")  # vectors of 8 values, 3 layers
    vectors = tmp_path / "vectors.txt"
    vectors.write_text("the 1 2 3\nbank 4 5 6\n", encoding="utf-8")
    assert example.sizes(str(model), str(vectors)) == {"top": 3 + 8, "concat": 3 + 2 * 8, "mix": 3 + 8}
    assert "8 of 11 tokens have no static vector" in capsys.readouterr().out


@pytest.mark.parametrize("example", ["random_model"], indirect=True)
def test_a_random_model_is_a_whole_model(example, tmp_path):
    elmo = polyseme.load(example.write_random_model(tmp_path / "elmo"))
    assert elmo.embed("The bank failed .", layer="all").shape == (3, 4, 32)


@pytest.mark.parametrize("example", ["demo"], indirect=True)
def test_the_demo_shows_the_published_model(example, tmp_path, allennlp_elmo, monkeypatch, capsys):
    monkeypatch.setattr(example, "fetch", lambda demo: allennlp_elmo)
    example.main(tmp_path)
    printed = capsys.readouterr().out
    for part in (
        "A published ELMo, reproduced exactly",
        "30 sentences, 744 tokens",
        "33 of 33 weights equal",
        "苹果",
    ):
        assert part in printed
    lines = [line for line in printed.splitlines() if str(allennlp_elmo) not in line]
    assert max(map(cell_len, lines)) <= 100


def test_without_a_package_registry_the_demo_uses_a_random_model(tmp_path):
    done = subprocess.run(
        [sys.executable, EXAMPLES / "demo.py"],
        cwd=tmp_path,
        env=os.environ | {"PIP_NO_INDEX": "1", "PYTHONIOENCODING": "utf-8", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        encoding="utf-8",
    )
    assert done.returncode == 0, done.stderr
    assert "The package registry cannot be reached" in done.stdout
    assert "A random model of the same shape" in done.stdout
    assert "largest difference" not in done.stdout


@pytest.mark.parametrize("example", ["sanguo"], indirect=True)
def test_the_demo_trains_a_model_on_a_novel_only_once(example, tmp_path, monkeypatch, capsys):
    lines = (
        "曹操引兵攻荆州。关羽守荆州，玄德将兵来救。天色将晚，曹操大怒，欲斩此将。关羽笑曰：荆州不可失也。\n"
        * 40
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(polyseme, "sample", lambda name: lines, raising=False)
    example.main("tiny")
    printed = capsys.readouterr().out
    for part in ("held-out perplexity", "曹操", "荆州", "【将】", "demo/sanguo/report.html"):
        assert part in printed
    assert (tmp_path / "demo/sanguo/curves.png").stat().st_size > 5000
    assert "曹操" in (tmp_path / "demo/sanguo/report.html").read_text(encoding="utf-8")
    example.main("tiny")
    assert "exists: not trained again" in capsys.readouterr().out


@pytest.mark.parametrize("example", ["sanguo"], indirect=True)
def test_the_demo_prints_commands_that_work_in_the_current_folder(example, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PATH", os.defpath)
    bin_folder = tmp_path / ".venv" / "bin"
    bin_folder.mkdir(parents=True)
    monkeypatch.setattr(sys, "executable", str(bin_folder / "python"))
    assert example.command() == f"{bin_folder}/python -m polyseme"  # installed without its program
    (bin_folder / "polyseme").write_text("#!/bin/sh\n")
    (bin_folder / "polyseme").chmod(0o755)
    assert example.command() == ".venv/bin/polyseme"
    example.show_commands()
    printed = capsys.readouterr().out
    assert "Look: .venv/bin/polyseme serve demo/sanguo demo/sanguo-index\n" in printed
    assert " polyseme " not in printed
    (tmp_path / "elsewhere").mkdir()
    monkeypatch.chdir(tmp_path / "elsewhere")
    assert example.command() == str(bin_folder / "polyseme")
    monkeypatch.setenv("PATH", str(bin_folder))
    assert example.command() == "polyseme"


@pytest.mark.parametrize("example", ["sanguo"], indirect=True)
def test_the_demo_shows_two_senses_of_the_first_word_that_has_them(example, tmp_path, monkeypatch, capsys):
    lines = ["关羽 欲 斩 此 将 。", "我 来 见 你 。", "人 不 见 了 ！"] * 6
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")
    index = polyseme.index(write_bilm(tmp_path / "model"), tmp_path / "a.txt", tmp_path / "index")
    sense_counts = {"见": 2}

    def senses(index, word):
        result = find_senses(index, word, max_senses=1)
        return replace(result, senses=result.senses * sense_counts.get(word, 1))

    monkeypatch.setattr(polyseme, "senses", senses, raising=False)
    example.show_senses(index)
    assert "见: 2 senses in 12 usages" in capsys.readouterr().out
    sense_counts.clear()
    example.show_senses(index)
    assert "has more than one sense in this text" in capsys.readouterr().out.replace("\n", " ")


SAMPLE_TASKS = {
    "names": "tagging",
    "relations": "relations",
    "pairs": "pairs",
    "roles": "roles",
    "answers": "answers",
    "stories": "coref",
    "translations": "translate",
    "mails": "summarise",
}


def read_words(path: Path) -> set[str]:
    return set(re.findall(r"[A-Za-z]{3,}", path.read_text(encoding="utf-8")))


@pytest.mark.parametrize("example", ["write_samples"], indirect=True)
def test_the_samples_have_new_names_and_nouns_in_their_test_part(example, tmp_path, capsys):
    example.main(tmp_path / "a")
    example.main(tmp_path / "b")
    assert "8 samples of 240 train, 80 dev, 80 test examples" in capsys.readouterr().out
    listed = f"{example.NAMES} {example.NOUNS} {example.MEN} {example.WOMEN}"
    listed += " ".join(example.RELATIONS.values()).replace("-", " ")
    nouns = set(listed.split()) - {"office", "letter"}  # these are in patterns, too
    assert set(SAMPLE_TASKS) == set(example.SAMPLES)
    for name, (ending, _) in example.SAMPLES.items():
        paths = {part: tmp_path / "a" / f"{name}.{part}.{ending}" for part in example.SIZES}
        for path in paths.values():
            assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()  # the same in every run
        counts = count_examples(SAMPLE_TASKS[name], "en", **paths)
        assert {part: count.examples for part, count in counts.sets.items()} == example.SIZES
        known = read_words(paths["train"]) | read_words(paths["dev"])
        if name == "translations":  # its words are known, but not beside each other
            continue
        new = read_words(paths["test"]) & nouns
        assert len(new) >= 8, name
        assert not new & known, name


@pytest.mark.parametrize("example", ["write_samples"], indirect=True)
def test_a_person_of_the_test_translations_stood_with_no_word_of_two_meanings_before(example, tmp_path):
    example.main(tmp_path)
    pairs: dict[str, set[tuple[str, str]]] = {}
    for part in example.SIZES:
        lines = (tmp_path / f"translations.{part}.txt").read_text(encoding="utf-8").splitlines()
        found = [re.search(r"he (\w+) .* the (\w+) \.\t", line) for line in lines]
        pairs[part] = {(match[1], match[2]) for match in found if match and match[2] in example.TWO_MEANINGS}
    persons = {part: {person for person, _ in known} for part, known in pairs.items()}
    assert len(persons["test"]) == 2 * len(example.PERSONS)
    assert not persons["test"] & (persons["train"] | persons["dev"])
    assert {word for _, word in pairs["test"]} == set(example.TWO_MEANINGS)


@pytest.mark.parametrize("name", ["movie_reviews", "text_topics"])
def test_the_tutorials_train_on_the_sample_data(name, tmp_path, capsys, monkeypatch):
    model = write_bilm(tmp_path)
    data = {"movie_reviews": "reviews.csv", "text_topics": "topics.csv"}[name]
    monkeypatch.setattr(sys, "argv", [name, str(EXAMPLES / "data" / data), str(model)])
    code = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    assert len(code.splitlines()) <= 40
    exec(compile(code.replace("train.epochs=30", "train.epochs=2"), name, "exec"), {"__file__": __file__})
    assert "held out" in capsys.readouterr().out
