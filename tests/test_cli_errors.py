"""Errors of the `polyseme` program: one line, exit code 2, no files left behind."""

from __future__ import annotations

import io
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

import polyseme
from polyseme import api, cli
from polyseme.errors import UsageError
from polyseme.io.progress import ProgressDisplay
from polyseme.text.reading import measure_bytes
from programs import TEXT, Ran, run_program

POLYSEME = Path(sys.executable).with_name("polyseme")


@pytest.fixture
def run(models: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[..., Ran]:
    """Run the program in `tmp_path`, which contains text.txt and the folder `models`."""
    monkeypatch.chdir(tmp_path)
    Path("models").symlink_to(models)
    Path("text.txt").write_text(TEXT, encoding="utf-8")

    def call(line: str, *more: object, **options: bytes) -> Ran:
        return run_program(*line.split(), *more, **options)

    return call


def error_line(ran: Ran) -> str:
    """The message of a run that ended with a usage error, which is one line."""
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("polyseme: ")
    assert ran.err.count("\n") == 1
    assert ran.err.endswith("\n")
    assert "Traceback" not in ran.err
    return ran.err.removeprefix("polyseme: ").rstrip("\n")


def files() -> list[str]:
    """The files in the working folder, hidden ones included."""
    return sorted(path.name for path in Path().iterdir())


# ---- invalid arguments ----

EMBED = "embed models/bilm text.txt --out x.hdf5"


@pytest.mark.parametrize(
    ("line", "message"),
    [
        (
            "info nowhere",
            "nowhere: no such file or folder, and no bundled model of that name (there are en, en-classic",
        ),
        (
            "info model",
            "model: no such file or folder, and no bundled model of that name (there are en, en-classic, zh",
        ),
        ("info text.txt", "text.txt: not a model in a known format. It looks like a part"),
        ("embed nowhere text.txt --out x.hdf5", "nowhere: no such file or folder, and no bundled"),
        ("embed models/bilm nowhere.txt --out x.hdf5", "nowhere.txt: no such file or folder. Check the path"),
        ("embed models/bilm text.txt --out x.txt", "x.txt: not the ending of a vector format. Use one of .s"),
        ("embed models/bilm text.txt --out x --stateful", "x: a folder is written in independent blocks, wi"),
        ("embed models/bilm text.txt --out x --shard 3/2", "shard is '3/2', expected i/n with i from 1 to n"),
        (
            "embed models/bilm text.txt --out x --format zip",
            "Invalid value for '--format': 'zip' is not ",
        ),
        ("embed models/bilm text.txt --out x --shard 1/2 --force", "x: --force with --shard would remove th"),
        ("embed models/bilm text.txt --out x --shard-mb 0", "--shard-mb is 0, expected more than 0."),
        ("embed models/bilm text.txt --out models", "models: contains other files, such as bilm. Choose "),
        (
            "embed models/bilm text.txt --out x.npz --shard 1/2",
            "x.npz: several processes cannot write one file.",
        ),
        (
            "embed models/bilm text.txt - --out x",
            "-: standard input cannot be read again after an interruption.",
        ),
        ("embed models/bilm nowhere.txt --out x", "nowhere.txt: no such file or folder."),
        ("embed models/bilm text.txt --out old.hdf5", "old.hdf5: exists already. Choose another"),
        ("embed models/bilm text.txt --out f.npz --force", "f.npz: is a folder, but a file will be"),
        ("embed models/bilm text.txt --out /proc/no/x.npz", "/proc/no/x.npz: cannot be written ("),
        ("embed models/bilm text.txt --out text.txt/x.npz", "text.txt/x.npz: cannot be written (Not a dir"),
        (f"{EMBED} --layer 3", "layer is 3, the model has layers 0 to 2."),
        (
            f"{EMBED} --layer -1",
            "layer is '-1', expected mean, top, concat, all, a number from 0 to 2, or 3 weights",
        ),
        (
            f"{EMBED} --layer last",
            "layer is 'last', expected mean, top, concat, all, a number from 0 to 2, or",
        ),
        (f"{EMBED} --layer 0.5,0.5", "layer has 2 weights, the model has 3 layers."),
        (f"{EMBED} --layer 1,2,x", "--layer 1,2,x: expected weights such as 0.2,0.3,0.5 or 0.2,0.3,0.5*1.4."),
        (f"{EMBED} --layer 1,2,3*x", "--layer 1,2,3*x: expected weights such as 0.2,0.3,0.5 or"),
        (f"{EMBED} --layer 1,2,nan", "layer is ([1.0, 2.0, nan], 1.0), expected finite weights."),
        (f"{EMBED} --pool average", "Invalid value for '--pool': 'average' is not one of 'mean', 'max', "),
        (f"{EMBED} --direction left", "Invalid value for '--direction': 'left' is not one of 'both', "),
        (f"{EMBED} --segment chinese", "Invalid value for '--segment': "),
        (f"{EMBED} --dtype float64", "Invalid value for '--dtype': 'float64' is not one of 'float32', "),
        (f"{EMBED} --options nowhere.json", "nowhere.json: no such file or folder."),
        (f"{EMBED} --batch-tokens 0", "Invalid value for '--batch-tokens': "),
        (f"{EMBED} --batch-tokens many", "Invalid value for '--batch-tokens': "),
        (f"{EMBED} --lyer mean", "No such option: --lyer (Possible options: --dtype, --layer). See polyseme"),
        ("embed models/bilm text.txt", "Missing option '--out'. See polyseme embed --help."),
        ("embed models/bilm", "Missing argument 'TEXT…'. See polyseme embed --help."),
        ("embed", "Missing argument 'MODEL'. See polyseme embed --help."),
        ("embed models/bilm text.txt surplus --out x.hdf5", "surplus: no such file or folder. Check "),
        ("embd models/bilm", "No such command 'embd'. Did you mean 'embed'? See polyseme --help."),
        (
            "convert models/bilm new --to onxn",
            "Invalid value for '--to': 'onxn' is not one of ",
        ),
        ("convert models/bilm old.hdf5 --to hdf5", "old.hdf5: exists already."),
        ("convert models/zh new --to hdf5", "The bilm-tf hdf5 layout cannot represent"),
        ("convert nowhere new", "nowhere: no such file or folder, and no bundled model of that name"),
    ],
)
def test_a_usage_error_is_one_line_and_changes_no_files(run, line, message):
    Path("old.hdf5").write_text("old")
    Path("f.npz").mkdir()
    before = files()
    assert error_line(run(line)).startswith(message)
    assert files() == before
    assert Path("old.hdf5").read_text() == "old"


@pytest.mark.parametrize("line", ["embed models/bilm text.txt --out old.npz", "convert models/bilm old.npz"])
def test_the_output_is_checked_before_the_model_is_loaded(run, line, monkeypatch):
    def fail(*arguments: object, **options: object) -> None:
        raise AssertionError("the model was loaded")

    monkeypatch.setattr("polyseme.api.models.open_pretrained", fail)
    monkeypatch.setattr("polyseme.elmo.open_pretrained", fail)
    Path("old.npz").write_text("old")
    assert error_line(run(line)).startswith("old.npz: exists already")
    with pytest.raises(AssertionError, match="the model was loaded"):
        run(line.replace("old.npz", "new.npz"))


# ---- invalid text ----


@pytest.mark.parametrize("ending", ["hdf5", "npz", "parquet"])
@pytest.mark.parametrize("options", ["", "--segment en", "--stateful", "--batch-tokens 1"])
def test_text_that_is_not_utf8_is_named_with_file_and_line(run, ending, options):
    Path("bad.txt").write_bytes("gut: größer\n".encode() * 50 + "schön\n".encode("latin-1") + b"good\n")
    before = files()
    message = error_line(run(f"embed models/bilm bad.txt --out new/x.{ending} {options}"))
    assert message.startswith("bad.txt:51: not UTF-8 (byte 0xf6 at column 4).")
    assert "--encoding latin-1" in message
    assert files() == before


def test_invalid_text_from_a_pipe_is_named_stdin(run):
    message = error_line(
        run("embed models/bilm - --out x.npz", stdin="银行\n".encode() + "银行\n".encode("gb18030"))
    )
    assert message.startswith("stdin:2: not UTF-8")
    assert "--encoding gb18030" in message


def test_an_empty_folder_and_a_damaged_file_are_error_line(run):
    Path("folder").mkdir()
    assert error_line(run("embed models/bilm folder --out x.npz")).startswith(
        "folder: a folder without files."
    )
    Path("t.gz").write_bytes(b"\x1f\x8bnot gzip at all")
    assert error_line(run("embed models/bilm t.gz --out x.npz")).startswith("t.gz: damaged or truncated")
    assert files() == ["folder", "models", "t.gz", "text.txt"]


def test_a_message_of_several_lines_becomes_one_line(run, monkeypatch):
    def fail(*arguments: object, **options: object) -> None:
        raise UsageError("one\ntwo")

    monkeypatch.setattr(api, "info", fail)
    assert error_line(run("info models/bilm")) == "one two"


def test_a_bug_shows_its_traceback(run, monkeypatch):
    def fail(*arguments: object, **options: object) -> None:
        raise ZeroDivisionError("a bug")

    monkeypatch.setattr(api, "info", fail)
    with pytest.raises(ZeroDivisionError, match="a bug"):
        run("info models/bilm")


# ---- the program itself ----


def run_command(*arguments: object, **options: Any) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*map(str, arguments)], capture_output=True, text=True, encoding="utf-8", **options)


