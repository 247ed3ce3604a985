"""Everything that Polyseme reads: how a small file or folder of each kind is made, and how it is used.

    readers.READERS  ->  faults.attack

A reader uses what it has read as a user would: vectors are computed, neighbours searched, labels predicted.
What it returns is searched for numbers that are not finite.
"""

from __future__ import annotations

import gzip
import json
import shutil
import zipfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
import zstandard

import manylangs_reference as manylangs
import polyseme
import task_files as toys
import training_story as story
from builders import Bilm, random_model, small_config, write_bilm
from polyseme import api
from polyseme.books.characters import read_aliases
from polyseme.config import ModelSettings
from polyseme.elmo import Elmo
from polyseme.formats.models.open import open_pretrained
from polyseme.formats.models.save import save_pretrained
from polyseme.language.reranking import read_nbest
from polyseme.search.index import Index
from polyseme.search.sense_data import read_sense_data, read_wordnet_senses
from polyseme.tasks.classification.settings import ClassificationSettings
from polyseme.tasks.settings import read_task_settings
from polyseme.text.corpus.metadata import read_table
from polyseme.text.corpus.prepared import open_corpus, prepare_corpus
from polyseme.text.corpus.settings import CorpusSettings, CorpusSpec
from polyseme.text.reading import read_lines
from polyseme.text.segment import WordList
from polyseme.text.static_vectors import read_vectors
from polyseme.text.vocab import Vocab
from polyseme.training.pretrain import pretrain
from polyseme.training.run_record import RunRecord
from polyseme.training.settings import read_pretrain_settings
from polyseme.word_vectors import mean_vectors, open_words

SENTENCES = [["the", "bank", "failed", "!"], ["他", "银行", "x"], ["river"]]
TEXT = "the bank failed !\nthe river bank\nthe old bank\n他 银行\n" * 6
EXAMPLES = Path(__file__).parents[2] / "examples" / "data"


class Reader(NamedTuple):
    """Something that is read.

    Attributes:
        make: Writes an intact input into an empty folder.
        read: Reads and uses it; returns what came out.
        fixed: Names of files that are not damaged.

    """

    make: Callable[[Path], object]
    read: Callable[[Path], object]
    fixed: tuple[str, ...] = ()


@cache
def small_elmo() -> Elmo:
    return Elmo(random_model(small_config()))


def codepoint_model() -> Any:
    """A model of code points and words, with a softmax."""
    values = small_config().model_dump() | {"words": {"dim": 3}, "token_projection": True}
    values["chars"]["encoding"] = "codepoints"
    return random_model(ModelSettings.model_validate(values), softmax=True)


# ---- models ----


def use_model(folder: Path) -> list[object]:
    """Vectors of all layers, as stored and in fp32, and log probabilities."""
    elmo = Elmo(open_pretrained(folder, precision=None))
    results: list[object] = [elmo.embed(SENTENCES, layer="all"), elmo.embed("the bank")]
    results.append(polyseme.load(folder).embed(SENTENCES))
    if elmo.model.softmax is not None and elmo.model.vocab is not None:
        results.append([score.forward for score in polyseme.score(elmo, SENTENCES)])
    if elmo.model.pooling is not None:
        results.append(elmo.embed(SENTENCES, pool="sentence"))
    if (folder / "words.safetensors").exists():
        words = open_words(folder)
        results.append([entry.cosine for entry in words.nearest(words.words[0])])
    return results


def make_native(precision: str, folder: Path) -> None:
    model = codepoint_model()
    save_pretrained(model, folder / "model", precision=precision, tables=precision != "fp32")
    elmo = Elmo(model)
    mean_vectors(elmo, [line.split() for line in TEXT.splitlines()]).save(
        folder / "model" / "words.safetensors"
    )
    if precision == "fp32":
        elmo.fit_sentences([line.split() for line in TEXT.splitlines()])
        elmo.save(folder / "fitted")
        shutil.copy(folder / "fitted" / "sentence.safetensors", folder / "model")
        shutil.rmtree(folder / "fitted")


def make_chinese(folder: Path) -> None:
    """A model that segments Chinese with its own word list."""
    from dataclasses import replace

    config = small_config(segment="zh")
    words = WordList.parse(["郭芙 850 nr", "小龙女"])
    save_pretrained(replace(random_model(config), word_list=words), folder / "model")


