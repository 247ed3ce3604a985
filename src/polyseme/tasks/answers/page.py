"""An answer as HTML: the question, the answer, and the sentence with the answer marked.

    tasks.answers.example  ->  tasks.answers.page  ->  `polyseme predict --format html`

All text is escaped.
"""

from __future__ import annotations

from html import escape

from polyseme.tasks.answers.example import AnswerPrediction


def render_answer(prediction: AnswerPrediction) -> str:
    """One question as an HTML section."""
    answer = "no answer" if prediction.answer is None else prediction.answer
    source = f" · {escape(prediction.source)}" if prediction.source else ""
    heading = f"<h3>{escape(prediction.question)}</h3>"
    facts = f"<p><b>{escape(answer)}</b> ({prediction.probability:.0%}){source}</p>"
    before, marked, after = prediction.passage
    text = f"<blockquote>{escape(before)}<mark>{escape(marked)}</mark>{escape(after)}</blockquote>"
    return f"<section>{heading}{facts}{text if marked else ''}</section>"
