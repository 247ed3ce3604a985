"""Timeline and persons in a real browser: ranges by mouse, touch and keyboard, change, pages of persons.

Needs Debian's chromium (`make test` installs it if it can).
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

import polyseme
from browsing import CHROMIUM, SCREENSHOTS, Visit, axe_source

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium")

TIMELINE = "#/timeline?word=bank"
YEARS = range(1800, 1880, 10)
PERSONS = "#/persons"


@pytest.fixture(scope="module")
def explored(start_server, tmp_path_factory: pytest.TempPathFactory) -> Iterator:
    """A server with letters of eighty years: a bank is beside a river first, and later full of money."""
    folder = tmp_path_factory.mktemp("letters")
    for number, year in enumerate(YEARS):
        place = "the bank of the river was green" if year < 1840 else "the bank lent us the money"
        lines = [
            f"In {year} Anna said that {place} .",
            f"So Anna said to Peter that {place} again .",
            "Peter said that the rain fell .",
            *(["Then Peter said that Anna came home from the war ."] * (number + 1)),
        ]
        (folder / f"{year}_letter.txt").write_text("\n\n".join(lines * 3))
    polyseme.index("en-classic", sorted(folder.glob("*.txt")), folder / "letters-index", progress=False)
    process = start_server("en-classic", folder / "letters-index").wait()
    yield process
    process.stop()


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core, from npm."""
    source = axe_source(tmp_path_factory.mktemp("axe"))
    return source or pytest.skip("axe-core needs npm and its registry")


def column(visit: Visit, number: int) -> tuple[float, float]:
    """The middle of a column of the chart, on the screen."""
    box = visit.page.locator(".timeline .column").nth(number).bounding_box()
    assert box is not None
    return box["x"] + box["width"] / 2, box["y"] + box["height"] / 2


