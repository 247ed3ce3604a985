"""The folder of a training: what in it is ours, and whether a run in it may go on.

    tasks.experiment  ->  tasks.run_folder  ->  OUT (plan.json, runs/, vectors/)

plan.json says what is trained: settings, examples, sizes, the ELMo, static vectors, each as a hash. A forced
training replaces what such a folder has of ours, and touches no other folder.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from polyseme.errors import UsageError
from polyseme.io.atomic import check_place
from polyseme.tasks.examples import Example

RUNS, PLAN, VECTORS, TASK = "runs", "plan.json", "vectors", "task.json"
REPORTS = ("report.md", "report.json", "layers.png", "confusion.png", "curve.png")


def begin(folder: Path, plan: dict[str, str], *, force: bool) -> None:
    """Make the folder for a plan; with `force` in place of another training, which goes away.

    The model of the earlier training stays until the new one is written.
    """
    check_place(folder, force=force)
    if folder.exists():
        _check_ours(folder)
        for name in (RUNS, VECTORS):
            shutil.rmtree(folder / name, ignore_errors=True)
        for name in REPORTS:
            (folder / name).unlink(missing_ok=True)
    folder.mkdir(parents=True, exist_ok=True)
    (folder / PLAN).write_text(json.dumps({"plan": plan}, indent=1) + "\n", encoding="utf-8")


def go_on(folder: Path, plan: dict[str, str]) -> None:
    """Refuse a folder whose runs were begun with another plan, and say what is other."""
    before = _value(folder / PLAN, "plan")
    if before is None:
        raise UsageError(f"{folder}: no run to go on with. Leave out --resume.")
    if not isinstance(before, dict):
        raise UsageError(
            f"{folder}: its runs were begun by an earlier version of Polyseme. Begin anew with --force, or "
            "choose another --out."
        )
    known = before
    other = [name for name in plan.keys() | known.keys() if plan.get(name) != known.get(name)]
    if other:
        raise UsageError(
            f"{folder}: its runs have other {', other '.join(sorted(other))}. Go on with the same, or choose "
            "another --out."
        )


def _check_ours(folder: Path) -> None:
    """Refuse to replace what no training of Polyseme wrote."""
    plan = _value(folder / PLAN, "plan")
    if (isinstance(plan, dict) and "examples" in plan) or isinstance(plan, str):  # str: of earlier versions
        return
    task = _value(folder / TASK, "polyseme_task") is not None  # by `save`: it has no runs
    names = [RUNS, VECTORS, *REPORTS] if task else None
    others = sorted(entry.name for entry in folder.iterdir() if names is None or entry.name in names)
    if others:
        raise UsageError(
            f"{folder}: {', '.join(others[:3])}{' …' if len(others) > 3 else ''} came from no training of "
            "Polyseme and would be replaced. Choose another name."
        )


def _value(path: Path, name: str) -> Any:
    """A value of a JSON file; None where there is no such file, or no such value."""
    try:
        found = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return found.get(name) if isinstance(found, dict) else None


def hash_examples(parts: Iterable[Iterable[Example]]) -> str:
    """A hash of all texts with what is right, of each file."""
    found = hashlib.blake2b(digest_size=16)
    for examples in parts:
        found.update(b"file")
        for example in examples:
            found.update(repr((example.sentences, example.gold, example.marks)).encode())
    return found.hexdigest()
