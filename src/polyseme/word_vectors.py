"""Text to one vector a word: the mean over all its usages, and the words nearest to it.

    embedder  ->  words  ->  training (its report), search, server, api

N words, H = both directions. Contextual vectors crowd into a narrow cone, where everything is near to
everything: so the mean over the words is taken away before cosines are compared.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from polyseme.elmo import CHUNK, Array, Elmo
from polyseme.errors import FormatError, UnknownWordError, UsageError
from polyseme.formats.models.open import resolve_model_path
from polyseme.formats.vectors.word_file import WORDS_FILE, StoredWords, read_words, write_words
from polyseme.model.output import Layer, resolve_output
from polyseme.text.length_batches import chunk_sentences
from polyseme.text.validate import checked_tokens

Key = str | Array
Keys = Key | Sequence[Key | tuple[Key, float]] | None  # as gensim takes them; a word or several
NEAR_SPELLING = 0.5  # how alike a suggested word is; words of two characters that share one are 0.5


@dataclass(frozen=True, eq=False)
class WordVectors:
    """The mean contextual vector of every word, in memory. `mean_vectors` makes one."""

    words: tuple[str, ...]  # by falling count
    counts: NDArray[np.int64]  # (N,) usages
    vectors: Array  # (N, H) means, not centred
    centre: Array  # (H,) what is taken away before cosines: the mean over the words, or zeros
    _rows: dict[str, int] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_rows", {word: row for row, word in enumerate(self.words)})

    @cached_property
    def _directions(self) -> Array:
        """The vectors (N, H) centred, of length 1: made at the first need, so that a file opens quickly."""
        moved: Array = self.vectors - self.centre
        moved /= np.maximum(np.linalg.norm(moved, axis=1, keepdims=True), np.finfo(np.float32).tiny)
        return moved

    def __len__(self) -> int:
        return len(self.words)

    def __contains__(self, word: object) -> bool:
        return word in self._rows

    def __getitem__(self, word: str) -> Array:
        """The mean vector of a word (H,), not centred."""
        vector: Array = self.vectors[self._row(word)]
        return vector

    def count(self, word: str) -> int:
        """How many usages of a word were seen."""
        return int(self.counts[self._row(word)])

    def similarity(self, one: str, other: str) -> float:
        """Cosine of two words."""
        return float(self._directions[self._row(one)] @ self._directions[self._row(other)])

    def nearest(
        self, word: str, k: int = 10, *, min_count: int = 1, min_chars: int = 1
    ) -> list[tuple[str, float]]:
        """The `k` words with the greatest cosine to `word`, itself left out.

        min_count, min_chars: only words with so many usages, of so many characters.
        """
        return self.combined([(word, 1.0)], k, min_count=min_count, min_chars=min_chars)

    def combined(
        self, signs: Sequence[tuple[str, float]], k: int = 10, *, min_count: int = 1, min_chars: int = 1
    ) -> list[tuple[str, float]]:
        """The `k` words nearest to a weighted sum of words, these left out: a : b = c : ? is b - a + c."""
        given = [self._row(word) for word, _ in signs]
        if k < 1:
            raise UsageError(f"k is {k}, expected 1 or more.")
        cosines = self._directions @ self._sum(signs)
        usable = self._usable(min_count, min_chars)
        usable[given] = False
        return self._best(cosines, usable, k)

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
        """Words nearest to the sum of `positive` less `negative`, with gensim's signature and answers.

        positive, negative: words, (word, weight) pairs, or vectors (H,) as `words[word]` gives them.
        topn: how many; 0 or less gives none, None the cosines of all words from clip_start to clip_end.
        clip_start, clip_end, restrict_vocab: only these of the words, which stand by falling count.
        An unknown word is a KeyError. gensim's `indexer` is refused.
        """
        if indexer is not None:
            raise UsageError("indexer: gensim's indexers are not taken. Leave it out: the search is exact.")
        if topn is not None and topn < 1:
            return []
        keys = _keys(positive, 1.0) + _keys(negative, -1.0)
        if not keys:
            raise UsageError("most_similar needs a word.")
        cosines = self._directions @ self._sum(keys)
        span = slice(0, restrict_vocab) if restrict_vocab else slice(clip_start, clip_end or len(self))
        if topn is None:
            return cosines[span]
        usable = np.zeros(len(self), np.bool_)
        usable[span] = self._usable(min_count, min_chars)[span]
        usable[[self._row(key) for key, _ in keys if isinstance(key, str)]] = False
        return self._best(cosines, usable, topn)

    def _sum(self, keys: Sequence[tuple[str | Array, float]]) -> Array:
        """The direction of the weighted sum of words and vectors, each centred and of length 1."""
        rows = [
            self._directions[self._row(key)] if isinstance(key, str) else self._direction(key)
            for key, _ in keys
        ]
        return _pointing(np.array([weight for _, weight in keys], np.float32) @ np.stack(rows))

    def _direction(self, vector: Array) -> Array:
        found = np.asarray(vector, np.float32)
        if found.shape != self.centre.shape or not np.isfinite(found).all():
            raise UsageError(f"A vector of {len(self.centre)} finite values is expected, not {found.shape}.")
        return _pointing(found - self.centre)

    def _usable(self, min_count: int, min_chars: int) -> NDArray[np.bool_]:
        """Which words have so many usages, and so many characters."""
        usable: NDArray[np.bool_] = self.counts >= min_count
        if min_chars > 1:
            usable &= np.array([len(word) >= min_chars for word in self.words], dtype=np.bool_)
        return usable

    def _best(self, cosines: Array, usable: NDArray[np.bool_], k: int) -> list[tuple[str, float]]:
        """The `k` usable words with the greatest cosines."""
        rows = np.flatnonzero(usable)
        best = rows[np.argsort(-cosines[rows], kind="stable")[:k]]
        return [(self.words[row], float(cosines[row])) for row in best]

    def uncentred(self) -> WordVectors:
        """The same words; cosines of their vectors as they are."""
        return WordVectors(self.words, self.counts, self.vectors, np.zeros_like(self.centre))

    def direction(self, word: str) -> Array:
        """The vector of a word (H,), centred and of length 1."""
        found: Array = self._directions[self._row(word)]
        return found

    def odd_one_out(self, words: Sequence[str]) -> str:
        """The word farthest from the mean of all of them."""
        if len(words) < 3:
            raise UsageError(f"{len(words)} words: the odd one out is of three or more.")
        directions = self._directions[[self._row(word) for word in words]]
        return words[int((directions @ directions.mean(axis=0)).argmin())]

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write a file for `open_words`, in int8; words.safetensors is its name in a model's folder."""
        place = Path(path).expanduser()
        write_words(place, StoredWords(self.words, self.counts, self.vectors, self.centre), force=force)

    def suggest_spellings(self, word: str) -> list[str]:
        """Words that are written much as `word` is; first those with other capitals."""
        cases = [other for other in (word.lower(), word.capitalize(), word.upper()) if other in self._rows]
        close = get_close_matches(word, self.words, n=3, cutoff=NEAR_SPELLING)
        return list(dict.fromkeys([*cases, *close]))[:3]

    def _row(self, word: str) -> int:
        if word in self._rows:
            return self._rows[word]
        near = self.suggest_spellings(word) if isinstance(word, str) else []
        guess = f" Did you mean {' or '.join(near)}?" if near else ""
        raise UnknownWordError(
            f"{word!r:.60} is not among the {len(self):,} words with a vector (it may be too rare).{guess}"
        )


