"""The verbs book and characters.

api.pretraining, api.indexing, books  ->  api.books  ->  api
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from polyseme.api.indexing import index
from polyseme.api.pretraining import pretrain
from polyseme.api.sources import open_part
from polyseme.books.cast import Cast, find_cast
from polyseme.books.characters import Character, detect_language, find_characters, read_aliases
from polyseme.books.mentions import BookMentions, Paragraph, count_mentions
from polyseme.books.network import find_groups, write_tables
from polyseme.books.page import BookFacts, render_page
from polyseme.choices import BookLanguage
from polyseme.elmo import Elmo, load
from polyseme.errors import DataError, UsageError
from polyseme.io.atomic import new_group
from polyseme.io.output_lock import lock_output
from polyseme.io.progress import ProgressOption, open_progress
from polyseme.search.index import Index, is_index
from polyseme.search.selection import Documents
from polyseme.search.usage_store import read_head
from polyseme.text.corpus.documents import Document, expand_inputs, read_documents
from polyseme.text.function_words import is_content_word
from polyseme.text.segment.stream import group_lines
from polyseme.text.segment.word_list import NAME_SEPARATOR
from polyseme.text.simplified import simplify
from polyseme.text.validate import check_path, list_paths
from polyseme.training.loop import StoppedError
from polyseme.training.run_record import RUN
from polyseme.word_vectors import WordVectors

PAGE = "book.html"
RESUME = "The same call continues."
_FREQUENT_WORDS, _NEAREST = 24, 6
_MIN_USAGES = 5  # of a word that is shown as a neighbour


@dataclass(frozen=True)
class BookResult:
    """What `book` made of a text.

    Attributes:
        folder: The folder with the page, the tables, the model and the index.
        page: The HTML page.
        language: `zh` or `en`.
        characters: The characters, those of the alias file first, then by mentions.
        mentions: Where they occur, and which of them together; characters by their positions in the list.
        groups: The group of each character, from 0.
        index: The index of the book, open.

    """

    folder: Path
    page: Path
    language: str
    characters: list[Character]
    mentions: BookMentions
    groups: list[int]
    index: Index = field(repr=False)


def book(
    texts: str | Path | Sequence[str | Path],
    out: str | Path,
    config: str = "novel",
    *,
    settings: Sequence[str] = (),
    alias: str | Path | None = None,
    words: str | Path | None = None,
    title: str | None = None,
    language: BookLanguage | None = None,
    documents: str = "auto",
    encoding: str = "auto",
    characters: int = 40,
    force: bool = False,
    progress: ProgressOption = None,
) -> BookResult:
    """Train a model on a book, index it, find its characters, and write one HTML page about them.

    `out` gets book.html, characters.csv, chapters.csv, pairs.csv, network.graphml, and the folders model and
    index. The same call continues after an interruption; another `alias` or `title` needs no new training.

    Args:
        texts: The book: files or folders; .gz, .zst, .html and .epub are read, too.
        out: The folder to write.
        config: A preset (tiny, novel, small, …) or a .toml file for the training.
        settings: Overrides of the training such as "train.seed=7".
        alias: A file of characters, one per line: name, tab, aliases.
        words: Words that the segmentation must know: a dictionary in jieba's format (word, count, tag).
        title: The title of the page; the name of the text if None.
        language: The language of the page, "zh" or "en"; that of the text if None.
        documents: What is a chapter: "auto", "chapters-zh", "chapters-en", "file", or a regular expression
            for headings.
        encoding: The encoding of the files; "auto" detects it.
        characters: The largest number of characters, unless the alias file has more.
        force: Replace what `out` holds.
        progress: None shows a bar on a terminal or in a notebook, True always, False never; a function
            receives every `ProgressEvent`.

    Returns:
        The characters, their mentions and groups, and the open index.

    Raises:
        UsageError: If `out` holds something else.
        ConfigError: If a setting is wrong, or `out` holds a model of another text.
        DataError: If a text or the alias file cannot be read.

    Example:
        >>> result = polyseme.book("hongloumeng.txt", "hongloumeng", alias="aliases.tsv")
        >>> result.characters[0].name, result.mentions.counts[0]

    """
    if characters < 1:
        raise UsageError(f"characters is {characters}, expected 1 or more.")
    folder = Path(check_path(out, "out")).expanduser()
    files = expand_inputs(list_paths(texts, "texts"))
    listed = read_aliases(alias) if alias is not None else []
    _check_folder(folder)
    with lock_output(folder):
        model_folder = folder / "model"
        try:
            run = pretrain(
                files,
                model_folder,
                config,
                settings=["corpus.names=true", *settings],
                words=words,
                documents=documents,
                encoding=encoding,
                resume=not force and (model_folder / RUN).exists(),
                force=force,
                progress=progress,
            )
        except StoppedError as stop:
            raise StoppedError(str(stop).replace("Continue with `resume=True`.", RESUME)) from None
        finally:
            _remove_empty(folder)
        elmo = load(model_folder)
        usages = index(
            elmo,
            files,
            folder / "index",
            min_count=2,
            documents=documents,
            encoding=encoding,
            force=force or _is_other_index(folder / "index", elmo),
            progress=progress,
        )
        chapters, paragraphs = _read_paragraphs(elmo, files, documents, encoding)
        sentences = [elmo.token_texts(text) for paragraph in paragraphs for text in paragraph.sentences]
        text_language = detect_language(sentences)
        cast = find_characters(sentences, text_language, elmo.word_list, listed, characters)
        mentions = count_mentions(paragraphs, chapters, cast)
        cast, mentions = _sort_characters(cast, mentions, len(listed), paragraphs)
        groups = find_groups(mentions, len(cast))
        facts = BookFacts(
            title=files[0].name.split(".")[0] if title is None else title,
            language=language or text_language,
            tokens=run.report.tokens + run.report.valid_tokens,
            perplexity=run.metrics["mean"],
            nearest=[_find_nearest(usages.words, character) for character in cast],
            words=_list_frequent(usages.words, cast),
        )
        page = render_page(facts, cast, mentions, groups)
        with new_group(folder, "book") as new:
            write_tables(new, cast, mentions, groups)
            (new / PAGE).write_text(page, encoding="utf-8")
        return BookResult(folder, folder / PAGE, text_language, cast, mentions, groups, usages)


def characters(
    index: Index | str | Path,
    *,
    k: int = 40,
    alias: str | Path | None = None,
    memory: int | None = None,
    documents: Documents | None = None,
    progress: ProgressOption = None,
) -> Cast:
    """Find the persons of an index: where they occur, with whom, and who is spoken of alike.

    Names are guesses, as those of `book`: names that the word list of the model or the dictionary of the
    segmentation knows, and capitalised words that speak. An alias file merges the names of one person.

    Args:
        index: An index, open or as a path; its model is loaded for its word list.
        k: The largest number of persons, unless the alias file has more.
        alias: A file of persons, one per line: name, tab, aliases.
        memory: Megabytes of vectors to keep in memory.
        documents: Only these documents; see `nearest`.
        progress: None shows a bar on a terminal or in a notebook, True always, False never; a function
            receives every `ProgressEvent`.

    Returns:
        The persons, the most frequent first, and who occurs with whom.

    Raises:
        UsageError: If no document fits, or `k` is less than 1.
        DataError: If the alias file is wrong.

    Example:
        >>> cast = polyseme.characters("sanguo-index")
        >>> cast.find("曹操").companions[:3], cast.find("曹操").nearest[:3]

    """
    listed = read_aliases(alias) if alias is not None else []
    with open_progress(progress) as on_progress:
        part = open_part(index, documents, memory)
        return find_cast(part, part.elmo.word_list, listed, k, on_progress)


def _check_folder(folder: Path) -> None:
    """Refuse a folder that holds something else than an earlier page or run."""
    if folder.exists() and (
        not folder.is_dir() or (any(folder.iterdir()) and not (folder / "model").is_dir())
    ):
        raise UsageError(f"{folder}: exists already and is no book. Choose another name, or move it away.")


def _remove_empty(folder: Path) -> None:
    """Remove the folder if nothing was written to it: the text was refused."""
    if folder.is_dir() and not any(folder.iterdir()):
        folder.rmdir()


def _is_other_index(folder: Path, elmo: Elmo) -> bool:
    """Whether there is an index of another model: a resumed training may have changed it."""
    return is_index(folder) and read_head(folder)["model"] != elmo.model.fingerprint()


def _read_paragraphs(
    elmo: Elmo, files: Sequence[Path], documents: str, encoding: str
) -> tuple[list[str], list[Paragraph]]:
    """The titles of the chapters, and the paragraphs of the book in simplified characters."""
    parts: list[tuple[Document, list[list[str]]]] = []
    for document, lines in read_documents(files, documents, encoding):
        units = [
            [
                simplify(" ".join(unit.text[tokens[0].start : tokens[-1].end].split()))
                for tokens in elmo.split_sentences(unit.text)
            ]
            for unit in group_lines(lines, elmo.config.segment)
        ]
        parts.append((document, [sentences for sentences in units if sentences]))
    sizes = [sum(len(text) for sentences in units for text in sentences) for _, units in parts]
    shortest = min(
        (size for size, (document, _) in zip(sizes, parts, strict=True) if document.number), default=0
    )
    # What is before the first heading is a chapter only if it is as long as one; else it is a title page.
    kept = [part for size, part in zip(sizes, parts, strict=True) if part[0].number or size >= shortest]
    chapters = [document.name for document, _ in kept]
    paragraphs = [
        Paragraph(number, sentences) for number, (_, units) in enumerate(kept) for sentences in units
    ]
    if not paragraphs:
        raise DataError(f"{files[0]}: contains no words. A book needs text.")
    return chapters, paragraphs


def _sort_characters(
    characters: list[Character], mentions: BookMentions, listed: int, paragraphs: Sequence[Paragraph]
) -> tuple[list[Character], BookMentions]:
    """Sort by mentions; leave out who is not mentioned, except the characters of the alias file."""
    order = sorted(
        (n for n in range(len(characters)) if mentions.counts[n] or n < listed),
        key=lambda n: (-mentions.counts[n], n),
    )
    kept = [characters[n] for n in order]
    return kept, count_mentions(paragraphs, mentions.chapters, kept)


def _find_nearest(words: WordVectors, character: Character) -> list[str]:
    """Words that are used like a character, by all its names."""
    names = {NAME_SEPARATOR.join(name.split()) for name in character.names}
    known = sorted(name for name in names if name in words)
    if not known:
        return []
    weighted = [(name, float(words.count(name))) for name in known]
    near = words.nearest_to_sum(weighted, 4 * _NEAREST, min_count=_MIN_USAGES, min_chars=2)
    return [_show(neighbour.word) for neighbour in near if _is_content(neighbour.word)][:_NEAREST]


def _list_frequent(words: WordVectors, characters: Sequence[Character]) -> list[tuple[str, list[str]]]:
    """Frequent content words that are no names, each with the nearest."""
    names = {NAME_SEPARATOR.join(name.split()) for character in characters for name in character.names}
    order = (-words.counts).argsort(kind="stable").tolist()
    chosen = [
        words.words[row] for row in order if _is_content(words.words[row]) and words.words[row] not in names
    ]
    return [
        (
            _show(word),
            [_show(near.word) for near in words.nearest(word, _NEAREST, min_count=_MIN_USAGES, min_chars=2)],
        )
        for word in chosen[:_FREQUENT_WORDS]
    ]


def _show(word: str) -> str:
    """A word as people write it."""
    return word.replace(NAME_SEPARATOR, " ")


def _is_content(word: str) -> bool:
    """Whether a word says what a text is about: no function word, two Han characters or four letters."""
    letters = word.replace(NAME_SEPARATOR, "").replace(".", "")
    is_long = letters.isalpha() and len(letters) >= (4 if letters.isascii() else 2)
    return is_long and is_content_word(word)
