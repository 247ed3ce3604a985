"""Precision as one word: the large weights in fp32, bf16 or int8, in memory and in a folder.

    formats.models.native, formats.models.open  ->  formats.models.precision
        ->  model.fast.quantisation, model.recurrent, model.tokens

Large are those of the stacks and of the highways; filters, tables, biases and softmax stay fp32. A folder may
keep its tables (words, characters, softmax) narrow, too, to be small: they become fp32 when it is opened.
In a folder a narrow weight is a tensor of its own dtype under its usual name; beside one of int8 stand the
scales of its rows, as NAME.scales.
"""

from __future__ import annotations

import random
from collections.abc import Mapping

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity

from polyseme.config import suggest
from polyseme.errors import FormatError, UsageError
from polyseme.formats.models.pretrained import Pretrained
from polyseme.model.fast.kernels import native
from polyseme.model.fast.quantisation import DTYPES, PRECISIONS, QuantisedMatrix, quantise
from polyseme.model.recurrent import RecurrentCell
from polyseme.model.tokens import Linear
from polyseme.text.chars import CodepointAlphabet

TABLES = ("tokens.words.weight", "tokens.chars.embedding.weight", "softmax.weight")
AUTO_COSINE = 0.999  # what "auto" demands of every vector
SENTENCES, LENGTH = 16, 20  # of the text that "auto" tries


def set_precision(model: Pretrained, precision: str | None) -> None:
    """Choose how stacks and highways of `model` are run without gradients, on the CPU.

    fp32: exact. bf16: weights of 8 significant bits, half the memory. int8: weights and what meets them as
    whole numbers from -127 to 127, a quarter of the memory and the quickest. None: as they are stored.
    auto: the narrowest of these with which each vector of a text of random words, in every layer, has a
    cosine of AUTO_COSINE or more to that of fp32.
    Without the native part, and in GRU and RNN cells, bf16 and int8 mean fp32 with rounded weights, which is
    not quicker.
    """
    stored = model.network.precision
    wanted = stored if precision is None else precision
    if wanted not in (*PRECISIONS, "auto"):
        known = [*PRECISIONS, "auto"]
        raise UsageError(
            f"precision is {wanted!r}, expected one of {', '.join(known)}.{suggest(wanted, known)}"
        )
    if wanted == "auto":
        wanted = _narrowest(model)
    for module in model.network.quantisable_modules().values():
        as_it_is = module.can_run_native()
        if wanted != stored or not as_it_is:
            module.dequantise()
        if wanted not in ("fp32", stored) and not as_it_is:
            module.round_weights(wanted)
    model.network.precision = wanted


def _narrowest(model: Pretrained) -> str:
    """The narrowest precision that loses no more than "auto" may."""
    if not native.is_available() or model.config.recurrent.cell != "lstm":
        return "fp32"
    set_precision(model, "fp32")
    exact = _probe(model)
    for precision in ("int8", "bf16"):
        set_precision(model, precision)
        if bool((cosine_similarity(exact, _probe(model), dim=-1) >= AUTO_COSINE).all()):
            return precision
    return "fp32"


@torch.inference_mode()
def _probe(model: Pretrained) -> Tensor:
    """The recurrent layers (L - 1, B * T, H) of some sentences of random words."""
    chance = random.Random(0)  # noqa: S311
    words = _words(model, chance)
    model.network.pack()
    vectors = model.network.tokens(*model.token_ids(words))  # <S> and </S> first
    places = [[0, *(chance.randrange(2, len(vectors)) for _ in range(LENGTH)), 1] for _ in range(SENTENCES)]
    lengths = torch.full((SENTENCES,), LENGTH + 2)
    layers = model.network.run_stacks(vectors, torch.tensor(places), lengths).layers()
    return layers[1:].flatten(1, 2)


