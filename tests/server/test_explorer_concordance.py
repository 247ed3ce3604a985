"""The concordance of the explorer in a real browser: lines, collocates, reading, links, files, long texts."""

from __future__ import annotations

import contextlib
import csv
import io
import re
from pathlib import Path
from typing import Any
from urllib.parse import quote

import httpx
import pytest

import polyseme
from browsing import CHROMIUM, SENTENCE, VIEWS, WORD, Visit

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium")
SIZES = {"desktop": (1280, 800), "phone": (390, 844)}


@pytest.fixture(scope="module")
def server(explored):
    return explored


def lines_of(visit: Visit) -> list[str]:
    """The lines on screen, as text."""
    rows = visit.page.locator(".kwic li a")
    return [
        "".join(rows.nth(row).locator(f".{part}").inner_text() for part in ("left", "node", "right"))
        for row in range(rows.count())
    ]


def ask(address: str, route: str, **body: Any) -> dict[str, Any]:
    response = httpx.post(f"{address}{route}", json={"word": WORD, "index": "one-index"} | body, timeout=60)
    assert response.status_code == 200, response.text
    values: dict[str, Any] = response.json()
    return values


def download(visit: Visit, name: str) -> str:
    """The text of the file that a button saves."""
    with visit.page.expect_download() as saved:
        visit.page.get_by_role("button", name=name).click()
    return Path(saved.value.path()).read_text(encoding="utf-8")


@pytest.mark.parametrize("sort", ["document", "left", "right", "sense"])
def test_every_order_shows_the_lines_of_the_server(visit: Visit, server, sort: str):
    visit.go("concordance")
    visit.page.get_by_label("Order").select_option(sort)
    visit.settle()
    expected = ask(server.address, "/concordance", sort=sort)["lines"]
    assert [re.sub(r"\s|Sense \d", "", line) for line in lines_of(visit)] == [
        re.sub(r"\s", "", line["left"] + line["word"] + line["right"]) for line in expected
    ]
    visit.expect_visible("h2", f"{WORD}: {len(expected)} usages")
    playwright.expect(visit.page.locator(".kwic .node .dot")).to_have_count(
        len(expected) if sort == "sense" else 0
    )


def test_lines_are_sorted_by_similarity_to_a_chosen_one(visit: Visit):
    visit.go("concordance")
    visit.page.get_by_label("Order").select_option("similarity")
    visit.expect_visible("[role=status]", "Choose a usage with ≈")
    chosen = visit.page.locator(".kwic li").nth(4)
    place = chosen.locator(".source").text_content() or ""
    chosen.get_by_role("button").click()
    visit.wait_for_address("sort=similarity&usage=")
    playwright.expect(visit.page.locator(".kwic li.chosen")).to_have_count(1)
    playwright.expect(visit.page.locator(".kwic li").first.locator(".value")).to_have_text("1.00")
    playwright.expect(visit.page.locator(".kwic li.chosen .source")).to_have_text(place)
    cosines = [float(text) for text in visit.page.locator(".kwic .value").all_inner_texts()]
    assert cosines == sorted(cosines, reverse=True)


def test_more_lines_are_shown_on_request_and_the_file_has_all(browser, start, tmp_path: Path):
    text = "".join(f"曹操大怒，第{number}次来攻。\n" for number in range(130)) + "=曹操大怒。\n"
    (tmp_path / "many.txt").write_text(text, encoding="utf-8")
    polyseme.index("zh-classic", tmp_path / "many.txt", tmp_path / "many")
    many = start("zh-classic", tmp_path / "many").wait()
    visit = Visit(browser, many.address)
    visit.go(f"#/concordance?word={quote('曹操')}")
    rows = visit.page.locator(".kwic li")
    playwright.expect(rows).to_have_count(50)
    visit.page.get_by_role("button", name="Show 50 more").click()
    playwright.expect(rows).to_have_count(100)
    visit.settle()
    visit.page.get_by_role("button", name="Show 31 more").click()
    playwright.expect(rows).to_have_count(131)
    visit.settle()
    saved = download(visit, "Save Usages of 曹操 as CSV")
    table = list(csv.reader(io.StringIO(saved.removeprefix("\ufeff"))))
    assert saved.startswith("\ufeff")
    assert table[0] == ["left", "word", "right", "document", "title", "line"]
    assert [row[5] for row in table[1:]] == [str(line) for line in range(1, 132)]
    visit.page.get_by_label("CSV files for Excel").uncheck()
    plain = download(visit, "Save Usages of 曹操 as CSV")
    assert plain == saved.removeprefix("\ufeff")
    visit.reload()
    playwright.expect(visit.page.get_by_label("CSV files for Excel")).not_to_be_checked()
    # All usages are on the map's file, also those that a map of 400 would not show; formulas are text.
    visit.go(f"#/senses?word={quote('曹操')}")
    table = list(csv.reader(io.StringIO(download(visit, "Save Map of usages as CSV"))))
    assert len(table) == 132
    assert [row for row in table if row[1].startswith("=")] == []
    visit.close()


