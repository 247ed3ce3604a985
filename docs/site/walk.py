"""Walk through the built manual in a browser: every page, in both languages, on a screen and on a phone.

    build/docs/site  ->  chromium  ->  faults, and on request a picture of each page

    python docs/site/walk.py build/docs/site [--pictures FOLDER] [PAGE…]

A fault is an error in the console, a request to another host, a page that scrolls sideways, a picture that is
not shown, and a Chinese page in English. Needs chromium.
"""

from __future__ import annotations

import argparse
import shutil
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any

from polyseme.errors import require

if TYPE_CHECKING:
    from playwright.sync_api import Browser, ConsoleMessage, Page, Request

SIZES = {"screen": (1280, 900), "phone": (390, 844)}
LEAST_CHINESE = 0.2  # of the characters of the prose of a Chinese page; generated pages are in English
GENERATED = {"api", "commands"}
# What is wider than its page, not counting what scrolls by itself, and pictures that did not load.
INSPECT = """
() => {
  const root = document.documentElement;
  const scrolls = (node) => node && node !== document.body
    && (/auto|scroll|hidden/.test(getComputedStyle(node).overflowX) || scrolls(node.parentElement));
  const wide = [...document.querySelectorAll(".md-content *")]
    .filter((node) => node.getBoundingClientRect().right > root.clientWidth + 1 && !scrolls(node))
    .map((node) => `${node.tagName.toLowerCase()} "${node.textContent.trim().slice(0, 40)}"`);
  const images = [...document.querySelectorAll(".md-content img")];
  const prose = document.querySelector(".md-content").cloneNode(true);
  prose.querySelectorAll("pre, code, math, table").forEach((node) => node.remove());
  return {
    sideways: root.scrollWidth > root.clientWidth,
    wide: wide.slice(0, 3),
    missing: images.filter((image) => !image.complete || !image.naturalWidth).map((image) => image.src),
    prose: prose.textContent,
  };
}
"""


class QuietHandler(SimpleHTTPRequestHandler):
    """Serves files without printing requests."""

    def log_message(self, format: str, *values: Any) -> None:  # noqa: A002  # the name in the class above
        """Print nothing."""


@contextmanager
def serve_folder(folder: Path) -> Iterator[str]:
    """Serve a folder on this machine; gives its address."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(QuietHandler, directory=str(folder))) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_port}"
        finally:
            server.shutdown()
            thread.join()


@contextmanager
def open_browser() -> Iterator[Browser]:
    """Start chromium without a window."""
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        sys.exit("Pictures need chromium: apt-get install chromium")
    playwright = require("playwright.sync_api", "dev", "Opening pages in a browser")
    with playwright.sync_playwright() as started:
        browser = started.chromium.launch(executable_path=program, args=["--no-sandbox"])
        try:
            yield browser
        finally:
            browser.close()


def list_paths(site: Path) -> list[str]:
    """The pages of a site, as paths of addresses: `search`, `zh/search`."""
    folders = (path.parent.relative_to(site).as_posix() for path in site.rglob("index.html"))
    return sorted("" if folder == "." else folder for folder in folders)


def find_language_fault(path: str, prose: str) -> str | None:
    """What is wrong with the language of a page, by its characters outside code and tables."""
    letters = [letter for letter in prose if letter.isalpha()]
    share = sum("\u4e00" <= letter <= "\u9fff" for letter in letters) / max(1, len(letters))
    name = path.rpartition("/")[2]
    if path.split("/")[0] == "zh" and name not in GENERATED and share < LEAST_CHINESE:
        return f"only {share:.0%} of its letters are Chinese"
    return None


def watch(page: Page, address: str) -> list[str]:
    """Collect the errors of a page and its requests to other hosts, from now on."""
    seen: list[str] = []

    def check_message(message: ConsoleMessage) -> None:
        if message.type == "error":
            seen.append(message.text)

    def check_request(request: Request) -> None:
        if not request.url.startswith((address, "data:")):
            seen.append(f"asks {request.url}")

    page.on("console", check_message)
    page.on("pageerror", lambda error: seen.append(str(error)))
    page.on("request", check_request)
    return seen


def find_faults(page: Page, path: str) -> list[str]:
    """What is wrong with the page that is open."""
    found = page.evaluate(INSPECT)
    faults = [f"{source} is not shown" for source in found["missing"]]
    faults += [f"is wider than the page: {node}" for node in found["wide"]]
    if found["sideways"]:
        faults.append("scrolls sideways")
    if fault := find_language_fault(path, found["prose"]):
        faults.append(fault)
    return faults


def walk(site: Path, paths: list[str], pictures: Path | None) -> list[str]:
    """Open each page at each size, for pictures also in dark mode; returns the faults."""
    faults: list[str] = []
    with serve_folder(site) as address, open_browser() as browser:
        for size, (width, height) in SIZES.items():
            page = browser.new_page(viewport={"width": width, "height": height})
            seen = watch(page, address)
            for path in paths:
                seen.clear()
                page.emulate_media(color_scheme="light")
                page.goto(f"{address}/{path}/" if path else f"{address}/")
                faults += [f"/{path} ({size}): {fault}" for fault in [*seen, *find_faults(page, path)]]
                for scheme in ("light", "dark") if pictures is not None else ():
                    page.emulate_media(color_scheme=scheme)
                    name = f"{path.replace('/', '-') or 'index'}.{size}.{scheme}.png"
                    page.screenshot(path=pictures / name, full_page=True)
            page.close()
    return faults


def main() -> None:
    """Walk through the site in the folder that the first argument names."""
    parser = argparse.ArgumentParser(description="Walk through the built manual in a browser.")
    parser.add_argument("site", type=Path, help="a built site, such as build/docs/site")
    parser.add_argument(
        "pages", nargs="*", metavar="PAGE", help="such as search or zh/search; by default all"
    )
    parser.add_argument("--pictures", type=Path, help="a folder for a picture of each page, light and dark")
    options = parser.parse_args()
    site = options.site.resolve()
    paths = list_paths(site)
    if not paths:
        sys.exit(f"{site} has no pages. Build it first: make docs")
    if unknown := [name for name in options.pages if name not in paths]:
        sys.exit(f"{unknown[0]}: no such page")
    if options.pictures is not None:
        options.pictures.mkdir(parents=True, exist_ok=True)
    paths = options.pages or paths
    if faults := walk(site, paths, options.pictures):
        sys.exit("\n".join([*faults, f"{len(faults)} faults"]))
    print(f"{len(paths)} pages are in order on {' and '.join(SIZES)}")


if __name__ == "__main__":
    main()
