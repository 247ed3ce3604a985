"""Answer questions over documents: find the best passages, then read them.

    search.passages, tasks.examples  ->  tasks.answers.documents  ->  tasks.answers.task

A passage is some sentences of a document, within a paragraph if that is long enough. Its tokens keep their
offsets in the document.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

from polyseme.elmo import Elmo
from polyseme.search.passages import PassageIndex
from polyseme.tasks.answers.example import AnswerPrediction, AnswersExample, join_sentences
from polyseme.tasks.examples import Segmenter, TokenizedText, tokenize_text
from polyseme.text.segment import Token

PASSAGE_TOKENS = 200  # of a passage, unless one sentence has more
LEAST_TOKENS = 50  # a paragraph that is shorter is joined with the next


class AnswerSearch:
    """Implements `protocol.DocumentSearch`.

    Args:
        documents: Name and text of each.
        segmenter: How texts become tokens.
        elmo: The model of the task, if it has one.
        count: How many passages are read for a question.
        max_tokens: Longer sentences are split.

    """

    def __init__(
        self,
        documents: Sequence[tuple[str, str]],
        segmenter: Segmenter,
        elmo: Elmo | None,
        count: int,
        max_tokens: int,
    ) -> None:
        self._segmenter, self._count = segmenter, count
        self._passages = [
            AnswersExample(name, name, TokenizedText(()), *join_sentences(text, passage, max_tokens))
            for name, text in documents
            for passage in split_passages(segmenter.sentences(text), text)
        ]
        pool = None if elmo is None else (lambda sentences: elmo.embed(sentences, pool="mean"))
        self._index = PassageIndex([example.text.tokens for example in self._passages], pool)

    def find(self, question: str) -> list[AnswersExample]:
        """The examples to predict: a question about each of the best passages, best first."""
        asked = tokenize_text(question, self._segmenter, "the question")
        ranked = self._index.rank(asked.tokens, self._count)
        return [replace(self._passages[number], question=asked, id=question) for number, _ in ranked]

    def choose(
        self, examples: Sequence[AnswersExample], predictions: Sequence[AnswerPrediction]
    ) -> AnswerPrediction:
        """The best of the predictions, with its location: that with an answer and the largest margin."""
        pairs = zip(examples, predictions, strict=True)
        example, best = max(pairs, key=lambda pair: (pair[1].answer is not None, pair[1].best.margin))
        line = str(example.text.text).count("\n", 0, best.offsets[0]) + 1 if best.offsets else 1
        return replace(best, source=f"{example.location}:{line}")


def split_passages(sentences: Sequence[Sequence[Token]], text: str) -> Iterator[list[Sequence[Token]]]:
    """Yield the sentences of each passage."""
    passage: list[Sequence[Token]] = []
    size = 0
    for sentence in sentences:
        new_paragraph = bool(passage) and "\n" in text[passage[-1][-1].end : sentence[0].start]
        full = size + len(sentence) > PASSAGE_TOKENS
        if passage and (full or (new_paragraph and size >= LEAST_TOKENS)):
            yield passage
            passage, size = [], 0
        passage.append(sentence)
        size += len(sentence)
    if passage:
        yield passage
