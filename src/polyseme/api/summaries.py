"""The verb summarise.

search.summaries  ->  api.summaries  ->  api
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from polyseme.elmo import Elmo, ensure_loaded
from polyseme.io.progress import ProgressOption, open_progress
from polyseme.search.summaries import Summary, TextSentence, summarise_sentences
from polyseme.text.reading import read_lines
from polyseme.text.segment import split_sentences
from polyseme.text.segment.stream import group_lines
from polyseme.text.validate import check_text


def summarise(
    model: Elmo | str | Path,
    text: str | Path,
    *,
    sentences: int = 3,
    diversity: float = 0.3,
    segment: str | None = None,
    progress: ProgressOption = None,
) -> Summary:
    """Summarise a text by its most central sentences, without training.

    For abstractive summaries, train a task model: `polyseme.train("summarise", …)`.

    Args:
        model: The ELMo, loaded or as a path.
        text: The text as a string, or a `Path` of a file or folder, which may be larger than memory.
        sentences: The number of sentences to choose.
        diversity: From 0, the most central sentences even if similar, to 1, as different as possible.
        segment: How to split the text; as the model was trained if None.
        progress: None shows a bar on a terminal or in a notebook, True always, False never; a function
            receives every `ProgressEvent`.

    Returns:
        The sentences in the order of the text, with `text`, `number`, `rank` and `offsets`; `summary.text`
        joins them.

    Raises:
        UsageError: If an argument is out of range.
        DataError: If the text has no sentences.

    Example:
        >>> print(polyseme.summarise("en", article, sentences=2).text)

    """
    elmo = ensure_loaded(model)
    rule = elmo.choose_segment(segment)
    parts = (
        _read_file(elmo, text, rule) if isinstance(text, Path) else _split_text(elmo, check_text(text), rule)
    )
    with open_progress(progress) as on_progress:
        return summarise_sentences(elmo, parts, sentences, diversity, on_progress=on_progress)


def _split_text(elmo: Elmo, text: str, segment: str) -> Iterator[TextSentence]:
    for number, tokens in enumerate(split_sentences(text, segment, elmo.word_list)):
        start, stop = tokens[0].start, tokens[-1].end
        yield TextSentence([token.text for token in tokens], text[start:stop], number, (start, stop))


def _read_file(elmo: Elmo, path: Path, segment: str) -> Iterator[TextSentence]:
    number = 0
    for unit in group_lines(read_lines(path, prose=True), segment):
        for tokens in split_sentences(unit.text, segment, elmo.word_list):
            text = " ".join(unit.text[tokens[0].start : tokens[-1].end].split())
            yield TextSentence([token.text for token in tokens], text, number)
            number += 1
