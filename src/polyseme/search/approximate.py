"""Approximate search: a usearch graph of all usages, memory-mapped (extra `search`).

    search.index  ->  search.approximate (INDEX/graph.usearch)  ->  search.index

The graph holds the vectors of the corrected space in float16 or int8. What it returns is sorted again by the
index's vectors, so that cosines are exact; now and then a usage is missed.
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

GRAPH_FILE = "graph.usearch"
USEARCH_DTYPES: dict[str, str] = {"float16": "f16", "int8": "i8"}
ROWS = 10_000  # vectors added at a time
CONNECTIVITY, EXPANSION_ADD, EXPANSION_SEARCH = 16, 128, 64  # usearch's parameters of a graph
OVERSAMPLING = 2  # candidates per usage asked for, which are then sorted by their exact cosines


def check_graph(dtype: str) -> None:
    """Refuse a graph that cannot be built, before any work."""
    if dtype not in USEARCH_DTYPES:
        raise UsageError(f"graph is {dtype!r}, expected one of {', '.join(USEARCH_DTYPES)}.")
    require("usearch.index", "search", "Approximate search")


def build_graph(
    index: Index, dtype: GraphDtype = "float16", on_progress: OnProgress = ignore_progress
) -> dict[str, Any]:
    """Build the graph of a finished index; return what index.json notes about it."""
    check_graph(dtype)
    graph = _make_graph(index.head["size"], dtype)
    for start in range(0, len(index), ROWS):
        numbers = np.arange(start, min(start + ROWS, len(index)))
        threads = 1 if start == 0 else 0  # several threads that start a graph lose each other's nodes
        graph.add(numbers, index.vectors(numbers), threads=threads)
        on_progress(ProgressEvent("building the graph", start + len(numbers), len(index)))
    with new_file(index.folder / GRAPH_FILE, force=True) as new:
        graph.save(str(new))
        size = new.stat().st_size
    return {"dtype": dtype, "usages": len(index), "bytes": size}


def open_graph(folder: Path, entry: dict[str, Any], size: int) -> Any:
    """Open the graph of an index, memory-mapped; `entry` is what index.json notes about it.

    Raises:
        FormatError: The file is missing or truncated.

    """
    path = folder / GRAPH_FILE
    is_whole = path.exists() and path.stat().st_size == entry.get("bytes")
    if not is_whole or entry.get("dtype") not in USEARCH_DTYPES:
        raise FormatError(
            f"{path}: missing or damaged. Build it again: call `polyseme.index(model, texts, out, "
            "graph='float16')` with the same arguments as before."
        )
    graph = _make_graph(size, entry["dtype"])
    graph.view(str(path))
    return graph


def find_candidates(graph: Any, query: NDArray[np.float32], k: int) -> NDArray[np.int64]:
    """Return the numbers of usages that are probably among the nearest: more than `k`."""
    return np.asarray(graph.search(query, OVERSAMPLING * k).keys, np.int64)


def _make_graph(size: int, dtype: str) -> Any:
    usearch = require("usearch.index", "search", "Approximate search")
    return usearch.Index(
        ndim=size,
        metric="cos",
        dtype=USEARCH_DTYPES[dtype],
        connectivity=CONNECTIVITY,
        expansion_add=EXPANSION_ADD,
        expansion_search=EXPANSION_SEARCH,
    )
