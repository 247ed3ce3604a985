"""The explorer in a real browser: what one can do on it; no error, no foreign request.

Needs Debian's chromium (`make test` installs it where it can).
"""

from __future__ import annotations

import re
from pathlib import Path
from urllib.parse import quote

import pytest

from browsing import CHROMIUM, LINKS, PICTURES, SENTENCE, VIEWS, WORD, Visit

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium")


@pytest.fixture(scope="module")
def server(explored):
    return explored


def test_a_permalink_that_asks_for_what_is_not_there_says_so(visit: Visit):
    visit.go(f"{VIEWS['senses']}&index=gone&most=99")
    visit.see("main > [role=status], main [role=status]", "The index “gone” of this link is not served here")
    visit.see(".form ~ [role=status]", "from 1 to 20: 20 is taken")
    visit.see(".map")
    assert '"most":20' in visit.line("curl")
    visit.go("#/senses?word=two+words")
    visit.see("[role=status]", "These are several words. Type one.")


def test_a_little_less_than_nothing_is_shown_as_nothing(visit: Visit):
    visit.alter("/similarity", lambda found: found["matrix"][0].__setitem__(0, -0.001))
    visit.go("compare")
    playwright.expect(visit.page.locator(".heatmap .figure").first).to_have_text("0.00")


def test_the_same_word_is_linked_in_both_sentences(browser, server):
    for width in (1280, 380):
        visit = Visit(browser, server.address, width=width)
        visit.go("compare")
        rows = visit.page.locator(".linked .tokens")
        boxes = [rows.nth(at).bounding_box() for at in (0, 1)]
        assert (boxes[0]["y"] == boxes[1]["y"]) == (width > 620)  # side by side, or one over the other
        playwright.expect(visit.page.locator(".link")).to_have_count(1)  # 曹操; a full stop is no word
        playwright.expect(visit.page.locator(".lit")).to_have_count(0)
        rows.nth(1).locator(".token").first.hover()
        playwright.expect(rows.nth(0).locator(".twin")).to_have_text("曹操")
        playwright.expect(visit.page.locator(".link.lit")).to_have_count(1)
        playwright.expect(visit.page.locator(".cell.lit")).to_have_count(1)
        visit.page.mouse.move(0, 0)
        playwright.expect(visit.page.locator(".lit")).to_have_count(0)
        visit.close()


def test_links_lie_over_the_words_and_of_many_only_those_of_one_word_are_drawn(browser, server):
    words = ["曹操", "将", "兵", "玄德", "关羽", "孔明", "书信", "人马", "天色", "大喜", "孙权"]
    text, other = "，".join(words), "，".join(reversed(words))
    for width in (1280, 390):
        visit = Visit(browser, server.address, width=width)
        visit.go(f"#/compare?a={quote(text)}&b={quote(other)}")
        links = visit.page.locator(".link")
        playwright.expect(links).to_have_count(0)
        visit.page.locator(".linked .token").first.hover()
        playwright.expect(links).to_have_count(1)
        visit.settle()
        over = "one => Number(getComputedStyle(one).zIndex)"
        assert visit.page.locator(".links").evaluate(over) > 0
        ends = visit.page.locator(".linking circle").evaluate_all(
            "all => all.map(one => one.getBoundingClientRect().y)"
        )
        boxes = [
            visit.page.locator(".linked .tokens")
            .nth(side)
            .get_by_role("button", name=words[0])
            .bounding_box()
            for side in (0, 1)
        ]
        for y, box in zip(ends, boxes, strict=True):
            assert box["y"] - 6 <= y <= box["y"] + box["height"] + 6
        visit.close()


def test_sentences_are_swapped_and_a_chosen_word_is_told(visit: Visit):
    visit.go("compare")
    visit.page.locator(".linked .token").first.click()
    visit.until("token=a0")
    visit.see("section [role=status]", "“曹操” in both sentences: cosine 0.")
    visit.page.get_by_role("button", name="Swap").click()
    visit.until("a=曹操大喜。&b=曹操大怒。")
    assert "print((one @ other.T).round(2))" in visit.line("Python")
    assert visit.line("Command line").startswith("polyseme similarity ")


