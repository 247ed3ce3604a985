"""Extract the text of HTML pages and EPUB books, without an XML parser and without writing to disk.

    bytes of a page, an .epub file  ->  text.markup  ->  text.reading, text.corpus.documents

Input: HTML, or a zip archive of XHTML. Output: paragraphs, one per line with a blank line between, and
chapters with titles. Tags are found by a scanner that reads every character once; entities are those of HTML,
and no others are expanded or fetched. An archive is read in memory up to fixed sizes; its names are keys,
never paths.
"""

from __future__ import annotations

import posixpath
import re
import zipfile
import zlib
from collections.abc import Iterator
from contextlib import suppress
from html import unescape
from lzma import LZMAError
from pathlib import Path
from typing import IO, NamedTuple
from urllib.parse import unquote

from polyseme.errors import DataError, UsageError
from polyseme.text.encodings import AUTO, SAMPLE_BYTES, check_encoding, detect_encoding, name_encoding

MAX_PAGE_BYTES = 64_000_000  # of one page; the largest novels have five million characters
MAX_BOOK_BYTES = 512_000_000  # of all pages of a book
MAX_ENTRIES = 20_000  # files in an archive
MAX_RATIO = 300  # of unpacked to packed bytes in a member above a megabyte; text reaches about ten
_BLOCKS = frozenset(
    re.findall(
        r"\w+",
        "address article aside blockquote body caption center dd details dialog div dl dt fieldset "
        "figcaption figure footer form h1 h2 h3 h4 h5 h6 header hr html legend li main ol optgroup option p "
        "pre section summary table tbody tfoot thead tr ul",
    )
)
_CELLS = frozenset(("td", "th"))
_RUBY = frozenset(("rt", "rp"))  # how a character is read; their closing tags may be missing
_SKIPPED = frozenset(
    ("head", "script", "style", "template", "svg", "math", "rt", "rp", "noscript", "textarea", "select")
)
_CLOSERS = {name: re.compile(rf"</{name}", re.IGNORECASE) for name in ("script", "style")}
_HEADINGS = frozenset(("h1", "h2", "h3"))
_SUBSET = re.compile(r"<!DOCTYPE[^\[>]*\[", re.IGNORECASE)  # declarations of its own, up to ]
_TAG_NAME = re.compile(r"/?([A-Za-z][^\s/>]*)")
_QUOTE = re.compile(r"=\s*([\"'])")
_ATTRIBUTE = re.compile(r"(?<![^\s=/>\"'])([^\s=/>\"']++)\s*+=\s*+(?:\"([^\"]*)\"|'([^']*)'|([^\s>\"']+))")
_CHARSET = re.compile(rb"(?:charset|encoding)\s*=\s*[\"']?\s*([A-Za-z0-9._:-]{2,40})", re.IGNORECASE)


class Tag(NamedTuple):
    """A tag: its name without a namespace, in lower case, whether it closes, and its attributes."""

    name: str
    closes: bool
    attributes: str

    @property
    def is_empty(self) -> bool:
        """Whether it is written <name/>."""
        return self.attributes.endswith("/")

    def get(self, name: str) -> str | None:
        """The value of an attribute; its namespace does not count."""
        for match in _ATTRIBUTE.finditer(self.attributes):
            if match[1].rpartition(":")[2].lower() == name:
                return _unescape(next(value for value in match.groups()[1:] if value is not None))
        return None


class Chapter(NamedTuple):
    """A part of a book, and its title."""

    title: str
    text: str  # paragraphs, one per line with a blank line between


class Page(NamedTuple):
    """The text of a page."""

    paragraphs: list[str]
    title: str  # the first heading, else the <title>
    anchors: dict[str, int]  # id -> number of the paragraph where it stands


