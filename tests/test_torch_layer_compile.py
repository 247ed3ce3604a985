"""An ElmoLayer under torch.compile, torch.export, torch.func and torch.jit.

The compilers of these tests are "eager" and "aot_eager", which trace as inductor does and build no code.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import deepcopy

import numpy as np
import pytest
import torch
from torch import Tensor, nn
from torch._dynamo.utils import counters

from builders import SENTENCES, WORDS, random_model, small_config
from polyseme.errors import UsageError
from polyseme.torch_layer import ElmoLayer, frozen_layers

BATCHES = 12


class CompiledTagger(nn.Module):
    def __init__(self, **options) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.elmo = ElmoLayer(random_model(small_config()), **options)
        self.output = nn.Linear(8, 3)

    def forward(self, batch: Tensor | list[list[str]]) -> Tensor:
        vectors, mask = self.elmo(batch)
        return self.output(vectors[0]) * mask[..., None]


@pytest.fixture(autouse=True)
def fresh_compiler() -> Iterator[None]:
    torch._dynamo.reset()
    counters.clear()
    yield
    torch._dynamo.reset()


def random_batches() -> Iterator[list[list[str]]]:
    """Batches of 2 to 5 sentences of 2 to 11 tokens; none is of size 1, for which compilers specialise."""
    rng = np.random.default_rng(0)
    for _ in range(BATCHES):
        yield [list(rng.choice(WORDS, rng.integers(2, 12))) for _ in range(rng.integers(2, 6))]


@pytest.mark.parametrize("training", [False, True])
def test_character_ids_compile_into_one_graph_for_all_lengths(training):
    tagger = CompiledTagger(dropout=0.0).train(training)
    compiled = torch.compile(tagger, backend="aot_eager", fullgraph=True)
    for sentences in random_batches():
        ids = tagger.elmo.batch_to_ids(sentences)
        torch.testing.assert_close(compiled(ids), tagger(ids))
    assert counters["stats"]["unique_graphs"] <= 2  # the first lengths, then all others


def test_a_compiled_network_trains_its_mix(fresh_compiler):
    plain, tagger = CompiledTagger(dropout=0.0), CompiledTagger(dropout=0.0)
    compiled = torch.compile(tagger, backend="aot_eager", fullgraph=True)
    ids = tagger.elmo.batch_to_ids(SENTENCES)
    for network in (plain, compiled):
        network(ids).square().sum().backward()
    torch.testing.assert_close(tagger.elmo.mixes[0].weights.grad, plain.elmo.mixes[0].weights.grad)
    assert tagger.elmo.mixes[0].weights.grad.any()


def test_dropout_is_compiled_too():
    tagger = CompiledTagger(dropout=0.5).train()
    compiled = torch.compile(tagger.elmo, backend="aot_eager", fullgraph=True)
    ids = tagger.elmo.batch_to_ids([["the", "bank", "failed"]] * 40)
    (vectors,), _ = compiled(ids)
    assert 0.4 < (vectors == 0).float().mean() < 0.6


@pytest.mark.filterwarnings("ignore:The .grad attribute of a Tensor")  # raised by dynamo at a graph break
@pytest.mark.parametrize("options", [{"fine_tune": True}, {"stateful": True}], ids=str)
def test_layers_that_cannot_be_compiled_run_outside_the_graph_without_recompilation(options):
    tagger, plain = (
        CompiledTagger(dropout=0.0, **options).eval(),
        CompiledTagger(dropout=0.0, **options).eval(),
    )
    compiled = torch.compile(tagger, backend="eager")
    for sentences in random_batches():
        ids = tagger.elmo.batch_to_ids(sentences)
        torch.testing.assert_close(compiled(ids), plain(ids))
    assert counters["stats"]["unique_graphs"] <= 4
    assert not counters["recompile_limit"]


def test_token_lists_run_uncompiled_without_recompilation():
    tagger = CompiledTagger(dropout=0.0)
    compiled = torch.compile(tagger, backend="eager")
    for sentences in random_batches():
        torch.testing.assert_close(compiled(sentences), tagger(sentences))
    assert counters["frames"]["total"] <= 4
    assert not counters["recompile_limit"]


def test_an_exported_network_takes_other_lengths():
    tagger = CompiledTagger().eval()
    batch, tokens = torch.export.Dim("batch"), torch.export.Dim("tokens")
    ids = tagger.elmo.batch_to_ids(SENTENCES)
    exported = torch.export.export(tagger, (ids,), dynamic_shapes=({0: batch, 1: tokens},))
    assert "frozen_layers" in exported.graph_module.code
    for sentences in random_batches():
        ids = tagger.elmo.batch_to_ids(sentences)
        torch.testing.assert_close(exported.module()(ids), tagger(ids))


@pytest.mark.parametrize("options", [{"fine_tune": True}, {"stateful": True}, {}], ids=str)
def test_what_cannot_be_exported_is_refused(options):
    tagger = CompiledTagger(**options).eval()
    batch = tagger.elmo.batch_to_ids(SENTENCES) if options else SENTENCES
    with pytest.raises(UsageError, match="Only a frozen ElmoLayer without state can be exported, with char"):
        torch.export.export(tagger, (batch,))


def call_tagger(
    tagger: CompiledTagger, weights: dict[str, Tensor], batch: Tensor | list[list[str]]
) -> Tensor:
    return torch.func.functional_call(tagger, weights, (batch,))


@pytest.mark.parametrize("as_ids", [False, True])
def test_transforms_of_torch_func_go_through_a_frozen_layer(as_ids):
    tagger = CompiledTagger(dropout=0.0)
    weights = {name: weight for name, weight in tagger.named_parameters() if weight.requires_grad}
    batch = tagger.elmo.batch_to_ids(SENTENCES) if as_ids else SENTENCES
    gradients = torch.func.grad(lambda w: call_tagger(tagger, w, batch).sum())(weights)
    tagger(batch).sum().backward()
    assert set(gradients) == set(weights)
    for name, weight in weights.items():
        torch.testing.assert_close(gradients[name], weight.grad)
    scales = torch.tensor([0.5, 2.0])
    outputs = torch.func.vmap(lambda gamma: call_tagger(tagger, {"elmo.mixes.0.gamma": gamma}, batch))(scales)
    for scale, output in zip(scales, outputs, strict=True):
        torch.testing.assert_close(output, call_tagger(tagger, {"elmo.mixes.0.gamma": scale}, batch))


@pytest.mark.filterwarnings("ignore:There is a performance drop")
def test_each_sentence_of_a_batch_has_its_own_gradients():
    tagger = CompiledTagger(dropout=0.0)
    weights = {name: weight for name, weight in tagger.named_parameters() if weight.requires_grad}
    ids = tagger.elmo.batch_to_ids(SENTENCES)
    find_gradients = torch.func.grad(lambda w, row: call_tagger(tagger, w, row[None]).sum())
    each = torch.func.vmap(find_gradients, in_dims=(None, 0))(weights, ids)
    for row in range(len(SENTENCES)):
        for name, gradient in find_gradients(weights, ids[row]).items():
            torch.testing.assert_close(each[name][row], gradient)


def test_transforms_of_a_fine_tuned_layer_are_refused():
    tagger = CompiledTagger(fine_tune=True)
    with pytest.raises(UsageError, match=r"torch\.func works with a frozen ElmoLayer without state"):
        torch.func.grad(lambda w: call_tagger(tagger, w, SENTENCES).sum())(dict(tagger.named_parameters()))


def test_copies_have_separate_operators():
    layer = ElmoLayer(random_model(small_config()), fine_tune=False).eval()
    copied = deepcopy(layer)
    assert copied._key != layer._key
    ids = layer.batch_to_ids(SENTENCES)
    torch.testing.assert_close(
        frozen_layers(ids, None, None, copied._key)[0], frozen_layers(ids, None, None, layer._key)[0]
    )


def test_the_fake_operator_has_the_shapes_of_the_real_one():
    layer = ElmoLayer(random_model(small_config())).eval()
    ids = layer.batch_to_ids(SENTENCES)
    torch.library.opcheck(frozen_layers, (ids, None, None, layer._key))
    torch.library.opcheck(frozen_layers, (*layer._read_tokens(SENTENCES), layer._key))


def test_the_operator_of_a_deleted_layer_raises():
    with pytest.raises(UsageError, match="not in this process: build the layer and export it again"):
        frozen_layers(torch.ones(1, 2, 12, dtype=torch.long), None, None, -1)


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # torch deprecates scripts
def test_a_layer_refuses_to_be_scripted_or_traced_in_a_network():
    tagger = CompiledTagger().eval()
    with pytest.raises(UsageError, match="ElmoLayer cannot be scripted"):
        torch.jit.script(tagger)
    with pytest.raises(UsageError, match="ElmoLayer cannot be traced"):
        torch.jit.trace(tagger, tagger.elmo.batch_to_ids(SENTENCES), check_trace=False)
