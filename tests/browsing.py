"""The explorer in a browser: a page that records errors, and the addresses that the tests open."""

from __future__ import annotations

import os
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import httpx

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Request, Route

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SCREENSHOTS = os.environ.get(
    "POLYSEME_SCREENSHOTS"
)  # folder for the pictures of the docs; no invented curve then
TIMEOUT_MS = 60_000
AXE = "axe-core@4.14.0"
SENTENCE, WORD = "天色将晚，人马困乏。", "将"
VIEWS = {
    "sentence": f"#/sentence?text={quote(SENTENCE)}&token=1",
    "concordance": f"#/concordance?word={quote(WORD)}",
    "compare": f"#/compare?a={quote('曹操大怒。')}&b={quote('曹操大喜。')}",
    "senses": f"#/senses?word={quote(WORD)}",
    "tasks": f"#/tasks?text={quote('这家酒店很好。')}",
    "model": "#/model",
}
CHANGE = f"#/senses?from=one-index&to=other-index&words={quote('曹操')}"
# What a permalink restores: (address, selector, text).
PERMALINKS = {
    "mix": (f"{VIEWS['sentence']}&mix=0,0.5,1", "output[for=mix-1]", "0.50"),
    "same": (f"{VIEWS['sentence']}&same=1", ".usages mark", WORD),
    "token": (f"{VIEWS['compare']}&token=b1", ".token[aria-pressed=true]", "大喜"),
    "layer": (f"{VIEWS['compare']}&layer=0", "pre[aria-label=curl]", '"layer":0'),
    "area": (f"{VIEWS['senses']}&area=-9,-9,9,9", ".small", "Clear selection"),
    "sense": (f"{VIEWS['senses']}&sense=0", ".sense[aria-pressed=true]", "Sense 1"),
    "order": (f"{VIEWS['concordance']}&sort=right", ".hint", "Sorted by the three words"),
    "near": (f"{VIEWS['concordance']}&near={quote('天色')}", ".hint", "with 天色 near"),
    "reading": (f"{VIEWS['concordance']}&read=6", "dialog mark", WORD),
    "change": (CHANGE, ".change tbody th", "曹操"),
    "curves": ("#/model", "svg.curves .label", "backward"),
}
# Runs before the scripts of the page and tracks its pending work: requests, timers and animation frames.
# Timers of a second or more only show messages to the user and do not count. The page is idle once nothing is
# pending for three frames: a ResizeObserver runs between two frames.
TRACK_PENDING_WORK = """
(() => {
  const { fetch, setTimeout, clearTimeout, requestAnimationFrame, cancelAnimationFrame } = window;
  const { json } = Response.prototype;
  const pending = new Set();
  const track = (path, promise) => {
    const id = Symbol(path);
    const finish = () => setTimeout(() => pending.delete(id)); // after the page has handled the result
    pending.add(id);
    promise.then(finish, finish);
    return promise;
  };
  window.fetch = (path, ...options) => track(path, fetch(path, ...options));
  Response.prototype.json = function () { return track(this.url, json.call(this)); };
  window.setTimeout = (callback, delay = 0, ...args) => {
    const run = () => { pending.delete(`timer ${id}`); callback(...args); };
    const id = setTimeout(run, delay);
    if (delay < 1000) pending.add(`timer ${id}`);
    return id;
  };
  window.clearTimeout = (id) => { pending.delete(`timer ${id}`); clearTimeout(id); };
  window.requestAnimationFrame = (callback) => {
    const run = (time) => { pending.delete(`frame ${id}`); callback(time); };
    const id = requestAnimationFrame(run);
    pending.add(`frame ${id}`);
    return id;
  };
  window.cancelAnimationFrame = (id) => { pending.delete(`frame ${id}`); cancelAnimationFrame(id); };
  const isBusy = () => {
    const main = document.querySelector("main");
    return pending.size > 0 || !main || main.querySelector("[aria-busy=true], .loading") !== null;
  };
  window.untilIdle = async (timeout) => {
    const end = performance.now() + timeout;
    for (let idleFrames = 0; idleFrames < 3; idleFrames = isBusy() ? 0 : idleFrames + 1) {
      if (performance.now() > end) throw new Error(`The page is still busy: ${[...pending].map(String)}`);
      await new Promise((done) => requestAnimationFrame(done));
    }
  };
})();
"""


