"""HTML pages and EPUB books become text; hostile ones are refused, quickly."""

from __future__ import annotations

import time
import zipfile
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from polyseme.errors import DataError, UsageError
from polyseme.text import markup
from polyseme.text.corpus.documents import read_documents
from polyseme.text.markup import extract_page, read_epub, scan_markup
from polyseme.text.reading import read_lines

CONTAINER = '<container><rootfiles><rootfile full-path="OEBPS/book.opf"/></rootfiles></container>'
NAV = """<html><body><nav epub:type="toc"><ol>
<li><a href="one.xhtml">第一回 宴桃园</a></li><li><a href="two.xhtml#b">Chapter <i>Two</i></a></li>
</ol></nav><nav epub:type="landmarks"><a href="one.xhtml">Start</a></nav></body></html>"""
NCX = """<ncx><navMap><navPoint><navLabel><text>Old one</text></navLabel><content src="one.xhtml"/></navPoint>
<navPoint><navLabel><text>Old two</text></navLabel><content src="two.xhtml#b"/></navPoint></navMap></ncx>"""
ONE = (
    "<html><head><title>T</title><style>p{}</style></head><body><h1>First</h1><p>话说天下。</p></body></html>"
)
TWO = "<body><p>still one</p><h2 id='b'>Second</h2><p>A &amp; B<br/>next&nbsp;line</p></body>"


def write_book(path: Path, *, nav: str | None = NAV, ncx: str | None = None, **pages: str) -> Path:
    pages = {"one": ONE, "two": TWO} | pages
    items = "".join(f'<item id="{name}" href="{name}.xhtml"/>' for name in pages)
    items += '<item id="nav" href="nav.xhtml" properties="nav"/>' if nav else ""
    items += '<item id="ncx" href="toc.ncx" media-type="application/x-dtbncx+xml"/>' if ncx else ""
    spine = "".join(f'<itemref idref="{name}"/>' for name in pages)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as book:
        book.writestr("mimetype", "application/epub+zip")
        book.writestr("META-INF/container.xml", CONTAINER)
        book.writestr(
            "OEBPS/book.opf", f"<package><manifest>{items}</manifest><spine>{spine}</spine></package>"
        )
        for name, page in pages.items():
            book.writestr(f"OEBPS/{name}.xhtml", page)
        if nav:
            book.writestr("OEBPS/nav.xhtml", nav)
        if ncx:
            book.writestr("OEBPS/toc.ncx", ncx)
    return path


def test_the_text_of_a_page_is_its_paragraphs() -> None:
    page = extract_page(
        "<!DOCTYPE html><html><head><title>My page</title><script>if (a<b) x='<p>no</p>'</script></head>"
        "<body><!-- <p>no</p> --><p>One\n two<p>Th<b>re</b>e &lt;4&gt; <ruby>漢<rt>かん</rt></ruby>"
        "<table><tr><td>a<td>b</table><svg><title>no</title></svg>5 < 6</body>"
    )
    assert page.paragraphs == ["One two", "Three <4> 漢", "a b", "5 < 6"]
    assert page.title == "My page"


def test_an_html_file_is_read_as_text_of_its_encoding(tmp_path: Path) -> None:
    path = tmp_path / "a.html"
    path.write_bytes('<meta charset="gb2312"><title>题</title><body><p>银行</p><p>河边</p>'.encode("gbk"))
    assert [line.text for line in read_lines(path)] == ["银行", "", "河边"]
    for document, lines in read_documents([path]):
        assert (document.title, len(list(lines))) == ("题", 3)


@pytest.mark.parametrize(("nav", "ncx"), [(NAV, None), (None, NCX)])
def test_chapters_follow_the_table_of_contents(tmp_path: Path, nav: str | None, ncx: str | None) -> None:
    chapters = list(read_epub(write_book(tmp_path / "a.epub", nav=nav, ncx=ncx)))
    titles = ["第一回 宴桃园", "Chapter Two"] if nav else ["Old one", "Old two"]
    assert [chapter.title for chapter in chapters] == titles
    assert chapters[0].text == "First\n\n话说天下。\n\nstill one\n"
    assert chapters[1].text == "Second\n\nA & B\n\nnext line\n"


def test_without_a_table_of_contents_pages_are_chapters(tmp_path: Path) -> None:
    chapters = list(read_epub(write_book(tmp_path / "a.epub", nav=None, empty="<body></body>")))
    assert [chapter.title for chapter in chapters] == ["First", "Second"]


def test_a_book_is_read_wherever_a_text_is(tmp_path: Path) -> None:
    book = write_book(tmp_path / "a.epub")
    assert "话说天下。" in [line.text for line in read_lines(book)]
    documents = [(document.number, document.title) for document, _ in read_documents([book])]
    assert documents == [(1, "第一回 宴桃园"), (2, "Chapter Two")]
    with pytest.raises(UsageError, match="no such file"):
        list(read_lines(tmp_path / "b.epub"))


# ---- hostile input ----