def test_the_installed_program_and_the_module_behave_alike(models, tmp_path):
    line = ("embed", models / "bilm", "nowhere.txt", "--out", "x.npz")
    for program in ((POLYSEME,), (sys.executable, "-m", "polyseme")):
        done = run_command(*program, *line, cwd=tmp_path)
        assert error_line(Ran(done.returncode, done.stdout, done.stderr)).startswith(
            "nowhere.txt: no such file"
        )


def test_help_is_shown_without_loading_torch():
    code = (
        "import sys; from polyseme import cli; sys.argv = ['polyseme', *{!r}]\n"
        "try: cli.main()\n"
        "except SystemExit as end: print(end.code, sorted({{'torch', 'numpy', 'h5py'}} & set(sys.modules)))"
    )
    for arguments, word in ((["--help"], "embed"), (["embed", "--help"], "--layer"), ([], "convert")):
        out = run_command(sys.executable, "-c", code.format(arguments), check=True).stdout
        assert word in out
        assert out.rstrip().endswith("[]")
        assert out.rstrip().splitlines()[-1].startswith("0 " if arguments else "2 ")


def test_the_version_is_printed(run):
    assert re.fullmatch(r"polyseme \d+\.\d+\.\d+\n", run("--version").out)


def test_ctrl_c_is_one_line_and_leaves_nothing_behind(models, tmp_path):
    command = [POLYSEME, "embed", models / "bilm", "-", "--out", "x.npz"]
    pipe = subprocess.PIPE

    def enable_interrupt() -> None:  # SIGINT may be ignored if the tests run in the background
        signal.signal(signal.SIGINT, signal.SIG_DFL)

    with subprocess.Popen(
        command, stdin=pipe, stdout=pipe, stderr=pipe, cwd=tmp_path, preexec_fn=enable_interrupt
    ) as process:
        assert process.stdin is not None
        process.stdin.write(b"the bank failed\n")
        process.stdin.flush()
        for _ in range(600):  # until it has opened its output and waits for more text
            if any(tmp_path.iterdir()):
                break
            time.sleep(0.1)
        os.kill(process.pid, signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == cli.STOPPED
    assert err.decode() == "polyseme: stopped.\n"
    assert list(tmp_path.iterdir()) == []


# ---- progress ----


def test_progress_is_plain_lines_without_a_terminal(run, capsys):
    progress = ProgressDisplay(line_interval=0)
    polyseme.embed("models/bilm", "text.txt", "x.npz", batch_tokens=1, progress=progress)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) >= 2
    assert all(re.fullmatch(r"embedding: \d+ tokens, [\d,]+/s, \d+%, \d+ s left", line) for line in lines)
    assert lines[-1].startswith("embedding: 11 tokens, ")
    assert ", 100%, 0 s left" in lines[-1]
    assert run("embed models/bilm text.txt --out y.npz").out == "y.npz: 3 sentences, 11 tokens\n"


