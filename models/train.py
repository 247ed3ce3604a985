"""Train a bundled model on the texts written by prepare.py, or resume an interrupted training.

WORK/NAME/train, WORK/NAME/valid, models/NAME/config.toml  ->  polyseme.pretrain  ->  WORK/NAME/model

python models/train.py NAME WORK
"""

from __future__ import annotations

import sys
from pathlib import Path

import polyseme
from polyseme.cli.pretraining import print_pretraining


def main() -> None:
    """Parse the command line and train."""
    if len(sys.argv) != 3:
        raise SystemExit("usage: python models/train.py NAME WORK")
    name, work = sys.argv[1], Path(sys.argv[2])
    out = work / name / "model"
    if (out / "config.json").exists():
        print(f"{out} exists: nothing to do.")
        return
    result = polyseme.pretrain(
        [work / name / "train"],
        out,
        str(Path(__file__).parent / name / "config.toml"),
        valid=[work / name / "valid"],
        resume=(out / "checkpoints").exists(),
        progress=True,
    )
    print_pretraining(result)


if __name__ == "__main__":
    main()
