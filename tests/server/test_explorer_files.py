"""What users take from the explorer: code, which is run as shown, and exported charts and tables."""

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
from typing import Any
from urllib.parse import quote
from xml.etree import ElementTree

import numpy as np
import pytest

from browsing import CHANGE, CHROMIUM, SCREENSHOTS, SENTENCE, VIEWS, WORD, Visit

playwright = pytest.importorskip("playwright.sync_api")
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="needs chromium: apt-get install chromium")


@pytest.fixture(scope="module")
def server(explored):
    return explored


def test_copied_code_runs_as_shown(browser, server, folders):
    visit = Visit(browser, server.address, permissions=["clipboard-read", "clipboard-write"])
    visit.go("sentence")
    line = visit.code("Command line")
    visit.page.evaluate(  # the message is shown for two seconds only, so an observer records it
        "() => new MutationObserver(() => { window.copied ||= document.body.innerText.includes('Copied') })"
        ".observe(document.body, { subtree: true, childList: true, characterData: true })"
    )
    visit.page.get_by_role("button", name="Copy: Command line").first.click()
    visit.page.wait_for_function("() => window.copied")
    assert visit.page.evaluate("navigator.clipboard.readText()") == line
    program, *arguments = shlex.split(line)
    assert (program, arguments[1]) == ("polyseme", os.path.relpath(folders[0]))
    done = subprocess.run([sys.executable, "-m", program, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert [row.split("\t")[0] for row in done.stdout.splitlines()] == visit.cosines()
    assert '"index":"one-index"' in visit.code("curl")
    visit.close()


def run_code(visit: Visit) -> tuple[str, dict[str, Any], str]:
    """The output of the first code blocks of a view: Python, curl, command line."""
    output = io.StringIO()
    with contextlib.redirect_stdout(output):
        exec(visit.code("Python"), {})
    curl = subprocess.run(visit.code("curl"), shell=True, capture_output=True, text=True, check=True)
    program, *arguments = shlex.split(visit.code("Command line"))
    cli = subprocess.run([sys.executable, "-m", program, *arguments], capture_output=True, text=True)
    assert cli.returncode == 0, cli.stderr
    return output.getvalue(), json.loads(curl.stdout), cli.stdout


def test_code_of_the_sentence_view_gives_what_the_page_shows(visit: Visit):
    visit.go(f"#/sentence?text={quote('-- 曹操大怒。' + SENTENCE)}&token=7")
    python, curl, cli = run_code(visit)
    shown = visit.cosines()
    assert [line.split()[0] for line in python.splitlines()] == shown
    assert [f"{usage['cosine']:.3f}" for usage in curl["usages"]] == shown
    assert [line.split("\t")[0] for line in cli.splitlines()] == shown
    visit.expects_failures = True  # the word is not in the corpus
    visit.go(f"#/sentence?text={quote('- 曹操大怒。')}&token=0")
    assert run_code(visit)[2].splitlines()[0].split("\t")[0] == visit.cosines()[0]


@pytest.mark.parametrize(
    ("first", "second"), [("曹操大怒。", "曹操大喜。"), ("-k 曹操大怒。", "--曹操大喜。")]
)
def test_code_of_the_compare_view_gives_what_the_page_shows(visit: Visit, first: str, second: str):
    visit.go(f"#/compare?a={quote(first)}&b={quote(second)}&layer=1")
    python, curl, cli = run_code(visit)
    shown = re.search(r"[\d.]+$", visit.page.locator("section .hint").first.inner_text())
    assert shown is not None
    whole = shown[0]
    cells = visit.page.locator(".heatmap .figure").all_text_contents()
    assert f"{float(python.split()[0]):.3f}" == f"{curl['cosine']:.3f}" == whole
    assert f"{float(cli.split()[0]):.3f}" == whole
    matrix = [float(value) for value in re.findall(r"-?\d+\.\d*", python.partition("\n")[2])]
    np.testing.assert_allclose(matrix, [float(cell) for cell in cells], atol=0.011)
    np.testing.assert_allclose(np.ravel(curl["matrix"]), [float(cell) for cell in cells], atol=0.006)


def test_code_of_the_senses_view_gives_what_the_page_shows(visit: Visit):
    visit.go("senses")
    python, curl, cli = run_code(visit)
    names = visit.page.locator(".sense-card .neighbours").all_inner_texts()
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
        ("model", "Perplexity during training"),
    ],
)
def test_charts_are_saved_as_svg_png_and_csv(visit: Visit, view: str, name: str):
    if view == "model" and SCREENSHOTS:
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


