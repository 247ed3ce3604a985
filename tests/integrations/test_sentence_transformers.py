"""ELMo in sentence-transformers: vectors, saving, encode's arguments, training; in BERTopic and MTEB."""

from __future__ import annotations

import csv
import json
import pickle
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

import polyseme
from polyseme.errors import MissingExtraError

pytestmark = [
    pytest.mark.integrations,
    pytest.mark.filterwarnings("ignore"),  # of the libraries
]
TOPICS = Path(__file__).parents[2] / "examples" / "data" / "topics.csv"
ENGLISH = ["He sat on the bank of the river.", "The bank lent him the money.", "Why?"]
CHINESE = ["他在银行工作。", "河水上涨了，大家都很担心。", "为什么？"]


def make_model(name: Any = "en-classic", **options: Any) -> Any:
    from sentence_transformers import SentenceTransformer

    from polyseme.integrations.sentence_transformers import ElmoModule

    return SentenceTransformer(modules=[ElmoModule(name, **options)], device="cpu")


@pytest.mark.parametrize(("name", "texts"), [("en", ENGLISH), ("zh", CHINESE)])
@pytest.mark.parametrize(
    "options",
    [{"pool": "mean"}, {"pool": "sentence"}, {"pool": "concat", "layer": "concat"}, {"direction": "forward"}],
)
def test_vectors_equal_those_of_embed(name, texts, options):
    model = make_model(name, **options)
    expected = polyseme.load(name).embed(texts, **({"pool": "mean"} | options))
    vectors = model.encode(texts)
    np.testing.assert_allclose(vectors, expected, atol=1e-6)
    assert vectors.dtype == np.float32
    assert model.get_embedding_dimension() == expected.shape[1]
    np.testing.assert_allclose(model.encode(texts[0]), expected[0], atol=1e-6)


@pytest.mark.parametrize(("name", "texts"), [("en", ENGLISH), ("zh", CHINESE)])
def test_a_pooling_module_pools_the_vectors_of_tokens(name, texts):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling

    from polyseme.integrations.sentence_transformers import ElmoModule

    elmo = polyseme.load(name)
    for mode in ("mean", "max"):
        model = SentenceTransformer(modules=[ElmoModule(elmo, pool=None), Pooling(384, mode)], device="cpu")
        np.testing.assert_allclose(model.encode(texts), elmo.embed(texts, pool=mode), atol=1e-6)
    tokens = model.encode(texts, output_value="token_embeddings")
    for vectors, expected in zip(tokens, elmo.embed(texts), strict=True):
        np.testing.assert_allclose(vectors, expected, atol=1e-6)


def test_the_arguments_of_encode_do_what_they_say():
    model = make_model()
    plain = model.encode(ENGLISH)
    normal = model.encode(ENGLISH, normalize_embeddings=True, batch_size=1)
    np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1, atol=1e-6)
    assert torch.is_tensor(model.encode(ENGLISH, convert_to_tensor=True))
    np.testing.assert_array_equal(model.encode(ENGLISH, truncate_dim=16), plain[:, :16])
    assert model.encode(ENGLISH, precision="int8").dtype == np.int8
    np.testing.assert_allclose(
        model.encode(ENGLISH, prompt="He said : "),
        model.encode([f"He said : {t}" for t in ENGLISH]),
        atol=1e-6,
    )
    assert model.encode([]).size == 0
    assert not model.encode([""]).any()
    np.testing.assert_allclose(np.diag(model.similarity(plain, plain)), 1, atol=1e-6)
    assert model.similarity_pairwise(plain, plain).shape == (3,)
    np.testing.assert_allclose(pickle.loads(pickle.dumps(model)).encode(ENGLISH), plain, atol=1e-6)


def test_two_processes_give_the_same_vectors(tmp_path):
    texts = [f"The bank number {n} failed." for n in range(40)]
    model = make_model()
    pool = model.start_multi_process_pool(["cpu", "cpu"])
    try:
        vectors = model.encode(texts, pool=pool, chunk_size=10)
    finally:
        model.stop_multi_process_pool(pool)
    np.testing.assert_allclose(vectors, model.encode(texts), atol=1e-6)


@pytest.mark.parametrize(("name", "texts"), [("en", ENGLISH), ("zh", CHINESE)])
def test_a_saved_model_is_loaded_without_trusting_remote_code(name, texts, tmp_path):
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Normalize

    from polyseme.integrations.sentence_transformers import ElmoModule, load_sentence_transformer

    weights = ([0.2, 0.3, 0.5], 2.0)
    modules: Any = [ElmoModule(name, pool="max", layer=weights), Normalize()]
    model = SentenceTransformer(
        modules=modules, prompts={"query": "find : "}, similarity_fn_name="dot", device="cpu"
    )
    expected = model.encode(texts)
    folder = tmp_path / "model"
    for _ in range(2):  # the second replaces the first
        model.save(str(folder))
        model = load_sentence_transformer(folder, device="cpu")
        np.testing.assert_allclose(model.encode(texts), expected, atol=1e-6)
    assert (model.prompts["query"], model.similarity_fn_name) == ("find : ", "dot")
    assert load_sentence_transformer(folder, device="cpu", truncate_dim=8).encode(texts).shape == (3, 8)
    trusted = SentenceTransformer(str(folder), trust_remote_code=True, device="cpu")
    np.testing.assert_allclose(trusted.encode(texts), expected, atol=1e-6)
    with pytest.raises(ValueError, match="trust_remote_code"):
        SentenceTransformer(str(folder))
    moved = folder.rename(tmp_path / "moved")  # the folder holds the whole model
    np.testing.assert_allclose(
        load_sentence_transformer(moved, device="cpu").encode(texts), expected, atol=1e-6
    )


