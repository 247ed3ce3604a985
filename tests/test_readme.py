"""The READMEs and docs are correct: code runs, output matches, links resolve, settings and files exist.

A `python` block runs in the namespace of its page, a `bash` block without the lines that set up a machine; a
`text` block after one is its expected output. Decimal numbers of commands may be off by 0.02, as they are
between processors; without the C library, which alone computes in int8, nine words of ten must be the same.
A `console` block downloads, or trains for minutes, and is not run: only its verbs and
options are checked. `json`, `toml` and other blocks are not checked.
The Python code of a Chinese page runs unless it is that of the English page, but for comments; so does its
shell code.
"""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
from collections.abc import Iterator
from difflib import SequenceMatcher
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import pytest
import typer
from pydantic import BaseModel
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from builders import random_model, small_config, write_bilm
from polyseme import cli
from polyseme.config import CharsSettings, ModelSettings, RecurrentSettings, WordsSettings
from polyseme.formats.models.save import save_pretrained
from polyseme.model.fast.kernels import native
from polyseme.tasks.table import TASKS, find_task
from polyseme.text.corpus.settings import CorpusSettings
from polyseme.training.settings import SoftmaxSettings, TrainSettings, list_presets
from programs import run_program
from test_layout import ORDER, SOURCE

ROOT = Path(__file__).parent.parent
README, CHINESE = ROOT / "README.md", ROOT / "README.zh-CN.md"
DOCS = sorted((ROOT / "docs").glob("*.md"))
PAGES = [README, CHINESE, *DOCS]
CONTRIBUTING = ROOT / "CONTRIBUTING.md"
CHINESE_PAGES = {  # and their English pages
    page: page.with_name(page.name.replace(".zh-CN.md", ".md")) for page in PAGES if ".zh-CN." in page.name
}
ALL_PAGES = [*PAGES, ROOT / "CHANGELOG.md", CONTRIBUTING]
SET_UP = ("make ", "sudo ", "pip ", "git ")
SHELL = re.compile(r"[|&;<>$`*~]")  # what only a shell understands

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
HEADING = re.compile(r"^(#+) ", re.MULTILINE)
LINK = re.compile(r"\]\(([^)#]*)(?:#([^)]*))?\)")

# Stands in for the novel and the model that a page would train on it: the same words, random weights.
NOVEL = (
    "曹操 大怒 。",
    "刘备 大喜 。",
    "却说 曹操 引 兵 来 攻 荆州 。",
    "刘备 走 了 。",
    "他 骑 着 马 走 了 。",
)
NOVEL_WORDS = tuple(dict.fromkeys(word for line in NOVEL for word in line.split()))
SETTINGS: dict[str, type[BaseModel]] = {
    "corpus": CorpusSettings,
    "model": ModelSettings,
    "model.chars": CharsSettings,
    "model.words": WordsSettings,
    "model.recurrent": RecurrentSettings,
    "softmax": SoftmaxSettings,
    "train": TrainSettings,
}


class Block(NamedTuple):
    """A fenced block of a page; `line` is the line of its opening fence."""

    language: str
    code: str
    line: int


END = Block("", "", 0)
DECIMAL = re.compile(r"-?\d+\.\d+")
VERB = re.compile(r"\bpolyseme (\w+)")


def blocks(page: Path) -> list[Block]:
    text = page.read_text(encoding="utf-8")
    return [Block(m[1], m[2], text.count("\n", 0, m.start()) + 1) for m in FENCE.finditer(text)]


def prose(page: Path) -> str:
    return FENCE.sub("", page.read_text(encoding="utf-8"))


