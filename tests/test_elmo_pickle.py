"""Elmo and ElmoLayer in pickles, copies, worker processes and scikit-learn pipelines.

A loaded model is pickled as its path; a model that was changed or built in memory, with its weights.
"""

from __future__ import annotations

import copy
import pickle
import subprocess
import sys
from pathlib import Path

import joblib
import numpy as np
import pytest
import torch

import polyseme
from builders import ROUNDING, SENTENCES, random_model, small_config
from polyseme.elmo import Elmo, load
from polyseme.errors import FormatError
from polyseme.formats.models.save import save_pretrained
from polyseme.torch_layer import ElmoLayer

SECONDS = 180  # the limit for one program


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    save_pretrained(random_model(small_config(), softmax=True), tmp_path / "model")
    return tmp_path / "model"


def assert_same(elmo: Elmo, expected: Elmo) -> None:
    for vectors, expected_vectors in zip(elmo.embed(SENTENCES), expected.embed(SENTENCES), strict=True):
        np.testing.assert_array_equal(vectors, expected_vectors)


def test_a_loaded_model_pickles_as_its_path(folder, monkeypatch):
    monkeypatch.chdir(folder.parent)
    elmo = load("model", batch_tokens=77, cache_bytes=1 << 20)
    elmo.embed(SENTENCES)
    pickled = pickle.dumps(elmo)
    assert len(pickled) < 1000
    monkeypatch.chdir("/")
    unpickled = pickle.loads(pickled)
    assert (unpickled.batch_tokens, unpickled.cache.max_bytes) == (77, 1 << 20)
    assert len(unpickled.cache) == 0
    assert_same(unpickled, elmo)


@pytest.mark.parametrize("precision", ["fp32", "bf16", "int8"])
@pytest.mark.parametrize("loaded", [True, False])
def test_a_pickle_keeps_the_precision(folder, precision, loaded):
    elmo = load(folder, precision=precision)
    if not loaded:
        elmo = Elmo(copy.deepcopy(elmo.model))
    expected = elmo.embed(SENTENCES)
    unpickled = pickle.loads(pickle.dumps(elmo))
    assert unpickled.model.network.precision == precision
    assert_same(unpickled, elmo)
    np.testing.assert_array_equal(unpickled.embed(SENTENCES)[0], expected[0])


def test_a_bundled_model_pickles_as_its_name():
    elmo = load("en-classic")
    pickled = pickle.dumps(elmo)
    assert b"en-classic" in pickled
    assert len(pickled) < 1000
    assert_same(pickle.loads(pickled), elmo)


def test_a_model_that_was_replaced_on_disk_is_refused(folder):
    pickled = pickle.dumps(load(folder))
    save_pretrained(random_model(small_config(), seed=1), folder, force=True)
    with pytest.raises(FormatError, match="not the model that was pickled"):
        pickle.loads(pickled)


def test_a_model_in_memory_pickles_by_value():
    elmo = Elmo(random_model(small_config(), softmax=True))
    assert_same(pickle.loads(pickle.dumps(elmo)), elmo)
    unpickled = pickle.loads(pickle.dumps(elmo))
    np.testing.assert_array_equal(unpickled.model.softmax.rows().detach(), elmo.model.softmax.rows().detach())


def test_a_loaded_model_that_was_changed_pickles_by_value(folder):
    elmo = load(folder)
    before = elmo.embed(SENTENCES)
    with torch.no_grad():
        elmo.model.network.forward_stack.cells[0].bias.add_(1.0)
    unpickled = pickle.loads(pickle.dumps(elmo))
    assert_same(unpickled, elmo)
    assert np.abs(unpickled.embed(SENTENCES)[0] - before[0]).max() > 1e-3


def test_a_tied_softmax_stays_tied_in_a_pickle():
    config = small_config(chars=None, words={"dim": 4})
    model = random_model(config)
    assert model.vocab is not None
    from polyseme.model.softmax import Softmax

    tied = Elmo(copy.copy(model))
    object.__setattr__(tied.model, "softmax", Softmax(len(model.vocab), 4, tied=model.network.tokens.words))
    for copied in (pickle.loads(pickle.dumps(tied)), copy.deepcopy(tied)):
        rows = copied.model.network.tokens.words.weight
        assert copied.model.softmax.rows().data_ptr() == rows[1:].data_ptr()
        assert rows.data_ptr() != model.network.tokens.words.weight.data_ptr()


def test_a_copy_shares_the_weights_and_a_deep_copy_does_not(folder):
    elmo = load(folder)
    expected = elmo.embed(SENTENCES)
    shallow, deep = copy.copy(elmo), copy.deepcopy(elmo)
    assert shallow.model is elmo.model
    assert shallow.cache is not elmo.cache
    with torch.no_grad():
        deep.model.network.forward_stack.cells[0].bias.add_(1.0)
    np.testing.assert_array_equal(elmo.embed(SENTENCES)[0], expected[0])
    np.testing.assert_array_equal(shallow.embed(SENTENCES)[0], expected[0])
    assert np.abs(deep.embed(SENTENCES)[0] - expected[0]).max() > 1e-3


