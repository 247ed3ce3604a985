r"""Names of corpora and of their files: what a client sends must not leave the folder of the workspace.

    titles and file names of a client  ->  server.workspace.names  ->  server.workspace.corpus_folder

A corpus is found among the folders that exist, never by joining a client's name to a path. A file name that
could be a path, a hidden file or a device is refused, not repaired.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Collection
from pathlib import PurePosixPath

from polyseme.server.http.limits import HttpError, invalid

MAX_NAME = 40  # characters of a corpus' name
MAX_FILE_BYTES = 200  # of a file name; file systems allow 255, and temporary names are longer
SUFFIXES = (".txt", ".md")
CORPUS_NAME = re.compile(r"\w[\w-]{0,63}")
DEVICES = re.compile(
    r"(con|prn|aux|nul|com\d|lpt\d)(\..*)?", re.IGNORECASE
)  # Windows opens them in any folder


def make_corpus_name(title: str, taken: Collection[str]) -> str:
    """A name for the folder of a corpus: letters and digits of its title, with a number if it is taken."""
    normal = unicodedata.normalize("NFC", title)
    name = re.sub(r"[^\w]+", "-", normal)[:MAX_NAME].strip("-_")
    if not name or not CORPUS_NAME.fullmatch(name) or DEVICES.fullmatch(name):
        name = "corpus"
    folded = {other.casefold() for other in taken}  # some file systems ignore case
    number, candidate = 2, name
    while candidate.casefold() in folded:
        candidate, number = f"{name}-{number}", number + 1
    return candidate


def check_file_name(name: str) -> str:
    """Return the name of a text file if it can be nothing else.

    Raises:
        HttpError: It has a folder, is hidden, too long or no .txt or .md file.

    """
    if PurePosixPath(name).suffix.lower() not in SUFFIXES:
        raise _refuse(
            "A file must be plain text, .txt or .md. Save other documents as text first.", "file_kind"
        )
    has_controls = any(unicodedata.category(letter) in ("Cc", "Cf", "Cs", "Zl", "Zp") for letter in name)
    is_path = any(letter in name for letter in '/\\:*?"<>|') or name.startswith((".", "~", "-"))
    if has_controls or is_path or DEVICES.fullmatch(name) or name != name.strip():
        raise _refuse("A file name must not have folders or control characters in it.", "file_name")
    if len(name.encode("utf-8", "surrogatepass")) > MAX_FILE_BYTES:
        raise _refuse("The file name is too long.", "file_name_long")
    return name


def _refuse(message: str, code: str) -> HttpError:
    return invalid(message, code)
