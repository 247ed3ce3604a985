"""Open an index and search it: nearest words and usages, similarity, analogies.

    search.build (INDEX/)  ->  search.index  ->  search.senses, search.change, search.maps, server, api

Vectors stay on disk and are read through memory maps. U usages, H values. The corrected space is the one in
which cosines are taken: see search.space.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from copy import copy
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from polyseme.choices import GraphDtype
from polyseme.elmo import Elmo, ensure_loaded
from polyseme.errors import FormatError, UnknownWordError, UsageError
from polyseme.formats.vectors.word_file import LARGEST
from polyseme.io.html import Cell, Highlight, render_table
from polyseme.io.progress import ProgressOption, open_progress
from polyseme.io.result_list import ResultList
from polyseme.model.output import Layer, resolve_output
from polyseme.search import approximate, exact, statistics
from polyseme.search.selection import Documents, group_documents, select_documents, sort_groups
from polyseme.search.similarity import UsageEncoder, make_encoder
from polyseme.search.space import make_uncorrected_space
from polyseme.search.usage_store import (
    ADVICE,
    UsageBlock,
    get_block_path,
    list_documents,
    read_head,
    write_head,
)
from polyseme.search.usual_cosines import UsualCosines, measure_usual_cosines
from polyseme.text.brackets import WordInSentence, locate_word
from polyseme.text.fingerprint import digest
from polyseme.text.validate import check_path
from polyseme.word_vectors import Keys, WordVectors

if TYPE_CHECKING:
    from polyseme.search.contexts import ContextReader, SortedUsages

Array = NDArray[np.float32]
Numbers = NDArray[np.int64]
CACHED_DOCUMENTS = 20_000_000  # usages whose documents stay in memory, four bytes each
COMMON_COUNT = 5  # usages: the mean of fewer says little about a word
RARE_PENALTY = 4.0  # subtracted from a cosine, so that rare words come after all others


@dataclass(frozen=True)
class Usage:
    """One occurrence of a word in an indexed corpus.

    Attributes:
        number: Its number in the index, from 0.
        word: The word.
        cosine: The cosine to what was searched for; 1 if nothing was.
        sentence: The sentence it occurs in.
        start: Offset of the word in the sentence.
        stop: Offset of the end of the word.
        document: The file.
        line: The line of the file, from 1; of HTML and EPUB, of the extracted text.
        title: The title of the chapter or part of the file; "" if there is none.

    """

    number: int
    word: str
    cosine: float
    sentence: str
    start: int
    stop: int
    document: str
    line: int
    title: str = ""

    @property
    def location(self) -> str:
        """Where it is in the corpus: document:line."""
        return f"{self.document}:{self.line}"

    def marked(self, left: str = "[", right: str = "]") -> str:
        """Return the sentence with the word between `left` and `right`."""
        text, start, stop = self.sentence, self.start, self.stop
        return f"{text[:start]}{left}{text[start:stop]}{right}{text[stop:]}"

    def as_row(self) -> dict[str, Cell]:
        """Return the cells of a table."""
        text, start, stop = self.sentence, self.start, self.stop
        return {
            "cosine": self.cosine,
            "usage": Highlight(text[:start], text[start:stop], text[stop:]),
            "location": f"{Path(self.document).name}:{self.line}",
        }


class Index:
    """Every usage of every word of a corpus, with its contextual vector.

    `polyseme.open_index(folder)` opens one, `polyseme.index(model, texts, out)` builds one. An index pickles
    as its path: another process opens the same files.

    Attributes:
        folder: The folder on disk.
        head: What index.json says: model, layer, view, segmentation, documents, blocks.
        words: The mean vector of every word, as `WordVectors`; of a part, those of its usages.
        space: The correction of the vectors before cosines are taken.
        blocks: The files of usages.
        lengths: (U,) the length of every vector in the corrected space.

    Example:
        >>> index = polyseme.open_index("sanguo-index")
        >>> index.most_similar("曹操", topn=3)
        >>> index.usages("将", "天色 将 晚", k=5)

    """

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
        self._elmo: Elmo | None = None  # loaded and checked on first use
        self.blocks = [UsageBlock(get_block_path(folder, number)) for number in range(len(head["blocks"]))]
        for number, (block, entry) in enumerate(zip(self.blocks, head["blocks"], strict=True)):
            if len(block) != entry["usages"]:
                path, expected = get_block_path(folder, number), entry["usages"]
                raise FormatError(f"{path}: {len(block)} usages, expected {expected}. {ADVICE}")
            if block.vectors.shape[1] != head["size"]:
                width = block.vectors.shape[1]
                raise FormatError(
                    f"{block.path}: vectors of {width} values, expected {head['size']}. {ADVICE}"
                )
        self.corrected = corrected
        self.listed_documents = list_documents(head)
        self.space = statistics.read_space(folder, head)
        self._words: WordVectors | None = statistics.read_means(folder, head["size"])
        self._documents_of_usages: NDArray[np.int32] | None = None
        self._counts: dict[str, int] | None = None  # of a part, once they are needed
        self._sorted_usages: SortedUsages | None = None  # see `sort_usages`
        self._whole: Index | None = None  # of a part: the index that it is a part of, see `restrict`
        self._selection: Documents | None = None
        self._keep: NDArray[np.bool_] | None = None  # (U,) the usages of a part
        self.lengths = statistics.read_lengths(folder, sum(map(len, self.blocks)))
        self._starts = np.cumsum([0, *map(len, self.blocks)])
        if not corrected:
            self.space, self._words = make_uncorrected_space(head["size"]), self.words.uncentred()
            self.lengths = self._measure_lengths()
        self._graph: Any = None
        self._encoder: UsageEncoder | None = None

    def __len__(self) -> int:
        return int(self._starts[-1]) if self._keep is None else int(self._keep.sum())

    def __repr__(self) -> str:
        if self._selection is not None:
            return f"Index({str(self.folder)!r}, documents={self._selection!r}, {len(self):,} usages)"
        return f"Index({str(self.folder)!r}, {len(self):,} usages, {len(self.words):,} words)"

    @property
    def words(self) -> WordVectors:
        """The mean vector of every word; those of a part are computed on first use."""
        if self._words is None:
            means = statistics.average_usages(self.blocks, centred=False, keep=self._keep)
            self._words = WordVectors(means.words, means.counts, means.vectors, self.whole.words.centre)
        return self._words

    def to_gensim(self, *, uncorrected: bool = False) -> Any:
        """Return the mean vector of every word as gensim's KeyedVectors; see `WordVectors.to_gensim`.

        Args:
            uncorrected: As in `WordVectors.to_gensim`.

        Returns:
            A `gensim.models.KeyedVectors`.

        Raises:
            MissingExtraError: gensim is not installed.

        Example:
            >>> polyseme.open_index("books-index").to_gensim().most_similar("bank")

        """
        return self.words.to_gensim(uncorrected=uncorrected)

    @property
    def whole(self) -> Index:
        """The index that this one is a part of; itself if it is whole."""
        return self if self._whole is None else self._whole

    @property
    def label(self) -> str:
        """The name of the folder, and the documents of a part."""
        return self.folder.name if self._selection is None else f"{self.folder.name} {self._selection}"

    @property
    def selection(self) -> Documents | None:
        """The documents of a part, as `restrict` was called; None if this index is whole."""
        return self._selection

    @property
    def kept(self) -> NDArray[np.bool_] | None:
        """Which of all usages (U,) belong to this part; None if this index is whole."""
        return self._keep

    def restrict(self, documents: Documents) -> Index:
        """Return the part of this index that some of its documents are.

        Args:
            documents: Numbers (`3`, `"1-20"`), titles or parts of them, or conditions on metadata
                (`"year=1900-1950"`), separated by commas or in a list.

        Returns:
            An index whose usages and words are those of the documents; it shares the files and the space.

        Raises:
            UsageError: No document fits.

        Example:
            >>> index.restrict("1-60").words.nearest("曹操")
            >>> index.restrict("year=1861-1865")

        """
        if self._keep is not None:
            raise UsageError("This index is restricted already. Restrict the whole index.")
        part = copy(self)
        chosen = select_documents(self.listed_documents, documents)
        part._whole, part._selection, part._words, part._counts = self, documents, None, None
        part._keep = chosen[self._usage_documents()]
        return part

    def split(self, by: str) -> dict[str, Index]:
        """Return the parts of this index by a field of the metadata of its documents.

        Args:
            by: "document", a field such as "year", or a field and a width: "year/10" for decades.

        Returns:
            The parts by their names, in order; documents without the field are left out.

        Raises:
            UsageError: No document has the field.

        Example:
            >>> {period: part.count("war") for period, part in index.split("year/50").items()}

        """
        groups = group_documents(self.listed_documents, by)
        rows = self.whole._usage_documents()
        parts = {}
        for name in sort_groups([group for group in groups if group is not None]):
            part = copy(self)
            keep = np.array([group == name for group in groups])[rows]
            if self._keep is not None:
                keep &= self._keep
            part._whole, part._selection, part._keep = self.whole, name, keep
            part._words = part._counts = None
            if keep.any():
                parts[name] = part
        return parts

    def words_with(self, *words: str) -> WordVectors:
        """Return word vectors in which some words have the mean of their usages in this part.

        The other words are those of the part, with their usages in it counted, and their vectors in the whole
        index, which rest on more usages. Of a whole index these are its `words`.

        Args:
            words: The words whose usages in this part are averaged.

        Returns:
            The word vectors.

        Raises:
            UnknownWordError: A word has no usages in the part.

        """
        if self._keep is None:
            return self.words
        means = [self.raw_vectors(self.usage_numbers(word)).mean(axis=0) for word in words]
        counts, whole = self.counts(), self.whole.words
        rows = [whole.row(word) for word in counts]
        vectors = whole.vectors[rows]
        position = {word: row for row, word in enumerate(counts)}
        for word, mean in zip(words, means, strict=True):
            vectors[position[word]] = mean
        return WordVectors(tuple(counts), np.array([*counts.values()], np.int64), vectors, whole.centre)

    def groups(self, numbers: Numbers, by: str | None = None) -> list[str]:
        """Return the group of each of these usages.

        Args:
            numbers: Numbers of usages.
            by: A field of the metadata, such as "year" or "year/10"; None groups by document.

        Returns:
            One name per usage; "" for documents without the field.

        Raises:
            UsageError: No document has the field.

        """
        if by is None:
            return self.documents(numbers)
        names = group_documents(self.listed_documents, by)
        return [names[number] or "" for number in self.document_numbers(numbers)]

    def document_numbers(self, numbers: Numbers) -> NDArray[np.int32]:
        """Return the document of each of these usages.

        Args:
            numbers: Numbers of usages.

        Returns:
            Positions in `listed_documents`.

        Raises:
            FormatError: The index is damaged.

        """
        documents = np.zeros(len(numbers), np.int32)
        for number, block, chosen in self._group_by_block(numbers):
            documents[chosen] = block.document_numbers(numbers[chosen] - self._starts[number])
        if len(documents) and not 0 <= documents.min() <= documents.max() < len(self.listed_documents):
            raise FormatError(f"{self.folder}: damaged: a document is not listed. {ADVICE}")
        return documents

    def document_sizes(self) -> Numbers:
        """Return how many usages each document has.

        Returns:
            The counts, in the order of `listed_documents`; in a part 0 for documents that are not in it.

        Raises:
            FormatError: The index is damaged.

        """
        if self._keep is None:
            return self._document_sizes
        kept = self.whole._usage_documents()[self._keep]
        return np.bincount(kept, minlength=len(self.listed_documents))

    @cached_property
    def _document_sizes(self) -> Numbers:
        return np.bincount(self._usage_documents(), minlength=len(self.listed_documents))

    def _usage_documents(self) -> NDArray[np.int32]:
        """The documents of all usages (U,), kept for the next part unless they are very many."""
        if self._documents_of_usages is not None:
            return self._documents_of_usages
        numbers = self.document_numbers(np.arange(int(self._starts[-1])))
        if len(numbers) <= CACHED_DOCUMENTS:
            self._documents_of_usages = numbers
        return numbers

    def counts(self) -> dict[str, int]:
        """Return how many usages each word has.

        Returns:
            The counts by word, the most frequent word first.

        """
        if self._keep is None:
            return self.words.counts_by_word()
        if self._counts is None:
            counts, words = self.context_reader.count_words(self._keep), self.whole.words.words
            order = np.argsort(-counts, kind="stable")[: int((counts > 0).sum())]
            names = map(words.__getitem__, order.tolist())
            self._counts = dict(zip(names, counts[order].tolist(), strict=True))
        return self._counts

    def count(self, word: str) -> int:
        """Return how many usages a word has.

        Args:
            word: The word.

        Returns:
            The number of usages.

        Raises:
            UnknownWordError: The index has no usage of the word.

        Example:
            >>> index.count("曹操")

        """
        return self.words.count(word) if self._keep is None else len(self.usage_numbers(word))

    def _repr_html_(self) -> str:
        rows: list[tuple[Cell, ...]] = [
            ("usages", f"{len(self):,}"),
            ("words", f"{len(self.words):,}"),
            ("documents", f"{len(set(map(itemgetter(0, 1), self.listed_documents))):,}"),
            ("model", self.head.get("name") or "not named"),
            ("layer", str(self.head["layer"])),
            ("view", self.head["view"]),
            ("space", self.space.kind),
        ]
        if self.anisotropy is not None:
            before, after = self.anisotropy
            rows.append(("mean cosine of random usages", f"{before:.3f}, corrected {after:.3f}"))
        return render_table(["index", str(self.folder)], rows)

    def __reduce__(self) -> tuple[Callable[..., Index], tuple[Any, ...]]:
        """Pickle as the path of the folder; the vectors stay on disk."""
        folder, model = str(self.folder.absolute()), self._model
        if isinstance(model, str | Path) and Path(model).exists():
            model = str(Path(model).absolute())
        options = (model, self._memory, self.corrected, self._selection)
        return _reopen_index, (folder, digest(self.head), *options)

    def __copy__(self) -> Index:
        """Share the open files, and what was computed of them; `__reduce__` would open them again."""
        made = object.__new__(type(self))
        made.__dict__.update(self.__dict__)
        return made

    @property
    def anisotropy(self) -> statistics.Anisotropy | None:
        """The mean cosine of random usages, before and after the correction; None in very old indexes."""
        values = self.head.get("anisotropy")
        return None if values is None else statistics.Anisotropy(values["before"], values["after"])

    @property
    def block_starts(self) -> Numbers:
        """The number of the first usage of each block, and of all usages at the end."""
        return self._starts

    @cached_property
    def word_directions(self) -> Array:
        """The directions (V, H) of the mean vectors of all words of the whole index, corrected."""
        if self._whole is not None:
            return self._whole.word_directions
        return self.space.to_directions(self.words.vectors)

    @cached_property
    def context_reader(self) -> ContextReader:
        """What reads the words around usages; parts share that of the whole index."""
        if self._whole is not None:
            return self._whole.context_reader
        from polyseme.search.contexts import ContextReader  # it imports this module

        return ContextReader(self)

    @cached_property
    def usual_cosines(self) -> UsualCosines | None:
        """What cosines pairs of usages of the whole index have; None if it is too small to say."""
        return self.whole.usual_cosines if self._whole is not None else measure_usual_cosines(self)

    @property
    def is_context_view(self) -> bool:
        """Whether vectors represent the context of a word, without the word itself."""
        return bool(self.head["view"] == "context")

    def check_layer(self, layer: Layer) -> None:
        """Refuse a layer other than the one stored in the index.

        Args:
            layer: A layer as in `polyseme.index`.

        Raises:
            UsageError: The index stores the vectors of another layer.

        """
        stored = self.head["layer"]
        if layer == stored:
            return
        layers = self.elmo.config.layers
        wanted_weights = resolve_output(layer, None, "both", layers).weights
        if wanted_weights != resolve_output(stored, None, "both", layers).weights:
            shown = repr(layer) if isinstance(layer, str | int) else "…"
            raise UsageError(
                f"{self.folder}: an index of layer {stored}. Build one of the other layer: "
                f"`polyseme.index(model, text, out, layer={shown})`."
            )

    @property
    def elmo(self) -> Elmo:
        """The model of the index, loaded on first use.

        Raises:
            UsageError: The model is not known, or not the one that the index was built with.

        """
        if self._elmo is not None:
            return self._elmo
        model = self._model or self.head.get("name")
        if not model:
            raise UsageError(f"{self.folder}: the model of this index is not known. Name it with `model=…`.")
        elmo = ensure_loaded(model)
        if elmo.model.fingerprint() != self.head["model"]:
            raise UsageError(
                f"{self.folder}: an index of another model, or of this one before it was trained further. "
                "Name the right one with `model=…`, or build the index again."
            )
        self._elmo = elmo
        return elmo

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
        """Find the words nearest to the sum of `positive` minus `negative`, as gensim's KeyedVectors does.

        Args:
            positive: As in `WordVectors.most_similar`, like all other arguments.
            negative: Words or vectors to subtract.
            topn: How many words to return.
            clip_start: Skip this many of the most frequent words.
            clip_end: Stop at this many of the most frequent words.
            restrict_vocab: Only this many of the most frequent words.
            indexer: Must be None; the search is exact.
            min_count: Only words with at least this many usages.
            min_chars: Only words with at least this many characters.

        Returns:
            A list of (word, cosine), best first; an array of cosines if `topn` is None.

        Raises:
            UnknownWordError: A word has no usages.
            UsageError: No word was passed, or `indexer` was.

        Example:
            >>> index.most_similar(positive=["刘备", "大怒"], negative=["曹操"], topn=3)

        """
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
        """Return the odd one out of three or more words, as gensim does.

        Args:
            words: The words.

        Returns:
            The word farthest from their mean; see `WordVectors.odd_one_out`.

        Raises:
            UnknownWordError: A word has no usages.
            UsageError: Fewer than three words.

        """
        return self.words.odd_one_out(list(words))

    def similarity(self, first: str, second: str) -> float:
        """Return the cosine of two words.

        Args:
            first: A word.
            second: Another word.

        Returns:
            The cosine of their mean vectors in the corrected space.

        Raises:
            UnknownWordError: A word has no usages.

        Example:
            >>> index.similarity("曹操", "刘备")

        """
        return self.words.similarity(first, second)

    def similarity_of_usages(self, first: str, second: str) -> float:
        """Return the cosine of two usages.

        Args:
            first: A sentence with the word in [brackets].
            second: Another one.

        Returns:
            The cosine of the two words in their sentences.

        Raises:
            UsageError: A sentence has no word in brackets.

        Example:
            >>> index.similarity_of_usages("the [bank] of the river", "the [bank] failed")

        """
        return float(self.encoder.encode_usage(first) @ self.encoder.encode_usage(second))

    def similarity_of_sentences(self, first: str, second: str) -> float:
        """Return the cosine of two sentences.

        Args:
            first: A sentence.
            second: Another one.

        Returns:
            The cosine of the means of their tokens.

        Raises:
            UsageError: A sentence has no words.

        """
        return float(self.encoder.encode_sentence(first) @ self.encoder.encode_sentence(second))

    @property
    def encoder(self) -> UsageEncoder:
        """Turns text into directions with the index's model, layer, segmentation and space."""
        if self._encoder is None:
            elmo = self.elmo  # refuses another model
            try:
                self._encoder = make_encoder(
                    elmo,
                    self.head["layer"],
                    self.space,
                    self.head["segment"],
                    context=self.is_context_view,
                )
            except UsageError as problem:  # a layer that its model does not have
                raise FormatError(f"{self.folder}: damaged: {problem} {ADVICE}") from None
        return self._encoder

    def query_vector(
        self,
        word: str,
        sentence: str | Sequence[str],
        which: int | None = None,
        position: int | None = None,
    ) -> Array:
        """Return the direction of a word in a sentence, in the corrected space: what a search is made with.

        It fits `nearest`, and the vectors of the usages that `polyseme.export` writes to a store.

        Args:
            word: The word.
            sentence: The sentence, in which [brackets] may mark the word; or its tokens.
            which: If the word occurs several times: which one, from 1.
            position: With tokens: the position of the word, from 0.

        Returns:
            The direction (H,), of length 1, as `nearest` takes it.

        Raises:
            UsageError: The word is not in the sentence, or it is not clear which one is meant.

        Example:
            >>> index.nearest(index.query_vector("bank", "He sat on the river bank ."), k=3)

        """
        return self.encoder.encode_token(*self.locate(word, sentence, which=which, position=position))

    def locate(
        self,
        word: str,
        sentence: str | Sequence[str],
        *,
        which: int | None = None,
        position: int | None = None,
    ) -> WordInSentence:
        """Split a sentence as the index was split, and find a word in it.

        Args:
            word: The word.
            sentence: As in `query_vector`.
            which: As in `query_vector`.
            position: As in `query_vector`.

        Returns:
            The tokens, and the position of the word among them.

        Raises:
            UsageError: As in `query_vector`.

        """
        return locate_word(word, sentence, self.encoder.segment, which=which, position=position)

    def usages(
        self,
        word: str,
        sentence: str | Sequence[str],
        k: int = 10,
        *,
        same_word: bool = False,
        which: int | None = None,
        position: int | None = None,
        approximate: bool = False,
    ) -> ResultList[Usage]:
        """Find the usages nearest in meaning to a word in a sentence.

        Args:
            word: The word.
            sentence: The sentence it is used in, in which [brackets] may mark the word; or its tokens.
            k: How many usages to return.
            same_word: Only usages of the same word.
            which: If the word occurs several times in the sentence: which one, from 1.
            position: With tokens: the position of the word, from 0.
            approximate: Search the graph, which is faster and may miss some; see `add_graph`.

        Returns:
            The usages, nearest first.

        Raises:
            UsageError: The word is not in the sentence, `k` is less than 1, or there is no graph.
            UnknownWordError: `same_word` is True and the word has no usages.

        Example:
            >>> for usage in index.usages("bank", "He sat on the river bank .", 3):
            ...     print(usage.cosine, usage.location, usage.marked())

        """
        query = self.query_vector(word, sentence, which, position)
        return self.nearest(query, k, word=word if same_word else None, approximate=approximate)

    def nearest(
        self,
        query: Array,
        k: int = 10,
        *,
        word: str | None = None,
        approximate: bool = False,
        keep: NDArray[np.bool_] | None = None,
    ) -> ResultList[Usage]:
        """Find the usages nearest to a direction of the corrected space.

        Args:
            query: The direction (H,), as `query_vector` or `vectors` return it.
            k: How many usages to return.
            word: Only usages of this word; this search is always exact.
            approximate: Search the graph, which is faster and may miss some; see `add_graph`.
            keep: (U,) only these usages; this search is always exact.

        Returns:
            The usages, nearest first.

        Raises:
            UsageError: `k` is less than 1, `query` is not a finite vector (H,), or there is no graph.
            UnknownWordError: `word` has no usages.

        """
        if word is not None:
            keep = np.zeros(int(self._starts[-1]), np.bool_)
            keep[self.usage_numbers(word)] = True
        elif self._keep is not None:
            keep = self._keep if keep is None else keep & self._keep
        if approximate and keep is None:
            return self.approximate_nearest(query, k)
        _check_k(k)
        query = self._check_query(query)
        vectors = [block.vectors for block in self.blocks]
        ((numbers, cosines),) = exact.find_nearest(
            vectors, self.lengths, query[None], self.space, min(k, len(self)), keep, self._release
        )
        return self._list_usages(numbers, cosines)

    def approximate_nearest(self, query: Array, k: int = 10) -> ResultList[Usage]:
        """Find usages by the graph: faster than `nearest`, and now and then one is missed.

        Args:
            query: The direction (H,), as `query_vector` or `vectors` return it.
            k: How many usages to return.

        Returns:
            The usages, nearest first.

        Raises:
            UsageError: There is no graph of all usages (see `add_graph`), or `k` is less than 1.

        """
        _check_k(k)
        query = self._check_query(query)
        if not self.corrected:
            raise UsageError("The graph holds corrected vectors, but this index was opened uncorrected.")
        if self._graph is None:
            entry = self.head.get("graph")
            if entry is None or entry["usages"] != len(self):
                raise UsageError(
                    f"{self.folder}: no graph of all its usages. Build one: call "
                    "`polyseme.index(model, text, out, graph='float16')` with the same arguments as before."
                )
            self._graph = approximate.open_graph(self.folder, entry, self.head["size"], int(self._starts[-1]))
        numbers = approximate.find_candidates(self._graph, query, min(k, len(self)))
        cosines = self.vectors(numbers) @ query
        order = np.lexsort((numbers, -cosines))[:k]
        return self._list_usages(numbers[order], cosines[order])

    def add_graph(self, dtype: GraphDtype = "float16", progress: ProgressOption = None) -> None:
        """Build the graph for approximate search, and record it in the index.

        Args:
            dtype: Type of the vectors in the graph: "float16" or "int8".
            progress: None shows a bar on a terminal or in a notebook, True always, False never; a function
                receives every `ProgressEvent`.

        Raises:
            MissingExtraError: usearch is not installed.

        Example:
            >>> index.add_graph()
            >>> index.usages("bank", "He sat on the river bank .", approximate=True)

        """
        with open_progress(progress) as on_progress:
            self.head["graph"] = approximate.build_graph(self, dtype, on_progress)
        write_head(self.folder, self.head)
        self._graph = None

    def usage(self, number: int, cosine: float = 1.0) -> Usage:
        """Return the usage with a number.

        Args:
            number: The number, from 0.
            cosine: The cosine to report with it.

        Returns:
            The usage with its sentence and location.

        """
        block = int(np.searchsorted(self._starts, number, side="right")) - 1
        row = number - int(self._starts[block])
        stored = self.blocks[block].read(row, self.listed_documents)
        return Usage(number, stored.word, cosine, *stored[1:])

    def _check_query(self, query: Array) -> Array:
        """The query as an array; raises UsageError if it is not one finite vector of the index's size."""
        if isinstance(query, str):
            raise UsageError(
                f"nearest takes a vector, not the word {query!r}. For the nearest words call "
                f"`index.words.nearest({query!r})`; for usages with the same meaning, "
                f"`index.usages({query!r}, sentence)`."
            )
        array, size = np.asarray(query), self.head["size"]
        if array.shape != (size,) or array.dtype.kind not in "fiu":
            raise UsageError(
                f"A query is one vector of {size} numbers, as `index.vector` returns it, "
                f"not {array.dtype} of shape {array.shape}."
            )
        if not np.isfinite(array).all():
            raise UsageError("The query vector has values that are not finite.")
        return array

    def _list_usages(self, numbers: Numbers, cosines: Array) -> ResultList[Usage]:
        return ResultList(self.usage(int(n), float(c)) for n, c in zip(numbers, cosines, strict=True))

    def usage_numbers(self, word: str) -> Numbers:
        """Return the numbers of all usages of a word.

        Args:
            word: The word.

        Returns:
            The numbers, ascending.

        Raises:
            UnknownWordError: The word has no usages; the message suggests similar spellings.

        """
        row = self.whole.words.row(word)  # raises the error
        if self.whole._sorted_usages is not None:
            usages: Numbers = self.whole._sorted_usages.find(row)
        else:
            numbers = []
            for start, block in zip(self._starts, self.blocks, strict=False):
                if word in block.types:
                    numbers.append(start + np.flatnonzero(block.words == block.types.index(word)))
            usages = np.concatenate(numbers)
        if self._keep is not None:
            usages = usages[self._keep[usages]]
            if not len(usages):
                raise UnknownWordError(f"{word!r:.60} has no usages in the documents {self._selection!r}.")
        return usages

    def sort_usages(self) -> None:
        """Keep the usages of each word together in memory, four bytes each.

        `usage_numbers` then takes microseconds instead of reading the words of all usages, which pays after
        some hundred words: for a server, which calls this when it starts.

        """
        if self.whole._sorted_usages is None and len(self.whole) <= CACHED_DOCUMENTS:
            self.whole._sorted_usages = self.context_reader.sort_usages()

    def vectors(self, numbers: Numbers) -> Array:
        """Return the directions of usages in the corrected space.

        Args:
            numbers: Numbers of usages, n of them.

        Returns:
            The directions (n, H), of length 1.

        Raises:
            FormatError: The index is damaged.

        Example:
            >>> index.vectors(index.usage_numbers("曹操")).mean(axis=0)

        """
        return self.space.to_directions(self.raw_vectors(numbers))

    def raw_vectors(self, numbers: Numbers) -> Array:
        """Return the vectors of usages as the model computed them.

        Args:
            numbers: Numbers of usages, n of them.

        Returns:
            The vectors (n, H).

        Raises:
            FormatError: The index is damaged.

        """
        vectors = np.empty((len(numbers), self.head["size"]), np.float32)
        for number, block, chosen in self._group_by_block(numbers):
            vectors[chosen] = block.vectors[numbers[chosen] - self._starts[number]]
            self._release(number)
            if not np.abs(vectors[chosen]).max(initial=0) < LARGEST:  # not of NaN, either
                raise FormatError(f"{block.path}: damaged: vectors that are not finite. {ADVICE}")
        return vectors

    def documents(self, numbers: Numbers) -> list[str]:
        """Return the document of each of these usages.

        Args:
            numbers: Numbers of usages.

        Returns:
            One name per usage: the title of the document, else its file.

        """
        listed = self.listed_documents
        return [listed[number].title or listed[number].file for number in self.document_numbers(numbers)]

    def _group_by_block(self, numbers: Numbers) -> Iterator[tuple[int, UsageBlock, NDArray[np.bool_]]]:
        """Every block with some of these usages: its number, itself, and which of the usages it holds."""
        owners = np.searchsorted(self._starts, numbers, side="right") - 1
        for number, block in enumerate(self.blocks):
            chosen = owners == number
            if chosen.any():
                yield number, block, chosen

    def _measure_lengths(self) -> Array:
        """The lengths of all vectors in the space, from the blocks."""
        lengths = []
        for number, block in enumerate(self.blocks):
            lengths.append(statistics.measure_lengths(self.space, [block.vectors]))
            self._release(number)
        return np.concatenate(lengths)

    def _release(self, number: int) -> None:
        """Give back the memory of a block that was read, if it is beyond the limit."""
        row_bytes = self.head["size"] * self.blocks[number].vectors.itemsize
        if self._memory is not None and int(self._starts[number + 1]) * row_bytes > self._memory:
            self.blocks[number].release()

    def nearest_words(self, directions: Array, k: int, *, without: str | None = None) -> list[list[str]]:
        """Find the words whose mean vectors are nearest to each direction of the corrected space.

        Args:
            directions: (n, H).
            k: How many words for each; rare words come last.
            without: A word to leave out.

        Returns:
            A list of words for each direction, nearest first.

        """
        words = self.whole.words  # of a part, too: the means of more usages say more
        rare = words.counts < COMMON_COUNT
        if rare.sum() > len(rare) - k - 1:
            rare[:] = False
        neighbours = []
        for scores in directions @ self.word_directions.T - RARE_PENALTY * rare:
            best = np.argpartition(-scores, min(k, len(scores) - 1))[: k + 1]
            names = (words.words[row] for row in best[np.lexsort((best, -scores[best]))])
            neighbours.append(list(islice((name for name in names if name != without), k)))
        return neighbours


