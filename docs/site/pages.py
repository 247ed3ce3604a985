"""Pages of the manual: which there are, in which order, and their Markdown as the site needs it.

    docs/*.md, README*.md  ->  docs/site/pages  ->  docs/site/build

Both languages have the same pages. A page without a translation is in the Chinese site in English, and its
title says so. Links stay in the language of the reader; a link to a file that is no page leads to the
repository. What must not change: a link to a file that does not exist fails the build.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from polyseme.errors import require

ROOT = Path(__file__).parent.parent.parent
DOCS = ROOT / "docs"
REPOSITORY = "https://github.com/polyseme/polyseme"
GENERATED = ("commands", "api")  # made by docs/site/reference.py

# Sections of the navigation, in English and Chinese, and their pages.
SECTIONS = {
    ("Start", "入门"): ("index", "first-minute", "how-elmo-works", "notebooks", "limits", "coming-from"),
    ("Text to vectors", "从文本到向量"): (
        "segmentation",
        "embed",
        "choose",
        "pretrain",
        "domain",
        "language",
        "formats",
    ),
    ("Search by meaning", "按词义搜索"): ("search", "change-over-time", "book"),
    ("Tasks", "任务"): ("tasks", "answers", "coref", "roles", "summarise", "translate"),
    ("Serve and scale", "服务与规模"): ("serve", "deploy", "scale", "stores", "threat-model"),
    ("Other programs", "其他程序"): ("integrations", "programs"),
    ("Help", "帮助"): ("faq", "troubleshooting"),
    ("Reference", "参考"): (*GENERATED, "versions"),
}
TITLES = {
    ("index", "en"): "Polyseme",
    ("index", "zh"): "Polyseme",
}
ENGLISH_ONLY = '!!! note "English"\n\n    本页尚无中文版，以下为英文原文。\n\n'

FENCE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"(!?\[[^\]]*\])\(([^)#\s]*)(#[^)\s]*)?\)")
MATH_BLOCK = re.compile(r"^```math\n(.*?)^```$", re.MULTILINE | re.DOTALL)
CHINESE_BREAK = re.compile(  # a line break inside a Chinese paragraph, which would show as a space
    r"(?<=[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef])\n *(?=[\u3000-\u303f\u4e00-\u9fff\uff00-\uffef\[]|\*\*)"
)
INLINE = re.compile(r"`[^`\n]+`|\$(\S(?:[^$\n]*\S)?)\$")


class SiteError(Exception):
    """A page that cannot be in the site; the message says which and why."""


@dataclass(frozen=True)
class Page:
    """A page of the site of one language: its name in addresses, its file, the language of its text."""

    name: str
    source: Path | None  # None if generated
    language: str

    def read(self) -> str:
        """The Markdown as written."""
        return self.source.read_text(encoding="utf-8") if self.source else ""


def list_pages(language: str) -> dict[str, Page]:
    """All pages of the site in `language` ("en" or "zh"), by name, in the order of the navigation."""
    names = [name for names in SECTIONS.values() for name in names]
    written = {path.name.split(".")[0] for path in DOCS.glob("*.md")}
    if missing := sorted(written - set(names)):
        raise SiteError(f"docs/{missing[0]}.md is in no section: add it to SECTIONS in docs/site/pages.py")
    return {name: _find_page(name, language) for name in names}


def _find_page(name: str, language: str) -> Page:
    if name in GENERATED:
        return Page(name, None, "en")
    folder, stem = (ROOT, "README") if name == "index" else (DOCS, name)
    chinese = folder / f"{stem}.zh-CN.md"
    if language == "zh" and chinese.exists():
        return Page(name, chinese, "zh")
    return Page(name, folder / f"{stem}.md", "en")


def read_title(page: Page, markdown: str, language: str) -> str:
    """The title in the navigation: the first heading, marked if it is not in the reader's language."""
    heading = re.search(r"^# (.*)$", markdown, re.MULTILINE)
    if heading is None:
        raise SiteError(f"{page.source or page.name} has no heading of level 1")
    title = TITLES.get((page.name, language), heading[1].replace("`", ""))
    return title if page.language == language else f"{title}（英文）"


