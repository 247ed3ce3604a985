"""The nearest of millions of usages, approximately: a graph of usearch, memory-mapped (extra `search`).

    search.index  ->  search.approximate (INDEX/graph.usearch)  ->  search.index

The graph holds the vectors of the corrected space in float16 or int8. What it finds is sorted again by the
index's own vectors, so that cosines are exact; now and then one is missed.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from polyseme.choices import GraphDtype
from polyseme.errors import FormatError, UsageError, require
from polyseme.io.atomic import new_file
from polyseme.io.progress import OnProgress, ProgressEvent, ignore_progress

if TYPE_CHECKING:
    from polyseme.search.index import Index

FILE = "graph.usearch"
KINDS = {"float16": "f16", "int8": "i8"}
ROWS = 10_000  # vectors that are added at a time
NEIGHBOURS, ADDING, SEARCHING = 16, 128, 64  # edges of a node; how widely is looked around
MORE = 2  # times as many as asked for are looked at again


def check_graph(dtype: str) -> None:
    """Refuse a graph that cannot be built, before any work."""
    if dtype not in KINDS:
        raise UsageError(f"graph is {dtype!r}, expected one of {', '.join(KINDS)}.")
    require("usearch.index", "search", "Approximate search")


def build_graph(
    index: Index,
    dtype: GraphDtype = "float16",
    on_progress: OnProgress = ignore_progress,
) -> dict[str, Any]:
    """Build the graph of a finished index; return what index.json notes about it."""
    check_graph(dtype)
    graph = _new(index.head["size"], dtype)
    for start in range(0, len(index), ROWS):
        numbers = np.arange(start, min(start + ROWS, len(index)))
        alone = 1 if start == 0 else 0  # threads: several that begin a graph lose nodes of each other
        graph.add(numbers, index.vectors(numbers), threads=alone)
        on_progress(ProgressEvent("building the graph", start + len(numbers), len(index)))
    with new_file(index.folder / FILE, force=True) as new:
        graph.save(str(new))
        size = new.stat().st_size
    return {"dtype": dtype, "usages": len(index), "bytes": size}


def open_graph(folder: Path, noted: dict[str, Any], size: int) -> Any:
    """The graph of an index, memory-mapped; one that is cut off is refused."""
    path = folder / FILE
    if not path.exists() or path.stat().st_size != noted.get("bytes") or noted.get("dtype") not in KINDS:
        raise FormatError(
            f"{path}: missing or damaged. Build it again: the same polyseme index command with --graph "
            "float16."
        )
    graph = _new(size, noted["dtype"])
    graph.view(str(path))
    return graph


def find(graph: Any, query: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """Numbers of usages that are probably among the nearest, more than `k` of them."""
    found = graph.search(query, MORE * k)
    return np.asarray(found.keys, np.int64)


def _new(size: int, dtype: str) -> Any:
    usearch = require("usearch.index", "search", "Approximate search")
    return usearch.Index(
        ndim=size,
        metric="cos",
        dtype=KINDS[dtype],
        connectivity=NEIGHBOURS,
        expansion_add=ADDING,
        expansion_search=SEARCHING,
    )
