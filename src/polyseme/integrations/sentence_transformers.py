"""ELMo as the first module of a SentenceTransformer, for encode, similarity, BERTopic and MTEB.

    elmo  ->  integrations.sentence_transformers  ->  SentenceTransformer(modules=[ElmoModule("en")])

Vectors equal those of `Elmo.embed`. A saved folder holds the whole model. `SentenceTransformer(folder)`
imports classes of other packages only with `trust_remote_code=True`; `load_sentence_transformer` needs no
such trust: it imports nothing that the folder names outside sentence-transformers.
B texts, T tokens, H values.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor

from polyseme.choices import Direction, Pool
from polyseme.elmo import Elmo, ensure_loaded
from polyseme.elmo import load as load_elmo
from polyseme.errors import UsageError, require
from polyseme.model.output import Layer

require("sentence_transformers", "sentence-transformers", "polyseme.integrations.sentence_transformers")

from sentence_transformers import SentenceTransformer  # noqa: E402  # after the check that names the command
from sentence_transformers.base.modules import InputModule, Module  # noqa: E402
from sentence_transformers.util import (  # noqa: E402
    import_from_string,
    load_dir_path,
    load_file_path,
)

ELMO = "elmo"  # the folder of the model, beside the settings of the module
OWN_CLASSES = "sentence_transformers."


class ElmoModule(InputModule):
    """Texts to ELMo vectors: one per text, or with `pool=None` one per token, for a Pooling module.

    Args:
        model: A path, the name of a bundled model ("en", "zh"), or a loaded `Elmo`, which moves to the device
            of the SentenceTransformer.
        layer: "mean", "top", "concat", a number from 0, weights, or (weights, gamma); see `Elmo.embed`.
        pool: "sentence", which suits comparing texts; "mean", "max", "first", "last", "sum" or "concat";
            or None for the vectors of all tokens.
        direction: "both", or the "forward" or "backward" half of each vector.
        segment: How texts are split into tokens; as the model was trained if None.

    Attributes:
        elmo: The loaded model.

    Example:
        >>> model = SentenceTransformer(modules=[ElmoModule("en", pool="sentence")])
        >>> vectors = model.encode(["The bank failed.", "He lost his money."])
        >>> model.similarity(vectors, vectors)

    """

    config_keys = ["layer", "pool", "direction", "segment"]  # noqa: RUF012  # as the library declares it
    save_in_root = False  # its folder is replaced as a whole

    def __init__(
        self,
        model: Elmo | str | Path = "en",
        *,
        layer: Layer = "mean",
        pool: Pool | None = "mean",
        direction: Direction = "both",
        segment: str | None = None,
    ) -> None:
        super().__init__()
        if not isinstance(model, Elmo | str | Path):
            raise UsageError(
                f"model is of type {type(model).__name__}, expected a path, the name of a bundled model, or "
                "what polyseme.load returns."
            )
        self.elmo = ensure_loaded(model)
        self.layer, self.pool, self.direction, self.segment = layer, pool, direction, segment
        spec = self.elmo.plan_embedding([], **self._options()).spec  # refuses invalid options
        self._shape = tuple(spec.empty(self.elmo.config.layers, self.elmo.config.size).shape)
        if layer == "all":
            raise UsageError(
                'layer is "all", which gives several vectors per text. Use "concat" to join them.'
            )
        # The module has no weights of its own for sentence-transformers to see; where this is, ELMo goes.
        self.register_buffer("_where", torch.empty(0), persistent=False)

    def _options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.config_keys}

    def __repr__(self) -> str:
        return f"ElmoModule({self.elmo!r}, layer={self.layer!r}, pool={self.pool!r})"

    @property
    def max_seq_length(self) -> float:
        """No limit: ELMo reads texts of any length."""
        return math.inf

    def get_embedding_dimension(self) -> int:
        """Values of a vector."""
        return int(self._shape[-1])

    get_word_embedding_dimension = get_embedding_dimension  # what a Pooling module asks for

    def preprocess(
        self, inputs: Sequence[Any], prompt: str | None = None, **kwargs: Any
    ) -> dict[str, Tensor]:
        """Embed texts.

        Args:
            inputs: B texts.
            prompt: Put before each text, if not None.
            **kwargs: Of other modules.

        Returns:
            `sentence_embedding` (B, H); with `pool=None`, `token_embeddings` (B, T, H), padded with zeros,
            and `attention_mask` (B, T).

        Raises:
            ValueError: If an input is no text.

        """
        texts = self._prepend_prompt(list(inputs), prompt) if prompt else list(inputs)
        elmo = self.elmo.to(self._where.device)
        vectors = elmo.embed(texts, progress=False, **self._options())
        if self.pool is not None:
            return {"sentence_embedding": torch.from_numpy(vectors)}
        rows = [torch.from_numpy(row) for row in vectors]
        tokens = torch.nn.utils.rnn.pad_sequence(rows, batch_first=True)  # (B, T, H)
        lengths = torch.tensor([len(row) for row in rows])
        mask = (torch.arange(tokens.shape[1])[None] < lengths[:, None]).long()
        return {"token_embeddings": tokens, "attention_mask": mask}

    def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
        """Pass on what `preprocess` computed.

        Args:
            features: The vectors.
            **kwargs: Of other modules.

        Returns:
            The features.

        """
        return features

    def save(self, output_path: str, *args: Any, safe_serialization: bool = True, **kwargs: Any) -> None:
        """Write the settings and the whole model into a folder.

        Args:
            output_path: The folder.
            *args: Of other modules.
            safe_serialization: Ignored: weights are always safetensors.
            **kwargs: Of other modules.

        """
        self.elmo.save(Path(output_path) / ELMO, force=True)
        self.save_config(output_path)

    @classmethod
    def load(
        cls,
        model_name_or_path: str,
        subfolder: str = "",
        token: bool | str | None = None,
        cache_folder: str | None = None,
        revision: str | None = None,
        local_files_only: bool = False,
        **kwargs: Any,
    ) -> Self:
        """Read what `save` wrote, from a folder or from the Hub.

        Args:
            model_name_or_path: The folder of the SentenceTransformer, or its name on the Hub.
            subfolder: The folder of this module in it.
            token: Of the Hub.
            cache_folder: Of the Hub's files.
            revision: On the Hub.
            local_files_only: Whether only the cache is read.
            **kwargs: Of other modules.

        Returns:
            The module.

        Raises:
            FileNotFoundError: If there is no model.

        """
        source: dict[str, Any] = {
            "token": token,
            "cache_folder": cache_folder,
            "revision": revision,
            "local_files_only": local_files_only,
        }
        config = cls.load_config(model_name_or_path, subfolder=subfolder, **source)
        folder = load_dir_path(model_name_or_path, subfolder=str(Path(subfolder, ELMO)), **source)
        if folder is None or not Path(folder).is_dir():
            raise FileNotFoundError(f"{Path(model_name_or_path, subfolder, ELMO)}: there is no ELMo model.")
        options = {key: config[key] for key in cls.config_keys if key in config}
        layer = options.get("layer")
        if isinstance(layer, list) and layer and isinstance(layer[0], list):
            options["layer"] = tuple(layer)  # (weights, gamma), which JSON has no tuples for
        return cls(load_elmo(folder), **options)


def load_sentence_transformer(
    path: str | Path,
    *,
    token: bool | str | None = None,
    cache_folder: str | None = None,
    revision: str | None = None,
    local_files_only: bool = False,
    **options: Any,
) -> SentenceTransformer:
    """Load a SentenceTransformer that was saved with an `ElmoModule`, without `trust_remote_code`.

    Args:
        path: The folder, or the name of a repository on the Hub.
        token: Of the Hub.
        cache_folder: Of the Hub's files.
        revision: On the Hub.
        local_files_only: Whether only the cache is read.
        **options: Of `SentenceTransformer`, such as `device` or `truncate_dim`; they replace what was saved.

    Returns:
        The model.

    Raises:
        FileNotFoundError: If there is no such model.
        ValueError: If it needs classes that are neither Polyseme's nor those of sentence-transformers.

    Example:
        >>> SentenceTransformer(modules=[ElmoModule("en", pool="sentence")]).save("my-model")
        >>> model = load_sentence_transformer("my-model")

    """
    name = str(Path(path).expanduser()) if Path(path).expanduser().is_dir() else str(path)
    source: dict[str, Any] = {
        "token": token,
        "cache_folder": cache_folder,
        "revision": revision,
        "local_files_only": local_files_only,
    }

    def read(file_name: str) -> Any:
        file = load_file_path(name, file_name, **source)
        return None if file is None else json.loads(Path(file).read_text(encoding="utf-8"))

    entries = read("modules.json")
    if entries is None:
        raise FileNotFoundError(f"{name}: no SentenceTransformer: there is no modules.json.")
    modules = [
        _find_class(entry["type"], name).load(name, subfolder=entry["path"], **source) for entry in entries
    ]
    saved = read("config_sentence_transformers.json") or {}
    kept = {
        key: saved[key] for key in ("prompts", "default_prompt_name", "similarity_fn_name") if key in saved
    }
    return SentenceTransformer(modules=modules, **(kept | options))


def _find_class(class_name: str, path: str) -> type[Module]:
    """The class of a module, if it is ours or the library's; nothing else that a folder names is imported."""
    if class_name == f"{ElmoModule.__module__}.{ElmoModule.__name__}":
        return ElmoModule
    if class_name.startswith(OWN_CLASSES):
        kind: type[Module] = import_from_string(class_name)
        if isinstance(kind, type) and issubclass(kind, torch.nn.Module):
            return kind
    raise ValueError(
        f"{path}: its module {class_name!r} is neither of Polyseme nor of sentence-transformers. If you "
        "trust its code, load it with `SentenceTransformer(path, trust_remote_code=True)`."
    )