def make_zip(folder: Path) -> None:
    make_native("fp32", folder)
    with zipfile.ZipFile(folder / "model.zip", "w") as archive:
        for file in sorted((folder / "model").iterdir()):
            archive.write(file, file.name)
    shutil.rmtree(folder / "model")


def use_manylangs(folder: Path) -> object:
    elmo = Elmo(open_pretrained(folder))
    return elmo.embed(SENTENCES, layer="all")


# ---- vectors ----


def make_vectors(ending: str, folder: Path) -> None:
    (folder / "t.txt").write_text(TEXT, encoding="utf-8")
    polyseme.embed(small_elmo(), folder / "t.txt", folder / f"v{ending}", layer="all")
    polyseme.embed(small_elmo(), folder / "t.txt", folder / f"p{ending}", pool="mean")
    (folder / "t.txt").unlink()


def use_vectors(folder: Path) -> list[object]:
    results: list[object] = []
    for file in sorted(folder.iterdir()):
        with polyseme.open_vectors(file) as vectors:
            for number in range(min(len(vectors), 40)):
                results.append(np.array(vectors[number]))
                if file.suffix != ".npz":
                    vectors.sentence(number)
            vectors.verify()
    return results


def make_bulk(folder: Path) -> None:
    (folder / "t.txt").write_text(TEXT, encoding="utf-8")
    polyseme.embed(small_elmo(), folder / "t.txt", folder / "vectors", shard_mb=0.0002)


def use_bulk(folder: Path) -> list[object]:
    results: list[object] = []
    with polyseme.open_vectors(folder / "vectors") as vectors:
        results += [np.array(vectors[number]) for number in range(min(len(vectors), 40))]
    return results


def resume_bulk(folder: Path) -> list[object]:
    """Continue a folder whose journal or shards are damaged, then read it."""
    polyseme.embed(small_elmo(), folder / "t.txt", folder / "vectors", shard_mb=0.0002)
    return use_bulk(folder)


def make_journal(folder: Path) -> None:
    """A folder as a killed process leaves it."""
    make_bulk(folder)
    manifest = json.loads((folder / "vectors" / "manifest.json").read_text(encoding="utf-8"))
    shards = manifest.pop("shards")
    head = manifest.get("head", manifest)
    lines = [json.dumps(head), *(json.dumps(shard) for shard in shards[:2])]
    (folder / "vectors" / "manifest.json").rename(folder / "vectors" / "manifest.json.running")
    (folder / "vectors" / "manifest.json.running").write_text("\n".join(lines) + "\n", encoding="utf-8")


def make_words(folder: Path) -> None:
    mean_vectors(small_elmo(), [line.split() for line in TEXT.splitlines()]).save(folder / "w.safetensors")


def use_words(folder: Path) -> list[object]:
    words = open_words(folder / "w.safetensors")
    first = words.words[0]
    return [words.vectors, words.counts, [entry.cosine for entry in words.nearest(first)]]


VOCABULARY = ["<S>", "</S>", "<UNK>", "the", "bank", "river", "银行"]


def make_cache(folder: Path) -> None:
    (folder / "vocab.txt").write_text("\n".join(VOCABULARY) + "\n", encoding="utf-8")
    polyseme.cache(small_elmo(), folder / "vocab.txt", folder / "tokens.hdf5")


def use_cache(folder: Path) -> object:
    elmo = Elmo(small_elmo().model)
    elmo.cache.read(folder / "tokens.hdf5", Vocab.read(folder / "vocab.txt"))
    return elmo.embed(SENTENCES)


def make_static(folder: Path) -> None:
    words = ["the", "bank", "naïve", "银行"]
    values = np.random.default_rng(0).normal(size=(4, 5)).astype(np.float32)
    rows = [f"{word} " + " ".join(map(str, row)) for word, row in zip(words, values, strict=True)]
    (folder / "glove.txt").write_text("\n".join(rows) + "\n", encoding="utf-8")
    (folder / "word2vec.txt").write_text("\n".join(["4 5", *rows]) + "\n", encoding="utf-8")
    binary = [word.encode() + b" " + row.tobytes() + b"\n" for word, row in zip(words, values, strict=True)]
    (folder / "word2vec.bin").write_bytes(b"4 5\n" + b"".join(binary))
    (folder / "glove.txt.gz").write_bytes(gzip.compress("\n".join(rows).encode(), mtime=0))


