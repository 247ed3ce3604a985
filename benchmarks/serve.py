"""Speed of the server compared with the library: throughput, latencies, failures, memory.

    a model, a text  ->  requests from 1, 8, 64, 256 connections  ->  a table, with the direct call

Client and server share the machine, so the server, and the direct calls before it, run on the first core with
one thread, and the client on the second. The table also has the CPU time per text of the server and of the
direct call, which is meaningful on a busy machine, too, unlike the rates. A request is an /embed (pooled,
JSON) of one text or of 32. Then follow mixed requests, valid and invalid, while the server's memory is
observed, and requests from more connections than a server with low limits allows. With an index, requests of
the explorer are timed first, on both cores.

    python benchmarks/serve.py MODEL --text FILE [--connections 1 8 64 256] [--seconds 8] [--mixed 20000]
        [--index INDEX … --words 曹操 将 …] [--task TASK …]
"""

from __future__ import annotations

import argparse
import asyncio
import json
import os
import re
import subprocess
import sys
import time
from collections import Counter
from itertools import islice
from pathlib import Path
from typing import Any

SENTENCES = 640
DIRECT = """
import os, sys, time, json
os.sched_setaffinity(0, {0})
import torch; torch.set_num_threads(1)
import numpy as np, polyseme
elmo = polyseme.load(sys.argv[1]); texts = json.load(open(sys.argv[2]))
batches = [texts[n:n + 32] for n in range(0, len(texts), 32)]
for batch in batches: elmo.embed(batch, pool="mean")
start = time.perf_counter(); cpu = time.process_time(); done = 0
while time.perf_counter() - start < float(sys.argv[3]):
    for batch in batches: elmo.embed(batch, pool="mean"); done += len(batch)
rate = done / (time.perf_counter() - start); cpu = (time.process_time() - cpu) / done
single = []; alone = time.process_time()
for text in texts[:400]:
    begun = time.perf_counter(); elmo.embed(text, pool="mean"); single.append(time.perf_counter() - begun)
alone = (time.process_time() - alone) / len(single)
p50, p99 = np.quantile(single, [0.5, 0.99]).tolist()
print(json.dumps({"rate": rate, "cpu": cpu, "alone": alone, "p50": p50, "p99": p99}))
"""


def main() -> None:
    """Parse the command line, measure, print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("model")
    parser.add_argument("--text", type=Path, required=True)
    parser.add_argument("--connections", nargs="+", type=int, default=[1, 8, 64, 256])
    parser.add_argument("--seconds", type=float, default=8.0)
    parser.add_argument("--mixed", type=int, default=20_000, help="mixed requests; 0: none")
    parser.add_argument("--index", nargs="+", default=[], help="of the text: times the explorer's requests")
    parser.add_argument("--task", nargs="+", default=[], help="task folders, for mixed requests")
    parser.add_argument(
        "--words", nargs="+", default=["曹操", "将", "荆州"], help="to look at in the explorer"
    )
    given = parser.parse_args()
    import tempfile

    texts = sentences(given.model, given.text)
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        json.dump(texts, file)
        file.flush()
        command = [sys.executable, "-c", DIRECT, given.model, file.name, str(given.seconds)]
        direct = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
    print(
        f"direct, 32 texts: {direct['rate']:,.0f} texts/s, {1000 * direct['cpu']:.2f} ms of CPU each; "
        f"one text: p50 {1000 * direct['p50']:.1f} ms, p99 {1000 * direct['p99']:.1f} ms, "
        f"{1000 * direct['alone']:.2f} ms of CPU"
    )
    if given.index:
        with Server(given.model, *given.index, pinned=False) as server:
            asyncio.run(page(server, given.model, texts, given))
    os.sched_setaffinity(0, {1})
    with Server(given.model, "--queue", "20000", "--concurrent", "2000") as server:
        asyncio.run(measure(server, texts, direct, given))
    if given.mixed:
        with Server(given.model, *given.index, *given.task) as server:
            asyncio.run(mixed(server, varied(texts, given), given.mixed))
    with Server(given.model, "--queue", "64", "--concurrent", "32") as server:
        asyncio.run(above(server, texts, max(given.connections), given.seconds))


def sentences(model: str, text: Path) -> list[str]:
    """Sentences of ordinary length."""
    import polyseme
    from polyseme.text.reading import read_lines
    from polyseme.text.segment.stream import segment_lines

    segment = polyseme.load(model).config.segment
    joint = "" if segment.startswith("zh") else " "
    found = (joint.join(some) for some in segment_lines(read_lines(text), segment) if len(some) > 4)
    return list(islice(found, SENTENCES))


class Server:
    """`polyseme serve`, on the first core or on all."""

    def __init__(self, *arguments: str, pinned: bool = True) -> None:
        command = [sys.executable, "-m", "polyseme", "serve", *arguments, "--port", "0"]
        alone = {"OMP_NUM_THREADS": "1"} if pinned else {}
        self.process = subprocess.Popen(
            ["taskset", "-c", "0", *command] if pinned else command,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **alone},
        )
        line = self.process.stderr.readline()
        self.port = int(re.search(r"http://[\d.]+:(\d+)", line)[1])

    def __enter__(self) -> Server:
        import threading
        import urllib.request

        threading.Thread(target=lambda: [None for _ in self.process.stderr], daemon=True).start()
        while True:
            try:
                urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health").read()
                return self
            except OSError:
                time.sleep(0.1)

    def __exit__(self, *_: object) -> None:
        self.process.terminate()
        self.process.wait(30)

    @property
    def cpu(self) -> float:
        """Seconds of the processor so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    @property
    def memory(self) -> float:
        """Resident MB."""
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"VmRSS:\s+(\d+)", status)[1]) / 1024


