"""Baselines that need no network, which a trained model must leave behind.

    labelled_sets  ->  simple_baselines  ->  tasks.py

Each takes the labelled training and test examples of a task and gives predictions as its scorer reads them.
Roles: `rules`, which look only at where the predicate, punctuation and a few function words stand, and at
whether a word most often has an ARG0. Answers: `overlap`, of the sentence that shares most with the question
the longest run of words that it does not share. Coreference: `same head`, pronouns, names and noun phrases
by their last word. Summaries: `lead`, the first words, as many as a label has; `textrank`, one sentence by
shared words (Mihalcea and Tarau 2004); `extract`, one sentence by `polyseme.summarise`.
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from statistics import mean
from typing import Any

from polyseme.elmo import Elmo
from polyseme.tasks.answers.example import AnswersExample
from polyseme.tasks.answers.scores import score_answers
from polyseme.tasks.coref.example import PRONOUNS, CorefDocument
from polyseme.tasks.coref.scores import Mention, score_clusters
from polyseme.tasks.data.tag_schemes import Span
from polyseme.tasks.metrics import Scores
from polyseme.tasks.roles.example import PREDICATE, RolesExample
from polyseme.tasks.roles.scores import score_roles
from polyseme.tasks.seq2seq.example import TextPair
from polyseme.tasks.summarise.rouge import score_rouge, split_rouge_words
from polyseme.text.function_words import is_content_word

Baseline = Callable[[Sequence[Any], Sequence[Any], Elmo], Scores]  # training, test, model -> scores
MODALS = {"will", "would", "can", "could", "may", "might", "shall", "should", "must", "'ll", "'d", "ca", "wo"}
NEGATIONS = {"not", "n't", "never"}
BE, LINKS = (
    {"am", "is", "are", "was", "were", "be", "been", "being", "'s", "'re", "'m"},
    {"that", "who", "which"},
)
ROUNDS, DAMPING = 50, 0.85  # of TextRank
MAX_PHRASE = 4  # tokens of a noun phrase


def label_by_rules(train: Sequence[RolesExample], test: Sequence[RolesExample], elmo: Elmo) -> Scores:
    """ARG0 or ARG1 before the predicate, the rest of its clause behind it, modal verbs and negations."""
    firsts: defaultdict[str, Counter[str]] = defaultdict(Counter)  # of a predicate, the label before it
    for example in train:
        for frame in example.frames or ():
            word = example.text.tokens[frame.predicate].lower()
            before = [span.label for span in frame.spans if span.stop <= frame.predicate]
            firsts[word].update(label for label in before if label in ("ARG0", "ARG1"))
    labels, predicted = [], []
    for example in test:
        tokens = [token.lower() for token in example.text.tokens]
        labels.append({frame.predicate: frame.spans for frame in example.frames or ()})
        predicted.append(
            {position: _place_roles(tokens, position, firsts[tokens[position]]) for position in labels[-1]}
        )
    return score_roles(labels, predicted)


def _place_roles(tokens: Sequence[str], predicate: int, firsts: Counter[str]) -> list[Span]:
    """The spans of a predicate."""
    spans = [Span(PREDICATE, predicate, predicate + 1)]
    start = predicate
    while start and (tokens[start - 1] in MODALS | NEGATIONS | BE or tokens[start - 1].endswith("ly")):
        start -= 1
        for label, words in (("ARGM-MOD", MODALS), ("ARGM-NEG", NEGATIONS)):
            if tokens[start] in words:
                spans.append(Span(label, start, start + 1))
    stop, first = predicate + 1, start
    while first and any(map(str.isalnum, tokens[first - 1])) and tokens[first - 1] not in LINKS:
        first -= 1
    while stop < len(tokens) and any(map(str.isalnum, tokens[stop])):
        stop += 1
    second = "ARG1" if firsts["ARG0"] >= firsts["ARG1"] else "ARG2"
    if first < start:
        spans.append(Span("ARG0" if second == "ARG1" else "ARG1", first, start))
    if stop > predicate + 1:
        spans.append(Span(second, predicate + 1, stop))
    return spans


def answer_by_overlap(train: Sequence[AnswersExample], test: Sequence[AnswersExample], elmo: Elmo) -> Scores:
    """Of the sentence that shares most with the question, the longest run of words that it does not share."""
    from polyseme.search.passages import PassageIndex, list_terms

    guesses = []
    for example in test:
        question, *sentences = example.sentences
        ((best, _),) = PassageIndex(sentences).rank(question, 1)
        asked, first = set(list_terms(question)), sum(map(len, sentences[:best]))
        runs: list[list[int]] = [[]]
        for position, token in enumerate(sentences[best]):
            telling = list_terms([token])
            if any(term in asked for term in telling):
                runs.append([])
            elif telling or runs[-1]:
                runs[-1].append(position)
        longest = max(runs, key=len) or list(range(len(sentences[best])))
        guesses.append(example.text.span_text(first + longest[0], first + longest[-1] + 1))
    questions = [example.question.text or "" for example in test]
    return score_answers(questions, [[answer.text for answer in e.answers or ()] for e in test], guesses)


def cluster_by_head(train: Sequence[CorefDocument], test: Sequence[CorefDocument], elmo: Elmo) -> Scores:
    """Pronouns, names and noun phrases of the same last word; the mentions are found, too."""
    predicted = []
    for document in test:
        clusters: defaultdict[str, set[Mention]] = defaultdict(set)
        for start, tokens in zip(document.starts, document.sentences, strict=False):
            for begin, stop in _find_phrases(tokens):
                clusters[tokens[stop - 1].lower()].add((start + begin, start + stop))
        predicted.append([frozenset(cluster) for cluster in clusters.values()])
    labels = [[frozenset(cluster) for cluster in document.clusters or ()] for document in test]
    return score_clusters(labels, predicted)


def _find_phrases(tokens: Sequence[str]) -> Iterator[Mention]:
    """Yield pronouns, runs of capitalised words, and determiners with the content words behind them."""
    position = 0
    while position < len(tokens):
        token, stop = tokens[position], position + 1
        lowered = token.lower()
        if lowered in PRONOUNS - {"this", "that", "these", "those", "which", "one"}:
            yield position, stop
        if lowered in ("the", "a", "an", "his", "her", "my", "our", "your", "their", "its"):
            while stop < min(len(tokens), position + MAX_PHRASE) and _is_content(tokens[stop]):
                stop += 1
            if stop > position + 1:
                yield position, stop
        elif token[:1].isupper() and position and _is_content(token):
            while stop < len(tokens) and tokens[stop][:1].isupper():
                stop += 1
            yield position, stop
        position = stop


def _is_content(token: str) -> bool:
    return token[:1].isalpha() and is_content_word(token.lower())


def summarise_by_lead(train: Sequence[TextPair], test: Sequence[TextPair], elmo: Elmo) -> Scores:
    """The first words of the text, as many as a summary of the training examples has."""
    length = round(mean(len(split_rouge_words(example.target or "")) for example in train))
    return _score_texts(test, [" ".join(_text(example).split()[:length]) for example in test])


def summarise_by_words(train: Sequence[TextPair], test: Sequence[TextPair], elmo: Elmo) -> Scores:
    """The sentence with the highest rank in a graph of shared words."""
    predicted = []
    for example in test:
        text = _text(example)
        sentences = [sentence for sentence in elmo.split_sentences(text) if sentence]
        best = sentences[_rank_by_words([[token.text.lower() for token in s] for s in sentences])]
        predicted.append(text[best[0].start : best[-1].end])
    return _score_texts(test, predicted)


def summarise_by_vectors(train: Sequence[TextPair], test: Sequence[TextPair], elmo: Elmo) -> Scores:
    """The sentence with the highest rank in a graph of vectors."""
    import polyseme

    return _score_texts(test, [polyseme.summarise(elmo, _text(e), sentences=1).text for e in test])


def _text(example: TextPair) -> str:
    return example.source.text or " ".join(example.source.tokens)


def _score_texts(test: Sequence[TextPair], predicted: Sequence[str]) -> Scores:
    return score_rouge([example.target or "" for example in test], predicted)


def _rank_by_words(sentences: Sequence[Sequence[str]]) -> int:
    sets = [{word for word in words if any(map(str.isalnum, word))} for words in sentences]
    count = len(sets)

    def weigh(a: set[str], b: set[str]) -> float:
        size = math.log(max(1, len(a))) + math.log(max(1, len(b)))
        return len(a & b) / size if size else 0.0

    weights = [[weigh(a, b) if a is not b else 0.0 for b in sets] for a in sets]
    sums = [sum(row) for row in weights]
    ranks = [1.0] * count
    for _ in range(ROUNDS):
        ranks = [
            1 - DAMPING + DAMPING * sum(ranks[j] * weights[j][i] / sums[j] for j in range(count) if sums[j])
            for i in range(count)
        ]
    return max(range(count), key=lambda number: ranks[number])


BASELINES: dict[str, dict[str, Baseline]] = {  # by task
    "roles": {"rules": label_by_rules},
    "answers": {"overlap": answer_by_overlap},
    "coref": {"same head": cluster_by_head},
    "summarise": {
        "lead": summarise_by_lead,
        "textrank": summarise_by_words,
        "extract": summarise_by_vectors,
    },
}
