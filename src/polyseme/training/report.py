"""A finished run as a page: curves, figures of the corpus, neighbours of frequent words.

    OUT/metrics.jsonl, OUT/corpus, the model  ->  training.report  ->  OUT/report.html, OUT/curves.png,
                                                               OUT/words.safetensors

The page needs nothing but itself. curves.png is drawn where matplotlib is installed (extra `plot`).
"""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from html import escape
from importlib.util import find_spec
from itertools import islice, pairwise
from pathlib import Path
from typing import Any

import numpy as np

from polyseme.elmo import load
from polyseme.formats.vectors.word_file import WORDS_FILE
from polyseme.text.corpus.prepared import Corpus, CorpusReport, open_corpus, read_types, sentence_starts
from polyseme.training.curves import draw, perplexity_svg
from polyseme.word_vectors import WordVectors, mean_vectors

TOKENS = 120_000  # of the text, for the neighbours
WORDS = 12
logger = logging.getLogger(__name__)

PAGE = """<!doctype html>
<html lang="en">
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<title>{name}</title>
<style>
:root {{ --text: #222; --page: #fff; --faint: #666; --line: #ddd; --forward: #1f6fb4; --backward: #c62828 }}
@media (prefers-color-scheme: dark) {{ :root {{ --text: #ddd; --page: #181818; --faint: #999;
--line: #3a3a3a; --forward: #64b0f0; --backward: #ff8a80 }} }}
body {{ font: 16px/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", "PingFang SC",
"Microsoft YaHei", "Noto Sans CJK SC", "Source Han Sans SC", sans-serif; max-width: 54rem;
margin: 2rem auto; padding: 0 1rem; color: var(--text); background: var(--page); overflow-wrap: break-word }}
h1 {{ margin-bottom: .5rem }} h2 {{ margin: 2.5rem 0 .5rem }} p {{ margin: .5rem 0 }}
table {{ border-collapse: collapse; margin: 1rem 0; width: 100% }}
th, td {{ padding: .3rem 1rem .3rem 0; text-align: left; vertical-align: baseline;
border-bottom: 1px solid var(--line) }}
thead th {{ color: var(--faint); font-weight: normal }} tbody th {{ font-weight: 600; min-width: 5rem }}
.numbers th:not(:first-child), .numbers td {{ text-align: right; font-variant-numeric: tabular-nums;
padding-right: 0; padding-left: 1rem; width: 9rem }}
svg {{ display: block; width: 100%; max-width: 45rem; height: auto; margin: 1rem 0; font-size: 13px }}
svg text {{ fill: var(--faint) }} .grid {{ stroke: var(--line) }}
.forward {{ fill: var(--forward) !important; stroke-width: 2 }} g.forward {{ stroke: var(--forward) }}
.backward {{ fill: var(--backward) !important; stroke-width: 2 }} g.backward {{ stroke: var(--backward) }}
polyline {{ fill: none }}
</style>
<h1>{name}</h1>
<p>Held-out perplexity <b>{mean:,.1f}</b> (forward {forward:,.1f}, backward {backward:,.1f});
{unknown:.1%} of the held-out words are outside the vocabulary.</p>
<p>{course}</p>
<h2>Held-out perplexity</h2>
{curves}
<h2>Neighbours</h2>
<p>Nearest words by the mean of their contextual vectors (top layer, centred).</p>
{neighbours}
<h2>Corpus</h2>
{corpus}
<p>Held out: {held_out}.</p>
</html>
"""


