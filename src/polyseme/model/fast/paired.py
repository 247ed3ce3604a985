"""Both directions as one tensor, for training: the stacks of a biLM with a hand-written gradient.

    model.tokens  ->  model.fast.paired  ->  model.softmax, training

Axis 0 is the direction: 0 reads forward, 1 backward. Sentences are packed as in `model.recurrent`; both
directions of a batch have the same `sizes`, so each time step is one batched product for the two.

N packed tokens, B sentences, n sentences at a step, D outputs, M memory cells.
Autograd would build thousands of small nodes for an LSTM. With a hand-written backward pass, the gradient of
each weight is one product over all time steps. On the CPU it runs in C if the library is available, in fp32
or with bf16 products if the machine has them; in torch otherwise. GRU and RNN use autograd.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor

from polyseme.model.bilm import BiLM
from polyseme.model.dropout import draw_mask
from polyseme.model.fast.kernels import lstm
from polyseme.model.fast.kernels.dropout import SEEDS, drop_values
from polyseme.model.fast.kernels.training import LayerWeights, run_layer_in_c
from polyseme.model.fast.packed_lstm import fits_packed_lstm, run_packed_lstm
from polyseme.model.recurrent import RecurrentCell, RecurrentStack

sigmoid_backward = torch.ops.aten.sigmoid_backward.grad_input
tanh_backward = torch.ops.aten.tanh_backward.grad_input

PairState = list[tuple[Tensor, Tensor]]  # per layer: outputs (2, B, D) and memory (2, B, M)


Product = Callable[[Tensor, Tensor], Tensor]


class PairDropout(NamedTuple):
    """Dropout in training; off by default."""

    values: float = 0.0  # share of each layer's input and of the top, as published
    variational: bool = False  # drop the same values at all time steps of a sentence
    weights: float = 0.0  # share of the recurrent weights


def zero_pair_state(network: BiLM, batch: int) -> PairState:
    """Zero state for `batch` sentences."""
    both = zip(network.forward_stack.zero_state(batch), network.backward_stack.zero_state(batch), strict=True)
    return [(torch.stack([f[0], b[0]]), torch.stack([f[1], b[1]])) for f, b in both]


def run_stacks_paired(
    network: BiLM, x: Tensor, sizes: list[int], state: PairState, dropout: PairDropout
) -> tuple[Tensor, PairState]:
    """Token vectors (2, N, D), in the order of each direction, to the top layer (2, N, D) and the state.

    Dropout as published: on the input of each layer, so that the residual adds it too, and on the top layer.
    """
    stacks: tuple[RecurrentStack, RecurrentStack] = (network.forward_stack, network.backward_stack)
    final: PairState = []
    for number, before in enumerate(state):
        x = apply_dropout(x, sizes, dropout)
        pair = (stacks[0].cells[number], stacks[1].cells[number])
        output, after = run_layer_paired(pair, x, sizes, before, dropout.weights)  # type: ignore[arg-type]
        x = x + output if stacks[0].residual and number else output
        final.append(after)
    return apply_dropout(x, sizes, dropout), final


def apply_dropout(x: Tensor, sizes: list[int], dropout: PairDropout) -> Tensor:
    """Drop values of packed (2, N, D); variational: one mask (2, B, D) for all time steps."""
    if not dropout.values:
        return x
    if not dropout.variational and x.device.type == "cpu":
        return drop_values(x, dropout.values, torch.randint(SEEDS, (len(x),)).tolist())
    if not dropout.variational:
        return x * draw_mask(x.shape, dropout.values, x)
    mask = draw_mask((len(x), sizes[0], x.shape[2]), dropout.values, x)
    if sizes[-1] == sizes[0]:
        return (x.view(len(x), len(sizes), sizes[0], -1) * mask[:, None]).view_as(x)
    return x * torch.cat([mask[:, :n] for n in sizes], dim=1)


def run_layer_paired(
    pair: Sequence[RecurrentCell],
    x: Tensor,
    sizes: list[int],
    state: tuple[Tensor, Tensor],
    weight_drop: float = 0.0,
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Run one layer of both directions: packed (2, N, inputs) to packed outputs (2, N, D) and the state.

    A layer with one direction is a pair of one cell; axis 0 has size 1.
    """
    if pair[0].kind != "lstm":
        return _join_directions(
            [cell(x[d], sizes, (state[0][d], state[1][d])) for d, cell in enumerate(pair)]
        )
    if torch.is_grad_enabled():
        for cell in pair:
            cell.unpack()  # the weights are about to change
    hiddens: list[Tensor] = [cell.hidden_weight for cell in pair]
    if weight_drop:
        hiddens = list(F.dropout(torch.stack(hiddens), weight_drop))
    clips = (pair[0].cell_clip, pair[0].output_clip)
    autocast = torch.is_autocast_enabled(x.device.type)
    dtype = torch.get_autocast_dtype(x.device.type) if autocast else torch.float32
    runs_in_c = dtype == torch.float32 or (dtype == torch.bfloat16 and lstm.multiplies_bf16())
    if runs_in_c and lstm.is_supported(x.float(), hiddens[0], *state):
        weights = [
            LayerWeights(cell.input_weight, cell.gate_bias(), hidden, cell.projection)
            for cell, hidden in zip(pair, hiddens, strict=True)
        ]
        return run_layer_in_c(x.float(), state, weights, sizes, clips, dtype)
    if fits_packed_lstm(x.device, pair[0].cells, pair[0].outputs, clips, pair[0].projection is not None):
        runs = [
            run_packed_lstm(
                x[d],
                sizes,
                (state[0][d], state[1][d]),
                cell.input_weight,
                hidden,
                cell.gate_bias(),
                cell.projection,
            )
            for d, (cell, hidden) in enumerate(zip(pair, hiddens, strict=True))
        ]
        return _join_directions(runs)
    hidden = torch.stack(hiddens)
    weight = torch.stack([cell.input_weight for cell in pair])
    bias = torch.stack([cell.gate_bias() for cell in pair])[:, None]
    projections: list[Tensor] = [cell.projection for cell in pair if cell.projection is not None]
    projection = torch.stack(projections) if projections else None
    z = torch.baddbmm(bias, x, weight.transpose(1, 2)).float()
    with torch.autocast(z.device.type, enabled=False):
        product = _multiply_bf16 if autocast else torch.bmm
        output, h, c = _PairedLstm.apply(z, hidden, projection, *state, sizes, clips, product)  # type: ignore[no-untyped-call]
    return output, (h, c)


