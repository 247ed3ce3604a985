"""A visit to the explorer: a page in a browser that notes what goes wrong on it; where tests go to."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from urllib.parse import quote

import httpx

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
PICTURES = os.environ.get("POLYSEME_SCREENSHOTS")  # where they go, and then no curve is invented
PATIENCE = 60_000  # milliseconds: a machine may be slow, and what is waited for ends the wait
AXE = "axe-core@4.14.0"
SENTENCE, WORD = "天色将晚，人马困乏。", "将"
VIEWS = {
    "sentence": f"#/sentence?text={quote(SENTENCE)}&token=1",
    "compare": f"#/compare?a={quote('曹操大怒。')}&b={quote('曹操大喜。')}",
    "senses": f"#/senses?word={quote(WORD)}",
    "model": "#/model",
}
CHANGE = f"#/senses?one=one-index&other=other-index&words={quote('曹操')}"
# What a permalink brings back: the address, where on the page, which text.
LINKS = {
    "mix": (f"{VIEWS['sentence']}&mix=0,0.5,1", "output[for=mix-1]", "0.50"),
    "same": (f"{VIEWS['sentence']}&same=1", ".usages mark", WORD),
    "token": (f"{VIEWS['compare']}&token=b1", ".token[aria-pressed=true]", "大喜"),
    "layer": (f"{VIEWS['compare']}&layer=0", "pre[aria-label=curl]", '"layer":0'),
    "box": (f"{VIEWS['senses']}&box=-9,-9,9,9", ".small", "Clear the rectangle"),
    "sense": (f"{VIEWS['senses']}&sense=0", ".sense[aria-pressed=true]", "Sense 1"),
    "change": (CHANGE, ".change tbody th", "曹操"),
    "curves": ("#/model", "svg.curves .label", "backward"),
}
# Runs before the page does, and keeps what the page has still to do: answers that it asked for, moments and
# frames that it waits for. A moment of a second or more is for people to read, and not waited for.
# The page is at rest when it has shown all and nothing new came up in three frames: what watches the size of
# an element is called between two frames.
WATCH = """
(() => {
  const { fetch, setTimeout, clearTimeout, requestAnimationFrame, cancelAnimationFrame } = window;
  const { json } = Response.prototype;
  const work = new Set();
  const asked = (path, answer) => {
    const one = Symbol(path);
    const end = () => setTimeout(() => work.delete(one)); // whoever waits for the answer goes on before
    work.add(one);
    answer.then(end, end);
    return answer;
  };
  window.fetch = (path, ...given) => asked(path, fetch(path, ...given));
  Response.prototype.json = function () { return asked(this.url, json.call(this)); };
  window.setTimeout = (run, delay = 0, ...given) => {
    const begin = () => { work.delete(`moment ${id}`); run(...given); };
    const id = setTimeout(begin, delay);
    if (delay < 1000) work.add(`moment ${id}`);
    return id;
  };
  window.clearTimeout = (id) => { work.delete(`moment ${id}`); clearTimeout(id); };
  window.requestAnimationFrame = (run) => {
    const begin = (time) => { work.delete(`frame ${id}`); run(time); };
    const id = requestAnimationFrame(begin);
    work.add(`frame ${id}`);
    return id;
  };
  window.cancelAnimationFrame = (id) => { work.delete(`frame ${id}`); cancelAnimationFrame(id); };
  const isBusy = () => {
    const drawn = document.querySelector("main");
    return work.size > 0 || !drawn || drawn.querySelector("[aria-busy=true], .loading") !== null;
  };
  window.rest = async (patience) => {
    const end = performance.now() + patience;
    for (let still = 0; still < 3; still = isBusy() ? 0 : still + 1) {
      if (performance.now() > end) throw new Error(`The page is still at work: ${[...work].map(String)}`);
      await new Promise((done) => requestAnimationFrame(done));
    }
  };
})();
"""


def axe_source(folder: Path) -> str | None:
    """The source of axe-core, through npm; None where there is no npm, or no way to its registry."""
    if shutil.which("npm") is None:
        return None
    if subprocess.run(["npm", "pack", AXE], cwd=folder, capture_output=True).returncode:
        return None
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        return archive.extractfile("package/axe.min.js").read().decode()


def tokenize(address: str, texts: list[str]) -> list[list[str]]:
    """The words of texts, as the server cuts them."""
    found = httpx.post(f"{address}/tokenize", json={"texts": texts}, timeout=60).json()["tokens"]
    return [[token["text"] for token in tokens] for tokens in found]


def nearest(address: str, **more) -> dict:
    """What the server itself says of the word."""
    (tokens,) = tokenize(address, [SENTENCE])
    body = {"word": WORD, "tokens": tokens, "place": 1, "index": "one-index"}
    return httpx.post(f"{address}/nearest", json=body | more, timeout=60).json()


class Visit:
    """A page that notes what goes wrong on it; with `refused` on, requests are meant to fail."""

    def __init__(self, browser, address: str, *, dark: bool = False, width: int = 1280, **more) -> None:
        scheme = "dark" if dark else "light"
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme=scheme, bypass_csp=False, **more
        )
        self.context.add_init_script(WATCH)
        self.context.set_default_timeout(PATIENCE)
        self.page, self.address, self.wrong = self.context.new_page(), address, []
        self.refused = False
        self.page.on("console", self._note)
        self.page.on("pageerror", lambda problem: self.wrong.append(str(problem)))
        self.page.on("request", self._check)

    def _note(self, said) -> None:
        if said.type == "error" and not (self.refused and "Failed to load" in said.text):
            self.wrong.append(said.text)

    def _check(self, request) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.wrong.append(f"asked another host: {request.url}")

    def go(self, view: str, language: str = "en") -> None:
        """Open a view, or an address of one, and wait until it has its answers."""
        place = VIEWS.get(view, view)
        mark = "&" if "?" in place else "?"
        self.page.goto("about:blank")
        self.page.goto(f"{self.address}/{place}{mark}lang={language}")
        self.settle()

    def settle(self) -> None:
        """Until the page has done all that it began: asked, drawn, and followed in its address.

        A key or a button has begun its work when the call that pressed it returns. A link has not: wait
        for what it brings.
        """
        self.page.evaluate("patience => rest(patience)", PATIENCE)

    def reload(self) -> None:
        self.page.reload()
        self.settle()

    def until(self, part: str) -> None:
        """Until the address has `part`, and the page shows it."""
        self.page.wait_for_function("part => decodeURIComponent(location.hash).includes(part)", arg=part)
        self.settle()

    def alter(self, path: str, change: Callable[[dict], object]) -> None:
        """Let the page see another answer of a route than the server gave."""

        def handle(route) -> None:
            response = route.fetch()
            body = response.json()
            change(body)
            route.fulfill(response=response, json=body)

        self.page.route(f"{self.address}{path}", handle)

    def see(self, selector: str, text: str = "") -> None:
        """Until the first of what is selected is in sight, with this text."""
        from playwright.sync_api import expect

        found = self.page.locator(selector).first
        expect(found).to_be_visible()
        expect(found).to_contain_text(text)

    def cosines(self) -> list[str]:
        """Of the nearest usages, as they are shown."""
        return self.page.locator(".usages .about b").all_inner_texts()

    def line(self, kind: str) -> str:
        """The first line to copy of a kind; all folds are opened."""
        self.page.evaluate("document.querySelectorAll('details.code').forEach(one => { one.open = true })")
        return self.page.locator(f"pre[aria-label='{kind}']").first.inner_text()

    def close(self) -> None:
        self.context.close()
        assert self.wrong == []
