"""What a child process of the server does with a corpus: pretrain a model, then index the text.

    server.workspace.corpus_folder  ->  server.workspace.job  ->  model/, index/, progress.json

It is the program `python -m polyseme.server.workspace.job DIR/NAME MODEL`, which calls `pretrain` and `index`
of the api. The same call continues after any end. The job works as long as its standard input is open: when
the server pauses it, stops or is killed, the input ends, and the job saves its state and ends, too. So
nothing is lost, and no job runs without a server.
"""

from __future__ import annotations

import logging
import os
import signal
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path
from types import FrameType
from typing import NoReturn

from polyseme import api
from polyseme.errors import PolysemeError, UsageError
from polyseme.io.output_lock import lock_output
from polyseme.server.workspace.corpus_folder import JOB_LOCK, STOPPED, CorpusFolder, shorten_paths
from polyseme.server.workspace.failures import explain_bug, explain_library_error, explain_os_error
from polyseme.server.workspace.job_progress import ProgressRecorder
from polyseme.server.workspace.schemas import JobSettings
from polyseme.training.loop import StoppedError

SAVE_SECONDS = 20  # between checkpoints: what a power cut may cost
WAIT_SECONDS = 0.2  # until a job of an earlier server has saved
NICENESS = 10  # the server answers first
FAILED = 2  # exit code
logger = logging.getLogger(__name__)


def main(folder: str, base: str = "") -> int:
    """Run the job of a corpus.

    Args:
        folder: The folder of the corpus.
        base: The model that the settings name, as a name or path; "" if they name none.

    Returns:
        The exit code of the process.

    """
    signal.signal(signal.SIGTERM, _stop)
    threading.Thread(target=_watch_input, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(NICENESS)
    corpus = CorpusFolder.read(Path(folder))
    if corpus is None or corpus.record.settings is None:
        raise UsageError(f"{folder}: not a corpus of a workspace that was started.")
    with ExitStack() as stack:
        _lock(stack, corpus)
        recorder = ProgressRecorder(corpus.path)
        try:
            run_job(corpus, corpus.record.settings, base, recorder)
        except StoppedError:
            return STOPPED
        except PolysemeError as problem:
            recorder.fail(explain_library_error(problem, shorten_paths(str(problem), corpus.path)))
            return FAILED
        except OSError as problem:
            recorder.fail(explain_os_error(problem))
            logger.exception("the job failed")
            return FAILED
        except Exception:
            recorder.fail(explain_bug())
            logger.exception("the job failed")
            return FAILED
        finally:
            recorder.write()
    return 0


def run_job(corpus: CorpusFolder, settings: JobSettings, base: str, recorder: ProgressRecorder) -> None:
    """Train and index, from where an earlier job ended."""
    if settings.train and not recorder.progress.has_model:
        recorder.begin("preparing")
        _pretrain(corpus, settings, base or None, recorder)
        recorder.progress.has_model = True
    recorder.begin("indexing")
    api.index(
        corpus.model if settings.train else base,
        corpus.text,
        corpus.index,
        segment=None if settings.train else settings.segment,
        documents=settings.documents,
        encoding=settings.encoding,
        progress=recorder.on_progress,
    )
    recorder.progress.has_index = True


def _pretrain(
    corpus: CorpusFolder, settings: JobSettings, base: str | None, recorder: ProgressRecorder
) -> None:
    overrides = [f"train.save_seconds={SAVE_SECONDS}"]
    if settings.segment is not None:
        overrides.append(f"model.segment={settings.segment}")
    if settings.epochs is not None:
        overrides += [f"train.epochs={settings.epochs}", "train.min_tokens=0"]
    api.pretrain(
        corpus.text,
        corpus.model,
        settings.config,
        settings=overrides,
        base=base,
        names=settings.names or None,
        encoding=settings.encoding,
        resume=corpus.model.is_dir(),
        progress=recorder.on_progress,
        on_metrics=recorder.on_metrics,
    )


def _lock(stack: ExitStack, corpus: CorpusFolder) -> None:
    """Wait until no other job writes the corpus: one of a server that was killed may still be saving."""
    while True:
        try:
            stack.enter_context(lock_output(corpus.path / JOB_LOCK))
        except UsageError:
            time.sleep(WAIT_SECONDS)
        else:
            return


def _watch_input() -> None:
    """Stop when standard input ends; `sys.stdin` itself may not be in use when Python exits."""
    while os.read(0, 1):
        pass
    os.kill(os.getpid(), signal.SIGTERM)


def _stop(number: int, frame: FrameType | None) -> NoReturn:
    """End outside of the training loop, which has a handler of its own."""
    raise SystemExit(STOPPED)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO, format="%(asctime)s %(name)s: %(message)s")
    sys.exit(main(*sys.argv[1:]))
