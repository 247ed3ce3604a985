"""The component `polyseme_task`: a task model sets entities, tags or categories of documents.

    integrations.spacy.documents, integrations.spacy.stored_model  ->  here  ->  spaCy, by an entry point

Taggers of spans set doc.ents; taggers of single tags set token.tag_, or token.pos_ if all tags are universal
parts of speech; classifiers set doc.cats. Taggers read sentence by sentence, classifiers whole documents.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Literal

from spacy.language import Language
from spacy.parts_of_speech import IDS
from spacy.pipeline import Pipe
from spacy.tokens import Doc, Span
from spacy.util import filter_spans, minibatch

from polyseme.integrations.spacy.documents import ReadDoc, raise_value_errors, read_doc
from polyseme.integrations.spacy.stored_model import StoredModel, store_task

Assigned = Literal["auto", "ents", "spans", "tag", "pos"]
DEFAULTS: dict[str, Any] = {"assigns": "auto", "overwrite": False, "device": "cpu"}


@Language.factory(
    "polyseme_task",
    default_config=DEFAULTS,
    assigns=["doc.ents", "doc.spans", "doc.cats", "token.tag", "token.pos"],
)
def make_task_component(
    nlp: Language, name: str, model: str, assigns: Assigned, overwrite: bool, device: str
) -> TaskComponent:
    """Make the component; spaCy calls this for `nlp.add_pipe("polyseme_task", config={"model": …})`.

    Args:
        nlp: The pipeline.
        name: Of the component, and of the group with `assigns="spans"`.
        model: A task folder as `polyseme.train` writes it: tagging or classification.
        assigns: Where the spans or tags of a tagger go: "ents" (doc.ents), "spans" (doc.spans[name]), "tag"
            (token.tag_), "pos" (token.pos_), or "auto".
        overwrite: Whether to replace entities and tags that earlier components have set.
        device: As in `polyseme.load_task`.

    """
    return TaskComponent(name, store_task(model, device), assigns, overwrite=overwrite)


class TaskComponent(Pipe):
    """Annotates documents with the predictions of a task model."""

    def __init__(self, name: str, stored: StoredModel[Any], assigned: Assigned, *, overwrite: bool) -> None:
        self.name = name
        self.stored = stored
        self.assigned, self.overwrite = assigned, overwrite

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of the model; of spans, their types. None while the model is still to be read."""
        from polyseme.tasks.task_folder import is_task

        if not self.stored.is_loaded and not is_task(self.stored.path):
            return ()  # spaCy asks while it reads a pipeline, whose first path may be gone
        labels: tuple[str, ...] = self.stored.model.labels
        if not self._has_spans():
            return labels
        return tuple(dict.fromkeys(label[2:] for label in labels if label != "O"))

    def __call__(self, doc: Doc) -> Doc:
        """Annotate one document; a stream is faster, see `pipe`."""
        for processed in self.pipe([doc]):
            return processed
        return doc  # the error handler of the pipeline has dealt with it

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Annotate a stream of documents, a batch of them at a time.

        Args:
            stream: The documents.
            batch_size: Documents that are read before the model predicts.

        Yields:
            The documents, in order.

        """
        for docs in minibatch(stream, size=batch_size):
            try:
                self.annotate(docs)
            except Exception as problem:
                self.get_error_handler()(self.name, self, docs, problem)
                continue
            yield from docs

    def annotate(self, docs: Sequence[Doc]) -> None:
        """Set the predictions of documents.

        Args:
            docs: The documents.

        Raises:
            ValueError: If the model is of another task, or does not fit `assigns`.

        """
        task = self.stored.model.task.name
        if task not in ("tagging", "classification"):
            raise ValueError(
                f"{self.stored.path}: a model of the task {task}, but the component annotates with tagging "
                "and classification."
            )
        readings = [read_doc(doc) for doc in docs]
        if task == "classification":
            self._set_categories(docs, readings)
            return
        assigned = self._choose_attribute()
        predictions = iter(self._predict([s for reading in readings for s in reading.sentences]))
        for doc, reading in zip(docs, readings, strict=True):
            results = [next(predictions) for _ in reading.sentences]
            if assigned in ("ents", "spans"):
                self._set_spans(doc, reading, results, assigned)
            else:
                self._set_tags(doc, reading, results, assigned)

    def _predict(self, sentences: list[list[str]]) -> list[Any]:
        with raise_value_errors():
            return list(self.stored.model.predict(sentences)) if sentences else []

    def _has_spans(self) -> bool:
        """Whether the labels spell spans."""
        return bool(getattr(self.stored.model.task, "has_spans", False))

    def _choose_attribute(self) -> str:
        """Where tags go."""
        labels, spans = self.stored.model.labels, self._has_spans()
        universal = all(label in IDS for label in labels)
        if self.assigned == "auto":
            return "ents" if spans else "pos" if universal else "tag"
        if spans != (self.assigned in ("ents", "spans")):
            kind = "spans" if spans else "single tags"
            raise ValueError(
                f"assigns is {self.assigned!r}, but {self.stored.path} tags {kind}. "
                f"Expected {'ents or spans' if spans else 'tag or pos'}."
            )
        if self.assigned == "pos" and not universal:
            other = next(label for label in labels if label not in IDS)
            raise ValueError(
                f"assigns is 'pos', but the tag {other!r} is no universal part of speech. Use 'tag'."
            )
        return self.assigned

    def _set_spans(self, doc: Doc, reading: ReadDoc, predictions: list[Any], assigned: str) -> None:
        spans, first = [], 0  # word of the sentence
        tokens = reading.number_tokens()
        for sentence, prediction in zip(reading.sentences, predictions, strict=True):
            for span in prediction.spans:
                start, last = tokens[[first + span.start, first + span.stop - 1]].tolist()
                spans.append(Span(doc, start, last + 1, label=span.label))
            first += len(sentence)
        if assigned == "spans":
            doc.spans[self.name] = spans
            return
        earlier = [] if self.overwrite else list(doc.ents)
        taken = {token.i for entity in earlier for token in entity}
        free = [span for span in filter_spans(spans) if taken.isdisjoint(range(span.start, span.end))]
        doc.set_ents([*earlier, *free])

    def _set_tags(self, doc: Doc, reading: ReadDoc, predictions: list[Any], assigned: str) -> None:
        """Set a tag per token; a merged token gets the tag of its last word."""
        tags = [tag for prediction in predictions for tag in prediction.tags]
        by_token = dict(zip(reading.number_tokens().tolist(), tags, strict=True))
        attribute = f"{assigned}_"
        for token in doc:
            if token.is_space and assigned == "pos":
                by_token[token.i] = "SPACE"
            if token.i in by_token and (self.overwrite or not getattr(token, attribute)):
                setattr(token, attribute, by_token[token.i])

    def _set_categories(self, docs: Sequence[Doc], readings: Sequence[ReadDoc]) -> None:
        if self.assigned != "auto":
            raise ValueError(
                f"assigns is {self.assigned!r}, but {self.stored.path} is a classifier, which sets doc.cats. "
                "Leave it out."
            )
        words = [[word for sentence in reading.sentences for word in sentence] for reading in readings]
        predictions = iter(self._predict([text for text in words if text]))
        for doc, text in zip(docs, words, strict=True):
            scores = next(predictions).probabilities if text else {}
            for label in self.stored.model.labels:
                if self.overwrite or label not in doc.cats:
                    doc.cats[label] = float(scores.get(label, 0.0))

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the model into the folder of the pipeline; spaCy calls this."""
        self.stored.to_disk(Path(path))

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> TaskComponent:
        """Load the model from the folder of the pipeline; spaCy calls this."""
        self.stored.from_disk(Path(path))
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The model as bytes; spaCy calls this."""
        return self.stored.to_bytes()

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> TaskComponent:
        """Load the model from bytes; spaCy calls this."""
        self.stored.from_bytes(data)
        return self
