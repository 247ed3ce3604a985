"""Every view of the explorer: both languages, both themes, accessible, no wider than a phone.

Needs Debian's chromium (`make test` installs it where it can). Screenshots go to a temporary folder, or to
$POLYSEME_SCREENSHOTS: with POLYSEME_SCREENSHOTS=docs and POLYSEME_TEXT=sanguo.txt it makes those of the docs.
"""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from browsing import CHANGE, CHROMIUM, PICTURES, VIEWS, WORD, Visit, axe_source

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium")


@pytest.fixture(scope="module")
def server(explored):
    return explored


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core, from npm."""
    found = axe_source(tmp_path_factory.mktemp("axe"))
    return found or pytest.skip("axe-core comes from npm, which is not here or cannot fetch it")


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_in_both_languages(visit: Visit, tmp_path: Path, view: str, language: str):
    visit.go(view, language)
    playwright.expect(visit.page.locator("html")).to_have_attribute("lang", re.compile(f"^{language}"))
    wanted = {"sentence": WORD, "compare": "大怒", "senses": WORD, "model": "zh-classic"}[view]
    playwright.expect(visit.page.locator("main")).to_contain_text(wanted)
    folder = Path(PICTURES or tmp_path)
    ending = "" if language == "en" else f".{language}"
    visit.page.screenshot(path=folder / f"explorer-{view}{ending}.png")
    assert (folder / f"explorer-{view}{ending}.png").stat().st_size > 10_000


@pytest.mark.parametrize(("language", "dark"), [("en", False), ("en", True), ("zh", True)])
@pytest.mark.parametrize("view", [*VIEWS, CHANGE], ids=[*VIEWS, "change"])
def test_every_view_is_accessible(browser, server, axe: str, view: str, language: str, dark: bool):
    visit = Visit(browser, server.address, dark=dark)
    visit.go(view, language)
    found = visit.page.evaluate(f"async () => {{ {axe}; return await axe.run() }}")
    broken = [(one["id"], one["nodes"][0]["html"][:120]) for one in found["violations"]]
    assert broken == [], json.dumps(broken, ensure_ascii=False, indent=1)
    visit.close()


@pytest.mark.parametrize("view", [*VIEWS, CHANGE], ids=[*VIEWS, "change"])
def test_no_view_is_wider_than_a_phone(browser, server, view: str):
    visit = Visit(browser, server.address, width=380)
    visit.go(view)
    assert visit.page.evaluate("document.documentElement.scrollWidth <= 380")
    visit.close()
