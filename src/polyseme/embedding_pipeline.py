"""Embed a stream of sentences while others are read and written: a pipeline of four threads.

    text.segment.stream  ->  groups of sentences  ->  embedding_pipeline  ->  bulk_embedding, api.embedding

The threads read and segment, encode tokens, run the stacks, and select and round the vectors; the caller
writes. Each thread uses one core, and the stacks of both directions run in parallel, so that a core that one
stage leaves idle is used by another.

What must not change: the vectors do not depend on the timing. Each stage sees all groups, in order, and the
token cache is filled by a single thread, so that the same words are encoded together each time.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import Any, NamedTuple, Protocol, TypeVar

from numpy.typing import NDArray

from polyseme.elmo import Elmo, EncodedBatch, TokenBatch
from polyseme.formats.vectors.writers import cast_vectors
from polyseme.io.read_ahead import read_ahead
from polyseme.model.fast.packing import BatchOutput
from polyseme.model.fast.parallel import use_one_core
from polyseme.model.output import OutputSpec


class SentenceGroup(Protocol):
    """Sentences that are embedded together."""

    @property
    def sentences(self) -> list[list[str]]:
        """The tokens of each."""

    @property
    def starts_cold(self) -> bool:
        """Whether to clear the token cache before this group."""


Group = TypeVar("Group", bound=SentenceGroup)


class PlainGroup(NamedTuple):
    """Sentences without further properties."""

    sentences: list[list[str]]
    starts_cold: bool = False


def embed_groups(
    elmo: Elmo, groups: Iterator[Group], spec: OutputSpec, dtype: str
) -> Generator[tuple[Group, list[NDArray[Any]]]]:
    """Embed groups of sentences, in order, ahead of the caller.

    Args:
        elmo: The model.
        groups: What to embed; read in another thread.
        spec: Which vectors.
        dtype: Their type, "float32" or "float16".

    Yields:
        Each group with the vectors of its sentences. Close the generator to stop early.

    Raises:
        UsageError: If a value does not fit float16.

    """
    encoded = read_ahead(_encode(elmo, read_ahead(groups)), initialise=use_one_core)
    outputs = read_ahead(_run_stacks(elmo, encoded), initialise=use_one_core)
    return read_ahead(_select(elmo, outputs, spec, dtype), initialise=use_one_core)


Encoded = tuple[Group, TokenBatch, EncodedBatch]
Computed = tuple[Group, TokenBatch, BatchOutput]


def _encode(elmo: Elmo, groups: Iterator[Group]) -> Iterator[Encoded[Group]]:
    """The batches of each group with their token vectors."""
    for group in groups:
        if group.starts_cold:
            elmo.cache.clear()
        for batch in elmo.batches(group.sentences):
            yield group, batch, elmo.encode_batch(batch.sentences)


def _run_stacks(elmo: Elmo, encoded: Iterator[Encoded[Group]]) -> Iterator[Computed[Group]]:
    for group, batch, vectors in encoded:
        yield group, batch, elmo.run_encoded(vectors)


def _select(
    elmo: Elmo, outputs: Iterator[Computed[Group]], spec: OutputSpec, dtype: str
) -> Iterator[tuple[Group, list[NDArray[Any]]]]:
    """Each group with its vectors, in the order of its sentences."""
    vectors: dict[int, NDArray[Any]] = {}
    for group, batch, output in outputs:
        arrays = elmo.select_vectors(batch.sentences, output, spec)
        vectors |= zip(batch.numbers, (cast_vectors(array, dtype) for array in arrays), strict=True)
        if len(vectors) == len(group.sentences):
            yield group, [vectors[number] for number in range(len(vectors))]
            vectors = {}