def request(route: str, body: bytes) -> bytes:
    """The bytes of a POST."""
    head = f"POST {route} HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n"
    return f"{head}Content-Length: {len(body)}\r\n\r\n".encode() + body


class Connection:
    """A connection that asks again and again, with as little work as can be."""

    def __init__(self, port: int) -> None:
        self._port = port

    async def open(self) -> None:
        """Connect."""
        self._reader, self._writer = await asyncio.open_connection("127.0.0.1", self._port)

    async def ask(self, sent: bytes) -> tuple[int, float]:
        """The status, and the seconds it took."""
        start = time.perf_counter()
        self._writer.write(sent)
        head = await self._reader.readuntil(b"\r\n\r\n")
        size = int(re.search(rb"content-length: (\d+)", head)[1])
        await self._reader.readexactly(size)
        return int(head[9:12]), time.perf_counter() - start


async def load(port: int, bodies: list[bytes], connections: int, seconds: float) -> dict[str, Any]:
    """Open a number of connections, each with one request at a time."""
    end, codes, times = time.perf_counter() + seconds, Counter(), []

    async def one(number: int) -> None:
        connection = Connection(port)
        await connection.open()
        at = number
        while time.perf_counter() < end:
            code, took = await connection.ask(bodies[at % len(bodies)])
            codes[code] += 1
            times.append(took)
            at += 1

    start = time.perf_counter()
    await asyncio.gather(*(one(number) for number in range(connections)))
    times.sort()
    return {
        "rate": len(times) / (time.perf_counter() - start),
        "p50": times[len(times) // 2],
        "p99": times[int(len(times) * 0.99)],
        "codes": dict(codes),
    }


async def measure(server: Server, texts: list[str], direct: dict[str, float], given: Any) -> None:
    """The table; before it all texts are read once, as they are before the direct calls."""
    print(
        "| texts a request | connections | texts/s | of direct | p50 ms | p99 ms | CPU ms a text | failed |"
    )
    print("|---|---|---|---|---|---|---|---|")
    for size in (32, 1):
        groups = [texts[n : n + size] for n in range(0, len(texts), size)]
        bodies = [request("/embed", json.dumps({"texts": group}).encode()) for group in groups]
        await load(server.port, bodies, 4, 2.0)
        for connections in given.connections:
            before = server.cpu
            found = await load(server.port, bodies, connections, given.seconds)
            cost = (server.cpu - before) / (sum(found["codes"].values()) * size)
            rate, failed = found["rate"] * size, sum(n for code, n in found["codes"].items() if code != 200)
            times = f"{1000 * found['p50']:.1f} | {1000 * found['p99']:.1f}"
            share = f"{rate:,.0f} | {rate / direct['rate']:.0%}"
            print(
                f"| {size} | {connections} | {share} | {times} | {1000 * cost:.2f} | {failed} |", flush=True
            )


async def above(server: Server, texts: list[str], connections: int, seconds: float) -> None:
    """More requests than the limits allow: answers, or 429."""
    bodies = [request("/embed", json.dumps({"texts": texts[n : n + 8]}).encode()) for n in range(0, 64, 8)]
    found = await load(server.port, bodies, connections, seconds)
    print(f"{connections} connections, 32 requests allowed at a time: statuses {found['codes']}")


async def page(server: Server, model: str, texts: list[str], given: argparse.Namespace) -> None:
    """What a click in the explorer asks for: the first time, then the median and the worst of 20."""
    import polyseme

    cut = polyseme.load(model).words
    connection = Connection(server.port)
    await connection.open()
    print("| the explorer asks | first ms | ms | worst |\n|---|---|---|---|")
    for word in given.words:
        tokens = next((tokens for tokens in map(cut, texts) if word in tokens), None)
        if tokens is None:
            raise SystemExit(f"{word} is not in the first {SENTENCES} sentences: choose other --words")
        for name, route, body in asked(word, tokens):
            await timed(connection, f"{name} of {word}", route, body)
    names = [Path(index).name for index in given.index]
    if len(names) > 1:  # the server keeps what it found: the first time is that of the work
        await timed(connection, "change", "/change", {"first": names[0], "second": names[1]})


async def timed(connection: Connection, name: str, route: str, body: dict[str, Any]) -> None:
    """Ask the same 21 times, and print a row."""
    sent = request(route, json.dumps(body).encode())
    times = [await connection.ask(sent) for _ in range(21)]
    if {code for code, _ in times} != {200}:
        raise SystemExit(f"{name}: statuses {sorted({code for code, _ in times})}")
    first, *taken = [1000 * took for _, took in times]
    taken.sort()
    print(f"| {name} | {first:.1f} | {taken[10]:.1f} | {taken[-1]:.1f} |", flush=True)


def asked(word: str, tokens: list[str]) -> list[tuple[str, str, dict[str, Any]]]:
    """The requests of the explorer's views for a word in its sentence."""
    marked, text = {"tokens": tokens, "position": tokens.index(word)}, " ".join(tokens)
    return [
        ("tokens", "/tokenize", {"texts": [text]}),
        ("nearest words", "/nearest", {"word": word}),
        ("nearest usages", "/nearest", {**marked, "word": word, "k": 50, "layers": True}),
        ("substitutes", "/substitutes", marked),
        ("cosines of two sentences", "/similarity", {"texts": [text, text[::-1]]}),
        ("senses", "/senses", {"word": word}),
    ]


def varied(texts: list[str], given: argparse.Namespace) -> list[bytes]:
    """Requests to every route that this server has, good and bad, with other texts and words each time."""
    import polyseme

    cut, names = polyseme.load(given.model).words, [Path(index).name for index in given.index]
    found: list[tuple[str, dict[str, Any]]] = []
    for number in range(0, len(texts) - 32, 8):
        some, word = texts[number : number + 32], given.words[number // 8 % len(given.words)]
        found += [
            ("/embed", {"texts": some[: 1 + number % 32]}),
            ("/embed_all", {"texts": some[:2], "layer": number % 3}),
            ("/tokenize", {"texts": some[:4]}),
            ("/score", {"texts": some[:2]}),
            ("/similarity", {"texts": some[:2]}),
            ("/substitutes", {"tokens": cut(some[0]), "position": 0}),
            ("/v1/embeddings", {"input": some[:3], "model": Path(given.model).name}),
            ("/v1/embeddings", {"input": some[:3], "model": "none"}),
            ("/embed", {"texts": ["x " * 3000]}),
            ("/embed", {"texts": 7}),
        ]
        if names:
            found += [
                ("/nearest", {"word": word}),
                ("/nearest", {"word": word, "tokens": [word, *cut(some[1])], "position": 0, "layers": True}),
                ("/nearest", {"word": "\u2603\u2603"}),
                ("/senses", {"word": word}),
            ]
        if len(names) > 1:
            both = {"first": names[0], "second": names[1]}
            found += [("/change", {**both, "words": [word]}), ("/change", both)]
        if given.task:
            found.append(("/predict", {"texts": some[:4]}))
    return [*(request(route, json.dumps(body).encode()) for route, body in found), request("/embed", b"{no")]


async def mixed(server: Server, bodies: list[bytes], count: int) -> None:
    """All these requests in turn, from eight connections; the memory after each tenth of them."""
    connections = [Connection(server.port) for _ in range(8)]
    await asyncio.gather(*(connection.open() for connection in connections))
    codes: Counter[int] = Counter()
    begun = time.perf_counter()
    for tenth in range(10):

        async def some(number: int, connection: Connection, tenth: int = tenth) -> None:
            for at in range(count // 80):
                place = (tenth * count // 10 + at * 8 + number) % len(bodies)
                code, _ = await connection.ask(bodies[place])
                codes[code] += 1

        await asyncio.gather(*(some(number, one) for number, one in enumerate(connections)))
        taken = time.perf_counter() - begun
        print(f"after {codes.total():,} mixed requests, {taken:.0f} s: {server.memory:,.0f} MB", flush=True)
    print(f"statuses: {dict(codes)}")


if __name__ == "__main__":
    main()