def test_progress_of_standard_input_has_a_rate_but_no_total(run, capsys, monkeypatch):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(TEXT.encode())))
    polyseme.embed("models/bilm", "-", "x.npz", progress=ProgressDisplay(line_interval=0))
    assert re.fullmatch(r"embedding: 11 tokens, [\d,]+/s\n", capsys.readouterr().err)


def test_progress_is_a_bar_on_a_terminal(run, capsys):
    console = Console(force_terminal=True, width=100, record=True, file=io.StringIO())
    with ProgressDisplay(delay=0, console=console) as progress:
        polyseme.embed("models/bilm", "text.txt", "x.npz", batch_tokens=1, progress=progress)
    assert capsys.readouterr().err == ""
    text = console.export_text()
    assert re.search(r"embedding: 11 tokens, [\d,]+/s ━+ +100% 0:00:0\d", text)


def test_the_size_of_text_is_known_for_uncompressed_files(run):
    Path("folder/.hidden").mkdir(parents=True)
    Path("folder/a").write_text("12345")
    Path("folder/.hidden/b").write_text("never read")
    assert measure_bytes("folder") == 5
    assert measure_bytes("text.txt") == len(TEXT)
    Path("folder/c.gz").write_text("123")
    for unknown in ("folder", "folder/c.gz", "-", "nowhere"):
        assert measure_bytes(unknown) is None
