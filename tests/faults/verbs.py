"""Every verb that writes, as a command line: for locks, full disks, and signals.

    write_inputs(folder)  ->  verbs.VERBS  ->  tests of the harness

Words in capitals stand for the files of `write_inputs`, OUT for the output.
"""

from __future__ import annotations

import os
import sys
import traceback
from functools import cache
from pathlib import Path
from typing import NamedTuple

import builders
import polyseme
import task_files as toys
import training_story as story
from polyseme.cli import main
from polyseme.formats.models.save import save_pretrained

TINY = ("--config", "tiny", "--workers", "1")
ONE_EPOCH = ("--set", "train.epochs=1")
SMALL = (*ONE_EPOCH, "--set", "model.recurrent.cells=8", "--set", "model.recurrent.outputs=8")


class Verb(NamedTuple):
    """A command that writes.

    Attributes:
        out: The name of its output.
        arguments: The command line.

    """

    out: str
    arguments: tuple[str, ...]


STORY = tuple(part for setting in story.SETTINGS for part in ("--set", setting))
TRAIN = ("train", "classification", "MODEL", "--train", "TABLE", *ONE_EPOCH)
VERBS: dict[str, Verb] = {
    "pretrain": Verb("model", ("pretrain", "STORY", "--out", "OUT", *TINY, *STORY, *ONE_EPOCH)),
    "train": Verb("task", (*TRAIN, "--out", "OUT")),
    "train --curve": Verb("curve", (*TRAIN, "--curve", "0.5", "--out", "OUT")),
    "train probes": Verb(
        "probes", ("train", "probes", "MODEL", "--train", "TAGS", *ONE_EPOCH, "--out", "OUT")
    ),
    "index": Verb("index", ("index", "MODEL", "TEXT", "--out", "OUT")),
    "embed": Verb("v.npz", ("embed", "MODEL", "TEXT", "--out", "OUT")),
    "embed hdf5": Verb("v.hdf5", ("embed", "MODEL", "TEXT", "--out", "OUT")),
    "embed parquet": Verb("v.parquet", ("embed", "MODEL", "TEXT", "--out", "OUT")),
    "embed folder": Verb("vectors", ("embed", "MODEL", "TEXT", "--out", "OUT")),
    "convert": Verb("native", ("convert", "MODEL", "OUT")),
    "convert hdf5": Verb("hdf5", ("convert", "MODEL", "OUT", "--to", "hdf5")),
    "convert file": Verb("w.hdf5", ("convert", "MODEL", "OUT", "--to", "hdf5")),
    "cache": Verb("tokens.hdf5", ("cache", "MODEL", "VOCAB", "--out", "OUT")),
    "export": Verb("w.vec", ("export", "INDEX", "OUT")),
    "export binary": Verb("w.bin", ("export", "INDEX", "OUT")),
    "export projector": Verb("projector", ("export", "INDEX", "OUT")),
    "export usages": Verb("u.csv", ("export", "INDEX", "OUT", "--word", "bank")),
    "export parquet": Verb("u.parquet", ("export", "INDEX", "--to", "OUT")),
    "convert onnx": Verb("w.onnx", ("convert", "MODEL", "OUT")),
    "map": Verb("m.html", ("map", "INDEX", "bank", "--out", "OUT")),
    "map image": Verb("m.png", ("map", "INDEX", "bank", "--out", "OUT")),
    "change": Verb("c.png", ("change", "INDEX", "INDEX", "bank", "--out", "OUT")),
    "book": Verb("book", ("book", "STORY", "--out", "OUT", "--config", "tiny", *SMALL)),
    "sample --split": Verb("sanguo", ("sample", "sanguo", "--split", "OUT")),
}


def write_inputs(folder: Path) -> dict[str, Path]:
    """Write what the commands read; returns the files by the words that stand for them."""
    files = {
        "MODEL": folder / "m",
        "STORY": story.write(folder / "story.txt", 60),
        "TEXT": folder / "text.txt",
        "VOCAB": folder / "vocab.txt",
        "INDEX": folder / "i",
    }
    toys.write(folder)
    files |= {"TABLE": folder / "train.csv", "TAGS": folder / "train.conll"}
    files["TEXT"].write_text("the bank failed !\nthe river bank\n" * 200, encoding="utf-8")
    words = "".join(f"word{number}\n" for number in range(900))
    files["VOCAB"].write_text(f"<S>\n</S>\n<UNK>\n{words}", encoding="utf-8")
    save_pretrained(builders.random_model(builders.small_config()), files["MODEL"])
    polyseme.index(files["MODEL"], files["TEXT"], files["INDEX"])
    return files


def make_arguments(verb: Verb, files: dict[str, Path], out: Path, *more: str) -> list[str]:
    """The command line of a verb that writes to `out`."""
    return [str(files.get(part, out if part == "OUT" else part)) for part in verb.arguments] + list(more)


def run_command(arguments: list[str], stderr: Path) -> int:
    """Run a command in a child process, since it may crash; returns its exit code."""
    child = os.fork()
    if child == 0:
        code: object = 1
        try:
            os.dup2(os.open(stderr, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 2)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            sys.argv = ["polyseme", *arguments]
            sys.stderr = os.fdopen(2, "w", closefd=False)
            sys.stdout = os.fdopen(1, "w", closefd=False)
            main()
        except SystemExit as end:
            code = end.code or 0
        except BaseException:
            traceback.print_exc()
        finally:
            sys.stderr.flush()
            os._exit(code if isinstance(code, int) else 1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


@cache
def has_sample() -> bool:
    """Whether the sample is in the cache: these tests fetch nothing."""
    from polyseme.text.samples import SAMPLES, find_cache

    return (find_cache() / "samples" / SAMPLES["sanguo"].archive).is_file()


def list_verbs() -> list[str]:
    """The verbs that can run here."""
    return [name for name in VERBS if name != "sample --split" or has_sample()]


__all__ = ["VERBS", "Verb", "list_verbs", "make_arguments", "run_command", "write_inputs"]
