"""The ablations of the ELMo paper (Peters et al. 2018) on the labelled sets of tasks.py, in one command.

    tasks.py (cells), labelled_sets  ->  tables in Markdown, paper.png

For each set: the network without ELMo; with the top layer only; with all layers and lambda 1 or 0.001 (the
paper's table 2); ELMo at the input, the output, both (table 3); without the scale gamma, and without training
the mix at all; less training data, with and without ELMo (figure 1); the learned weights of the layers
(figure 2, paper.png). Our gains stand beside the published ones (table 1), with what differs. Cells are those
of tasks.py, in WORK or in tasks.json: none is computed twice, and an interrupted training is resumed.

    python benchmarks/paper.py DATA WORK [--tasks conll2003 …] [--seeds 1] [--minutes M]
    python benchmarks/paper.py DATA WORK --table
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import mean
from typing import Any, NamedTuple

from labelled_sets import SETS
from tasks import compute, known, spread

PICTURE = Path(__file__).with_suffix(".png")
Cell = tuple[str, tuple[str, ...]]  # a variant and its settings


class Published(NamedTuple):
    """A row of the paper's table 1: its set, the score without and with ELMo, and what differs here."""

    name: str
    without: float
    with_elmo: float
    difference: str


PAPER = {
    "squad": Published("SQuAD", 81.1, 85.8, "3,900 questions instead of 88,000; XQuAD's 1,190 to test"),
    "sick": Published("SNLI", 88.0, 88.7, "SICK: 4,500 pairs instead of 550,000; no ESIM"),
    "propbank": Published("SRL", 81.4, 84.6, "web text with PropBank's new frames instead of OntoNotes"),
    "litbank": Published("Coref", 67.2, 70.4, "80 excerpts of novels, with singletons, instead of OntoNotes"),
    "conll2003": Published("NER", 90.15, 92.22, "the same set; words of size 100 without GloVe"),
    "sst5": Published("SST-5", 51.4, 54.7, "the same set, sentences only; no BCN, no GloVe"),
}
VECTORS = "all: ELMo of 384 values from 34 million tokens instead of 1,024 from 800 million; no GloVe"
BASELINE, ELMO = ("baseline", ()), ("elmo", ())
ABLATIONS: dict[str, dict[str, Cell]] = {
    "Layers (table 2)": {
        "without ELMo": BASELINE,
        "top layer": ("elmo", ('input.layers="top"',)),
        "all, lambda 1": ("elmo", ("input.mix_l2=1",)),
        "all, lambda 0.001": ELMO,
    },
    "Where ELMo enters (table 3)": {
        "input": ELMO,
        "output": ("elmo", ('input.elmo="output"',)),
        "both": ("elmo", ('input.elmo="both"',)),
    },
    "What is trained of the mix": {
        "weights and gamma": ELMO,
        "weights": ("elmo", ('input.tune="weights"',)),
        "nothing": ("elmo", ('input.tune="frozen"',)),
    },
}
SHARES = ("1%", "10%", "30%")
SHARED = ("propbank", "sick", "conll2003", "sst5")  # sets whose examples can be drawn