def test_code_that_a_folder_names_is_not_imported(tmp_path):
    from polyseme.integrations.sentence_transformers import load_sentence_transformer

    make_model().save(str(tmp_path / "model"))
    path = tmp_path / "model" / "modules.json"
    entries = json.loads(path.read_text(encoding="utf-8"))
    for name in ("subprocess.Popen", "sentence_transformers.util.import_from_string"):
        path.write_text(json.dumps([*entries, entries[0] | {"idx": 1, "name": "1", "type": name}]))
        with pytest.raises(ValueError, match=f"its module '{name}' is neither of Polyseme nor"):
            load_sentence_transformer(tmp_path / "model")


def test_invalid_input_raises_the_errors_of_the_library(tmp_path):
    from polyseme.integrations.sentence_transformers import ElmoModule, load_sentence_transformer

    for options, message in (
        ({"pool": "average"}, "pool is 'average'"),
        ({"layer": "all"}, 'layer is "all"'),
        ({"layer": 9}, "layer is 9"),
        ({"model": 3}, "model is of type int"),
    ):
        with pytest.raises(ValueError, match=message):
            ElmoModule(**({"model": "en-classic"} | options))
    model = make_model()
    for texts in (["a", None], ["a", 3]):
        with pytest.raises((ValueError, TypeError)):
            model.encode(texts)
    with pytest.raises(ValueError, match="additional keyword arguments"):
        model.encode(ENGLISH, colour="red")
    with pytest.raises(FileNotFoundError, match=r"there is no modules\.json"):
        load_sentence_transformer(tmp_path)
    model.save(str(tmp_path / "model"))
    (tmp_path / "model" / "0_ElmoModule" / "elmo").rename(tmp_path / "elmo")
    with pytest.raises(FileNotFoundError, match="there is no ELMo model"):
        load_sentence_transformer(tmp_path / "model")


def test_a_layer_on_top_of_elmo_is_trained():
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.base.modules import Dense
    from sentence_transformers.sentence_transformer.losses import CosineSimilarityLoss

    from polyseme.integrations.sentence_transformers import ElmoModule

    torch.manual_seed(0)
    model = SentenceTransformer(modules=[ElmoModule("en-classic"), Dense(256, 16)], device="cpu")
    loss = CosineSimilarityLoss(model)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.01)
    losses = []
    for _ in range(30):
        features = [model.preprocess(ENGLISH), model.preprocess(ENGLISH[::-1])]
        value = loss(features, torch.tensor([0.0, 1.0, 0.0]))
        optimizer.zero_grad()
        value.backward()
        optimizer.step()
        losses.append(value.item())
    assert losses[-1] < losses[0] / 2


def read_topics() -> list[str]:
    with TOPICS.open(encoding="utf-8", newline="") as file:
        return [row["text"] for row in csv.DictReader(file)]


def test_bertopic_finds_topics():
    from bertopic import BERTopic
    from sklearn.cluster import KMeans
    from sklearn.decomposition import PCA

    texts = read_topics()
    topics = BERTopic(
        embedding_model=make_model("en", pool="sentence"),
        umap_model=PCA(5, random_state=0),
        hdbscan_model=KMeans(4, random_state=0),
    )
    numbers, _ = topics.fit_transform(texts)
    assert len(numbers) == len(texts)
    assert set(numbers) == {0, 1, 2, 3}
    (number,), _ = topics.transform(["The ship sank in the storm."])
    assert number in numbers
    found, similarities = topics.find_topics("a storm at sea", top_n=2)
    assert len(found) == 2
    assert similarities[0] >= similarities[1]


def test_mteb_scores_the_model():
    import mteb
    from datasets import Dataset, DatasetDict
    from mteb.abstasks.sts import AbsTaskSTS
    from mteb.abstasks.task_metadata import TaskMetadata

    pairs = [
        ("The bank failed.", "The bank went under.", 5.0),
        ("The bank failed.", "He swam in the sea.", 0.0),
        ("A ship sailed.", "A boat sailed.", 4.0),
        ("A ship sailed.", "They drank some tea at noon.", 1.0),
    ]

    class LocalPairs(AbsTaskSTS):
        metadata = TaskMetadata(
            name="LocalPairs",
            description="Four pairs of sentences.",
            dataset={"path": "local/pairs", "revision": "1"},
            type="STS",
            category="t2t",
            modalities=["text"],
            eval_splits=["test"],
            eval_langs=["eng-Latn"],
            main_score="cosine_spearman",
        )
        min_score, max_score = 0, 5

        def load_data(self, num_proc=None, **kwargs):
            first, second, scores = zip(*pairs, strict=True)
            rows = {"sentence1": first, "sentence2": second, "score": scores}
            self.dataset = DatasetDict({"test": Dataset.from_dict(rows)})
            self.data_loaded = True

    model = make_model("en", pool="sentence")
    results = mteb.evaluate(model, LocalPairs(), cache=None, co2_tracker=False, show_progress_bar=False)
    score = results.task_results[0].get_score()
    similarities = [float(model.similarity(*model.encode([one, two]))) for one, two, _ in pairs]
    from scipy.stats import spearmanr

    assert score == pytest.approx(spearmanr(similarities, [label for *_, label in pairs])[0])
    assert score > 0.5


def test_without_the_library_the_command_to_install_it_is_named(monkeypatch):
    import importlib

    monkeypatch.setitem(sys.modules, "sentence_transformers", None)
    monkeypatch.delitem(sys.modules, "polyseme.integrations.sentence_transformers", raising=False)
    with pytest.raises(MissingExtraError, match=r'pip install "polyseme\[sentence-transformers\]"'):
        importlib.import_module("polyseme.integrations.sentence_transformers")
