"""The mean contextual vector of each word, and the words nearest to it.

    elmo, formats.vectors.word_file  ->  word_vectors  ->  training.report, search, server, api

N words, H = both directions. Contextual vectors point into a narrow cone, where every cosine is high, so the
mean over the words (the centre) is subtracted before cosines are taken.
"""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from polyseme.elmo import CHUNK, Array, Elmo
from polyseme.errors import FormatError, UnknownWordError, UsageError, require
from polyseme.formats.models.open import resolve_model_path
from polyseme.formats.vectors.word_file import WORDS_FILE, StoredWords, read_words, write_words
from polyseme.io.html import Cell, render_table
from polyseme.io.result_list import ResultList
from polyseme.model.output import Layer, resolve_output
from polyseme.text.length_batches import chunk_sentences
from polyseme.text.usage_sample import UsageSample
from polyseme.text.validate import check_tokens, open_values

Key = str | Array
Keys = Key | Sequence[Key | tuple[Key, float]] | None  # as gensim takes them: one word or vector, or several
SPELLING_CUTOFF = (
    0.5  # least similarity of a suggested spelling; two characters of which one differs have 0.5
)
SHOWN_WORDS = 10  # in a notebook


class Neighbour(NamedTuple):
    """A word and its cosine to what was searched for."""

    word: str
    cosine: float

    def as_row(self) -> dict[str, Cell]:
        """Return the cells of a table."""
        return {"word": self.word, "cosine": self.cosine}