def scan_markup(text: str) -> Iterator[Tag | str]:
    """Yield the tags and the text between them; comments and declarations are left out."""
    position, size, raw = 0, len(text), ""
    while position < size:
        if raw:  # up to the tag that closes a script
            closing = _CLOSERS[raw].search(text, position)
            position, raw = (closing.start() if closing else size), ""
            continue
        start = text.find("<", position)
        if start < 0:
            yield _unescape(text[position:])
            return
        if start > position:
            yield _unescape(text[position:start])
        if text.startswith("<!--", start):
            end = text.find("-->", start + 4)
            position = size if end < 0 else end + 3
        elif text.startswith("<![CDATA[", start):
            end = text.find("]]>", start)
            yield text[start + 9 : size if end < 0 else end]
            position = size if end < 0 else end + 3
        elif text.startswith(("<!", "<?"), start):
            subset = _SUBSET.match(text, start)
            end = _find_end(text, start if subset is None else max(text.find("]", subset.end()), start))
            position = end + 1
        elif (name := _TAG_NAME.match(text, start + 1)) is not None:
            end = _find_end(text, name.end())
            tag = Tag(name[1].rpartition(":")[2].lower(), text[start + 1] == "/", text[name.end() : end])
            yield tag
            position = end + 1
            if tag.name in _CLOSERS and not tag.closes and not tag.is_empty:
                raw = tag.name
        else:  # a sign, not a tag
            yield "<"
            position = start + 1


def _find_end(text: str, position: int) -> int:
    """The > that ends a tag, not one in quotes; the end of the text if there is none."""
    end = text.find(">", position)
    while end >= 0 and (quote := _QUOTE.search(text, position, end)) is not None:
        closing = text.find(quote[1], quote.end())
        if closing < 0:
            return end
        position = closing + 1
        if closing > end:
            end = text.find(">", position)
    return len(text) if end < 0 else end


def _unescape(text: str) -> str:
    """Replace the entities of HTML; a number with thousands of digits stays as it is."""
    try:
        return unescape(text)
    except ValueError:
        return text


def extract_page(text: str) -> Page:
    """Extract the paragraphs of a page, its title and the positions of its ids."""
    paragraphs: list[str] = []
    pending: list[str] = []
    anchors: dict[str, int] = {}
    heading, page_title = "", ""
    skipped, depth = "", 0  # an element whose text does not count, and how many of its name are open
    in_title, in_heading = False, 0

    def end_paragraph() -> None:
        for line in "".join(pending).split("\n"):
            if words := " ".join(line.split()):
                paragraphs.append(words)
        pending.clear()

    for item in scan_markup(text):
        if isinstance(item, str):
            if in_title:
                page_title += item
            elif not skipped:
                pending.append(item.replace("\n", " ").replace("\r", " "))
            continue
        name = item.name
        if name == "title" and skipped in ("", "head"):
            in_title = not item.closes
        if name == "body" or (skipped in _RUBY and (name in _BLOCKS or name in _RUBY or name == "ruby")):
            skipped = ""
        if not skipped and name in _SKIPPED and not item.closes and not item.is_empty:
            skipped, depth = name, 0
        if skipped:
            if name == skipped and not item.is_empty:
                depth += -1 if item.closes else 1
                skipped = skipped if depth > 0 else ""
            continue
        if name == "br":
            pending.append("\n")
        elif name in _CELLS:
            pending.append(" ")
        elif name in _BLOCKS:
            end_paragraph()
            if name in _HEADINGS and not heading:
                if not item.closes:
                    in_heading = len(paragraphs)
                else:
                    heading = " ".join(paragraphs[in_heading:])[:200]
        if not item.closes and (anchor := item.get("id") or (name == "a" and item.get("name"))):
            anchors.setdefault(anchor, len(paragraphs))
    end_paragraph()
    return Page(paragraphs, heading or " ".join(page_title.split())[:200], anchors)


def decode_markup(raw: bytes, name: str, encoding: str = AUTO) -> str:
    """Decode a page: by its byte order mark, the encoding it declares, or what is detected.

    Raises:
        DataError: It cannot be decoded.

    """
    codec, mark = check_encoding(encoding), 0
    if codec == AUTO:
        codec, mark = _find_codec(raw)
    try:
        return raw[mark:].decode(codec)
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise DataError(
            f"{name}:{line}: not {name_encoding(codec)} (byte 0x{raw[mark + error.start]:02x}). Name the "
            "encoding with `encoding`."
        ) from None


def _find_codec(raw: bytes) -> tuple[str, int]:
    """The codec of a page, and the size of its byte order mark."""
    start = detect_encoding(raw[:SAMPLE_BYTES])
    if start is not None and (start.mark or start.codec.startswith("utf-16")):
        return start
    try:
        raw.decode("utf-8")
    except UnicodeDecodeError as error:
        first = error.start
    else:
        return "utf-8", 0
    if (declared := _CHARSET.search(raw, 0, 4096)) is not None:
        with suppress(UsageError):
            codec = check_encoding(declared[1].decode("ascii"))
            return ("cp1252" if codec == "latin-1" else codec), 0
    return detect_encoding(raw[first : first + SAMPLE_BYTES], at_start=False) or ("utf-8", 0)


