"""The manual as a web site: it builds without a warning, and every link leads to a page and a heading."""

from __future__ import annotations

import re
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

import polyseme
from browsing import CHROMIUM
from test_verbs import COMMANDS

ROOT = Path(__file__).parent.parent
SITE_SCRIPTS = ROOT / "docs" / "site"


def run(script: str, *arguments: str | Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, SITE_SCRIPTS / script, *arguments]
    return subprocess.run(command, capture_output=True, text=True, encoding="utf-8")


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("manual")
    done = run("build.py", "--out", out)
    assert done.returncode == 0, done.stdout + done.stderr
    return out / "site"


def read(site: Path, page: str) -> str:
    return (site / page / "index.html").read_text(encoding="utf-8")


def test_both_languages_have_the_same_pages_and_switch_between_them(site: Path) -> None:
    pages = {path.parent.relative_to(site).as_posix() for path in site.rglob("index.html")}
    english = {page for page in pages if page.split("/")[0] != "zh"}
    assert pages - english == {f"zh/{page}".removesuffix("/.") for page in english}
    assert {path.name.split(".")[0] for path in (ROOT / "docs").glob("*.md")} <= english
    assert 'href="../zh/search/" hreflang="zh"' in read(site, "search")
    assert 'href="../../search/" hreflang="en"' in read(site, "zh/search")


def test_a_page_without_a_translation_is_marked_in_the_chinese_navigation(site: Path) -> None:
    front = read(site, "zh")
    titles = dict(re.findall(r'<a href="\./(\w+)/" class="md-nav__link">\s*(?:<[^>]*>\s*)*([^<]*)', front))
    translated = {path.name.split(".")[0] for path in (ROOT / "docs").glob("*.zh-CN.md")}
    assert titles["search"].strip() == "按上下文中的词义搜索"
    assert {name for name, title in titles.items() if "（英文）" not in title} <= translated
    assert titles["deploy"].strip() == "部署"
    assert titles["commands"].strip().endswith("（英文）")


def test_the_reference_has_every_public_name_and_every_command(site: Path) -> None:
    anchors = set(re.findall(r'<h3 id="([^"]+)"', read(site, "api")))
    assert anchors == {name.lower() for name in polyseme.__all__}
    commands = set(re.findall(r'<h3 id="([^"]+)"', read(site, "commands")))
    assert commands == {{"map_usages": "map"}.get(verb, verb) for verb in COMMANDS}
    assert "--min-count" in read(site, "commands")


def test_the_pictures_of_elmo_are_what_the_script_draws() -> None:
    draw = runpy.run_path(str(SITE_SCRIPTS / "draw_elmo.py"))["draw"]
    for language, name in (("en", "elmo.svg"), ("zh", "elmo.zh.svg")):
        picture = (ROOT / "docs" / name).read_text(encoding="utf-8")
        assert draw(language) == picture
        assert picture.count("<rect") == 2 * 6 * 5 + 1  # each box also hides the arrows behind it


def test_the_gallery_draws_every_picture_of_the_repository_once() -> None:
    listed = run("gallery.py", "--list").stdout
    files = re.findall(r"^ +(\S+\.(?:png|svg))$", listed, re.MULTILINE)
    folders = [ROOT / "docs", ROOT / "benchmarks", *(ROOT / "models").iterdir()]
    drawn = [path for folder in folders for ending in ("png", "svg") for path in folder.glob(f"*.{ending}")]
    assert sorted(files) == sorted(path.relative_to(ROOT).as_posix() for path in drawn)


def test_every_picture_of_the_gallery_is_on_a_page() -> None:
    pages = [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/*.md"),
        *ROOT.glob("benchmarks/*.md"),
        *ROOT.glob("models/*/*.md"),
    ]
    shown = {
        (page.parent / link).resolve()
        for page in pages
        for link in re.findall(r"!\[[^\]]*\]\(([^)]+)\)", page.read_text(encoding="utf-8"))
    }
    pictures = {*ROOT.glob("docs/*.png"), *ROOT.glob("docs/*.svg"), *ROOT.glob("benchmarks/*.png")}
    assert pictures <= shown


def test_the_gallery_draws_the_committed_pictures_again(tmp_path: Path) -> None:
    done = run("gallery.py", "elmo", "training", "--out", tmp_path)
    assert done.returncode == 0, done.stderr
    drawn = [path for path in tmp_path.rglob("*") if path.suffix in {".png", ".svg"}]
    assert len(drawn) == 2 + 4
    for path in drawn:
        committed = ROOT / path.relative_to(tmp_path)
        assert committed.exists()
        if path.suffix == ".svg":
            assert path.read_bytes() == committed.read_bytes()
        else:  # versions of matplotlib differ by a few pixels
            assert read_size(path) == read_size(committed)