@dataclass(frozen=True, eq=False, repr=False)
class WordVectors:
    """The mean contextual vector of every word, in memory.

    `mean_vectors` computes them from text, `open_words` reads those stored beside a model, and
    `Index.words` has those of an index. Pickled by path if they were read from a file, else by value.

    Attributes:
        words: The words, most frequent first.
        counts: (N,) how many usages each vector is the mean of.
        vectors: (N, H) the means, not centred.
        centre: (H,) subtracted before cosines are taken: the mean over the words, or zeros.
        path: The file they were read from, if any.

    Example:
        >>> words = polyseme.open_words("en")
        >>> words.nearest("mother", 5)
        >>> words["mother"].shape, words.count("mother"), "mother" in words, len(words)

    """

    words: tuple[str, ...]
    counts: NDArray[np.int64]
    vectors: Array
    centre: Array
    path: Path | None = None
    _rows: dict[str, int] = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_rows", {word: row for row, word in enumerate(self.words)})

    @cached_property
    def _directions(self) -> Array:
        """The vectors (N, H) centred and scaled to length 1; computed on first use, to open files fast."""
        moved: Array = self.vectors - self.centre
        moved /= np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), np.finfo(np.float32).tiny)
        return moved

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._rows

    def __getitem__(self, word: str) -> Array:
        """Return the mean vector of a word (H,), not centred."""
        vector: Array = self.vectors[self.row(word)]
        return vector

    def __repr__(self) -> str:
        usages = f"means of {int(self.counts.sum()):,} usages"
        return f"WordVectors({len(self):,} words, {self.vectors.shape[1]:,} values, {usages})"

    def _repr_html_(self) -> str:
        rows = list(zip(self.words[:SHOWN_WORDS], self.counts[:SHOWN_WORDS].tolist(), strict=True))
        shown = f", the {len(rows)} most frequent" if len(self) > len(rows) else ""
        caption = f"{len(self):,} words with vectors of {self.vectors.shape[1]:,} values{shown}"
        return render_table(["word", "usages"], rows, caption=caption)

    def __reduce__(self) -> tuple[Callable[..., WordVectors], tuple[Any, ...]]:
        """Pickle as the path of the file if there is one, else by value."""
        if self.path is not None:
            return _reopen_words, (str(self.path.absolute()), self._digest())
        return WordVectors, (self.words, self.counts, self.vectors, self.centre)

    def _digest(self) -> str:
        """A hash that differs for other texts, models and layers; vectors are left out, as they are large."""
        content = hashlib.sha256("\n".join(self.words).encode("utf-8", "surrogatepass"))
        content.update(self.counts.tobytes())
        content.update(self.centre.tobytes())
        return content.hexdigest()

    def count(self, word: str) -> int:
        """Return how many usages the vector of a word is the mean of.

        Args:
            word: The word.

        Returns:
            The number of usages.

        Raises:
            UnknownWordError: The word has no vector.

        """
        return int(self.counts[self.row(word)])

    def counts_by_word(self) -> dict[str, int]:
        """Return how many usages each word has.

        Returns:
            The counts by word, the most frequent word first.

        """
        return dict(zip(self.words, self.counts.tolist(), strict=True))

    def direction(self, word: str) -> Array:
        """Return the vector of a word, centred and scaled to length 1.

        Args:
            word: The word.

        Returns:
            The direction (H,); the product of two directions is the cosine of the words.

        Raises:
            UnknownWordError: The word has no vector.

        """
        direction: Array = self._directions[self.row(word)]
        return direction

    def similarity(self, first: str, second: str) -> float:
        """Return the cosine of two words.

        Args:
            first: A word.
            second: Another word.

        Returns:
            The cosine of their centred vectors.

        Raises:
            UnknownWordError: A word has no vector. It is a KeyError and a ValueError too.

        Example:
            >>> words.similarity("king", "queen")

        """
        return float(self.direction(first) @ self.direction(second))

    def nearest(
        self, word: str, k: int = 10, *, min_count: int = 1, min_chars: int = 1
    ) -> ResultList[Neighbour]:
        """Find the words with the highest cosine to a word, which is left out itself.

        Args:
            word: The word to search for.
            k: How many words to return.
            min_count: Only words with at least this many usages.
            min_chars: Only words with at least this many characters.

        Returns:
            Pairs of word and cosine, best first.

        Raises:
            UnknownWordError: The word has no vector; the message suggests similar spellings.
            UsageError: `k` is less than 1.

        Example:
            >>> [word for word, cosine in words.nearest("mother", 5)]

        """
        return self.nearest_to_sum([(word, 1.0)], k, min_count=min_count, min_chars=min_chars)

    def nearest_to_sum(
        self,
        weighted_words: Sequence[tuple[str, float]],
        k: int = 10,
        *,
        min_count: int = 1,
        min_chars: int = 1,
    ) -> ResultList[Neighbour]:
        """Find the words nearest to a weighted sum of words, which are left out themselves.

        Args:
            weighted_words: Pairs of word and weight. The analogy a : b = c : ? is b - a + c.
            k: How many words to return.
            min_count: Only words with at least this many usages.
            min_chars: Only words with at least this many characters.

        Returns:
            Pairs of word and cosine, best first.

        Raises:
            UnknownWordError: A word has no vector.
            UsageError: `k` is less than 1.

        Example:
            >>> words.nearest_to_sum([("king", 1), ("man", -1), ("woman", 1)], 3)

        """
        rows = [self.row(word) for word, _ in weighted_words]
        if k < 1:
            raise UsageError(f"k is {k}, expected 1 or more.")
        cosines = self._directions @ self._sum(weighted_words)
        usable = self._select_usable(min_count, min_chars)
        usable[rows] = False
        signs = (f"{'-' if weight < 0 else '+'} {word}" for word, weight in weighted_words)
        return ResultList(
            self._list_best(cosines, usable, k), f"Nearest to {' '.join(signs).removeprefix('+ ')}"
        )

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
            positive: Words, (word, weight) pairs, or vectors (H,) such as `words["king"]`.
            negative: The same, with weight -1.
            topn: How many words to return; 0 or less returns none, None the cosines of all words.
            clip_start: Skip this many of the most frequent words.
            clip_end: Stop at this many of the most frequent words.
            restrict_vocab: Only this many of the most frequent words.
            indexer: Must be None; the search is exact.
            min_count: Only words with at least this many usages.
            min_chars: Only words with at least this many characters.

        Returns:
            A list of (word, cosine), best first; an array of cosines if `topn` is None.

        Raises:
            UnknownWordError: A word has no vector; this is a KeyError, as in gensim.
            UsageError: No word was passed, a key is neither word nor vector, or `indexer` was passed.

        Example:
            >>> words.most_similar(positive=["king", "woman"], negative=["man"], topn=3)

        """
        if indexer is not None:
            raise UsageError("indexer is not supported, the search is exact. Leave it out.")
        if topn is not None and topn < 1:
            return []
        keys = _weigh_keys(positive, 1.0) + _weigh_keys(negative, -1.0)
        if not keys:
            raise UsageError("most_similar needs a word.")
        cosines = self._directions @ self._sum(keys)
        span = slice(0, restrict_vocab) if restrict_vocab else slice(clip_start, clip_end or len(self))
        if topn is None:
            return cosines[span]
        usable = np.zeros(len(self), np.bool_)
        usable[span] = self._select_usable(min_count, min_chars)[span]
        usable[[self.row(key) for key, _ in keys if isinstance(key, str)]] = False
        return [(word, cosine) for word, cosine in self._list_best(cosines, usable, topn)]

    def odd_one_out(self, words: Sequence[str]) -> str:
        """Return the word farthest from the mean of three or more words.

        Args:
            words: The words.

        Returns:
            One of them.

        Raises:
            UnknownWordError: A word has no vector.
            UsageError: Fewer than three words.

        Example:
            >>> words.odd_one_out(["king", "queen", "river"])
            'river'

        """
        if len(words) < 3:
            raise UsageError(f"{len(words)} words: the odd one out needs three or more.")
        return words[find_odd_one_out(np.stack([self.direction(word) for word in words]))]

    def uncentred(self) -> WordVectors:
        """Return the same words with cosines of the vectors as they are: nothing is subtracted.

        Returns:
            Word vectors whose centre is zero.

        """
        return WordVectors(self.words, self.counts, self.vectors, np.zeros_like(self.centre))

    def to_gensim(self, *, uncorrected: bool = False) -> Any:
        """Return the words as gensim's KeyedVectors, with their counts.

        Args:
            uncorrected: The means of the vectors as the model computed them; otherwise centred, so that
                gensim's cosines are those of `nearest`.

        Returns:
            A `gensim.models.KeyedVectors` with a copy of the vectors.

        Raises:
            MissingExtraError: gensim is not installed.

        Example:
            >>> polyseme.open_words("en").to_gensim().most_similar("mother")

        """
        gensim = require("gensim", "gensim", "KeyedVectors")
        keyed = gensim.models.KeyedVectors(self.vectors.shape[1])
        keyed.add_vectors(list(self.words), self.vectors - (0 if uncorrected else self.centre))
        keyed.allocate_vecattrs(["count"], [int])
        keyed.expandos["count"][:] = self.counts
        return keyed

    @staticmethod
    def from_gensim(keyed: Any, *, centre: bool = False) -> WordVectors:
        """Take the words and counts of gensim's KeyedVectors.

        Args:
            keyed: What `to_gensim` returned, or any `gensim.models.KeyedVectors`. Without counts a word
                counts once.
            centre: Take cosines around the mean over the words; False keeps gensim's cosines.

        Returns:
            The words in the order of gensim, with a copy of their vectors.

        Raises:
            UsageError: `keyed` is something else, or has no words.

        Example:
            >>> keyed = gensim.models.KeyedVectors.load_word2vec_format("words.vec")
            >>> polyseme.WordVectors.from_gensim(keyed).nearest("mother", 5)

        """
        if not all(hasattr(keyed, name) for name in ("index_to_key", "vectors", "expandos")):
            advice = ": `model.wv`" if hasattr(keyed, "wv") else ""
            raise UsageError(
                f"keyed is of type {type(keyed).__name__}, expected KeyedVectors of gensim{advice}."
            )
        words = tuple(map(str, keyed.index_to_key))
        if not words:
            raise UsageError("keyed has no words.")
        vectors = np.array(keyed.vectors, np.float32)
        counts = np.ones(len(words), np.int64)
        if "count" in keyed.expandos:
            counts[:] = keyed.expandos["count"][: len(words)]
        middle = vectors.mean(axis=0) if centre else np.zeros(vectors.shape[1], np.float32)
        return WordVectors(words, counts, vectors, middle)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write a file that `open_words` reads; vectors are rounded to int8.

        Args:
            path: The file; in a model's folder it is called words.safetensors.
            force: Replace a file that exists.

        Raises:
            UsageError: The file exists and `force` is False, or cannot be written.

        Example:
            >>> polyseme.mean_vectors(elmo, sentences).save("models/mine/words.safetensors")

        """
        content = StoredWords(self.words, self.counts, self.vectors, self.centre)
        write_words(Path(path).expanduser(), content, force=force)

    def suggest_spellings(self, word: str) -> list[str]:
        """Suggest words with a similar spelling.

        Args:
            word: What a user typed.

        Returns:
            Up to three words; first those that differ in case only.

        """
        cases = [text for text in (word.lower(), word.capitalize(), word.upper()) if text in self._rows]
        close = get_close_matches(word, self.words, n=3, cutoff=SPELLING_CUTOFF)
        return list(dict.fromkeys([*cases, *close]))[:3]

    def row(self, word: str) -> int:
        """Return the row of a word in `vectors`.

        Args:
            word: The word.

        Returns:
            The row, from 0.

        Raises:
            UnknownWordError: The word has no vector; the message suggests similar spellings.

        """
        if word in self._rows:
            return self._rows[word]
        spellings = self.suggest_spellings(word) if isinstance(word, str) else []
        hint = f" Did you mean {' or '.join(spellings)}?" if spellings else ""
        raise UnknownWordError(
            f"{word!r:.60} is not among the {len(self):,} words with a vector (it may be too rare).{hint}"
        )

    def _sum(self, keys: Sequence[tuple[str | Array, float]]) -> Array:
        """The direction of the weighted sum of words and vectors, each centred and of length 1."""
        rows = [self.direction(key) if isinstance(key, str) else self._centre(key) for key, _ in keys]
        return _scale_to_one(np.array([weight for _, weight in keys], np.float32) @ np.stack(rows))

    def _centre(self, values: Array) -> Array:
        """The direction of a vector that the caller passed."""
        vector = np.asarray(values, np.float32)
        if vector.shape != self.centre.shape or not np.isfinite(vector).all():
            raise UsageError(
                f"A vector must have {len(self.centre)} finite values, not shape {vector.shape}."
            )
        return _scale_to_one(vector - self.centre)

    def _select_usable(self, min_count: int, min_chars: int) -> NDArray[np.bool_]:
        """Which words have enough usages and characters."""
        usable: NDArray[np.bool_] = self.counts >= min_count
        if min_chars > 1:
            usable &= np.array([len(word) >= min_chars for word in self.words], dtype=np.bool_)
        return usable

    def _list_best(self, cosines: Array, usable: NDArray[np.bool_], k: int) -> list[Neighbour]:
        """The `k` usable words with the highest cosines."""
        rows = np.flatnonzero(usable)
        best = rows[np.argsort(-cosines[rows], kind="stable")[:k]]
        return [Neighbour(self.words[row], float(cosines[row])) for row in best]


