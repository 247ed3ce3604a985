"""The component `polyseme`: ELMo vectors in doc.tensor, and hooks for vectors and similarity.

    integrations.spacy.documents, integrations.spacy.stored_model  ->  here  ->  spaCy, by an entry point

Without the hooks spaCy compares words, not vectors: it answers 1.0 for *bank* and *bank* in any two
sentences. spaCy drops hooks when it serialises a document, also from the processes of
`nlp.pipe(…, n_process=2)`; doc.tensor stays, and `set_hooks` puts the hooks back.

T tokens, H values.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from spacy.language import Language
from spacy.pipeline import Pipe
from spacy.tokens import Doc, Span, Token
from spacy.util import minibatch

from polyseme.integrations.spacy.documents import Floats, raise_value_errors, read_doc
from polyseme.integrations.spacy.stored_model import StoredModel, store_elmo

LANGUAGES = ("en", "zh")  # with a bundled model of that name
DEFAULTS: dict[str, Any] = {
    "model": None,
    "layer": "mean",
    "hooks": True,
    "precision": None,
    "device": "cpu",
}


@Language.factory("polyseme", default_config=DEFAULTS, assigns=["doc.tensor"])  # as spaCy asks for it
def make_vectors_component(
    nlp: Language,
    name: str,
    model: str | None,
    layer: str | int | list[float],
    hooks: bool,
    precision: str | None,
    device: str,
) -> VectorsComponent:
    """Make the component; spaCy calls this for `nlp.add_pipe("polyseme", config=…)`.

    Args:
        nlp: The pipeline.
        name: Of the component.
        model: A path or bundled name as for `polyseme.load`; None is the bundled model of the language.
        layer: As in `Elmo.embed`, without "all".
        hooks: Whether to set the hooks of documents.
        precision: As in `polyseme.load`.
        device: As in `polyseme.load`.

    Raises:
        ValueError: If there is no bundled model of the language, or no such layer.

    """
    chosen = choose_model(model, str(nlp.lang))
    return VectorsComponent(name, store_elmo(chosen, precision, device), layer, hooks=hooks)


def choose_model(model: str | None, language: str) -> str:
    """The model to load; None is the bundled one of a language.

    Raises:
        ValueError: If there is none.

    """
    if model is not None:
        return model
    if language not in LANGUAGES:
        raise ValueError(
            f"There is no bundled model for the language {language!r}, only for {' and '.join(LANGUAGES)}. "
            'Pass the path of one: `config={"model": "models/elmo"}`.'
        )
    return language


class VectorsComponent(Pipe):
    """Sets doc.tensor to the vectors of ELMo, and the hooks that use them."""

    def __init__(
        self, name: str, stored: StoredModel[Any], layer: str | int | list[float], *, hooks: bool
    ) -> None:
        if layer == "all":
            raise ValueError('layer is "all", but a token has one vector in spaCy. Use "concat".')
        self.name = name
        self.stored = stored
        self.layer, self.hooks = layer, hooks

    def __call__(self, doc: Doc) -> Doc:
        """Set the vectors of one document; a stream is faster, see `pipe`."""
        for processed in self.pipe([doc]):
            return processed
        return doc  # the error handler of the pipeline has dealt with it

    def pipe(self, stream: Iterable[Doc], *, batch_size: int = 128) -> Iterator[Doc]:
        """Set the vectors of a stream of documents, a batch of them at a time.

        Args:
            stream: The documents.
            batch_size: Documents that are read before they are embedded together.

        Yields:
            The documents, in order.

        """
        for docs in minibatch(stream, size=batch_size):
            try:
                tensors = self.embed(docs)
            except Exception as problem:
                self.get_error_handler()(self.name, self, docs, problem)
                continue
            for doc, tensor in zip(docs, tensors, strict=True):
                doc.tensor = tensor
                if self.hooks:
                    set_hooks(doc)
            yield from docs

    def embed(self, docs: Sequence[Doc]) -> list[Floats]:
        """Compute the vectors of documents without changing them.

        Args:
            docs: The documents.

        Returns:
            (T, H) of each.

        Raises:
            ValueError: If the model cannot be loaded or has no such layer.

        """
        elmo = self.stored.model
        readings = [read_doc(doc) for doc in docs]
        sentences = [sentence for reading in readings for sentence in reading.sentences]
        with raise_value_errors():
            plan = elmo.plan_embedding([], layer=self.layer)
            with elmo.track_counts() as counts:
                vectors = iter(elmo.embed_tokens(sentences, plan.spec, counts))
        size = plan.spec.empty(elmo.config.layers, elmo.config.size).shape[-1]
        return [reading.align([next(vectors) for _ in reading.sentences], size) for reading in readings]

    def to_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> None:
        """Write the model into the folder of the pipeline; spaCy calls this."""
        self.stored.to_disk(Path(path))

    def from_disk(self, path: str | Path, *, exclude: Iterable[str] = ()) -> VectorsComponent:
        """Load the model from the folder of the pipeline; spaCy calls this."""
        self.stored.from_disk(Path(path))
        return self

    def to_bytes(self, *, exclude: Iterable[str] = ()) -> bytes:
        """The model as bytes; spaCy calls this."""
        return self.stored.to_bytes()

    def from_bytes(self, data: bytes, *, exclude: Iterable[str] = ()) -> VectorsComponent:
        """Load the model from bytes; spaCy calls this."""
        self.stored.from_bytes(data)
        return self


def set_hooks(doc: Doc) -> Doc:
    """Let vectors and similarities of a document come from its doc.tensor.

    The component does this. Documents that were serialised (`nlp.pipe` with several processes, `DocBin`,
    `to_bytes`) keep doc.tensor but not the hooks.

    Args:
        doc: A document that the component `polyseme` has read.

    Returns:
        The same document.

    Raises:
        ValueError: If it has no vectors.

    Example:
        >>> docs = [set_hooks(doc) for doc in nlp.pipe(texts, n_process=2)]

    """
    if doc.tensor.ndim != 2 or len(doc.tensor) != len(doc):
        raise ValueError(
            "The document has no ELMo vectors. Run it through a pipeline with the component `polyseme` first."
        )
    token_hooks, doc_hooks = _make_hooks(doc.tensor.shape[1])
    doc.user_token_hooks.update(token_hooks)
    doc.user_hooks.update(doc_hooks)
    doc.user_span_hooks.update(doc_hooks)
    return doc


@cache
def _make_hooks(size: int) -> tuple[dict[str, Callable[..., Any]], dict[str, Callable[..., Any]]]:
    """The hooks of tokens, and those of documents and spans."""
    hooks = DocHooks(size)
    token_hooks = {"vector": hooks.get_token_vector, "has_vector": hooks.has_token_vector}
    doc_hooks = {"vector": hooks.average, "has_vector": hooks.has_vector}
    return token_hooks | {"similarity": hooks.compare}, doc_hooks | {"similarity": hooks.compare}


@dataclass(frozen=True)
class DocHooks:
    """Hooks over a doc.tensor of `size` columns; they hold no vectors, so documents stay cheap to pickle."""

    size: int  # H

    def get_token_vector(self, token: Token) -> Floats:
        """The vector of a token (H,); zeros for white space."""
        return self._get_rows(token.doc)[token.i]  # type: ignore[no-any-return]

    def has_token_vector(self, token: Token) -> bool:
        """Whether a token is a word."""
        return not token.is_space

    def has_vector(self, tokens: Doc | Span) -> bool:
        """Whether any token is a word."""
        return any(not token.is_space for token in tokens)

    def average(self, tokens: Doc | Span) -> Floats:
        """The mean of the vectors of all words (H,)."""
        positions = [token.i for token in tokens if not token.is_space]
        doc = tokens if isinstance(tokens, Doc) else tokens.doc
        if not positions:
            return np.zeros(self.size, np.float32)
        return self._get_rows(doc)[positions].mean(axis=0)  # type: ignore[no-any-return]

    def compare(self, item: Doc | Span | Token, other: Any) -> float:
        """The cosine of two vectors; 0 if one of them is zero.

        Raises:
            ValueError: If `other` has no vector of this model.

        """
        first, second = np.asarray(item.vector), np.asarray(other.vector)
        if first.shape != second.shape:
            raise ValueError(
                f"{other.text!r:.40} has a vector of {len(second)} values, expected {self.size}. Compare "
                "with documents, spans and tokens of the same pipeline; a lexeme has no ELMo vector."
            )
        norms = float(np.linalg.norm(first)) * float(np.linalg.norm(second))
        return float(first @ second) / norms if norms else 0.0

    def _get_rows(self, doc: Doc) -> Any:
        """doc.tensor, unless another component has replaced it."""
        if doc.tensor.ndim != 2 or doc.tensor.shape[1] != self.size:
            raise ValueError(
                f"doc.tensor has the shape {doc.tensor.shape}, expected {self.size} columns: a later "
                'component has replaced the ELMo vectors. Use `nlp.add_pipe("polyseme", last=True)`.'
            )
        return doc.tensor
