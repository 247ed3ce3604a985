"""Verbs about speed: cache.

api  ->  cli.caching  ->  a person's terminal
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from polyseme.cli.options import Force, ModelPath, Options, count_of


def cache(
    model: ModelPath,
    vocab: Annotated[
        str, typer.Argument(metavar="VOCAB", help="One word a line, <S> </S> <UNK> among them.")
    ],
    out: Annotated[Path, typer.Option(help="A new .hdf5 file.")],
    options: Options = None,
    force: Force = False,
) -> None:
    """Write the vectors of words before any context, as bilm-tf's token embeddings."""
    from polyseme import api, load

    count = api.cache(load(model, options), vocab, out, force=force)
    print(f"{out}: {count_of(count, 'word')}")
