"""Corpora of a workspace and their jobs: one job at a time, in a child process.

    server.workspace.routes  ->  server.workspace.supervisor  ->  server.workspace.job, corpus_folder

Everything that must survive is on disk before a method returns. A thread takes the corpus that has waited
longest, starts its job and waits for its end. To stop a job, its standard input is closed: it saves and ends.
A corpus whose job was running when the server was killed is still waiting on disk, so the next server
continues it.

Invariants: one server per folder; every method holds the lock; only the thread notes how a job ended.
"""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, NamedTuple

from polyseme.errors import UsageError
from polyseme.formats.models.bundled import list_bundled
from polyseme.formats.models.open import make_portable
from polyseme.io.output_lock import lock_output
from polyseme.server.http.limits import HttpError, Limits, invalid, not_found, too_large
from polyseme.server.http.request_log import LOGGER
from polyseme.server.jobs.worker_pool import start_daemon
from polyseme.server.workspace.corpus_folder import JOB_LOCK, LOG, NO_FAILURE, STOPPED, CorpusFolder
from polyseme.server.workspace.failures import Failure, explain_exit, explain_failed_start
from polyseme.server.workspace.names import make_corpus_name
from polyseme.server.workspace.schemas import JobSettings

CLOSE_SECONDS = 5.0  # that a request or a stopping server waits for a job to end
Wish = Literal["pause", "cancel", "delete", "close"]  # what is to become of a job that is stopped
logger = logging.getLogger(LOGGER)


class FinishedCorpus(NamedTuple):
    """Where the model and the index of a corpus are."""

    name: str
    model_path: str
    index_path: Path
    version: float  # another one after the corpus was made again


@dataclass(eq=False)
class RunningJob:
    """A child process that works for a corpus."""

    corpus: CorpusFolder
    process: subprocess.Popen[bytes]
    wish: Wish | None = None  # None: to run to its end

    def stop(self, wish: Wish) -> None:
        """End it: at once if its results are not wanted, else after it has saved."""
        if self.wish not in ("cancel", "delete") or wish == "delete":
            self.wish = wish
        if wish in ("cancel", "delete"):
            self.process.kill()
        if self.process.stdin is not None:
            self.process.stdin.close()


