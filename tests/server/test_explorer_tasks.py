"""Predictions in a real browser: marked text instead of JSON, for tasks that were trained on a few examples.

Needs Debian's chromium (`make test` installs it if it can).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

import polyseme
from browsing import CHROMIUM, SCREENSHOTS, Visit

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium")

EXAMPLES = Path(__file__).parents[2] / "examples" / "data"
STORY = "Anna opened the door. She had waited for her brother all day. He smiled and closed it."
CLUSTERS = (
    ((0, 4), (22, 25), (41, 44)),  # Anna, She, her
    ((12, 20), (83, 85)),  # the door, it
    ((41, 52), (62, 64)),  # her brother, He
    ((53, 60),),  # all day
)
MILL = "The old mill stands by the river. Maria Lind bought it in 1931 and turned it into a school."
MOVED = "𠮷 old mill: " + MILL  # a character of two UTF-16 units before all offsets
SENTENCE = "The captain sold his old boat to a fisherman last spring."
FRAMES = {
    "frames": [
        {
            "predicate": 2,
            "roles": [
                {"label": "ARG0", "offsets": [0, 11], "probability": 0.83},
                {"label": "V", "offsets": [12, 16], "probability": 0.99},
            ],
        }
    ]
}
RELATION = {
    "label": "Cause-Effect",
    "probability": 0.8,
    "probabilities": {"Cause-Effect": 0.8, "Other": 0.2},
    "entities": [{"text": "fire", "offsets": [4, 8]}, {"text": "fuel", "offsets": [23, 27]}],
}
SMALL = (
    "train.epochs=40",
    "train.batch=4",
    "train.rate=0.01",
    "encoder.size=32",
    "input.dropout=0",
    "input.words=32",
    "input.min_count=1",
)
SIZES = {
    "roles": ("encoder.layers=2", "head.predicate_size=16", "head.threshold=0.3"),
    "coref": ("train.epochs=1", "train.batch=1", "head.size=32", "head.hidden=32"),
    "answers": ("train.epochs=1",),
    "translate": ("head.size=32", "head.embedding=32"),
}
FILES = {
    "roles": "roles.jsonl",
    "coref": "coref.jsonl",
    "answers": "answers.jsonl",
    "translate": "translations.tsv",
}


@pytest.fixture(scope="module")
def explored(start_server, tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    """A server with a model of each task whose predictions are more than a label."""
    root = tmp_path_factory.mktemp("tasks")
    for task, name in FILES.items():
        examples = EXAMPLES / name
        out, settings = root / f"my-{task}", (*SMALL, *SIZES[task])
        polyseme.train(
            task,
            "en-classic",
            train=examples,
            dev=examples,
            out=out,
            settings=settings,
            without_elmo=True,  # words are enough to learn a few examples by heart, and quicker
        )
    process = start_server("en-classic", *(root / f"my-{task}" for task in FILES)).wait()
    yield process
    process.stop()


def open_task(visit: Visit, task: str, text: str, other: str = "", language: str = "en") -> None:
    ending = f"&other={quote(other)}" if other else ""
    visit.go(f"#/tasks?task=my-{task}&text={quote(text)}{ending}", language)


def keep_picture(visit: Visit, name: str, folder: Path) -> None:
    visit.page.screenshot(path=Path(SCREENSHOTS or folder) / f"explorer-tasks-{name}.png", full_page=True)


def test_roles_are_marked_in_the_sentence_once_for_each_predicate(visit: Visit, tmp_path: Path):
    open_task(visit, "roles", SENTENCE)
    marked = visit.page.locator(".marked-text").first
    playwright.expect(marked).to_contain_text("The captain ARG0")
    labels = marked.locator("mark .span-label").all_inner_texts()
    assert [label.strip() for label in labels][:3] == ["ARG0", "V", "ARG1"]
    keep_picture(visit, "roles", tmp_path)


def test_an_answer_is_marked_at_its_offsets(visit: Visit, tmp_path: Path):
    open_task(visit, "answers", "When was the mill bought?", MOVED)
    answer = visit.page.locator(".predicted > span").first.inner_text()
    assert answer
    assert answer in MOVED
    playwright.expect(visit.page.locator(".marked-text mark")).to_have_text(answer)
    playwright.expect(visit.page.locator(".marked-text")).to_contain_text("𠮷 old mill: The old mill stands")
    keep_picture(visit, "answers", tmp_path)


def label_story(response: dict[str, Any]) -> None:
    """Put the labels of the story in place of what a model that saw few stories predicts."""
    response["predictions"][0]["clusters"] = [
        {"name": STORY[slice(*spans[0])], "mentions": [{"offsets": list(span)} for span in spans]}
        for spans in CLUSTERS
    ]


def test_a_cluster_can_be_shown_alone(visit: Visit, tmp_path: Path):
    visit.alter_response("/predict", label_story)
    open_task(visit, "coref", STORY)
    marks = visit.page.locator(".marked-text mark")
    buttons = visit.page.locator(".cluster")
    playwright.expect(buttons).to_have_text(["Anna 3", "the door 2", "her brother 2"])
    assert marks.all_inner_texts() == ["Anna", "the door", "She", "her brother", "her", "He", "it"]
    playwright.expect(marks.locator("mark")).to_have_text("her")  # a mention inside another one
    keep_picture(visit, "coref", tmp_path)
    buttons.first.click()
    visit.wait_for_address("cluster=0")
    assert marks.all_inner_texts() == ["Anna", "She", "her"]
    playwright.expect(buttons.first).to_have_attribute("aria-pressed", "true")
    buttons.first.click()
    visit.settle()
    assert marks.count() == 7


def test_a_translation_is_shown_as_text(visit: Visit, tmp_path: Path):
    open_task(visit, "translate", "Anna reads a book .", language="zh")
    playwright.expect(visit.page.locator(".predicted")).not_to_have_text("（空文本）")
    assert visit.page.locator(".predicted").inner_text().strip()
    visit.expect_visible("h2", "预测结果")
    keep_picture(visit, "translate", tmp_path)


def test_the_example_of_a_task_fills_its_fields(visit: Visit):
    visit.go("#/tasks?task=my-answers")
    visit.page.get_by_role("link", name="Where did Anna meet Thomas?").click()
    visit.wait_for_address("other=Anna")
    visit.expect_visible(".marked-text")
    assert visit.page.locator("textarea").first.input_value() == "Where did Anna meet Thomas?"


def test_another_task_keeps_the_text(visit: Visit):
    open_task(visit, "roles", SENTENCE)
    visit.page.get_by_label("Task model").select_option("my-coref")
    visit.wait_for_address("task=my-coref")
    assert visit.page.locator("textarea").first.input_value() == SENTENCE
    assert '"task":"my-coref"' in visit.code("curl")


def test_the_pointer_and_the_keyboard_show_the_probability_of_a_span(visit: Visit):
    visit.alter_response("/predict", lambda response: response["predictions"][0].update(FRAMES))
    open_task(visit, "roles", SENTENCE)
    detail, marks = visit.page.locator(".span-detail").first, visit.page.locator(".marked-text mark")
    playwright.expect(detail).to_have_text("")
    marks.nth(1).hover()
    playwright.expect(detail).to_have_text("V · 99%")
    visit.page.mouse.move(0, 0)
    playwright.expect(detail).to_have_text("")
    marks.first.focus()
    playwright.expect(detail).to_have_text("ARG0 · 83%")
    visit.page.keyboard.press("ArrowRight")
    playwright.expect(marks.nth(1)).to_be_focused()
    playwright.expect(detail).to_have_text("V · 99%")
    assert marks.evaluate_all("marks => marks.filter(mark => mark.tabIndex === 0).length") == 1


def test_the_tags_of_tokens_have_probabilities(visit: Visit):
    tagged = {"tokens": ["He", "sat"], "tags": ["PRON", "VERB"], "token_probabilities": [0.9, 0.75]}
    visit.alter_response("/predict", lambda response: response.update(predictions=[tagged]))
    open_task(visit, "roles", "He sat")
    visit.page.locator(".tagged-token").first.focus()
    visit.page.keyboard.press("ArrowRight")
    playwright.expect(visit.page.locator(".span-detail")).to_have_text("sat · VERB · 75%")


def test_both_entities_of_a_relation_are_marked(visit: Visit):
    def serve_relations(info: dict[str, Any]) -> None:
        info["tasks"][0] |= {"task": "relations"}

    visit.alter_response("/info", serve_relations)
    visit.alter_response("/predict", lambda response: response.update(predictions=[RELATION]))
    visit.go("#/tasks?task=my-roles&text=The+fire+was+caused+by+fuel")
    assert visit.page.locator("#prediction-title").count() == 0  # nothing is marked yet
    field = visit.page.locator("textarea")
    for word, name in (("fire", "e1"), ("fuel", "e2")):
        field.evaluate(
            "(field, word) => field.setSelectionRange(...[0, 4].map((n) => field.value.indexOf(word) + n))",
            word,
        )
        visit.page.get_by_role("button", name=f"entity {name}").click()
        visit.wait_for_address(f"<{name}>{word}</{name}>")
    marked = visit.page.locator(".marked-text")
    playwright.expect(marked).to_have_text("The fire e1 was caused by fuel e2")
    marked.locator("mark").last.focus()
    playwright.expect(visit.page.locator(".span-detail")).to_have_text("e2 · Cause-Effect · 80%")
    visit.expect_visible("table.values", "Cause-Effect")


def test_predictions_fit_a_phone_in_the_dark(browser, explored, tmp_path: Path):
    visit = Visit(browser, explored.address, dark=True, width=390)
    visit.alter_response(
        "/predict", lambda response: "clusters" in response["predictions"][0] and label_story(response)
    )
    for task, text, other in (("coref", STORY, ""), ("roles", SENTENCE, ""), ("answers", "Who?", MILL)):
        open_task(visit, task, text, other)
        assert visit.page.evaluate("document.documentElement.scrollWidth <= 390")
        keep_picture(visit, f"{task}-phone", tmp_path)
    visit.close()