def use_static(folder: Path) -> list[object]:
    return [read_vectors(file).matrix for file in sorted(folder.iterdir())]


# ---- indexes ----


def make_index(folder: Path) -> None:
    from polyseme.search.build import build_index

    text = folder / "t.txt"
    text.write_text(TEXT, encoding="utf-8")
    build_index(small_elmo(), [text], folder / "index", block_usages=40)
    text.unlink()


def make_graph_index(folder: Path) -> None:
    (folder / "t.txt").write_text(TEXT, encoding="utf-8")
    polyseme.index(small_elmo(), folder / "t.txt", folder / "index", graph="float16", precision="fp32")
    (folder / "t.txt").unlink()


def use_index(folder: Path) -> list[object]:
    index = polyseme.open_index(folder / "index", small_elmo())
    results: list[object] = [repr(index), index._repr_html_(), index.label]
    results += [entry.cosine for entry in polyseme.nearest(index, "bank", k=3)]
    usages = index.usages("bank", "the river bank", k=5)
    results += [(usage.cosine, usage.marked(), usage.location) for usage in usages]
    if "graph" in index.head:
        found = polyseme.nearest(index, "bank", context="the river bank", approximate=True, k=3)
        results += [usage.cosine for usage in found]
    results.append([sense.share for sense in polyseme.senses(index, "bank").senses])
    results.append(polyseme.map_usages(index, "bank").points)
    results.append([change.distance for change in polyseme.change(index, index, "bank", min_count=1)])
    results.append([index.usage(number).sentence for number in range(len(index))])
    results.append(polyseme.similarity(index, "the river [bank]", "the old [bank]").cosine)
    index.counts()
    return results


def add_to_index(folder: Path) -> object:
    """Add a text to a damaged index."""
    text = folder / "more.txt"
    text.write_text("the second bank\nthe river rose\n", encoding="utf-8")
    polyseme.index(small_elmo(), text, folder / "index", add=True)
    return [entry.cosine for entry in polyseme.nearest(polyseme.open_index(folder / "index"), "bank", k=3)]


# ---- tasks ----


TAGGING = (*toys.EPOCH, "head.crf=true")
ROLES = (
    "train.epochs=1",
    "input.words=8",
    "encoder.layers=1",
    "encoder.size=8",
    "head.predicate_size=4",
)
SMALL = ("train.epochs=1", "input.words=8", "encoder.size=8")
SEQ2SEQ = (*SMALL, "data.dev_share=0.2", "input.chars=8")
TASKS: dict[str, tuple[str, str, tuple[str, ...], Any]] = {  # by reader: task, file, settings, question
    "task-classification": ("classification", "train.csv", toys.EPOCH, "the good film"),
    "task-tagging": ("tagging", "train.conll", TAGGING, ["the", "good", "film"]),
    "task-pairs": ("pairs", "train.jsonl", (*SMALL, "head.hidden=8"), ("the good film", "a film")),
    "task-relations": ("relations", "train.txt", SMALL, "the <e1>good</e1> film is <e2>bad</e2>."),
    "task-roles": ("roles", "roles.jsonl", ROLES, "The dog bit him ."),
    "task-answers": ("answers", "answers.jsonl", SMALL, ("Who bought it?", "Maria Lind bought the mill.")),
    "task-coref": ("coref", "coref.jsonl", SMALL, "Anna saw the river. She liked it."),
    "task-translate": ("translate", "translations.tsv", SEQ2SEQ, "the dog"),
    "task-summarise": ("summarise", "mails.jsonl", SEQ2SEQ, "The meeting is on Monday at nine."),
}


def make_task(task: str, file: str, settings: tuple[str, ...], folder: Path) -> None:
    files = toys.write(folder)
    source = EXAMPLES / file if (EXAMPLES / file).exists() else files / file
    polyseme.train(task, small_elmo(), train=source, out=folder / "task", settings=settings)
    for leftover in files.iterdir():
        if leftover.is_file():
            leftover.unlink()
    for leftover in (folder / "task").iterdir():  # only what `load_task` reads
        if leftover.name not in ("task.json", "head.safetensors", "elmo", "static.vectors"):
            shutil.rmtree(leftover) if leftover.is_dir() else leftover.unlink()