def find_odd_one_out(directions: Array) -> int:
    """Return which of several directions (N, H) is farthest from their mean."""
    return int((directions @ directions.mean(axis=0)).argmin())


def _scale_to_one(vector: Array) -> Array:
    """The vector (H,) scaled to length 1; zeros stay zeros."""
    scaled: Array = vector / max(float(np.linalg.norm(vector)), float(np.finfo(np.float32).tiny))
    return scaled


def _weigh_keys(keys: Keys, weight: float) -> list[tuple[str | Array, float]]:
    """Words and vectors with their weights: `weight`, unless a pair has its own."""
    if keys is None:
        return []
    if isinstance(keys, str) or (isinstance(keys, np.ndarray) and keys.ndim == 1):
        keys = [keys]
    if not isinstance(keys, Sequence | np.ndarray):
        raise UsageError(f"{keys!r:.60}: expected a word, a vector, or a list of them.")
    weighted: list[tuple[str | Array, float]] = []
    entry: Any  # checked here
    for entry in keys:
        key, factor = entry if isinstance(entry, tuple) and len(entry) == 2 else (entry, weight)
        if not isinstance(key, str | np.ndarray) or not isinstance(factor, int | float | np.number):
            raise UsageError(
                f"{entry!r:.60}: expected a word, a vector, or a pair of one of them and a weight."
            )
        weighted.append((key, float(factor)))
    return weighted


