"""The verb doctor: check this installation, and describe it for a bug report.

    this machine, formats.models, elmo  ->  api.installation  ->  api

A check that raises is reported as failed with its error, so that a broken installation is described, too.
"""

from __future__ import annotations

import copy
import os
import platform
import re
import tempfile
from collections.abc import Callable
from dataclasses import asdict, dataclass
from importlib import metadata
from pathlib import Path
from typing import Any, Literal

from polyseme.elmo import Elmo, load
from polyseme.errors import PolysemeError
from polyseme.formats.models.bundled import FOLDER, REINSTALL, list_bundled, verify_bundled
from polyseme.io.html import render_table
from polyseme.io.progress import ProgressEvent, ProgressOption, open_progress
from polyseme.text.samples import find_cache

MAX_ERROR = 1e-5  # of fp32 layers against float64; usually below 1e-6
SENTENCES = ("He sat on the river bank and watched the boats .", "The bank failed .")

CheckState = Literal["ok", "missing", "failed"]


@dataclass(frozen=True)
class InstallationCheck:
    """One line of the report.

    Attributes:
        topic: What was checked: "Python", "C library", "extra serve".
        state: "ok"; "missing" is optional; "failed" needs a repair.
        detail: What was found, and how to repair or install it.

    """

    topic: str
    state: CheckState
    detail: str