def use_task(question: Any, folder: Path) -> object:
    model = polyseme.load_task(folder / "task")
    return model.predict([question]), repr(model), model._repr_html_()


def make_run(folder: Path) -> None:
    """An experiment that a killed process left: one of its two runs is finished."""
    files = toys.write(folder)
    polyseme.train(
        "classification",
        small_elmo(),
        train=files / "train.csv",
        dev=files / "dev.csv",
        out=folder / "task",
        settings=toys.EPOCH,
        runs=2,
    )
    for name in ("task.json", "head.safetensors", "README.md"):
        (folder / "task" / name).unlink(missing_ok=True)


def resume_run(folder: Path) -> object:
    model = polyseme.train(
        "classification",
        small_elmo(),
        train=folder / "train.csv",
        dev=folder / "dev.csv",
        out=folder / "task",
        settings=toys.EPOCH,
        runs=2,
        resume=True,
    )
    return model.predict(["the good film"])


# ---- pretraining ----


STORY = (*story.SETTINGS, "train.epochs=1", "train.save_seconds=0.001", "corpus.valid_tokens=50")


def make_checkpoint(folder: Path) -> None:
    """A run that stopped in the middle."""
    text = story.write(folder / "story.txt", 40)
    out = folder / "model"

    class StopError(Exception):
        pass

    def stop(position: Any, metrics: Any) -> None:
        if position.step >= 3:
            raise StopError

    with suppress(StopError):
        pretrain([text], out, read_pretrain_settings("tiny", STORY), on_metrics=stop, workers=1)
    assert (out / "checkpoints").exists(), list(out.iterdir())


def resume_checkpoint(folder: Path) -> object:
    config = read_pretrain_settings("tiny", STORY)
    pretrain([folder / "story.txt"], folder / "model", config, resume=True, workers=1)
    return Elmo(open_pretrained(folder / "model")).embed(SENTENCES)


SPEC = CorpusSpec(CorpusSettings(valid_tokens=5, min_count=1), "auto", "codepoints", 10)


def make_corpus(folder: Path) -> None:
    text = story.write(folder / "story.txt", 60)
    prepare_corpus([text], folder / "corpus", SPEC, workers=1)
    text.unlink()


def use_corpus(folder: Path) -> object:
    corpus = open_corpus(folder / "corpus")
    corpus.documents()
    words = [corpus.vocab.words[number] for number in corpus.targets(corpus.train[:50])]
    alphabet = corpus.alphabet
    return words, corpus.counts, corpus.report, None if alphabet is None else alphabet.encode(words)


def make_corpus_with_words(folder: Path) -> None:
    """A corpus with its own word list and the names that were found in the text."""
    text = folder / "story.txt"
    text.write_text("Mary Ann met New York . Mary Ann saw the river .\n" * 30, encoding="utf-8")
    settings = CorpusSettings(valid_tokens=5, min_count=1, names=True)
    spec = CorpusSpec(settings, "en", "codepoints", 10, word_list=WordList.parse(["river bank"]))
    prepare_corpus([text], folder / "corpus", spec, workers=1)
    assert (folder / "corpus" / "new_words.json").exists(), "no names were found"
    text.unlink()


BOOK = ("train.epochs=1", "model.recurrent.cells=8", "model.recurrent.outputs=8")


def make_book(folder: Path) -> None:
    text = folder / "book.txt"
    text.write_text("Anna met Bruno . Bruno saw Anna .\n" * 60, encoding="utf-8")
    (folder / "alias.tsv").write_text("Anna\tAnn\nBruno\tBru\n", encoding="utf-8")
    polyseme.book(text, folder / "book", "tiny", settings=BOOK, alias=folder / "alias.tsv")


def continue_book(folder: Path) -> object:
    result = polyseme.book(
        folder / "book.txt", folder / "book", "tiny", settings=BOOK, alias=folder / "alias.tsv"
    )
    return result.mentions.counts, result.characters, result.groups


