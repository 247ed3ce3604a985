"""Read documents with clusters of mentions: CoNLL-2012 (LitBank, too), CorefUD, JSON lines.

    text.reading, tasks.data.sources  ->  tasks.data.clusters  ->  tasks.coref

CoNLL-2012: `#begin document`, the word in column 4, the speaker in column 10, clusters in the last column:
`(12`, `12)`, `(12)|(3`; `-`, `_` or nothing is none. LitBank separates columns by tabs.
CorefUD 1.x: CoNLL-U with `Entity=(e1-person-1(e2-…)e1)` in MISC, after `# global.Entity = eid-etype-head-…`.
JSON lines and records: {"sentences": [[word, …], …], "clusters": [[[start, stop], …], …]}, where tokens count
over the document and `stop` is not included.
"""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from polyseme.errors import DataError
from polyseme.json_text import parse_digits
from polyseme.tasks.data.sources import Records, Source
from polyseme.tasks.data.tables import guess_format, read_json_records
from polyseme.text.reading import Line, read_lines

FORMATS = {".jsonl": "jsonl", ".json": "jsonl", ".ndjson": "jsonl", ".conllu": "corefud"}
WORD, SPEAKER, LEAST_COLUMNS = 3, 9, 5  # columns of CoNLL-2012, from 0
NOTHING = ("-", "_", "")
NO_SPEAKER = ("-", "_", "", "*")
BEGIN, END = "#begin document", "#end document"
_PART = re.compile(r"\((?P<name>[^()|]+)\)|\((?P<opens>[^()|]+)|(?P<closes>[^()|]+)\)")
_ENTITY = re.compile(r"\((?P<opens>[^()]+)(?P<single>\))?|(?<![^()])(?P<closes>[^()]+)\)")
_DOCUMENT_NAME = re.compile(r"#begin document \(?(?P<name>.*?)\)?(?:; part (?P<part>\d+))?\s*$")

Mention = tuple[int, int]  # start and stop, counted over the document


class ClusterDocument(NamedTuple):
    """A document; `clusters` is None if the source has none, a speaker is None where it is not known."""

    location: str
    name: str
    sentences: list[list[str]]
    clusters: list[list[Mention]] | None
    speakers: list[str | None]  # of each sentence


@dataclass
class _OpenDocument:
    """A document that is being read."""

    location: str
    name: str
    sentences: list[list[str]] = field(default_factory=list)
    speakers: list[str | None] = field(default_factory=list)
    words: list[str] = field(default_factory=list)  # of the open sentence
    speaker: str | None = None
    count: int = 0  # of all words so far
    opened: defaultdict[str, list[tuple[int, str]]] = field(default_factory=lambda: defaultdict(list))
    mentions: dict[str, list[Mention]] = field(default_factory=dict)
    seen: set[Mention] = field(default_factory=set)

    def add_word(self, word: str, speaker: str | None) -> None:
        self.speaker = self.speaker if self.words else speaker
        self.words.append(word)
        self.count += 1

    def open_mention(self, cluster: str, location: str, start: int) -> None:
        self.opened[cluster].append((start, location))

    def close_mention(self, cluster: str, location: str) -> None:
        """End a mention at the last word; one of no words, or at the same words as another, is dropped."""
        if not self.opened[cluster]:
            raise DataError(f"{location}: {cluster}) closes a mention that is not open in {self.name}.")
        start, _ = self.opened[cluster].pop()
        if start < self.count and (start, self.count) not in self.seen:
            self.seen.add((start, self.count))
            self.mentions.setdefault(cluster, []).append((start, self.count))

    def end_sentence(self) -> None:
        if self.words:
            self.sentences.append(self.words)
            self.speakers.append(self.speaker)
            self.words, self.speaker = [], None

    def finish(self) -> ClusterDocument:
        self.end_sentence()
        for cluster, starts in self.opened.items():
            if starts:
                raise DataError(f"{starts[0][1]}: ({cluster} does not close in {self.name}.")
        clusters = [sorted(mentions) for mentions in self.mentions.values()]
        return ClusterDocument(self.location, self.name, self.sentences, sorted(clusters), self.speakers)


