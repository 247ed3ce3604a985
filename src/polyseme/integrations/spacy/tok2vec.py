"""The architecture `polyseme.Tok2Vec.v1`: ELMo vectors as the input of models that spaCy trains.

    integrations.spacy.documents, integrations.spacy.stored_model  ->  here  ->  spaCy, by an entry point

ELMo is frozen; the mix of its layers is trained, and a projection if a width is asked for. All layers of a
sentence are kept from the first update on, as float16 within a limit of memory, so that ELMo runs once per
sentence and not once per epoch. Vectors are rounded to float16 before they are used, whether kept or not.

L layers, T tokens, H values.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from spacy.tokens import Doc
from thinc.api import Dropout, Maxout, Model, chain, with_array
from thinc.shims import Shim
from thinc.types import Floats2d

from polyseme.integrations.spacy.documents import ReadDoc, raise_value_errors, read_doc
from polyseme.integrations.spacy.stored_model import StoredModel, store_elmo

Halfs = NDArray[np.float16]
MIX = "mix"
CACHE_MB = 1024


def build_tok2vec(
    model: str,
    layer: str | int = MIX,
    width: int | None = None,
    cache_mb: int = CACHE_MB,
    precision: str | None = None,
    device: str = "cpu",
) -> Model[list[Doc], list[Floats2d]]:
    """Build the embedding layer of a spaCy model.

    Args:
        model: A path or bundled name as for `polyseme.load`.
        layer: "mix" trains a weighted sum of all layers; "mean", "top" or a number is fixed.
        width: Values per token, by a trained projection; None keeps those of the model.
        cache_mb: Memory for vectors of training sentences; those that do not fit are computed again.
        precision: As in `polyseme.load`.
        device: Where ELMo computes, as in `polyseme.load`.

    Returns:
        A model from documents to one array (T, width) each.

    Raises:
        ValueError: If an argument is invalid.

    """
    if width is not None and width < 1:
        raise ValueError(f"width is {width}, expected 1 or more, or none.")
    if cache_mb < 0:
        raise ValueError(f"cache_mb is {cache_mb}, expected 0 or more.")
    if isinstance(layer, str) and layer not in (MIX, "mean", "top"):
        raise ValueError(f'layer is {layer!r}, expected "mix", "mean", "top" or a number.')
    shim = CachedElmo(store_elmo(model, precision, device), layer, cache_mb)
    elmo: Model[list[Doc], list[Floats2d]] = Model(
        "polyseme_elmo",
        forward,
        init=initialize,
        dims={"nO": None},
        params={"weights": None, "gamma": None} if layer == MIX else {},
        shims=[shim],
    )
    vectors: Model[list[Doc], list[Floats2d]] = chain(elmo, Dropout())
    if width is None:
        return vectors
    projection: Any = with_array(Maxout(nO=width, nP=3, normalize=True, dropout=0.0))
    return chain(vectors, projection)


def initialize(model: Model[Any, Any], X: Any = None, Y: Any = None) -> None:  # noqa: N803  # thinc's names
    """Load ELMo, set the width, and begin with the mean of the layers."""
    shim: Any = model.shims[0]
    elmo = shim.elmo
    model.set_dim("nO", elmo.config.size)
    if "weights" in model.param_names:
        model.set_param("weights", model.ops.alloc1f(elmo.config.layers))
        model.set_param("gamma", model.ops.alloc1f(1) + 1.0)


def forward(
    model: Model[Any, Any], docs: Sequence[Doc], is_train: bool
) -> tuple[list[Floats2d], Callable[[list[Floats2d]], list[Any]]]:
    """Vectors (T, H) of documents; the mix learns from their gradients."""
    shim: Any = model.shims[0]
    layers: list[NDArray[np.float32]] = shim.embed(docs, is_train)  # (L, T, H) of each
    trained = "weights" in model.param_names
    weights = model.ops.to_numpy(model.get_param("weights")) if trained else np.zeros(1, np.float32)
    gamma = float(model.get_param("gamma")[0]) if trained else 1.0
    exponents = np.exp(weights - weights.max())
    shares = exponents / exponents.sum()  # (L,)
    sums = [np.tensordot(shares, rows, axes=1) for rows in layers]  # (T, H) of each

    def backprop(gradients: list[Floats2d]) -> list[Any]:
        if trained:
            by_layer, by_gamma = np.zeros(len(shares), np.float32), 0.0
            for rows, mixed, gradient in zip(layers, sums, gradients, strict=True):
                values = model.ops.to_numpy(gradient)
                by_layer += gamma * np.tensordot(rows, values, axes=2)
                by_gamma += float((mixed * values).sum())
            model.inc_grad("weights", _to_array(model, shares * (by_layer - shares @ by_layer)))
            model.inc_grad("gamma", _to_array(model, np.array([by_gamma])))
        return []

    return [_to_array(model, gamma * mixed) for mixed in sums], backprop


def _to_array(model: Model[Any, Any], values: Any) -> Any:
    """An array where the model computes."""
    return model.ops.asarray(values, dtype="float32")


class CachedElmo(Shim):
    """An ELMo inside of a thinc model, with the vectors of the sentences it was trained on."""

    def __init__(self, stored: StoredModel[Any], layer: str | int, cache_mb: int) -> None:
        super().__init__(None)
        self.stored, self.layer, self.cache_mb = stored, layer, cache_mb
        self._clear()

    def _clear(self) -> None:
        self._rows: dict[tuple[str, ...], Halfs] = {}  # (L, T, H) of each sentence
        self._bytes, self._keeps = 0, False

    def __getstate__(self) -> dict[str, Any]:
        """What copies and pickles hold: no vectors."""
        return {
            name: value for name, value in self.__dict__.items() if name not in ("_rows", "_bytes", "_keeps")
        }

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._clear()

    @property
    def elmo(self) -> Any:
        """The ELMo, loaded at first use."""
        return self.stored.model

    def embed(self, docs: Sequence[Doc], is_train: bool) -> list[NDArray[np.float32]]:
        """The layers of each document (L, T, H): all of them for a mix, otherwise L is 1.

        They are kept from the first update on: the dev set is read again and again, too.
        """
        self._keeps = self._keeps or is_train
        readings = [read_doc(doc) for doc in docs]
        rows = self._compute(list(dict.fromkeys(tuple(s) for r in readings for s in r.sentences)))
        return [self._align(reading, rows) for reading in readings]

    def _align(self, reading: ReadDoc, rows: dict[tuple[str, ...], Halfs]) -> NDArray[np.float32]:
        sentences = [rows[tuple(sentence)] for sentence in reading.sentences]
        size, count = self.elmo.config.size, self.elmo.config.layers if self.layer == MIX else 1
        return np.stack(
            [reading.align([layers[number] for layers in sentences], size) for number in range(count)]
        )

    def _compute(self, sentences: list[tuple[str, ...]]) -> dict[tuple[str, ...], Halfs]:
        """The layers of distinct sentences, from memory or computed."""
        new = [sentence for sentence in sentences if sentence not in self._rows]
        computed: dict[tuple[str, ...], Halfs] = {}
        if new:
            elmo = self.elmo
            with raise_value_errors():
                plan = elmo.plan_embedding([], layer="all" if self.layer == MIX else self.layer)
                with elmo.track_counts() as counts:
                    arrays = elmo.embed_tokens([list(sentence) for sentence in new], plan.spec, counts)
            for sentence, array in zip(new, arrays, strict=True):
                layers = array if array.ndim == 3 else array[None]
                computed[sentence] = layers.astype(np.float16)
                self._keep(sentence, computed[sentence])
        return {
            sentence: computed[sentence] if sentence in computed else self._rows[sentence]
            for sentence in sentences
        }

    def _keep(self, sentence: tuple[str, ...], layers: Halfs) -> None:
        """Keep the vectors of a sentence if there is room; the first ones stay, so epochs find them again."""
        if self._keeps and self._bytes + layers.nbytes <= self.cache_mb << 20:
            self._rows[sentence] = layers
            self._bytes += layers.nbytes

    def finish_update(self, optimizer: Any) -> None:
        """Nothing: ELMo is frozen."""

    def to_device(self, device_type: str, device_id: int) -> None:
        """Nothing: ELMo computes where `device` says."""

    def to_bytes(self) -> bytes:
        """The model as bytes."""
        return self.stored.to_bytes()

    def from_bytes(self, data: bytes) -> CachedElmo:
        """Load the model from bytes."""
        self._clear()
        self.stored.from_bytes(data)
        return self
