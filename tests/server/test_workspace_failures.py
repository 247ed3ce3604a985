"""Why jobs fail: what users meet has a code, and the page has a text for each code in both languages."""

from __future__ import annotations

import errno
import os
import re
import signal
from collections.abc import Sequence
from pathlib import Path

import pytest

from polyseme import api
from polyseme.errors import PolysemeError
from polyseme.server.http.pages import EXPLORER
from polyseme.server.workspace import failures


@pytest.mark.parametrize(
    ("text", "code"),
    [
        (b" \n\n", "too_little_text"),
        (b"word", "too_little_text"),
        (b"12 34", "too_little_text"),
        ("滚滚长江东逝水，浪花淘尽英雄。\n".encode("gb18030") * 9, "wrong_encoding"),
    ],
)
def test_texts_that_cannot_be_trained_on_have_a_code(tmp_path: Path, text: bytes, code: str) -> None:
    file = tmp_path / "text.txt"
    file.write_bytes(text)
    with pytest.raises(PolysemeError) as raised:
        api.pretrain(file, tmp_path / "model", "tiny", encoding="utf-8", progress=False)
    failure = failures.explain_library_error(raised.value, str(raised.value))
    assert failure.error_code == code
    if code == "wrong_encoding":
        assert str(failure.error_values["location"]).endswith("text.txt:1")


def test_an_index_without_usages_has_a_code(tmp_path: Path) -> None:
    (tmp_path / "text.txt").write_text("\n")
    with pytest.raises(PolysemeError) as raised:
        api.index("zh-classic", tmp_path / "text.txt", tmp_path / "index", progress=False)
    assert failures.explain_library_error(raised.value, "").error_code == "too_little_text"


def list_failures() -> Sequence[failures.Failure]:
    """A failure of each kind."""
    full, broken = (OSError(number, os.strerror(number)) for number in (errno.ENOSPC, errno.EIO))
    return [
        *(failures.Failure(error="", error_code=code) for code in failures.CODES.values()),
        failures.explain_os_error(full),
        failures.explain_os_error(broken),
        failures.explain_bug(),
        failures.explain_exit(-signal.SIGKILL),
        failures.explain_exit(1),
        failures.explain_failed_start(broken),
        failures.explain_damaged_record("Novel/corpus.json", ValueError()),
    ]


def test_the_page_has_a_text_for_each_code() -> None:
    texts = (EXPLORER / "texts" / "workspace.js").read_text(encoding="utf-8")
    codes = {failure.error_code for failure in list_failures()}
    assert len(codes) == len(list_failures())
    assert codes <= set(re.findall(r'"reason\.(\w+)"', texts))


def test_an_unknown_error_is_told_as_the_library_says_it() -> None:
    failure = failures.explain_library_error(PolysemeError("Something else."), "Something else.")
    assert (failure.error, failure.error_code) == ("Something else.", None)
