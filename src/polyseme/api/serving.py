"""The verb serve.

server  ->  api.serving  ->  api
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from polyseme.elmo import Elmo
from polyseme.errors import require
from polyseme.search.index import Index
from polyseme.server.http.limits import SHARED, Limits
from polyseme.tasks.task_model import TaskModel


def serve(
    model: Elmo | str | Path,
    *others: Index | TaskModel | str | Path,
    host: str = "127.0.0.1",
    port: int = 8000,
    key: str | None = None,
    limits: Limits | None = None,
    workers: int = 1,
    started: Callable[[str], None] | None = None,
) -> None:
    """Serve a model, and indexes and task folders of it, over HTTP until SIGTERM or Ctrl-C.

    key: what requests must bring along. workers: processes, which share the weights. started: is told the
    address.
    """
    with ExitStack() as rest:
        if workers > 1:  # told before it is loaded, prometheus_client adds the counts of all processes
            os.environ[SHARED] = rest.enter_context(tempfile.TemporaryDirectory())
            rest.callback(os.environ.pop, SHARED)
        for module in ("fastapi", "uvicorn", "prometheus_client"):
            require(module, "serve", "Serving")
        from polyseme.server.run import serve as run

        run(model, others, host=host, port=port, key=key, limits=limits, workers=workers, started=started)
