"""The routes of /workspace: send text, start a job, see how far it is, pause, resume, cancel, delete.

    server.workspace.schemas  ->  server.workspace.routes  ->  server.workspace.supervisor

Methods of the supervisor write files, so they run in threads.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Annotated, Any, TypeVar, get_args

from fastapi import FastAPI, Path, Query, Request, Response
from pydantic import BaseModel

from polyseme.segmentations import SEGMENTATIONS
from polyseme.server.http.limits import HttpError
from polyseme.server.http.rendering import make_json_response
from polyseme.server.http.responses import ErrorResponse
from polyseme.server.jobs.worker_pool import WorkerPool
from polyseme.server.workspace import schemas
from polyseme.server.workspace.corpus_folder import CorpusFolder
from polyseme.server.workspace.job_progress import read_curves
from polyseme.server.workspace.schemas import CreateCorpusRequest, JobSettings
from polyseme.server.workspace.supervisor import Workspace

BYTES = "application/octet-stream"
Result = TypeVar("Result")
CorpusName = Annotated[str, Path(description="The name of a corpus.")]
FileName = Annotated[str, Query(description="The name of the file, .txt or .md.")]
Offset = Annotated[int, Query(ge=0, description="Where the part begins in the file; 0 starts again.")]
FileSize = Annotated[int, Query(ge=1, description="Bytes of the whole file.")]
TEXT_BODY = {
    "requestBody": {
        "required": True,
        "content": {BYTES: {"schema": {"type": "string", "format": "binary"}}},
    }
}
RESPONSES: dict[int | str, dict[str, Any]] = {
    403: {"description": "The request is not from the page of this server", "model": ErrorResponse},
    409: {"description": "The corpus is in another state", "model": ErrorResponse},
    507: {"description": "The disk is full", "model": ErrorResponse},
}


class WorkspaceRoutes:
    """The routes of a workspace."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._threads = WorkerPool("workspace", 2)

    def add_to(self, app: FastAPI) -> None:
        """Add the routes to an application."""
        detail, status = schemas.CorpusDetail, schemas.CorpusStatus
        self._add(app, "GET", "/workspace", self.list_corpora, schemas.WorkspaceResponse)
        self._add(app, "POST", "/workspace", self.create, status)
        self._add(app, "GET", "/workspace/{corpus}", self.describe, detail)
        self._add(app, "POST", "/workspace/{corpus}/text", self.add_text, schemas.TextReceipt, TEXT_BODY)
        self._add(app, "POST", "/workspace/{corpus}/start", self.start, status)
        self._add(app, "POST", "/workspace/{corpus}/pause", self.pause, status)
        self._add(app, "POST", "/workspace/{corpus}/resume", self.resume, status)
        self._add(app, "POST", "/workspace/{corpus}/cancel", self.cancel, status)
        self._add(app, "POST", "/workspace/{corpus}/delete", self.delete, schemas.DeletedCorpus)

    def close(self) -> None:
        """Let the threads end."""
        self._threads.close()

    def _add(
        self,
        app: FastAPI,
        method: str,
        path: str,
        handler: Callable[..., Any],
        model: type[BaseModel],
        extra: dict[str, Any] | None = None,
    ) -> None:
        docs: dict[int | str, dict[str, Any]] = {200: {"description": model.__doc__, "model": model}}
        app.add_api_route(
            path,
            handler,
            methods=[method],
            response_class=Response,
            responses=RESPONSES | docs,
            openapi_extra=extra,
        )

    async def list_corpora(self) -> Response:
        """List the corpora of the workspace, how far they are, and what may be chosen."""
        limits = self._workspace.limits
        choices = {
            "presets": get_args(schemas.Preset),
            "bases": list(self._workspace.bases),
            "segmentations": list(SEGMENTATIONS),
            "documents": get_args(schemas.DocumentKind),
        }

        def run() -> Response:
            corpora = [self._describe(corpus) for corpus in self._workspace.corpora]
            sizes = {"bytes": limits.workspace_bytes, "corpora": limits.workspace_corpora}
            sizes["request_bytes"] = limits.body_bytes
            return make_json_response({"corpora": corpora, "choices": choices, "limits": sizes})

        return await self._run(run)

    async def create(self, body: CreateCorpusRequest) -> Response:
        """Make an empty corpus, to which text is sent."""
        return await self._run_status(lambda: self._workspace.create(body.title))

    async def describe(self, corpus: CorpusName) -> Response:
        """Describe a corpus: how far it is, and the curves of its training."""

        def run() -> Response:
            found = self._workspace.get(corpus)
            losses, validations = read_curves(found.model)
            curves = {"losses": losses, "validations": validations}
            return make_json_response(self._describe(found) | curves)

        return await self._run(run)

    async def add_text(
        self, corpus: CorpusName, name: FileName, offset: Offset, size: FileSize, request: Request
    ) -> Response:
        """Send a file, or the next part of it: its bytes, in any encoding."""
        data = await request.body()

        def run() -> Response:
            received, complete = self._workspace.add_text(corpus, name, offset, size, data)
            return make_json_response({"name": name, "received": received, "complete": complete})

        return await self._run(run)

    async def start(self, corpus: CorpusName, body: JobSettings) -> Response:
        """Train a model on the text of a corpus, if it is wanted, and index the text."""
        return await self._run_status(lambda: self._workspace.begin(corpus, body))

    async def pause(self, corpus: CorpusName) -> Response:
        """Stop the job of a corpus; it is saved."""
        return await self._run_status(lambda: self._workspace.pause(corpus))

    async def resume(self, corpus: CorpusName) -> Response:
        """Continue a job that was paused or has failed."""
        return await self._run_status(lambda: self._workspace.resume(corpus))

    async def cancel(self, corpus: CorpusName) -> Response:
        """End the job of a corpus and remove its model and index; the text stays."""
        return await self._run_status(lambda: self._workspace.cancel(corpus))

    async def delete(self, corpus: CorpusName) -> Response:
        """Remove a corpus: its text, model and index."""

        def run() -> Response:
            self._workspace.delete(corpus)
            return make_json_response({"deleted": corpus})

        return await self._run(run)

    async def _run_status(self, function: Callable[[], CorpusFolder]) -> Response:
        return await self._run(lambda: make_json_response(self._describe(function())))

    async def _run(self, function: Callable[[], Result]) -> Result:
        """Call `function` in a thread; what was begun is finished, even if the client goes away."""
        try:
            return await asyncio.shield(asyncio.ensure_future(self._threads.run(function)))
        except OSError as problem:
            message = f"Writing failed ({problem.strerror}). Free space on the disk of the workspace."
            raise HttpError(507, "storage", message, code="disk_full") from problem

    def _describe(self, corpus: CorpusFolder) -> dict[str, Any]:
        """The values of `CorpusStatus`."""
        record, state = corpus.record, self._workspace.get_state(corpus)
        progress = corpus.read_progress()
        begun = state in ("running", "stopping", "paused") or (state == "waiting" and progress.done > 0)
        live = state in ("running", "stopping")
        return {
            "name": corpus.name,
            "title": record.title,
            "created": record.created,
            "state": state,
            "files": [file.model_dump() for file in corpus.files],
            "settings": None if record.settings is None else record.settings.model_dump(),
            "error": record.error,
            "error_code": record.error_code,
            "error_values": record.error_values,
            "stage": progress.stage if begun else None,
            "done": progress.done if begun else None,
            "total": progress.total if begun else None,
            "seconds_left": progress.seconds_left if live else None,
            "loss": progress.loss,
            "perplexity": progress.perplexity,
            "rate": progress.rate if live else None,
        }
