"""Check the links of a built site: every page, file and heading that a page refers to exists.

    python docs/site/check_links.py build/docs/site

Links to other hosts are not followed.
"""

from __future__ import annotations

import sys
from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ATTRIBUTES = {"href", "src"}


class PageParser(HTMLParser):
    """What a page refers to, and the anchors that it has."""

    def __init__(self) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collect the links and the anchors of a tag."""
        for name, value in attrs:
            if value and name in ATTRIBUTES:
                self.links.append(value)
            elif value and name == "id":
                self.anchors.add(value)


@cache
def parse_page(path: Path) -> PageParser:
    """Read a page once."""
    parser = PageParser()
    parser.feed(path.read_text(encoding="utf-8"))
    return parser


def find_dead_links(site: Path) -> tuple[int, list[str]]:
    """Count the internal links of a site, and list those that lead nowhere."""
    checked, dead = 0, []
    for page in sorted(site.rglob("*.html")):
        if page.name == "404.html":
            continue  # shown at any address: its links are absolute
        for link in parse_page(page).links:
            parts = urlsplit(link)
            if parts.scheme or parts.netloc:
                continue
            checked += 1
            target = (page.parent / unquote(parts.path)).resolve() if parts.path else page
            if target.is_dir():
                target /= "index.html"
            anchor = unquote(parts.fragment)
            inside = target.is_relative_to(site.resolve())
            if not inside or not target.is_file():
                dead.append(f"{page.relative_to(site)}: {link} does not exist")
            elif anchor and target.suffix == ".html" and anchor not in parse_page(target).anchors:
                dead.append(f"{page.relative_to(site)}: {link} is no heading")
    return checked, dead


def main() -> None:
    """Check the site in the folder that the first argument names."""
    site = Path(sys.argv[1]).resolve()
    checked, dead = find_dead_links(site)
    if checked == 0:
        sys.exit(f"{site} has no pages with links. Build it first: make docs")
    if dead:
        sys.exit("\n".join([*dead, f"{len(dead)} dead links of {checked}"]))
    print(f"{checked} links lead to a page and a heading")


if __name__ == "__main__":
    main()
