"""A real server in another process, with a bundled model, two indexes and a task."""

from __future__ import annotations

import gc
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
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import httpx
import pytest

import polyseme
from browsing import SCREENSHOTS, Visit
from waiting import until

TEXT = (
    "玄德拜关羽为将。\n曹操将兵三十万来攻。\n天色将晚，人马困乏。\n曹操大怒，欲斩此将。\n"
    "孙权大喜，重赏诸将。\n孔明将计就计，遂将书信烧毁。\n"
) * 4
EXAMPLES = Path(__file__).parents[2] / "examples" / "data"


@pytest.fixture(scope="session")
def folders(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path, Path]:
    """An index, an index of a different text, and a task folder."""
    root = tmp_path_factory.mktemp("served")
    real_text = os.environ.get("POLYSEME_TEXT")  # for screenshots of a real text
    first_text, second_text = Path(real_text) if real_text else root / "one.txt", root / "other.txt"
    if not real_text:
        first_text.write_text(TEXT, encoding="utf-8")
    second_text.write_text(TEXT.replace("将", "大将"), encoding="utf-8")
    polyseme.index("zh-classic", first_text, root / "one-index")
    polyseme.index("zh-classic", second_text, root / "other-index")
    settings = ["train.epochs=1"]
    reviews = EXAMPLES / "reviews.zh.csv"
    polyseme.train(
        "classification", "zh-classic", train=reviews, dev=reviews, out=root / "reviews", settings=settings
    )
    return root / "one-index", root / "other-index", root / "reviews"


@pytest.fixture(autouse=True, scope="module")
def nothing_is_left_open() -> Iterator[None]:
    """A socket that is not closed fails the file that left it open, not a later one that collects it."""
    yield
    gc.collect()


@pytest.fixture
def open_ai() -> Iterator[Callable[..., Any]]:
    """What opens clients of openai for the address of a server; it closes them when the test ends."""
    openai = pytest.importorskip("openai")
    with ExitStack() as clients:
        yield lambda address, **options: clients.enter_context(
            openai.OpenAI(base_url=f"{address}/v1", api_key="any", **options)
        )


def child_processes(pid: int) -> list[int]:
    """Ids of the processes that a process started."""
    return [int(child) for child in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


class ServerProcess:
    """A server in another process.

    Args:
        arguments: Arguments of `polyseme serve`.
        read_log: Whether to read its log, which it writes to stderr.
        setup_code: Python code to run before the server starts.

    """

    def __init__(self, *arguments: str | Path, read_log: bool = True, setup_code: str = "") -> None:
        code = f"{setup_code}\nfrom polyseme.cli import main\nmain()"
        command = [sys.executable, "-c", code, "serve", *map(str, arguments), "--port", "0"]
        self.process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        assert self.process.stderr is not None
        self.log: list[str] = []
        while not self.log or (self.log[-1] and "http://" not in self.log[-1]):
            self.log.append(self.process.stderr.readline())
        match = re.search(r"http://([^\s:]+):(\d+)", self.log[-1])
        assert match, self.log
        self.address = match.group()
        self.host_and_port = match[1], int(match[2])
        self._reader = threading.Thread(
            target=lambda: self.log.extend(self.process.stderr or ()), daemon=True
        )
        if read_log:
            self._reader.start()

    def wait(self, seconds: float = 60) -> ServerProcess:
        """Wait until the server is ready."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            try:
                if httpx.get(f"{self.address}/health").status_code == 200:
                    return self
            except httpx.TransportError:
                assert self.process.poll() is None, "the server ended"
            time.sleep(0.1)
        raise AssertionError("the server is not ready")

    def wait_for_log(self, text: str, seconds: float = 60) -> None:
        """Wait until a line of the log contains `text`."""
        until(lambda: any(text in line for line in list(self.log)), seconds, lambda: self.log)

    @property
    def children(self) -> list[int]:
        """Ids of its worker processes."""
        return child_processes(self.process.pid)

    def stop(self, signal_number: int = signal.SIGTERM) -> tuple[int, str]:
        """Send a signal (0: none) and wait for the end; returns the exit code and the log."""
        if signal_number:
            self.process.send_signal(signal_number)
        self.process.wait(60)
        if self._reader.is_alive():
            self._reader.join(10)
        if self.process.stderr is not None:
            self.process.stderr.close()
        return self.process.returncode, "".join(self.log)


@pytest.fixture(scope="session")
def start_server() -> type[ServerProcess]:
    """What starts a server with other models than those of `server`."""
    return ServerProcess


@pytest.fixture(scope="session")
def server(folders: tuple[Path, Path, Path]) -> Iterator[ServerProcess]:
    """One server for all tests that do not stop or change it."""
    process = ServerProcess("zh-classic", *folders).wait()
    yield process
    if process.process.poll() is None:
        process.stop()


@pytest.fixture(scope="session")
def client(server: ServerProcess) -> Iterator[httpx.Client]:
    with httpx.Client(base_url=server.address, timeout=30) as http_client:
        yield http_client


@pytest.fixture(scope="session")
def impatient_server() -> Iterator[ServerProcess]:
    """A server with short timeouts."""
    short_timeout = "import polyseme.server.http.protocol as protocol\nprotocol.HEADER_SECONDS = 1.0"
    process = ServerProcess("zh-classic", "--timeout", "6", setup_code=short_timeout).wait()
    yield process
    assert process.stop()[0] == 0


@pytest.fixture
def start() -> Iterator[Callable[..., ServerProcess]]:
    """Start servers for one test; they are stopped when it ends."""
    running: list[ServerProcess] = []

    def run(*arguments: str | Path, read_log: bool = True, setup_code: str = "") -> ServerProcess:
        running.append(ServerProcess(*arguments, read_log=read_log, setup_code=setup_code))
        return running[-1]

    yield run
    for server in running:
        server.stop(signal.SIGKILL if server.process.poll() is None else 0)


@pytest.fixture(scope="module")
def explored(folders: tuple[Path, ...], tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServerProcess]:
    """A server with a model that has training curves; all paths are relative, as users write them."""
    model = tmp_path_factory.mktemp("models") / "zh-classic"
    shutil.copytree(Path(polyseme.__file__).parent / "bundled" / "zh-classic", model)
    rows = [{"validation": 1, "tokens": n * 1000, "forward": 90 / n, "backward": 80 / n} for n in (1, 2, 3)]
    lines = [json.dumps(row | {"mean": (row["forward"] + row["backward"]) / 2}) + "\n" for row in rows]
    if not SCREENSHOTS:  # screenshots in the docs show no invented curve
        (model / "metrics.jsonl").write_text("".join(lines))
    process = ServerProcess(*map(os.path.relpath, (model, *folders))).wait()
    yield process
    process.stop()


@pytest.fixture
def visit(browser, explored: ServerProcess) -> Iterator:
    page = Visit(browser, explored.address)
    yield page
    page.close()
