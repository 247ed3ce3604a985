"""The errors that a user can cause: one line each, with what is wrong, why, and what to do.

    PolysemeError               base class; exit code 2 of the command line
    ├── ConfigError             a setting is invalid or contradicts another one
    ├── FormatError             a model, checkpoint or vector file is damaged or of an unknown format
    ├── DataError               a text or data file is invalid; the message begins with file:line
    │   ├── EncodingError       a byte is none of the encoding
    │   └── TooLittleTextError  a corpus has too few words to learn from or to index
    ├── UsageError              an argument is invalid; also a ValueError
    │   ├── UnknownWordError    a word that is not in the vocabulary; also a KeyError
    │   └── WordPositionError   a word is not in its sentence, or occurs there more than once
    └── MissingExtraError       an optional package is not installed; also an ImportError

Modules define a few more below these: DivergedError and StoppedError (training.loop), TooLargeError
(training.out_of_memory), FirstFailedError (training.distributed). Advice is in Python terms and in backticks
(`force=True`); cli.errors translates it into flags. Any other exception is a bug and shows its traceback.
Imports nothing of the package.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType

LONGEST = 2000  # characters of a message


class PolysemeError(Exception):
    """Base of all errors that a user can fix; its message is one line without control characters."""

    exit_code = 2  # of the command line

    def __init__(self, *arguments: object) -> None:
        super().__init__(*(_clean(value) if isinstance(value, str) else value for value in arguments))


class ConfigError(PolysemeError):
    """A setting is invalid or contradicts another one."""


class FormatError(PolysemeError):
    """A model, checkpoint or vector file is damaged or of an unknown format."""


class DataError(PolysemeError):
    """A text or data file is invalid; the message begins with its location, `file:line`."""


class EncodingError(DataError):
    """A text is damaged, or of another encoding."""


class TooLittleTextError(DataError):
    """A corpus has too few words to learn from or to index."""


class UsageError(PolysemeError, ValueError):
    """An argument is invalid."""


class UnknownWordError(UsageError, KeyError):
    """A word is not in the vocabulary; also a KeyError, as in gensim."""

    __str__ = Exception.__str__  # KeyError would quote the message


class WordPositionError(UsageError):
    """A word is not in its sentence, or occurs there more than once.

    Attributes:
        count: How often it occurs.

    """

    def __init__(self, message: str, count: int) -> None:
        super().__init__(message, count)  # both, or it could not be pickled
        self.count = count

    def __str__(self) -> str:
        return str(self.args[0])


class MissingExtraError(PolysemeError, ImportError):
    """An optional package is not installed."""


def _clean(message: str) -> str:
    """One line: what a damaged file contains must neither break it nor control the terminal."""
    if len(message) > LONGEST:  # the end has the advice
        message = f"{message[: LONGEST // 2]} … {message[-LONGEST // 2 :]}"
    message = " ".join(message.splitlines())
    if message.isprintable():
        return message
    return "".join(
        letter if letter.isprintable() or letter == "\u3000" else repr(letter)[1:-1] for letter in message
    )


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Import an optional module.

    Args:
        module: The module to import.
        extra: The extra of Polyseme that installs it.
        purpose: What needs it, as the start of a sentence: `Writing x.parquet`.

    Raises:
        MissingExtraError: The module is not installed; the message has the command that installs it.

    """
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name != module.partition(".")[0]:
            raise
        raise MissingExtraError(
            f'{purpose} needs {missing.name}: pip install "polyseme[{extra}]"'
        ) from missing
