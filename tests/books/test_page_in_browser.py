"""The page of a book in chromium: accessible, no wider than a phone, nothing loaded, names legible.

With POLYSEME_BOOKS=books, the pages of whole books in its folders en and zh are tested. The pictures of the
manual are drawn by docs/site/gallery.py.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from browsing import CHROMIUM, axe_source
from polyseme.books.characters import Character
from polyseme.books.mentions import Paragraph, count_mentions
from polyseme.books.network import find_groups
from polyseme.books.page import BookFacts, render_page

pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium")

BOOKS = os.environ.get("POLYSEME_BOOKS")  # a folder with the books en and zh, instead of small pages
SIZES = {"desk": (1280, 800), "phone": (390, 844)}
MAX_BYTES = 200_000  # of a picture
NAMES = {
    "en": ["Anna Karenina", "Mr. Bert", "Carl", "Dora", "Emma", "Fritz", "Gerda", "Hans"],
    "zh": ["贾宝玉", "林黛玉", "薛宝钗", "王熙凤", "贾母", "袭人", "晴雯", "紫鹃"],
}


@pytest.fixture(scope="module", params=["en", "zh"])
def page(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a book; its folder has the name of its language."""
    if BOOKS:
        return Path(BOOKS).absolute() / request.param / "book.html"
    characters = [Character(name) for name in NAMES[request.param]]
    paragraphs = [
        Paragraph(number % 40, [f"{first.name}, {second.name}."])
        for number, (first, second) in enumerate((a, b) for a in characters for b in characters[1:] * 3)
    ]
    chapters = [f"Chapter {number}" for number in range(40)]
    mentions = count_mentions(paragraphs, chapters, characters)
    near = [["alpha", "beta", "gamma"]] * len(characters)
    facts = BookFacts("A book <1>", request.param, 12_345, 67.8, near, [("water", ["river", "sea"])] * 5)
    groups = find_groups(mentions, len(characters))
    path = tmp_path_factory.mktemp("page") / request.param / "book.html"
    path.parent.mkdir()
    path.write_text(render_page(facts, characters, mentions, groups), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    source = axe_source(tmp_path_factory.mktemp("axe"))
    return source or pytest.skip("axe-core needs npm and its registry")


@pytest.fixture(params=[(size, dark) for size in SIZES for dark in (False, True)], ids=str)
def opened(request: pytest.FixtureRequest, browser: Any, page: Path) -> Iterator[Any]:
    """The page in a browser of some size, light or dark, which must load nothing else."""
    (width, height), dark = SIZES[request.param[0]], request.param[1]
    context = browser.new_context(
        viewport={"width": width, "height": height}, color_scheme="dark" if dark else "light"
    )
    tab, requests = context.new_page(), list[str]()
    tab.on("request", lambda sent: requests.append(sent.url))
    tab.goto(page.as_uri())
    yield tab
    context.close()
    assert requests == [page.as_uri()]


def test_the_page_is_accessible(opened: Any, axe: str):
    report = opened.evaluate(f"async () => {{ {axe}; return await axe.run() }}")
    violations = [(rule["id"], rule["nodes"][0]["html"][:120]) for rule in report["violations"]]
    assert violations == [], json.dumps(violations, ensure_ascii=False, indent=1)


def test_the_page_fits_the_screen(opened: Any):
    assert opened.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_no_name_of_the_network_covers_another(opened: Any):
    boxes = opened.evaluate(
        "[...document.querySelectorAll('svg text.name')].map(text => { const box = text.getBBox();"
        " return [box.x, box.y, box.x + box.width, box.y + box.height] })"
    )
    assert len(boxes) >= len(NAMES["en"])
    covered = [
        (a, b)
        for number, a in enumerate(boxes)
        for b in boxes[:number]
        if min(a[2], b[2]) - max(a[0], b[0]) > 2 and min(a[3], b[3]) - max(a[1], b[1]) > 2
    ]
    assert covered == []


@pytest.mark.parametrize("part", ["top", "timeline", "network"])
def test_the_parts_of_the_page_are_pictured(browser: Any, page: Path, part: str, tmp_path: Path):
    width, height = SIZES["desk"]
    context = browser.new_context(viewport={"width": width - 240, "height": height - 220})
    tab = context.new_page()
    tab.goto(page.as_uri())
    picture = tmp_path / f"book-{part}.png"
    if part == "top":
        tab.screenshot(path=picture)
    else:
        tab.locator("svg").nth(0 if part == "timeline" else 1).screenshot(path=picture)
    context.close()
    assert 5_000 < picture.stat().st_size < MAX_BYTES
