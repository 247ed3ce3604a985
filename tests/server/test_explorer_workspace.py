"""The user's own text on the page, in a real browser: pasted, trained, explored; in both languages and sizes.

Needs Debian's chromium (`make test` installs it if it can).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browsing import CHROMIUM, Visit, axe_source
from workspaces import LONG, NOVEL, QUICK, WorkspaceClient

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium")

WORKSPACE = "#/workspace"
SIZES = {"desk": (1280, 800), "phone": (390, 844)}
LABELS = {
    "en": {
        "paste": "Or paste the text",
        "title": "Title",
        "more": "More settings",
        "epochs": "Passes over the text",
        "start": "Start",
        "explore": "Explore this text",
        "word": "A word of the text",
        "delete": "Delete",
    },
    "zh": {
        "paste": "或粘贴文本",
        "title": "标题",
        "more": "更多设置",
        "epochs": "训练遍数",
        "start": "开始",
        "explore": "探索这份文本",
        "word": "文本中的一个词",
        "delete": "删除",
    },
}


@pytest.fixture(scope="module")
def workspace(start_server, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    folder = tmp_path_factory.mktemp("workspace") / "texts"
    server = start_server("zh-classic", "--workspace", folder, "--body-bytes", "20000").wait()
    yield server
    assert server.stop()[0] == 0


@pytest.fixture(scope="module")
def client(workspace) -> Iterator[WorkspaceClient]:
    with WorkspaceClient(workspace.address) as http_client:
        yield http_client


@pytest.fixture(scope="module")
def ready(client: WorkspaceClient) -> str:
    """A text that can be explored."""
    name = client.begin("三国演义", QUICK)
    client.wait(name, "ready")
    return name


def open_page(browser: Any, address: str, size: str, *, dark: bool = False) -> Visit:
    width, height = SIZES[size]
    visit = Visit(browser, address, dark=dark, width=width)
    visit.page.set_viewport_size({"width": width, "height": height})
    return visit


@pytest.mark.parametrize(("language", "size"), [("en", "desk"), ("zh", "phone")])
def test_a_pasted_text_is_trained_and_its_nearest_words_are_seen(
    browser, workspace, client: WorkspaceClient, language: str, size: str
):
    text, title = LABELS[language], f"曹操 {language}"
    visit = open_page(browser, workspace.address, size)
    visit.go(WORKSPACE, language)
    page = visit.page
    page.get_by_role("button", name=text["start"]).click()  # without a text: a hint, and no request
    visit.expect_visible(".corpus-form [role=status]")
    page.get_by_label(text["paste"]).fill(NOVEL)
    page.get_by_label(text["title"], exact=True).fill(title)
    page.locator(".corpus-form select").first.select_option("new:tiny")
    page.get_by_text(text["more"]).first.click()
    page.get_by_label(text["epochs"]).fill("3")
    page.get_by_role("button", name=text["start"]).click()
    card = page.locator(".corpus", has_text=title)
    playwright.expect(card.locator("progress")).to_be_visible()
    playwright.expect(card.locator("svg.curves").first).to_be_visible()  # while it trains
    playwright.expect(card.locator(".numbers")).to_contain_text("." if language == "en" else "损失")
    explore = card.get_by_role("link", name=text["explore"])
    playwright.expect(explore).to_be_visible(timeout=600_000)
    explore.click()
    visit.wait_for_address("corpus=曹操")
    page.get_by_label(text["word"]).fill("曹操")
    page.keyboard.press("Enter")
    playwright.expect(page.locator(".corpus .word-list li").first).to_be_visible()
    assert page.evaluate("document.documentElement.scrollWidth") <= SIZES[size][0]
    page.locator("nav a").first.click()  # the sentence view reads the same text
    visit.wait_for_address("#/sentence")
    visit.wait_for_address("corpus=曹操")
    visit.expect_visible(".model-name", f"曹操-{language}")
    name = f"曹操-{language}"
    assert [file["name"] for file in client.status(name)["files"]] == [f"{title}.txt"]
    visit.close()
    client.act(name, "delete")


def test_files_are_dropped_and_sent_in_any_encoding_part_by_part(
    browser, workspace, client: WorkspaceClient, tmp_path: Path
):
    file = tmp_path / "三国.txt"
    file.write_bytes((NOVEL * 3).encode("gb18030"))
    assert file.stat().st_size > 20_000  # more than one request may have
    visit = open_page(browser, workspace.address, "desk")
    visit.go(WORKSPACE)
    visit.page.locator("input[type=file]").set_input_files([file])
    visit.expect_visible(".files", "三国.txt")
    visit.page.locator(".corpus-form select").first.select_option("use:zh-classic")
    visit.page.get_by_role("button", name="Start").click()
    card = visit.page.locator(".corpus", has_text="三国.txt")
    playwright.expect(card).to_contain_text("GB18030")
    playwright.expect(card.get_by_role("link", name="Explore this text")).to_be_visible(timeout=600_000)
    visit.page.on("dialog", lambda dialog: dialog.accept())
    card.get_by_role("button", name="Delete").click()
    playwright.expect(card).to_have_count(0)
    visit.close()
    assert "三国" not in [corpus["name"] for corpus in client.get("/workspace").json()["corpora"]]


def test_what_the_server_refuses_is_said_and_leaves_nothing(
    browser, workspace, client: WorkspaceClient, tmp_path: Path
):
    binary = tmp_path / "novel.txt"
    binary.write_bytes(bytes(range(256)) * 50)
    visit = open_page(browser, workspace.address, "desk")
    visit.expects_failures = True
    for language, message in (("en", "This is no text in a known encoding."), ("zh", "无法识别此文件的编码")):
        visit.go(WORKSPACE, language)
        visit.page.locator("input[type=file]").set_input_files([binary])
        visit.page.get_by_role("button", name=LABELS[language]["start"]).click()
        visit.expect_visible(".corpus-form .failure", message)
    visit.close()
    assert "novel" not in [corpus["name"] for corpus in client.get("/workspace").json()["corpora"]]


def test_a_training_is_paused_resumed_and_cancelled_on_the_page(browser, workspace, client: WorkspaceClient):
    name = client.begin("Long", LONG)
    visit = open_page(browser, workspace.address, "phone")
    visit.go(WORKSPACE)
    visit.page.on("dialog", lambda dialog: dialog.accept())
    card = visit.page.locator(".corpus", has_text="Long")
    playwright.expect(card.locator(".corpus-progress")).to_contain_text("Training")
    card.get_by_role("button", name="Pause").click()
    playwright.expect(card.locator(".corpus-state")).to_have_text("Paused")
    visit.reload()
    card.get_by_role("button", name="Resume").click()
    playwright.expect(card.locator(".corpus-state")).to_have_text("Working")
    card.get_by_role("button", name="Cancel").click()
    playwright.expect(card.locator(".corpus-state")).to_have_text("Not started")
    playwright.expect(card.locator("select").first).to_have_value("new:tiny")  # the settings it had
    visit.close()
    assert client.status(name)["state"] == "draft"
    client.act(name, "delete")


def test_a_text_that_is_gone_leads_back(browser, workspace, ready: str):
    visit = open_page(browser, workspace.address, "desk")
    visit.expects_failures = True
    visit.go("#/senses?word=x&corpus=gone")
    visit.page.get_by_role("link", name="Back to the server’s model").click()
    visit.expect_visible("#corpora", "Texts on this server")
    visit.page.get_by_label("Text", exact=True).select_option(ready)
    visit.wait_for_address(f"corpus={ready}")
    visit.expect_visible(".model-name", ready)
    visit.close()


def test_code_to_copy_names_the_corpus(browser, workspace, client: WorkspaceClient, ready: str):
    visit = open_page(browser, workspace.address, "desk")
    visit.go(f"{WORKSPACE}?corpus={ready}&word=曹操")
    playwright.expect(visit.page.locator(".word-list li").first).to_be_visible()
    address = visit.code("curl").split()[1]
    body = {"word": "曹操", "k": 3}
    assert client.post(address, json=body).status_code == 200
    assert f"{ready}/index" in visit.code("Command line")
    visit.close()


def test_without_a_workspace_the_view_says_how_to_get_one(browser, server):
    visit = open_page(browser, server.address, "desk")
    visit.go(WORKSPACE)
    visit.expect_visible("main", "polyseme serve en --workspace texts")
    playwright.expect(visit.page.get_by_role("link", name="Your texts")).to_have_count(0)
    visit.close()


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core, from npm."""
    source = axe_source(tmp_path_factory.mktemp("axe"))
    return source or pytest.skip("axe-core needs npm and its registry")


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize(("language", "dark"), [("en", False), ("zh", True)])
def test_the_workspace_is_accessible_and_fits(
    browser, workspace, client: WorkspaceClient, ready: str, axe: str, size: str, language: str, dark: bool
):
    draft = client.create("Draft")
    client.upload(draft, "a.txt", NOVEL.encode())
    visit = open_page(browser, workspace.address, size, dark=dark)
    visit.go(f"{WORKSPACE}?corpus={ready}&word=曹操", language)
    report = visit.page.evaluate(f"async () => {{ {axe}; return await axe.run() }}")
    violations = [(rule["id"], rule["nodes"][0]["html"][:120]) for rule in report["violations"]]
    assert violations == [], json.dumps(violations, ensure_ascii=False, indent=1)
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= SIZES[size][0]
    visit.close()
    client.act(draft, "delete")
