"""Mixed load on a server while things fail: workers die, the disk fills, the model is replaced, clients go.

    a bundled model, an index of generated text  ->  `polyseme serve` with two workers  ->  a table

Clients send valid requests and count every answer; others abandon theirs. In turn a worker is killed, a file
is written to a full disk (with root, on Linux), and the model's folder is replaced. A request is lost if it
gets no answer although no worker was killed, and nothing stood still, while it ran. Memory is that of the
server and its workers.

    python benchmarks/soak.py [--minutes 60]
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import re
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx
import numpy as np

import polyseme

PAUSE_SECONDS, STOP_SECONDS = 5.0, 300
MODEL, CLIENTS, FAULT_SECONDS, WARM_UP = "zh-classic", 4, 10.0, 20.0
SENTENCES = ("曹操将兵三十万来攻。", "天色将晚，人马困乏。", "孙权大喜，重赏诸将。", "孔明将计就计。")


class Load:
    """What the clients did and saw."""

    def __init__(self, address: str) -> None:
        self.address, self.host = address, address.removeprefix("http://").split(":")
        self.statuses: Counter[int] = Counter()
        self.latencies: list[float] = []
        self.cut = self.lost = self.paused = self.abandoned = 0  # cut: by the kill of a worker
        self.killed = 0.0  # when a worker was killed last
        self.pause = -1e9  # when the machine or the server stood still last
        self.stopped = threading.Event()

    def send(self) -> None:
        """Send requests one after the other."""
        rng = random.Random()
        with httpx.Client(base_url=self.address, timeout=60) as client:
            while not self.stopped.is_set():
                texts = rng.choices(SENTENCES, k=rng.choice((1, 1, 4, 16)))
                route, body = rng.choice(
                    (
                        ("/embed", {"texts": texts}),
                        ("/embed_all", {"texts": texts[:2]}),
                        ("/nearest", {"word": "将", "k": 5}),
                        ("/tokenize", {"texts": texts}),
                        ("/embed", {"texts": 3}),  # 422
                    )
                )
                begin = time.monotonic()
                try:
                    response = client.post(route, json=body)
                except httpx.TransportError as error:
                    if self.killed >= begin - 1:
                        self.cut += 1
                    elif self.pause >= begin:
                        self.paused += 1
                    else:
                        self.lost += 1
                        print(f"lost: {route} after {time.monotonic() - begin:.1f} s: {error!r}", flush=True)
                    continue
                self.statuses[response.status_code] += 1
                self.latencies.append(time.monotonic() - begin)

    def watch(self, server: int) -> None:
        """Note when this process or the server was stopped from outside, as other measurements do."""
        last = time.monotonic()
        while not self.stopped.wait(0.5):
            now = time.monotonic()
            if now - last > PAUSE_SECONDS or is_stopped(server):
                self.pause = now
            last = now

    def abandon(self) -> None:
        """Send requests and leave before the answer."""
        body = b'{"texts": ["' + SENTENCES[0].encode() * 20 + b'"]}'
        head = (
            b"POST /embed HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
        )
        while not self.stopped.wait(0.1):
            try:
                with socket.create_connection((self.host[0], int(self.host[1])), timeout=10) as client:
                    client.sendall(head % len(body) + body)
                    self.abandoned += 1
            except OSError:
                continue


def list_children(pid: int) -> list[int]:
    """Processes that any thread of a process has started."""
    threads = Path(f"/proc/{pid}/task").glob("*/children")
    return [int(child) for thread in threads for child in thread.read_text(encoding="ascii").split()]


def is_stopped(pid: int) -> bool:
    """Whether a signal has stopped a process or one of its children."""
    states = []
    for process in (pid, *list_children(pid)):
        with suppress(OSError):  # it has just ended
            states.append(Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0])
    return "T" in states


def stop_server(server: subprocess.Popen[str]) -> int | None:
    """Send SIGTERM; the exit code, or None if it did not end."""
    server.send_signal(signal.SIGTERM)
    for _ in range(STOP_SECONDS):
        if server.poll() is not None:
            return server.returncode
        time.sleep(1)
    server.kill()
    return None


def measure_memory(pid: int) -> tuple[float, int]:
    """Megabytes that a process and all below it hold for themselves, and their open files."""
    megabytes, n_files = 0.0, 0
    try:
        text = Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii")
        n_files = len(os.listdir(f"/proc/{pid}/fd"))
        children = list_children(pid)
    except OSError:
        return 0.0, 0  # it has just ended
    megabytes = sum(map(int, re.findall(r"^Private_\w+:\s+(\d+)", text, re.MULTILINE))) / 1024
    below = [measure_memory(child) for child in children]
    return megabytes + sum(row[0] for row in below), n_files + sum(row[1] for row in below)


def cause_fault(kind: str, server: int, folder: Path, load: Load) -> bool:
    """Let one thing fail; False if it cannot be done here."""
    if kind == "worker killed":
        workers = list_children(server)
        if not workers:
            return False
        load.killed = time.monotonic()
        os.kill(random.choice(workers), signal.SIGKILL)
        return True
    if kind == "model replaced":
        polyseme.convert(MODEL, folder / "model", force=True)
        return True
    disk = folder / "disk"
    disk.mkdir(exist_ok=True)
    if subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", disk], check=False).returncode:
        return False
    try:
        command = [sys.executable, "-m", "polyseme", "embed", str(folder / "model"), str(folder / "text.txt")]
        done = subprocess.run([*command, "--out", str(disk / "v.npz")], capture_output=True, check=False)
        assert done.returncode == 2, done.stderr.decode()[-500:]
        assert b"Traceback" not in done.stderr
    finally:
        subprocess.run(["umount", "-l", disk], check=True)
    return True


def start_server(folder: Path) -> tuple[subprocess.Popen[str], str]:
    """Start a server with two workers; returns it with its address."""
    command = [sys.executable, "-m", "polyseme", "serve", str(folder / "model"), str(folder / "index")]
    server = subprocess.Popen([*command, "--port", "0", "--workers", "2"], stderr=subprocess.PIPE, text=True)
    for line in server.stderr or ():
        match = re.search(r"http://[^\s:]+:\d+", line)
        if match:
            threading.Thread(target=lambda: [None for _ in server.stderr or ()], daemon=True).start()
            break
    else:
        raise RuntimeError("the server did not start")
    address = match.group()
    while True:
        try:
            if httpx.get(f"{address}/health").status_code == 200:
                return server, address
        except httpx.TransportError:
            time.sleep(0.2)


def take_medians(values: list[float]) -> list[float]:
    """The medians of the four quarters."""
    return [round(float(np.median(quarter)), 1) for quarter in np.array_split(values, 4) if len(quarter)]


def soak(minutes: float, folder: Path) -> dict[str, Any]:
    """Run the load for so long; returns the figures."""
    polyseme.convert(MODEL, folder / "model")
    (folder / "text.txt").write_text("\n".join(SENTENCES * 20) + "\n", encoding="utf-8")
    polyseme.index(folder / "model", folder / "text.txt", folder / "index")
    server, address = start_server(folder)
    load = Load(address)
    threads = [threading.Thread(target=load.send) for _ in range(CLIENTS)]
    threads.append(threading.Thread(target=load.abandon))
    threads.append(threading.Thread(target=load.watch, args=(server.pid,)))
    for thread in threads:
        thread.start()
    time.sleep(WARM_UP)
    memory = [measure_memory(server.pid)]
    loads: list[float] = []
    faults: Counter[str] = Counter()
    end = time.monotonic() + 60 * minutes - WARM_UP
    kinds = itertools.cycle(("worker killed", "disk full", "model replaced"))
    while time.monotonic() < end:
        kind = next(kinds)
        faults[kind] += cause_fault(kind, server.pid, folder, load)
        time.sleep(FAULT_SECONDS)
        memory.append(measure_memory(server.pid))
        loads.append(os.getloadavg()[0])
        print(f"{kind}: {memory[-1][0]:.0f} MB, {memory[-1][1]} files, load {loads[-1]:.1f}", flush=True)
    load.stopped.set()
    for thread in threads:
        thread.join()
    stopping = time.monotonic()
    code = stop_server(server)
    return {
        "minutes": round(minutes, 1),
        "requests": sum(load.statuses.values()),
        "statuses": dict(sorted(load.statuses.items())),
        "lost": load.lost,
        "cut by kills": load.cut,
        "timed out while the machine stood still": load.paused,
        "abandoned": load.abandoned,
        "faults": dict(faults),
        "p50 ms": round(1000 * float(np.quantile(load.latencies, 0.5)), 1),
        "p99 ms": round(1000 * float(np.quantile(load.latencies, 0.99)), 1),
        "MB after warm-up": round(memory[0][0]),
        "MB, medians of the quarters": take_medians([row[0] for row in memory]),
        "open files, medians of the quarters": take_medians([row[1] for row in memory]),
        "load of the machine, medians": take_medians(loads),
        "exit code": code,
        "seconds to stop": round(time.monotonic() - stopping, 1),
    }


def main() -> None:
    """Parse the command line, run, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--minutes", type=float, default=60)
    arguments = parser.parse_args()
    folder = Path(tempfile.mkdtemp())
    try:
        for name, value in soak(arguments.minutes, folder).items():
            print(f"{name:36} {value}")
    finally:
        shutil.rmtree(folder, ignore_errors=True)


if __name__ == "__main__":
    main()
