"""A document with its coloured mentions and a table of its clusters, as one HTML page.

    tasks.coref.example  ->  tasks.coref.page  ->  `polyseme predict --format html`

The page is self-contained and works offline. All text is escaped.
"""

from __future__ import annotations

from collections import Counter, defaultdict
from html import escape

from polyseme.tasks.coref.example import CorefPrediction

GOLDEN_ANGLE = 137.508  # degrees between the hues of successive clusters, so that neighbours differ
LISTED = 60  # clusters in the table
STYLE = """
body{font:17px/1.7 Georgia,"Noto Serif CJK SC",serif;max-width:46rem;margin:2rem auto;padding:0 1rem}
body{color:#222;background:#fff}
table{font:14px/1.4 system-ui,sans-serif;border-collapse:collapse;margin:1rem 0 2rem;width:100%}
td,th{text-align:left;padding:.2rem .6rem;border-bottom:1px solid #ddd;vertical-align:top}
td:nth-child(2){text-align:right}
mark{color:inherit;border-radius:.2em;padding:0 .1em}
mark mark{box-shadow:0 0 0 1px #8886}
@media(prefers-color-scheme:dark){body{color:#ddd;background:#181818}td,th{border-color:#444}}
"""


def render_page(prediction: CorefPrediction) -> str:
    """One HTML page: the clusters with several mentions, and the text with their mentions coloured."""
    several = [cluster for cluster in prediction.clusters if len(cluster.mentions) > 1]
    opens: defaultdict[int, list[tuple[int, int]]] = defaultdict(list)
    closes: Counter[int] = Counter()
    for number, cluster in enumerate(several):
        for mention in cluster.mentions:
            opens[mention.start].append((mention.stop, number))
            closes[mention.stop] += 1
    rows = []
    for number, cluster in enumerate(several[:LISTED]):
        forms = Counter(mention.text for mention in cluster.mentions).most_common(8)
        shown = ", ".join(f"{escape(text)} {count}" for text, count in forms)
        name = f'<mark class="c{number}">{escape(cluster.name)}</mark>'
        rows.append(f"<tr><td>{name}</td><td>{len(cluster.mentions):,}</td><td>{shown}</td></tr>")
    paragraphs: list[str] = []
    position = end = 0
    for text in prediction.sentences:
        parts = []
        for number, token in enumerate(text.tokens):
            gap = ""
            if number:
                gap = (
                    " "
                    if text.text is None
                    else text.text[text.offsets[number - 1][1] : text.offsets[number][0]]
                )
            begin = "".join(
                f'<mark class="c{cluster}" title="{escape(several[cluster].name, quote=True)}">'
                for _, cluster in sorted(opens[position], reverse=True)  # the widest one opens first
            )
            parts.append(f"{escape(gap)}{begin}{escape(token)}{'</mark>' * closes[position + 1]}")
            position += 1
        sentence = "".join(parts)
        gap = "\n" if text.text is None else text.text[end : text.offsets[0][0]]
        if paragraphs and "\n" not in gap:
            paragraphs[-1] += escape(gap) + sentence
        else:
            paragraphs.append(sentence)
        end = text.offsets[-1][1] if text.offsets else 0
    title, style = escape(prediction.name), STYLE + color_clusters(len(several))
    return (
        f'<!doctype html>\n<html><head><meta charset="utf-8"><title>{title}</title>'
        f'<meta name="viewport" content="width=device-width,initial-scale=1"><style>{style}</style></head>\n'
        f"<body><h1>{title}</h1>\n<table><tr><th></th><th></th><th></th></tr>{''.join(rows)}</table>\n"
        + "\n".join(f"<p>{paragraph}</p>" for paragraph in paragraphs)
        + "\n</body></html>\n"
    )


def color_clusters(count: int) -> str:
    """The CSS of `count` background colours, for light and dark pages."""
    hues = [round(number * GOLDEN_ANGLE % 360) for number in range(count)]
    light = "".join(f".c{number}{{background:hsl({hue} 75% 88%)}}" for number, hue in enumerate(hues))
    dark = "".join(f".c{number}{{background:hsl({hue} 45% 28%)}}" for number, hue in enumerate(hues))
    return f"{light}@media(prefers-color-scheme:dark){{{dark}}}"
