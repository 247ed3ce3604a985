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
from polyseme.io.checked import refuse_damaged
from polyseme.io.progress import OnProgress, ProgressEvent, ignore_progress

if TYPE_CHECKING:
    from polyseme.search.index import Index

GRAPH_FILE = "graph.usearch"
USEARCH_DTYPES: dict[str, str] = {"float16": "f16", "int8": "i8"}
VALUE_BYTES = {"float16": 2, "int8": 1}
AGAIN = (
    "Build it again: call `polyseme.index(model, texts, out, graph='float16')` with the same arguments as "
    "before."
)
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


def open_graph(folder: Path, entry: dict[str, Any], size: int, usages: int) -> Any:
    """Open the graph of an index, memory-mapped; `entry` is what index.json notes about it.

    Raises:
        FormatError: The file is missing, truncated or damaged.

    """
    path = folder / GRAPH_FILE
    is_whole = path.exists() and path.stat().st_size == entry.get("bytes")
    if not is_whole or entry.get("dtype") not in USEARCH_DTYPES:
        raise FormatError(f"{path}: missing or damaged. {AGAIN}")
    graph = _make_graph(size, entry["dtype"])
    _check_links(path, size * VALUE_BYTES[entry["dtype"]], usages)
    with refuse_damaged(path, "the graph of this index", AGAIN):
        graph.view(str(path))
    return graph


def _check_links(path: Path, vector_bytes: int, usages: int) -> None:
    """Refuse a graph with a link out of its bounds: usearch follows every link as it is.

    A file is: rows and bytes of a row (uint32), the vectors; 64 bytes about them; five uint64, of which the
    first is the number of nodes, then the links of a node on a layer and on the lowest layer, the highest
    layer, and the node to begin with; the highest layer of each node (int16); the nodes. A node is its key
    (uint64), its highest layer (int16) and for each layer the number of links and space for all (uint32).
    """
    data = np.memmap(path, np.uint8, "r")
    with refuse_damaged(path, "the graph of this index", AGAIN):
        rows, row_bytes = (int(number) for number in data[:8].view("<u4"))
        _require((rows, row_bytes) == (usages, vector_bytes), "vectors")
        about = 8 + rows * row_bytes
        _require(data[about : about + 7].tobytes() == b"usearch", "header")
        first = about + 64
        size, links, lowest, highest, entry = (int(n) for n in data[first : first + 40].copy().view("<u8"))
        _require((size, links, lowest) == (usages, CONNECTIVITY, 2 * CONNECTIVITY), "header")
        layers = data[first + 40 : first + 40 + 2 * size].copy().view("<i2").astype(np.int64)
        _require(len(layers) == usages and layers.min() >= 0 and entry < size, "layers")
        _require(int(layers.max()) == highest == int(layers[entry]), "layers")
        lowest_bytes, layer_bytes = 4 + 4 * lowest, 4 + 4 * links
        ends = np.cumsum(10 + lowest_bytes + layers * layer_bytes)
        starts = first + 40 + 2 * size + np.concatenate([[0], ends[:-1]])
        _require(int(starts[0] + ends[-1]) == len(data), "length")
        for begin in range(0, size, ROWS):
            chosen = slice(begin, begin + ROWS)
            heads = data[starts[chosen, None] + np.arange(10)]
            _require(bool((heads[:, :8].copy().view("<u8")[:, 0] < usages).all()), "keys")
            _require(bool((heads[:, 8:].copy().view("<i2")[:, 0] == layers[chosen]).all()), "layers")
        for layer in range(highest + 1):
            nodes = np.flatnonzero(layers >= layer)
            offset = 10 + (lowest_bytes + (layer - 1) * layer_bytes if layer else 0)
            slots = links if layer else lowest
            for begin in range(0, len(nodes), ROWS):
                begins = starts[nodes[begin : begin + ROWS]] + offset
                block = data[begins[:, None] + np.arange(4 + 4 * slots)].view("<u4").astype(np.int64)
                used = np.arange(slots) < block[:, :1]
                _require(bool((block[:, 0] <= slots).all()), "links")
                targets = block[:, 1:][used]
                _require(bool((targets < size).all()) and bool((layers[targets] >= layer).all()), "links")


def _require(holds: bool, what: str) -> None:
    if not holds:
        raise ValueError(f"its {what} are not those of such a graph")


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