def make_served(folder: Path) -> None:
    """The folders of a server: a model with its curves and card, an index of it, a task model."""
    make_index(folder)
    small_elmo().save(folder / "model")
    line = {"event": "validation", "tokens": 10, "forward": 2.0, "backward": 3.0, "mean": 2.5, "step": 1}
    (folder / "model" / "metrics.jsonl").write_text((json.dumps(line) + "\n") * 3, encoding="utf-8")


def use_served(folder: Path) -> object:
    from polyseme.server.served_models import open_models

    catalog = open_models(folder / "model", [folder / "index"]).first
    json.dumps(catalog.info, ensure_ascii=False, allow_nan=False).encode()
    return catalog.info


def make_coarse_wsd(folder: Path) -> None:
    word = folder / "wsd" / "bank"
    word.mkdir(parents=True)
    (word / "train.data.txt").write_text("1\tthe bank failed\n2\tthe old bank\n" * 3, encoding="utf-8")
    (word / "train.gold.txt").write_text("0\n1\n" * 3, encoding="utf-8")


def make_index_files(folder: Path) -> None:
    """The files that an index is told about: words to leave out, words to take, metadata."""
    (folder / "t.txt").write_text(TEXT, encoding="utf-8")
    (folder / "stop.txt").write_text("the\nof\n", encoding="utf-8")
    (folder / "meta.tsv").write_text("file\tyear\ttopic\nt.txt\t1900\twar\n", encoding="utf-8")


def use_index_files(folder: Path) -> object:
    polyseme.index(
        small_elmo(),
        folder / "t.txt",
        folder / "index",
        stop=folder / "stop.txt",
        meta=folder / "meta.tsv",
        force=True,
    )
    index = polyseme.open_index(folder / "index", small_elmo())
    senses = polyseme.senses(index, "bank", by="year") if "year" in index.listed_documents[0].meta else None
    return [entry.cosine for entry in polyseme.nearest(index, "bank", k=3)], senses is None


# ---- text ----


ENCODED = {
    "big5": "張無忌，銀行在河邊。\n他去了銀行。\n" * 20,
    "gb18030": "郭芙道：银行在河边。\n他去了银行，天色将晚。\n" * 20,
    "utf-16": "Anna sees the old river.\n郭芙道：银行在河边。\n" * 20,
    "cp1252": "Zoë’s café – naïve.\nFrançois sees the river.\n" * 20,
}


def make_encoded_text(encoding: str, folder: Path) -> None:
    (folder / "t.txt").write_bytes(ENCODED[encoding].encode(encoding))


PROSE = (
    "Anna sees the old river. Bruno buys!\nClara reads the letter, 他 去 银行。\n\nDavid sees the boat.\n" * 5
)
CONLLU = (
    "# sent_id = 1\n1\tAnna\tAnna\tPROPN\t_\t_\t2\tnsubj\t_\t_\n2-3\tsees\t_\t_\t_\t_\t_\t_\t_\t_\n"
    "2\tsees\tsee\tVERB\t_\t_\t0\troot\t_\tSpaceAfter=No\n3\t.\t.\tPUNCT\t_\t_\t2\tpunct\t_\t_\n\n"
) * 12
HTML = (
    "<html><head><title>A &amp; B</title><meta charset='utf-8'></head><body><h1>One</h1>"
    + "<p>the <b>old</b> river bank &eacute;</p>\n" * 20
)
CONTAINER = (
    '<?xml version="1.0"?><container xmlns="urn:oasis:names:tc:opendocument:xmlns:container"><rootfiles>'
    '<rootfile full-path="c.opf" media-type="application/oebps-package+xml"/></rootfiles></container>'
)
PACKAGE = (
    '<?xml version="1.0"?><package xmlns="http://www.idpf.org/2007/opf"><manifest>'
    '<item id="a" href="a.xhtml" media-type="application/xhtml+xml"/>'
    '<item id="b" href="b.xhtml" media-type="application/xhtml+xml"/></manifest>'
    '<spine><itemref idref="a"/><itemref idref="b"/></spine></package>'
)