def _words(model: Pretrained, chance: random.Random) -> list[str]:
    """Some words that the model can read: its own, or strings of its characters."""
    if model.vocab is not None:
        return [chance.choice(model.vocab.words) for _ in range(SENTENCES * LENGTH)]
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    if isinstance(model.alphabet, CodepointAlphabet):
        letters = "".join(c for c in model.alphabet.characters if len(c) == 1) or letters
    return ["".join(chance.choices(letters, k=chance.randint(1, 10))) for _ in range(SENTENCES * LENGTH)]


def quantise_tensors(model: Pretrained, precision: str, *, tables: bool = False) -> dict[str, Tensor]:
    """All tensors of `model` as a folder of that precision holds them, with narrow `tables` or without."""
    tensors = model.tensors()
    if precision == "fp32":
        return tensors
    large = [
        f"{place}.{name}" for place, m in model.network.quantisable_modules().items() for name in m.matrices()
    ]
    for name in [*large, *(name for name in TABLES if tables and name in tensors)]:
        tensors[name], scales = quantise(tensors[name], precision)
        if scales is not None:
            tensors[f"{name}.scales"] = scales
    return tensors


def has_narrow_tables(model: Pretrained, precision: str) -> bool:
    """Whether writing the model's tables in that precision loses nothing."""
    if precision == "fp32":
        return False
    tensors = model.tensors()
    tables = [tensors[name] for name in TABLES if name in tensors]
    return bool(tables) and all(
        torch.equal(quantise(table, precision).dequantise(), table) for table in tables
    )


def pop_quantised(
    tensors: dict[str, Tensor], precision: str, source: str
) -> dict[str, dict[str, QuantisedMatrix]]:
    """Take the narrow weights out of `tensors`: module, name, weight; shapes without memory stay there.

    QuantisedMatrix tables are widened where they stand.
    """
    taken: dict[str, dict[str, QuantisedMatrix]] = {}
    for key in [key for key in tensors if _is_large(key) or key in TABLES]:
        if not _is_always_narrow(key) and tensors[key].dtype == torch.float32:
            continue
        place, _, name = key.rpartition(".")
        scales = tensors.pop(f"{key}.scales", None) if precision == "int8" else None
        weight = QuantisedMatrix(tensors[key], scales)
        _check(key, weight, precision, source)
        if key in TABLES:
            tensors[key] = weight.dequantise()
            continue
        taken.setdefault(place, {})[name] = weight
        tensors[key] = torch.empty_like(weight.values, dtype=torch.float32, device="meta")
    return taken


def _is_always_narrow(key: str) -> bool:
    """Tables may stay fp32, and the first folders of format 2 left highways as they were."""
    return key not in TABLES and ".highways." not in key


def _is_large(key: str) -> bool:
    """Whether the tensor of this name is one that may be narrow."""
    name = key.rpartition(".")[2]
    return (".cells." in key and name in RecurrentCell.MATRICES) or (
        ".highways." in key and name in Linear.MATRICES
    )


def _check(key: str, weight: QuantisedMatrix, precision: str, source: str) -> None:
    values, scales = weight
    if values.dtype != DTYPES[precision] or values.ndim != 2:
        raise FormatError(
            f"{source}: {key} is {values.dtype} {tuple(values.shape)}, but the config says {precision}. "
            "Are config and weights of one model?"
        )
    if precision == "int8" and (
        scales is None or scales.dtype != torch.float32 or scales.shape != values.shape[:1]
    ):
        raise FormatError(
            f"{source}: {key}.scales must be {values.shape[0]} float32, one for each row of {key}."
        )
    numbers = values if scales is None else scales
    if not torch.isfinite(numbers.sum(dtype=torch.float32)) and not torch.isfinite(numbers).all():
        raise FormatError(f"{source}: {key} holds NaN or infinite weights. The model is broken.")


def attach_quantised(
    model: Pretrained, taken: Mapping[str, dict[str, QuantisedMatrix]], precision: str
) -> None:
    """Give the weights of `take_narrow` to the modules of `model`."""
    modules = model.network.quantisable_modules()
    for place, weights in taken.items():
        modules[place].store_quantised(weights)
    model.network.precision = precision
