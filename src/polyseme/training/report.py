"""Write the report of a finished run: curves, counts of the corpus, nearest words of frequent ones.

    a finished run, OUT/metrics.jsonl  ->  training.report  ->  OUT/report.html, OUT/curves.png,
                                                     OUT/words.safetensors, OUT/sentence.safetensors

The model and the text are those in memory; words are embedded by their ids. The page loads nothing from
elsewhere. curves.png needs matplotlib (extra `plot`).
B sentences, T tokens incl. <S> and </S>, U distinct types, H = 2D.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence
from html import escape
from importlib.util import find_spec
from itertools import islice
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from polyseme.elmo import BATCH_TOKENS, Elmo
from polyseme.formats.models.pretrained import Pretrained
from polyseme.formats.models.sentence_file import SENTENCE_FILE, write_sentence_pooling
from polyseme.formats.vectors.word_file import WORDS_FILE
from polyseme.io.atomic import new_group
from polyseme.model.output import resolve_output
from polyseme.model.sentence_pooling import SentencePooling
from polyseme.text.corpus.prepared import Corpus, CorpusReport, find_sentence_starts, read_types
from polyseme.text.length_batches import batch_by_length
from polyseme.text.segment.discovery import PERSON, PLACE, NewWord
from polyseme.text.segment.word_list import NAME_SEPARATOR
from polyseme.text.usage_sample import choose_sentences
from polyseme.training.curves import draw_png, draw_svg
from polyseme.training.loop import METRICS, read_metrics
from polyseme.training.objective import encode_types
from polyseme.training.pretrain import PretrainResult
from polyseme.word_vectors import WordVectors

TOKENS = 250_000  # tokens that are embedded for the mean vectors
MAX_READ = 5_000_000  # tokens from which they are chosen, all over the text
MIN_COUNT = 5  # usages that a word needs for a mean vector
SENTENCES = 3_000  # spread over the text, to fit how sentences are pooled
WORDS = 12  # words whose nearest ones are shown
NEW_WORDS = 200  # new words of each kind that are shown
PAGE_FILE, CURVES_FILE = "report.html", "curves.png"
FILES = (PAGE_FILE, CURVES_FILE, WORDS_FILE, SENTENCE_FILE)
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
{unknown:.1%} of the held-out words are not in the vocabulary.</p>
<p>{duration}</p>
<h2>Held-out perplexity</h2>
{curves}
<h2>Nearest words</h2>
<p>The ten nearest words of some frequent ones, by the cosine of mean contextual vectors
(top layer, centred). {usages}</p>
{neighbours}
{new_words}
<h2>Corpus</h2>
{corpus}
<p>Held out: {held_out}.</p>
{static}
</html>
"""


def write_report(run: PretrainResult) -> None:
    """Write report.html, words.safetensors, sentence.safetensors and, with matplotlib, curves.png.

    Args:
        run: A finished run; the files go to its folder.

    """
    lines = read_metrics(run.folder / METRICS)
    vectors = compute_word_vectors(run.model, run.corpus)
    pooling = fit_sentences(run.model, run.corpus)
    end = lines[-1]
    page = PAGE.format(
        name=escape(run.folder.name),
        mean=end["mean"],
        forward=end["forward"],
        backward=end["backward"],
        unknown=end["unknown"],
        duration=_describe_duration(end),
        curves=draw_svg(lines),
        usages=escape(_describe_usages(vectors)),
        neighbours=_format_neighbours(_find_neighbours(vectors)),
        new_words=_format_new_words(run.corpus.new_words),
        corpus=_format_counts(run.report),
        held_out=escape(run.report.held_out),
        static=_format_static(run.model),
    )
    with new_group(run.folder, "report", known_names=FILES) as new:
        vectors.save(new / WORDS_FILE)
        if pooling is not None:
            write_sentence_pooling(new / SENTENCE_FILE, pooling)
        (new / PAGE_FILE).write_text(page, encoding="utf-8")
        if find_spec("matplotlib") is None:
            logger.warning('curves.png was not drawn: it needs matplotlib: pip install "polyseme[plot]"')
        else:
            draw_png(lines, new / CURVES_FILE)


def fit_sentences(model: Pretrained, corpus: Corpus, *, count: int = SENTENCES) -> SentencePooling | None:
    """Fit `pool="sentence"` to sentences spread over the training text.

    Args:
        model: The trained model.
        corpus: The text it was trained on; the words are weighed by its counts.
        count: How many sentences to read.

    Returns:
        The pooling; None if the text has fewer than two sentences.

    """
    starts = find_sentence_starts(corpus.train, corpus.begin)
    ends = np.append(starts[1:], len(corpus.train))
    chosen = np.unique(np.linspace(0, len(starts) - 1, min(count, len(starts))).astype(np.int64))
    types = [np.asarray(corpus.train[starts[n] + 1 : ends[n] - 1]) for n in chosen]
    types = [sentence for sentence in types if len(sentence)]
    if len(types) < 2:
        return None
    needed, words, first = set(np.concatenate(types).tolist()), dict[int, str](), 0
    for block in read_types(corpus.folder):
        words |= {
            number: block[number - first] for number in range(first, first + len(block)) if number in needed
        }
        first += len(block)
    tokens = [[words[number] for number in sentence.tolist()] for sentence in types]
    return Elmo(model).fit_pooling(tokens, torch.from_numpy(corpus.counts)).model.pooling


