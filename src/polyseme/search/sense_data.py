"""Read files of words labelled with senses: CoarseWSD-20, Raganato's XML, SemCor columns, plain rows.

    files  ->  search.sense_data  ->  search.usage_vectors, search.disambiguation

A labelled usage is the tokens of a sentence, the span of the word in them, its key (what it is a form of: a
lemma with its part of speech, or just a word), and its senses, of which any is right. It has none if the file
does not say.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from polyseme.errors import DataError, UsageError
from polyseme.json_text import parse_digits
from polyseme.text.brackets import parse_brackets
from polyseme.text.encodings import AUTO
from polyseme.text.reading import open_bytes, read_lines
from polyseme.text.validate import check_path

SegmentText = Callable[[str], list[str]]
SenseRow = Sequence[str | None]  # a word, a sentence with the word in [brackets] and, if known, its sense
SenseExamples = str | Path | Iterable[SenseRow]
SATELLITE, ADJECTIVE = "5", "3"  # classes of WordNet's sense keys: both are adjectives
WORD_CLASSES = {"NOUN": "1", "VERB": "2", "ADJ": "3", "ADV": "4"}


@dataclass(frozen=True)
class LabelledUsage:
    """A word in a sentence, with its senses.

    Attributes:
        name: Its location (file:line), or its id in an XML file.
        key: What the word is a form of; senses are distinguished among usages with the same key.
        tokens: The tokens of the sentence.
        start: Position of the first token of the word.
        stop: Position after its last token.
        senses: The right senses; empty if unknown.

    """

    name: str
    key: str
    tokens: tuple[str, ...]
    start: int
    stop: int
    senses: tuple[str, ...] = ()


def read_sense_data(
    path: SenseExamples, part: str, segment_text: SegmentText = str.split, encoding: str = AUTO
) -> list[LabelledUsage]:
    """Read the labelled usages of a file, of a CoarseWSD-20 folder, or of rows in memory.

    Args:
        path: A file (.xml, or text in SemCor columns or plain rows), a folder, or rows as the plain ones.
        part: Which files of a folder to read: "train" or "test"; rows are called by it in error messages.
        segment_text: Splits the sentences of plain rows into tokens; the other formats contain tokens.
        encoding: The encoding of the files; "auto" detects it. XML declares its own.

    Raises:
        DataError: The file has no labelled words, or a line is malformed; the message starts with file:line.
        UsageError: `path` is neither a path nor rows, or an XML file has an unknown part of speech.

    """
    if not isinstance(path, str | Path) and isinstance(path, Iterable):
        usages = list(_parse_rows(_list_rows(path, part), segment_text))
        if not usages:
            raise DataError(f"{part}: no labelled words in it.")
        return usages
    file = Path(check_path(path, part, "the path of labelled examples")).expanduser()
    if file.is_dir():
        usages = list(_read_coarse_wsd(file, part, encoding))
    elif file.suffix == ".xml":
        usages = list(_read_xml(file))
    else:
        first_line = next((line.text for line in read_lines(file, encoding) if line.text.strip()), "")
        is_semcor = first_line.startswith("# ")
        usages = list(_read_semcor(file, encoding) if is_semcor else _read_rows(file, segment_text, encoding))
    if not usages:
        raise DataError(f"{path}: no labelled words in it.")
    return usages


def wordnet_key(sense: str) -> str:
    """Return the lemma and part of speech of a WordNet sense key: art%1 for art%1:09:00::."""
    lemma, _, rest = sense.partition("%")
    return f"{lemma}%{ADJECTIVE if rest[:1] == SATELLITE else rest[:1]}"


def read_wordnet_senses(path: str | Path) -> dict[str, str]:
    """Read the first sense of each word from WordNet's index.sense.

    Args:
        path: The file; its lines are sense key, offset, number of the sense, count.

    Returns:
        The sense key of the first sense, by the word's key (see `wordnet_key`).

    Raises:
        DataError: A line has another format.

    """
    first_senses: dict[str, str] = {}
    for line in read_lines(path):
        fields = line.text.split()
        if len(fields) != 4 or "%" not in fields[0] or parse_digits(fields[2]) is None:
            raise DataError(
                f"{line.source}:{line.number}: {line.text!r:.40}, expected a line of WordNet's index.sense."
            )
        if fields[2] == "1":
            first_senses.setdefault(wordnet_key(fields[0]), fields[0])
    return first_senses


def _read_coarse_wsd(folder: Path, part: str, encoding: str) -> Iterator[LabelledUsage]:
    """One folder per word, with PART.data.txt (position, tab, tokens) and PART.gold.txt."""
    word_folders = sorted(file.parent for file in folder.rglob(f"{part}.data.txt"))
    for word_folder in word_folders:
        labels = [line.text.strip() for line in read_lines(word_folder / f"{part}.gold.txt", encoding)]
        lines = list(read_lines(word_folder / f"{part}.data.txt", encoding))
        if len(labels) != len(lines):
            raise DataError(f"{word_folder}: {len(lines)} sentences and {len(labels)} senses in {part}.")
        for line, label in zip(lines, labels, strict=True):
            position, _, text = line.text.partition("\t")
            tokens = tuple(text.split())
            location = f"{line.source}:{line.number}"
            start = parse_digits(position)
            if start is None or start >= len(tokens):
                raise DataError(f"{location}: expected the position of a word, a tab and a sentence.")
            yield LabelledUsage(location, word_folder.name, tokens, start, start + 1, (label,))


def _read_rows(path: Path, segment_text: SegmentText, encoding: str) -> Iterator[LabelledUsage]:
    """Lines of word, sentence with the word in [brackets], sense, separated by tabs."""
    lines = (line for line in read_lines(path, encoding) if line.text.strip())
    return _parse_rows(((line.location, line.text.split("\t")) for line in lines), segment_text)


def _list_rows(rows: Iterable[SenseRow], part: str) -> Iterator[tuple[str, list[str]]]:
    """Rows in memory with their locations; a sense may be None."""
    for number, row in enumerate(rows, start=1):
        fields = list(row) if isinstance(row, tuple | list) else []
        if fields[2:] == [None]:
            fields.pop()
        if not fields or not all(isinstance(field, str) for field in fields):
            raise UsageError(
                f"{part}:{number}: expected a tuple of a word, a sentence and its sense, not {row!r:.60}."
            )
        yield f"{part}:{number}", fields


def _parse_rows(rows: Iterable[tuple[str, list[str]]], segment_text: SegmentText) -> Iterator[LabelledUsage]:
    """Rows of word, sentence with the word in [brackets], sense; brackets are split at spaces only."""
    for location, fields in rows:
        if len(fields) not in (2, 3):
            raise DataError(f"{location}: {len(fields)} columns, expected a word, a sentence and its sense.")
        try:
            text = parse_brackets(fields[1], allow_several_words=True)
        except UsageError as problem:
            raise DataError(f"{location}: {problem}") from None
        before, word = segment_text(text.before), text.marked.split()
        if not word:
            raise DataError(f"{location}: the brackets are empty.")
        tokens, start = (*before, *word, *segment_text(text.after)), len(before)
        senses = (fields[2].strip(),) if len(fields) == 3 and fields[2].strip() else ()
        yield LabelledUsage(location, fields[0].strip(), tokens, start, start + len(word), senses)


Part = tuple[str, list[str], str | None, tuple[str, ...]]  # name, tokens, key, senses


def _read_semcor(path: Path, encoding: str) -> Iterator[LabelledUsage]:
    """Columns of token, lemma, part of speech, sense key or _, …; a blank line ends a sentence."""
    parts: list[Part] = []
    for line in [*read_lines(path, encoding), None]:
        if line is not None and line.text.strip() and not line.text.startswith("# "):
            location = f"{line.source}:{line.number}"
            fields = line.text.split("\t")
            if len(fields) < 4:
                raise DataError(f"{location}: {len(fields)} columns, expected 4 or more.")
            tokens = [token for token in fields[0].split("_") if token] or ["_"]
            parts.append((location, tokens, None, (fields[3],) if "%" in fields[3] else ()))
            continue
        yield from _label_sentence(parts)
        parts = []


def _read_xml(path: Path) -> Iterator[LabelledUsage]:
    """Raganato's sentences; the senses are in NAME.gold.key.txt beside the file, if it exists."""
    keys = path.with_name(path.name.removesuffix(".data.xml").removesuffix(".xml") + ".gold.key.txt")
    labels = {}
    if keys.exists():
        for line in read_lines(keys):
            name, *senses = line.text.split()
            labels[name] = tuple(senses)
    try:
        with open_bytes(path) as stream:
            for _, element in ElementTree.iterparse(stream):  # noqa: S314  # expat refuses runaway entities
                if element.tag == "sentence":
                    yield from _label_sentence([_read_element(child, labels) for child in element])
                    element.clear()
    except ElementTree.ParseError as problem:
        raise DataError(f"{path}:{problem.position[0]}: not XML ({problem}).") from None


def _read_element(child: ElementTree.Element, labels: dict[str, tuple[str, ...]]) -> Part:
    tokens = (child.text or "_").replace("_", " ").split() or ["_"]
    if child.tag != "instance":
        return "", tokens, None, ()
    name = child.get("id", "")
    word_class = WORD_CLASSES.get(child.get("pos", ""))
    if word_class is None:
        raise UsageError(
            f"{name}: the part of speech is {child.get('pos')!r}, expected one of {', '.join(WORD_CLASSES)}."
        )
    return name, tokens, f"{child.get('lemma', '').lower()}%{word_class}", labels.get(name, ())


def _label_sentence(parts: list[Part]) -> Iterator[LabelledUsage]:
    """The labelled words of one sentence; a word of several tokens is one span."""
    sentence = tuple(token for _, tokens, _, _ in parts for token in tokens)
    start = 0
    for name, tokens, key, senses in parts:
        stop = start + len(tokens)
        word_key = key or (wordnet_key(senses[0]) if senses else None)
        if word_key is not None:
            yield LabelledUsage(name, word_key, sentence, start, stop, senses)
        start = stop
