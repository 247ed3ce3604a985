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


@pytest.mark.parametrize(("language", "dark"), [("en", False), ("en", True), ("zh", True)])
@pytest.mark.parametrize("view", [*VIEWS, CHANGE], ids=[*VIEWS, "change"])
def test_every_view_is_accessible(browser, server, axe: str, view: str, language: str, dark: bool):
    visit = Visit(browser, server.address, dark=dark)
    visit.go(view, language)
    report = visit.page.evaluate(f"async () => {{ {axe}; return await axe.run() }}")
    violations = [(rule["id"], rule["nodes"][0]["html"][:120]) for rule in report["violations"]]
    assert violations == [], json.dumps(violations, ensure_ascii=False, indent=1)
    visit.close()


@pytest.mark.parametrize("view", [*VIEWS, CHANGE], ids=[*VIEWS, "change"])
def test_no_view_is_wider_than_a_phone(browser, server, view: str):
    visit = Visit(browser, server.address, width=380)
    visit.go(view)
    assert visit.page.evaluate("document.documentElement.scrollWidth <= 380")
    visit.close()