def open_words(path: str | Path) -> WordVectors:
    """Open the word vectors stored beside a model.

    Args:
        path: A model's folder, the name of a bundled model, or a file that `WordVectors.save` wrote.

    Returns:
        The words with their mean vectors.

    Raises:
        FormatError: The model has no word vectors, or the file is damaged.

    Example:
        >>> polyseme.open_words("en").nearest("king", 5)

    """
    model_path = resolve_model_path(path)
    if model_path.is_dir() and not (model_path / WORDS_FILE).exists():
        raise FormatError(
            f"{path}: this model has no word vectors ({WORDS_FILE} is missing). Compute them from text with "
            "`polyseme.mean_vectors(model, sentences)` and store them with `.save(path)`."
        )
    return read_word_vectors(model_path / WORDS_FILE if model_path.is_dir() else model_path)


def read_word_vectors(file: Path, advice: str | None = None) -> WordVectors:
    """Read a file of word vectors; `advice` ends the error if it is damaged."""
    content = read_words(file) if advice is None else read_words(file, advice)
    return WordVectors(*content, path=file)


def _reopen_words(path: str, digest: str) -> WordVectors:
    """Open word vectors that were pickled as their path."""
    words = read_word_vectors(Path(path))
    if words._digest() != digest:
        raise FormatError(f"{path}: has changed since the word vectors were pickled. Open it again.")
    return words


