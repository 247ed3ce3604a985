"""AllenNLP's ELMo (2.10.1, Apache-2.0) on a current torch, from zero state.

Run by the peers' Python:
    .venv-peers/bin/python benchmarks/peers/allennlp_elmo.py OPTIONS WEIGHTS SENTENCES --time

AllenNLP ended in 2022 and requires torch < 1.13 and two dozen packages, most of which ELMo does not use. It
is installed without them, and this program replaces what its imports need: - `allennlp.modules` becomes an
empty package with the real path: its `__init__` loads transformer backbones. - The packages in ABSENT
become empty modules. ELMo does not use them. - `cached_path.cached_path`, which fetches remote files,
returns its argument: our files are local.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec
from pathlib import Path
from types import ModuleType
from typing import Any

import measure
import numpy as np
import torch

ABSENT = ("_jsonnet", "cached_path", "huggingface_hub", "lmdb", "spacy", "torchvision", "transformers")


class _EmptyModule(ModuleType):
    """A module in which every public name is an empty class, created on access."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


class _AbsentPackages(MetaPathFinder, Loader):
    """Imports ABSENT packages and their submodules as empty modules."""

    def find_spec(self, fullname: str, path: Any, target: ModuleType | None = None) -> ModuleSpec | None:
        absent = fullname.partition(".")[0] in ABSENT
        return ModuleSpec(fullname, self, is_package=True) if absent else None

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return _EmptyModule(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ == "cached_path":
            module.cached_path = lambda url_or_filename, **_: url_or_filename


@contextmanager
def supplied_imports() -> Iterator[None]:
    """Supply what AllenNLP's imports look for, and only while they run."""
    finder = _AbsentPackages()
    sys.meta_path.insert(0, finder)
    try:
        import allennlp

        modules = ModuleType("allennlp.modules")
        modules.__path__ = [str(Path(folder) / "modules") for folder in allennlp.__path__]
        sys.modules["allennlp.modules"] = modules
        yield
    finally:
        sys.meta_path.remove(finder)


def load(options: Path, weights: Path, batch: int, threads: int) -> measure.Embed:
    """Load the biLM; every batch starts from zero state."""
    del batch  # AllenNLP takes batches of any size
    with supplied_imports():
        from allennlp.modules.elmo import _ElmoBiLm, batch_to_ids
    if threads:
        torch.set_num_threads(threads)
    bilm = _ElmoBiLm(str(options), str(weights)).eval()

    @torch.inference_mode()
    def embed(sentences: list[measure.Sentence]) -> list[np.ndarray]:
        bilm._elmo_lstm.reset_states()  # else the state of the last batch carries over
        activations = bilm(batch_to_ids(sentences))["activations"]
        layers = torch.stack(activations, dim=1).numpy()  # (B, L, T, H), <S> and </S> included
        return [layers[i, :, 1 : len(sentence) + 1] for i, sentence in enumerate(sentences)]

    return embed


if __name__ == "__main__":
    measure.main(__doc__, load)
