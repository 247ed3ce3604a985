"""Draw every picture of the manual, from bundled models, sample corpora and the committed measurements.

    polyseme sample, bundled models, examples/write_samples.py, benchmarks/*.json, models/*/metrics.jsonl
        ->  docs/site/gallery  ->  OUT/docs/*.png, *.svg, OUT/benchmarks/*.png, OUT/models/*/curves.png

    python docs/site/gallery.py [NAME…] [--out build/gallery] [--list]

`--out .` replaces the pictures of the repository. All of them take about half an hour on two cores, as models
of two novels are trained. Pictures of web pages need chromium, the others the extra `plot`. A picture that
cannot be drawn ends the run.
What must not change: every picture of the repository is in PICTURES once, which a test compares.
"""

from __future__ import annotations

import argparse
import json
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import draw_elmo
import polyseme
from polyseme.errors import PolysemeError
from polyseme.training.curves import draw_png
from walk import open_browser

ROOT = Path(__file__).parent.parent.parent
sys.path[:0] = [str(ROOT / "examples"), str(ROOT / "tests")]
import write_samples  # noqa: E402

from browsing import TRACK_PENDING_WORK  # noqa: E402

NOVELS = {"en": ("moby-dick", "Moby Dick"), "zh": ("sanguo", "三国演义")}
# The views of the explorer that the manual shows, by language: parameters of the address.
VIEWS = {
    "en": {
        "sentence": {
            "text": "They made the boat fast to the ship.",
            "token": "4",
            "index": "moby-dick-index",
        },
        "compare": {"a": "The boat was made fast to the ship.", "b": "The ship sailed fast before the wind."},
        "senses": {"word": "intelligence", "index": "speeches-index"},
        "timeline": {"word": "intelligence", "index": "speeches-index"},
    },
    "zh": {
        "sentence": {"text": "天色将晚，人马困乏。", "token": "1"},
        "compare": {"a": "欲斩此将，众将皆惊。", "b": "天色将晚，人马困乏。"},
        "senses": {"word": "将"},
        "timeline": {"word": "将"},
    },
}
TALL = {"timeline": 1150, "workspace": 1000}  # views whose picture is higher than a screen
SCREEN = (1280, 900)
PATIENCE = 1_800_000  # milliseconds until something of a page is ready, on a busy machine
LONG_CURVE = (
    "() => (document.querySelector('path.curve.loss')?.getAttribute('d') ?? '').split('L').length > 20"
)


