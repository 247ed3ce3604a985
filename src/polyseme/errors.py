"""The errors a user can cause, each one clear line: what, why, what now.

    PolysemeError
    ├── ConfigError        a setting is wrong or does not fit the others
    ├── FormatError        a model or vector file is not what it should be
    ├── DataError          a text or data file is wrong; begins with file:line
    ├── UsageError         a call or a command line asks for something impossible
    │   └── UnknownWordError   a word that is not there; a KeyError, too
    └── MissingExtraError  an optional package is needed; names the install command

Anything else that is raised is a bug of ours and shows its traceback.
Every other module stands below this one.
"""

from __future__ import annotations

from importlib import import_module
from types import ModuleType


class PolysemeError(Exception):
    """Base of all errors that a user can mend."""

    exit_code = 2  # of the command line


class ConfigError(PolysemeError):
    """A setting is wrong or does not fit the others."""


class FormatError(PolysemeError):
    """A model or vector file is not what it should be."""


class DataError(PolysemeError):
    """A text or data file is wrong; the message begins with its place."""


class UsageError(PolysemeError, ValueError):
    """A call or a command line asks for something impossible."""


class UnknownWordError(UsageError, KeyError):
    """A word that is not there; also a KeyError, as gensim raises it."""

    __str__ = Exception.__str__  # not the quoted text of a KeyError


class MissingExtraError(PolysemeError, ImportError):
    """An optional package is needed and not installed."""


def require(module: str, extra: str, purpose: str) -> ModuleType:
    """Import the optional `module`, or say which command installs it (`Writing x.parquet needs …`)."""
    try:
        return import_module(module)
    except ModuleNotFoundError as missing:
        if missing.name != module.partition(".")[0]:
            raise
        raise MissingExtraError(
            f'{purpose} needs {missing.name}: pip install "polyseme[{extra}]"'
        ) from missing