def join_paragraphs(paragraphs: list[str]) -> str:
    """Paragraphs as text: one per line, with a blank line between."""
    return "\n\n".join(paragraphs) + "\n" if paragraphs else ""


def read_html(stream: IO[bytes], name: str, encoding: str = AUTO) -> Chapter:
    """Read the text of an HTML page.

    Args:
        stream: The page.
        name: What errors call it.
        encoding: Its encoding, or "auto".

    Raises:
        DataError: It is too large, or cannot be decoded.

    """
    raw = stream.read(MAX_PAGE_BYTES + 1)
    if len(raw) > MAX_PAGE_BYTES:
        raise DataError(f"{name}: an HTML page of more than {MAX_PAGE_BYTES:,} bytes. Save it as plain text.")
    page = extract_page(decode_markup(raw, name, encoding))
    return Chapter(page.title or Path(name).stem, join_paragraphs(page.paragraphs))


def read_epub(
    path: str | Path, *, max_bytes: int = MAX_BOOK_BYTES, max_entries: int = MAX_ENTRIES
) -> Iterator[Chapter]:
    """Yield the chapters of an EPUB book in reading order; titles are those of its table of contents.

    A chapter goes from one entry of the table of contents to the next. Without a table every page is a
    chapter, whose title is its first heading. Pages without text are left out.

    Args:
        path: The book.
        max_bytes: Text of all pages together.
        max_entries: Files in the archive.

    Raises:
        DataError: The file is not an EPUB book, is encrypted, damaged or larger than any book.

    """
    try:
        with zipfile.ZipFile(path) as archive:
            yield from _Book(archive, str(path), max_bytes, max_entries).read_chapters()
    except (
        zipfile.BadZipFile,
        zlib.error,
        LZMAError,
        EOFError,
        NotImplementedError,
        RuntimeError,
    ) as problem:
        raise DataError(f"{path}: a damaged EPUB book ({problem}). Copy or download it again.") from None
    except OSError as problem:
        reason = problem.strerror or problem
        raise DataError(f"{path}: cannot be read ({reason}). Check the disk or the path.") from None