def test_a_zip_bomb_is_refused(tmp_path: Path) -> None:
    book = write_book(tmp_path / "a.epub", bomb="<p>" + "a" * 5_000_000)
    with pytest.raises(DataError, match="not a page of a book"):
        list(read_epub(book))


def test_too_many_files_and_too_much_text_are_refused(tmp_path: Path) -> None:
    book = write_book(tmp_path / "a.epub")
    with pytest.raises(DataError, match=r"more text than a book has \(100 bytes\)"):
        list(read_epub(book, max_bytes=100))
    with pytest.raises(DataError, match=r"files, more than a book has \(3\)"):
        list(read_epub(book, max_entries=3))


def test_names_of_the_archive_are_never_paths(tmp_path: Path) -> None:
    secret = tmp_path / "secret.xhtml"
    secret.write_text("<p>secret</p>")
    book = write_book(tmp_path / "a.epub")
    with zipfile.ZipFile(book, "a") as archive:
        archive.writestr("OEBPS/book2.opf", "")
    for href in ("../secret.xhtml", str(secret), "..%2Fsecret.xhtml", "file://" + str(secret)):
        with zipfile.ZipFile(tmp_path / "b.epub", "w") as archive:
            archive.writestr("META-INF/container.xml", CONTAINER)
            opf = f'<package><item id="a" href="{href}"/><itemref idref="a"/></package>'
            archive.writestr("OEBPS/book.opf", opf)
        with pytest.raises(DataError, match="is missing in the book"):
            list(read_epub(tmp_path / "b.epub"))


def test_entities_are_not_expanded(tmp_path: Path) -> None:
    lol = '<!DOCTYPE lolz [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;"><!ENTITY x SYSTEM "file:///etc/passwd">]>'
    book = write_book(tmp_path / "a.epub", one=f"{lol}<body><p>&b; &x;</p></body>")
    text = "".join(chapter.text for chapter in read_epub(book))
    assert "aaaa" not in text
    assert "root:" not in text


@pytest.mark.parametrize(
    ("members", "message"),
    [
        ({}, "not an EPUB book"),
        ({"META-INF/container.xml": "<x/>"}, "not an EPUB book"),
        ({"META-INF/container.xml": CONTAINER}, r"OEBPS/book\.opf is missing"),
        ({"META-INF/container.xml": CONTAINER, "OEBPS/book.opf": "<package/>"}, "lists no pages"),
    ],
)
def test_an_archive_that_is_no_book_is_refused(tmp_path: Path, members: dict[str, str], message: str) -> None:
    with zipfile.ZipFile(tmp_path / "a.epub", "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    with pytest.raises(DataError, match=message):
        list(read_epub(tmp_path / "a.epub"))


def test_an_encrypted_book_is_refused(tmp_path: Path) -> None:
    book = write_book(tmp_path / "a.epub")
    with zipfile.ZipFile(book, "a") as archive:
        archive.writestr("META-INF/encryption.xml", '<enc:CipherReference URI="OEBPS/one.xhtml"/>')
    with pytest.raises(DataError, match="encrypted"):
        list(read_epub(book))


def test_damaged_books_are_refused(tmp_path: Path) -> None:
    whole = write_book(tmp_path / "a.epub").read_bytes()
    for position in range(0, len(whole), 23):
        broken = whole[:position] + bytes([whole[position] ^ 0x5A]) + whole[position + 1 :]
        (tmp_path / "b.epub").write_bytes(broken)
        try:
            list(read_epub(tmp_path / "b.epub"))
        except DataError as problem:
            assert "b.epub" in str(problem)  # noqa: PT017
    (tmp_path / "b.epub").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(DataError, match=r"b\.epub: a damaged EPUB book"):
        list(read_epub(tmp_path / "b.epub"))


@pytest.mark.parametrize(
    "text",
    [
        "<" * 300_000,
        "<!--" * 100_000,
        "<a " + "x" * 500_000,
        "<a " + "x=" * 200_000 + ">",
        "<a " + "x='" * 100_000,
        '<a x="' + ">" * 300_000,
        "<a " + 'x="1" ' * 50_000,
        "<svg>" * 100_000 + "<rt></rt>" * 50_000,
        "<script>" * 100_000,
        "&#" + "9" * 300_000 + ";",
        "<p id=" * 50_000,
        "</" * 200_000,
    ],
)
def test_hostile_markup_takes_linear_time(text: str) -> None:
    start = time.process_time()
    extract_page(text)
    assert time.process_time() - start < 5


@settings(max_examples=200, deadline=None)
@given(st.text(alphabet="<>/!-=\"'ap &;#\n[]CDATA?", max_size=60))
def test_any_markup_is_read(text: str) -> None:
    extract_page(text)
    assert all(isinstance(item, str | markup.Tag) for item in scan_markup(text))


def test_declarations_inside_a_doctype_are_no_text():
    page = '<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><html><p>hello &e; world</p></html>'
    assert extract_page(page).paragraphs == ["hello &e; world"]