def prepare_page(page: Page, markdown: str, language: str, pages: dict[str, Page]) -> str:
    """The Markdown of a page as the site needs it: links, formulas, and a note if it is not translated."""
    if page.source is not None:
        markdown = _remove_switch(page.source, markdown)
    pieces, last = [], 0
    for fence in FENCE.finditer(markdown):
        pieces += [_prepare_prose(page, markdown[last : fence.start()], pages), _prepare_fence(fence[0])]
        last = fence.end()
    pieces.append(_prepare_prose(page, markdown[last:], pages))
    text = "".join(pieces)
    if page.language != language:
        heading, _, rest = text.partition("\n")
        text = f"{heading}\n\n{ENGLISH_ONLY}{rest.lstrip()}"
    return text


def _remove_switch(source: Path, markdown: str) -> str:
    """Remove the link to the other language at the top: the header of the site has it."""
    stem = source.name.removesuffix(".md").removesuffix(".zh-CN")
    other = re.escape(f"{stem}.md" if source.name.endswith(".zh-CN.md") else f"{stem}.zh-CN.md")
    word = "(?:English|简体中文|中文)"
    pattern = rf"^(?:{word} \| )?\[[^\]]*\]\({other}\)(?: \| {word})?(?: · )?"
    return re.sub(pattern, "", markdown, count=1, flags=re.MULTILINE)


def convert_formula(formula: str, display: str) -> str:
    """A formula in LaTeX as MathML, which browsers draw by themselves; `display` is "block" or "inline"."""
    converter = require("latex2mathml.converter", "docs", "Building the manual")
    written: str = converter.convert(formula, display=display)
    return written


def _prepare_fence(fence: str) -> str:
    if match := MATH_BLOCK.fullmatch(fence):
        return f'<div class="formula">{convert_formula(match[1].strip(), "block")}</div>'
    # An error is one long line, which the style wraps.
    fence = fence.replace("```text\npolyseme: ", "``` { .text .error }\npolyseme: ", 1)
    return fence.replace("```console\n", "```bash\n", 1)  # commands without a prompt


def _prepare_prose(page: Page, text: str, pages: dict[str, Page]) -> str:
    # In a span, as HTML at the start of a line would end the paragraph.
    text = INLINE.sub(
        lambda match: f"<span>{convert_formula(match[1], 'inline')}</span>" if match[1] else match[0], text
    )
    if page.source is None:
        return text
    source = page.source
    if page.language == "zh":
        text = CHINESE_BREAK.sub("", text)
    return LINK.sub(lambda m: f"{m[1]}({_resolve(source, m[2], m[3] or '', pages)})", text)


def _resolve(source: Path, link: str, anchor: str, pages: dict[str, Page]) -> str:
    """The target of a link as the site needs it."""
    if not link or link.startswith(("http:", "https:", "mailto:")):
        return link + anchor
    path = (source.parent / link).resolve()
    if not path.exists():
        raise SiteError(f"{source.relative_to(ROOT)} links to {link}, which does not exist")
    if path.parent in (ROOT, DOCS) and path.name.startswith("README") == (path.parent == ROOT):
        name = "index" if path.parent == ROOT else path.name.split(".")[0]
        if path.suffix == ".md" and name in pages:
            # An anchor is a heading of the file that was linked, not of its translation.
            return f"{name}.md{anchor if pages[name].source == path else ''}"
    if path.parent == DOCS and path.suffix in {".png", ".svg"}:
        return path.name
    kind = "tree" if path.is_dir() else "blob"
    return f"{REPOSITORY}/{kind}/main/{path.relative_to(ROOT).as_posix()}{anchor}"
