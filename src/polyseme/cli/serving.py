"""The verb serve.

server.serve  ->  cli.serving  ->  a person's terminal
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from polyseme.cli.options import ModelPath
from polyseme.errors import UsageError


def serve(
    model: ModelPath,
    others: Annotated[
        list[str] | None,
        typer.Argument(metavar="[INDEX|TASK…]", help="Indexes and task folders of this model."),
    ] = None,
    host: Annotated[str, typer.Option(help="Where to listen: only this machine by default.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="0 takes any that is free.")] = 8000,
    api_key_file: Annotated[
        Path | None, typer.Option(help="A file with the key that requests must bring.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Processes; they share the weights.")] = 1,
    body_bytes: Annotated[int, typer.Option(min=1, help="Most bytes of a request.")] = 2_000_000,
    max_texts: Annotated[int, typer.Option(min=1, help="Maximum texts per request.")] = 32,
    max_tokens: Annotated[int, typer.Option(min=1, help="Maximum tokens per text.")] = 2_000,
    queue: Annotated[int, typer.Option(min=1, help="Most texts that wait.")] = 256,
    concurrent: Annotated[int, typer.Option(min=1, help="Most requests under way.")] = 512,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds before a request times out.")] = 30.0,
    grace: Annotated[float, typer.Option(min=0, help="Seconds to finish when stopped.")] = 20.0,
    answer_values: Annotated[int, typer.Option(min=1, help="Most numbers of an answer.")] = 4_000_000,
    batch_tokens: Annotated[int, typer.Option(min=1, help="Most tokens read at once.")] = 4096,
    batch_wait: Annotated[
        float,
        typer.Option(min=0, max=1, help="Seconds a busy server waits for more texts to join a batch."),
    ] = 0.002,
) -> None:
    """Serve a model over HTTP, and a page to look at words."""
    # Numpy's products are small here: threads for them cost more than they bring, and on a busy machine
    # four times as much. It reads this when it is imported.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from polyseme import serve as run
    from polyseme.server.http.limits import Limits
    from polyseme.server.http.request_log import configure_logging
    from polyseme.server.jobs.worker_pool import has_running_threads

    configure_logging()
    run(
        model,
        *(others or ()),
        host=host,
        port=port,
        key=_key(api_key_file),
        limits=Limits(
            body_bytes=body_bytes,
            max_texts=max_texts,
            max_tokens=max_tokens,
            queue=queue,
            concurrent=concurrent,
            timeout=timeout,
            grace=grace,
            answer_values=answer_values,
            batch_tokens=batch_tokens,
            batch_wait=batch_wait,
        ),
        workers=workers,
        started=_say,
    )
    if has_running_threads():  # with abandoned jobs, which the end of the process would wait for
        logging.shutdown()
        os._exit(0)


def _say(address: str) -> None:
    print(f"{address}  the explorer; {address}/docs  the routes. Ctrl-C stops.", file=sys.stderr, flush=True)


def _key(path: Path | None) -> str | None:
    """The key in a file, without white space around it."""
    if path is None:
        return None
    try:
        key = path.expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(f"{path}: the key cannot be read ({problem}).") from None
    if not key:
        raise UsageError(f"{path}: no key in it.")
    return key
