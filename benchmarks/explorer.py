"""Speed of the explorer in a browser: first content, and clicks in every view.

    a model and its index  ->  a server and Chromium  ->  milliseconds per click, also with millions of usages

A click is what a person does next: another word of a sentence, the senses or the timeline of a word, two
ranges of it, a person, two sentences. It ends when the page has changed for the last time: all answers are
there and drawn. Every click of a run asks for something new, so that neither page nor server has it cached.
First content is the first text of a view in a new browser profile.

With --usages, an index of that many usages is written next, by repeating the blocks of the index with noise
added to their vectors, and measured in the same way; it is read through memory maps, as any index.

    python benchmarks/explorer.py MODEL INDEX [--clicks 30] [--usages 5000000] [--keep FOLDER]
        [--results benchmarks/RESULTS.md] [--against OTHER/src]

With --against, a second server runs the package of another checkout, and each visit and click is measured on
both in turns: on a busy machine the ratio says more than milliseconds do.

Needs playwright and Chromium (CHROMIUM=… names the program).
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import threading
import time
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import quote

import numpy as np

from results_page import write_results

TARGETS = {"first content": 300, "median": 100, "95%": 250, "median of millions": 1000}
LARGE = 3_000_000  # usages: a click may take a second, and a third as many are measured
VISITS = 7  # of the first page
NOISE = 0.02  # of the standard deviation of a vector, so that copies of a block differ
# Counts the requests under way, and notes when the page last changed.
WATCH = """
(() => {
  const { fetch } = window;
  let pending = 0, changed = 0;
  window.fetch = async (...request) => {
    pending += 1;
    try { return await fetch(...request); } finally { setTimeout(() => { pending -= 1; }); }
  };
  addEventListener("DOMContentLoaded", () => {
    new MutationObserver(() => { changed = performance.now(); })
      .observe(document.body, { subtree: true, childList: true, attributes: true, characterData: true });
  });
  const isBusy = () => pending > 0 || document.querySelector("main [aria-busy=true], main .loading");
  window.untilFirstContent = async () => {
    while (!document.querySelector("main .empty, main section, main .form")) {
      await new Promise(requestAnimationFrame);
    }
    return performance.now();
  };
  window.click = async (hash) => {
    const start = performance.now();
    changed = start;
    location.hash = hash;
    for (let calm = 0; calm < 4; calm = isBusy() ? 0 : calm + 1) await new Promise(requestAnimationFrame);
    const failure = document.querySelector("main .failure");
    if (failure) throw new Error(`${hash}: ${failure.textContent.trim()}`);
    return changed - start;
  };
})();
"""


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("index", type=Path)
    parser.add_argument("--clicks", type=int, default=30, help="of each kind")
    parser.add_argument("--usages", type=int, default=0, help="of a second, larger index; 0: none")
    parser.add_argument("--keep", type=Path, help="folder of the larger index; used as it is if it exists")
    parser.add_argument(
        "--results", type=Path, help="a page with <!-- explorer --> and <!-- explorer-large -->"
    )
    parser.add_argument("--against", type=Path, help="src of another checkout, to compare with")
    given = parser.parse_args()
    if given.against:
        compare(given.model, given.index, given.clicks, given.against)
        return
    with tempfile.TemporaryDirectory() as folder:
        folders = [given.index]
        if given.usages:
            folders.append(given.keep or Path(folder) / "large-index")
            if not folders[1].exists():
                repeat_index(given.index, folders[1], given.usages)
        for index in folders:
            name, lines = measure(given.model, index, given.clicks)
            if given.results:
                write_results(given.results, name, lines)


def repeat_index(source: Path, out: Path, usages: int) -> None:
    """Write an index of at least as many usages, from copies of the blocks of another one."""
    from polyseme.search.statistics import write_statistics
    from polyseme.search.usage_store import HEADER_BYTES, PRECISIONS, get_block_path, read_head, write_head

    head, rng = read_head(source), np.random.default_rng(0)
    blocks, total = list[dict[str, Any]](), 0
    partial = out.with_name(f".{out.name}")
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    while total < usages:
        number = len(blocks) % len(head["blocks"])
        entry, path = head["blocks"][number], get_block_path(partial, len(blocks))
        shutil.copyfile(get_block_path(source, number), path)
        if len(blocks) >= len(head["blocks"]):
            dtype, shape = PRECISIONS[head["precision"]], (entry["usages"], head["size"])
            vectors = np.memmap(path, dtype, "r+", offset=HEADER_BYTES, shape=shape)
            spread = NOISE * float(np.std(vectors[:1000].astype(np.float32)))
            for first in range(0, len(vectors), 10_000):
                rows = vectors[first : first + 10_000]
                rows += rng.standard_normal(rows.shape, np.float32).astype(dtype) * dtype(spread)
            vectors.flush()
        blocks.append(dict(entry))
        total += entry["usages"]
    head = {name: value for name, value in head.items() if name != "graph"}
    head |= {"blocks": blocks, "finished": len(blocks)}
    write_statistics(partial, head)
    write_head(partial, head)
    partial.rename(out)


def measure(model: str, folder: Path, clicks: int) -> tuple[str, list[str]]:
    """Serve an index, click through the page; the name of the report and its lines."""
    import polyseme

    index = polyseme.open_index(folder, model)
    is_large = len(index) > LARGE
    clicks = max(4, clicks // 3) if is_large else clicks
    kinds = list_clicks(index, clicks)
    with serve(model, folder) as address, open_browser() as open_page:
        cast = post(address, "/characters", {})  # waits until the server has found the persons
        names = [person["name"] for person in cast["persons"]]
        kinds["a person"] = [f"#/persons?name={quote(name)}" for name in names[:clicks]]
        firsts = [visit(open_page, address) for _ in range(VISITS)]
        times = click_through(open_page, address, kinds)
    name = "explorer-large" if is_large else "explorer"
    return name, report(index, firsts, times, is_large=is_large)


def compare(model: str, folder: Path, clicks: int, other: Path) -> None:
    """Visit and click through the pages of this checkout and another one in turns; print both medians."""
    import polyseme

    kinds = list_clicks(polyseme.open_index(folder, model), clicks)
    with (
        serve(model, folder, other) as before,
        serve(model, folder) as after,
        open_browser() as open_page,
    ):
        addresses = [before, after]
        casts = [post(address, "/characters", {}) for address in addresses]
        names = [person["name"] for person in casts[0]["persons"]]
        kinds["a person"] = [f"#/persons?name={quote(name)}" for name in names[:clicks]]
        firsts = [[visit(open_page, address) for address in addresses] for _ in range(VISITS)]
        pages = [open_page() for _ in addresses]
        for page, address in zip(pages, addresses, strict=True):
            page.goto(f"{address}/#/model")
            page.evaluate("untilFirstContent()")
        print(f"load of the machine: {os.getloadavg()[0]:.0f} on {os.cpu_count()} cores")
        print("| | measured | before, median ms | after | ratio of medians |\n|---|---|---|---|---|")
        _print_pairs("first content", firsts)
        everything = []
        for kind, hashes in kinds.items():
            pairs = [[page.evaluate("hash => click(hash)", link) for page in pages] for link in hashes][1:]
            _print_pairs(kind, pairs)
            everything += pairs
        _print_pairs("**all clicks**", everything)


def _print_pairs(name: str, pairs: list[list[float]]) -> None:
    if pairs:
        before, after = np.median(pairs, axis=0)
        print(f"| {name} | {len(pairs)} | {before:.0f} | {after:.0f} | {after / before:.2f} |", flush=True)


def list_clicks(index: Any, count: int) -> dict[str, list[str]]:
    """The addresses that the clicks of each kind lead to: frequent content words of the index."""
    reader, words = index.context_reader, index.words
    rows = [
        row
        for row in np.argsort(-words.counts, kind="stable").tolist()
        if reader.is_content[row] and len(words.words[row]) >= (4 if words.words[row].isascii() else 2)
    ]
    chosen = [words.words[row] for row in rows[: 2 * count]]
    kinds: dict[str, list[str]] = {}
    usages = [index.usage(int(index.usage_numbers(word)[0])) for word in chosen]
    kinds["a word of a sentence"] = [
        f"#/sentence?text={quote(usage.sentence)}&token={position}"
        for usage in usages[:count]
        if (position := find_token(index, usage)) is not None
    ]
    kinds["two sentences"] = [
        f"#/compare?a={quote(first.sentence)}&b={quote(second.sentence)}"
        for first, second in zip(usages[:count], usages[count:], strict=False)
    ]
    kinds["senses"] = [f"#/senses?word={quote(word)}" for word in chosen[:count]]
    kinds["a timeline"] = [f"#/timeline?word={quote(word)}" for word in chosen[:count]]
    kinds["change between two ranges"] = [
        f"#/timeline?word={quote(word)}&from=0-{half}&to={half + 1}-{2 * half + 1}"
        for word, half in zip(chosen[:count], [0, 1, 2] * count, strict=False)
        if is_compared(index, word, half)
    ]
    return kinds


def find_token(index: Any, usage: Any) -> int | None:
    """The position of a usage among the tokens of its sentence."""
    tokens = index.elmo.tokenize(usage.sentence, index.head["segment"])
    return next((n for n, token in enumerate(tokens) if token.start == usage.start), None)


def is_compared(index: Any, word: str, half: int) -> bool:
    """Whether a word has enough usages in both ranges for the server to compare them."""
    from polyseme.search.timeline import make_timeline

    periods = make_timeline(index, word, max_senses=1).periods
    parts = periods[: half + 1], periods[half + 1 : 2 * half + 2]
    return all(sum(period.count for period in part) >= 5 for part in parts)


@contextmanager
def serve(model: str, folder: Path, source: Path | None = None) -> Iterator[str]:
    """Run `polyseme serve`, of another checkout if `source` is given; gives its address once it is ready."""
    environment = os.environ | ({"PYTHONPATH": str(source)} if source else {})
    command = [sys.executable, "-m", "polyseme", "serve", model, str(folder), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=environment)
    assert process.stderr is not None
    match = re.search(r"http://[\d.]+:\d+", process.stderr.readline())
    if match is None:
        raise SystemExit(f"The server did not start: {process.stderr.read()}")
    threading.Thread(target=lambda: [None for _ in process.stderr or ()], daemon=True).start()
    try:
        while True:
            try:
                urllib.request.urlopen(f"{match[0]}/health").read()
                break
            except OSError:
                time.sleep(0.1)
        yield match[0]
    finally:
        process.terminate()
        process.wait(30)


def post(address: str, route: str, body: dict[str, Any]) -> Any:
    """The answer of a route; asks again while the server is busy."""
    headers = {"Content-Type": "application/json"}
    request = urllib.request.Request(f"{address}{route}", json.dumps(body).encode(), headers)
    for _ in range(10):
        try:
            return json.load(urllib.request.urlopen(request, timeout=120))
        except OSError:
            time.sleep(3)
    raise SystemExit(f"{route} gave no answer.")


OpenPage = Callable[[], Any]


@contextmanager
def open_browser() -> Iterator[OpenPage]:
    """Run Chromium; gives what opens a page in a new profile."""
    from playwright.sync_api import sync_playwright

    program = os.environ.get("CHROMIUM") or shutil.which("chromium") or shutil.which("chromium-browser")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, args=["--no-sandbox"])

        def open_page() -> Any:
            context = browser.new_context(viewport={"width": 1280, "height": 800})
            context.add_init_script(WATCH)
            context.set_default_timeout(120_000)
            return context.new_page()

        yield open_page
        browser.close()


def visit(open_page: OpenPage, address: str) -> float:
    """Milliseconds from the address to the first content of the page, with nothing cached."""
    page = open_page()
    page.goto(address, wait_until="commit")
    seconds: float = page.evaluate("untilFirstContent()")
    page.context.close()
    return seconds


def click_through(open_page: OpenPage, address: str, kinds: dict[str, list[str]]) -> dict[str, list[float]]:
    """Milliseconds of each click, the kinds in turns; the first of each kind is not counted."""
    page = open_page()
    page.goto(f"{address}/#/model")
    page.evaluate("untilFirstContent()")
    times: dict[str, list[float]] = {kind: [] for kind in kinds}
    for turn in range(max(map(len, kinds.values()))):
        for kind, hashes in kinds.items():
            if turn < len(hashes):
                taken = page.evaluate("hash => click(hash)", hashes[turn])
                if turn:
                    times[kind].append(taken)
    page.context.close()
    return times


def report(index: Any, firsts: list[float], times: dict[str, list[float]], *, is_large: bool) -> list[str]:
    """The lines of a report, which are printed, too."""
    everything = [taken for kind in times.values() for taken in kind]
    rows = {**times, "**all clicks**": everything}
    lines = [
        f"{len(index):,} usages of {len(index.words):,} words. First content: median of {len(firsts)} visits "
        f"{np.median(firsts):.0f} ms (target {TARGETS['first content']}).",
        "",
        f"| click | clicks | median ms{'' if is_large else ' (target 100)'} | 95% ms"
        f"{' (target 1,000)' if is_large else ' (target 250)'} | worst ms |",
        "|---|---|---|---|---|",
    ]
    for kind, taken in rows.items():
        if taken:
            median, most = np.quantile(taken, (0.5, 0.95))
            lines.append(f"| {kind} | {len(taken)} | {median:.0f} | {most:.0f} | {max(taken):.0f} |")
    print("\n".join(lines), flush=True)
    return lines


if __name__ == "__main__":
    main()