@pytest.fixture
def working_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with models/elmo (tiny, but with 50 characters per word), static vectors and the sample data.

    It also has sanguo.txt, a few lines, and models/sanguo, which has a softmax.
    """
    folder = write_bilm(tmp_path / "models" / "elmo")
    options = json.loads((folder / "options.json").read_text(encoding="utf-8"))
    options["char_cnn"]["max_characters_per_token"] = 50
    (folder / "options.json").write_text(json.dumps(options), encoding="utf-8")
    (tmp_path / "models" / "glove.txt").write_text("the 0.1 0.2 0.3\nbank 1 2 3\n", encoding="utf-8")
    novel = random_model(small_config(segment="auto"), words=NOVEL_WORDS, softmax=True)
    save_pretrained(novel, tmp_path / "models" / "sanguo", to="native")
    for data in (ROOT / "examples" / "data").iterdir():
        shutil.copy(data, tmp_path / data.name)
    (tmp_path / "sanguo.txt").write_text("\n".join(NOVEL * 5) + "\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run_python(page: Path, block: Block, namespace: dict[str, object]) -> None:
    code = "\n" * block.line + block.code  # a traceback then names the line of the page
    exec(compile(code, str(page), "exec"), namespace)


def run_shell(page: Path, block: Block) -> str:
    """Run a block: lines of `polyseme` alone in this process, which saves the start of a new one for each.

    Returns:
        What it prints on standard output.

    """
    lines = block.code.replace("\\\n", " ").splitlines()
    in_shell: list[str] = []
    printed = ""
    for line in [line for line in lines if line and not line.startswith(SET_UP)]:
        if SHELL.search(line) or not line.startswith("polyseme "):
            in_shell.append(line)
            continue
        printed += run_bash(page, block, in_shell)
        in_shell.clear()
        ran = run_program(*shlex.split(line, comments=True)[1:])
        assert ran.code == 0, f"{page}:{block.line}: {line}\n{ran.err}"
        printed += ran.out
    return printed + run_bash(page, block, in_shell)


def run_bash(page: Path, block: Block, lines: list[str]) -> str:
    if not lines:
        return ""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    process = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(lines)],
        env=os.environ | {"PATH": path, "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
    )
    assert process.returncode == 0, f"{page}:{block.line}\n{process.stderr}"
    return process.stdout


def assert_same_but_for_rounding(printed: str, shown: str, location: str) -> None:
    """Compare what commands print with what a page shows; decimal numbers depend on the processor."""
    if not native.is_available():
        words = [sorted(DECIMAL.sub("0.0", text).split()) for text in (printed, shown)]
        assert SequenceMatcher(None, words[0], words[1]).ratio() > 0.9, location
        return
    assert DECIMAL.sub("0.0", printed) == DECIMAL.sub("0.0", shown), location
    numbers = [[float(number) for number in DECIMAL.findall(text)] for text in (printed, shown)]
    assert numbers[0] == pytest.approx(numbers[1], abs=0.02), location


def shown_code(page: Path, language: str) -> list[tuple[str, str]]:
    """The code of a page in a language without comments, each block with the output that has to match."""
    return [
        (without_comments(block)[1], following.code if following.language == "text" else "")
        for block, following in pairwise([*blocks(page), END])
        if block.language == language
    ]


def languages_to_run(page: Path) -> set[str]:
    """The languages whose code runs on a page: on a Chinese one, where the English has other code."""
    code = {language: shown_code(page, language) for language in ("python", "bash")}
    if page in CHINESE_PAGES:
        code = {name: shown for name, shown in code.items() if shown != shown_code(CHINESE_PAGES[page], name)}
    return {language for language, shown in code.items() if shown}


def without_comments(block: Block) -> tuple[str, str]:
    if block.language == "python":
        return block.language, ast.dump(ast.parse(block.code))
    return block.language, re.sub(r"[ ]+#.*", "", block.code)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if languages_to_run(page)], ids=lambda page: page.name
)
def test_the_code_of_a_page_runs_and_prints_what_the_page_says(
    page: Path, working_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    namespace: dict[str, object] = {"__name__": page.stem}
    languages = languages_to_run(page)
    for block, following in pairwise([*blocks(page), END]):
        if block.language not in languages:
            continue
        if block.language == "bash":
            printed = run_shell(page, block)
            if following.language == "text":
                assert_same_but_for_rounding(printed, following.code, f"{page}:{following.line}")
            continue
        run_python(page, block, namespace)
        printed = capsys.readouterr().out
        if following.language == "text" and native.is_available():
            assert printed == following.code, f"{page}:{following.line}"
        elif following.language == "text":
            assert_same_but_for_rounding(printed, following.code, f"{page}:{following.line}")


def shown_errors(page: Path) -> list[tuple[Block, str]]:
    """The console blocks that do run: one command each, and the text after it is its error."""
    return [
        (block, following.code)
        for block, following in pairwise([*blocks(page), END])
        if (block.language, following.language) == ("console", "text")
        and following.code.startswith("polyseme: ")
    ]


@pytest.mark.parametrize("page", [page for page in PAGES if shown_errors(page)], ids=lambda page: page.name)
def test_commands_fail_with_the_errors_that_a_page_shows(page: Path, working_folder: Path) -> None:
    if page in CHINESE_PAGES:
        shown, expected = (
            [(block.code, error) for block, error in shown_errors(p)] for p in (page, CHINESE_PAGES[page])
        )
        assert shown == expected
        return
    errors = dict(shown_errors(page))
    for block in blocks(page):
        if block.language == "bash":
            run_shell(page, block)
        elif block in errors:
            ran = run_program(*shlex.split(block.code)[1:])
            assert (ran.code, ran.err) == (2, errors[block]), f"{page}:{block.line}"


def shown_commands(page: Path) -> Iterator[list[str]]:
    """Yield the arguments of each `polyseme` command in the console blocks of a page."""
    errors = dict(shown_errors(page))
    for block in blocks(page):
        if block.language != "console" or block in errors:
            continue
        for line in block.code.replace("\\\n", " ").splitlines():
            words = shlex.split(line, comments=True)
            if words:
                assert "polyseme" in words, f"{page}:{block.line}: {line!r} is not a polyseme command"
                yield words[words.index("polyseme") + 1 :]


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_commands_in_console_blocks_use_existing_verbs_and_options(page: Path) -> None:
    verbs = typer.main.get_command(cli.make_app()).commands  # type: ignore[attr-defined]
    for verb, *words in shown_commands(page):
        assert verb in verbs
        known = {option for parameter in verbs[verb].params for option in parameter.opts}
        unknown = {word for word in words if word.startswith("-") and word != "-"} - known
        assert not unknown, f"{page}: polyseme {verb}"
        for name, value in pairwise(words):
            if name == "--config" and not value.endswith(".toml"):
                assert value in list_presets()
            if name == "--set":
                section, _, setting = value.partition("=")[0].rpartition(".")
                assert setting in (
                    _task_settings(section) if verb == "train" else SETTINGS[section].model_fields
                )


def _task_settings(section: str) -> set[str]:
    """The settings of a section, of all tasks."""
    sections = [find_task(name).settings_type.model_fields[section].default for name in TASKS]
    return {name for values in sections for name in type(values).model_fields}


def written_default(field: FieldInfo, needed: str, none: str) -> str:
    """The default of a setting, as written in docs/pretrain.md."""
    if field.default is PydanticUndefined:
        return needed
    return none if field.default is None else f"`{json.dumps(field.default)}`"


@pytest.mark.parametrize(
    ("name", "words"), [("pretrain.md", ("needed", "none")), ("pretrain.zh-CN.md", ("必填", "无"))]
)
def test_the_docs_list_every_setting_of_pretraining_with_its_default(
    name: str, words: tuple[str, str]
) -> None:
    page = (ROOT / "docs" / name).read_text(encoding="utf-8")
    shown = dict(re.findall(r"^\| `([\w.]+)` \| ([^|]*) \|", page, re.MULTILINE))
    expected = {
        f"{section}.{name}": written_default(field, *words)
        for section, kind in SETTINGS.items()
        for name, field in kind.model_fields.items()
        if f"{section}.{name}" not in SETTINGS
    }
    assert {name: shown.get(name) for name in expected} == expected


def test_both_readmes_show_the_same_commands() -> None:
    """The sentences and words of the examples are in the language of the page."""
    english, chinese = (
        [(block.language, shown_verbs(block)) for block in blocks(p)] for p in (README, CHINESE)
    )
    assert english == chinese


def shown_verbs(block: Block) -> list[str]:
    """The verb of each command of a block, and the lines that set up a machine."""
    lines = without_comments(block)[1].splitlines() if block.language in ("bash", "console", "sh") else []
    return [verb for line in lines for verb in ([line] if line.startswith(SET_UP) else VERB.findall(line))]


def test_the_readmes_are_short() -> None:
    assert max(len(page.read_text(encoding="utf-8").splitlines()) for page in (README, CHINESE)) <= 150


@pytest.mark.parametrize("page", CHINESE_PAGES, ids=lambda page: page.name)
def test_a_page_has_the_same_sections_in_both_languages(page: Path) -> None:
    sections = HEADING.findall(prose(page))
    assert sections == HEADING.findall(prose(CHINESE_PAGES[page]))
    assert len(sections) > 2


@pytest.mark.parametrize("page", CHINESE_PAGES, ids=lambda page: page.name)
def test_a_page_links_to_the_same_page_in_the_other_language_at_the_top(page: Path) -> None:
    english = CHINESE_PAGES[page]
    assert f"[English]({english.name}) | 简体中文" in page.read_text(encoding="utf-8").splitlines()[2]
    assert f"[简体中文]({page.name})" in english.read_text(encoding="utf-8").splitlines()[2]


@pytest.mark.parametrize("page", CHINESE_PAGES, ids=lambda page: page.name)
def test_a_chinese_page_links_to_chinese_pages_where_there_are_any(page: Path) -> None:
    linked = {(page.parent / link).resolve() for link, _ in LINK.findall(prose(page)) if link}
    translated = {english.resolve() for english in CHINESE_PAGES.values()}
    assert linked & translated <= {CHINESE_PAGES[page].resolve()}  # the switch at the top


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to the headings of a page."""
    titles = re.findall(r"^#+ (.*)$", prose(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", ALL_PAGES, ids=lambda page: page.name)
def test_links_between_pages_lead_to_a_file_and_a_heading(page: Path) -> None:
    missing = []
    for link, anchor in LINK.findall(prose(page)):
        if link.startswith("http"):
            continue
        target = page.parent / link if link else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            missing.append(f"{link}#{anchor}")
    assert not missing


def test_the_map_in_contributing_has_the_order_of_the_packages() -> None:
    section = CONTRIBUTING.read_text(encoding="utf-8").split("## Package map")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`.*?) \|", section, re.MULTILINE)
    assert [tuple(re.findall(r"`(\w+)`", row)) for row in rows] == list(ORDER)


def test_contributing_names_files_that_exist() -> None:
    text = CONTRIBUTING.read_text(encoding="utf-8")
    named = set(re.findall(r"`([\w./-]+/[\w./-]*|[\w-]+\.(?:py|md|toml))`", text))
    folders = [ROOT, SOURCE, *(SOURCE / name for name in ("model", "text", "formats", "server"))]
    folders.append(SOURCE / "server" / "explorer")
    assert {
        name for name in named if "NAME" not in name and not any((root / name).exists() for root in folders)
    } <= {"/docs", "/openapi.json"}