def write_report(folder: Path) -> None:
    """Write report.html, and curves.png where it can be drawn, for the finished run in `folder`."""
    lines = [json.loads(line) for line in (folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()]
    corpus = open_corpus(folder / "corpus")
    vectors = mean_vectors(load(folder), list(_some_sentences(corpus)), min_count=5)
    vectors.save(folder / WORDS_FILE, force=True)
    end = lines[-1]
    page = PAGE.format(
        name=escape(folder.name),
        mean=end["mean"],
        forward=end["forward"],
        backward=end["backward"],
        unknown=end["unknown"],
        course=_course(end),
        curves=perplexity_svg(lines),
        neighbours=_neighbours_table(_neighbours(vectors)),
        corpus=_corpus_table(corpus.report),
        held_out=escape(corpus.report.held_out),
    )
    (folder / "report.html").write_text(page, encoding="utf-8")
    if find_spec("matplotlib") is None:
        logger.warning('curves.png is not drawn: that needs matplotlib, pip install "polyseme[plot]".')
        return
    draw(lines, folder / "curves.png")


def _some_sentences(corpus: Corpus) -> Iterator[list[str]]:
    """Sentences of the training text, from its begin, about TOKENS tokens of them."""
    words = [word for some in read_types(corpus.folder) for word in some]
    stream = corpus.train[:TOKENS]
    starts = sentence_starts(stream, corpus.begin)
    for start, stop in pairwise(starts):
        yield [words[number] for number in stream[start + 1 : stop - 1]]


def _neighbours(vectors: WordVectors) -> list[tuple[str, str]]:
    """Frequent words of some length, each with its nearest."""
    order = np.argsort(-np.asarray(vectors.counts), kind="stable")
    content = (vectors.words[int(row)] for row in order)
    chosen = islice((word for word in content if _is_content(word)), WORDS)
    return [(word, ", ".join(near for near, _ in vectors.nearest(word, 10, min_chars=2))) for word in chosen]


def _is_content(word: str) -> bool:
    """Whether a word is long enough to be more than grammar: two Han characters, or five letters."""
    return word.isalpha() and len(word) >= (5 if word.isascii() else 2)


def _neighbours_table(rows: list[tuple[str, str]]) -> str:
    """A word a line; words in Han characters alone are marked as Chinese, for the right shapes of them."""
    cells = "".join(
        f"<tr{' lang=zh' if _is_han(name) else ''}><th>{escape(name)}<td>{escape(value)}"
        for name, value in rows
    )
    return f"<table><tbody>{cells}</table>" if rows else "<p>No word occurs often enough.</p>"


def _is_han(word: str) -> bool:
    return all("\u3400" <= sign <= "\u9fff" or sign >= "\U00020000" for sign in word)


def _corpus_table(report: CorpusReport) -> str:
    """What was counted, of the text that was trained on and of the held-out part."""
    rows = [
        ("documents", f"{report.documents:,}", f"{report.valid_documents:,}"),
        ("sentences", f"{report.sentences:,}", f"{report.valid_sentences:,}"),
        ("words", f"{report.tokens:,}", f"{report.valid_tokens:,}"),
        ("outside the vocabulary", f"{report.unknown:.1%}", f"{report.valid_unknown:.1%}"),
        ("distinct words", f"{report.types:,}", ""),
        ("words in the vocabulary", f"{report.words:,}", ""),
        ("words longer than the model reads", f"{report.cut_tokens:,}", ""),
        (
            "repeated sentences",
            f"{'about ' if report.repeats_estimated else ''}{report.repeated_sentences:,}",
            "",
        ),
        ("repeated documents", f"{report.repeated_documents:,}", ""),
    ]
    if report.characters:
        rows.insert(6, ("characters", f"{report.characters:,}", ""))
    cells = "".join(f"<tr><th>{name}<td>{train}<td>{valid}" for name, train, valid in rows)
    head = "<thead><tr><th><th>trained on<th>held out"
    return f'<table class="numbers">{head}<tbody>{cells}</table>'


def _course(end: dict[str, Any]) -> str:
    """How long the training was."""
    tokens, seconds = end["tokens"], end["seconds"]
    units = (("hours", 3600), ("minutes", 60), ("seconds", 1))
    name, size = next((unit for unit in units if seconds >= 2 * unit[1]), units[-1])
    speed = f", {tokens / seconds:,.0f} a second" if seconds else ""
    return (
        f"Trained for {end['step']:,} steps and {tokens:,} tokens (words and ends of sentences) "
        f"in {seconds / size:.1f} {name}{speed}."
    )