@dataclass(frozen=True, repr=False)
class DoctorReport:
    """All checks of an installation.

    Attributes:
        checks: One per topic.

    """

    checks: list[InstallationCheck]

    @property
    def healthy(self) -> bool:
        """Whether nothing failed; missing extras are no fault."""
        return all(check.state != "failed" for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {"healthy": self.healthy, "checks": [asdict(check) for check in self.checks]}

    def __str__(self) -> str:
        width = max(len(check.topic) for check in self.checks)
        return "\n".join(f"{check.topic:<{width}}  {check.state:<7}  {check.detail}" for check in self.checks)

    def __repr__(self) -> str:
        return str(self)

    def _repr_html_(self) -> str:
        rows = [[check.topic, check.state, check.detail] for check in self.checks]
        return render_table(["topic", "state", "detail"], rows)


def doctor(*, progress: ProgressOption = None) -> DoctorReport:
    """Check this installation, and describe it for a bug report.

    It names versions, the processor, what computes models here and why, and the extras that are installed;
    verifies the bundled models by their checksums; and compares vectors of `en` with those in float64, and
    those of a sentence alone with those in a batch.

    Args:
        progress: None shows a bar on a terminal or in a notebook, True always, False never; a function
            receives every `ProgressEvent`.

    Returns:
        One check per topic; `healthy` is False if one of them failed.

    Example:
        >>> polyseme.doctor().healthy
        True

    """
    steps: list[tuple[str, Callable[[], InstallationCheck | list[InstallationCheck]]]] = [
        ("Polyseme", _describe_package),
        ("Python", _describe_python),
        ("processor", _describe_processor),
        ("torch", _describe_torch),
        ("C library", _check_library),
        ("extras", _check_extras),
        ("cache folder", _check_cache),
        ("bundled models", _check_bundled),
        ("exactness", _check_exactness),
        ("batches", _check_batches),
    ]
    checks: list[InstallationCheck] = []
    with open_progress(progress) as on_progress:
        for done, (topic, step) in enumerate(steps):
            on_progress(ProgressEvent("checking", done, len(steps), topic))
            checks += _run_step(topic, step)
    return DoctorReport(checks)


def _run_step(
    topic: str, step: Callable[[], InstallationCheck | list[InstallationCheck]]
) -> list[InstallationCheck]:
    try:
        result = step()
    except PolysemeError as problem:
        return [InstallationCheck(topic, "failed", str(problem))]
    except Exception as problem:  # a broken library may raise anything, and the report is about that
        return [InstallationCheck(topic, "failed", f"{type(problem).__name__}: {problem}")]
    return [result] if isinstance(result, InstallationCheck) else result


def _describe_package() -> InstallationCheck:
    return InstallationCheck("Polyseme", "ok", f"{metadata.version('polyseme')}, in {FOLDER.parent}")


def _describe_python() -> InstallationCheck:
    return InstallationCheck("Python", "ok", f"{platform.python_version()}, {platform.platform()}")


def _describe_processor() -> InstallationCheck:
    name = platform.processor() or platform.machine()
    try:
        lines = Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines()
    except OSError:
        lines = []  # not Linux: platform's name must do
    name = next((line.partition(":")[2].strip() for line in lines if line.startswith("model name")), name)
    usable = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    return InstallationCheck("processor", "ok", f"{name}; {usable} of {os.cpu_count()} cores usable")


def _describe_torch() -> InstallationCheck:
    import torch

    mps = torch.backends.mps.is_available()
    devices = ["CPU", *(["CUDA"] if torch.cuda.is_available() else []), *(["MPS"] if mps else [])]
    return InstallationCheck(
        "torch",
        "ok",
        f"{torch.__version__}, {torch.get_num_threads()} threads; devices: {', '.join(devices)}",
    )


def _check_library() -> InstallationCheck:
    """What computes the recurrent layers on this machine, and why."""
    from polyseme.model.fast.kernels import native

    reason = native.unavailable_reason()
    if reason is None:
        return InstallationCheck("C library", "ok", f"in use, with {native.active_instruction_set()}")
    return InstallationCheck("C library", "missing", f"torch computes instead, slower: {reason}")


def _check_extras() -> list[InstallationCheck]:
    """Which packages of each extra are installed, by the metadata of the installed package."""
    packages: dict[str, list[str]] = {}
    for requirement in metadata.requires("polyseme") or ():
        package, extra = re.match(r"[\w.-]+", requirement), re.search(r"extra == ['\"]([\w-]+)", requirement)
        if package and extra and extra[1] not in ("all", "dev", "docs") and package[0] != "polyseme":
            packages.setdefault(extra[1], []).append(package[0])
    checks = []
    for extra_name, names in sorted(packages.items()):
        versions = {name: _find_version(name) for name in names}
        installed = ", ".join(f"{name} {version}" for name, version in versions.items() if version)
        missing = ", ".join(name for name, version in versions.items() if not version)
        detail = (
            installed if not missing else f'{missing} not installed: pip install "polyseme[{extra_name}]"'
        )
        checks.append(InstallationCheck(f"extra {extra_name}", "missing" if missing else "ok", detail))
    return checks


def _find_version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _check_cache() -> InstallationCheck:
    """Where downloads of samples are kept, and whether it can be written."""
    folder = find_cache()
    parent = next(path for path in (folder, *folder.parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=parent):
            pass
    except OSError as problem:
        detail = f"{folder}: cannot be written ({problem.strerror}). Set POLYSEME_CACHE to another folder."
        return InstallationCheck("cache folder", "failed", detail)
    size = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) if folder.exists() else 0
    return InstallationCheck("cache folder", "ok", f"{folder}, {size / 1e6:.1f} MB")


def _check_bundled() -> InstallationCheck:
    names = list_bundled()
    if not names:
        return InstallationCheck("bundled models", "failed", f"none. Reinstall Polyseme: {REINSTALL}")
    for name in names:
        verify_bundled(name)
    return InstallationCheck("bundled models", "ok", f"{', '.join(names)}; checksums agree")


def _check_exactness() -> InstallationCheck:
    """Compare the layers of `en` with those of the same network in float64."""
    error = measure_error(load("en", precision="fp32"))
    state: CheckState = "ok" if error <= MAX_ERROR else "failed"
    detail = f"largest difference from float64: {error:.1e} (limit {MAX_ERROR:.0e})"
    return InstallationCheck("exactness", state, detail)


def measure_error(elmo: Elmo) -> float:
    """The largest difference between the layers of a model and those of the same network in float64.

    Args:
        elmo: A model in fp32.

    Returns:
        The largest difference of any value, for two sentences.

    """
    import torch

    from polyseme.token_cache import number_tokens

    sentences = [sentence.split() for sentence in SENTENCES]
    with torch.inference_mode():
        layers, _ = elmo.compute_layers(sentences)  # (L, B, T, H)
        batch = number_tokens(sentences)
        exact = copy.deepcopy(elmo.model.network).double()
        vectors = exact.tokens(*elmo.model.token_ids(batch.tokens))
        expected = exact.run_stacks(vectors, batch.positions, batch.lengths).layers()
        return float((layers.double() - expected).abs().max())


def _check_batches() -> InstallationCheck:
    """A sentence has the same vectors alone and in a batch."""
    elmo = load("en")
    together, alone = elmo.embed(SENTENCES), [elmo.embed(sentence) for sentence in SENTENCES]
    error = max(float(abs(a - b).max()) for a, b in zip(together, alone, strict=True))
    state: CheckState = "ok" if error <= MAX_ERROR else "failed"
    detail = (
        f"largest difference between a sentence alone and in a batch: {error:.0e} (limit {MAX_ERROR:.0e})"
    )
    return InstallationCheck("batches", state, detail)