def mean_vectors(
    elmo: Elmo,
    sentences: Iterable[str] | Iterable[list[str]],
    *,
    layer: Layer = "top",
    min_count: int = 5,
    words: Iterable[str] | None = None,
    max_usages: int | None = None,
    centre: bool = True,
    segment: str | None = None,
) -> WordVectors:
    """Compute the mean contextual vector of every word used at least `min_count` times.

    A list, or any object whose `__iter__` starts again, is read twice: words are counted first, so that only
    words with enough usages take memory (H float64 values each). With a generator every word takes memory
    until the end. All usages count; `max_usages` embeds fewer sentences, evenly over the whole text.

    Args:
        elmo: The model.
        sentences: Strings or token lists.
        layer: "top", "mean", a number from 0, weights, or (weights, gamma), as for `Elmo.embed`.
        min_count: Only words with at least this many usages.
        words: Only these words; `min_count` applies to them too.
        max_usages: Enough usages of a word: sentences are left out if they hold no word that needs more. The
            usages of every word are spread evenly over the text. Needs a list, not a generator.
        centre: Take cosines around the mean over the words.
        segment: How to split strings into tokens; as the model was trained if None.

    Returns:
        The words with their vectors, most frequent first.

    Raises:
        UsageError: `sentences` is a single string, `layer` is "all", or `min_count` is less than 1.

    Example:
        >>> words = polyseme.mean_vectors(elmo, open("novel.txt"), min_count=10)
        >>> words.nearest("whale", 5)

    """
    if isinstance(sentences, str):
        raise UsageError("sentences is one string, expected a list of sentences: `[text]`.")
    sentences = open_values(sentences, "sentences")
    spec = resolve_output(layer, None, "both", elmo.config.layers)
    spec.require_weights("word")
    if min_count < 1:
        raise UsageError(f"min_count is {min_count}, expected 1 or more.")
    if max_usages is not None and max_usages < 1:
        raise UsageError(f"max_usages is {max_usages}, expected 1 or more.")
    wanted = None if words is None else set(words)
    sample = None
    if iter(sentences) is not sentences:
        counted = Counter(word for tokens in _segment_sentences(elmo, sentences, segment) for word in tokens)
        frequent = {word for word, count in counted.items() if count >= min_count}
        wanted = frequent if wanted is None else frequent & wanted
        if max_usages is not None:
            sample = UsageSample({word: counted[word] for word in wanted}, max_usages)
    elif max_usages is not None:
        raise UsageError("`max_usages` needs sentences that can be read twice: pass a list, not a generator.")
    sums = _WordSums(elmo.config.size, wanted)
    with elmo.track_counts() as counts:
        for chunk in chunk_sentences(_segment_sentences(elmo, sentences, segment), CHUNK * elmo.batch_tokens):
            if sample is not None:
                chunk = [tokens for tokens in chunk if sample.take(tokens)]
            elif wanted is not None:
                chunk = [tokens for tokens in chunk if not wanted.isdisjoint(tokens)]
            sums.add(chunk, elmo.embed_tokens(chunk, spec, counts))
    return sums.means(min_count, centre=centre)