@torch.inference_mode()
def compute_word_vectors(
    model: Pretrained, corpus: Corpus, *, tokens: int = TOKENS, min_count: int = MIN_COUNT
) -> WordVectors:
    """Compute the mean top-layer vector of every frequent word, from usages all over the training text.

    Args:
        model: The trained model.
        corpus: The text it was trained on.
        tokens: How many tokens to embed, about; of a longer text, sentences are chosen so that the usages of
            every word are spread evenly over it (`text.usage_sample`).
        min_count: Only words with at least this many usages among them.

    Returns:
        The words with their vectors, most frequent first; `counts` are the usages that were embedded.

    """
    stream, starts = _sample_sentences(corpus, tokens, min_count)
    frequent = _list_frequent_types(stream, (corpus.begin, corpus.end), min_count)
    rows = np.full(corpus.n_types, -1, np.int64)  # type -> row of the sums
    rows[frequent] = np.arange(len(frequent))
    sums = torch.zeros(len(frequent), model.config.size, dtype=torch.float64)
    top = resolve_output("top", None, "both", model.config.layers)
    model.network.pack()
    lengths = np.diff(starts)
    for numbers in batch_by_length(lengths.tolist(), max_tokens=BATCH_TOKENS):
        inside = np.arange(lengths[numbers].max()) < lengths[numbers][:, None]  # (B, T)
        types = np.concatenate([stream[starts[n] : starts[n + 1]] for n in numbers])
        distinct, inverse = np.unique(types, return_inverse=True)
        positions = np.zeros(inside.shape, np.int64)
        positions[inside] = inverse
        output = model.network.run_stacks(
            encode_types(model.network, corpus, distinct),  # (U, D)
            torch.from_numpy(positions),
            torch.from_numpy(lengths[numbers]),
        )
        vectors = top.select(output)[torch.from_numpy(inside)].cpu()  # (tokens, H)
        counted = rows[types] >= 0
        sums.index_add_(
            0, torch.from_numpy(rows[types[counted]]), vectors[torch.from_numpy(counted)].double()
        )
    counts = np.bincount(stream, minlength=corpus.n_types)[frequent]
    means = sums.numpy() / np.maximum(counts, 1)[:, None]
    centre = means.mean(axis=0) if len(means) else np.zeros(means.shape[1])
    words = _list_words(corpus, frequent)
    return WordVectors(words, counts, means.astype(np.float32), centre.astype(np.float32))


