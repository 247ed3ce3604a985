"""The folder of an experiment: which of its files are ours, and whether its runs may be resumed.

    tasks.experiment  ->  tasks.run_folder  ->  OUT (plan.json, runs/, vectors/)

plan.json holds hashes of what is trained: settings, examples, sizes, the ELMo, static vectors. `force`
replaces our files in such a folder, and touches no other folder.
"""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

from polyseme.errors import FormatError, UsageError
from polyseme.io.atomic import check_output_folder, new_file, remove_killed_writes
from polyseme.io.checked import read_json

RUNS, PLAN, VECTORS, TASK = "runs", "plan.json", "vectors", "task.json"
REPORTS = ("report.md", "report.json", "layers.png", "confusion.png", "curve.png", "training.png")
FORMAT = 3  # of plan.json and runs/


def create_folder(folder: Path, plan: dict[str, str], *, force: bool) -> None:
    """Create the folder of an experiment; with `force`, an earlier experiment in it is removed.

    The model of the earlier experiment stays until the new one is written. The caller holds the lock of the
    folder, so a folder without a plan is that of an experiment that was killed before it began.
    """
    if folder.is_dir():
        remove_killed_writes(folder / PLAN)
    is_empty = folder.is_dir() and not any(folder.iterdir())
    check_output_folder(folder, force=force or is_empty)
    if folder.exists():
        _check_ours(folder)
        for name in (RUNS, VECTORS):
            shutil.rmtree(folder / name, ignore_errors=True)
        for name in REPORTS:
            (folder / name).unlink(missing_ok=True)
    with new_file(folder / PLAN, force=True) as new:
        new.write_text(json.dumps({"format": FORMAT, "plan": plan}, indent=1) + "\n", encoding="utf-8")


def check_resumable(folder: Path, plan: dict[str, str]) -> None:
    """Raise `UsageError` if the folder has no runs of this very experiment; what differs is named."""
    saved = _read_value(folder / PLAN, "plan")
    if saved is None:
        raise UsageError(f"{folder}: no run to resume. Leave out `resume`.")
    if _read_value(folder / PLAN, "format") != FORMAT or not isinstance(saved, dict):
        raise UsageError(
            f"{folder}: its runs were started by another version of Polyseme. Start again with `force=True`, "
            "or choose another `out`."
        )
    different = [name for name in plan.keys() | saved.keys() if plan.get(name) != saved.get(name)]
    if different:
        raise UsageError(
            f"{folder}: its runs have other {', other '.join(sorted(different))}. Resume with the same, or "
            "choose another `out`."
        )


def _check_ours(folder: Path) -> None:
    """Raise `UsageError` if the folder holds files that would be replaced and are not of an experiment."""
    plan = _read_value(folder / PLAN, "plan")
    if (isinstance(plan, dict) and "examples" in plan) or isinstance(plan, str):  # str: of earlier versions
        return
    is_task = _read_value(folder / TASK, "polyseme_task") is not None  # written by `save`: it has no runs
    names = [RUNS, VECTORS, *REPORTS] if is_task else None
    foreign = sorted(entry.name for entry in folder.iterdir() if names is None or entry.name in names)
    if foreign:
        raise UsageError(
            f"{folder}: {', '.join(foreign[:3])}{' …' if len(foreign) > 3 else ''} came from no training of "
            "Polyseme and would be replaced. Choose another name."
        )


def _read_value(path: Path, name: str) -> Any:
    """A value of a JSON file; None if there is no such file or value."""
    try:
        values = read_json(path)
    except FormatError:
        return None
    return values.get(name) if isinstance(values, dict) else None
