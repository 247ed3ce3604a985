"""The explorer in a real browser: every view, both languages, both themes; no error, no foreign request.

Needs Debian's chromium (`make test` installs it where it can). Screenshots go to a temporary folder, or to
$POLYSEME_SCREENSHOTS: with POLYSEME_SCREENSHOTS=docs and POLYSEME_TEXT=sanguo.txt it makes those of the docs.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import tarfile
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

import pytest

playwright = pytest.importorskip("playwright.sync_api")
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium")

AXE = "axe-core@4.14.0"
SENTENCE = "天色将晚，人马困乏。"
VIEWS = {
    "sentence": f"#/sentence?text={quote(SENTENCE)}&token=1",
    "compare": f"#/compare?a={quote('曹操大怒。')}&b={quote('曹操大喜。')}",
    "senses": f"#/senses?word={quote('将')}",
    "model": "#/model",
}


@pytest.fixture(scope="module")
def browser() -> Iterator:
    with playwright.sync_playwright() as running:
        found = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture(scope="module")
def axe(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The source of axe-core, from npm."""
    folder = tmp_path_factory.mktemp("axe")
    if shutil.which("npm") is None:
        pytest.skip("axe-core comes from npm, which is not installed")
    done = subprocess.run(["npm", "pack", AXE], cwd=folder, capture_output=True, text=True)
    if done.returncode:
        pytest.skip("axe-core cannot be fetched from npm")
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        return archive.extractfile("package/axe.min.js").read().decode()


class Visit:
    """A page that notes what goes wrong on it."""

    def __init__(self, browser, address: str, *, dark: bool = False, width: int = 1280) -> None:
        scheme = "dark" if dark else "light"
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=False
        )
        self.page, self.address, self.wrong = self.context.new_page(), address, []
        self.page.on("console", lambda said: self.wrong.append(said.text) if said.type == "error" else None)
        self.page.on("pageerror", lambda problem: self.wrong.append(str(problem)))
        self.page.on("request", self._check)

    def _check(self, request) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.wrong.append(f"asked another host: {request.url}")

    def go(self, view: str, language: str = "en") -> None:
        """Open a view and wait until it has its answers."""
        mark = "&" if "?" in VIEWS[view] else "?"
        self.page.goto(f"{self.address}/{VIEWS[view]}{mark}lang={language}")
        self.page.wait_for_load_state("networkidle")
        self.page.wait_for_function("!document.querySelector('main [aria-busy=true]')")

    def close(self) -> None:
        self.context.close()
        assert self.wrong == []


@pytest.fixture
def visit(browser, server) -> Iterator:
    found = Visit(browser, server.address)
    yield found
    found.close()


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_in_both_languages(visit: Visit, tmp_path: Path, view: str, language: str):
    visit.go(view, language)
    assert visit.page.locator("html").get_attribute("lang").startswith(language)
    wanted = {"sentence": "将", "compare": "大怒", "senses": "将", "model": "zh-classic"}[view]
    playwright.expect(visit.page.locator("main")).to_contain_text(wanted, timeout=30_000)
    folder = Path(os.environ.get("POLYSEME_SCREENSHOTS", tmp_path))
    ending = "" if language == "en" else f".{language}"
    visit.page.screenshot(path=folder / f"explorer-{view}{ending}.png")
    assert (folder / f"explorer-{view}{ending}.png").stat().st_size > 10_000


@pytest.mark.parametrize("dark", [False, True])
@pytest.mark.parametrize("view", VIEWS)
def test_every_view_is_accessible(browser, server, axe: str, view: str, dark: bool):
    visit = Visit(browser, server.address, dark=dark)
    visit.go(view)
    found = visit.page.evaluate(f"async () => {{ {axe}; return await axe.run() }}")
    broken = [(one["id"], one["nodes"][0]["html"][:120]) for one in found["violations"]]
    assert broken == [], json.dumps(broken, ensure_ascii=False, indent=1)
    visit.close()


@pytest.mark.parametrize("view", VIEWS)
def test_no_view_is_wider_than_a_phone(browser, server, view: str):
    visit = Visit(browser, server.address, width=380)
    visit.go(view)
    assert visit.page.evaluate("document.documentElement.scrollWidth <= 380")
    visit.close()


def test_a_word_is_chosen_with_the_keyboard_and_layers_are_mixed_without_asking_again(visit: Visit):
    visit.go("sentence")
    marks = visit.page.locator("mark")
    playwright.expect(marks.first).to_have_text("将")
    before = visit.page.url
    asked = []
    visit.page.on("request", lambda request: asked.append(request.url) if request.method == "POST" else None)
    slider = visit.page.locator("input[type=range]").first
    slider.focus()
    slider.press("End")
    playwright.expect(slider).to_be_focused()
    visit.page.wait_for_function("before => location.href !== before", arg=before)
    assert asked == []
    assert "mix=" in visit.page.url


def test_a_permalink_opens_the_same_view_again(visit: Visit):
    visit.go("senses")
    playwright.expect(visit.page.locator("svg circle, svg path").first).to_be_visible()
    text = visit.page.locator("main").inner_text()
    visit.page.reload()
    visit.page.wait_for_load_state("networkidle")
    playwright.expect(visit.page.locator("main")).to_contain_text(text.splitlines()[-1])


def test_the_page_and_its_files_are_small():
    from polyseme.server.pages import EXPLORER

    files = [file for file in EXPLORER.rglob("*") if file.is_file()]
    assert sum(file.stat().st_size for file in files) <= 1_000_000
    assert {file.name for file in files} >= {"preact.LICENSE", "htm.LICENSE", "d3.LICENSE"}
