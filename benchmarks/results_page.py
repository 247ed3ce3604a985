"""Write what a benchmark measured into a page of results.

    embed, pretrain  ->  results_page  ->  a Markdown file

A page has a place for each benchmark: what stands between `<!-- NAME -->` and `<!-- end -->`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path


def write_results(page: Path, name: str, lines: Iterable[str]) -> None:
    """Replace what stands between the marks of a benchmark; SystemExit if they are missing."""
    text = page.read_text(encoding="utf-8")
    pattern = re.compile(rf"(<!-- {name} -->\n).*?(<!-- end -->)", re.DOTALL)
    if not pattern.search(text):
        raise SystemExit(f"{page}: the marks <!-- {name} --> and <!-- end --> are missing.")
    body = "".join(f"{line}\n" for line in lines)
    page.write_text(pattern.sub(lambda match: f"{match[1]}{body}{match[2]}", text, count=1), encoding="utf-8")