def make_text(name: str, folder: Path) -> None:
    lines = [line for line in PROSE.splitlines() if line]
    contents: dict[str, bytes] = {
        ".txt": PROSE.encode(),
        ".gz": gzip.compress(PROSE.encode(), mtime=0),
        ".zst": zstandard.ZstdCompressor().compress(PROSE.encode()),
        ".jsonl": "".join(
            json.dumps({"text": line, "n": 1}, ensure_ascii=False) + "\n" for line in lines
        ).encode(),
        ".conllu": CONLLU.encode(),
        ".html": HTML.encode(),
    }
    path = folder / name
    if path.suffix == ".epub":
        with zipfile.ZipFile(path, "w") as book:
            book.writestr("mimetype", "application/epub+zip")
            book.writestr("META-INF/container.xml", CONTAINER)
            book.writestr("c.opf", PACKAGE)
            book.writestr("a.xhtml", HTML)
            book.writestr("b.xhtml", HTML.replace("old", "new"))
        return
    path.write_bytes(contents[path.suffix])


def use_text(name: str, folder: Path) -> object:
    """Prepare a corpus of it, and embed it."""
    vectors = [np.asarray(values) for values in _embedded(folder / name)]
    corpus = prepare_corpus([folder / name], folder / "out" / "corpus", SPEC, workers=1)
    return vectors, len(corpus.vocab), corpus.documents()


def _embedded(path: Path) -> Iterator[Any]:
    out = path.with_name("out") / "v.safetensors"
    out.parent.mkdir(exist_ok=True)
    polyseme.embed(small_elmo(), path, out, segment="auto", force=True)
    with polyseme.open_vectors(out) as vectors:
        yield from (vectors[number] for number in range(min(len(vectors), 20)))


# ---- files of tasks ----


CONLL2012 = (
    "#begin document (a/b); part 000\n"
    "a/b 0 0 The DT (TOP* - - - ann * (ARG0* (0\n"
    "a/b 0 1 dog NN * - - - ann * *) 0)\n"
    "a/b 0 2 bit VB * bite 01 - ann * (V*) -\n"
    "a/b 0 3 him PR *) - - - ann * (ARG1*) (0)\n"
    "\n#end document\n"
) * 6
COREFUD = (
    "# global.Entity = eid-etype-head-other\n# newdoc id = d1\n"
    "1\tThe\tthe\tDET\t_\t_\t2\tdet\t_\tEntity=(e1-person-1-\n"
    "2\tdog\tdog\tNOUN\t_\t_\t3\tnsubj\t_\tEntity=e1)\n"
    "3\tbit\tbite\tVERB\t_\t_\t0\troot\t_\t_\n"
    "4\tit\tit\tPRON\t_\t_\t3\tobj\t_\tEntity=(e1-person-1-)\n\n"
) * 6
CONLLUP = (
    "# global.columns = ID FORM UP:PRED UP:ARGSPANS\n"
    "1\tThe\t_\t_\n2\tdog\t_\t_\n3\tbit\tbite.01\tA0:1-2|V:3|A1:4\n4\thim\t_\t_\n\n"
) * 8
ANSWER = {"text": "Maria Lind", "answer_start": 9}
SQUAD = {
    "version": "1.1",
    "data": [
        {
            "title": f"mill {n}",
            "paragraphs": [
                {
                    "context": "In 1931, Maria Lind bought the old mill.",
                    "qas": [{"id": f"q{n}", "question": "Who bought it?", "answers": [ANSWER]}],
                }
            ],
        }
        for n in range(6)
    ],
}
TASK_FILES: dict[str, tuple[str, str, tuple[str, ...]]] = {
    # name of the file: content, task, settings
    "train.csv": ("", "classification", ()),
    "train.tsv": ("", "classification", ()),
    "train.conll": ("", "tagging", ()),
    "train.jsonl": ("", "pairs", ()),
    "train.txt": ("", "relations", ()),
    "squad.json": (json.dumps(SQUAD), "answers", ()),
    "answers.jsonl": ("", "answers", ()),
    "roles.jsonl": ("", "roles", ()),
    "roles.conll": (CONLL2012, "roles", ("data.format='conll2012'",)),
    "roles.conllup": (CONLLUP, "roles", ()),
    "coref.jsonl": ("", "coref", ()),
    "coref.conll": (CONLL2012, "coref", ()),
    "coref.conllu": (COREFUD, "coref", ()),
    "translations.tsv": ("", "translate", ()),
    "parallel.en": ("the dog\na cat runs\n" * 10, "translate", ("data.target_ending='de'",)),
}


