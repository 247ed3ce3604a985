"""Draw the architecture of ELMo for the page on how it works, in English and Chinese.

    python docs/site/draw_elmo.py    # writes docs/elmo.svg and docs/elmo.zh.svg

The colours can be read on white and on black, because a picture does not know the theme of its page.
"""

from __future__ import annotations

from html import escape
from pathlib import Path

DOCS = Path(__file__).parent.parent
TOKENS = {"en": ("He", "sat", "by", "the", "bank"), "zh": ("曹操", "大怒", "，", "拔剑", "而起")}
# From the top: the kind of row, and its label in English and Chinese.
ROWS = (
    ("mix", "weighted sum", "加权和"),
    ("backward", "layer 2, backward", "第 2 层，后向"),
    ("forward", "layer 2, forward", "第 2 层，前向"),
    ("backward", "layer 1, backward", "第 1 层，后向"),
    ("forward", "layer 1, forward", "第 1 层，前向"),
    ("token", "layer 0: characters", "第 0 层：字符"),
)
COLOURS = {"mix": "#2e9e6b", "backward": "#d9822b", "forward": "#4f6df5", "token": "#8a63d2"}
GREY = "#7d838c"
LABELS, COLUMN, ROW, WIDTH, HEIGHT = 170, 108, 58, 76, 30  # of the labels, a column, a row, a box


def draw(language: str) -> str:
    """The picture as SVG: a row of boxes for each layer and direction, a column for each token."""
    tokens = TOKENS[language]
    size = LABELS + COLUMN * len(tokens), ROW * len(ROWS) + 46
    title = {"en": "The layers of ELMo over a sentence", "zh": "ELMo 的各层"}[language]
    boxes: list[str] = []
    hidden: list[str] = []  # what hides the arrows that pass behind a box
    arrows: list[str] = []
    texts: list[str] = []
    head = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size[0]} {size[1]}" width="{size[0]}" '
        f'height="{size[1]}" font-family="system-ui, sans-serif" font-size="14">',
        f"<title>{title}</title>",
        f'<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" '
        f'orient="auto"><path d="M0,0 L8,4 L0,8 z" fill="{GREY}"/></marker></defs>',
    ]
    for row, (kind, *labels) in enumerate(ROWS):
        y = 12 + row * ROW
        texts.append(_write(8, y + 20, labels[language == "zh"], COLOURS[kind], "start"))
        for column in range(len(tokens)):
            x = LABELS + column * COLUMN
            shape = f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6" '
            colour = COLOURS[kind]
            boxes.append(f'{shape}fill="{colour}" fill-opacity="0.2" stroke="{colour}" stroke-width="1.5"/>')
            hidden.append(f'{shape}fill="black"/>')
            if column and kind == "forward":
                arrows.append(_point(x - COLUMN + WIDTH, y + 15, x - 2, y + 15))
            elif column and kind == "backward":
                arrows.append(_point(x, y + 15, x - COLUMN + WIDTH + 2, y + 15))
        arrows += [
            _point(LABELS + column * COLUMN + offset, start, LABELS + column * COLUMN + offset, stop)
            for column in range(len(tokens))
            for offset, start, stop in _list_inputs(row, y)
        ]
    for column, token in enumerate(tokens):
        texts.append(_write(LABELS + column * COLUMN + WIDTH / 2, size[1] - 14, token, GREY, "middle"))
    mask = f'<mask id="around"><rect width="{size[0]}" height="{size[1]}" fill="white"/>'
    lines = [*head, mask, *hidden, "</mask>", '<g mask="url(#around)">', *arrows, "</g>"]
    return "\n".join([*lines, *boxes, *texts, "</svg>\n"])


def _list_inputs(row: int, y: int) -> list[tuple[float, int, int]]:
    """The arrows into the boxes of a row: where in the box, and from which height to which.

    Forward rows are fed at the left of a box and backward rows at the right, past the row between.
    """
    below, two_below = y + ROW, y + 2 * ROW
    left, middle, right = WIDTH * 0.25, WIDTH * 0.5, WIDTH * 0.75
    bottom = y + HEIGHT + 2
    if row == 0:
        return [(right, below, bottom), (left, two_below, bottom)]
    if row == len(ROWS) - 1:
        return [(middle, below + 4, bottom)]
    if row == len(ROWS) - 2:  # the first forward layer reads the tokens, just below
        return [(left, below, bottom)]
    return [(right if ROWS[row][0] == "backward" else left, two_below, bottom)]


def _point(x1: float, y1: float, x2: float, y2: float) -> str:
    return (
        f'<line x1="{x1}" y1="{y1}" x2="{x2}" y2="{y2}" stroke="{GREY}" stroke-width="1.3" '
        'marker-end="url(#tip)"/>'
    )


def _write(x: float, y: float, text: str, colour: str, anchor: str) -> str:
    return f'<text x="{x}" y="{y}" fill="{colour}" text-anchor="{anchor}">{escape(text)}</text>'


def main() -> None:
    """Write both pictures."""
    for language, name in (("en", "elmo.svg"), ("zh", "elmo.zh.svg")):
        (DOCS / name).write_text(draw(language), encoding="utf-8")


if __name__ == "__main__":
    main()