class _Book:
    """An open EPUB archive."""

    def __init__(self, archive: zipfile.ZipFile, name: str, max_bytes: int, max_entries: int) -> None:
        self._archive, self._name, self._max_bytes = archive, name, max_bytes
        entries = archive.infolist()
        if len(entries) > max_entries:
            raise DataError(f"{name}: {len(entries):,} files, more than a book has ({max_entries:,}).")
        self._members = {entry.filename: entry for entry in entries}
        self._bytes = 0

    def read_chapters(self) -> Iterator[Chapter]:
        """Yield the chapters with text."""
        package = self._find_package()
        spine, navigation = self._read_package(package)
        self._refuse_encrypted(spine)
        titles = self._read_contents(navigation)
        title, paragraphs = "", list[str]()
        for path in spine:
            page = extract_page(self._read_text(path))
            stops = [
                (page.anchors.get(anchor, 0), label)
                for anchor, label in titles.get(path, {}).items()
                if not anchor or anchor in page.anchors
            ]
            if path not in titles and (not titles or not paragraphs):  # no table lists it
                stops = [(0, page.title or posixpath.splitext(posixpath.basename(path))[0])]
            stops.sort(key=lambda stop: stop[0])
            start = 0
            for stop, label in stops:
                paragraphs += page.paragraphs[start:stop]
                if paragraphs:
                    yield Chapter(title or self._stem(), join_paragraphs(paragraphs))
                title, paragraphs, start = label, [], stop
            paragraphs += page.paragraphs[start:]
        if paragraphs:
            yield Chapter(title or self._stem(), join_paragraphs(paragraphs))

    def _stem(self) -> str:
        return Path(self._name).stem

    def _find_package(self) -> str:
        """The name of the file that lists the pages."""
        if "META-INF/container.xml" in self._members:
            for item in scan_markup(self._read_text("META-INF/container.xml")):
                if isinstance(item, Tag) and item.name == "rootfile" and (path := item.get("full-path")):
                    return posixpath.normpath(path)
        raise DataError(f"{self._name}: not an EPUB book: no META-INF/container.xml names its contents.")

    def _read_package(self, package: str) -> tuple[list[str], list[str]]:
        """The pages in reading order, and the tables of contents, the newest kind first."""
        folder = posixpath.dirname(package)
        items: dict[str, str] = {}
        references: list[str] = []
        navigation, old_navigation = [], []
        for item in scan_markup(self._read_text(package)):
            if not isinstance(item, Tag) or item.closes:
                continue
            if item.name == "item" and (href := item.get("href")) and (identity := item.get("id")):
                items[identity] = _resolve(folder, href)[0]
                if "nav" in (item.get("properties") or "").split():
                    navigation.append(items[identity])
                if item.get("media-type") == "application/x-dtbncx+xml":
                    old_navigation.append(items[identity])
            elif item.name == "itemref" and (reference := item.get("idref")):
                references.append(reference)
        spine = [items[reference] for reference in references if reference in items]
        spine = [path for path in dict.fromkeys(spine) if path not in navigation]
        if not spine:
            raise DataError(f"{self._name}: not an EPUB book: {package} lists no pages.")
        return spine, [*navigation, *old_navigation]

    def _refuse_encrypted(self, spine: list[str]) -> None:
        if "META-INF/encryption.xml" in self._members:
            for item in scan_markup(self._read_text("META-INF/encryption.xml")):
                if isinstance(item, Tag) and item.name == "cipherreference":
                    path = _resolve("", item.get("uri") or "")[0]
                    if path in spine:
                        raise DataError(f"{self._name}: encrypted (DRM). Use a copy without copy protection.")

    def _read_contents(self, navigation: list[str]) -> dict[str, dict[str, str]]:
        """The titles of the table of contents: page -> id -> title."""
        for path in navigation:
            if path not in self._members:
                continue
            titles = _parse_navigation(self._read_text(path), posixpath.dirname(path))
            if titles:
                return titles
        return {}

    def _read_text(self, path: str) -> str:
        """The text of a member, within all bounds."""
        entry = self._members.get(path)
        if entry is None:
            raise DataError(f"{self._name}: {path} is missing in the book. Copy or download it again.")
        packed = max(entry.compress_size, 1)
        if entry.file_size > MAX_PAGE_BYTES or (
            entry.file_size > 1_000_000 and entry.file_size > MAX_RATIO * packed
        ):
            raise DataError(
                f"{self._name}: {path} unpacks from {packed:,} to {entry.file_size:,} bytes: not a page of a "
                "book."
            )
        with self._archive.open(entry) as member:
            raw = member.read(MAX_PAGE_BYTES + 1)
        self._bytes += len(raw)
        if len(raw) > MAX_PAGE_BYTES or self._bytes > self._max_bytes:
            raise DataError(f"{self._name}: more text than a book has ({self._max_bytes:,} bytes).")
        return decode_markup(raw, f"{self._name}/{path}")


def _resolve(folder: str, href: str) -> tuple[str, str]:
    """The member and the id that a link names, relative to a folder of the archive."""
    path, _, anchor = href.partition("#")
    return posixpath.normpath(posixpath.join(folder, unquote(path))), unquote(anchor)


def _parse_navigation(text: str, folder: str) -> dict[str, dict[str, str]]:
    """The entries of a table of contents: links in <nav epub:type="toc"> (EPUB 3), or <navPoint> (EPUB 2)."""
    titles: dict[str, dict[str, str]] = {}
    href, label, in_label, old_label = "", "", False, ""
    is_toc, in_nav = True, False
    for item in scan_markup(text):
        if isinstance(item, str):
            label += item if in_label else ""
        elif item.name == "nav":
            in_nav = not item.closes
            is_toc = item.closes or (item.get("type") or "toc") == "toc"
        elif item.name == "a" and is_toc:
            if item.closes:
                _add_title(titles, folder, href, label)
            href, label, in_label = item.get("href") or "", "", not item.closes
        elif item.name == "text":
            if item.closes:
                old_label = label
            label, in_label = "", not item.closes
        elif item.name == "content" and not item.closes and not in_nav:
            _add_title(titles, folder, item.get("src") or "", old_label)
    return titles


def _add_title(titles: dict[str, dict[str, str]], folder: str, href: str, label: str) -> None:
    title = " ".join(label.split())[:200]
    if href and title:
        path, anchor = _resolve(folder, href)
        titles.setdefault(path, {}).setdefault(anchor, title)
