"""Why a job failed: one line in English, and a code with values, by which the page says it in its language.

    training, text, search (exceptions)  ->  server.workspace.failures  ->  server.workspace.job, supervisor

A code stands for what a user can meet and mend; what has none is shown as the library says it.
"""

from __future__ import annotations

import errno
import signal

from pydantic import BaseModel

from polyseme.errors import EncodingError, PolysemeError, TooLittleTextError
from polyseme.training.loop import DivergedError
from polyseme.training.out_of_memory import TooLargeError

CODES: dict[type[PolysemeError], str] = {
    EncodingError: "wrong_encoding",
    TooLittleTextError: "too_little_text",
    DivergedError: "diverged",
    TooLargeError: "job_too_large",
}


class Failure(BaseModel):
    """Why a job failed.

    Attributes:
        error: What is wrong and what to do, in one line.
        error_code: Its name for programs; None if it has none.
        error_values: The names and numbers in `error`.

    """

    error: str
    error_code: str | None = None
    error_values: dict[str, str | int | list[str]] = {}


def explain_library_error(problem: PolysemeError, message: str) -> Failure:
    """Explain an error of the library, whose message begins with the location if it is of data."""
    code = next((code for kind, code in CODES.items() if isinstance(problem, kind)), None)
    failure = Failure(error=message, error_code=code)
    if isinstance(problem, EncodingError):
        failure.error_values["location"] = message.partition(": ")[0]
    return failure


def explain_os_error(problem: OSError) -> Failure:
    """Explain that the system refused to read or write."""
    message = f"Reading or writing failed ({problem.strerror}). Free space on the disk."
    return Failure(error=message, error_code="disk_full" if problem.errno == errno.ENOSPC else "disk_failed")


def explain_bug() -> Failure:
    """Explain any other exception."""
    message = "An internal error; log.txt in the folder of the corpus has all of it."
    return Failure(error=message, error_code="job_internal")


def explain_exit(code: int) -> Failure:
    """Explain the exit code of a job that said nothing itself."""
    if code == -signal.SIGKILL:
        message = (
            "The job was killed, probably because memory ran out. Resume it, or cancel it and take less text "
            "or a smaller preset."
        )
        return Failure(error=message, error_code="job_killed")
    message = f"The job ended with code {code}; log.txt in the folder of the corpus says more. Resume it."
    return Failure(error=message, error_code="job_ended", error_values={"code": code})


def explain_failed_start(problem: OSError) -> Failure:
    """Explain that the job could not be started."""
    return Failure(error=f"The job cannot be started ({problem.strerror}).", error_code="job_not_started")


def explain_damaged_record(file: str, problem: Exception) -> Failure:
    """Explain that what is known of a corpus cannot be read."""
    message = f"{file} cannot be read ({type(problem).__name__}). Delete the corpus."
    return Failure(error=message, error_code="corpus_unreadable", error_values={"file": file})