class Gallery:
    """What several pictures need, made once, and where the pictures go."""

    def __init__(self, work: Path, out: Path) -> None:
        self.work, self.out = work, out

    def path(self, name: str) -> Path:
        """The path of a picture, in a folder that exists."""
        path = self.out / name
        path.parent.mkdir(parents=True, exist_ok=True)
        return path

    def docs(self, name: str, language: str = "en", ending: str = "png") -> Path:
        """The path of a picture of the manual, of one language."""
        return self.path(f"docs/{name}{'' if language == 'en' else '.zh'}.{ending}")

    @cache  # noqa: B019  # lives as long as the run
    def fetch_novel(self, language: str) -> Path:
        """The text of a novel."""
        name = NOVELS[language][0]
        path = self.work / f"{name}.txt"
        path.write_text(polyseme.sample(name), encoding="utf-8")
        return path

    @cache  # noqa: B019
    def index_novel(self, language: str) -> Path:
        """An index of a novel, by chapters, with the bundled model for old novels."""
        text = self.fetch_novel(language)
        index = self.work / f"{text.stem}-index"
        polyseme.index(f"{language}-classic", text, index, min_count=2, documents="auto", progress=False)
        return index

    @cache  # noqa: B019
    def index_speeches(self) -> Path:
        """An index of all speeches, as docs/change-over-time.md makes it."""
        speeches, index = self.work / "speeches", self.work / "speeches-index"
        polyseme.sample("sotu", split=speeches)
        polyseme.index(
            "en-classic",
            speeches / "texts",
            index,
            meta=speeches / "metadata.tsv",
            view="context",
            min_count=20,
            max_count=4000,
            progress=False,
        )
        return index

    @cache  # noqa: B019
    def train_tagger(self) -> Path:
        """A tagger on the sample of names, with the curves and weights of its report."""
        write_samples.main(self.work / "samples")
        parts = {part: self.work / "samples" / f"names.{part}.conll" for part in ("train", "dev", "test")}
        polyseme.train(
            "tagging",
            "en",
            **parts,
            out=self.work / "tagger",
            curve=(0.25, 0.5, 1.0),
            compare=True,
            runs=1,
            settings=["train.epochs=40"],
            progress=False,
        )
        return self.work / "tagger"

    def draw_elmo(self) -> None:
        """The architecture, in two languages."""
        for language in NOVELS:
            self.docs("elmo", language, "svg").write_text(draw_elmo.draw(language), encoding="utf-8")

    def draw_map(self) -> None:
        """A map of two senses each of two words of a novel."""
        out = self.docs("map")
        polyseme.map_usages(self.index_novel("zh"), ["将", "见"], out, by="sense", force=True, progress=False)

    def draw_shares(self) -> None:
        """The shares of the groups of usages of five words in the speeches of two periods: what changed."""
        index = self.index_speeches()
        polyseme.change(
            index,
            index,
            ["uniform", "mass", "intelligence", "relief", "security"],
            documents="year=1790-1899",
            against="year=1950-2021",
            out=self.docs("shares"),
            force=True,
            progress=False,
        )

    def draw_book(self) -> None:
        """The page that `polyseme book` makes of a novel, in two languages."""
        for language, (_, title) in NOVELS.items():
            folder = self.work / f"book-{language}"
            book = polyseme.book(self.fetch_novel(language), folder, title=title, progress=False)
            with open_browser() as browser:
                page = browser.new_page(viewport={"width": 1040, "height": 580})
                page.goto(book.page.as_uri())
                page.screenshot(path=self.docs("book-top", language))
                for number, part in enumerate(("timeline", "network")):
                    page.locator("svg").nth(number).screenshot(path=self.docs(f"book-{part}", language))

    def draw_explorer(self) -> None:
        """Views of the explorer, in two languages."""
        served = {"en": [self.index_novel("en"), self.index_speeches()], "zh": [self.index_novel("zh")]}
        for language, indexes in served.items():
            with serve(f"{language}-classic", *indexes) as address:
                for view, params in VIEWS[language].items():
                    address_of_view = f"{address}/#/{view}?{write_query(params)}&lang={language}"
                    take(address_of_view, self.docs(f"explorer-{view}", language), TALL.get(view))

    def draw_workspace(self) -> None:
        """A novel that was dropped on the page of the explorer, while its model trains, in two languages."""
        for language, (_, title) in NOVELS.items():
            folder = self.work / f"workspace-{language}"
            with serve(f"{language}-classic", "--workspace", folder) as address, open_browser() as browser:
                page = browser.new_page(viewport={"width": SCREEN[0], "height": TALL["workspace"]})
                page.goto(f"{address}/#/workspace?lang={language}")
                file = {"name": f"{title}.txt", "mimeType": "text/plain"}
                buffer = self.fetch_novel(language).read_bytes()
                page.locator("input[type=file]").set_input_files([{**file, "buffer": buffer}])
                page.locator("button.primary").click()
                page.wait_for_function(LONG_CURVE, timeout=PATIENCE)
                page.screenshot(path=self.docs("explorer-workspace", language))

    def draw_layers(self) -> None:
        """The weights of the layers in a tagger."""
        shutil.copy(self.train_tagger() / "layers.png", self.docs("layers"))

    def draw_curve(self) -> None:
        """Scores by the number of examples, with ELMo and without."""
        shutil.copy(self.train_tagger() / "curve.png", self.docs("curve"))

    def draw_training(self) -> None:
        """The perplexity of the bundled models while they were trained, from their metrics."""
        for folder in MODELS:
            lines = (ROOT / folder / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
            draw_png([json.loads(line) for line in lines], self.path(f"{folder}/curves.png"))

    def draw_benchmarks(self) -> None:
        """Perplexity against time, and the equal-time duel, from the measurements in benchmarks/."""
        for name in ("quality", "wikitext2"):
            command = [sys.executable, "benchmarks/quality.py", "--draw", f"benchmarks/{name}.json"]
            command += ["--picture", str(self.path(f"benchmarks/{name}.png"))]
            subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        command = [sys.executable, "benchmarks/duel.py", "--picture", str(self.path("benchmarks/duel.png"))]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)

    def draw_speed(self) -> None:
        """Tokens per second by precision, of this machine; in no page."""
        command = [sys.executable, "benchmarks/embed.py", "--sizes", "small", "--batches", "32"]
        command += ["--picture", str(self.path("speed.png"))]
        subprocess.run(command, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


@contextmanager
def serve(*arguments: str | Path) -> Iterator[str]:
    """Run `polyseme serve` on a free port; gives its address."""
    command: list[str | Path] = [sys.executable, "-m", "polyseme", "serve", *arguments]
    command += ["--port", "0", "--timeout", str(PATIENCE // 1000)]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        try:
            log = ""
            for line in process.stderr:
                log += line
                if match := re.search(r"http://[^\s:]+:\d+", line):
                    yield match[0]
                    break
            else:
                raise PolysemeError(log.strip())
        finally:
            process.terminate()
            process.stderr.close()


def write_query(params: dict[str, str]) -> str:
    """Parameters of a view as in its address."""
    return "&".join(f"{name}={quote(value)}" for name, value in params.items())


def take(address: str, path: Path, height: int | None = None) -> None:
    """Take the picture of a view of the explorer when it has finished its work."""
    with open_browser() as browser:
        page = browser.new_page(viewport={"width": SCREEN[0], "height": height or SCREEN[1]})
        page.add_init_script(TRACK_PENDING_WORK)
        page.goto(address, timeout=PATIENCE)
        page.evaluate("timeout => untilIdle(timeout)", PATIENCE)
        if page.locator(".failure").count():
            raise PolysemeError(f"{address} shows an error: {page.locator('.failure').first.inner_text()}")
        page.screenshot(path=path)


class Picture(NamedTuple):
    """How a picture is drawn, and its files in the repository."""

    draw: Callable[[Gallery], None]
    files: tuple[str, ...]


def in_docs(*names: str, ending: str = "png", chinese: bool = True) -> tuple[str, ...]:
    """Files of the manual, in English and, if there is one, in Chinese."""
    return tuple(
        f"docs/{name}{language}.{ending}" for name in names for language in ("", ".zh")[: 1 + chinese]
    )


MODELS = tuple(f"models/{name}" for name in ("en", "en-classic", "zh", "zh-classic"))
PICTURES = {
    "elmo": Picture(Gallery.draw_elmo, in_docs("elmo", ending="svg")),
    "map": Picture(Gallery.draw_map, in_docs("map", chinese=False)),
    "shares": Picture(Gallery.draw_shares, in_docs("shares", chinese=False)),
    "book": Picture(Gallery.draw_book, in_docs("book-top", "book-timeline", "book-network")),
    "explorer": Picture(Gallery.draw_explorer, in_docs(*(f"explorer-{view}" for view in VIEWS["en"]))),
    "workspace": Picture(Gallery.draw_workspace, in_docs("explorer-workspace")),
    "layers": Picture(Gallery.draw_layers, in_docs("layers", chinese=False)),
    "curve": Picture(Gallery.draw_curve, in_docs("curve", chinese=False)),
    "training": Picture(Gallery.draw_training, tuple(f"{folder}/curves.png" for folder in MODELS)),
    "benchmarks": Picture(
        Gallery.draw_benchmarks, tuple(f"benchmarks/{name}.png" for name in ("quality", "wikitext2", "duel"))
    ),
    "speed": Picture(Gallery.draw_speed, ()),
}


def main() -> None:
    """Draw the pictures that are named."""
    parser = argparse.ArgumentParser(description="Draw the pictures of the manual.")
    parser.add_argument("names", nargs="*", help="by default all")
    parser.add_argument("--out", type=Path, default=ROOT / "build" / "gallery")
    parser.add_argument("--list", action="store_true", help="name the pictures and their files")
    options = parser.parse_args()
    if options.list:
        for name, picture in PICTURES.items():
            print(f"{name:10} {picture.draw.__doc__}")
            print("".join(f"{'':10} {file}\n" for file in picture.files), end="")
        return
    if unknown := [name for name in options.names if name not in PICTURES]:
        sys.exit(f"{unknown[0]}: no such picture; there are {', '.join(PICTURES)}")
    out = options.out.resolve()
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as work:
        gallery = Gallery(Path(work), out)
        for name in options.names or PICTURES:
            try:
                PICTURES[name].draw(gallery)
            except PolysemeError as error:
                sys.exit(f"{name}: {error}")
            print(f"{name}: drawn", flush=True)


if __name__ == "__main__":
    main()