def read_clusters(source: Source, file_format: str, *, labelled: bool) -> Iterator[ClusterDocument]:
    """Read documents with their clusters.

    Args:
        source: A path (a file, or a folder of them), or records.
        file_format: "conll2012", "corefud", "jsonl", or "auto": by the name of the file.
        labelled: Whether the clusters must be there.

    Raises:
        DataError: If the source cannot be read as such a file; the message begins with `file:line`.

    """
    if file_format == "auto":
        file_format = guess_format(str(source), FORMATS, "conll2012")
    if isinstance(source, Records) or file_format == "jsonl":
        for location, record in read_json_records(source):
            yield _read_values(location, record, labelled=labelled)
        return
    readers: dict[str, Callable[[Iterable[Line]], Iterator[ClusterDocument]]] = {
        "conll2012": _read_conll2012,
        "corefud": _read_corefud,
    }
    yield from (document for document in readers[file_format](read_lines(source)) if document.sentences)


def _read_values(location: str, record: Any, *, labelled: bool) -> ClusterDocument:
    if not isinstance(record, Mapping):
        raise DataError(f'{location}: {record!r:.60}, expected {{"sentences": […], "clusters": […]}}.')
    sentences = record.get("sentences")
    if not isinstance(sentences, list | tuple) or not all(map(_is_sentence, sentences)):
        raise DataError(f'{location}: "sentences" is {sentences!r:.40}, expected lists of words.')
    name = str(record.get("name", record.get("doc_key", location)))
    clusters = record.get("clusters")
    words = [list(sentence) for sentence in sentences]
    speakers = _read_speakers(location, record.get("speakers"), len(words))
    if clusters is None and not labelled:
        return ClusterDocument(location, name, words, None, speakers)
    return ClusterDocument(location, name, words, _check_clusters(location, clusters, words), speakers)


def _is_sentence(value: Any) -> bool:
    return isinstance(value, list | tuple) and all(isinstance(word, str) and word.strip() for word in value)


def _read_speakers(location: str, values: Any, count: int) -> list[str | None]:
    """A speaker for each sentence; lists, as they are in published files, have one for each word."""
    if values is None:
        return [None] * count
    if not isinstance(values, list | tuple) or len(values) != count:
        raise DataError(
            f'{location}: "speakers" is {values!r:.40}, expected one for each of {count} sentences.'
        )
    firsts = [value[0] if isinstance(value, list | tuple) and value else value for value in values]
    return [value if isinstance(value, str) and value not in NO_SPEAKER else None for value in firsts]


def _check_clusters(location: str, clusters: Any, sentences: Sequence[Sequence[str]]) -> list[list[Mention]]:
    total = sum(map(len, sentences))
    if not isinstance(clusters, list | tuple):
        raise DataError(f'{location}: "clusters" is {clusters!r:.40}, expected lists of [start, stop].')
    seen: set[Mention] = set()
    checked = []
    for number, cluster in enumerate(clusters, start=1):
        if not isinstance(cluster, list | tuple) or not cluster:
            raise DataError(
                f"{location}: cluster {number} is {cluster!r:.40}, expected lists of [start, stop]."
            )
        mentions = []
        for mention in cluster:
            if not _is_span(mention) or not 0 <= mention[0] < mention[1] <= total:
                raise DataError(
                    f"{location}: cluster {number} has the mention {mention!r:.30}, expected [start, stop] "
                    f"within {total:,} words; stop is not included."
                )
            if tuple(mention) in seen:
                raise DataError(
                    f"{location}: the mention {list(mention)} occurs twice. A mention has one cluster."
                )
            seen.add((mention[0], mention[1]))
            mentions.append((mention[0], mention[1]))
        checked.append(sorted(mentions))
    return sorted(checked)


