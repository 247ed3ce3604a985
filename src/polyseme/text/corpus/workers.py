"""Segment documents and number their words in several processes, in the order of the text.

    text.corpus.documents, text.segment.stream  ->  text.corpus.workers  ->  text.corpus.build

Input: `Piece`s. Output: `Chunk`s, each with its own numbering: 0 and 1 are the begin and end of a sentence, 2
is the unknown word, 3 and more are positions in `words`. So the process that collects the chunks handles each
word once per chunk, and whole arrays otherwise.

A worker is a new Python process that runs `serve()`: it imports neither torch nor the caller's script, as
multiprocessing would. Frames on its pipes: eight bytes of length, then the bytes; the first is the word list,
a request is JSON, a response is three frames (words, ids, documents).

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
from contextlib import suppress
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
from polyseme.text.segment import WordList
from polyseme.text.segment.stream import segment_lines

BEGIN, END, UNKNOWN = 0, 1, 2
FIRST_WORD = 3
# Names with a special meaning: as words of a text they are unknown words.
RESERVED = frozenset(("<S>", "</S>", "<UNK>", "!!!MAXTERMID"))

CHUNK_CHARACTERS = 1 << 19  # per chunk, enough for words to repeat
_WORKER = "from polyseme.text.corpus.workers import serve; serve()"


class Chunk(NamedTuple):
    """Segmented text with its own numbers of words."""

    words: list[str]  # number - 3 -> word, in the order of the text
    ids: NDArray[np.uint32]  # every sentence is 0 w … w 1
    documents: NDArray[np.int64]  # (2, n): numbers of documents, and where in `ids` each starts or continues
    size: int  # bytes of the files


def segment_pieces(
    pieces: Iterable[Piece],
    segment: str,
    workers: int,
    chunk_characters: int = CHUNK_CHARACTERS,
    word_list: WordList | None = None,
) -> Iterator[Chunk]:
    """Segment pieces in `workers` processes; with one worker, in this process."""
    groups = chunk_by_size(pieces, chunk_characters, lambda piece: len(piece.text) + 20)
    if workers <= 1:
        for group in groups:
            yield _segment_group(group, segment, word_list)
        return
    with _Workers(workers, segment, word_list) as pool:
        yield from pool.run(groups)


def choose_worker_count(size: int) -> int:
    """The number of processes that is worth starting for `size` bytes of text on this machine."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    return max(1, min(cores, 16, size // 2_000_000))


def serve() -> None:
    """Run a worker: answer requests from standard input on standard output until it ends."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the main process handles Ctrl-C
    gc.disable()  # there are many tokens, none of them in a cycle
    requests, responses = sys.stdin.buffer, sys.stdout.buffer
    lines = json.loads(_receive(requests) or b"null")
    word_list = None if lines is None else WordList.parse(lines)
    while (request := _receive(requests)) is not None:
        segment, group = json.loads(request)
        chunk = _segment_group([Piece(*piece) for piece in group], segment, word_list)
        _send(responses, "\n".join(chunk.words).encode(), chunk.ids.tobytes(), chunk.documents.tobytes())


def _segment_group(group: list[Piece], segment: str, word_list: WordList | None) -> Chunk:
    numbers: defaultdict[str, int] = defaultdict(count(FIRST_WORD).__next__)
    ids: list[int] = []
    documents: list[tuple[int, int]] = []
    for piece in group:
        documents.append((piece.document, len(ids)))
        lines = (Line("", 0, text) for text in piece.text.split("\n"))
        for words in segment_lines(lines, "split" if piece.tokenised else segment, word_list):
            if words:
                ids.append(BEGIN)
                ids.extend(map(numbers.__getitem__, words))
                ids.append(END)
    stream = np.array(ids, np.uint32)
    starts = np.array(documents, np.int64).reshape(-1, 2).T
    return Chunk(list(numbers), stream, starts, sum(piece.size for piece in group))


class _Workers:
    """Processes that segment; responses come in the order of the requests."""

    def __init__(self, number: int, segment: str, word_list: WordList | None) -> None:
        self._segment = segment
        self._words = json.dumps(None if word_list is None else word_list.lines()).encode()
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
            if worker.stdin is not None:
                with suppress(OSError):  # a worker that died is noticed at its first request
                    _send(worker.stdin, self._words)
            self._idle.put(worker)
        self._threads = ThreadPoolExecutor(self._number)
        return self

    def __exit__(self, *_: object) -> None:
        for worker in self._all:
            worker.kill()  # they have no state; a thread that waits for one sees the end of its pipe
        self._threads.shutdown(cancel_futures=True)
        for worker in self._all:
            worker.wait()
            for pipe in (worker.stdin, worker.stdout):
                if pipe is not None:
                    _close(pipe)

    def run(self, groups: Iterable[list[Piece]]) -> Iterator[Chunk]:
        """Segment groups of pieces; a few are processed at a time."""
        waiting: deque[Future[Chunk]] = deque()
        for group in groups:
            waiting.append(self._threads.submit(self._request, group))
            if len(waiting) > 2 * self._number:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()

    def _request(self, group: list[Piece]) -> Chunk:
        worker = self._idle.get()
        if worker.stdin is None or worker.stdout is None:
            raise RuntimeError("a worker has no pipes")
        try:
            _send(worker.stdin, json.dumps([self._segment, group], ensure_ascii=False).encode())
            words, ids, documents = (_receive(worker.stdout) for _ in range(3))
        except OSError:
            words = None
        finally:
            self._idle.put(worker)  # also a dead one: a thread must not wait for ever
        if words is None or ids is None or documents is None:
            if worker.wait() > 0:
                raise RuntimeError("a process that segments text failed; its traceback is above")
            raise UsageError(
                "A process that segments text was killed, perhaps because memory ran out. "
                "Try again with fewer `workers`."
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
    """The next frame; None if the other process ended."""
    head = pipe.read(8)
    if len(head) < 8:
        return None
    (length,) = struct.unpack("<Q", head)
    frame = pipe.read(length)
    return frame if len(frame) == length else None


def _close(pipe: IO[bytes]) -> None:
    try:
        pipe.close()
    except OSError:  # a request that could no longer be delivered
        return
