"""An encoder, and a decoder of two LSTMs with attention between them.

    tasks.nn.encoder, tasks.seq2seq.units  ->  tasks.seq2seq.network  ->  tasks.translate, tasks.summarise

The first LSTM of the decoder reads the units written so far and attends to the source by scaled dot products;
the second one reads its output beside what was attended to, so that it knows all earlier attention, as input
feeding would tell it. No input depends on an output of the same layer but through the LSTM, so in training
all steps of a layer are one call of the LSTM in C, over packed targets. A unit may also be copied: then the
probability is a mixture of the vocabulary and of the units of the source (See et al. 2017).

B sources, S source tokens, P source units, T target units, N target units without padding, K beams,
E values of an encoded token, D of the decoder, M of an embedding, V units.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from polyseme.model.dropout import Dropout
from polyseme.model.fast.kernels import lstm
from polyseme.model.fast.packing import PackedBatch, pack_batch
from polyseme.model.fast.paired import run_layer_paired
from polyseme.model.recurrent import OneDnnWeights, RecurrentCell, State
from polyseme.tasks.examples import TokenizedText
from polyseme.tasks.nn.encoder import TokenStack
from polyseme.tasks.nn.featurizer import Featurizer, pad_rows
from polyseme.tasks.nn.pooling import LOW, mean
from polyseme.tasks.seq2seq.beam_search import BeamLimits, search_beams
from polyseme.tasks.seq2seq.example import TextPair, WrittenText
from polyseme.tasks.seq2seq.settings import DecoderSettings
from polyseme.tasks.seq2seq.units import END, START, UNKNOWN, TextUnits, mark_tokens
from polyseme.tasks.settings import EncoderSettings

PADDING = -100  # the target of padding, and the unit of padding of sources
LEAST = 1e-9  # probability, for the logarithm
TORCH_STEP = OneDnnWeights(None, None)


class SourceUnits(NamedTuple):
    """The units of the sources, to copy from."""

    ids: Tensor  # (B, P), PADDING behind the end
    keys: Tensor  # (B, P, D)


@dataclass(frozen=True)
class EncodedSources:
    """Sources as the decoder attends to them."""

    values: Tensor  # (B, S, E)
    keys: Tensor  # (B, S, D)
    mask: Tensor  # (B, S)
    units: SourceUnits | None

    def select(self, numbers: Tensor) -> EncodedSources:
        """Some of the sources."""
        units = self.units and SourceUnits(self.units.ids[numbers], self.units.keys[numbers])
        return EncodedSources(self.values[numbers], self.keys[numbers], self.mask[numbers], units)


class AttentionDecoder(nn.Module):
    """Units, one after the other, from encoded sources."""

    def __init__(self, encoded: int, units: int, settings: DecoderSettings) -> None:
        super().__init__()
        size, width = settings.size, settings.embedding
        scale = 1 / math.sqrt(width)
        self.embedding = nn.Parameter(torch.empty(units, width).uniform_(-scale, scale))
        self.bias = nn.Parameter(torch.zeros(units))
        self.first = RecurrentCell("lstm", width, size, size, project=False)
        self.second = RecurrentCell("lstm", size + encoded, size, size, project=False)
        self.start = nn.Linear(encoded, 4 * size)
        self.keys = nn.Linear(encoded, size, bias=False)
        self.readout = nn.Linear(size + encoded, width)
        self.dropout = Dropout(settings.dropout)
        self.attends, self._scale, self._input_scale = settings.attention == "dot", size**-0.5, 1 / scale
        if settings.pointer:
            self.unit_keys = nn.Linear(encoded + width, size, bias=False)
            self.pointer = nn.Linear(size, size)
            self.gate = nn.Linear(size + encoded, 1)
        self.copies = settings.pointer

    def encode(
        self, values: Tensor, mask: Tensor, units: tuple[Tensor, Tensor] | None
    ) -> tuple[EncodedSources, list[State]]:
        """Encoded tokens (B, S, E), and the ids and tokens of units (B, P) -> sources and the first state."""
        pooled = mean(values, mask)  # (B, E)
        if not self.attends:  # the same vector at every step
            values, mask = pooled[:, None], mask.new_ones(len(mask), 1)
        copied = None
        if units is not None:
            ids, tokens = units
            vectors = values.gather(1, tokens[..., None].expand(-1, -1, values.shape[2]))
            joined = torch.cat([vectors, self.embed(ids.clamp(min=0))], dim=2)
            copied = SourceUnits(ids, self.unit_keys(joined))
        h1, c1, h2, c2 = torch.tanh(self.start(pooled)).chunk(4, dim=1)
        return EncodedSources(values, self.keys(values), mask, copied), [(h1, c1), (h2, c2)]

    def embed(self, ids: Tensor) -> Tensor:
        """The vectors of units (…, M)."""
        return F.embedding(ids, self.embedding) * self._input_scale

    def attend(self, sources: EncodedSources, queries: Tensor) -> tuple[Tensor, Tensor]:
        """Queries (B, T, D) -> attention (B, T, S) and its weighted sum (B, T, E)."""
        scores = torch.bmm(queries, sources.keys.transpose(1, 2)) * self._scale
        attention = scores.masked_fill(~sources.mask[:, None], LOW).softmax(dim=2)
        return attention, torch.bmm(attention, sources.values)

    def point(self, sources: SourceUnits, queries: Tensor) -> Tensor:
        """Queries (B, T, D) -> the probability of copying each unit of the source (B, T, P)."""
        scores = torch.bmm(self.pointer(queries), sources.keys.transpose(1, 2)) * self._scale
        return scores.masked_fill((sources.ids < 0)[:, None], LOW).softmax(dim=2)  # type: ignore[no-any-return]

    def read_out(self, outputs: Tensor, context: Tensor) -> Tensor:
        """Outputs (N, D) and what was attended to (N, E) -> one value for each unit (N, V)."""
        hidden = torch.tanh(self.readout(torch.cat([outputs, context], dim=1)))
        return torch.addmm(self.bias, self.dropout(hidden), self.embedding.t())

    def run(
        self, sources: EncodedSources, state: list[State], inputs: Tensor, packing: PackedBatch
    ) -> tuple[Tensor, Tensor, Tensor]:
        """All steps at once: units before (B, T) -> outputs (N, D), contexts (N, E), attention (B, T, S)."""
        rows = packing.forward
        first = self._run_layer(
            self.first, self.dropout(self.embed(inputs).flatten(0, 1)[rows]), packing, state[0]
        )
        attention, context = self.attend(sources, unpack(first, rows, inputs.shape))
        contexts = context.flatten(0, 1)[rows]
        joined = self.dropout(torch.cat([first, contexts], dim=1))
        return self._run_layer(self.second, joined, packing, state[1]), contexts, attention

    def _run_layer(self, cell: RecurrentCell, x: Tensor, packing: PackedBatch, state: State) -> Tensor:
        first = state[0][packing.order][None], state[1][packing.order][None]
        return run_layer_paired([cell], x[None], packing.sizes, first)[0][0]


def unpack(packed: Tensor, rows: Tensor, shape: torch.Size) -> Tensor:
    """Packed (N, D) -> (B, T, D), zero behind the end of a target."""
    flat = packed.new_zeros(shape[0] * shape[1], packed.shape[1])
    return flat.index_copy(0, rows, packed).view(*shape, -1)


@dataclass(frozen=True)
class DecoderSteps:
    """The decoder over some sources, one step at a time: what `beam_search` searches with."""

    decoder: AttentionDecoder
    sources: EncodedSources

    def step(self, ids: Tensor, state: list[State]) -> tuple[Tensor, Tensor, list[State]]:
        """The units before (B * K,) -> log probabilities (B * K, V), attention (B * K, S), state."""
        decoder, sources = self.decoder, self.sources
        first = _step(decoder.first, decoder.embed(ids), state[0])
        queries = first[0].view(len(sources.mask), -1, first[0].shape[1])  # (B, K, D)
        attention, context = decoder.attend(sources, queries)
        contexts = context.flatten(0, 1)
        second = _step(decoder.second, torch.cat([first[0], contexts], dim=1), state[1])
        values = decoder.read_out(second[0], contexts)
        if sources.units is None:
            return values.log_softmax(dim=1), attention.flatten(0, 1), [first, second]
        gate = torch.sigmoid(decoder.gate(torch.cat([second[0], contexts], dim=1)))
        pointed = decoder.point(sources.units, second[0].view_as(queries))  # (B, K, P)
        shape = (len(queries), queries.shape[1], values.shape[1])
        ids_to_copy = sources.units.ids.clamp(min=0)[:, None].expand_as(pointed)
        copied = values.new_zeros(shape).scatter_add_(2, ids_to_copy, pointed).flatten(0, 1)
        mixed = gate * values.softmax(dim=1) + (1 - gate) * copied
        return mixed.clamp(min=LEAST).log(), attention.flatten(0, 1), [first, second]

    def select_sources(self, numbers: Tensor) -> DecoderSteps:
        """The decoder over some of the sources."""
        return replace(self, sources=self.sources.select(numbers))

    def select_rows(self, state: list[State], rows: Tensor) -> list[State]:
        """The state of some of the rows."""
        return [(output[rows], memory[rows]) for output, memory in state]


def _step(cell: RecurrentCell, x: Tensor, state: State) -> State:
    """One step of a layer; the state may be overwritten."""
    return cell.step(cell.project_inputs(x), state[0], state[1], TORCH_STEP)


class Seq2SeqNetwork(nn.Module):
    """The encoder and the decoder."""

    def __init__(
        self,
        featurizer: Featurizer,
        encoder: EncoderSettings,
        decoder: DecoderSettings,
        precision: str,
        units: TextUnits,
        max_units: int,
    ) -> None:
        super().__init__()
        self.stack = TokenStack(featurizer, encoder)
        self.decoder = AttentionDecoder(self.stack.size, len(units), decoder)
        self._settings, self._units, self._precision = decoder, units, precision
        self._limits = BeamLimits(
            decoder.beam, max_units, decoder.length_penalty, decoder.coverage_penalty, decoder.no_repeat
        )
        self._target_ids: dict[str, list[int]] = {}  # of the training targets, which every epoch reads

    @property
    def featurizer(self) -> Featurizer:
        """The submodule that turns tokens into vectors."""
        return self.stack.featurizer

    def encode(self, batch: Sequence[TextPair]) -> tuple[EncodedSources, list[State]]:
        """The sources of a batch, and the first state of the decoder."""
        features = self.stack.read([example.source.tokens for example in batch])
        values = self.stack(features)
        units = None
        if self.decoder.copies:
            units = self._read_units([example.source for example in batch], values.device)
        return self.decoder.encode(values, features.mask, units)

    def _read_units(self, sources: Sequence[TokenizedText], device: torch.device) -> tuple[Tensor, Tensor]:
        """The ids of the units of sources (B, P), and the position of the token of each."""
        pairs = [
            [
                (self._units.find(unit), position)
                for position, word in enumerate(mark_tokens(source))
                for unit in self._units.split(word)
            ]
            for source in sources
        ]
        width = max(map(len, pairs))
        ids = pad_rows([[number for number, _ in row] for row in pairs], width, PADDING)
        return ids.to(device), pad_rows([[position for _, position in row] for row in pairs], width).to(
            device
        )

    def _encode_target(self, text: str) -> list[int]:
        if text not in self._target_ids:
            ids = self._units.encode(text)
            # A target that is cut off has no end.
            self._target_ids[text] = (
                [*ids, END] if len(ids) < self._settings.max_units else ids[: self._settings.max_units]
            )
        return self._target_ids[text]

    def loss(self, batch: Sequence[TextPair]) -> tuple[Tensor, int]:
        """Smoothed cross entropy per target unit, and the loss of attending twice."""
        device = self.decoder.bias.device.type
        is_fast = device == "cpu" and lstm.multiplies_bf16()
        low = self._precision == "bf16" or (self._precision == "auto" and is_fast)
        with torch.autocast(device, torch.bfloat16, enabled=low):
            return self._compute_loss(batch), len(batch)

    def _compute_loss(self, batch: Sequence[TextPair]) -> Tensor:
        decoder, settings = self.decoder, self._settings
        sources, state = self.encode(batch)
        device = sources.values.device
        rows = [self._encode_target(example.target or "") for example in batch]
        width = max(map(len, rows))
        targets = pad_rows(rows, width, PADDING).to(device)
        inputs = torch.cat([targets.new_full((len(rows), 1), START), targets[:, :-1].clamp(min=0)], dim=1)
        packing = pack_batch(torch.tensor([len(row) for row in rows]), width).to(device)
        outputs, contexts, attention = decoder.run(sources, state, inputs, packing)
        wanted = targets.flatten()[packing.forward]  # (N,)
        values = decoder.read_out(outputs, contexts)  # (N, V)
        smoothing = settings.label_smoothing
        if sources.units is None:
            loss = F.cross_entropy(values, wanted, label_smoothing=smoothing)
        else:
            attention = decoder.point(sources.units, unpack(outputs, packing.forward, inputs.shape))
            loss = self._copy_loss(values, wanted, outputs, contexts, attention, sources.units, packing)
        if settings.coverage and decoder.attends:
            real = (targets >= 0)[..., None] * attention
            before = real.cumsum(dim=1) - real
            loss = loss + settings.coverage * torch.minimum(real, before).sum() / len(wanted)
        return loss

    def _copy_loss(
        self,
        values: Tensor,
        wanted: Tensor,
        outputs: Tensor,
        contexts: Tensor,
        pointed: Tensor,
        units: SourceUnits,
        packing: PackedBatch,
    ) -> Tensor:
        """The cross entropy of a mixture: units of the vocabulary, units of the source."""
        gate = torch.sigmoid(self.decoder.gate(torch.cat([outputs, contexts], dim=1)))[:, 0]
        logs = values.log_softmax(dim=1)
        written = logs.gather(1, wanted[:, None])[:, 0].exp()
        owners = packing.forward // pointed.shape[1]  # the source of each target unit (N,)
        matches = (units.ids[owners] == wanted[:, None]) & (wanted != UNKNOWN)[:, None]  # (N, P)
        copied = (pointed.flatten(0, 1)[packing.forward] * matches).sum(dim=1)
        likelihood = (gate * written + (1 - gate) * copied).clamp(min=LEAST).log()
        smoothing = self._settings.label_smoothing
        return -((1 - smoothing) * likelihood.mean() + smoothing * logs.mean())

    def decode(self, batch: Sequence[TextPair]) -> list[WrittenText]:
        """The best text of each source."""
        sources, state = self.encode(batch)
        beams = search_beams(DecoderSteps(self.decoder, sources), state, sources.mask, self._limits)
        predictions = []
        for example, hypotheses in zip(batch, beams, strict=True):
            texts = list(dict.fromkeys(self._units.decode(hypothesis.ids) for hypothesis in hypotheses))
            best = hypotheses[0]
            predictions.append(WrittenText(example.source, texts[0], best.log_probability, tuple(texts[1:])))
        return predictions
