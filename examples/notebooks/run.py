"""Run the notebooks, and keep their outputs light.

    examples/notebooks/*.ipynb  ->  a kernel of this Python  ->  the same files, with outputs

    python examples/notebooks/run.py [NAME…] [--check]      # all; --check leaves the files as they are

A cell that fails ends the run with its error. Pictures and tables are kept; progress bars, warnings of other
libraries, times and the state of the kernel are not.
"""

import argparse
import sys
from pathlib import Path

import nbformat
from nbclient import NotebookClient
from nbclient.exceptions import CellExecutionError, CellTimeoutError

FOLDER = Path(__file__).parent
LARGEST = 100_000  # bytes of a notebook
KEPT = ("text/plain", "text/html", "image/png")


def run(path: Path, timeout: int = 1800) -> nbformat.NotebookNode:
    """Execute a notebook in its folder and return it with its outputs."""
    notebook = nbformat.read(path, as_version=4)
    resources = {"metadata": {"path": str(FOLDER)}}
    NotebookClient(notebook, timeout=timeout, kernel_name="python3", resources=resources).execute()
    for cell in notebook.cells:
        cell.metadata = {}
        if cell.cell_type == "code":
            cell.outputs = [clean(output) for output in cell.outputs if output.get("name") != "stderr"]
    notebook.metadata = {"kernelspec": notebook.metadata.kernelspec, "language_info": {"name": "python"}}
    return notebook


def clean(output: nbformat.NotebookNode) -> nbformat.NotebookNode:
    """An output without what other programs would show instead of text, HTML and pictures."""
    if "data" in output:
        output.data = {kind: value for kind, value in output.data.items() if kind in KEPT}
    return output


def main() -> None:
    """Run the notebooks that are named."""
    parser = argparse.ArgumentParser(description="Run the notebooks, and keep their outputs light.")
    parser.add_argument("names", nargs="*", help="without .ipynb; by default all")
    parser.add_argument("--check", action="store_true", help="leave the files as they are")
    options = parser.parse_args()
    for name in options.names or sorted(path.stem for path in FOLDER.glob("*.ipynb")):
        path = FOLDER / f"{name}.ipynb"
        if not path.is_file():
            sys.exit(f"{path}: no such notebook")
        try:
            notebook = run(path)
        except (CellExecutionError, CellTimeoutError) as error:
            sys.exit(f"{path.name}: {error}")
        text = nbformat.writes(notebook) + "\n"
        if len(text.encode()) > LARGEST:
            sys.exit(
                f"{path.name} has {len(text.encode()):,} bytes with its outputs; the limit is {LARGEST:,}"
            )
        if not options.check:
            path.write_text(text, encoding="utf-8")
        print(f"{path.name}: {len(text.encode()):,} bytes", flush=True)


if __name__ == "__main__":
    main()