def axe_source(folder: Path) -> str | None:
    """The source of axe-core from npm; None without npm or without access to its registry."""
    if shutil.which("npm") is None:
        return None
    if subprocess.run(["npm", "pack", AXE], cwd=folder, capture_output=True).returncode:
        return None
    with tarfile.open(next(folder.glob("*.tgz"))) as archive:
        source = archive.extractfile("package/axe.min.js")
        assert source is not None
        return source.read().decode()


def tokenize(address: str, texts: list[str]) -> list[list[str]]:
    """The tokens of texts, as the server segments them."""
    response = httpx.post(f"{address}/tokenize", json={"texts": texts}, timeout=60).json()
    return [[token["text"] for token in tokens] for tokens in response["tokens"]]


def nearest(address: str, **options: Any) -> dict[str, Any]:
    """The response of /nearest for WORD in SENTENCE."""
    (tokens,) = tokenize(address, [SENTENCE])
    body = {"word": WORD, "tokens": tokens, "position": 1, "index": "one-index"}
    response: dict[str, Any] = httpx.post(f"{address}/nearest", json=body | options, timeout=60).json()
    return response


class Visit:
    """A page that records errors. With `expects_failures`, failed requests do not count as errors."""

    def __init__(
        self, browser: Browser, address: str, *, dark: bool = False, width: int = 1280, **options: Any
    ) -> None:
        self.context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light", **options
        )
        self.context.add_init_script(TRACK_PENDING_WORK)
        self.context.set_default_timeout(TIMEOUT_MS)
        self.page, self.address = self.context.new_page(), address
        self.errors: list[str] = []
        self.expects_failures = False
        self.page.on("console", self._check_message)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        self.page.on("request", self._check_host)

    def _check_message(self, message: ConsoleMessage) -> None:
        if message.type == "error" and not (self.expects_failures and "Failed to load" in message.text):
            self.errors.append(message.text)

    def _check_host(self, request: Request) -> None:
        if not request.url.startswith((self.address, "data:", "blob:")):
            self.errors.append(f"request to another host: {request.url}")

    def go(self, view: str, language: str = "en") -> None:
        """Open a view by name or by hash, and wait until the page is idle."""
        hash_ = VIEWS.get(view, view)
        separator = "&" if "?" in hash_ else "?"
        self.page.goto("about:blank")
        self.page.goto(f"{self.address}/{hash_}{separator}lang={language}")
        self.settle()

    def settle(self) -> None:
        """Wait until the page has finished its requests, timers and drawing.

        A key press or a click on a button starts its work before the call returns. A click on a link does
        not: wait for what it brings.
        """
        self.page.evaluate("timeout => untilIdle(timeout)", TIMEOUT_MS)

    def reload(self) -> None:
        self.page.reload()
        self.settle()

    def wait_for_address(self, part: str) -> None:
        """Wait until the address contains `part` and the page is idle."""
        self.page.wait_for_function("part => decodeURIComponent(location.hash).includes(part)", arg=part)
        self.settle()

    def alter_response(self, path: str, change: Callable[[dict[str, Any]], object]) -> None:
        """Change the server's response to a route before the page gets it."""

        def handle(route: Route) -> None:
            response = route.fetch()
            body = response.json()
            change(body)
            route.fulfill(response=response, json=body)

        self.page.route(f"{self.address}{path}", handle)

    def expect_visible(self, selector: str, text: str = "") -> None:
        """Wait until the first match of the selector is visible and contains the text."""
        from playwright.sync_api import expect

        element = self.page.locator(selector).first
        expect(element).to_be_visible()
        expect(element).to_contain_text(text)

    def cosines(self) -> list[str]:
        """The cosines of the nearest usages, as shown."""
        return self.page.locator(".usages .usage-info b").all_inner_texts()

    def code(self, kind: str) -> str:
        """The first code block of a kind (Python, curl, Command line); opens all of them."""
        self.page.evaluate(
            "document.querySelectorAll('details.code').forEach(block => { block.open = true })"
        )
        return self.page.locator(f"pre[aria-label='{kind}']").first.inner_text()

    def close(self) -> None:
        self.context.close()
        assert self.errors == []
