"""Pieces of documents to numbered words, in several processes, in the order of the text.

    text.corpus.documents, text.segment.stream  ->  text.corpus.workers  ->  text.corpus.prepared

Comes in: `Piece`s. Goes out: `Chunk`s, each with its own small numbering: 0 and 1 are the begin and the end
of a sentence, 2 is the unknown word, 3 and more are places in `words`. So the process that gathers the
chunks touches a word once a chunk, and whole arrays otherwise.

A worker is a fresh Python that runs `serve()`: it imports neither torch nor the caller's script, which
multiprocessing would do. Frames on its pipes: eight bytes of length, then the bytes; a request is JSON,
an answer is three frames (words, ids, documents).

What must not change: chunks depend on the pieces only, never on the number of workers.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import struct
import subprocess
import sys
from collections import defaultdict, deque
from collections.abc import Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from itertools import count
from pathlib import Path
from queue import SimpleQueue
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

import polyseme
from polyseme.errors import UsageError
from polyseme.text.corpus.documents import Piece
from polyseme.text.length_batches import chunk_by_size
from polyseme.text.reading import Line
from polyseme.text.segment.stream import segment_lines

BEGIN, END, UNKNOWN = 0, 1, 2
FIRST_WORD = 3
# These names are ours, or the format's: as words of a text they are read as the unknown word.
RESERVED = frozenset(("<S>", "</S>", "<UNK>", "!!!MAXTERMID"))

_CHUNK = 1 << 19  # characters a chunk: long enough that words repeat in it
_WORKER = "from polyseme.text.corpus.workers import serve; serve()"


class Chunk(NamedTuple):
    """Segmented text with its own numbering of words."""

    words: list[str]  # number - 3 -> word, in the order of the text
    ids: NDArray[np.uint32]  # every sentence is 0 w … w 1
    documents: NDArray[np.int64]  # (2, n): numbers of documents, and where in `ids` each starts or goes on
    size: int  # bytes of the files that it used up


def segment_pieces(pieces: Iterable[Piece], how: str, workers: int) -> Iterator[Chunk]:
    """Segment the pieces; with one worker in this process, else in `workers` others."""
    groups = chunk_by_size(pieces, _CHUNK, lambda piece: len(piece.text) + 20)
    if workers <= 1:
        for group in groups:
            yield _segment(group, how)
        return
    with _Workers(workers, how) as pool:
        yield from pool.run(groups)


def choose_worker_count(size: int) -> int:
    """How many processes are worth their start for `size` bytes of text on this machine."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, 16, size // 2_000_000))


def serve() -> None:
    """Answer requests from standard input on standard output until it ends: the life of a worker."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is for the process that asks
    gc.disable()  # tokens by the hundred thousand, none of them in a cycle
    asked, answers = sys.stdin.buffer, sys.stdout.buffer
    while (request := _receive(asked)) is not None:
        how, group = json.loads(request)
        chunk = _segment([Piece(*piece) for piece in group], how)
        _send(answers, "\n".join(chunk.words).encode(), chunk.ids.tobytes(), chunk.documents.tobytes())


def _segment(group: list[Piece], how: str) -> Chunk:
    numbers: defaultdict[str, int] = defaultdict(count(FIRST_WORD).__next__)
    ids: list[int] = []
    documents: list[tuple[int, int]] = []
    for piece in group:
        documents.append((piece.document, len(ids)))
        lines = (Line("", 0, text) for text in piece.text.split("\n"))
        for words in segment_lines(lines, "split" if piece.tokenised else how):
            if words:
                ids.append(BEGIN)
                ids.extend(map(numbers.__getitem__, words))
                ids.append(END)
    stream = np.array(ids, np.uint32)
    places = np.array(documents, np.int64).reshape(-1, 2).T
    return Chunk(list(numbers), stream, places, sum(piece.size for piece in group))


class _Workers:
    """Processes that segment; answers come in the order of the requests."""

    def __init__(self, number: int, how: str) -> None:
        self._how = how
        self._number = number
        self._idle: SimpleQueue[subprocess.Popen[bytes]] = SimpleQueue()
        self._all: list[subprocess.Popen[bytes]] = []

    def __enter__(self) -> _Workers:
        source = str(Path(polyseme.__file__).parent.parent)
        known = os.environ.get("PYTHONPATH")
        path = source if not known else os.pathsep.join((source, known))
        environment = {**os.environ, "PYTHONPATH": path, "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
        for _ in range(self._number):
            worker = subprocess.Popen(  # noqa: S603
                [sys.executable, "-c", _WORKER],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                env=environment,
            )
            self._all.append(worker)
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(self._number)
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._all:
            worker.kill()  # they hold nothing; a thread that waits for one sees the end of its pipe
        self._threads.shutdown(cancel_futures=True)
        for worker in self._all:
            worker.wait()
            for pipe in (worker.stdin, worker.stdout):
                if pipe is not None:
                    _close(pipe)

    def run(self, groups: Iterable[list[Piece]]) -> Iterator[Chunk]:
        """Segment the groups; a few are under way at a time."""
        waiting: deque[Future[Chunk]] = deque()
        for group in groups:
            waiting.append(self._threads.submit(self._ask, group))
            if len(waiting) > 2 * self._number:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def _ask(self, group: list[Piece]) -> Chunk:
        worker = self._idle.get()
        if worker.stdin is None or worker.stdout is None:
            raise RuntimeError("a worker has no pipes")
        try:
            _send(worker.stdin, json.dumps([self._how, group], ensure_ascii=False).encode())
            words, ids, documents = (_receive(worker.stdout) for _ in range(3))
        except OSError:
            words = None
        finally:
            self._idle.put(worker)  # a dead one too: whoever waits for a worker must not wait for ever
        if words is None or ids is None or documents is None:
            if worker.wait() > 0:
                raise RuntimeError("a process that segments text failed; its traceback is above")
            raise UsageError(
                "A process that segments text was ended from outside, perhaps for want of memory. "
                "Try again with fewer workers."
            )
        return Chunk(
            words.decode().split("\n") if words else [],
            np.frombuffer(ids, np.uint32),
            np.frombuffer(documents, np.int64).reshape(2, -1),
            sum(piece.size for piece in group),
        )


def _send(pipe: IO[bytes], *frames: bytes) -> None:
    for frame in frames:
        pipe.write(struct.pack("<Q", len(frame)))
        pipe.write(frame)
    pipe.flush()


def _receive(pipe: IO[bytes]) -> bytes | None:
    """The next frame, or None where the other side ended."""
    head = pipe.read(8)
    if len(head) < 8:
        return None
    (length,) = struct.unpack("<Q", head)
    frame = pipe.read(length)
    return frame if len(frame) == length else None


def _close(pipe: IO[bytes]) -> None:
    try:
        pipe.close()
    except OSError:  # a request that could not be delivered any more
        return
