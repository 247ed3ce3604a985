"""The door to an index: nearest words, usages in the same sense, similarity, analogies.

    search.build  ->  search.index  ->  search.senses, search.change, server, api

Opened through memory maps. U usages, H values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from polyseme.elmo import Elmo, load
from polyseme.errors import FormatError, UsageError
from polyseme.model.output import Layer, resolve_output
from polyseme.search import approximate, exact, statistics
from polyseme.search.similarity import UsageEncoder, make_encoder
from polyseme.search.space import uncorrected_space
from polyseme.search.usage_store import ADVICE, UsageBlock, block_path, read_head, write_head
from polyseme.text.fingerprint import digest
from polyseme.word_vectors import Keys

COMMON = 5  # usages: the mean of fewer says little about a word
BEHIND = 4.0  # taken from a cosine: after all others


@dataclass(frozen=True)
class Usage:
    """A usage that was found: the word, where it stands, how near it is."""

    number: int
    word: str
    cosine: float
    sentence: str
    start: int  # offsets of the word in the sentence
    stop: int
    document: str
    line: int

    def marked(self, left: str = "[", right: str = "]") -> str:
        """The sentence with the word marked."""
        text, start, stop = self.sentence, self.start, self.stop
        return f"{text[:start]}{left}{text[start:stop]}{right}{text[stop:]}"


class Index:
    """Every usage of a corpus. `polyseme.open_index(folder)` opens one."""

    def __init__(
        self,
        folder: Path,
        head: dict[str, Any],
        model: Elmo | str | Path | None = None,
        memory: int | None = None,
        corrected: bool = True,
    ) -> None:
        self.folder, self.head, self._memory = folder, head, memory
        self._model = model
        self._elmo: Elmo | None = None  # the model once it is known to be the right one
        self.blocks = [UsageBlock(block_path(folder, number)) for number in range(len(head["blocks"]))]
        for number, (block, noted) in enumerate(zip(self.blocks, head["blocks"], strict=True)):
            if len(block) != noted["usages"]:
                path, wanted = block_path(folder, number), noted["usages"]
                raise FormatError(f"{path}: {len(block)} usages, expected {wanted}. {ADVICE}")
        self.corrected = corrected
        self.space, self.words = statistics.read_space(folder, head), statistics.read_means(folder)
        self.lengths = statistics.read_lengths(folder, sum(map(len, self.blocks)))
        self._starts = np.cumsum([0, *map(len, self.blocks)])
        if not corrected:
            self.space, self.words = uncorrected_space(head["size"]), self.words.uncentred()
            self.lengths = self._lengths()
        self._graph: Any = None
        self._reader: UsageEncoder | None = None
        self._types: NDArray[np.float32] | None = None  # the words in the corrected space

    def __len__(self) -> int:
        return int(self._starts[-1])

    def __reduce__(self) -> tuple[Callable[..., Index], tuple[Any, ...]]:
        """Pickle as the path of the folder; the vectors stay on disk."""
        folder, model = str(self.folder.absolute()), self._model
        return _reopen_index, (folder, digest(self.head), model, self._memory, self.corrected)

    @property
    def anisotropy(self) -> statistics.Anisotropy | None:
        """The mean cosine of random pairs of usages, before and after the correction; None of old indexes."""
        noted = self.head.get("anisotropy")
        return None if noted is None else statistics.Anisotropy(noted["before"], noted["after"])

    @property
    def is_context_view(self) -> bool:
        """Whether a usage's vector is that of its place, not of the word that stands there."""
        return bool(self.head["view"] == "context")

    def check_layer(self, layer: Layer) -> None:
        """Refuse another layer than the one whose vectors the index holds."""
        own = self.head["layer"]
        if layer == own:
            return
        layers = self.elmo.config.layers
        if (
            resolve_output(layer, None, "both", layers).weights
            != resolve_output(own, None, "both", layers).weights
        ):
            wanted = layer if isinstance(layer, str | int) else "…"
            raise UsageError(
                f"{self.folder}: an index of layer {own}. For another layer make another index: "
                f"polyseme index MODEL TEXT --out DIR --layer {wanted}"
            )

    @property
    def elmo(self) -> Elmo:
        """The model of the index, loaded and compared at the first need; another one is refused."""
        if self._elmo is not None:
            return self._elmo
        if not isinstance(self._model, Elmo):
            name = self._model or self.head.get("name")
            if not name:
                raise UsageError(
                    f"{self.folder}: which model is it of? Say open_index(folder, model=…), --model."
                )
            self._model = load(name)
        if self._model.model.fingerprint() != self.head["model"]:
            raise UsageError(
                f"{self.folder}: an index of another model, or of one that was trained on since. Say which "
                "one it is of with --model (open_index(folder, model=…)), or build the index anew."
            )
        self._elmo = self._model
        return self._elmo

    def most_similar(
        self,
        positive: Keys = None,
        negative: Keys = None,
        topn: int | None = 10,
        clip_start: int = 0,
        clip_end: int | None = None,
        restrict_vocab: int | None = None,
        indexer: None = None,
        *,
        min_count: int = 1,
        min_chars: int = 1,
    ) -> Any:
        """Words nearest to the sum of `positive` less `negative`; see `WordVectors.most_similar`."""
        return self.words.most_similar(
            positive,
            negative,
            topn,
            clip_start,
            clip_end,
            restrict_vocab,
            indexer,
            min_count=min_count,
            min_chars=min_chars,
        )

    def doesnt_match(self, words: Sequence[str]) -> str:
        """The odd one out: the word farthest from the mean of all."""
        return self.words.odd_one_out(list(words))

    def similarity(self, one: str, other: str) -> float:
        """Cosine of two words."""
        return self.words.similarity(one, other)

    def vector(self, sentence: str, word: str, which: int | None = None) -> NDArray[np.float32]:
        """The vector of a word in a sentence, in the corrected space; `which` of several, from 1.

        [Brackets] around the word mark its place, too.
        """
        if f"[{word}]" in sentence and which is None:
            return self.reader.usage(sentence)
        tokens = self.reader.cut(sentence)
        places = [place for place, token in enumerate(tokens) if token == word]
        if not places:
            raise UsageError(
                f"{word!r} is not in the sentence, which is cut as: {' '.join(tokens)}. If it is cut "
                f"wrongly, mark the word: [{word}]."
            )
        if len(places) > 1 and which is None:
            raise UsageError(
                f"{word!r} stands {len(places)} times in the sentence: say which one with --which, from 1 to "
                f"{len(places)}, or mark it: [{word}]."
            )
        if which is not None and not 1 <= which <= len(places):
            raise UsageError(f"which is {which}, but {word!r} stands {len(places)} times in the sentence.")
        return self.vector_at(tokens, places[(which or 1) - 1])

    def vector_at(self, tokens: list[str], place: int) -> NDArray[np.float32]:
        """The vector of the token at a place of a sentence, in the corrected space."""
        vector: NDArray[np.float32] = self.space.to_directions(self.reader.read(tokens)[place][None])[0]
        return vector

    @property
    def reader(self) -> UsageEncoder:
        """The model as this index reads with it: its layer, its way to cut text, its space."""
        if self._reader is None:
            self._reader = make_encoder(
                self.elmo, self.head["layer"], self.space, self.head["segment"], places=self.is_context_view
            )
        return self._reader

    def similarity_of_usages(self, one: str, other: str) -> float:
        """Cosine of two usages: sentences with the word in [brackets]."""
        return float(self.reader.usage(one) @ self.reader.usage(other))

    def similarity_of_sentences(self, one: str, other: str) -> float:
        """Cosine of two sentences, each the mean of its tokens."""
        return float(self.reader.sentence(one) @ self.reader.sentence(other))

    def usages(
        self,
        word: str,
        sentence: str,
        k: int = 10,
        *,
        same_word: bool = False,
        which: int | None = None,
        approximate: bool = False,
    ) -> list[Usage]:
        """The usages that mean what `word` means in `sentence`: of any word, or of the same."""
        query = self.vector(sentence, word, which)
        return self.usages_near(query, k, word=word if same_word else None, approximate=approximate)

    def usages_near(
        self, query: NDArray[np.float32], k: int = 10, *, word: str | None = None, approximate: bool = False
    ) -> list[Usage]:
        """The usages nearest to a vector of the corrected space: of any word, or of `word` only."""
        if approximate and word is None:
            return self.approximate_nearest(query, k)
        keep = None
        if word is not None:
            keep = np.zeros(len(self), np.bool_)
            keep[self.usage_numbers(word)] = True
        return self.nearest(query, k, keep)

    def nearest(
        self, query: NDArray[np.float32], k: int = 10, keep: NDArray[np.bool_] | None = None
    ) -> list[Usage]:
        """The usages nearest to a vector of the corrected space."""
        if k < 1:
            raise UsageError(f"k is {k}, expected 1 or more.")
        if not np.isfinite(query).all():
            raise UsageError("The vector to look for has numbers that are not finite.")
        vectors = [block.vectors for block in self.blocks]
        ((numbers, cosines),) = exact.search(
            vectors, self.lengths, query[None], self.space, min(k, len(self)), keep, self._read
        )
        return [self.usage(int(n), float(c)) for n, c in zip(numbers, cosines, strict=True)]

    def approximate_nearest(self, query: NDArray[np.float32], k: int = 10) -> list[Usage]:
        """As `nearest`, by the graph: quicker, and now and then one is missed."""
        if k < 1:
            raise UsageError(f"k is {k}, expected 1 or more.")
        if not self.corrected:
            raise UsageError("The graph is of corrected vectors: approximate search needs the correction.")
        if self._graph is None:
            noted = self.head.get("graph")
            if noted is None or noted["usages"] != len(self):
                raise UsageError(
                    f"{self.folder}: no graph of all its usages. Build one: give the same polyseme index "
                    "command again, with --graph float16."
                )
            self._graph = approximate.open_graph(self.folder, noted, self.head["size"])
        numbers = approximate.find(self._graph, query, min(k, len(self)))
        cosines = self.vectors(numbers) @ query
        order = np.lexsort((numbers, -cosines))[:k]
        return [self.usage(int(numbers[row]), float(cosines[row])) for row in order]

    def add_graph(
        self,
        dtype: Literal["float16", "int8"] = "float16",
        watch: Callable[[float], None] | None = None,
    ) -> None:
        """Build the graph for approximate search, and note it in the index."""
        self.head["graph"] = approximate.build_graph(self, dtype, watch)
        write_head(self.folder, self.head)
        self._graph = None

    def usage(self, number: int, cosine: float = 1.0) -> Usage:
        """The usage of a number from 0."""
        block = int(np.searchsorted(self._starts, number, side="right")) - 1
        row = number - int(self._starts[block])
        stored = self.blocks[block].read(row, self.head["documents"])
        return Usage(number, stored.word, cosine, *stored[1:])

    def usage_numbers(self, word: str) -> NDArray[np.int64]:
        """The numbers of all usages of a word; a KeyError with near spellings where there is none."""
        self.words.count(word)
        found = []
        for start, block in zip(self._starts, self.blocks, strict=False):
            if word in block.types:
                found.append(start + np.flatnonzero(block.words == block.types.index(word)))
        return np.concatenate(found)

    def vectors(self, numbers: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors of usages, in the corrected space (n, H), of length 1."""
        return self.space.to_directions(self.raw_vectors(numbers))

    def raw_vectors(self, numbers: NDArray[np.int64]) -> NDArray[np.float32]:
        """The vectors of usages as the model gave them (n, H)."""
        found = np.empty((len(numbers), self.head["size"]), np.float32)
        owners = np.searchsorted(self._starts, numbers, side="right") - 1
        for number, block in enumerate(self.blocks):
            own = owners == number
            if own.any():
                found[own] = block.vectors[numbers[own] - self._starts[number]]
                self._read(number)
                if not np.isfinite(found[own]).all():
                    raise FormatError(f"{block.path}: damaged: vectors that are not finite. {ADVICE}")
        return found

    def _lengths(self) -> NDArray[np.float32]:
        """The lengths of all vectors in the space, from the blocks."""
        found = []
        for number, block in enumerate(self.blocks):
            found.append(statistics.measure_lengths(self.space, [block.vectors]))
            self._read(number)
        return np.concatenate(found)

    def _read(self, number: int) -> None:
        """A block has been read: what is beyond the limit of memory is given back."""
        row = self.head["size"] * self.blocks[number].vectors.itemsize
        if self._memory is not None and int(self._starts[number + 1]) * row > self._memory:
            self.blocks[number].release()

    def documents(self, numbers: NDArray[np.int64]) -> list[str]:
        """The document of each of these usages."""
        names, found = self.head["documents"], np.zeros(len(numbers), np.int64)
        owners = np.searchsorted(self._starts, numbers, side="right") - 1
        for number, block in enumerate(self.blocks):
            own = owners == number
            if own.any():
                found[own] = block.documents_of(numbers[own] - self._starts[number])
        return [self.blocks[0].named(int(row), names) for row in found]

    def nearest_words(
        self, centres: NDArray[np.float32], k: int, *, without: str | None = None
    ) -> list[list[str]]:
        """For each direction of the corrected space the words whose means lie nearest; rare ones at need."""
        if self._types is None:
            self._types = self.space.to_directions(self.words.vectors)
        rare = self.words.counts < COMMON
        if rare.sum() > len(rare) - k - 1:
            rare[:] = False
        found = []
        for scores in centres @ self._types.T - BEHIND * rare:
            best = np.argpartition(-scores, min(k, len(scores) - 1))[: k + 1]
            names = (self.words.words[row] for row in best[np.lexsort((best, -scores[best]))])
            found.append(list(islice((name for name in names if name != without), k)))
        return found


def open_index(
    folder: str | Path,
    model: Elmo | str | Path | None = None,
    *,
    memory: int | None = None,
    corrected: bool = True,
) -> Index:
    """Open an index.

    model: its ELMo, where that is not to be found any more.
    memory: bytes of vectors that may stay in memory, a block more while it is read; all of them if left out.
    corrected: False for cosines of the vectors as the model gives them, which reads them all once.
    """
    if memory is not None and memory < 0:
        raise UsageError(f"memory is {memory}, expected 0 or more bytes.")
    place = Path(folder).expanduser()
    head = read_head(place)
    if head.get("finished") != len(head.get("blocks", ())):
        raise FormatError(f"{place}: not finished. Build it with the same command again: it goes on.")
    return Index(place, head, model, memory, corrected)


def _reopen_index(
    folder: str, head: str, model: Elmo | str | Path | None, memory: int | None, corrected: bool
) -> Index:
    """Open an index that was pickled as its path."""
    index = open_index(folder, model, memory=memory, corrected=corrected)
    if digest(index.head) != head:
        raise FormatError(
            f"{folder}: not the index that was pickled; it was built anew since. Open it again."
        )
    return index


def is_index(path: str | Path) -> bool:
    """Whether a folder holds an index."""
    return (Path(path).expanduser() / "index.json").is_file()