def _sample_sentences(
    corpus: Corpus, tokens: int, min_count: int
) -> tuple[NDArray[np.uint32], NDArray[np.int64]]:
    """Sentences all over the training text, joined, and where they start; one more start is the end."""
    starts = np.append(find_sentence_starts(corpus.train, corpus.begin), len(corpus.train))
    step = max(1, -(-len(corpus.train) // MAX_READ))  # of a very long text only every n-th sentence is read
    spans = np.stack([starts[:-1:step], starts[1::step]], axis=1)
    spans = spans[spans[:, 1] > spans[:, 0]]
    if (spans[:, 1] - spans[:, 0]).sum() > tokens:
        sentences = [corpus.train[start:stop].tolist() for start, stop in spans]
        counts = Counter(word for sentence in sentences for word in sentence)
        for mark in (corpus.begin, corpus.end):
            counts.pop(mark, None)
        frequent = {word: count for word, count in counts.items() if count >= min_count}
        spans = spans[choose_sentences(sentences, frequent, tokens)]
    lengths = spans[:, 1] - spans[:, 0]
    parts = [corpus.train[start:stop] for start, stop in spans]
    stream = np.concatenate(parts) if parts else np.zeros(0, np.uint32)
    return stream, np.concatenate(([0], np.cumsum(lengths)))


def _list_frequent_types(
    stream: NDArray[np.integer[Any]], marks: tuple[int, int], min_count: int
) -> NDArray[np.int64]:
    """Types with `min_count` usages or more, most frequent first, then in the order of the text."""
    types, firsts, counts = np.unique(stream, return_index=True, return_counts=True)
    chosen = (counts >= min_count) & ~np.isin(types, marks)
    order = np.lexsort((firsts[chosen], -counts[chosen]))
    frequent: NDArray[np.int64] = types[chosen][order].astype(np.int64)
    return frequent


def _list_words(corpus: Corpus, types: NDArray[np.int64]) -> tuple[str, ...]:
    """The words of types; only types outside the vocabulary need the file of all types."""
    words = corpus.vocab.words
    if len(types) and types.max() >= len(words):
        words = tuple(word for block in read_types(corpus.folder) for word in block)
    return tuple(words[number] for number in types)


def _describe_usages(vectors: WordVectors) -> str:
    """On how many usages the vectors rest."""
    if not len(vectors):
        return ""
    return (
        f"{len(vectors):,} words have a vector: the mean of {int(np.median(vectors.counts)):,} usages in the "
        f"median, {int(vectors.counts.min()):,} or more, spread over the whole text. In brackets: usages."
    )


def _find_neighbours(vectors: WordVectors) -> list[tuple[str, str]]:
    """Some frequent content words, each with the usages its vector rests on and its nearest words."""
    content = (word for word in vectors.words if _is_content(word))
    return [
        (
            word,
            ", ".join(
                f"{near} ({vectors.count(near):,})" for near, _ in vectors.nearest(word, 10, min_chars=2)
            ),
        )
        for word in islice(content, WORDS)
    ]


def _is_content(word: str) -> bool:
    """Whether a word is long enough to be a content word: two Han characters, or five letters."""
    return word.isalpha() and len(word) >= (5 if word.isascii() else 2)


def _format_neighbours(rows: list[tuple[str, str]]) -> str:
    """One row per word; Han characters are marked as Chinese, so that browsers choose the right font."""
    cells = "".join(
        f"<tr{' lang=zh' if _is_han(word) else ''}><th>{escape(word)}<td>{escape(neighbours)}"
        for word, neighbours in rows
    )
    return f"<table><tbody>{cells}</table>" if rows else "<p>No word occurs often enough.</p>"


def _is_han(word: str) -> bool:
    """Whether all characters are Han."""
    return all("\u3400" <= character <= "\u9fff" or character >= "\U00020000" for character in word)


def _format_new_words(words: Sequence[NewWord]) -> str:
    """The names and new words that were found in the text, and what is no word in spite of jieba."""
    kinds: dict[str, list[str]] = {"Persons": [], "Places": [], "Other words": [], "No words": []}
    for new in words:
        kind = {PERSON: "Persons", PLACE: "Places"}.get(new.tag, "Other words") if new.count else "No words"
        name = escape(new.word.replace(NAME_SEPARATOR, " "))
        kinds[kind].append(f"{name} {new.count:,}" if new.count else name)
    rows = "".join(
        f"<tr lang=zh><th lang=en>{name}<td>{', '.join(entries[:NEW_WORDS])}"
        f"{f' and {len(entries) - NEW_WORDS:,} more' if len(entries) > NEW_WORDS else ''}"
        for name, entries in kinds.items()
        if entries
    )
    if not rows:
        return ""
    return (
        "<h2>Names and new words</h2>\n<p>Found in the text itself, with counts. To correct them, edit "
        "words.txt in this folder and train again with <code>--words words.txt</code>.</p>\n"
        f"<table><tbody>{rows}</table>"
    )


def _format_counts(report: CorpusReport) -> str:
    """What was counted, in the training text and in the held-out text."""
    rows = [
        ("documents", f"{report.documents:,}", f"{report.valid_documents:,}"),
        ("sentences", f"{report.sentences:,}", f"{report.valid_sentences:,}"),
        ("words", f"{report.tokens:,}", f"{report.valid_tokens:,}"),
        ("not in the vocabulary", f"{report.unknown:.1%}", f"{report.valid_unknown:.1%}"),
        ("distinct words", f"{report.types:,}", ""),
        ("words in the vocabulary", f"{report.words:,}", ""),
        ("truncated words", f"{report.cut_tokens:,}", ""),
        (
            "repeated sentences",
            f"{'about ' if report.repeats_estimated else ''}{report.repeated_sentences:,}",
            "",
        ),
        ("repeated documents", f"{report.repeated_documents:,}", ""),
    ]
    if report.characters:
        rows.insert(6, ("distinct characters", f"{report.characters:,}", ""))
    cells = "".join(f"<tr><th>{name}<td>{train}<td>{valid}" for name, train, valid in rows)
    head = "<thead><tr><th><th>training<th>held out"
    return f'<table class="numbers">{head}<tbody>{cells}</table>'


def _format_static(model: Pretrained) -> str:
    """How many words started from static vectors, if any did."""
    coverage = model.origin.get("static vectors")
    return f"<p>Static vectors: {escape(coverage)}.</p>" if coverage else ""


def _describe_duration(end: dict[str, Any]) -> str:
    """How much was trained, and how long it took."""
    tokens, seconds = end["tokens"], end["seconds"]
    units = (("hours", 3600), ("minutes", 60), ("seconds", 1))
    name, size = next((unit for unit in units if seconds >= 2 * unit[1]), units[-1])
    rate = f", {tokens / seconds:,.0f} per second" if seconds else ""
    return (
        f"Trained for {end['step']:,} steps on {tokens:,} tokens (words and sentence ends) "
        f"in {seconds / size:.1f} {name}{rate}."
    )