class Workspace:
    """A folder of corpora.

    Args:
        folder: The folder; it is made if it is missing.
        limits: `workspace_bytes` and `workspace_corpora` count.
        models: Served models by name, with what opens them; bundled models are added.

    Raises:
        UsageError: The folder cannot be written, or another server uses it.

    """

    def __init__(self, folder: str | Path, limits: Limits, models: Mapping[str, str]) -> None:
        self.folder, self.limits = Path(folder).expanduser().absolute(), limits
        self.bases = {name: name for name in list_bundled()} | dict(models)
        self._changed = threading.Condition(threading.RLock())
        self._closed = False
        self._running: RunningJob | None = None
        self._held = ExitStack()
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            self._held.enter_context(lock_output(self.folder / "workspace"))
            paths = sorted(self.folder.iterdir())
            self._corpora = {corpus.name: corpus for path in paths if (corpus := CorpusFolder.read(path))}
        except OSError as problem:
            raise UsageError(
                f"{folder}: cannot be used as `workspace` ({problem.strerror}). Name a folder of yours."
            ) from None

    def start(self) -> None:
        """Start the thread that runs the jobs."""
        start_daemon("workspace", self._run_jobs)

    def close(self) -> None:
        """Let the running job save and end; it continues with the next start."""
        with self._changed:
            self._closed = True
            if self._running is not None:
                self._running.stop("close")
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._running is None, CLOSE_SECONDS)
        self._held.close()

    # What clients see

    @property
    def corpora(self) -> list[CorpusFolder]:
        """All corpora, the newest first."""
        with self._changed:
            return sorted(self._corpora.values(), key=lambda corpus: -corpus.record.created)

    def get(self, name: str) -> CorpusFolder:
        """The corpus of that name.

        Raises:
            HttpError: There is none.

        """
        corpus = self._corpora.get(name)
        if corpus is None:
            raise not_found("No such corpus in the workspace.", "corpus_missing")
        return corpus

    def get_state(self, corpus: CorpusFolder) -> str:
        """The state of a corpus, as clients see it."""
        running = self._running
        if running is None or running.corpus is not corpus:
            return corpus.record.state
        return "running" if running.wish is None else "stopping"

    def locate(self, name: str) -> FinishedCorpus:
        """Where the model and the index of a corpus are.

        Raises:
            HttpError: There is no such corpus, or it is not ready.

        """
        corpus = self.get(name)
        settings = corpus.record.settings
        if corpus.record.state != "ready" or settings is None:
            raise _conflict("This corpus is not ready: it has no model or no index yet.", "corpus_not_ready")
        model = str(corpus.model) if settings.train else self._resolve_base(settings)
        return FinishedCorpus(name, model, corpus.index, corpus.record.queued)

    def _resolve_base(self, settings: JobSettings) -> str:
        """The name or path of the model that the settings name; "" if they name none."""
        if settings.base is None:
            return ""
        if settings.base not in self.bases:
            names = list(self.bases)
            message = f"No such model for base; this server has {', '.join(names)}."
            raise invalid(message, "base_missing", names=names)
        return self.bases[settings.base]

    # What clients do

    def create(self, title: str) -> CorpusFolder:
        """Make an empty corpus."""
        with self._changed:
            limit = self.limits.workspace_corpora
            if len(self._corpora) >= limit:
                message = f"The workspace has {limit} corpora, and may not have more. Delete one."
                raise too_large(message, "too_many_corpora", limit=limit)
            taken = [entry.name for entry in self.folder.iterdir()]
            corpus = CorpusFolder.create(self.folder / make_corpus_name(title, taken), title)
            self._corpora[corpus.name] = corpus
            return corpus

    def add_text(self, name: str, file: str, offset: int, size: int, data: bytes) -> tuple[int, bool]:
        """Write the next part of a file; see `CorpusFolder.add_text`."""
        with self._changed:
            corpus = self._get_draft(name)
            return corpus.add_text(file, offset, size, data, self.limits.workspace_bytes)

    def begin(self, name: str, settings: JobSettings) -> CorpusFolder:
        """Start the job of a draft."""
        with self._changed:
            corpus = self._get_draft(name)
            self._resolve_base(settings)
            if not corpus.files:
                raise invalid("The corpus has no text. Send a file first.", "no_text")
            corpus.discard_results()
            return self._queue(corpus, settings=settings)

    def pause(self, name: str) -> CorpusFolder:
        """Stop the job of a corpus after it has saved."""
        with self._changed:
            corpus = self.get(name)
            if corpus.record.state != "waiting":
                raise _conflict("Nothing is running for this corpus.", "not_running")
            corpus.change(state="paused")  # on disk before the job ends
            if (job := self._get_job(corpus)) is not None:
                job.stop("pause")
            return corpus

    def resume(self, name: str) -> CorpusFolder:
        """Continue a job that was paused or has failed."""
        with self._changed:
            corpus = self.get(name)
            if self._get_job(corpus) is not None:
                raise _conflict("The job is still ending. Try again in a moment.", "still_ending")
            if corpus.record.state not in ("paused", "failed") or corpus.record.settings is None:
                raise _conflict("Only a job that was paused or has failed is resumed.", "not_paused")
            self._resolve_base(corpus.record.settings)
            return self._queue(corpus)

    def cancel(self, name: str) -> CorpusFolder:
        """End the job of a corpus and remove what it made; the text stays."""
        with self._changed:
            corpus = self.get(name)
            if (job := self._get_job(corpus)) is not None:
                job.stop("cancel")
                self._wait_for_end(job)
            else:
                self._discard(corpus)
            return corpus

    def delete(self, name: str) -> None:
        """Remove a corpus, its text, model and index."""
        with self._changed:
            corpus = self.get(name)
            if (job := self._get_job(corpus)) is not None:
                job.stop("delete")
                self._wait_for_end(job)
            else:
                self._remove(corpus)

    def _get_draft(self, name: str) -> CorpusFolder:
        """A corpus whose text may change."""
        corpus = self.get(name)
        if corpus.record.state != "draft":
            raise _conflict("The text of this corpus is in use. Cancel its job first.", "not_draft")
        return corpus

    def _get_job(self, corpus: CorpusFolder) -> RunningJob | None:
        """The running job of a corpus."""
        return self._running if self._running is not None and self._running.corpus is corpus else None

    def _queue(self, corpus: CorpusFolder, **values: object) -> CorpusFolder:
        corpus.change(state="waiting", queued=time.time(), **NO_FAILURE, **values)
        self._changed.notify_all()
        return corpus

    def _wait_for_end(self, job: RunningJob) -> None:
        """Wait until the thread has noted the end of a job that was killed."""
        self._changed.wait_for(lambda: self._running is not job, CLOSE_SECONDS)

    def _discard(self, corpus: CorpusFolder) -> None:
        """Make a corpus a draft again."""
        _hold(corpus, corpus.discard_results)
        corpus.change(state="draft", **NO_FAILURE)

    def _remove(self, corpus: CorpusFolder) -> None:
        _hold(corpus, corpus.remove)
        del self._corpora[corpus.name]

    # The thread

    def _run_jobs(self) -> None:
        while (job := self._take_job()) is not None:
            code = job.process.wait()
            with self._changed:
                self._running = None
                try:
                    self._finish(job, code)
                except (OSError, UsageError, HttpError):
                    logger.exception("the end of a job could not be written")
                self._changed.notify_all()

    def _take_job(self) -> RunningJob | None:
        """Wait for a corpus and start its job; None when the workspace is closed."""
        with self._changed:
            while not self._closed:
                waiting = [corpus for corpus in self._corpora.values() if corpus.record.state == "waiting"]
                corpus = min(waiting, key=lambda corpus: corpus.record.queued, default=None)
                if corpus is None:
                    self._changed.wait()
                    continue
                try:
                    base = self._resolve_base(corpus.record.settings or JobSettings())
                    self._running = _start(corpus, base)
                except HttpError as problem:  # the server has other models than before
                    corpus.fail(
                        Failure(error=problem.message, error_code=problem.code, error_values=problem.values)
                    )
                except OSError as problem:
                    corpus.fail(explain_failed_start(problem))
                else:
                    return self._running
        return None

    def _finish(self, job: RunningJob, code: int) -> None:
        """Note the state of a corpus whose job has ended."""
        corpus, progress = job.corpus, job.corpus.read_progress()
        if job.process.stdin is not None:
            job.process.stdin.close()
        if job.wish == "delete":
            self._remove(corpus)
        elif job.wish == "cancel":
            self._discard(corpus)
        elif code == 0 and progress.has_index:
            corpus.change(state="ready")
        elif job.wish == "close":
            return  # still waiting: the next server continues
        elif job.wish == "pause" or code in (STOPPED, -signal.SIGTERM, -signal.SIGINT):
            corpus.change(state="paused")
        else:
            corpus.fail(progress.failure or explain_exit(code))


