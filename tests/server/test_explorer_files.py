"""What the explorer gives away: lines to copy, which are run as they stand, and pictures and tables."""

from __future__ import annotations

import contextlib
import io
import json
import os
import re
import shlex
import subprocess
import sys
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree

import numpy as np
import pytest

from browsing import CHANGE, CHROMIUM, PICTURES, SENTENCE, VIEWS, WORD, Visit

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium")


@pytest.fixture(scope="module")
def server(explored):
    return explored


def test_lines_are_copied_and_run_as_they_stand(browser, server, folders):
    visit = Visit(browser, server.address, permissions=["clipboard-read", "clipboard-write"])
    visit.go("sentence")
    line = visit.line("Command line")
    visit.page.evaluate(  # the page says it for two seconds: it is heard even if nobody looks meanwhile
        "() => new MutationObserver(() => { window.said ||= document.body.innerText.includes('Copied') })"
        ".observe(document.body, { subtree: true, childList: true, characterData: true })"
    )
    visit.page.get_by_role("button", name="Copy: Command line").first.click()
    visit.page.wait_for_function("() => window.said")
    assert visit.page.evaluate("navigator.clipboard.readText()") == line
    program, *arguments = shlex.split(line)
    assert (program, arguments[1]) == ("polyseme", os.path.relpath(folders[0]))
    done = subprocess.run([sys.executable, "-m", program, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [row.split("\t")[0] for row in done.stdout.splitlines()] == visit.cosines()
    assert '"index":"one-index"' in visit.line("curl")
    visit.close()


def run_lines(visit: Visit) -> tuple[str, dict, str]:
    """What the first lines of a view to copy give, run as they stand: Python, curl, command line."""
    said = io.StringIO()
    with contextlib.redirect_stdout(said):
        exec(visit.line("Python"), {})
    curl = subprocess.run(visit.line("curl"), shell=True, capture_output=True, text=True, check=True)
    program, *arguments = shlex.split(visit.line("Command line"))
    cli = subprocess.run([sys.executable, "-m", program, *arguments], capture_output=True, text=True)
    assert cli.returncode == 0, cli.stderr
    return said.getvalue(), json.loads(curl.stdout), cli.stdout


def test_lines_of_a_sentence_give_what_the_page_shows(visit: Visit):
    visit.go(f"#/sentence?text={quote('-- 曹操大怒。' + SENTENCE)}&token=7")
    python, curl, cli = run_lines(visit)
    shown = visit.cosines()
    assert [line.split()[0] for line in python.splitlines()] == shown
    assert [f"{usage['cosine']:.3f}" for usage in curl["usages"]] == shown
    assert [line.split("\t")[0] for line in cli.splitlines()] == shown
    visit.refused = True  # the corpus has no such word
    visit.go(f"#/sentence?text={quote('- 曹操大怒。')}&token=0")
    assert run_lines(visit)[2].splitlines()[0].split("\t")[0] == visit.cosines()[0]


@pytest.mark.parametrize(("one", "other"), [("曹操大怒。", "曹操大喜。"), ("-k 曹操大怒。", "--曹操大喜。")])
def test_lines_of_compare_give_what_the_page_shows(visit: Visit, one: str, other: str):
    visit.go(f"#/compare?a={quote(one)}&b={quote(other)}&layer=1")
    python, curl, cli = run_lines(visit)
    whole = re.search(r"[\d.]+$", visit.page.locator("section .hint").first.inner_text())[0]
    cells = visit.page.locator(".heatmap .figure").all_text_contents()
    assert f"{float(python.split()[0]):.3f}" == f"{curl['cosine']:.3f}" == whole
    assert f"{float(cli.split()[0]):.3f}" == whole
    matrix = [float(value) for value in re.findall(r"-?\d+\.\d*", python.partition("\n")[2])]
    np.testing.assert_allclose(matrix, [float(cell) for cell in cells], atol=0.011)
    np.testing.assert_allclose(np.ravel(curl["matrix"]), [float(cell) for cell in cells], atol=0.006)


def test_lines_of_senses_give_what_the_page_shows(visit: Visit):
    visit.go("senses")
    python, curl, cli = run_lines(visit)
    names = visit.page.locator(".sense .neighbours").all_inner_texts()
    shares = [text.split(" ")[0] for text in visit.page.locator(".sense .hint").all_inner_texts()[1:]]
    rows = [line.split() for line in python.splitlines()]
    assert [(row[0], " · ".join(row[1:5])) for row in rows] == list(zip(shares, names, strict=True))
    assert [" · ".join(sense["neighbours"][:4]) for sense in curl["senses"]] == names
    for name in names:
        assert " ".join(name.split(" · ")) in cli


@pytest.mark.parametrize(
    ("view", "name"),
    [
        ("sentence", "Nearest usages"),
        ("compare", "Cosines of all words"),
        ("senses", "Map of usages"),
        ("senses", "Shares by document"),
        (CHANGE, "Change between two indexes"),
        ("model", "Perplexity while training"),
    ],
)
def test_charts_are_saved_as_svg_png_and_csv(visit: Visit, view: str, name: str):
    if view == "model" and PICTURES:
        pytest.skip("no curve")
    visit.go(view)
    files = {}
    for kind in ("SVG", "PNG", "CSV"):
        with visit.page.expect_download() as download:
            visit.page.get_by_role("button", name=f"Save {name} as {kind}").click()
        files[kind] = Path(download.value.path()).read_bytes()
        assert download.value.suggested_filename.endswith(f".{kind.lower()}")
    drawing = ElementTree.fromstring(files["SVG"])
    assert len(list(drawing.iter())) > 10
    assert drawing.get("class") is None
    assert files["PNG"].startswith(b"\x89PNG")
    assert len(files["PNG"]) > 2000
    assert files["CSV"].startswith("\ufeff".encode())
    assert files["CSV"].count(b"\r\n") > 1


def saved(visit: Visit, name: str, kind: str) -> str:
    """What a button that saves a chart gives."""
    with visit.page.expect_download() as download:
        visit.page.get_by_role("button", name=f"Save {name} as {kind}").click()
    return Path(download.value.path()).read_text(encoding="utf-8-sig")


def test_pictures_have_a_title_a_legend_and_the_names_of_the_senses(visit: Visit):
    visit.go("senses")
    first = visit.page.locator(".sense .neighbours").first.inner_text()
    label = visit.page.locator("svg.map .label").first.text_content().strip()
    assert re.match(r"\d \S", label)
    for name in ("Map of usages", "Shares by document"):
        texts = [one.text for one in ElementTree.fromstring(saved(visit, name, "SVG")).iter() if one.text]
        assert f"{name}: {WORD} (one-index)" in texts
        assert any(text.startswith("Sense 1 (") and text.endswith(first) for text in texts)
        assert any(label in text for text in texts) == (name == "Map of usages")


def test_the_csv_of_the_map_has_what_is_shown(visit: Visit):
    visit.go(f"{VIEWS['senses']}&sense=0")
    lines = saved(visit, "Map of usages", "CSV").splitlines()
    playwright.expect(visit.page.locator("svg.map .dot:not(.faded)")).to_have_count(len(lines) - 1)
    assert {line.split(",")[0] for line in lines[1:]} == {"1"}
    visit.go(f"{VIEWS['senses']}&box=-9,-9,-8,-8")
    assert len(saved(visit, "Map of usages", "CSV").splitlines()) == 1


def test_the_table_of_change_names_its_bars_its_senses_and_small_chances(visit: Visit):
    def change(found: dict) -> None:
        row = found["changes"][0]
        row |= {
            "shares": [[0.125, 0.125]] * 8,
            "neighbours": [["甲", "乙"]] * 8,
            "p": 0.04975,
            "shift_p": 0.0502,
        }

        found["complete"] = False

    visit.alter("/change", change)
    visit.go(CHANGE)
    row = visit.page.locator(".change tbody tr").first
    playwright.expect(row.locator("svg > text")).to_have_text(["one-index", "other-index"])
    playwright.expect(row.locator("svg title").first).to_have_text("Sense 1: 甲 · 乙")
    playwright.expect(row.locator("td").nth(4)).to_have_text("< 0.05")
    playwright.expect(row.locator("td").nth(6)).to_have_text("0.0502")
    visit.see(".sense-legend", "Sense 8")
    visit.see("section[aria-labelledby=change-title]", "these are the ones that were reached")
    drawing = ElementTree.fromstring(saved(visit, "Change between two indexes", "SVG"))
    _, _, width, _ = map(float, drawing.get("viewBox").split())
    place = re.compile(r"translate\(([\d.]+) ")
    starts = {
        one[-1].text: float(place.match(one.get("transform"))[1])
        for one in drawing.iter("{http://www.w3.org/2000/svg}g")
        if one.get("transform") and (one[-1].text or "").startswith("Sense")
    }
    assert set(starts) == {f"Sense {number}" for number in range(1, 9)}
    assert max(starts.values()) + 20 + 60 < width
