"""Files of words with their senses: CoarseWSD-20, Raganato's XML, SemCor's columns, plain rows.

    files  ->  search.sense_data  ->  search.disambiguation

A marked word is the tokens of its sentence, where it stands in them, what it is a form of (`key`), and its
senses, of which any is right; none where that is not known.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from xml.etree import ElementTree

from polyseme.errors import DataError, UsageError
from polyseme.text.brackets import parse_brackets
from polyseme.text.reading import read_lines

Cut = Callable[[str], list[str]]
SATELLITE, ADJECTIVE = "5", "3"  # classes of WordNet's sense keys: adjectives both
CLASSES = {"NOUN": "1", "VERB": "2", "ADJ": "3", "ADV": "4"}


@dataclass(frozen=True)
class LabelledUsage:
    """A word in a sentence: tokens[start:stop]."""

    name: str  # file:line, or its number in the file
    key: str
    tokens: tuple[str, ...]
    start: int
    stop: int
    senses: tuple[str, ...] = ()


def read_sense_data(path: str | Path, part: str, cut: Cut = str.split) -> list[LabelledUsage]:
    """The marked words of a file, or of a folder of CoarseWSD-20, of which `part` is train or test.

    cut: text to tokens, for plain rows: the other forms hold tokens already.
    """
    place = Path(path).expanduser()
    if place.is_dir():
        found = list(_coarse(place, part))
    elif place.suffix == ".xml":
        found = list(_xml(place))
    else:
        first = next((line.text for line in read_lines(place) if line.text.strip()), "")
        found = list(_semcor(place) if first.startswith("# ") else _rows(place, cut))
    if not found:
        raise DataError(f"{path}: no marked words in it.")
    return found


def wordnet_key(sense: str) -> str:
    """art%1:09:00:: is a sense of the noun art: art%1."""
    lemma, _, rest = sense.partition("%")
    return f"{lemma}%{ADJECTIVE if rest[:1] == SATELLITE else rest[:1]}"


def read_wordnet_senses(path: str | Path) -> dict[str, str]:
    """The first sense of each word, from WordNet's index.sense: key, offset, number, count."""
    found: dict[str, str] = {}
    for line in read_lines(path):
        fields = line.text.split()
        if len(fields) != 4 or "%" not in fields[0] or not fields[2].isdigit():
            raise DataError(
                f"{line.source}:{line.number}: {line.text!r:.40}, expected a line of WordNet's index.sense."
            )
        if fields[2] == "1":
            found.setdefault(wordnet_key(fields[0]), fields[0])
    return found


def _coarse(folder: Path, part: str) -> Iterator[LabelledUsage]:
    """A folder a word, with PART.data.txt (place, tab, tokens) and PART.gold.txt."""
    words = sorted(place.parent for place in folder.rglob(f"{part}.data.txt"))
    for word in words:
        labels = [line.text.strip() for line in read_lines(word / f"{part}.gold.txt")]
        lines = list(read_lines(word / f"{part}.data.txt"))
        if len(labels) != len(lines):
            raise DataError(f"{word}: {len(lines)} sentences and {len(labels)} senses in {part}.")
        for line, label in zip(lines, labels, strict=True):
            at, _, text = line.text.partition("\t")
            tokens = tuple(text.split())
            name = f"{line.source}:{line.number}"
            if not at.isdigit() or not int(at) < len(tokens):
                raise DataError(f"{name}: expected the place of a word, a tab and a sentence.")
            yield LabelledUsage(name, word.name, tokens, int(at), int(at) + 1, (label,))


def _rows(path: Path, cut: Cut) -> Iterator[LabelledUsage]:
    """word, tab, a sentence with the word in [brackets], tab, sense; what is marked is cut at spaces only."""
    for line in read_lines(path):
        if not line.text.strip():
            continue
        name = f"{line.source}:{line.number}"
        fields = line.text.split("\t")
        if len(fields) not in (2, 3):
            raise DataError(f"{name}: {len(fields)} columns, expected a word, a sentence and its sense.")
        try:
            before, inside, after = parse_brackets(fields[1], allow_several_words=True)
        except UsageError as problem:
            raise DataError(f"{name}: {problem}") from None
        left, own = cut(before), inside.split()
        if not own:
            raise DataError(f"{name}: the brackets are empty.")
        tokens, start = (*left, *own, *cut(after)), len(left)
        senses = (fields[2].strip(),) if len(fields) == 3 and fields[2].strip() else ()
        yield LabelledUsage(name, fields[0].strip(), tokens, start, start + len(own), senses)


def _semcor(path: Path) -> Iterator[LabelledUsage]:
    """Columns: token, lemma, part of speech, sense key or _, …; a blank line ends a sentence."""
    rows: list[tuple[str, list[str]]] = []
    for line in [*read_lines(path), None]:
        if line is not None and line.text.strip() and not line.text.startswith("# "):
            fields = line.text.split("\t")
            if len(fields) < 4:
                raise DataError(f"{line.source}:{line.number}: {len(fields)} columns, expected 4 or more.")
            rows.append((f"{line.source}:{line.number}", fields))
            continue
        parts = [(place, row[0].split("_"), (row[3],) if "%" in row[3] else ()) for place, row in rows]
        yield from _sentence([(p, [w for w in words if w] or ["_"], None, s) for p, words, s in parts])
        rows = []


def _xml(path: Path) -> Iterator[LabelledUsage]:
    """Raganato's sentences; their senses stand beside them in NAME.gold.key.txt, if that is there."""
    keys = path.with_name(path.name.removesuffix(".data.xml").removesuffix(".xml") + ".gold.key.txt")
    gold = {}
    if keys.exists():
        for line in read_lines(keys):
            number, *senses = line.text.split()
            gold[number] = tuple(senses)
    try:
        for _, element in ElementTree.iterparse(path):  # noqa: S314  # expat refuses runaway entities
            if element.tag == "sentence":
                yield from _sentence([_word(child, gold) for child in element])
                element.clear()
    except ElementTree.ParseError as problem:
        raise DataError(f"{path}:{problem.position[0]}: not XML ({problem}).") from None


Part = tuple[str, list[str], str | None, tuple[str, ...]]  # name, words, key, senses


def _word(child: ElementTree.Element, gold: dict[str, tuple[str, ...]]) -> Part:
    words = (child.text or "_").replace("_", " ").split() or ["_"]
    if child.tag != "instance":
        return "", words, None, ()
    number = child.get("id", "")
    kind = CLASSES.get(child.get("pos", ""))
    if kind is None:
        raise UsageError(
            f"{number}: the part of speech {child.get('pos')!r} is none of {', '.join(CLASSES)}."
        )
    return number, words, f"{child.get('lemma', '').lower()}%{kind}", gold.get(number, ())


def _sentence(parts: list[Part]) -> Iterator[LabelledUsage]:
    """The marked words of one sentence; a word of several tokens is marked as a whole."""
    tokens = tuple(word for _, words, _, _ in parts for word in words)
    start = 0
    for name, words, key, senses in parts:
        stop = start + len(words)
        own = key or (wordnet_key(senses[0]) if senses else None)
        if own is not None:
            yield LabelledUsage(name, own, tokens, start, stop, senses)
        start = stop
