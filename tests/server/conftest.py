"""A real server in another process, with a bundled model, two indexes and a task."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

import polyseme
from browsing import CHROMIUM, SCREENSHOTS, TIMEOUT_MS, Visit
from waiting import until

TEXT = (
    "玄德拜关羽为将。\n曹操将兵三十万来攻。\n天色将晚，人马困乏。\n曹操大怒，欲斩此将。\n"
    "孙权大喜，重赏诸将。\n孔明将计就计，遂将书信烧毁。\n"
) * 4
EXAMPLES = Path(__file__).parents[2] / "examples" / "data"


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """An index, another one of other text, a task folder."""
    place = tmp_path_factory.mktemp("served")
    given = os.environ.get("POLYSEME_TEXT")  # for pictures of a real text
    one, other = Path(given) if given else place / "one.txt", place / "other.txt"
    if not given:
        one.write_text(TEXT, encoding="utf-8")
    other.write_text(TEXT.replace("将", "大将"), encoding="utf-8")
    polyseme.index("zh-classic", one, place / "one-index")
    polyseme.index("zh-classic", other, place / "other-index")
    settings = ["train.epochs=1"]
    reviews = EXAMPLES / "reviews.zh.csv"
    polyseme.train(
        "classification", "zh-classic", train=reviews, dev=reviews, out=place / "reviews", settings=settings
    )
    return place / "one-index", place / "other-index", place / "reviews"


def children(process: int) -> list[int]:
    """The processes that a process started."""
    found = Path(f"/proc/{process}/task/{process}/children")
    return [int(child) for child in found.read_text().split()]


class Served:
    """A running server: its address, its process, what it said. first: Python that is run before it."""

    def __init__(self, *arguments: str | Path, read: bool = True, first: str = "") -> None:
        code = f"{first}\nfrom polyseme.cli import main\nmain()"
        command = [sys.executable, "-c", code, "serve", *map(str, arguments), "--port", "0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        self.said: list[str] = []
        while not self.said or (self.said[-1] and "http://" not in self.said[-1]):
            self.said.append(self.process.stderr.readline())
        found = re.search(r"http://\S+?(?=\s)", self.said[-1])
        assert found, self.said
        self.address = found.group()
        self.place = (found.group().split(":")[1].strip("/"), int(found.group().split(":")[2]))
        self._reader = threading.Thread(
            target=lambda: self.said.extend(self.process.stderr or ()), daemon=True
        )
        if read:
            self._reader.start()

    def wait(self, seconds: float = 60) -> Served:
        """Until it is ready."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if httpx.get(f"{self.address}/health").status_code == 200:
                    return self
            except httpx.TransportError:
                assert self.process.poll() is None, "the server ended"
            time.sleep(0.1)
        raise AssertionError("the server did not get ready")

    def hear(self, text: str, seconds: float = 60) -> None:
        """Until it has said this."""
        until(lambda: any(text in line for line in list(self.said)), seconds, lambda: self.said)

    @property
    def children(self) -> list[int]:
        """Its processes, where it has several."""
        return children(self.process.pid)

    def stop(self, number: int = signal.SIGTERM) -> tuple[int, str]:
        """Its exit code, and its log."""
        if number:
            self.process.send_signal(number)
        self.process.wait(60)
        if self._reader.is_alive():
            self._reader.join(10)
        if self.process.stderr is not None:
            self.process.stderr.close()
        return self.process.returncode, "".join(self.said)


@pytest.fixture(scope="session")
def server(folders: tuple[Path, Path, Path]) -> Iterator[Served]:
    """One server for all tests that leave it as it was."""
    found = Served("zh-classic", *folders).wait()
    yield found
    if found.process.poll() is None:
        found.stop()


@pytest.fixture(scope="session")
def client(server: Served) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.address, timeout=30) as found:
        yield found


@pytest.fixture(scope="session")
def quick() -> Iterator[Served]:
    """A server with little patience."""
    soon = "import polyseme.server.http.protocol as protocol\nprotocol.HEADER_SECONDS = 1.0"
    found = Served("zh-classic", "--timeout", "6", first=soon).wait()
    yield found
    assert found.stop()[0] == 0


@pytest.fixture
def start() -> Iterator[Callable[..., Served]]:
    """Servers that a test starts for itself; they are stopped at its end."""
    running: list[Served] = []

    def run(*arguments: str | Path, read: bool = True, first: str = "") -> Served:
        running.append(Served(*arguments, read=read, first=first))
        return running[-1]

    yield run
    for one in running:
        one.stop(signal.SIGKILL if one.process.poll() is None else 0)


@pytest.fixture(scope="module")
def explored(folders: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """A server of a bundled model with training curves; all paths are relative, as users give them."""
    model = tmp_path_factory.mktemp("models") / "zh-classic"
    shutil.copytree(Path(polyseme.__file__).parent / "bundled" / "zh-classic", model)
    rows = [{"validation": 1, "tokens": n * 1000, "forward": 90 / n, "backward": 80 / n} for n in (1, 2, 3)]
    lines = [json.dumps(row | {"mean": (row["forward"] + row["backward"]) / 2}) + "\n" for row in rows]
    if not SCREENSHOTS:  # those of the docs show no invented curve
        (model / "metrics.jsonl").write_text("".join(lines))
    found = Served(*map(os.path.relpath, (model, *folders))).wait()
    yield found
    found.stop()


@pytest.fixture(scope="module")
def browser() -> Iterator:
    playwright = pytest.importorskip("playwright.sync_api")
    playwright.expect.set_options(timeout=TIMEOUT_MS)
    with playwright.sync_playwright() as running:
        found = running.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield found
        found.close()


@pytest.fixture
def visit(browser, explored: Served) -> Iterator:
    found = Visit(browser, explored.address)
    yield found
    found.close()