def test_the_file_of_the_map_has_the_usages_that_the_map_leaves_out(visit: Visit, server):
    def leave_out(response: dict[str, Any]) -> None:
        del response["usages"][3:]

    visit.alter_response("/senses", leave_out)
    visit.go("senses")
    playwright.expect(visit.page.locator("svg.map .dot")).to_have_count(3)
    table = list(csv.reader(io.StringIO(download(visit, "Save Map of usages as CSV").removeprefix("\ufeff"))))
    assert len(table) - 1 == ask(server.address, "/concordance")["total"]
    assert sum(row[7] != "" for row in table[1:]) == 3


@pytest.mark.parametrize("size", SIZES)
def test_a_line_opens_the_page_around_it_with_the_place_marked(browser, server, size: str):
    width, height = SIZES[size]
    visit = Visit(browser, server.address, width=width)
    visit.page.set_viewport_size({"width": width, "height": height})
    visit.go("concordance")
    line = visit.page.locator(".kwic li").nth(5)
    expected = ask(server.address, "/concordance")["lines"][5]
    line.locator("a").click()
    visit.wait_for_address(f"read={expected['number']}")
    mark = visit.page.locator("dialog mark")
    playwright.expect(mark).to_have_text(WORD)
    playwright.expect(mark).to_be_in_viewport()
    visit.expect_visible("dialog", f"one.txt, line {expected['line']}")
    shown = visit.page.locator("dialog .reading-text p").count()
    later = visit.page.get_by_role("button", name="Later text")
    if later.count():
        later.click()
        visit.settle()
        assert visit.page.locator("dialog .reading-text p").count() > shown
        playwright.expect(mark).to_be_in_viewport()
    assert visit.page.evaluate("document.documentElement.scrollWidth") <= width
    visit.page.keyboard.press("Escape")
    playwright.expect(visit.page.locator("dialog")).to_have_count(0)
    assert "read=" not in visit.page.url
    visit.close()


def test_the_location_of_a_usage_leads_to_the_text_in_every_view(visit: Visit):
    for view in ("sentence", "senses"):
        visit.go(view)
        visit.page.locator("a.source").first.click()
        visit.wait_for_address("read=")
        visit.expect_visible("dialog mark")
        visit.page.get_by_role("button", name="Close").click()
        playwright.expect(visit.page.locator("dialog")).to_have_count(0)


def test_a_usage_that_the_index_does_not_have_is_said(visit: Visit):
    visit.expects_failures = True
    visit.go(f"{VIEWS['concordance']}&read=99999999")
    visit.expect_visible("dialog [role=alert]", "it has no such usage")


def test_collocates_show_their_lines_lead_to_the_word_and_are_counted_by_sense(visit: Visit, server):
    visit.go("concordance")
    expected = ask(server.address, "/collocates", k=200)["collocates"]
    rows = visit.page.locator(".collocates tbody tr")
    playwright.expect(rows).to_have_count(min(12, len(expected)))
    first = expected[0]
    playwright.expect(rows.first).to_contain_text(f"{first['log_likelihood']:,.1f}")
    rows.first.get_by_role("button").click()
    visit.wait_for_address(f"near={first['word']}")
    near = ask(server.address, "/concordance", collocate=first["word"], window=5)
    visit.expect_visible("h2", f"{WORD}: {near['total']} usage")
    visit.page.get_by_role("button", name="Near which sense?").click()
    visit.wait_for_address("senses=1")
    counts = {
        row["word"]: row["senses"] for row in ask(server.address, "/collocates", senses=True)["collocates"]
    }
    if len(counts[first["word"]]) > 1:
        playwright.expect(rows.first.locator("svg rect")).to_have_count(len(counts[first["word"]]))
    rows.first.get_by_role("link").click()
    visit.expect_visible("h2", f"{first['word']}: ")
    assert "near=" not in visit.page.url


