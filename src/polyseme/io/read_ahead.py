"""Compute the items of an iterator ahead in another thread: one stage of a pipeline.

    embedding_pipeline  ->  io.read_ahead  ->  threading

Stages are chained: with `read_ahead(compute(read_ahead(read())))`, reading, computing and what the caller
does happen at the same time. It helps where stages release the GIL: files, hashes, torch and C.

What must not change: the items and their order are those of the iterator, an error is raised instead of the
item that it prevented, and no thread is left when the generator is closed.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator
from queue import Empty, Queue
from threading import Event, Thread
from typing import NamedTuple, TypeVar

Item = TypeVar("Item")


class _End(NamedTuple):
    """The end of the items: with the error that ended them, if there was one."""

    error: BaseException | None


def read_ahead(
    items: Iterator[Item], size: int = 1, initialise: Callable[[], None] | None = None
) -> Generator[Item]:
    """Yield the items of an iterator, which runs in another thread, at most `size` items ahead.

    Args:
        items: The iterator; it is closed when this generator ends, if it has a `close`.
        size: How many items may wait. One more is being computed, and one is with the caller.
        initialise: Called in the new thread before the first item.

    Yields:
        The same items in the same order.

    """
    ready: Queue[Item | _End] = Queue(size)
    stopped = Event()
    thread = Thread(target=_run, args=(items, ready, stopped, initialise), daemon=True)
    thread.start()
    try:
        while not isinstance(item := ready.get(), _End):
            yield item
        if item.error is not None:
            raise item.error
    finally:
        stopped.set()
        while thread.is_alive():  # it may wait for space, once more after each item
            _clear(ready)
            thread.join(0.01)


def _run(
    items: Iterator[Item],
    ready: Queue[Item | _End],
    stopped: Event,
    initialise: Callable[[], None] | None,
) -> None:
    error = None
    try:
        if initialise is not None:
            initialise()
        for item in items:
            if stopped.is_set():
                break
            ready.put(item)
    except BaseException as problem:  # raised where the items are read
        error = problem
    finally:
        close = getattr(items, "close", None)
        if close is not None:
            close()  # stops the stages before this one
    ready.put(_End(error))


def _clear(ready: Queue[Item | _End]) -> None:
    try:
        while True:
            ready.get_nowait()
    except Empty:
        return
