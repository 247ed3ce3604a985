"""Every view of the explorer in both languages and themes: accessible, and no wider than a phone.

Needs Debian's chromium (`make test` installs it if it can). Screenshots go to a temporary folder or to
$POLYSEME_SCREENSHOTS, with the usages of $POLYSEME_TEXT. The pictures of the manual are drawn by
docs/site/gallery.py.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from browsing import CHANGE, CHROMIUM, SCREENSHOTS, VIEWS, WORD, Visit, axe_source

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium")


@pytest.fixture(scope="module")
def server(explored):
    return explored


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core, from npm."""
    source = axe_source(tmp_path_factory.mktemp("axe"))
    return source or pytest.skip("axe-core needs npm and its registry")


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_opens_in_both_languages(visit: Visit, tmp_path: Path, view: str, language: str):
    visit.go(view, language)
    playwright.expect(visit.page.locator("html")).to_have_attribute("lang", re.compile(f"^{language}"))
    wanted = {
        "sentence": WORD,
        "concordance": WORD,
        "compare": "大怒",
        "senses": WORD,
        "tasks": "reviews",
        "model": "zh-classic",
    }[view]
    playwright.expect(visit.page.locator("main")).to_contain_text(wanted)
    folder = Path(SCREENSHOTS or tmp_path)
    ending = "" if language == "en" else f".{language}"
    visit.page.screenshot(path=folder / f"explorer-{view}{ending}.png")
    assert (folder / f"explorer-{view}{ending}.png").stat().st_size > 10_000


# Each pair of language, theme and size is among them.
@pytest.mark.parametrize(
    ("language", "dark", "size"),
    [
        ("en", False, (1280, 800)),
        ("en", True, (390, 844)),
        ("zh", True, (1280, 800)),
        ("zh", False, (390, 844)),
    ],
    ids=["en-light-desk", "en-dark-phone", "zh-dark-desk", "zh-light-phone"],
)
@pytest.mark.parametrize("view", [*VIEWS, CHANGE], ids=[*VIEWS, "change"])
def test_every_view_is_accessible_and_fits(
    browser, server, axe: str, view: str, language: str, dark: bool, size: tuple[int, int]
):
    visit = Visit(browser, server.address, dark=dark)
    visit.page.set_viewport_size({"width": size[0], "height": size[1]})
    visit.go(view, language)
    report = visit.page.evaluate(f"async () => {{ {axe}; return await axe.run() }}")
    violations = [(rule["id"], rule["nodes"][0]["html"][:120]) for rule in report["violations"]]
    assert violations == [], json.dumps(violations, ensure_ascii=False, indent=1)
    assert visit.page.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0
    visit.close()