def test_a_picture_that_the_gallery_does_not_know_is_named() -> None:
    unknown = run("gallery.py", "maps")
    assert unknown.returncode == 1
    assert unknown.stderr.startswith("maps: no such picture; there are elmo, map, shares, book, ")


def read_size(picture: Path) -> tuple[int, int]:
    """Width and height of a PNG."""
    data = picture.read_bytes()
    assert data.startswith(b"\x89PNG")
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


@pytest.mark.slow
@pytest.mark.parametrize("name", ["benchmarks", "layers", "map", "explorer"])
def test_a_picture_of_the_gallery_has_the_size_of_that_of_the_manual(name: str, tmp_path: Path) -> None:
    if name == "explorer" and CHROMIUM is None:
        pytest.skip("needs chromium: apt-get install chromium")
    done = run("gallery.py", name, "--out", tmp_path)
    if "could not be downloaded" in done.stderr:
        pytest.skip("the package index cannot be reached")
    assert done.returncode == 0, done.stderr
    drawn = sorted(tmp_path.rglob("*.png"))
    assert drawn
    for path in drawn:
        assert read_size(path) == read_size(ROOT / path.relative_to(tmp_path))
        assert path.stat().st_size > 10_000


@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium")
def test_the_walk_finds_what_is_wrong_with_a_page(tmp_path: Path) -> None:
    body = '<div class="md-content">{}</div>'
    (tmp_path / "zh").mkdir()
    (tmp_path / "index.html").write_text(body.format('<p style="width:2000px">wide</p><img src="no.png">'))
    (tmp_path / "zh" / "index.html").write_text(body.format("<p>Not a word of Chinese</p>"), encoding="utf-8")
    done = run("walk.py", tmp_path)
    assert done.returncode == 1
    faults = done.stderr.splitlines()
    for size in ("screen", "phone"):
        assert f'/ ({size}): is wider than the page: p "wide"' in faults
        assert f"/ ({size}): scrolls sideways" in faults
        assert [
            fault
            for fault in faults
            if fault.startswith(f"/ ({size}): http") and "no.png is not shown" in fault
        ]
        assert f"/zh ({size}): only 0% of its letters are Chinese" in faults


@pytest.mark.slow
@pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium")
def test_every_page_is_in_order_on_a_screen_and_on_a_phone(site: Path) -> None:
    done = run("walk.py", site)
    assert done.returncode == 0, done.stderr


def test_formulas_become_mathml(site: Path) -> None:
    for page in ("how-elmo-works", "zh/how-elmo-works"):
        text = read(site, page)
        assert text.count('<math xmlns="http://www.w3.org/1998/Math/MathML" display="block"') > 10
        assert "\\sum" not in text
        assert "$t_1" not in text
        assert "<span><math" in text
        assert "\n<math" not in text


def test_a_line_break_in_a_chinese_paragraph_is_no_space(site: Path) -> None:
    assert re.search(
        "用几种宽度的卷积核滑过这些字符，每个卷积核只保留最大值。宽度为", read(site, "zh/how-elmo-works")
    )
    assert "梯度也容易消失或爆炸。LSTM 的记忆通过累加更新，由三个门决定写入什么、保留什么" in read(
        site, "zh/how-elmo-works"
    )


def test_an_error_is_marked_so_that_its_long_line_wraps(site: Path) -> None:
    errors = (ROOT / "docs" / "troubleshooting.md").read_text(encoding="utf-8").count("```text\npolyseme: ")
    for page in ("troubleshooting", "zh/troubleshooting"):
        assert read(site, page).count('<div class="language-text error highlight">') == errors > 0


def test_pages_load_nothing_from_other_hosts(site: Path) -> None:
    loaded = re.compile(r'<(?:script|img|iframe)[^>]* src="(https?:[^"]*)|<link[^>]* href="(https?:[^"]*)')
    assert not [found for path in site.rglob("*.html") for found in loaded.findall(path.read_text("utf-8"))]


def test_the_check_finds_a_link_to_a_missing_page_and_to_a_missing_heading(
    site: Path, tmp_path: Path
) -> None:
    assert run("check_links.py", site).returncode == 0
    (tmp_path / "index.html").write_text('<a href="a.html#here">', encoding="utf-8")
    (tmp_path / "a.html").write_text('<h2 id="here"><a href="b.html"><a href="#there">', encoding="utf-8")
    done = run("check_links.py", tmp_path)
    assert done.returncode == 1
    assert done.stderr.splitlines() == [
        "a.html: b.html does not exist",
        "a.html: #there is no heading",
        "2 dead links of 3",
    ]
