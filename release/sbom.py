"""Write the bill of materials of the package: what it contains of others, and what it needs.

    SHA256SUMS, model cards, vendor/README.md, installed metadata  ->  release/sbom.cdx.json  ->  the wheel

    python release/sbom.py

CycloneDX 1.6 in JSON, without times and serial numbers: the same project gives the same file. It names the
bundled models with their sources and licences, the scripts of the explorer, the table of characters, and the
licence of every required library as installed. Optional libraries are not in it.
"""

from __future__ import annotations

import hashlib
import json
import re
import tomllib
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parent.parent
BUNDLED = ROOT / "src" / "polyseme" / "bundled"
VENDOR = ROOT / "src" / "polyseme" / "server" / "explorer" / "vendor"
CHARACTERS = ROOT / "src" / "polyseme" / "text" / "traditional.txt"
OUT = ROOT / "release" / "sbom.cdx.json"
ROW = re.compile(r"^\| (.+) \|$", re.MULTILINE)
# Metadata of libraries that say "BSD License" or similar instead of an identifier of SPDX.
SPDX = {
    "Apache Software License": "Apache-2.0",
    "BSD License": "BSD-3-Clause",
    "3-Clause BSD License": "BSD-3-Clause",
    "MIT License": "MIT",
}
TRAINING_DATA = re.compile(r"^\*\*Training data\.\*\* (.+?)\n\n", re.MULTILINE | re.DOTALL)
Component = dict[str, Any]


def read_table(path: Path) -> list[dict[str, str]]:
    """The rows of all tables of a Markdown file that name a licence, by column."""
    rows: list[dict[str, str]] = []
    header: list[str] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        match = ROW.match(line)
        cells = [cell.strip() for cell in match[1].split(" | ")] if match else []
        if not cells:
            header = []
        elif not header:
            header = cells
        elif "licence" in header and not set(cells[0]) <= set("- "):
            rows.append(dict(zip(header, cells, strict=True)))
    return rows


def licence(identifier: str) -> list[dict[str, Any]]:
    """A licence as CycloneDX has it: an expression of SPDX."""
    return [{"expression": identifier}]


def describe_model(name: str) -> Component:
    """A bundled model: checksums of its files, and the sources and licences of its training text."""
    lines = (BUNDLED / "SHA256SUMS").read_text(encoding="utf-8").splitlines()
    files = [line.partition("  ") for line in lines]
    card = BUNDLED / name / "README.md"
    paragraph = TRAINING_DATA.search(card.read_text(encoding="utf-8"))
    if paragraph is None:
        raise ValueError(f"{card}: says nothing of its training data")
    rows = [f"{row['source']}: {row['licence']} ({row['from']})" for row in read_table(card)]
    # The classic models have no table: their sources, all in the public domain, are in the text.
    sources = [
        {"name": "polyseme:source", "value": value} for value in rows or [" ".join(paragraph[1].split())]
    ]
    return {
        "type": "machine-learning-model",
        "bom-ref": f"model:{name}",
        "name": name,
        "description": f"Bundled model; its card is polyseme/bundled/{name}/README.md",
        "licenses": licence("Apache-2.0"),
        "components": [
            {
                "type": "file",
                "bom-ref": f"model:{file}",
                "name": file,
                "hashes": [{"alg": "SHA-256", "content": sha256}],
            }
            for sha256, _, file in files
            if file.startswith(f"{name}/")
        ],
        "properties": [
            *sources,
            {"name": "polyseme:built-by", "value": "models/prepare.py, models/train.py"},
        ],
    }


def describe_script(row: dict[str, str]) -> Component:
    """A script of the explorer, from its row in vendor/README.md."""
    name, version = row["package"].split()
    identifier = {"Apache 2.0": "Apache-2.0"}.get(row["licence"].split(",")[0], row["licence"].split(",")[0])
    return {
        "type": "library",
        "bom-ref": f"vendored:{row['file']}",
        "name": name,
        "version": version,
        "description": f"{row['file in the package']} of {name}, as server/explorer/vendor/{row['file']}",
        "hashes": [{"alg": "SHA-256", "content": row["sha256"]}],
        "licenses": licence(identifier),
        "purl": f"pkg:npm/{name}@{version}",
    }


def describe_characters() -> Component:
    """The table of traditional characters."""
    return {
        "type": "data",
        "bom-ref": "data:traditional.txt",
        "name": "TSCharacters",
        "description": "From OpenCC, reduced: traditional and simplified characters, in text/traditional.txt",
        "hashes": [{"alg": "SHA-256", "content": hashlib.sha256(CHARACTERS.read_bytes()).hexdigest()}],
        "licenses": licence("Apache-2.0"),
        "externalReferences": [{"type": "vcs", "url": "https://github.com/BYVoid/OpenCC"}],
    }


def describe_requirement(requirement: str) -> Component:
    """A required library with its licence, as its installed metadata names it."""
    match = re.match(r"[\w.-]+", requirement)
    assert match is not None, requirement
    name = match[0]
    return {
        "type": "library",
        "bom-ref": f"pypi:{name.lower()}",
        "name": name,
        "description": f"Required, not contained: {requirement}",
        "scope": "required",
        "licenses": licence(read_licence(name)),
        "purl": f"pkg:pypi/{name.lower()}",
    }


def read_licence(package: str) -> str:
    """The licence of an installed package as an expression of SPDX."""
    values = metadata.metadata(package)
    if expression := values.get("License-Expression"):
        return expression  # of numpy and torch, that of all that is in their wheels
    classifiers = values.get_all("Classifier") or []
    names = [line.split(" :: ")[-1] for line in classifiers if line.startswith("License :: ")]
    name = values.get("License") or next(iter(names), "")
    if len(name) > 40 or not name:  # the whole text
        name = next(iter(names), name[:40])
    name = SPDX.get(name, name)
    if not re.fullmatch(r"[\w.-]+( OR [\w.-]+)*", name):
        raise ValueError(f"{package}: its licence is {name!r}, no identifier of SPDX: add it to SPDX")
    return name


def build_sbom() -> str:
    """The bill of materials as JSON."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    requirements = {re.split(r"[<>=; ]", line)[0]: line for line in project["dependencies"]}
    models = sorted(path.name for path in BUNDLED.iterdir() if path.is_dir())
    needed = [describe_requirement(line.split(";")[0].strip()) for _, line in sorted(requirements.items())]
    contained = [
        *map(describe_model, models),
        *map(describe_script, read_table(VENDOR / "README.md")),
        describe_characters(),
    ]
    document = {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "library",
                "bom-ref": "polyseme",
                "name": "polyseme",
                "version": project["version"],
                "licenses": licence(project["license"]),
                "purl": f"pkg:pypi/polyseme@{project['version']}",
            }
        },
        "components": [*contained, *needed],
        "dependencies": [{"ref": "polyseme", "dependsOn": [part["bom-ref"] for part in needed]}],
    }
    return json.dumps(document, indent=1, ensure_ascii=False) + "\n"


if __name__ == "__main__":
    OUT.write_text(build_sbom(), encoding="utf-8")
    print(OUT.relative_to(ROOT))