def _check_k(k: int) -> None:
    if k < 1:
        raise UsageError(f"k is {k}, expected 1 or more.")


def open_index(
    folder: str | Path,
    model: Elmo | str | Path | None = None,
    *,
    memory: int | None = None,
    corrected: bool = True,
) -> Index:
    """Open an index.

    Args:
        folder: The folder that `polyseme.index` wrote.
        model: The index's model, if it has moved since; loaded only when text is encoded.
        memory: Bytes of vectors to keep in memory, plus the block being read; None keeps all.
        corrected: False takes cosines of the vectors as the model computed them; this reads all of them once.

    Returns:
        The index.

    Raises:
        FormatError: There is no index, it is unfinished, or a file is damaged.
        UsageError: `memory` is negative.

    Example:
        >>> index = polyseme.open_index("sanguo-index")
        >>> index.most_similar("曹操", topn=3)

    """
    if memory is not None and memory < 0:
        raise UsageError(f"memory is {memory}, expected 0 or more bytes.")
    path = Path(check_path(folder, "the index")).expanduser()
    head = read_head(path)
    if head.get("finished") != len(head.get("blocks", ())):
        raise FormatError(
            f"{path}: not finished. Run the same `polyseme.index(model, texts, out)` again: it resumes."
        )
    return Index(path, head, model, memory, corrected)


def _reopen_index(
    folder: str,
    head: str,
    model: Elmo | str | Path | None,
    memory: int | None,
    corrected: bool,
    documents: Documents | None = None,
) -> Index:
    """Open an index that was pickled as its path."""
    index = open_index(folder, model, memory=memory, corrected=corrected)
    if digest(index.head) != head:
        raise FormatError(
            f"{folder}: not the index that was pickled; it has been rebuilt since. Open it again."
        )
    return index if documents is None else index.restrict(documents)


def is_index(path: str | Path) -> bool:
    """Whether a folder holds an index."""
    return (Path(check_path(path, "the index or model")).expanduser() / "index.json").is_file()
