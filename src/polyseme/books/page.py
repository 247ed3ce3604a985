"""One HTML page about a book, in Chinese or English, that loads nothing from elsewhere.

books.mentions, books.network, books.pictures  ->  books.page  ->  OUT/book.html
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from html import escape
from importlib.resources import files

from polyseme.books.characters import Character
from polyseme.books.mentions import BookMentions
from polyseme.books.network import list_companions
from polyseme.books.pictures import COLOURS, draw_network, draw_timeline


@dataclass(frozen=True)
class PageTexts:
    """What the page says in one language; `notes` explain the sections of the same names."""

    lang: str
    facts: str
    sections: Mapping[str, str]
    notes: Mapping[str, str]
    columns: Sequence[str]
    files: str
    made: str
    separator: str


ENGLISH = PageTexts(
    lang="en",
    facts="{chapters:,} chapters, {characters:,} characters, {mentions:,} mentions of them; a language model "
    "trained on the {tokens:,} words of the text, held-out perplexity {perplexity:,.0f}.",
    sections={
        "who": "Characters",
        "when": "Timeline",
        "together": "Who occurs with whom",
        "groups": "Groups",
        "words": "Nearest words",
    },
    notes={
        "who": "Found in the text. Companions: in how many paragraphs both occur. Nearest by context: words "
        "that are used alike, by the mean contextual vectors of the model.",
        "when": "A row per character, a column per chapter; the darker, the more mentions.",
        "together": "Lines join characters that share many paragraphs. Colours are groups of characters who "
        "occur together more often than by chance.",
        "words": "Frequent words of the book, each with the words that are used most alike.",
    },
    columns=("character", "mentions", "chapters", "companions", "nearest by context"),
    files="Tables for other programs: characters.csv, chapters.csv, pairs.csv, network.graphml. Names that "
    "belong to one character can be merged with an alias file.",
    made="Made with Polyseme.",
    separator=", ",
)
CHINESE = PageTexts(
    lang="zh-CN",
    facts="共 {chapters:,} 章，人物 {characters:,} 个，提及 {mentions:,} 次；"
    "语言模型以全书 {tokens:,} 词训练，留出部分的困惑度为 {perplexity:,.0f}。",
    sections={
        "who": "人物",
        "when": "人物出场时间线",
        "together": "人物关系网",
        "groups": "人物群",
        "words": "语境相近的词",
    },
    notes={
        "who": "人名由程序从正文中发现。同现人物：两人同时出现的段落数。"
        "语境相近：按模型的平均上下文词向量，用法最接近的词。",
        "when": "每行一个人物，每列一章；颜色越深，该人物在这一章出现越多。",
        "together": "连线表示两人常出现在同一段落；颜色表示经常一起出现的人物群。",
        "words": "书中的常用词，以及与之用法最接近的词。",
    },
    columns=("人物", "提及", "章数", "同现人物", "语境相近"),
    files="供其他软件使用的数据：characters.csv、chapters.csv、pairs.csv、network.graphml。"
    "同一人物的不同称呼可用别名文件合并。",
    made="由 Polyseme 生成。",
    separator="、",
)
TEXTS = {"en": ENGLISH, "zh": CHINESE}


@dataclass(frozen=True)
class BookFacts:
    """What the page says beside the characters."""

    title: str
    language: str  # zh or en
    tokens: int
    perplexity: float
    nearest: Sequence[Sequence[str]]  # words used like each character
    words: Sequence[tuple[str, Sequence[str]]]  # frequent words, with the nearest of each


def render_page(
    facts: BookFacts, characters: Sequence[Character], mentions: BookMentions, groups: Sequence[int]
) -> str:
    """Render the page."""
    texts = TEXTS[facts.language]
    counts = texts.facts.format(
        chapters=len(mentions.chapters),
        characters=len(characters),
        mentions=sum(mentions.counts.values()),
        tokens=facts.tokens,
        perplexity=facts.perplexity,
    )
    parts = [f"<h1>{escape(facts.title)}</h1>", f"<p>{counts}</p>"]
    if characters:
        parts += _section(texts, "who", _render_characters(facts, characters, mentions, groups))
        for name, draw in (("when", draw_timeline), ("together", draw_network)):
            picture = draw(characters, mentions, groups, texts.sections[name])
            # On a phone it scrolls sideways: with the keyboard, too.
            parts += _section(texts, name, f'<div class="wide" tabindex="0">{picture}</div>')
        parts.append(_render_groups(texts, characters, groups))
    if facts.words:
        parts += _section(texts, "words", _render_words(texts, facts.words))
    parts.append(f'<p class="faint">{texts.files}</p>\n<p class="faint">{texts.made}</p>')
    style = (files("polyseme") / "books" / "page.css").read_text(encoding="utf-8")
    return (
        f'<!doctype html>\n<html lang="{texts.lang}">\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f'<meta name="color-scheme" content="light dark">\n<title>{escape(facts.title)}</title>\n'
        f"<style>\n{style}</style>\n<main>\n" + "\n".join(parts) + "\n</main>\n</html>\n"
    )


def _section(texts: PageTexts, name: str, content: str) -> list[str]:
    return [f"<h2>{texts.sections[name]}</h2>", f'<p class="faint">{texts.notes[name]}</p>', content]


def _render_characters(
    facts: BookFacts, characters: Sequence[Character], mentions: BookMentions, groups: Sequence[int]
) -> str:
    texts = TEXTS[facts.language]
    rows = []
    for n, character in enumerate(characters):
        companions = (
            f"{escape(characters[other].name)}&nbsp;{paragraphs:,}"
            for other, paragraphs in list_companions(mentions, n)
        )
        cells = [
            f"{mentions.counts[n]:,}",
            f"{len(mentions.chapters_of(n)):,}",
            texts.separator.join(companions),
            escape(texts.separator.join(facts.nearest[n])),
        ]
        aliases = escape(texts.separator.join(character.aliases))
        name = f'<span class="dot g{groups[n] % COLOURS}"></span>{escape(character.name)}'
        rows.append(
            f"<tr><th>{name}"
            + (f' <span class="alias">{aliases}</span>' if aliases else "")
            + "".join(
                f'<td{" class=number" if column < 2 else ""} data-name="{texts.columns[column + 1]}">{cell}'
                for column, cell in enumerate(cells)
            )
        )
    head = "".join(f"<th>{name}" for name in texts.columns)
    return f"<table><thead><tr>{head}<tbody>{''.join(rows)}</table>"


def _render_groups(texts: PageTexts, characters: Sequence[Character], groups: Sequence[int]) -> str:
    lines = []
    for group in range(max(groups, default=-1) + 1):
        names = [characters[n].name for n in range(len(characters)) if groups[n] == group]
        if len(names) > 1:
            dot = f'<span class="dot g{group % COLOURS}"></span>'
            lines.append(f"<p>{dot}{escape(texts.separator.join(names))}</p>")
    return f"<h3>{texts.sections['groups']}</h3>{''.join(lines)}" if lines else ""


def _render_words(texts: PageTexts, words: Sequence[tuple[str, Sequence[str]]]) -> str:
    rows = (f"<tr><th>{escape(word)}<td>{escape(texts.separator.join(near))}" for word, near in words)
    return f'<table class="pairs"><tbody>{"".join(rows)}</table>'