def test_documents_are_counted_and_chosen(browser, start, tmp_path: Path):
    (tmp_path / "texts").mkdir()
    for name, count in (("甲", 3), ("乙", 9), ("丙", 0)):
        (tmp_path / "texts" / f"{name}.txt").write_text(
            "曹操大怒。\n" * count + "天色将晚。\n" * 4, encoding="utf-8"
        )
    polyseme.index("zh-classic", tmp_path / "texts", tmp_path / "novels")
    novels = start("zh-classic", tmp_path / "novels").wait()
    visit = Visit(browser, novels.address)
    visit.go(f"#/concordance?word={quote('曹操')}")
    names = visit.page.locator(".frequencies .name")
    playwright.expect(names).to_have_text(["乙.txt", "甲.txt"])  # the most frequent first
    visit.page.locator(".frequencies button").nth(1).click()
    visit.wait_for_address("documents=甲.txt")
    visit.expect_visible("h2", "曹操: 3 usages")
    playwright.expect(visit.page.get_by_label("Documents")).to_have_value("甲.txt")
    visit.page.get_by_label("Documents").fill("1-3")
    visit.page.get_by_role("button", name="Show", exact=True).click()
    visit.expect_visible("h2", "曹操: 12 usages")
    visit.expects_failures = True
    visit.page.get_by_label("Documents").fill("no such book")
    visit.page.get_by_role("button", name="Show", exact=True).click()
    visit.expect_visible("[role=alert]", "No usage fits")
    visit.close()


def test_words_lead_to_their_usages(visit: Visit):
    visit.go("sentence")
    for part in (".word-list a.word", ".rankings a.word"):
        assert "#/concordance?word=" in (visit.page.locator(part).first.get_attribute("href") or "")
    visit.go("senses")
    word = visit.page.locator(".sense-card a.word").first
    name = word.inner_text()
    word.click()
    visit.expect_visible("h2", f"{name}: ")
    visit.expect_visible(".kwic .node", name)


def test_pointing_at_a_dot_shows_its_sentence_and_a_click_opens_the_text(visit: Visit):
    visit.go("senses")
    visit.page.locator("svg.map").scroll_into_view_if_needed()
    dot = visit.page.locator("svg.map .dot").first.bounding_box()
    assert dot is not None
    x, y = dot["x"] + dot["width"] / 2, dot["y"] + dot["height"] / 2
    visit.page.mouse.move(x, y)
    playwright.expect(visit.page.locator(".dot-hint mark")).to_have_text(WORD)
    sentence = visit.page.locator(".dot-hint").inner_text()
    assert sentence in visit.page.locator(".sentences").inner_text()
    visit.page.mouse.click(x, y)
    visit.wait_for_address("read=")
    visit.expect_visible("dialog .reading-text", sentence)
    visit.page.keyboard.press("Escape")
    visit.page.mouse.move(0, 0)
    playwright.expect(visit.page.locator(".dot-hint")).to_have_count(0)


@pytest.mark.parametrize("size", SIZES)
def test_the_map_stays_in_view_while_its_sentences_scroll(browser, server, size: str):
    width, height = SIZES[size]
    visit = Visit(browser, server.address, width=width)
    visit.page.set_viewport_size({"width": width, "height": height})
    visit.go("senses")
    visit.page.locator("svg.map").scroll_into_view_if_needed()
    last = visit.page.locator(".sentences li").last
    playwright.expect(last).not_to_be_in_viewport()
    last.scroll_into_view_if_needed()
    playwright.expect(last).to_be_in_viewport()
    playwright.expect(visit.page.locator("svg.map")).to_be_in_viewport()
    visit.close()