def _hold(corpus: CorpusFolder, action: Callable[[], None]) -> None:
    """Call `action` while no job of an earlier server works for the corpus."""
    with ExitStack() as stack:
        try:
            stack.enter_context(lock_output(corpus.path / JOB_LOCK))
        except UsageError:
            raise _conflict("A job is still ending. Try again in a moment.", "still_ending") from None
        action()


def _start(corpus: CorpusFolder, base: str) -> RunningJob:
    """Start the child process."""
    command: Sequence[str] = [sys.executable, "-m", "polyseme.server.workspace.job", str(corpus.path), base]
    with (corpus.path / LOG).open("wb") as log:
        process = subprocess.Popen(  # noqa: S603  # the arguments are a path and a name that were checked
            command,
            stdin=subprocess.PIPE,
            stdout=log,
            stderr=log,
            start_new_session=True,  # Ctrl-C is for the server, which then ends its job
            env=os.environ | {"PYTHONUNBUFFERED": "1"},
        )
    return RunningJob(corpus, process)


def list_models(served: Sequence[object]) -> dict[str, str]:
    """Those of the served models that are paths, by name, with what opens them in any working directory."""
    paths = [path for path in served if isinstance(path, str | Path)]
    return {Path(path).name or Path(path).resolve().name: make_portable(path) for path in paths}


def _conflict(message: str, code: str) -> HttpError:
    return HttpError(409, "conflict", message, code=code)
