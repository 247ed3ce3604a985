"""Refuse a word that an index does not have, with similar spellings.

word_vectors  ->  server.word_checks  ->  server.verbs, server.concordances
"""

from __future__ import annotations

from polyseme.server.http.limits import not_found
from polyseme.server.state import ServerState
from polyseme.word_vectors import WordVectors


async def check_word(state: ServerState, word: str, words: WordVectors, **values: int) -> None:
    """Refuse a word without usages.

    Args:
        state: The state of the server.
        word: The word.
        words: The words of an index or a model.
        values: More values for the error.

    Raises:
        HttpError: The word is not among the words.

    """
    if word in words:
        return
    near = await state.queries.run(lambda: words.suggest_spellings(word))
    hint = f" Near spellings: {', '.join(near)}." if near else ""
    raise not_found(f"The word is not in the index.{hint}", "word_missing", near=near, **values)
