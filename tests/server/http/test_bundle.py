"""The explorer's modules as one script."""

from __future__ import annotations

import json
import shutil
import subprocess

import pytest

from polyseme.server.http.bundle import bundle_modules
from polyseme.server.http.explorer_files import ExplorerFiles
from polyseme.server.http.pages import EXPLORER

MODULES = {
    "app.js": (
        "// The first module.\n"
        'import { add as sum, LINES } from "/explorer/numbers.js";\n'
        "import {\n"
        "  Word,\n"
        '} from "/explorer/parts/word.js";\n'
        'import * as numbers from "/explorer/numbers.js";\n'
        'import shout from "small";\n'
        "\n"
        'const text = "import this from there";\n'
        'console.log(JSON.stringify([sum(LINES, 1), numbers.LINES, new Word("a").text, shout("b"), text]));\n'
    ),
    "numbers.js": "export const LINES = 20;\nexport function add(a, b) {\n  return a + b;\n}\n",
    "parts/word.js": (
        'import { add } from "/explorer/numbers.js";\n'
        "export class Word {\n  constructor(text) {\n    this.text = add(text, text);\n  }\n}\n"
    ),
    "vendor/small.js": 'import{l as n}from"letters";var t=function(t){return t+n};export default t;',
    "vendor/letters.js": 'var a="!";export{a as l};\n//# sourceMappingURL=letters.map\n',
}
PACKAGES = {"small": "/explorer/vendor/small.js", "letters": "/explorer/vendor/letters.js"}
LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/"


@pytest.mark.skipif(shutil.which("node") is None, reason="needs node")
def test_a_bundle_does_what_its_modules_do() -> None:
    script = bundle_modules("app.js", MODULES, PACKAGES).script
    done = subprocess.run(
        ["node", "--input-type=module"], input=script, capture_output=True, text=True, check=True
    )
    assert json.loads(done.stdout) == [21, 20, "aa", "b!", "import this from there"]


def test_the_source_map_leads_from_each_line_to_its_file() -> None:
    bundle = bundle_modules("app.js", MODULES, PACKAGES)
    source_map = json.loads(bundle.source_map)
    names = [name.removeprefix("/explorer/") for name in source_map["sources"]]
    source = line = 0
    read = dict[str, list[int]]()
    for text, mapping in zip(bundle.script.splitlines(), source_map["mappings"].split(";"), strict=True):
        _, source_step, line_step, _ = decode(mapping)
        source, line = source + source_step, line + line_step
        read.setdefault(names[source], []).append(line)
        lines = MODULES[names[source]].splitlines()
        if text.startswith(("  ", "const text", "console")):  # unchanged lines
            assert text == lines[line]
    assert sorted(read) == sorted(MODULES)
    assert all(set(range(len(MODULES[name].splitlines()))) <= {*lines} for name, lines in read.items())


def decode(mapping: str) -> list[int]:
    """The numbers of an entry of a source map."""
    numbers, value, shift = [], 0, 0
    for letter in mapping:
        digit = LETTERS.index(letter)
        value |= (digit & 31) << shift
        shift += 5
        if digit < 32:
            numbers.append(-(value >> 1) if value & 1 else value >> 1)
            value = shift = 0
    return numbers


@pytest.mark.parametrize(
    ("changed", "message"),
    [
        ({"numbers.js": 'import { Word } from "/explorer/parts/word.js";\n'}, "parts/word.js -> numbers.js"),
        ({"numbers.js": 'import { a } from "/explorer/none.js";\n'}, "numbers.js imports none.js"),
        ({"numbers.js": "export let count = 0;\n"}, "numbers.js: "),
        ({"numbers.js": 'const a = 1;\nimport { b } from "/explorer/b.js";\n'}, "numbers.js: "),
    ],
)
def test_modules_that_cannot_be_joined_are_refused(changed: dict[str, str], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        bundle_modules("app.js", MODULES | changed, PACKAGES)


def test_all_modules_of_the_explorer_are_in_its_script() -> None:
    page = (EXPLORER / "index.html").read_text(encoding="utf-8")
    files = {path.relative_to(EXPLORER).as_posix() for path in EXPLORER.rglob("*.js")}
    joined = json.loads(ExplorerFiles(EXPLORER).files["bundle.js.map"].content)["sources"]
    assert {f"/explorer/{name}" for name in files} - {*joined} == {"/explorer/vendor/d3.min.js"}
    assert "d3.min.js" in page
