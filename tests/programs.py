"""Run the `polyseme` program in this process, and write two small models for it."""

from __future__ import annotations

import io
import sys
from contextlib import redirect_stderr, redirect_stdout
from pathlib import Path
from typing import NamedTuple
from unittest.mock import patch

from builders import random_model, small_config, write_bilm
from polyseme import cli
from polyseme.formats.models.save import save_pretrained

TEXT = "He sat on the river bank .\n\nThe bank failed .\n"


class Ran(NamedTuple):
    """The result of a run of the program."""

    code: int
    out: str
    err: str


def run_program(*arguments: object, stdin: bytes = b"") -> Ran:
    """Run `polyseme` with `arguments` in this process, which saves the start of a new one."""
    source = io.TextIOWrapper(io.BytesIO(stdin), encoding="utf-8")
    with (
        patch.object(sys, "argv", ["polyseme", *map(str, arguments)]),
        patch.object(sys, "stdin", source),
        redirect_stdout(io.StringIO()) as out,
        redirect_stderr(io.StringIO()) as err,
    ):
        try:
            cli.main()
        except SystemExit as exit_:
            return Ran(int(exit_.code or 0), out.getvalue(), err.getvalue())
    raise AssertionError("the program did not call sys.exit")


def write_models(folder: Path) -> Path:
    """Write `bilm` (published format) and `zh` (native format, Chinese segmentation) to `folder`."""
    write_bilm(folder / "bilm")
    chars = {"encoding": "codepoints", "max_chars": 12, "dim": 3, "filters": [[1, 2], [2, 3]]}
    save_pretrained(random_model(small_config(segment="zh", chars=chars)), folder / "zh")
    return folder