def main() -> None:
    """Parse the command line, compute what is missing, print the tables, draw the weights."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("data", type=Path)
    parser.add_argument("work", type=Path)
    parser.add_argument("--tasks", nargs="+", choices=PAPER, default=list(PAPER))
    parser.add_argument("--seeds", type=int, default=1)
    parser.add_argument("--minutes", type=float, help="start no cell after this many minutes")
    parser.add_argument("--table", action="store_true", help="only print the cells that are there")
    arguments = parser.parse_args()
    arguments.work.mkdir(parents=True, exist_ok=True)
    start = time.monotonic()
    for seed in range(1, 1 + (0 if arguments.table else arguments.seeds)):
        for name, (variant, settings) in list_cells(arguments.tasks):
            if arguments.minutes is not None and time.monotonic() - start > 60 * arguments.minutes:
                break
            of_cell = argparse.Namespace(**{**vars(arguments), "also": list(settings), "glove": None})
            compute(SETS[name], variant, seed, of_cell)
    cells = known(arguments.work)
    print("\n\n".join(make_tables(cells)))
    draw_weights(cells, PICTURE)


def list_cells(names: list[str]) -> Iterator[tuple[str, Cell]]:
    """Yield the sets and cells to compute, each once."""
    wanted = dict.fromkeys(cell for columns in ABLATIONS.values() for cell in columns.values())
    for name in names:
        for cell in wanted:
            yield name, cell
        for share in SHARES if name in SHARED else ():
            for variant in ("baseline", "elmo"):
                yield name, (f"{variant} {share}", ())


def scores_of(cells: dict[str, dict[str, Any]], name: str, cell: Cell) -> list[float]:
    """The main metric on test of all seeds of a cell."""
    variant, settings = cell
    stem = f"{name}.{variant.replace(' ', '-')}{''.join(f'+{setting}' for setting in settings)}"
    found = [values for key, values in cells.items() if key.rpartition(".")[0] == stem]
    return [values["test"][values["main"]] for values in found]


def make_tables(cells: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Yield the tables: our gains beside the published ones, each ablation, the shares of the examples."""
    rows = [["set", "paper", "published without", "with", "ours without", "with", "differs"]]
    for name, paper in PAPER.items():
        ours = [spread(scores_of(cells, name, cell)) for cell in (BASELINE, ELMO)]
        rows.append([name, paper.name, str(paper.without), str(paper.with_elmo), *ours, paper.difference])
    yield f"Gains (table 1); {VECTORS}\n\n{format_rows(rows)}"
    for title, columns in ABLATIONS.items():
        rows = [["set", *columns]]
        rows += [
            [name, *(spread(scores_of(cells, name, cell)) for cell in columns.values())] for name in PAPER
        ]
        yield f"{title}\n\n{format_rows(rows)}"
    variants = [f"{variant} {share}" for share in SHARES for variant in ("baseline", "elmo")]
    rows = [["set", *variants]]
    rows += [[name, *(spread(scores_of(cells, name, (v, ()))) for v in variants)] for name in SHARED]
    yield f"Less training data (figure 1)\n\n{format_rows(rows)}"


def format_rows(rows: list[list[str]]) -> str:
    """A table in Markdown; rows whose cells are all empty are left out."""
    head, *rest = rows
    kept = [row for row in rest if any(row[1:])]
    lines = [head, ["---"] * len(head), *kept]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def draw_weights(cells: dict[str, dict[str, Any]], path: Path) -> None:
    """Draw the learned weight of each layer, a row for each set and each place where ELMo enters."""
    rows: dict[str, list[float]] = {}
    for name in PAPER:
        for place, cell in ABLATIONS["Where ELMo enters (table 3)"].items():
            variant, settings = cell
            stem = f"{name}.{variant}{''.join(f'+{setting}' for setting in settings)}"
            runs = [values["shares"] for key, values in cells.items() if key.rpartition(".")[0] == stem]
            if runs and place != "both":
                rows[f"{name}, {place}"] = [
                    mean(layer) for layer in zip(*(run[0] for run in runs), strict=True)
                ]
    if not rows:
        return
    from matplotlib.figure import Figure

    figure = Figure(figsize=(5, 1 + 0.35 * len(rows)), layout="constrained")
    axes = figure.add_subplot()
    picture = axes.imshow(list(rows.values()), cmap="Greys", vmin=0, vmax=1, aspect="auto")
    axes.set(
        yticks=range(len(rows)), yticklabels=list(rows), xlabel="layer", title="learned weights of layers"
    )
    axes.set_xticks(range(len(next(iter(rows.values())))))
    figure.colorbar(picture)
    figure.savefig(path, dpi=110)
    print(f"{path}: {len(rows)} rows")


if __name__ == "__main__":
    main()