def export(visit: Visit, name: str, kind: str) -> str:
    """The text of an exported file."""
    with visit.page.expect_download() as download:
        visit.page.get_by_role("button", name=f"Save {name} as {kind}").click()
    return Path(download.value.path()).read_text(encoding="utf-8-sig")


def test_exported_charts_have_a_title_a_legend_and_the_names_of_the_senses(visit: Visit):
    visit.go("senses")
    first = visit.page.locator(".sense-card .neighbours").first.inner_text()
    label = (visit.page.locator("svg.map .label").first.text_content() or "").strip()
    assert re.match(r"\d \S", label)
    for name in ("Map of usages", "Shares by document"):
        drawing = ElementTree.fromstring(export(visit, name, "SVG"))
        texts = [element.text for element in drawing.iter() if element.text]
        assert f"{name}: {WORD} (one-index)" in texts
        assert any(text.startswith("Sense 1 (") and text.endswith(first) for text in texts)
        assert any(label in text for text in texts) == (name == "Map of usages")


def test_the_csv_of_the_map_contains_the_selected_usages(visit: Visit):
    visit.go(f"{VIEWS['senses']}&sense=0")
    lines = export(visit, "Map of usages", "CSV").splitlines()
    playwright.expect(visit.page.locator("svg.map .dot:not(.faded)")).to_have_count(len(lines) - 1)
    assert {line.split(",")[0] for line in lines[1:]} == {"1"}
    visit.go(f"{VIEWS['senses']}&area=-9,-9,-8,-8")
    assert len(export(visit, "Map of usages", "CSV").splitlines()) == 1


def test_the_change_table_labels_its_bars_senses_and_p_values(visit: Visit):
    def change(response: dict[str, Any]) -> None:
        row = response["changes"][0]
        row |= {
            "shares": [[0.125, 0.125]] * 8,
            "neighbours": [["甲", "乙"]] * 8,
            "q": 0.04975,
            "percentile": 0.97,
        }
        response["complete"] = False

    visit.alter_response("/change", change)
    visit.go(CHANGE)
    row = visit.page.locator(".change tbody tr").first
    playwright.expect(row.locator("svg > text")).to_have_text(["one-index", "other-index"])
    playwright.expect(row.locator("svg title").first).to_have_text("Group 1: 甲 · 乙")
    playwright.expect(row.locator("td").nth(5)).to_have_text("< 0.05")
    playwright.expect(row.locator("td").nth(6)).to_have_text("97%")
    visit.expect_visible(".sense-legend", "Group 8")
    visit.expect_visible(
        "section[aria-labelledby=change-title]", "Time ran out before all words were compared."
    )
    drawing = ElementTree.fromstring(export(visit, "Change between two indexes", "SVG"))
    _, _, width, _ = map(float, drawing.get("viewBox", "").split())
    starts = {}
    for group in drawing.iter("{http://www.w3.org/2000/svg}g"):
        offset = re.match(r"translate\(([\d.]+) ", group.get("transform", ""))
        if offset and (group[-1].text or "").startswith("Group"):
            starts[group[-1].text] = float(offset[1])
    assert set(starts) == {f"Group {number}" for number in range(1, 9)}
    assert max(starts.values()) + 20 + 60 < width