def test_a_text_without_words_is_no_error(visit: Visit):
    visit.go(f"#/compare?a={quote(chr(0x1F))}&b={quote(SENTENCE)}")
    visit.see("main", "One of these texts has no words")


def test_a_sense_is_picked_and_a_rectangle_is_drawn_with_the_pointer(visit: Visit):
    visit.go("senses")
    rows, every = visit.page.locator(".sentences li"), visit.page.locator(".sentences li").count()
    all_senses, sense = visit.page.locator(".sense").first, visit.page.locator(".sense").nth(1)
    sense.click()
    visit.until("sense=0")
    playwright.expect(sense).to_have_attribute("aria-pressed", "true")
    all_senses.click()
    playwright.expect(all_senses).to_have_attribute("aria-pressed", "true")
    playwright.expect(rows).to_have_count(every)
    visit.settle()
    box = visit.page.locator("svg.map").bounding_box()
    visit.page.mouse.move(box["x"] + 2, box["y"] + 2)
    visit.page.mouse.down()
    visit.page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] - 2, steps=4)
    visit.page.mouse.up()
    visit.until("box=")
    few = rows.count()
    assert 0 < few < every
    visit.reload()
    playwright.expect(rows).to_have_count(few)
    visit.page.get_by_role("button", name="Clear the rectangle").click()
    playwright.expect(rows).to_have_count(every)


