"""Who occurs with whom: pairs of characters, groups of them, and files for other programs.

    books.mentions  ->  books.network  ->  books.pictures, books.page, CSV and GraphML files

A pair weighs as many paragraphs as both characters occur in. Groups are those of the largest modularity that
merging the best two groups again and again reaches (Clauset, Newman and Moore 2004).
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple
from xml.sax.saxutils import escape, quoteattr

from polyseme.books.characters import Character
from polyseme.books.mentions import BookMentions
from polyseme.io.csv_tables import write_csv


class Companion(NamedTuple):
    """A character that occurs with another one, and in how many paragraphs."""

    character: int
    paragraphs: int


def list_companions(mentions: BookMentions, character: int, k: int = 5) -> list[Companion]:
    """The characters that occur most often in the same paragraphs."""
    companions = [
        Companion(second if first == character else first, count)
        for (first, second), count in mentions.in_paragraph.items()
        if character in (first, second)
    ]
    return sorted(companions, key=lambda companion: (-companion.paragraphs, companion.character))[:k]


def find_groups(mentions: BookMentions, count: int) -> list[int]:
    """The group of each of `count` characters, from 0, the largest first; who occurs with nobody is alone."""
    weights = {pair: float(value) for pair, value in mentions.in_paragraph.items()}
    total = sum(weights.values())
    groups: dict[int, set[int]] = {number: {number} for number in range(count)}
    if total:
        degrees = [sum(value for pair, value in weights.items() if n in pair) for n in range(count)]
        between = {(a, b): weights.get((a, b), 0.0) for a in range(count) for b in range(a + 1, count)}
        degree = dict(enumerate(degrees))
        while between:
            gain, pair = max(
                (value / total - degree[a] * degree[b] / (2 * total * total), (-a, -b))
                for (a, b), value in between.items()
            )
            if gain <= 0:
                break
            first, second = -pair[0], -pair[1]
            groups[first] |= groups.pop(second)
            degree[first] += degree.pop(second)
            del between[first, second]
            for other in groups:
                if other != first:
                    key = (min(first, other), max(first, other))
                    between[key] += between.pop((min(second, other), max(second, other)))
    order = sorted(groups.values(), key=lambda members: (-len(members), min(members)))
    labels = {number: label for label, members in enumerate(order) for number in members}
    return [labels[number] for number in range(count)]


def write_tables(
    folder: Path, characters: Sequence[Character], mentions: BookMentions, groups: Sequence[int]
) -> None:
    """Write characters.csv, chapters.csv, pairs.csv and network.graphml into `folder`."""
    write_csv(
        folder / "characters.csv",
        ["name", "aliases", "mentions", "group", "chapters", "first", "last"],
        [
            [
                character.name,
                " ".join(character.aliases),
                mentions.counts[n],
                groups[n] + 1,
                len(chapters := mentions.chapters_of(n)),
                mentions.chapters[chapters[0]] if chapters else "",
                mentions.chapters[chapters[-1]] if chapters else "",
            ]
            for n, character in enumerate(characters)
        ],
    )
    write_csv(
        folder / "chapters.csv",
        ["chapter", "title", *(character.name for character in characters)],
        [
            [number + 1, title, *(mentions.by_chapter[n, number] for n in range(len(characters)))]
            for number, title in enumerate(mentions.chapters)
        ],
    )
    pairs = sorted(mentions.in_paragraph.items(), key=lambda item: (-item[1], item[0]))
    write_csv(
        folder / "pairs.csv",
        ["source", "target", "paragraphs", "sentences"],
        [
            [characters[a].name, characters[b].name, count, mentions.in_sentence[a, b]]
            for (a, b), count in pairs
        ],
    )
    (folder / "network.graphml").write_text(_render_graphml(characters, mentions, groups), encoding="utf-8")


def _render_graphml(characters: Sequence[Character], mentions: BookMentions, groups: Sequence[int]) -> str:
    keys = [("label", "node", "string"), ("mentions", "node", "int"), ("group", "node", "int")]
    keys += [("weight", "edge", "int"), ("sentences", "edge", "int")]
    lines = [
        '<?xml version="1.0" encoding="UTF-8"?>',
        '<graphml xmlns="http://graphml.graphdrawing.org/xmlns">',
    ]
    lines += [
        f'<key id="{name}" for="{element}" attr.name="{name}" attr.type="{kind}"/>'
        for name, element, kind in keys
    ]
    lines.append('<graph edgedefault="undirected">')
    for n, character in enumerate(characters):
        values = {"label": escape(character.name), "mentions": mentions.counts[n], "group": groups[n] + 1}
        data = "".join(f'<data key="{key}">{value}</data>' for key, value in values.items())
        lines.append(f"<node id={quoteattr(f'n{n}')}>{data}</node>")
    for (a, b), count in sorted(mentions.in_paragraph.items()):
        data = f'<data key="weight">{count}</data><data key="sentences">{mentions.in_sentence[a, b]}</data>'
        lines.append(f'<edge source="n{a}" target="n{b}">{data}</edge>')
    return "\n".join([*lines, "</graph>", "</graphml>", ""])
