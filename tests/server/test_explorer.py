"""The explorer in a real browser: what users can do, without errors or requests to other hosts.

Needs Debian's chromium (`make test` installs it if it can).
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest

from browsing import CHROMIUM, PERMALINKS, SCREENSHOTS, SENTENCE, VIEWS, WORD, Visit

if TYPE_CHECKING:
    from playwright.sync_api import FloatRect, Locator, Route

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium")


@pytest.fixture(scope="module")
def server(explored):
    return explored


def bounds(element: Locator) -> FloatRect:
    """The bounding rectangle of a visible element."""
    rectangle = element.bounding_box()
    assert rectangle is not None
    return rectangle


def test_an_invalid_permalink_shows_what_is_used_instead(visit: Visit):
    visit.go(f"{VIEWS['senses']}&index=gone&max=99")
    visit.expect_visible(
        "main [role=status]", "This server has no index named “gone”. Showing “one-index” instead."
    )
    visit.expect_visible(".form ~ [role=status]", "must be from 1 to 20. Using 20.")
    visit.expect_visible(".map")
    assert '"max_senses":20' in visit.code("curl")
    visit.go("#/senses?word=two+words")
    visit.expect_visible("[role=status]", "Type a single word.")


def test_a_tiny_negative_cosine_is_shown_as_zero(visit: Visit):
    visit.alter_response("/similarity", lambda response: response["matrix"][0].__setitem__(0, -0.001))
    visit.go("compare")
    playwright.expect(visit.page.locator(".heatmap .figure").first).to_have_text("0.00")


def test_the_same_word_is_linked_in_both_sentences(browser, server):
    for width in (1280, 380):
        visit = Visit(browser, server.address, width=width)
        visit.go("compare")
        rows = visit.page.locator(".linked .tokens")
        first, second = (bounds(rows.nth(row)) for row in (0, 1))
        assert (first["y"] == second["y"]) == (width > 620)  # side by side or stacked
        playwright.expect(visit.page.locator(".link")).to_have_count(1)  # 曹操; the full stop is not linked
        playwright.expect(visit.page.locator(".highlighted")).to_have_count(0)
        rows.nth(1).locator(".token").first.hover()
        playwright.expect(rows.nth(0).locator(".same-word")).to_have_text("曹操")
        playwright.expect(visit.page.locator(".link.highlighted")).to_have_count(1)
        playwright.expect(visit.page.locator(".cell.highlighted")).to_have_count(1)
        visit.page.mouse.move(0, 0)
        playwright.expect(visit.page.locator(".highlighted")).to_have_count(0)
        visit.close()


def test_with_many_shared_words_only_the_links_of_the_active_word_are_drawn(browser, server):
    words = ["曹操", "将", "兵", "玄德", "关羽", "孔明", "书信", "人马", "天色", "大喜", "孙权"]
    first, second = "，".join(words), "，".join(reversed(words))
    for width in (1280, 390):
        visit = Visit(browser, server.address, width=width)
        visit.go(f"#/compare?a={quote(first)}&b={quote(second)}")
        links = visit.page.locator(".link")
        playwright.expect(links).to_have_count(0)
        visit.page.locator(".linked .token").first.hover()
        playwright.expect(links).to_have_count(1)
        visit.settle()
        z_index = "element => Number(getComputedStyle(element).zIndex)"
        assert visit.page.locator(".links").evaluate(z_index) > 0  # above the words
        ends = visit.page.locator(".link circle").evaluate_all(
            "circles => circles.map(circle => circle.getBoundingClientRect().y)"
        )
        for row, y in enumerate(ends):
            sentence = visit.page.locator(".linked .tokens").nth(row)
            button = bounds(sentence.get_by_role("button", name=words[0]))
            assert button["y"] - 6 <= y <= button["y"] + button["height"] + 6
        visit.close()


def test_sentences_are_swapped_and_the_nearest_words_of_a_chosen_word_are_listed(visit: Visit):
    visit.go("compare")
    visit.page.locator(".linked .token").first.click()
    visit.wait_for_address("token=a0")
    visit.expect_visible("section [role=status]", "“曹操” in both sentences: cosine 0.")
    visit.page.get_by_role("button", name="Swap").click()
    visit.wait_for_address("a=曹操大喜。&b=曹操大怒。")
    assert "print(result.compare_tokens().round(2))" in visit.code("Python")
    assert visit.code("Command line").startswith("polyseme similarity ")


def test_a_text_without_words_gets_a_hint(visit: Visit):
    visit.expects_failures = True
    visit.go(f"#/compare?a={quote(chr(0x1F))}&b={quote(SENTENCE)}")
    visit.expect_visible("main", "One of the texts contains no words")


def test_a_sense_is_chosen_and_an_area_is_selected_with_the_pointer(visit: Visit):
    visit.go("senses")
    rows = visit.page.locator(".sentences li")
    total = rows.count()
    all_senses, sense = visit.page.locator(".sense").first, visit.page.locator(".sense").nth(1)
    sense.click()
    visit.wait_for_address("sense=0")
    playwright.expect(sense).to_have_attribute("aria-pressed", "true")
    all_senses.click()
    playwright.expect(all_senses).to_have_attribute("aria-pressed", "true")
    playwright.expect(rows).to_have_count(total)
    visit.settle()
    frame = bounds(visit.page.locator("svg.map"))
    visit.page.mouse.move(frame["x"] + 2, frame["y"] + 2)
    visit.page.mouse.down()
    visit.page.mouse.move(frame["x"] + frame["width"] / 2, frame["y"] + frame["height"] - 2, steps=4)
    visit.page.mouse.up()
    visit.wait_for_address("area=")
    few = rows.count()
    assert 0 < few < total
    visit.reload()
    playwright.expect(rows).to_have_count(few)
    visit.page.get_by_role("button", name="Clear selection").click()
    playwright.expect(rows).to_have_count(total)


def test_a_fast_drag_selects_up_to_the_last_position_of_the_pointer(visit: Visit):
    visit.go("senses")
    width = visit.page.evaluate("""async () => {
      const area = document.querySelector(".brush .overlay");
      const { left, top } = area.getBoundingClientRect();
      const send = (to, kind, at) => to.dispatchEvent(
        new MouseEvent(kind, { clientX: left + at, clientY: top + at, bubbles: true, view: window }));
      send(area, "mousedown", 10);
      for (const at of [40, 70, 100]) {
        send(window, "mousemove", at);
        await new Promise((done) => requestAnimationFrame(done));
      }
      for (const at of [120, 150, 180, 200]) {
        send(window, "mousemove", at);
        await new Promise((done) => queueMicrotask(done));
      }
      send(window, "mouseup", 200);
      await untilIdle(60000);
      return document.querySelector(".brush .selection").getBoundingClientRect().width;
    }""")
    assert width == pytest.approx(190, abs=3)


def test_the_selected_area_is_moved_resized_and_cleared_with_the_keyboard(visit: Visit):
    visit.go("senses")
    total = visit.page.locator("svg.map .dot.faded").count()
    area = visit.page.locator(".brush .selection")
    visit.page.locator(".map-area").focus()
    steps = (("ArrowRight", 160, 230), ("ArrowLeft", 140, 230), ("Shift+ArrowDown", 140, 250))
    for key, left, height in steps:
        visit.page.keyboard.press(key)
        visit.settle()
        playwright.expect(area).to_be_visible()
        shape = [float(area.get_attribute(name) or "nan") for name in ("x", "y", "width", "height")]
        assert shape == pytest.approx([left, 115, 320, height], abs=2)
    visit.wait_for_address("area=")
    visit.page.keyboard.press("Escape")
    playwright.expect(area).to_be_hidden()
    playwright.expect(visit.page.locator("svg.map .dot.faded")).to_have_count(total)


def spread_over_documents(response: dict[str, Any], counts: dict[str, int]) -> None:
    """Change a response of /senses: equal shares in all documents; the last has the first sense only."""
    response["documents"] = counts
    *equal, last = counts
    for number, sense in enumerate(response["senses"]):
        (share,) = sense["documents"].values()
        sense["documents"] = dict.fromkeys(equal, share) | {last: float(number == 0)}


def test_a_sample_is_announced_and_documents_are_sorted_by_name(visit: Visit):
    def change(response: dict[str, Any]) -> None:
        response["senses"][0]["count"] += 1000
        spread_over_documents(response, {f"texts/{name}.txt": 5 for name in ("10", "9", "1")})

    visit.alter_response("/senses", change)
    visit.go("senses")
    visit.expect_visible("#area-hint", "Showing a random sample of")
    names = visit.page.locator("svg.shares > g > text")
    playwright.expect(names).to_have_text(["1.txt", "9.txt", "10.txt"])
    playwright.expect(visit.page.locator("label", has_text="Group by")).to_have_count(0)


def test_documents_named_by_year_are_grouped_into_periods_weighted_by_usages(visit: Visit):
    counts = {f"{year}.txt": 10 for year in (1899, 1901, *range(1930, 1941))} | {"1909.txt": 30}
    shares: list[float] = []

    def change(response: dict[str, Any]) -> None:
        shares[:] = [sense["documents"]["one.txt"] for sense in response["senses"]]
        spread_over_documents(response, counts)

    visit.alter_response("/senses", change)
    visit.go("senses")
    rows = visit.page.locator("svg.shares > g")
    playwright.expect(rows).to_have_count(4)
    names = [title.split(":")[0] for title in rows.locator("title").all_text_contents()]
    assert names == ["1890–1899", "1900–1909", "1930–1939", "1940–1949"]
    assert f"Group 1 {(10 * shares[0] + 30) / 40:.0%}" in (rows.nth(1).locator("title").text_content() or "")
    visit.page.locator("label", has_text="Group by").locator("select").select_option("document")
    visit.wait_for_address("by=document")
    playwright.expect(rows).to_have_count(len(counts))


def test_a_link_in_the_change_table_keeps_the_table(visit: Visit):
    visit.go("#/senses")
    visit.page.get_by_label("Words (empty: all frequent content words)").fill("曹操 将")
    visit.page.locator("select[name=to]").select_option("one-index")
    visit.page.get_by_role("button", name="Compare").click()
    visit.page.locator(".change").get_by_role("link", name="将").click()
    visit.expect_visible("h2", "将")
    visit.wait_for_address("from=one-index&to=one-index&words=曹操 将".replace(" ", "+"))
    visit.expect_visible(".change")
    assert visit.code("Command line").startswith("polyseme senses ")


@pytest.mark.skipif(bool(SCREENSHOTS), reason="no curve")
def test_the_ticks_of_a_curve_are_round_numbers_around_its_values(visit: Visit):
    visit.go("model")
    ticks = visit.page.locator("svg.curves > g > text")
    playwright.expect(ticks).to_have_text([str(tick) for tick in range(30, 100, 10)])


@pytest.mark.parametrize("name", PERMALINKS)
def test_a_permalink_opens_what_was_on_screen(visit: Visit, name: str):
    address, selector, text = PERMALINKS[name]
    if name == "curves" and SCREENSHOTS:
        pytest.skip("no curve")
    visit.go(address)
    visit.code("curl")
    playwright.expect(visit.page.locator("main").locator(selector, has_text=text).first).to_be_visible()


@pytest.mark.parametrize(
    ("view", "text"),
    [("sentence", "Type a sentence"), ("compare", "Compare two sentences"), ("senses", "Type a word")],
)
def test_an_empty_view_offers_an_example(visit: Visit, view: str, text: str):
    visit.go(f"#/{view}")
    visit.expect_visible(".empty", text)
    visit.page.locator(".empty a").first.click()
    playwright.expect(visit.page.locator(".empty")).to_have_count(0)
    visit.settle()


@pytest.mark.parametrize("view", ["sentence", "concordance", "senses"])
def test_without_an_index_the_page_says_how_to_build_one(visit: Visit, view: str):
    visit.alter_response("/info", lambda info: info.update(indexes=[]))
    visit.go(view)
    visit.expect_visible("main pre:visible", "corpus-index")


FAILURES = {
    "busy": (429, "busy", "The server is busy.", "Retrying in 1 s."),
    "internal": (500, "internal", "Internal server error.", "Retry"),
    "missing": (404, "not_found", "Not found on this server.", "A message."),
    "network": (0, "", "Cannot reach the server.", "Retry"),
}


@pytest.mark.parametrize("name", FAILURES)
def test_a_failed_request_shows_its_error_and_is_retried(visit: Visit, name: str):
    status, kind, *texts = FAILURES[name]
    visit.expects_failures = True
    body = {"error": "A message.", "error_type": kind}

    def fail(route: Route) -> None:
        if status:
            route.fulfill(status=status, json=body, headers={"Retry-After": "1"})
        else:
            route.abort()

    visit.page.route("**/tokenize", fail)
    visit.go("sentence")
    for text in texts:
        visit.expect_visible("[role=alert]", text)
    visit.page.unroute("**/tokenize")
    if name == "missing":  # a retry would fail again
        playwright.expect(visit.page.locator("[role=alert] button")).to_have_count(0)
        return
    if name != "busy":
        visit.page.get_by_role("button", name="Retry").click()
    visit.expect_visible(".token")


def test_a_word_outside_the_corpus_is_not_an_error(visit: Visit):
    visit.expects_failures = True
    visit.go(f"#/sentence?text={quote('张飞大怒。')}&token=0", "zh")
    text = visit.page.locator("section[aria-labelledby=words-title]")
    playwright.expect(text).to_contain_text("索引的语料中没有这个词。")
    playwright.expect(visit.page.locator("[role=alert]")).to_have_count(0)
    visit.go(f"#/senses?word={WORD * 2}", "zh")
    visit.expect_visible(".missing", "写法相近的词")
    visit.page.locator(".missing").get_by_role("link", name=WORD, exact=True).click()
    visit.expect_visible("h2", f"{WORD}：")


def test_no_english_is_left_on_the_chinese_page(visit: Visit):
    visit.expects_failures = True
    for address, text in (
        (f"#/senses?from=one-index&to=other-index&words={quote('烧毁')}", "至少需要 5 个"),
        (f"#/compare?a={quote('字 ' * 2001)}&b={quote('字')}", "其中一句有 2,001 个词，上限为 2,000 个。"),
    ):
        visit.go(address, "zh")
        visit.expect_visible("[role=alert]", text)
        assert visit.page.locator("[role=alert]").inner_text().isascii() is False
        assert not re.search("[a-z]{3}", visit.page.locator("[role=alert]").inner_text())
    visit.go("model", "zh")
    facts = " ".join(visit.page.locator(".facts").first.locator("dd").all_inner_texts())
    assert "790 万（不含 softmax）" in facts
    known = {"softmax", "lstm", "relu", "codepoints", "highway", "adamw"}
    assert set(re.findall("[a-z]{3,}", facts)) <= known
    visit.expect_visible("main", "权重采用 Polyseme 的许可证，即 Apache 2.0。")


def test_a_slow_request_shows_that_it_is_loading(visit: Visit):
    seen = []

    def hold(route: Route) -> None:
        visit.expect_visible(".loading", "Loading…")
        seen.append(visit.page.locator(".map").count())
        route.continue_()

    visit.page.route("**/senses", hold)
    visit.page.goto(f"{visit.address}/{VIEWS['senses']}&lang=en")
    visit.expect_visible(".map")
    assert seen == [0]


def test_the_page_asks_for_an_api_key_and_adds_it_to_curl(browser, server, start, tmp_path: Path):
    (tmp_path / "key").write_text("a-key")
    guarded = start("zh-classic", "--api-key-file", tmp_path / "key").wait()
    visit = Visit(browser, guarded.address, http_credentials={"username": "", "password": "a-key"})
    visit.go("model")
    assert '-H "Authorization: Bearer $POLYSEME_KEY"' in visit.code("curl")
    visit.close()
    visit = Visit(browser, server.address)
    visit.expects_failures = True

    def check(route: Route) -> None:
        if route.request.headers.get("authorization") == "Bearer a-key":
            route.continue_()
        else:
            route.fulfill(status=401, json={"error_type": "unauthorized"})

    visit.page.route("**/info", check)
    visit.go("model")
    for key in ("wrong", "a-key"):
        visit.page.get_by_label("This server requires an API key").fill(key)
        visit.page.get_by_role("button", name="Use key").click()
        visit.settle()  # with the wrong key the form stays
    visit.expect_visible("h2.title", "zh-classic")
    assert '-H "Authorization: Bearer $POLYSEME_KEY"' in visit.code("curl")
    visit.close()


def test_the_page_and_its_files_are_small():
    from polyseme.server.http.pages import EXPLORER

    files = [file for file in EXPLORER.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) <= 1_000_000
    assert {file.name for file in files} >= {"preact.LICENSE", "htm.LICENSE", "d3.LICENSE"}
