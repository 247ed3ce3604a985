"""What reading, learning and building have in common for translations and summaries.

tasks.data.parallel, tasks.seq2seq.units  ->  tasks.seq2seq.text_pairs  ->  tasks.translate, tasks.summarise
"""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from polyseme.errors import DataError, FormatError, UsageError
from polyseme.tasks.data.parallel import TextRow
from polyseme.tasks.examples import Segmenter, name_source, tokenize_text
from polyseme.tasks.nn.featurizer import Featurizer
from polyseme.tasks.seq2seq.example import TextPair
from polyseme.tasks.seq2seq.network import Seq2SeqNetwork
from polyseme.tasks.seq2seq.settings import DecoderSettings
from polyseme.tasks.seq2seq.units import TextUnits
from polyseme.tasks.settings import EncoderSettings

logger = logging.getLogger(__name__)


def make_pairs(rows: Iterable[TextRow], segmenter: Segmenter, max_tokens: int, source: str) -> list[TextPair]:
    """The examples of rows; longer sources are truncated, with a count."""
    examples, long = [], 0
    for row in rows:
        text = tokenize_text(row.source, segmenter, row.location)
        long += len(text.tokens) > max_tokens
        examples.append(TextPair(row.location, text.truncate(max_tokens), row.target))
    if long:
        logger.warning(
            f"{source}: {long:,} of {len(examples):,} sources are longer than data.max_tokens "
            f"({max_tokens:,}) and were truncated."
        )
    return examples


def parse_source(question: Any, segmenter: Segmenter, location: str, max_tokens: int) -> TextPair:
    """The example of a text, or of its tokens."""
    if not isinstance(question, str | list | tuple):
        raise UsageError(f"{location}: a text is a string or a list of tokens, not {question!r:.60}.")
    return TextPair(location, tokenize_text(question, segmenter, location).truncate(max_tokens))


def learn_units(examples: Sequence[TextPair], settings: DecoderSettings, segment: str) -> dict[str, Any]:
    """What is learned from training examples: the units of the targets, and the length of the longest one.

    With `pointer`, the units are those of the sources, too.
    """
    targets = [example.target or "" for example in examples]
    texts = list(targets)
    if settings.pointer:
        texts += [example.source.span_text(0, len(example.source.tokens)) for example in examples]
    try:
        units = TextUnits.learn(settings.units, segment, settings.vocabulary, texts)
    except DataError as problem:
        raise DataError(f"{name_source(examples)}: {problem}") from None
    longest = max(len(units.encode(target)) for target in targets)
    return {"units": units.as_dict(), "max_units": min(longest + 1, settings.max_units)}


def build_seq2seq(
    featurizer: Featurizer,
    encoder: EncoderSettings,
    decoder: DecoderSettings,
    precision: str,
    learned: Mapping[str, Any],
) -> Seq2SeqNetwork:
    """The untrained network."""
    units, longest = TextUnits.from_dict(learned.get("units")), learned.get("max_units")
    if not isinstance(longest, int) or longest < 1:
        raise FormatError("The length of the longest target is missing or damaged.")
    return Seq2SeqNetwork(featurizer, encoder, decoder, precision, units, longest)