def _pointing(vector: Array) -> Array:
    """The vector (H,) with length 1; zeros stay zeros."""
    found: Array = vector / max(float(np.linalg.norm(vector)), float(np.finfo(np.float32).tiny))
    return found


def _keys(given: Keys, sign: float) -> list[tuple[str | Array, float]]:
    """Words and vectors with their weights: the sign, unless a pair says another."""
    if given is None:
        return []
    if isinstance(given, str) or (isinstance(given, np.ndarray) and given.ndim == 1):
        given = [given]
    found: list[tuple[str | Array, float]] = []
    key: Any  # checked here
    for key in given:
        word, weight = key if isinstance(key, tuple) and len(key) == 2 else (key, sign)
        if not isinstance(word, str | np.ndarray) or not isinstance(weight, int | float | np.number):
            raise UsageError(f"{key!r:.60}: expected a word, a vector, or one of them with a weight.")
        found.append((word, float(weight)))
    return found


def open_words(path: str | Path) -> WordVectors:
    """The vectors of words that a model has beside it, as those trained here: by folder, name or file."""
    place = resolve_model_path(path)
    if place.is_dir() and not (place / WORDS_FILE).exists():
        raise FormatError(
            f"{path}: no {WORDS_FILE} in it, so this model has no vectors of words. "
            "polyseme.mean_vectors(model, sentences) makes them from a text, its save(path) keeps them."
        )
    return WordVectors(*read_words(place / WORDS_FILE if place.is_dir() else place))