def drag(visit: Visit, first: int, last: int) -> None:
    visit.page.mouse.move(*column(visit, first))
    visit.page.mouse.down()
    visit.page.mouse.move(*column(visit, (first + last) // 2))
    visit.page.mouse.move(*column(visit, last))
    visit.page.mouse.up()
    visit.settle()


def test_two_drags_on_the_chart_compare_two_ranges(visit: Visit):
    visit.go(TIMELINE)
    visit.expect_visible("h2", "bank over time: years")
    playwright.expect(visit.page.locator(".timeline .column")).to_have_count(len(YEARS))
    drag(visit, 0, 3)
    visit.wait_for_address("from=0-3")
    playwright.expect(visit.page.locator(".range")).to_have_count(1)
    drag(visit, 7, 4)  # to the left
    visit.wait_for_address("to=4-7")
    visit.expect_visible("#range-change-title", "Change from 1800–1830 to 1840–1870")
    visit.expect_visible(".change tbody th", "bank")
    assert "24 → 24" in visit.page.locator(".change tbody tr").inner_text()
    visit.page.evaluate("document.querySelectorAll('details.code').forEach(block => { block.open = true })")
    commands = visit.page.locator("pre[aria-label='Command line']").all_inner_texts()
    assert any("--documents=1-4 --against=5-8" in command for command in commands)
    drag(visit, 2, 2)
    visit.wait_for_address("from=2-2")
    assert "to=" not in visit.page.url


def test_the_words_that_changed_most_are_listed_and_lead_to_their_timelines(visit: Visit):
    visit.go(f"{TIMELINE}&from=0-3&to=4-7")
    visit.page.get_by_role("button", name="Words that changed most").click()
    visit.wait_for_address("all=1")
    rows = visit.page.locator(".change tbody th a")
    assert rows.count() > 1
    word = rows.first.inner_text()
    rows.first.click()
    visit.wait_for_address(f"word={word}")
    visit.expect_visible("#timeline-title", f"{word} over time")


def test_ranges_are_set_and_moved_with_the_keyboard(visit: Visit):
    visit.go(TIMELINE)
    strip = visit.page.get_by_role("group", name="Range A")
    strip.get_by_role("button", name="1800–1810").press("Enter")
    visit.wait_for_address("from=0-1")
    end = visit.page.get_by_role("slider", name="Range A: end")
    playwright.expect(end).to_have_attribute("aria-valuetext", "1810")
    end.press("ArrowRight")
    visit.wait_for_address("from=0-2")
    end.press("Shift+ArrowRight")
    visit.wait_for_address("from=1-3")
    end.press("End")
    visit.wait_for_address("from=1-7")
    start = visit.page.get_by_role("slider", name="Range A: start")
    start.press("Home")
    visit.wait_for_address("from=0-7")
    start.press("ArrowLeft")  # stays inside
    visit.settle()
    assert "from=0-7" in visit.page.url


def test_an_end_is_dragged_and_a_range_is_drawn_with_a_finger(browser, explored):
    visit = Visit(browser, explored.address, width=390, has_touch=True)
    visit.go(f"{TIMELINE}&from=0-1&to=6-7")
    handle = visit.page.get_by_role("slider", name="Range B: start")
    handle.scroll_into_view_if_needed()
    box, target = handle.bounding_box(), visit.page.locator(".range-track").nth(1).bounding_box()
    assert box is not None
    assert target is not None
    y = box["y"] + box["height"] / 2
    visit.page.mouse.move(box["x"] + box["width"] / 2, y)
    visit.page.mouse.down()
    visit.page.mouse.move(target["x"] + target["width"] * 4.5 / 8, y, steps=4)
    visit.page.mouse.up()
    visit.wait_for_address("to=4-7")
    touch = visit.context.new_cdp_session(visit.page)
    visit.page.locator(".range-track").first.scroll_into_view_if_needed()
    track = visit.page.locator(".range-track").first.bounding_box()
    assert track is not None
    row = track["y"] + track["height"] / 2
    points = [{"x": track["x"] + track["width"] * share, "y": row} for share in (4.5 / 8, 5.5 / 8, 6.5 / 8)]
    touch.send("Input.dispatchTouchEvent", {"type": "touchStart", "touchPoints": [points[0]]})
    for point in points[1:]:
        touch.send("Input.dispatchTouchEvent", {"type": "touchMove", "touchPoints": [point]})
    touch.send("Input.dispatchTouchEvent", {"type": "touchEnd", "touchPoints": []})
    visit.wait_for_address("from=4-6")
    visit.close()


def test_a_word_that_is_rare_in_a_range_gets_a_hint(visit: Visit):
    visit.go("#/timeline?word=green&from=0-3&to=4-7")
    visit.expect_visible("[role=status]", "fewer than 5 usages in one of the ranges")


def test_another_grouping_clears_the_ranges(visit: Visit):
    visit.go(f"{TIMELINE}&from=0-3&to=4-7")
    visit.page.get_by_label("Group by").select_option("year/25")
    visit.wait_for_address("by=year/25")
    assert "from=" not in visit.page.url
    playwright.expect(visit.page.locator(".timeline .column")).to_have_count(3)
    assert '"by":"year/25"' in visit.code("curl")


def test_an_invalid_range_is_left_out(visit: Visit):
    visit.go(f"{TIMELINE}&from=5-99&to=x")
    playwright.expect(visit.page.locator(".range")).to_have_count(0)


def test_the_chart_is_saved_as_a_table_with_intervals(visit: Visit):
    visit.go(TIMELINE)
    with visit.page.expect_download() as download:
        visit.page.get_by_role("button", name="Save Timeline as CSV").click()
    rows = Path(download.value.path()).read_text(encoding="utf-8-sig").splitlines()
    assert rows[0].startswith("period,documents,usages,all usages,per million,low,high")
    assert rows[1].startswith("1800,1-1,6,")
    assert len(rows) == len(YEARS) + 1
    with visit.page.expect_download() as download:
        visit.page.get_by_role("button", name="Save Timeline as SVG").click()
    assert "bank over time" in Path(download.value.path()).read_text(encoding="utf-8")


def test_a_person_has_a_page_with_companions_and_passages(visit: Visit):
    visit.go(PERSONS)
    visit.expect_visible("#persons-title", "2 persons in letters-index")
    playwright.expect(visit.page.locator(".network a")).to_have_count(2)
    visit.page.locator(".persons tbody th a", has_text="Anna").click()
    visit.wait_for_address("name=Anna")
    visit.expect_visible("#person-title", "Anna")
    playwright.expect(visit.page.locator(".mentions .bar")).to_have_count(len(YEARS))
    visit.expect_visible(".pair-lists .word-list", "Peter")
    visit.expect_visible(".passages", "Anna said")
    visit.expect_visible("main", "With a task model for coreference")
    assert "polyseme.characters(" in visit.code("Python")
    visit.page.locator(".network a", has_text="Peter").click()
    visit.wait_for_address("name=Peter")
    visit.expect_visible("#person-title", "Peter")


def test_the_senses_of_a_name_lead_to_its_page(visit: Visit):
    visit.go("#/senses?word=Anna")
    visit.page.get_by_role("link", name="Anna as a person").click()
    visit.wait_for_address("name=Anna")
    visit.go("#/senses?word=bank")
    assert visit.page.get_by_role("link", name="as a person").count() == 0


def test_an_unknown_person_gets_the_list(visit: Visit):
    visit.go(f"{PERSONS}?name=Nobody")
    visit.expect_visible("[role=status]", "“Nobody” is not among the most frequent persons")
    visit.expect_visible("#persons-title")


def test_grammatical_groups_are_named_and_can_be_merged(visit: Visit):
    def make_grammatical(values: dict) -> None:
        values["kind"], values["candidates"] = "groups", 2
        evidence = {"topic": 0.1, "p": 0.5, "usual": 0.1, "overlap": 0.6}
        values["evidence"] = evidence | {"grammar": 0.8, "is_grammatical": True}
        values["senses"] = [
            values["senses"][0] | {"before": ["that"], "after": ["said"]},
            values["senses"][0] | {"before": ["met"], "after": ["."]},
        ]

    visit.alter_response("/senses", make_grammatical)
    visit.go("#/senses?word=Anna&groups=1")
    visit.expect_visible(".grammar", "mainly grammatical positions")
    assert visit.page.locator(".grammar li").all_inner_texts() == [
        "Group 1: that [Anna] said",
        "Group 2: met [Anna] .",
    ]
    visit.page.get_by_text("Group by context instead").click()
    visit.expect_visible(".grammar pre", "--view context")
    visit.page.locator(".grammar").get_by_role("button", name="Merge the groups").click()
    visit.wait_for_address("max=1")


def test_two_usages_are_compared_with_what_is_usual(visit: Visit):
    visit.go("#/compare?a=the+bank+of+the+river&b=the+bank+lent+us+money")
    visit.expect_visible(".cosine-scale .pair-mark", "the")
    visit.expect_visible(".verdicts", "“bank”")
    assert '"index":"letters-index"' in visit.code("curl")
    visit.page.get_by_label("Layer").select_option("mean")
    visit.wait_for_address("layer=mean")
    visit.expect_visible("main", "These are plain vectors of the model")
    playwright.expect(visit.page.locator(".cosine-scale")).to_have_count(0)


@pytest.mark.parametrize(("width", "dark", "language"), [(1280, False, "en"), (390, True, "zh")])
@pytest.mark.parametrize("view", ["timeline", "persons", "person", "senses", "compare"])
def test_the_views_are_accessible_and_fit_the_screen(
    browser, explored, axe: str, tmp_path: Path, view: str, width: int, dark: bool, language: str
):
    hashes = {
        "timeline": f"{TIMELINE}&from=0-3&to=4-7&groups=1",
        "persons": PERSONS,
        "person": f"{PERSONS}?name=Anna",
        "senses": "#/senses?word=Anna&groups=1",
        "compare": "#/compare?a=the+bank+of+the+river&b=the+bank+lent+us+money",
    }
    visit = Visit(browser, explored.address, dark=dark, width=width)
    visit.go(hashes[view], language)
    report = visit.page.evaluate(f"async () => {{ {axe}; return await axe.run() }}")
    violations = [(rule["id"], rule["nodes"][0]["html"][:160]) for rule in report["violations"]]
    assert violations == [], json.dumps(violations, ensure_ascii=False, indent=1)
    assert visit.page.evaluate(f"document.documentElement.scrollWidth <= {width}")
    folder = Path(SCREENSHOTS or tmp_path)
    visit.page.screenshot(path=folder / f"explorer-{view}-{width}.png", full_page=True)
    visit.close()