def test_a_pickle_keeps_the_carried_state(folder):
    elmo = load(folder)
    elmo.embed(SENTENCES, stateful=True)
    unpickled = pickle.loads(pickle.dumps(elmo))
    for vectors, expected in zip(
        unpickled.embed(SENTENCES, stateful=True), elmo.embed(SENTENCES, stateful=True), strict=True
    ):
        np.testing.assert_array_equal(vectors, expected)


@pytest.mark.parametrize("fine_tune", [False, True])
def test_a_layer_is_copied_and_pickled_with_its_mixes(folder, fine_tune):
    layer = ElmoLayer(load(folder), fine_tune=fine_tune, mixes=2).eval()
    with torch.no_grad():
        layer.mixes[1].gamma.fill_(2.5)
    expected = layer(SENTENCES)
    for copied in (pickle.loads(pickle.dumps(layer)), copy.deepcopy(layer), copy.copy(layer)):
        assert list(copied.state_dict()) == list(layer.state_dict())
        for vectors, expected_vectors in zip(copied(SENTENCES).vectors, expected.vectors, strict=True):
            torch.testing.assert_close(vectors, expected_vectors, atol=0, rtol=0)
    trained = {name for name, weight in layer.named_parameters() if weight.requires_grad}
    unpickled = pickle.loads(pickle.dumps(layer))
    assert {name for name, weight in unpickled.named_parameters() if weight.requires_grad} == trained


def test_a_frozen_layer_of_a_loaded_model_pickles_as_a_path(folder):
    assert len(pickle.dumps(ElmoLayer(load(folder)))) < 10_000


def test_joblib_dumps_and_loads_a_model(folder, tmp_path):
    elmo = load(folder)
    joblib.dump(elmo, tmp_path / "elmo.joblib")
    assert_same(joblib.load(tmp_path / "elmo.joblib"), elmo)


def run_python(code: str, *arguments: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments], capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.strip()


def test_spawned_workers_get_the_model(folder, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        """
import multiprocessing, sys
import numpy as np
import polyseme

def main():
    elmo = polyseme.load(sys.argv[1])
    batches = [["the bank failed"], ["a river bank"]]
    with multiprocessing.get_context("spawn").Pool(2) as pool:
        results = pool.map(elmo.embed, batches)
    errors = [abs(r[0] - elmo.embed(b)[0]).max() for r, b in zip(results, batches)]
    print(max(errors) <= float(sys.argv[2]))

if __name__ == "__main__":
    main()
"""
    )
    code = f"import runpy; runpy.run_path({str(program)!r}, run_name='__main__')"
    assert run_python(code, str(folder), str(ROUNDING)) == "True"


def test_a_grid_search_in_two_processes_shares_a_model(folder, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        """
import sys, warnings
warnings.simplefilter("ignore")
import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin, clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline, make_union
from sklearn.preprocessing import FunctionTransformer
import polyseme

class Embed(TransformerMixin, BaseEstimator):
    def __init__(self, elmo, layer="mean"):
        self.elmo, self.layer = elmo, layer

    def fit(self, texts, labels=None):
        return self

    def transform(self, texts):
        return self.elmo.embed(texts, layer=self.layer, pool="mean")

elmo = polyseme.load(sys.argv[1])
assert clone(Embed(elmo)).elmo is elmo
both = make_union(Embed(elmo), FunctionTransformer(elmo.embed, kw_args={"pool": "max"}))
pipeline = make_pipeline(both, LogisticRegression())
grid = {"featureunion__embed__layer": ["top", "mean"]}
search = GridSearchCV(pipeline, grid, n_jobs=2, cv=2, error_score="raise")
search.fit(np.array(["the bank", "river water"] * 6), [0, 1] * 6)
print(search.best_score_)
"""
    )
    done = subprocess.run(
        [sys.executable, str(program), str(folder)], capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr
    assert float(done.stdout) == 1.0


def test_a_fingerprint_is_computed_once_and_follows_the_weights(folder, monkeypatch):
    model = load(folder).model
    first = model.fingerprint()
    monkeypatch.setattr(type(model), "tensors", lambda self: pytest.fail("hashed again"))
    assert model.fingerprint() == first
    monkeypatch.undo()
    with torch.no_grad():
        model.network.forward_stack.cells[0].bias.add_(1.0)
    assert model.fingerprint() != first


def test_the_public_name_pickles_too(folder):
    assert isinstance(pickle.loads(pickle.dumps(polyseme.load(folder))), polyseme.Elmo)
