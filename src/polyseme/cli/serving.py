"""The command serve.

server.serve  ->  cli.serving  ->  the terminal
"""

from __future__ import annotations

import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from polyseme.cli.options import MODEL, Device
from polyseme.errors import UsageError


def serve(
    model: Annotated[
        str | None,
        typer.Argument(metavar="MODEL", help=MODEL, show_default="en, with a workspace"),
    ] = None,
    served: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="MODEL|INDEX|TASK…",
            help="More models, and indexes and task folders of any of them, in any order.",
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="Address to listen on. 127.0.0.1 is this machine only.")
    ] = "127.0.0.1",
    port: Annotated[int, typer.Option(min=0, max=65535, help="Port; 0 takes a free one.")] = 8000,
    api_key_file: Annotated[
        Path | None, typer.Option(help="A file with the API key that requests must send.")
    ] = None,
    workers: Annotated[int, typer.Option(min=1, help="Number of processes; they share the weights.")] = 1,
    device: Device = "cpu",
    cors_origins: Annotated[
        list[str] | None,
        typer.Option(help="A site whose pages may read responses (https://example.com); * for all."),
    ] = None,
    workspace: Annotated[
        Path | None,
        typer.Option(help="A folder in which users train models on their own texts, on the page."),
    ] = None,
    body_bytes: Annotated[int, typer.Option(min=1, help="Maximum bytes per request.")] = 2_000_000,
    max_texts: Annotated[int, typer.Option(min=1, help="Maximum texts per request.")] = 32,
    max_inputs: Annotated[
        int, typer.Option(min=1, help="Maximum texts per request of clients of OpenAI or TEI.")
    ] = 2_048,
    max_tokens: Annotated[int, typer.Option(min=1, help="Maximum tokens per text.")] = 2_000,
    queue: Annotated[int, typer.Option(min=1, help="Maximum number of waiting texts.")] = 256,
    concurrent: Annotated[int, typer.Option(min=1, help="Maximum requests at the same time.")] = 512,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds before a request times out.")] = 30.0,
    grace: Annotated[float, typer.Option(min=0, help="Seconds to finish requests when stopped.")] = 20.0,
    response_values: Annotated[int, typer.Option(min=1, help="Maximum numbers per response.")] = 4_000_000,
    batch_tokens: Annotated[int, typer.Option(min=1, help="Maximum tokens per batch, with padding.")] = 4096,
    batch_wait: Annotated[
        float,
        typer.Option(min=0, max=1, help="Seconds a busy server waits for more texts to join a batch."),
    ] = 0.002,
    workspace_bytes: Annotated[
        int, typer.Option(min=1, help="Maximum bytes of a text in the workspace.")
    ] = 50_000_000,
    workspace_corpora: Annotated[int, typer.Option(min=1, help="Maximum number of texts there.")] = 20,
) -> None:
    """Serve models over HTTP, with a page to explore words.

    SIGHUP loads everything again while requests go on.
    """
    # numpy's products are small here, and threads slow them down, on a busy machine fourfold. numpy reads
    # this variable when it is imported.
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    from polyseme import serve as run
    from polyseme.server.http.limits import Limits
    from polyseme.server.http.request_log import configure_logging
    from polyseme.server.jobs.worker_pool import has_running_threads

    configure_logging()
    run(
        model,
        *(served or ()),
        host=host,
        port=port,
        key=_read_key(api_key_file),
        limits=Limits(
            body_bytes=body_bytes,
            max_texts=max_texts,
            max_inputs=max_inputs,
            max_tokens=max_tokens,
            queue=queue,
            concurrent=concurrent,
            timeout=timeout,
            grace=grace,
            response_values=response_values,
            batch_tokens=batch_tokens,
            batch_wait=batch_wait,
            workspace_bytes=workspace_bytes,
            workspace_corpora=workspace_corpora,
        ),
        workers=workers,
        device=device,
        cors_origins=cors_origins or (),
        workspace=workspace,
        started=_print_address,
    )
    if has_running_threads():  # with abandoned jobs, which the end of the process would wait for
        logging.shutdown()
        os._exit(0)


def _print_address(address: str) -> None:
    print(f"{address}  explorer; {address}/docs  routes. Stop with Ctrl-C.", file=sys.stderr, flush=True)


def _read_key(path: Path | None) -> str | None:
    """Read the key from a file, without surrounding white space."""
    if path is None:
        return None
    try:
        key = path.expanduser().read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as problem:
        raise UsageError(f"{path}: the key cannot be read ({problem}). Check the path.") from None
    if not key:
        raise UsageError(f"{path}: the file is empty. Write the API key into it.")
    return key