def make_task_file(name: str, folder: Path) -> None:
    content = TASK_FILES[name][0]
    path = folder / name
    if content:
        path.write_text(content, encoding="utf-8")
        if name == "parallel.en":
            (folder / "parallel.de").write_text("der Hund\neine Katze läuft\n" * 10, encoding="utf-8")
    elif (EXAMPLES / name).exists():
        shutil.copy(EXAMPLES / name, path)
    else:
        files = folder / "files"
        files.mkdir()
        toys.write(files)
        source = files / name
        if name == "train.tsv":
            source = files / "train.csv"
            source.write_text(source.read_text(encoding="utf-8").replace(",", "\t"), encoding="utf-8")
        shutil.move(source, path)
        shutil.rmtree(files)


def use_task_file(name: str, folder: Path) -> object:
    """Read and check all that training needs."""
    _, task, settings = TASK_FILES[name]
    return api.count_examples(task, small_elmo(), train=folder / name, settings=settings)


# ---- small files ----


def make_record(folder: Path) -> None:
    config = read_pretrain_settings("tiny").model_dump(mode="json")
    RunRecord(config, [], [], None, 1).write(folder)


def use_record(folder: Path) -> object:
    """What a resumed run differs in."""
    record = RunRecord.read(folder)
    current = RunRecord(read_pretrain_settings("tiny").model_dump(mode="json"), [], [], None, 1)
    return record and record.list_differences(current)


SENSES_XML = (
    '<corpus><text id="d"><sentence id="d.s0"><wf lemma="the" pos="DET">The</wf>'
    '<instance id="d.s0.t0" lemma="bank" pos="NOUN">bank</instance></sentence></text></corpus>'
)
SMALL_FILES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "run.toml": (
        "[model]\nsegment = 'split'\n[model.chars]\ndim = 4\nfilters = [[1, 4], [2, 8]]\n[model.recurrent]\n"
        "layers = 1\ncells = 16\noutputs = 8\n[train]\nepochs = 1\nrate = 0.1\n",
        lambda path: read_pretrain_settings(str(path)),
    ),
    "run.json": (
        json.dumps({"model": {"recurrent": {"cells": 16, "outputs": 8}, "chars": {"filters": [[1, 8]]}}}),
        lambda path: read_pretrain_settings(str(path)),
    ),
    "task.toml": (
        "task = 'classification'\n[train]\nepochs = 2\nrate = 0.01\n[encoder]\nsize = 8\n",
        lambda path: read_task_settings("classification", ClassificationSettings, str(path)),
    ),
    "words.txt": ("郭芙 850 nr\n小龙女\n# x\n杨过\t12\tnr\n", WordList.read),
    "alias.txt": ("曹操\t孟德,阿瞒\n刘备\t玄德\n", read_aliases),
    "meta.tsv": ("file\tyear\ttopic\na.txt\t1900\twar\nb.txt\t1910\tpeace\n", read_table),
    "nbest.txt": (
        "1\tthe bank\t-3.5\n1\tthe tank\t-4\n2 ||| a b ||| x=1 ||| -2\n",
        lambda p: list(read_nbest(read_lines(p))),
    ),
    "senses.xml": (SENSES_XML, lambda path: read_sense_data(path, "train")),
    "senses.txt": (
        "bank%1\tthe [bank] failed\nbank%2\triver [bank]\n",
        lambda p: read_sense_data(p, "train"),
    ),
    "semcor.txt": (
        "# d.s0\nThe\t_\t_\t_\nbank\tbank\tNN\tbank%1:14:00::\n\n",
        lambda p: read_sense_data(p, "train"),
    ),
    "index.sense": ("bank%1:14:00:: 08437235 1 20\nbank%1:17:01:: 09236472 2 25\n", read_wordnet_senses),
    "vocab.txt": ("<S>\n</S>\n<UNK>\nthe\nbank\n", Vocab.read),
}


def make_small(name: str, folder: Path) -> None:
    (folder / name).write_text(SMALL_FILES[name][0], encoding="utf-8")


def use_small(name: str, folder: Path) -> object:
    return SMALL_FILES[name][1](folder / name)