def _is_span(value: Any) -> bool:
    return (
        isinstance(value, list | tuple)
        and len(value) == 2
        and all(isinstance(number, int) and not isinstance(number, bool) for number in value)
    )


def _read_conll2012(lines: Iterable[Line]) -> Iterator[ClusterDocument]:
    document: _OpenDocument | None = None
    for line in lines:
        if line.text.startswith("#"):
            if document is not None and (line.text.startswith((BEGIN, END))):
                yield document.finish()
                document = None
            if line.text.startswith(BEGIN):
                match = _DOCUMENT_NAME.match(line.text)
                name = match["name"] + (f" part {match['part']}" if match["part"] else "") if match else ""
                document = _OpenDocument(line.location, name or line.location)
            continue
        if not line.text.strip():
            if document is not None:
                document.end_sentence()
            continue
        if document is None:
            document = _OpenDocument(line.location, Path(line.source).stem)
        _add_conll2012_word(document, line)
    if document is not None:
        yield document.finish()


def _add_conll2012_word(document: _OpenDocument, line: Line) -> None:
    columns = line.text.split("\t") if "\t" in line.text else line.text.split()
    if len(columns) < LEAST_COLUMNS or not columns[WORD].strip():
        raise DataError(
            f"{line.location}: {len(columns)} columns, expected {LEAST_COLUMNS} or more: document, part, "
            "number, word, …, clusters."
        )
    speaker = columns[SPEAKER].strip() if len(columns) > SPEAKER + 1 else ""
    document.add_word(columns[WORD].strip(), None if speaker in NO_SPEAKER else speaker)
    value = columns[-1].strip()
    if value in NOTHING:
        return
    for part in value.split("|"):
        match = _PART.fullmatch(part)
        if match is None:
            raise DataError(f"{line.location}: {part!r:.30} is no cluster; expected (12, 12) or (12).")
        cluster = match["name"] or match["opens"] or match["closes"]
        if match["closes"] is None:
            document.open_mention(cluster, line.location, document.count - 1)
        if match["opens"] is None:
            document.close_mention(cluster, line.location)


def _read_corefud(lines: Iterable[Line]) -> Iterator[ClusterDocument]:
    document: _OpenDocument | None = None
    for line in lines:
        text = line.text
        if text.startswith("# newdoc"):
            if document is not None:
                yield document.finish()
            name = text.partition("=")[2].strip()
            document = _OpenDocument(line.location, name or line.location)
        elif not text.strip():
            if document is not None:
                document.end_sentence()
        elif not text.startswith("#"):
            document = document or _OpenDocument(line.location, Path(line.source).stem)
            _add_corefud_word(document, line)
    if document is not None:
        yield document.finish()


def _add_corefud_word(document: _OpenDocument, line: Line) -> None:
    columns = line.text.rstrip("\r").split("\t")
    if len(columns) != 10:
        raise DataError(
            f"{line.location}: {len(columns)} columns, expected 10. CoNLL-U is separated by tabs."
        )
    is_word = parse_digits(columns[0]) is not None  # no range, no empty node
    if is_word:
        document.add_word("_".join(columns[1].split()), None)
    start = document.count - is_word
    values = dict(part.partition("=")[::2] for part in columns[9].split("|"))
    for match in _ENTITY.finditer(values.get("Entity", "")):
        described = match["opens"] or match["closes"]
        cluster, part = described.split("-")[0], re.search(r"\[(\d+)/\d+\]", described)
        if part is not None and part[1] != "1":
            continue  # of a mention in several parts, the first one is kept
        cluster = cluster.partition("[")[0]
        if match["opens"] is not None:
            document.open_mention(cluster, line.location, start)
        if match["opens"] is None or match["single"]:
            document.close_mention(cluster, line.location)
