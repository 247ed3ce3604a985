"""Precision of the large weights: fp32, bf16 or int8, in memory and in a folder.

    formats.models.native, formats.models.open  ->  formats.models.precision
        ->  model.fast.quantisation, model.recurrent, model.tokens

Large weights are those of the stacks and highways; filters, tables, biases and softmax stay fp32. To be
small, a folder may also store its tables (words, characters, softmax) in that precision: they become fp32
when opened. In a folder a quantised weight is a tensor of that dtype under its usual name; the scales of the
rows of an int8 weight are a second tensor, NAME.scales.
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
from polyseme.io.progress import ByteProgress, OnProgress, ignore_progress
from polyseme.model.fast.kernels import native
from polyseme.model.fast.quantisation import DTYPES, PRECISIONS, QuantisedMatrix, quantise
from polyseme.model.recurrent import RecurrentCell
from polyseme.model.tokens import Linear
from polyseme.text.chars import CodepointAlphabet

TABLES = ("tokens.words.weight", "tokens.chars.embedding.weight", "softmax.weight")
LARGEST_SCALE = 1e15  # of a row of int8: sums of larger products would be infinite
AUTO_COSINE = 0.999  # that "auto" requires of every vector
SENTENCES, LENGTH = 16, 20  # number and tokens of the random sentences that "auto" tries


def set_precision(model: Pretrained, precision: str | None, *, auto_cosine: float = AUTO_COSINE) -> None:
    """Choose the precision in which stacks and highways run on the CPU without gradients.

    Without the C library, and in GRU and RNN cells, bf16 and int8 round the weights but run in fp32, which is
    not faster.

    Args:
        model: The model.
        precision: "fp32" is exact. "bf16" has weights of 8 significant bits and half the memory. "int8" has
            weights and inputs from -127 to 127 and a quarter of the memory; it is the fastest. "auto" is the
            fastest precision on this CPU with which each vector of random sentences, in every layer, has a
            cosine of at least `auto_cosine` to that of fp32: the same for each model and machine. None is the
            precision in which the weights are stored.
        auto_cosine: The cosine that "auto" requires.

    """
    stored = model.network.precision
    chosen = stored if precision is None else precision
    if chosen not in (*PRECISIONS, "auto"):
        known = [*PRECISIONS, "auto"]
        raise UsageError(
            f"precision is {chosen!r}, expected one of {', '.join(known)}.{suggest(chosen, known)}"
        )
    if chosen == "auto":
        chosen = _find_fastest(model, auto_cosine)
    for module in model.network.quantisable_modules().values():
        runs_native = module.can_run_native()
        if chosen != stored or not runs_native:
            module.dequantise()
        if chosen not in ("fp32", stored) and not runs_native:
            module.round_weights(chosen)
    model.network.precision = chosen


def _find_fastest(model: Pretrained, min_cosine: float) -> str:
    """The fastest precision that "auto" allows."""
    if not native.is_available() or model.config.recurrent.cell != "lstm":
        return "fp32"
    set_precision(model, "fp32")
    exact = _probe(model)
    for precision in order_by_speed(native.active_instruction_set()):
        if precision == "fp32":
            break
        set_precision(model, precision)
        if bool((cosine_similarity(exact, _probe(model), dim=-1) >= min_cosine).all()):
            return precision
    return "fp32"


def order_by_speed(instruction_set: str) -> tuple[str, ...]:
    """The precisions by their speed in batches; one that is slower than fp32 is left out.

    By the instruction set and not by a stopwatch, so that a model has the same vectors each time it is
    loaded. Measured with each set on one core (`benchmarks/precision_speed.py`): int8 is the fastest with all
    of them. bf16 weights are multiplied as they are with AVX-512 BF16 only; elsewhere they are widened first,
    at 0.7 to 0.9 of the speed of fp32.
    """
    return ("int8", "bf16", "fp32") if instruction_set == "bf16" else ("int8", "fp32")


@torch.inference_mode()
def _probe(model: Pretrained) -> Tensor:
    """The recurrent layers (L - 1, B * T, H) of sentences of random words."""
    rng = random.Random(0)  # noqa: S311
    words = _draw_words(model, rng)
    model.network.pack()
    vectors = model.network.tokens(*model.token_ids(words))  # <S> and </S> first
    rows = [[0, *(rng.randrange(2, len(vectors)) for _ in range(LENGTH)), 1] for _ in range(SENTENCES)]
    lengths = torch.full((SENTENCES,), LENGTH + 2, device="cpu")
    layers = model.network.run_stacks(vectors, torch.tensor(rows, device="cpu"), lengths).layers()
    return layers[1:].flatten(1, 2)


def _draw_words(model: Pretrained, rng: random.Random) -> list[str]:
    """Words that the model can read: of its vocabulary, or strings of its characters."""
    if model.vocab is not None:
        return [rng.choice(model.vocab.words) for _ in range(SENTENCES * LENGTH)]
    letters = "etaoinshrdlucmfwypvbgkjqxz"
    if isinstance(model.alphabet, CodepointAlphabet):
        letters = "".join(c for c in model.alphabet.characters if len(c) == 1) or letters
    return ["".join(rng.choices(letters, k=rng.randint(1, 10))) for _ in range(SENTENCES * LENGTH)]


def quantise_tensors(
    model: Pretrained, precision: str, *, tables: bool = False, progress: OnProgress = ignore_progress
) -> dict[str, Tensor]:
    """All tensors of `model` as a folder of that precision contains them; `tables`: these, too."""
    tensors = model.tensors()
    if precision == "fp32":
        return tensors
    large = [
        f"{path}.{name}" for path, m in model.network.quantisable_modules().items() for name in m.matrices()
    ]
    names = [*large, *(name for name in TABLES if tables and name in tensors)]
    rounded = ByteProgress(progress, f"rounding to {precision}", sum(tensors[name].nbytes for name in names))
    for name in names:
        rounded_bytes = tensors[name].nbytes
        tensors[name], scales = quantise(tensors[name], precision)
        rounded.add(rounded_bytes)
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
    """Remove the quantised weights from `tensors`, which keeps meta tensors of their shapes.

    Quantised tables are replaced by fp32.

    Returns:
        The quantised weights by module and name.

    """
    taken: dict[str, dict[str, QuantisedMatrix]] = {}
    for key in [key for key in tensors if _is_large(key) or key in TABLES]:
        if not _is_always_quantised(key) and tensors[key].dtype == torch.float32:
            continue
        module, _, name = key.rpartition(".")
        scales = tensors.pop(f"{key}.scales", None) if precision == "int8" else None
        weight = QuantisedMatrix(tensors[key], scales)
        _check(key, weight, precision, source)
        if key in TABLES:
            tensors[key] = weight.dequantise()
            continue
        taken.setdefault(module, {})[name] = weight
        tensors[key] = torch.empty_like(weight.values, dtype=torch.float32, device="meta")
    return taken


def _is_always_quantised(key: str) -> bool:
    """Whether a weight may not be fp32: tables may, and so may highways in the first folders of format 2."""
    return key not in TABLES and ".highways." not in key


def _is_large(key: str) -> bool:
    """Whether a tensor is one of the large weights, which may be quantised."""
    name = key.rpartition(".")[2]
    return (".cells." in key and name in RecurrentCell.MATRICES) or (
        ".highways." in key and name in Linear.MATRICES
    )


def _check(key: str, weight: QuantisedMatrix, precision: str, source: str) -> None:
    values, scales = weight
    if values.dtype != DTYPES[precision] or values.ndim != 2:
        raise FormatError(
            f"{source}: {key} is {values.dtype} {tuple(values.shape)}, but the config says {precision}. "
            "Are config and weights of the same model?"
        )
    if precision == "int8" and (
        scales is None or scales.dtype != torch.float32 or scales.shape != values.shape[:1]
    ):
        raise FormatError(
            f"{source}: {key}.scales must be {values.shape[0]} float32, one for each row of {key}."
        )
    numbers = values if scales is None else scales
    if not torch.isfinite(numbers.sum(dtype=torch.float32)) and not torch.isfinite(numbers).all():
        raise FormatError(f"{source}: {key} contains NaN or infinite weights. The model is broken.")
    if scales is not None and scales.numel() and float(scales.abs().max()) > LARGEST_SCALE:
        raise FormatError(f"{source}: {key}.scales are too large for weights. The model is broken.")


def attach_quantised(
    model: Pretrained, taken: Mapping[str, dict[str, QuantisedMatrix]], precision: str
) -> None:
    """Give the weights of `pop_quantised` to the modules of `model`."""
    modules = model.network.quantisable_modules()
    for path, weights in taken.items():
        modules[path].store_quantised(weights)
    model.network.precision = precision