@pytest.mark.parametrize(
    ("view", "field"), [("sentence", "textarea"), ("concordance", "input"), ("senses", "input")]
)
def test_an_empty_view_has_its_field_in_focus(visit: Visit, view: str, field: str):
    visit.go(f"#/{view}")
    playwright.expect(visit.page.locator(f".form {field}").first).to_be_focused()
    visit.page.keyboard.type("将")
    if view != "sentence":
        visit.page.keyboard.press("Enter")
    visit.wait_for_address("=将")


@pytest.mark.parametrize("size", SIZES)
def test_several_usages_are_on_the_first_screen(browser, server, size: str):
    width, height = SIZES[size]
    visit = Visit(browser, server.address, width=width)
    visit.page.set_viewport_size({"width": width, "height": height})
    visit.go("sentence")
    tops = visit.page.locator(".usages > li").evaluate_all(
        "items => items.map(item => item.getBoundingClientRect().bottom)"
    )
    assert sum(bottom <= height for bottom in tops) >= (4 if size == "desktop" else 2)
    visit.go("concordance")
    tops = visit.page.locator(".kwic li").evaluate_all(
        "items => items.map(item => item.getBoundingClientRect().bottom)"
    )
    assert sum(bottom <= height for bottom in tops) >= (12 if size == "desktop" else 6)
    visit.close()


def test_a_long_text_is_kept_in_the_browser_and_its_link_is_short(browser, server):
    text = SENTENCE * 3000  # 30,000 characters
    visit = Visit(browser, server.address)
    visit.go("#/sentence")
    visit.page.locator("textarea").fill(text)
    visit.wait_for_address("text=stored:")
    assert len(visit.page.url) < 200
    visit.expect_visible("main [role=status]", "this link holds only a key to it")
    visit.page.locator(".token").nth(1).click()
    visit.wait_for_address("token=1")
    visit.expect_visible(".usages mark")
    visit.reload()
    playwright.expect(visit.page.locator("textarea")).to_have_value(text)
    address = visit.page.url
    visit.close()
    other = Visit(browser, server.address)  # another browser
    other.page.goto(address)
    other.settle()
    other.expect_visible("main [role=status]", "this one does not have it")
    other.close()


def test_a_link_with_a_long_text_is_shortened_when_it_is_opened(visit: Visit):
    visit.go(f"#/sentence?text={quote(SENTENCE * 100)}&token=1")
    visit.expect_visible(".usages mark", WORD)
    assert "stored:" in visit.page.url
    assert len(visit.page.url) < 200


@pytest.mark.parametrize("view", ["sentence", "concordance", "senses", "compare"])
def test_a_view_is_saved_as_one_file_that_opens_without_the_server(
    browser, server, tmp_path: Path, view: str
):
    visit = Visit(browser, server.address)
    visit.go(view)
    shown = visit.page.locator("main").inner_text()
    saved = download(visit, "Save page as a file")
    assert not re.search(r"<script|<link|https?://(?!www\.w3\.org)|<button|<input|<textarea", saved)
    (tmp_path / "page.html").write_text(saved, encoding="utf-8")
    visit.close()
    context = browser.new_context(java_script_enabled=False, offline=True)
    page = context.new_page()
    requests: list[str] = []
    page.on("request", lambda request: requests.append(request.url))
    page.goto(f"file://{tmp_path / 'page.html'}")
    text = page.locator("body").inner_text()
    assert requests == [f"file://{tmp_path / 'page.html'}"]
    assert text.startswith("Saved from Polyseme")
    selectors = {
        "sentence": ".quote",
        "concordance": ".kwic .node",
        "senses": "svg.map",
        "compare": ".heatmap",
    }
    playwright.expect(page.locator(selectors[view]).first).to_be_visible()
    for word in re.findall(r"[\u4e00-\u9fff]{2,}", shown)[:30]:
        assert word in text
    assert page.evaluate("getComputedStyle(document.querySelector('h2, h3')).fontWeight") in ("600", "700")
    context.close()


def test_code_of_the_concordance_gives_what_the_page_shows(visit: Visit, server):
    visit.go(f"{VIEWS['concordance']}&sort=right")
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(visit.code("Python"), {})
    lines = ask(server.address, "/concordance", sort="right")["lines"]
    assert output.getvalue().splitlines() == [
        f"{line['left']} [{line['word']}] {line['right']}" for line in lines
    ]
    assert "--sort=right" in visit.code("Command line")
