"""Build the manual as a web site in English and Chinese.

    python docs/site/build.py [--out build/docs] [--serve PORT]

Writes the Markdown and the settings of each language to OUT/en and OUT/zh, builds both with Zensical, which
fails on a warning, joins them in OUT/site (Chinese below zh/), and checks the links. docs/ stays as it is.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from check_links import find_dead_links
from pages import DOCS, REPOSITORY, ROOT, SECTIONS, SiteError, list_pages, prepare_page, read_title
from polyseme.errors import PolysemeError, require
from reference import write_api_page, write_commands_page

FOLDER = Path(__file__).parent
COLOUR = re.compile(r"\x1b\[[0-9;]*m")
LANGUAGES = {"en": "English", "zh": "简体中文"}
DESCRIPTION = {
    "en": "ELMo for your own text: contextual word vectors, exact, from any published model or your own",
    "zh": "用你自己的文本训练 ELMo：可精确复现任何已发布模型的上下文词向量",
}
FEATURES = [
    *("content.code.copy", "navigation.footer", "navigation.sections", "navigation.top"),
    *("navigation.tracking", "search.highlight", "toc.follow"),
]
PALETTE = [
    ("(prefers-color-scheme)", "", "lucide/sun-moon", ("Switch to light mode", "切换到浅色模式")),
    ("(prefers-color-scheme: light)", "default", "lucide/sun", ("Switch to dark mode", "切换到深色模式")),
    ("(prefers-color-scheme: dark)", "slate", "lucide/moon", ("Follow the system", "跟随系统设置")),
]
EXTENSIONS = {
    "admonition": {},
    "attr_list": {},
    "md_in_html": {},
    "tables": {},
    "toc": {
        "permalink": True,
        "toc_depth": 3,
        "slugify": {"object": "pymdownx.slugs.slugify", "kwds": {"case": "lower"}},  # as GitHub does
    },
    "pymdownx": {
        "highlight": {"pygments_lang_class": True},
        "inlinehilite": {},
        "superfences": {},
    },
}


def write_settings(language: str, nav: list[dict[str, object]]) -> str:
    """The settings of Zensical, which is TOML: values of JSON without null are TOML, but for objects."""
    number = list(LANGUAGES).index(language)
    up = "" if language == "en" else "../"
    project = {
        "site_name": "Polyseme",
        "site_description": DESCRIPTION[language],
        "docs_dir": "docs",
        "site_dir": "site",
        "extra_css": ["polyseme.css"],
        "nav": nav,
        "theme": {
            "language": language,
            "custom_dir": "overrides",
            "font": False,  # the fonts of the system: nothing is loaded from other hosts
            "features": FEATURES,
            "palette": [
                {"media": media, "toggle": {"icon": icon, "name": names[number]}}
                | ({"scheme": scheme} if scheme else {})
                for media, scheme, icon, names in PALETTE
            ],
        },
        "extra": {
            "generator": False,
            # A link only: with `repo_url`, each page would ask GitHub for the number of stars.
            "social": [{"icon": "fontawesome/brands/github", "link": REPOSITORY, "name": "GitHub"}],
            "alternate": True,  # shows overrides/partials/alternate.html; a list would link the front pages
            "languages": [
                {"name": name, "lang": code, "link": {"en": up, "zh": f"{up}zh/"}[code]}
                for code, name in LANGUAGES.items()
            ],
        },
        "markdown_extensions": EXTENSIONS,
    }
    return "".join(f"project.{key} = {write_toml(value)}\n" for key, value in project.items())


def write_toml(value: object) -> str:
    """A value as TOML on one line."""
    if isinstance(value, dict):
        return (
            "{"
            + ", ".join(
                f"{json.dumps(key, ensure_ascii=False)} = {write_toml(v)}" for key, v in value.items()
            )
            + "}"
        )
    if isinstance(value, list | tuple):
        return "[" + ", ".join(map(write_toml, value)) + "]"
    return json.dumps(value, ensure_ascii=False)


def stage(language: str, folder: Path, generated: dict[str, str]) -> None:
    """Write the Markdown, pictures and settings of a language to `folder`."""
    docs = folder / "docs"
    docs.mkdir(parents=True)
    pages = list_pages(language)
    titles = {}
    for name, page in pages.items():
        markdown = generated.get(name) or page.read()
        titles[name] = read_title(page, markdown, language)
        (docs / f"{name}.md").write_text(prepare_page(page, markdown, language, pages), encoding="utf-8")
    for picture in [*DOCS.glob("*.png"), *DOCS.glob("*.svg"), FOLDER / "polyseme.css"]:
        shutil.copy(picture, docs)
    shutil.copytree(FOLDER / "overrides", folder / "overrides")
    nav: list[dict[str, object]] = [
        {section[language == "zh"]: [{titles[name]: f"{name}.md"} for name in names]}
        for section, names in SECTIONS.items()
    ]
    (folder / "zensical.toml").write_text(write_settings(language, nav), encoding="utf-8")


def build(out: Path) -> None:
    """Build both languages into out/site and check its links."""
    require("zensical", "docs", "Building the manual")
    generated = {"api": write_api_page(), "commands": write_commands_page()}
    program = Path(sys.executable).parent / "zensical"
    for name in (*LANGUAGES, "site"):
        shutil.rmtree(out / name, ignore_errors=True)
    for language in LANGUAGES:
        stage(language, out / language, generated)
        command: list[str | Path] = [program, "build", "--strict"]
        done = subprocess.run(command, cwd=out / language, capture_output=True, text=True)
        if done.returncode:
            printed = COLOUR.sub("", done.stdout + done.stderr)
            if "--strict" in printed:  # warnings, and a traceback that only says that there are some
                printed = printed.partition("Traceback")[0]
            raise SiteError(f"Zensical cannot build the site ({language}):\n{printed}")
    (out / "en" / "site").rename(out / "site")
    (out / "zh" / "site").rename(out / "site" / "zh")
    checked, dead = find_dead_links(out / "site")
    if dead:
        raise SiteError("\n".join([*dead, f"{len(dead)} dead links of {checked}"]))
    count = len(list((out / "site").rglob("index.html")))
    print(f"{out / 'site'}: {count} pages, {checked} links lead to a page and a heading")


def serve(site: Path, port: int) -> None:
    """Serve a built site on this machine until Ctrl-C."""
    handler = partial(SimpleHTTPRequestHandler, directory=str(site))
    with ThreadingHTTPServer(("127.0.0.1", port), handler) as server:
        print(f"http://127.0.0.1:{server.server_port}/", flush=True)
        server.serve_forever()


def main() -> None:
    """Build, and serve if asked."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "docs")
    parser.add_argument("--serve", type=int, metavar="PORT", help="serve the site afterwards")
    options = parser.parse_args()
    try:
        build(options.out)
        if options.serve is not None:
            serve(options.out / "site", options.serve)
    except (SiteError, PolysemeError) as error:
        sys.exit(str(error))
    except KeyboardInterrupt:
        sys.exit(130)


if __name__ == "__main__":
    main()