def mean_vectors(
    elmo: Elmo,
    sentences: Iterable[str] | Iterable[list[str]],
    *,
    layer: Layer = "top",
    min_count: int = 5,
    words: Iterable[str] | None = None,
    centre: bool = True,
    segment: str | None = None,
) -> WordVectors:
    """The mean contextual vector of every word that `sentences` use at least `min_count` times.

    sentences: strings or token lists. What can be read twice (a list, or an object whose __iter__ begins
        anew) is counted first, so that only words with enough usages take memory: a row of H float64
        values each. From a stream that runs once, every word takes a row until the end.
    layer: "top", "mean", a number from 0, weights, or (weights, gamma), as for `Elmo.embed`.
    words: only these, whatever else there is; `min_count` holds for them too.
    centre: whether cosines are taken around the mean over the words.
    """
    if isinstance(sentences, str):
        raise UsageError("sentences is one string, expected a list of sentences.")
    spec = resolve_output(layer, None, "both", elmo.config.layers)
    if spec.weights is None:
        raise UsageError("layer is 'all', but a word has one vector: choose top, mean, a number or weights.")
    if min_count < 1:
        raise UsageError(f"min_count is {min_count}, expected 1 or more.")
    wanted = None if words is None else set(words)
    if iter(sentences) is not sentences:
        counted = Counter(word for tokens in _tokens(elmo, sentences, segment) for word in tokens)
        often = {word for word, count in counted.items() if count >= min_count}
        wanted = often if wanted is None else often & wanted
    table = _Table(elmo.config.size, wanted)
    with elmo.track_counts() as counts:
        for chunk in chunk_sentences(_tokens(elmo, sentences, segment), CHUNK * elmo.batch_tokens):
            if wanted is not None:
                chunk = [tokens for tokens in chunk if not wanted.isdisjoint(tokens)]
            table.add(chunk, elmo.embed_tokens(chunk, spec, counts))
    return table.finish(min_count, centre=centre)


def _tokens(
    elmo: Elmo, sentences: Iterable[str] | Iterable[list[str]], segment: str | None
) -> Iterator[list[str]]:
    for number, sentence in enumerate(sentences):
        if isinstance(sentence, str):
            yield elmo.token_texts(sentence, segment)
        else:
            yield checked_tokens(sentence, number)


class _Table:
    """Sums of vectors by word, in float64; rows are added as words appear."""

    def __init__(self, size: int, wanted: set[str] | None) -> None:
        self._wanted = wanted
        self._rows: dict[str, int] = {}
        self._sums = torch.zeros(len(wanted) if wanted is not None else 1024, size, dtype=torch.float64)
        self._counts = torch.zeros(len(self._sums), dtype=torch.int64)

    def add(self, sentences: list[list[str]], vectors: list[Array]) -> None:
        """Add the usages of a chunk: token lists and their vectors (tokens, H)."""
        for tokens, array in zip(sentences, vectors, strict=True):
            kept = [p for p, word in enumerate(tokens) if self._wanted is None or word in self._wanted]
            if not kept:
                continue
            rows = torch.tensor([self._rows.setdefault(tokens[p], len(self._rows)) for p in kept])
            self._grow()
            self._sums.index_add_(0, rows, torch.from_numpy(array[kept]).double())
            self._counts.index_add_(0, rows, torch.ones_like(rows))

    def _grow(self) -> None:
        if len(self._rows) > len(self._sums):
            more = max(len(self._rows), 2 * len(self._sums)) - len(self._sums)
            self._sums = torch.cat([self._sums, self._sums.new_zeros(more, self._sums.shape[1])])
            self._counts = torch.cat([self._counts, self._counts.new_zeros(more)])

    def finish(self, min_count: int, *, centre: bool) -> WordVectors:
        """The means of the words with enough usages, by falling count."""
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