def _segment_sentences(
    elmo: Elmo, sentences: Iterable[str] | Iterable[list[str]], segment: str | None
) -> Iterator[list[str]]:
    for number, sentence in enumerate(sentences):
        if isinstance(sentence, str):
            yield elmo.token_texts(sentence, segment)
        else:
            yield check_tokens(sentence, number)


class _WordSums:
    """The sum of the vectors of each word, in float64; a word gets its row when it first appears."""

    def __init__(self, size: int, wanted: set[str] | None) -> None:
        self._wanted = wanted
        self._rows: dict[str, int] = {}
        self._sums = torch.zeros(
            len(wanted) if wanted is not None else 1024, size, dtype=torch.float64, device="cpu"
        )
        self._counts = torch.zeros(len(self._sums), dtype=torch.int64, device="cpu")

    def add(self, sentences: list[list[str]], vectors: list[Array]) -> None:
        """Add the usages of some sentences: token lists and their vectors (tokens, H)."""
        for tokens, array in zip(sentences, vectors, strict=True):
            positions = [p for p, word in enumerate(tokens) if self._wanted is None or word in self._wanted]
            if not positions:
                continue
            numbers = [self._rows.setdefault(tokens[p], len(self._rows)) for p in positions]
            rows = torch.tensor(numbers, device="cpu")
            self._grow()
            self._sums.index_add_(0, rows, torch.from_numpy(array[positions]).double())
            self._counts.index_add_(0, rows, torch.ones_like(rows))

    def _grow(self) -> None:
        if len(self._rows) > len(self._sums):
            more = max(len(self._rows), 2 * len(self._sums)) - len(self._sums)
            self._sums = torch.cat([self._sums, self._sums.new_zeros(more, self._sums.shape[1])])
            self._counts = torch.cat([self._counts, self._counts.new_zeros(more)])

    def means(self, min_count: int, *, centre: bool) -> WordVectors:
        """Return the means of the words with enough usages, most frequent first."""
        words = list(self._rows)
        counts = self._counts[: len(words)].numpy()
        order = np.argsort(-counts, kind="stable")
        order = order[counts[order] >= min_count]
        means = self._sums[torch.from_numpy(order)].numpy() / np.maximum(counts[order], 1)[:, None]
        middle = means.mean(axis=0) if centre and len(means) else np.zeros(means.shape[1])
        return WordVectors(
            tuple(words[row] for row in order),
            counts[order].copy(),
            means.astype(np.float32),
            middle.astype(np.float32),
        )
