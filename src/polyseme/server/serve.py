"""The verb serve: check the extra, then run the server.

    server.run  ->  server.serve  ->  polyseme.serve, cli

Loads fastapi and uvicorn only when it is called, so that a missing extra is a one-line error.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from polyseme.elmo import Elmo
from polyseme.errors import UsageError, require
from polyseme.search.index import Index
from polyseme.server.http.limits import METRICS_FOLDER, Limits
from polyseme.tasks.task_model import TaskModel

DEFAULT_MODEL = "en"  # bundled; beside the texts of a workspace


def serve(
    model: Elmo | str | Path | None = None,
    *served: Elmo | Index | TaskModel | str | Path,
    host: str = "127.0.0.1",
    port: int = 8000,
    key: str | None = None,
    limits: Limits | None = None,
    workers: int = 1,
    device: str = "cpu",
    cors_origins: Sequence[str] = (),
    workspace: str | Path | None = None,
    started: Callable[[str], None] | None = None,
) -> None:
    """Serve models, with indexes and task models made from them, over HTTP until SIGTERM or Ctrl-C.

    On SIGHUP everything that was given as a path is loaded again, while requests go on.

    Args:
        model: An ELMo, loaded or as a path; the one of requests that name no model. None for the bundled `en`
            beside the texts of a workspace.
        served: More models, and indexes and task models of any of them, open or as paths, in any order.
        host: Address to listen on; the default accepts connections from this machine only.
        port: Port to listen on; 0 takes a free one.
        key: API key that requests must send; None asks for none.
        limits: What a request may cost; None for the defaults.
        workers: Number of processes; they share the weights.
        device: Where a model given as a path computes, as in `polyseme.load`; others than the CPU need
            `workers=1`.
        cors_origins: Sites whose pages may read responses, such as "https://example.com"; "*" for all.
        workspace: A folder in which users train models on texts of their own, on the page; None turns that
            off. It needs a key, or a host that only this machine reaches.
        started: Receives the server's address when it is ready.

    Raises:
        MissingExtraError: If the extra `serve` is not installed.
        UsageError: If there is neither a model nor a workspace, the address is in use, an index or task model
            belongs to none of the models, or an origin is none.

    Example:
        polyseme.serve("en", "books.index", "zh-classic", "sanguo-index", port=8000)

    """
    with ExitStack() as cleanup:
        if workers > 1:  # prometheus_client must find this when it is imported, to add up all processes
            os.environ[METRICS_FOLDER] = cleanup.enter_context(tempfile.TemporaryDirectory())
            cleanup.callback(os.environ.pop, METRICS_FOLDER)
        for module in ("fastapi", "uvicorn", "prometheus_client"):
            require(module, "serve", "Serving")
        from polyseme.server.run import run_server

        if model is None and workspace is None:
            raise UsageError("There is no model to serve. Name one, such as `polyseme.serve(en)`.")
        run_server(
            DEFAULT_MODEL if model is None else model,
            served,
            host=host,
            port=port,
            key=key,
            limits=limits,
            workers=workers,
            device=device,
            cors_origins=cors_origins,
            workspace=workspace,
            started=started,
        )