def _join_directions(
    runs: list[tuple[Tensor, tuple[Tensor, Tensor]]],
) -> tuple[Tensor, tuple[Tensor, Tensor]]:
    """Stack the outputs and the states of each direction."""
    h, c = (torch.stack([state[part] for _, state in runs]) for part in range(2))
    return torch.stack([output for output, _ in runs]), (h, c)


class _PairedLstm(torch.autograd.Function):
    """The time loop of an LSTM layer in both directions; gates in the order i, f, o, candidate."""

    @staticmethod
    def forward(
        ctx: Any,
        z: Tensor,  # (2, N, 4M) the input's share of the gates
        hidden: Tensor,  # (2, 4M, D)
        projection: Tensor | None,  # (2, D, M)
        h: Tensor,  # (2, B, D)
        c: Tensor,  # (2, B, M)
        sizes: list[int],
        clips: tuple[float | None, float | None],
        product: Product,
    ) -> tuple[Tensor, Tensor, Tensor]:
        m = c.shape[2]
        recurrent, project = (
            hidden.transpose(1, 2),
            None if projection is None else projection.transpose(1, 2),
        )
        first, steps, outputs, ended = h, [], [], []
        for z_step in z.split(sizes, dim=1):
            n = z_step.shape[1]
            if n < h.shape[1]:  # the shortest sentences, which come last, have ended
                ended.append((h[:, n:], c[:, n:]))
                h, c = h[:, :n], c[:, :n]
            gates = product(h, recurrent).add_(z_step)  # (2, n, 4M)
            i, f, o = gates[..., : 3 * m].sigmoid_().split(m, dim=2)
            old, c = c, (f * c).addcmul_(i, gates[..., 3 * m :].tanh_())
            _clip(c, clips[0])
            activated = torch.tanh(c)
            raw = o * activated
            h = raw if project is None else _clip(product(raw, project), clips[1])
            outputs.append(h)
            steps.append((gates, old, c, activated, raw))
        ended.append((h, c))
        ended.reverse()
        ctx.save_for_backward(hidden, projection)
        ctx.steps, ctx.outputs, ctx.first = steps, outputs, first
        ctx.clips, ctx.product = clips, product
        last_h, last_c = (torch.cat([pair[part] for pair in ended], dim=1) for part in range(2))
        return torch.cat(outputs, dim=1), last_h, last_c

    @staticmethod
    def backward(ctx: Any, d_outputs: Tensor, d_h: Tensor, d_c: Tensor) -> tuple[Any, ...]:
        hidden, projection = ctx.saved_tensors
        m, clips, product = d_c.shape[2], ctx.clips, ctx.product
        d_z = d_outputs.new_empty(len(d_outputs), d_outputs.shape[1], 4 * m)
        d_projected: list[Tensor] = []  # gradient of the projected outputs, last step first
        d_h, d_c = d_h.clone(), d_c.clone()
        stop = d_outputs.shape[1]
        for (gates, old, c, activated, _), output in zip(
            reversed(ctx.steps), reversed(ctx.outputs), strict=True
        ):
            n = gates.shape[1]
            rows = slice(stop - n, stop)
            stop -= n
            dh = d_h[:, :n] + d_outputs[:, rows]
            if projection is not None:
                if clips[1] is not None:
                    dh *= output.abs() < clips[1]
                d_projected.append(dh)
                dh = product(dh, projection)  # (2, n, M)
            i, f, o, g = gates.split(m, dim=2)
            dc = torch.ops.aten.tanh_backward(dh * o, activated).add_(d_c[:, :n])
            if clips[0] is not None:
                dc *= c.abs() < clips[0]
            step = torch.empty_like(gates)
            sigmoid_backward(dc * g, i, grad_input=step[..., :m])
            sigmoid_backward(dc * old, f, grad_input=step[..., m : 2 * m])
            sigmoid_backward(dh * activated, o, grad_input=step[..., 2 * m : 3 * m])
            tanh_backward(dc * i, g, grad_input=step[..., 3 * m :])
            d_z[:, rows] = step
            d_c[:, :n] = dc.mul_(f)
            d_h[:, :n] = product(step, hidden)
        before = torch.cat([ctx.first[:, : ctx.outputs[0].shape[1]], *_shift_outputs(ctx.outputs)], dim=1)
        d_hidden = product(d_z.transpose(1, 2), before)
        d_projection = None
        if d_projected:
            raws = torch.cat([raw for *_, raw in ctx.steps], dim=1)
            d_projection = product(torch.cat(d_projected[::-1], dim=1).transpose(1, 2), raws)
        return d_z, d_hidden, d_projection, d_h, d_c, None, None, None


def _clip(values: Tensor, limit: float | None) -> Tensor:
    """Clip to ±limit, in place."""
    return values if limit is None else values.clamp_(-limit, limit)


def _multiply_bf16(a: Tensor, b: Tensor) -> Tensor:
    """A batched product in bf16; gates, memory and gradients stay fp32."""
    return torch.bmm(a.bfloat16(), b.bfloat16()).float()


def _shift_outputs(outputs: list[Tensor]) -> list[Tensor]:
    """The recurrent input of every step but the first: the output before, of sentences that continue."""
    return [before[:, : after.shape[1]] for before, after in pairwise(outputs)]
