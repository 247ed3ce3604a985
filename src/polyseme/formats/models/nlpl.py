"""Find downloaded models of the NLPL word embeddings repository by their number: `nlpl:193` is 193.zip.

    the working folder, the cache folder  ->  formats.models.nlpl  ->  formats.models.open

Nothing is downloaded: the repository offers its models as zip files with the number as their name.
"""

from __future__ import annotations

import re
from pathlib import Path

from polyseme.errors import FormatError
from polyseme.text.samples import find_cache

_NAME = re.compile(r"nlpl:(\d{1,6})")


def find_nlpl(name: str) -> Path | None:
    """The zip of a name such as `nlpl:193`; None if it is another kind of name.

    Args:
        name: What a user calls the model.

    Raises:
        FormatError: If there is no such zip in the working folder or the cache folder.

    """
    match = _NAME.fullmatch(name)
    if match is None:
        return None
    zipped = f"{match[1]}.zip"
    folders = (Path(), find_cache() / "nlpl")
    file = next((folder / zipped for folder in folders if (folder / zipped).is_file()), None)
    if file is None:
        raise FormatError(
            f"{name}: no {zipped} in the working folder or in {folders[1]}. Download it from the NLPL word "
            "embeddings repository (vectors.nlpl.eu), and put it there."
        )
    return file
