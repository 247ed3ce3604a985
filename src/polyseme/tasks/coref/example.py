"""Examples and predictions of coreference."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from polyseme.io.html import Cell
from polyseme.tasks.coref.scores import Mention
from polyseme.tasks.examples import Offsets, TokenizedText, Tokens
from polyseme.tasks.predictions import format_prediction, render_prediction

# Words that name nobody: the name of a cluster is its most frequent mention that is not one of them.
PRONOUNS = frozenset(
    """
    i me my mine myself we us our ours ourselves you your yours yourself yourselves thou thee thy thine
    thyself ye he him his himself she her hers herself it its itself they them their theirs themselves
    this that these those who whom whose which one
    我 你 您 他 她 它 我们 咱们 你们 他们 她们 它们 自己 自家
    咱 俺 吾 余 予 汝 尔 其 之 彼 此 这 那 谁 其人 此人
    """.split()  # noqa: SIM905
)


@dataclass(frozen=True)
class CorefDocument:
    """A document.

    Attributes:
        location: `file:line` of its first line.
        name: As the file calls it.
        texts: Its sentences.
        clusters: The labels: groups of mentions, whose positions count over the document; None if not known.
        speakers: Of each sentence; None where there is none.

    """

    location: str
    name: str
    texts: tuple[TokenizedText, ...]
    clusters: tuple[tuple[Mention, ...], ...] | None = None
    speakers: tuple[str | None, ...] = ()

    @property
    def sentences(self) -> tuple[Tokens, ...]:
        """The token sequences to embed."""
        return tuple(text.tokens for text in self.texts)

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """The position of the first token of each sentence, and the number of all tokens."""
        positions = [0]
        for text in self.texts:
            positions.append(positions[-1] + len(text.tokens))
        return tuple(positions)

    def find_sentence(self, position: int) -> int:
        """The number of the sentence of a token."""
        return bisect_right(self.starts, position) - 1


@dataclass(frozen=True)
class PredictedMention:
    """A mention.

    Attributes:
        start: Its first token, counted over the document.
        stop: The token after its last one.
        text: Its text: as in the raw text, or tokens joined as people write.
        offsets: Start and stop in characters of the raw text; None if only tokens are known.
        probability: That it goes with the mention before it that it was joined to; None for the first ones.

    """

    start: int
    stop: int
    text: str
    offsets: Offsets | None = None
    probability: float | None = None

    def as_dict(self) -> dict[str, Any]:
        """Values for JSON."""
        values: dict[str, Any] = {"start": self.start, "stop": self.stop, "text": self.text}
        if self.probability is not None:
            values["probability"] = round(self.probability, 6)
        return values if self.offsets is None else values | {"offsets": list(self.offsets)}


@dataclass(frozen=True)
class PredictedCluster:
    """Mentions of the same person or thing, in the order of the document, and what it is called."""

    name: str
    mentions: tuple[PredictedMention, ...]

    def as_dict(self) -> dict[str, Any]:
        """Values for JSON."""
        return {"name": self.name, "mentions": [mention.as_dict() for mention in self.mentions]}


@dataclass(frozen=True)
class CorefPrediction:
    """The clusters of a document, those with most mentions first."""

    name: str
    sentences: tuple[TokenizedText, ...]
    clusters: tuple[PredictedCluster, ...]

    def as_dict(self) -> dict[str, Any]:
        """Values for JSON."""
        return {
            "name": self.name,
            "sentences": [list(text.tokens) for text in self.sentences],
            "clusters": [cluster.as_dict() for cluster in self.clusters],
        }

    def as_row(self) -> Mapping[str, Cell]:
        """Cells of a table."""
        several = [cluster for cluster in self.clusters if len(cluster.mentions) > 1]
        shown = ", ".join(f"{cluster.name} ({len(cluster.mentions)})" for cluster in several[:8])
        return {"document": self.name, "clusters": len(self.clusters), "most mentions": shown}

    __repr__ = format_prediction
    _repr_html_ = render_prediction


def name_cluster(texts: Sequence[str]) -> str:
    """The most frequent of these mentions that is no pronoun; of two, the longer one."""
    counts = Counter(text for text in texts if text.lower() not in PRONOUNS) or Counter(texts)
    names = Counter({text: count for text, count in counts.items() if not text[:1].islower()}) or counts
    return max(names, key=lambda text: (names[text], len(text), text))