def test_a_rectangle_that_is_drawn_faster_than_the_page_ends_where_the_pointer_ends(visit: Visit):
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
      await rest(60000);
      return document.querySelector(".brush .selection").getBoundingClientRect().width;
    }""")
    assert width == pytest.approx(190, abs=3)


def test_the_rectangle_is_moved_sized_and_cleared_with_the_keyboard(visit: Visit):
    visit.go("senses")
    every = visit.page.locator("svg.map .dot.faded").count()
    drawn = visit.page.locator(".brush .selection")
    visit.page.locator(".brushed").focus()
    steps = (("ArrowRight", 160, 230), ("ArrowLeft", 140, 230), ("Shift+ArrowDown", 140, 250))
    for key, left, height in steps:
        visit.page.keyboard.press(key)
        visit.settle()
        playwright.expect(drawn).to_be_visible()
        place = [float(drawn.get_attribute(name)) for name in ("x", "y", "width", "height")]
        assert place == pytest.approx([left, 115, 320, height], abs=2)
    visit.until("box=")
    visit.page.keyboard.press("Escape")
    playwright.expect(drawn).to_be_hidden()
    playwright.expect(visit.page.locator("svg.map .dot.faded")).to_have_count(every)


def in_documents(found: dict, counts: dict[str, int]) -> None:
    """An answer about senses as if the word were used in these documents, in all of them alike but the last.

    In the last it has the first sense alone.
    """
    found["documents"] = counts
    *alike, last = counts
    for number, sense in enumerate(found["senses"]):
        (share,) = sense["documents"].values()
        sense["documents"] = dict.fromkeys(alike, share) | {last: float(number == 0)}


def test_a_sample_is_called_one_and_documents_are_in_the_order_of_their_names(visit: Visit):
    def change(found: dict) -> None:
        found["senses"][0]["count"] += 1000
        in_documents(found, {f"texts/{name}.txt": 5 for name in ("10", "9", "1")})

    visit.alter("/senses", change)
    visit.go("senses")
    visit.see(".stays .hint", " usages are shown, chosen at random")
    names = visit.page.locator("svg.shares > g > text")
    playwright.expect(names).to_have_text(["1.txt", "9.txt", "10.txt"])
    playwright.expect(visit.page.locator("label", has_text="Shares by")).to_have_count(0)


def test_documents_named_by_year_are_joined_to_periods_by_their_usages(visit: Visit):
    counts = {f"{year}.txt": 10 for year in (1899, 1901, *range(1930, 1941))} | {"1909.txt": 30}
    shares: list[float] = []

    def change(found: dict) -> None:
        shares[:] = [sense["documents"]["one.txt"] for sense in found["senses"]]
        in_documents(found, counts)

    visit.alter("/senses", change)
    visit.go("senses")
    rows = visit.page.locator("svg.shares > g")
    playwright.expect(rows).to_have_count(4)
    names = [title.split(":")[0] for title in rows.locator("title").all_text_contents()]
    assert names == ["1890–1899", "1900–1909", "1930–1939", "1940–1949"]
    assert f"Sense 1 {(10 * shares[0] + 30) / 40:.0%}" in rows.nth(1).locator("title").text_content()
    visit.page.locator("label", has_text="Shares by").locator("select").select_option("document")
    visit.until("by=document")
    playwright.expect(rows).to_have_count(len(counts))


def test_a_word_of_the_table_of_change_keeps_the_table(visit: Visit):
    visit.go("#/senses")
    visit.page.get_by_label("Words (all frequent ones if left empty)").fill("曹操 将")
    visit.page.locator("select[name=other]").select_option("one-index")
    visit.page.get_by_role("button", name="Compare").click()
    visit.page.locator(".change").get_by_role("link", name="将").click()
    visit.see("h2", "将")
    visit.until("one=one-index&other=one-index&words=曹操 将".replace(" ", "+"))
    visit.see(".change")
    assert visit.line("Command line").startswith("polyseme senses ")


@pytest.mark.skipif(bool(PICTURES), reason="no curve")
def test_the_steps_of_a_curve_are_plain_numbers_around_its_values(visit: Visit):
    visit.go("model")
    steps = visit.page.locator("svg.curves > g > text")
    playwright.expect(steps).to_have_text([str(step) for step in range(30, 100, 10)])


@pytest.mark.parametrize("name", LINKS)
def test_a_permalink_opens_what_was_on_screen(visit: Visit, name: str):
    place, selector, text = LINKS[name]
    if name == "curves" and PICTURES:
        pytest.skip("no curve")
    visit.go(place)
    visit.line("curl")
    playwright.expect(visit.page.locator("main").locator(selector, has_text=text).first).to_be_visible()


@pytest.mark.parametrize(
    ("view", "text"),
    [("sentence", "Type a sentence"), ("compare", "Two sentences"), ("senses", "Type a word")],
)
def test_an_empty_view_offers_an_example(visit: Visit, view: str, text: str):
    visit.go(f"#/{view}")
    visit.see(".empty", text)
    visit.page.locator(".empty a").first.click()
    playwright.expect(visit.page.locator(".empty")).to_have_count(0)
    visit.settle()


@pytest.mark.parametrize("view", ["sentence", "senses"])
def test_without_an_index_the_page_says_how_to_make_one(visit: Visit, view: str):
    visit.alter("/info", lambda info: info.update(indexes=[]))
    visit.go(view)
    visit.see("main pre", "corpus-index")


REFUSALS = {
    "busy": (429, "busy", "The server is busy.", "It will be tried again in 1 s."),
    "internal": (500, "internal", "Something went wrong in the server.", "Try again"),
    "missing": (404, "not_found", "The server does not have this.", "An own sentence."),
    "network": (0, "", "The server cannot be reached.", "Try again"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_what_goes_wrong_is_told_and_tried_again(visit: Visit, name: str):
    status, kind, *said = REFUSALS[name]
    visit.refused = True
    body = {"error": "An own sentence.", "error_type": kind}

    def refuse(route) -> None:
        route.fulfill(status=status, json=body, headers={"Retry-After": "1"}) if status else route.abort()

    visit.page.route("**/tokenize", refuse)
    visit.go("sentence")
    for text in said:
        visit.see("[role=alert]", text)
    visit.page.unroute("**/tokenize")
    if name == "missing":  # what was refused as wrong would be refused again
        playwright.expect(visit.page.locator("[role=alert] button")).to_have_count(0)
        return
    if name != "busy":
        visit.page.get_by_role("button", name="Try again").click()
    visit.see(".token")


def test_a_word_that_the_corpus_does_not_have_is_no_error(visit: Visit):
    visit.refused = True
    visit.go(f"#/sentence?text={quote('张飞大怒。')}&token=0", "zh")
    text = visit.page.locator("section[aria-labelledby=types-title]")
    playwright.expect(text).to_contain_text("索引的语料中没有这个词。")
    playwright.expect(visit.page.locator("[role=alert]")).to_have_count(0)
    visit.go(f"#/senses?word={WORD * 2}", "zh")
    visit.see(".missing", "写法相近的词")
    visit.page.locator(".missing").get_by_role("link", name=WORD, exact=True).click()
    visit.see("h2", f"{WORD}：")


def test_no_english_is_left_on_the_chinese_page(visit: Visit):
    visit.refused = True
    for place, said in (
        (f"#/senses?one=one-index&other=other-index&words={quote('烧毁')}", "至少需要 5 次"),
        (f"#/compare?a={quote('字 ' * 2001)}&b={quote('字')}", "其中一句有 2,001 个词，最多 2,000 个。"),
    ):
        visit.go(place, "zh")
        visit.see("[role=alert]", said)
        assert visit.page.locator("[role=alert]").inner_text().isascii() is False
        assert not re.search("[a-z]{3}", visit.page.locator("[role=alert]").inner_text())
    visit.go("model", "zh")
    facts = " ".join(visit.page.locator(".facts").first.locator("dd").all_inner_texts())
    assert "790 万（不含 softmax）" in facts
    known = {"softmax", "lstm", "relu", "codepoints", "highway", "adamw"}
    assert set(re.findall("[a-z]{3,}", facts)) <= known
    visit.see("main", "权重采用 Polyseme 的许可证，即 Apache 2.0。")


def test_a_slow_answer_is_waited_for_in_sight(visit: Visit):
    seen = []

    def hold(route) -> None:
        visit.see(".loading", "Loading…")
        seen.append(visit.page.locator(".map").count())
        route.continue_()

    visit.page.route("**/senses", hold)
    visit.page.goto(f"{visit.address}/{VIEWS['senses']}&lang=en")
    visit.see(".map")
    assert seen == [0]


def test_a_key_is_asked_for_and_stands_in_the_lines(browser, server, start, tmp_path: Path):
    (tmp_path / "key").write_text("a-key")
    guarded = start("zh-classic", "--api-key-file", tmp_path / "key").wait()
    visit = Visit(browser, guarded.address, http_credentials={"username": "", "password": "a-key"})
    visit.go("model")
    assert '-H "Authorization: Bearer $POLYSEME_KEY"' in visit.line("curl")
    visit.close()
    visit = Visit(browser, server.address)
    visit.refused = True

    def check(route) -> None:
        known = route.request.headers.get("authorization") == "Bearer a-key"
        route.continue_() if known else route.fulfill(status=401, json={"error_type": "unauthorized"})

    visit.page.route("**/info", check)
    visit.go("model")
    for key in ("wrong", "a-key"):
        visit.page.get_by_label("This server asks for an API key").fill(key)
        visit.page.get_by_role("button", name="Use this key").click()
        visit.settle()  # the wrong one is refused, and the form stays
    visit.see("h2.title", "zh-classic")
    assert '-H "Authorization: Bearer $POLYSEME_KEY"' in visit.line("curl")
    visit.close()


def test_the_page_and_its_files_are_small():
    from polyseme.server.http.pages import EXPLORER

    files = [file for file in EXPLORER.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) <= 1_000_000
    assert {file.name for file in files} >= {"preact.LICENSE", "htm.LICENSE", "d3.LICENSE"}
