"""Two processes do not write the same output."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

import builders
import polyseme
from polyseme.errors import UsageError
from polyseme.formats.models.save import save_pretrained
from polyseme.io.output_lock import lock_output

pytest.importorskip("fcntl")
HOLDER = """
import sys
from pathlib import Path
from polyseme.io.output_lock import lock_output
with lock_output(Path(sys.argv[1])):
    print("locked", flush=True)
    sys.stdin.read()
"""


def hold(path: Path) -> subprocess.Popen[str]:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(path)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert holder.stdout is not None
    assert holder.stdout.readline() == "locked\n"
    return holder


def test_the_second_process_is_refused_and_told_which_one_writes(tmp_path: Path):
    with hold(tmp_path / "out") as holder:
        refused = pytest.raises(UsageError, match=rf"out: process {holder.pid} is writing it\. Wait")
        with refused, lock_output(tmp_path / "out"):
            pass
        with lock_output(tmp_path / "other"):
            pass
        holder.communicate()
    with lock_output(tmp_path / "out"):
        pass
    assert not list(tmp_path.iterdir())


def test_the_lock_of_a_killed_process_stops_nobody(tmp_path: Path):
    with hold(tmp_path / "out") as holder:
        holder.kill()
        holder.wait()
    assert (tmp_path / ".out.lock").exists()
    with lock_output(tmp_path / "out"):
        pass
    assert not list(tmp_path.iterdir())


WRITERS = {
    "convert": lambda folder, out: polyseme.convert(folder / "m", out),
    "cache": lambda folder, out: polyseme.cache(folder / "m", folder / "vocab.txt", out.with_suffix(".hdf5")),
    "embed": lambda folder, out: polyseme.embed(folder / "m", folder / "t.txt", out.with_suffix(".npz")),
    "export": lambda folder, out: polyseme.export(folder / "index", out.with_suffix(".vec")),
    "export usages": lambda folder, out: polyseme.export(folder / "index", to=out.with_suffix(".parquet")),
    "map": lambda folder, out: polyseme.map_usages(folder / "index", "bank", out.with_suffix(".html")),
    "index": lambda folder, out: polyseme.index(folder / "m", folder / "t.txt", out),
}
ENDINGS = {"cache": ".hdf5", "embed": ".npz", "export": ".vec", "export usages": ".parquet", "map": ".html"}


@pytest.mark.parametrize("verb", WRITERS)
def test_every_verb_that_writes_is_refused_while_another_process_writes_the_same(verb: str, tmp_path: Path):
    (tmp_path / "t.txt").write_text("the river bank\nthe old bank\n", encoding="utf-8")
    (tmp_path / "vocab.txt").write_text("<S>\n</S>\n<UNK>\nbank\n", encoding="utf-8")
    save_pretrained(builders.random_model(builders.small_config()), tmp_path / "m")
    if verb in ("export", "export usages", "map"):
        polyseme.index(tmp_path / "m", tmp_path / "t.txt", tmp_path / "index")
    out = (tmp_path / "out").with_suffix(ENDINGS.get(verb, ""))
    with hold(out) as holder:
        with pytest.raises(UsageError, match=f"process {holder.pid} is writing it"):
            WRITERS[verb](tmp_path, out)
        holder.communicate()
    assert not out.exists()
    WRITERS[verb](tmp_path, out)
    assert out.exists()
