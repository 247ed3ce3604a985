"""How a single prediction shows itself; `io.result_list` shows lists of them.

io.html  ->  tasks.predictions  ->  the prediction classes of the tasks
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from polyseme.io.html import format_cell, render_table

if TYPE_CHECKING:
    from polyseme.tasks.protocol import Prediction


def format_prediction(prediction: Prediction) -> str:
    """A short `__repr__`: the cells of the prediction's row."""
    cells = ", ".join(f"{name}={format_cell(cell)!r:.80}" for name, cell in prediction.as_row().items())
    return f"{type(prediction).__name__}({cells})"


def render_prediction(prediction: Prediction) -> str:
    """A `_repr_html_`: a table with one row."""
    row = prediction.as_row()
    return render_table(list(row), [list(row.values())])
