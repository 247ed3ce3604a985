"""Semantic roles as a task: reading, labels, scores.

tasks.data.propositions, tasks.roles.network, tasks.roles.scores  ->  tasks.roles.task  ->  tasks.table
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar, Literal

from polyseme.errors import UsageError
from polyseme.tasks.data.propositions import read_propositions
from polyseme.tasks.data.sources import Source
from polyseme.tasks.examples import Segmenter, TokenizedText, check_tokens, name_source, tokenize_text
from polyseme.tasks.labels import check_labels, require_labels, sort_labels
from polyseme.tasks.metrics import Scores
from polyseme.tasks.nn.featurizer import Featurizer
from polyseme.tasks.roles.example import PREDICATE, Frame, RolesExample, RolesPrediction
from polyseme.tasks.roles.network import RolesNetwork
from polyseme.tasks.roles.scores import score_roles
from polyseme.tasks.roles.settings import RolesSettings
from polyseme.tasks.settings import TaskSettings

logger = logging.getLogger(__name__)
QUESTION = (
    'a sentence is a string, a list of tokens, or {"text": a string or tokens, "predicates": positions}'
)


@dataclass(frozen=True)
class Roles:
    """Implements `protocol.Task`."""

    name: ClassVar[str] = "roles"
    settings_type: ClassVar[type[TaskSettings]] = RolesSettings
    texts_per_question: ClassVar[int] = 1
    question_unit: ClassVar[Literal["line", "file"]] = "line"
    sample_question: ClassVar[str] = '"He sat on the river bank ."'
    output_formats: ClassVar[tuple[str, ...]] = ("jsonl", "frames")
    decode_batch: ClassVar[int] = 32

    settings: RolesSettings
    learned: Mapping[str, Any] = field(default_factory=dict)

    @property
    def labels(self) -> tuple[str, ...]:
        """All roles, the predicate's V among them."""
        return tuple(self.learned.get("labels", ()))

    def read(self, source: Source, segmenter: Segmenter, *, labelled: bool = True) -> list[RolesExample]:
        """JSON lines, CoNLL-2012, CoNLL-U Plus, or records."""
        data = self.settings.data
        examples = []
        for location, words, propositions in read_propositions(source, data.format, labelled=labelled):
            check_tokens(words, location, data.max_tokens)
            frames = None if propositions is None else tuple(Frame(*values) for values in propositions)
            has_predicates = frames is not None and data.predicates == "given"
            predicates = tuple(frame.predicate for frame in frames or ()) if has_predicates else None
            examples.append(RolesExample(location, TokenizedText(tuple(words)), frames, predicates))
        return examples

    def learn(self, examples: Sequence[RolesExample]) -> Roles:
        """The task with the roles of the training examples."""
        observed = {label for example in examples for label in _list_labels(example)}
        require_labels(sort_labels(observed), name_source(examples), "role")
        return replace(self, learned={"labels": list(sort_labels({PREDICATE, *observed}))})

    def check(self, examples: Sequence[RolesExample]) -> None:
        """Warn of roles that are not in the training data, which count as missed.

        PropBank has roles so rare that test files have others than training files.

        Raises:
            DataError: If most roles are not in the training data: it is another kind of roles.

        """
        pairs = [(example.location, label) for example in examples for label in _list_labels(example)]
        known = set(self.labels)
        new = [pair for pair in pairs if pair[1] not in known]
        if 2 * len(new) > len(pairs):
            check_labels(new, self.labels)
        if new:
            logger.warning(
                f"{new[0][0]}: the role {new[0][1]!r} is not in the training data, so it is never predicted. "
                f"Of {len(pairs):,} roles {len(new):,} are such ones and count as missed."
            )

    def parse(self, question: Any, segmenter: Segmenter, location: str) -> RolesExample:
        """A text, its tokens, or a record with the positions of its predicates."""
        text, predicates = question, None
        if isinstance(question, Mapping):
            if set(question) != {"text", "predicates"}:
                raise UsageError(f"{location}: {QUESTION}, not {question!r:.60}.")
            text, predicates = question["text"], tuple(question["predicates"])
        if not isinstance(text, str | list | tuple):
            raise UsageError(f"{location}: {QUESTION}, not {question!r:.60}.")
        tokenized = tokenize_text(text, segmenter, location, self.settings.data.max_tokens)
        for position in predicates or ():
            if not isinstance(position, int) or not 0 <= position < len(tokenized.tokens):
                raise UsageError(
                    f"{location}: the predicate {position!r} is outside the sentence of "
                    f"{len(tokenized.tokens)} tokens, which count from 0."
                )
        return RolesExample(location, tokenized, predicates=predicates)

    def count_labels(self, example: RolesExample) -> Mapping[str, int]:
        """How often each role occurs."""
        return Counter(_list_labels(example))

    def build_network(self, featurizer: Featurizer, examples: Sequence[RolesExample]) -> RolesNetwork:
        """The untrained network."""
        tags = ["O", *(f"{letter}-{label}" for label in self.labels for letter in "BI")]
        return RolesNetwork(featurizer, self.settings, tags)

    def score(self, examples: Sequence[RolesExample], predictions: Sequence[RolesPrediction]) -> Scores:
        """F1 of arguments, as the CoNLL-2005 scorer counts them."""
        labels = [{frame.predicate: frame.spans for frame in example.frames or ()} for example in examples]
        predicted = [
            {frame.predicate: [role.as_span() for role in frame.roles] for frame in prediction.frames}
            for prediction in predictions
        ]
        return score_roles(labels, predicted)

    def format(self, prediction: RolesPrediction, output_format: str) -> str:
        """A line per frame, with the roles in brackets, and an empty line after the sentence."""
        return "\n".join([*(frame.text for frame in prediction.frames), ""])


def _list_labels(example: RolesExample) -> list[str]:
    return [span.label for frame in example.frames or () for span in frame.spans]