def _readers() -> dict[str, Reader]:
    readers = {
        "native": Reader(partial(make_native, "fp32"), lambda folder: use_model(folder / "model")),
        "native-bf16": Reader(partial(make_native, "bf16"), lambda folder: use_model(folder / "model")),
        "native-int8": Reader(partial(make_native, "int8"), lambda folder: use_model(folder / "model")),
        "native-zh": Reader(make_chinese, lambda folder: use_model(folder / "model")),
        "zip": Reader(make_zip, lambda folder: use_model(folder / "model.zip")),
        "hdf5": Reader(
            lambda folder: write_bilm(folder / "m", Bilm(softmax=True)), lambda f: use_model(f / "m")
        ),
        "manylangs": Reader(
            lambda folder: manylangs.write_folder(folder / "m", manylangs.architecture(), old=False),
            lambda folder: use_manylangs(folder / "m"),
        ),
        "manylangs-old": Reader(
            lambda folder: manylangs.write_folder(folder / "m", manylangs.architecture()),
            lambda folder: use_manylangs(folder / "m"),
        ),
        "bulk": Reader(make_bulk, use_bulk, ("t.txt",)),
        "bulk-resume": Reader(make_journal, resume_bulk, ("t.txt",)),
        "words": Reader(make_words, use_words),
        "static": Reader(make_static, use_static),
        "cache": Reader(make_cache, use_cache),
        "index": Reader(make_index, use_index),
        "index-graph": Reader(make_graph_index, use_index),
        "index-add": Reader(make_index, add_to_index),
        "task-run": Reader(make_run, resume_run, ("train.csv", "dev.csv")),
        "checkpoint": Reader(make_checkpoint, resume_checkpoint, ("story.txt",)),
        "corpus": Reader(make_corpus, use_corpus),
        "corpus-words": Reader(make_corpus_with_words, use_corpus),
        "book": Reader(make_book, continue_book, ("book.txt",)),
        "served": Reader(make_served, use_served),
        "run-record": Reader(make_record, use_record),
        "coarse-wsd": Reader(make_coarse_wsd, lambda folder: read_sense_data(folder / "wsd", "train")),
        "index-files": Reader(make_index_files, use_index_files, ("t.txt",)),
    }
    for name, (task, file, settings, question) in TASKS.items():
        readers[name] = Reader(partial(make_task, task, file, settings), partial(use_task, question))
    for ending in (".hdf5", ".npz", ".safetensors", ".parquet"):
        readers[f"vectors{ending}"] = Reader(partial(make_vectors, ending), use_vectors)
    for name in ("t.txt", "t.gz", "t.zst", "t.jsonl", "t.conllu", "t.html", "t.epub"):
        readers[f"text-{name[2:]}"] = Reader(partial(make_text, name), partial(use_text, name))
    for encoding in ENCODED:
        make, use = partial(make_encoded_text, encoding), partial(use_text, "t.txt")
        readers[f"text-{encoding}"] = Reader(make, use)
    for name in TASK_FILES:
        readers[f"file-{name}"] = Reader(partial(make_task_file, name), partial(use_task_file, name))
    for name in SMALL_FILES:
        readers[f"small-{name}"] = Reader(partial(make_small, name), partial(use_small, name))
    return readers


READERS: dict[str, Reader] = _readers()


def has_only_finite_numbers(value: Any, depth: int = 0) -> bool:
    """Whether all numbers in a result are finite."""
    if depth > 8:
        return True
    if isinstance(value, float):
        return bool(np.isfinite(value))
    if isinstance(value, torch.Tensor):
        return not value.is_floating_point() or bool(torch.isfinite(value).all())
    if isinstance(value, np.ndarray):
        return value.dtype.kind in "iub" or (value.dtype.kind == "f" and bool(np.isfinite(value).all()))
    if isinstance(value, dict):
        return all(has_only_finite_numbers(item, depth + 1) for item in value.values())
    if isinstance(value, list | tuple):
        return all(has_only_finite_numbers(item, depth + 1) for item in value)
    fields = getattr(value, "__dataclass_fields__", None)
    if fields:
        return all(has_only_finite_numbers(getattr(value, name), depth + 1) for name in fields)
    return True


__all__ = ["READERS", "Index", "Reader", "has_only_finite_numbers"]
