"""The time of each phase of a training step, for benchmarks/pretrain.py --profile.

    training.loop  ->  torch.profiler  ->  milliseconds per phase

Everything in a step runs in the calling thread, or it waits for it, so that the phases add up to the step.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from polyseme.training.loop import Loop

Milliseconds = dict[str, float]
REST = "other torch functions"
PYTHON = "Python between them"
PHASES = {  # parts of the names of events, the first that fits counts
    "batch and sampled words": ("polyseme: batch",),
    "clip and optimiser": ("polyseme: step",),
    "LSTMs, backward": ("_NativePairBackward", "_PairedLstmBackward"),
    "LSTMs, forward": ("_NativePair", "_PairedLstm"),
    "softmax and loss": ("_SoftmaxLoss",),
    "filters": ("_NativeWindows", "_MaxOverWindows"),
    "highways and projection": ("_NativeLinears", "Addmm", "aten::linear", "aten::addmm"),
    "tables": ("_TakenRows", "Embedding", "aten::embedding"),
    "dropout masks": ("aten::random_", "aten::ge"),
    "sums of gradients": ("AccumulateGrad",),
    REST: ("",),
}


def measure_phases(loop: Loop, steps: int) -> Milliseconds:
    """Milliseconds of each phase of a step, the mean of `steps` steps."""
    from torch.profiler import ProfilerActivity, profile

    with profile(activities=[ProfilerActivity.CPU]) as profiled:
        started = time.perf_counter()
        for _ in range(steps):
            loop.step()
        whole = time.perf_counter() - started
    events = [event for event in profiled.events() if event.cpu_parent is None]
    mine = next(event.thread for event in events if "_SoftmaxLoss" in event.name or "polyseme" in event.name)
    phases = dict.fromkeys([*PHASES, PYTHON], 0.0)
    for event in events:
        if event.thread == mine:
            phases[find_phase(event.name)] += event.cpu_time_total / 1e3 / steps
    phases[PYTHON] = whole * 1e3 / steps - sum(phases.values())
    return phases


def find_phase(event: str) -> str:
    """The phase of an event of torch's profiler."""
    return next(phase for phase, names in PHASES.items() if any(name in event for name in names))


def format_phases(one: Milliseconds, all_cores: Milliseconds) -> list[str]:
    """A table of the phases on one core and on all."""
    lines = ["| phase | one core | all cores | one : all |", "|---|---|---|---|"]
    rows = [*((phase, one[phase], all_cores[phase]) for phase in one)]
    rows.append(("a step", sum(one.values()), sum(all_cores.values())))
    lines += [f"| {phase} | {a:.1f} ms | {b:.1f} ms | {a / max(b, 1e-6):.2f} |" for phase, a, b in rows]
    return lines
