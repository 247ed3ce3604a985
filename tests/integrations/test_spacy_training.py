"""The architecture `polyseme.Tok2Vec.v1`: spaCy's own models learn from ELMo vectors, which are kept."""

from __future__ import annotations

import pickle
import random
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc
from spacy.training import Example, iob_to_biluo
from thinc.api import fix_random_seed

import polyseme
from builders import random_model, small_config
from polyseme.formats.models.save import save_pretrained
from polyseme.integrations.spacy.tok2vec import build_tok2vec

ROOT = Path(__file__).parents[2]
FIRST = ("Anna", "Peter", "Maria", "John", "Lucy", "Karl", "Emma", "Paul")
LAST = ("Smith", "Weber", "Rossi", "Novak", "Silva", "Brown")
CITIES = ("Paris", "Berlin", "Rome", "Vienna", "Madrid", "Oslo")
Tagged = list[tuple[str, str]]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    save_pretrained(random_model(small_config(segment="en")), tmp_path / "model")
    return tmp_path / "model"


def make_tagged(count: int, seed: int) -> list[Tagged]:
    """Sentences with names, as in CoNLL-2003."""
    rng = random.Random(seed)
    sentences = []
    for _ in range(count):
        first, last, city = rng.choice(FIRST), rng.choice(LAST), rng.choice(CITIES)
        pattern = rng.choice(
            (
                f"{first} {last} lives in {city} .",
                f"In {city} , {first} met a friend .",
                f"The train to {city} was late .",
            )
        )
        tags = {first: "B-PER", last: "I-PER", city: "B-LOC"}
        sentences.append([(word, tags.get(word, "O")) for word in pattern.split()])
    return sentences


def make_examples(nlp: Language, sentences: list[Tagged]) -> list[Example]:
    examples = []
    for sentence in sentences:
        words, tags = map(list, zip(*sentence, strict=True))
        labels = {
            "words": words,
            "entities": iob_to_biluo(tags),
            "tags": [tag[-3:] for tag in tags],
            "heads": [0] * len(words),
            "deps": ["ROOT", *["dep"] * (len(words) - 1)],
            "cats": {"travel": float("train" in words), "other": float("train" not in words)},
        }
        examples.append(Example.from_dict(Doc(nlp.vocab, words=words), labels))
    return examples


def make_tok2vec_config(model: Path, **options: Any) -> dict[str, Any]:
    return {"@architectures": "polyseme.Tok2Vec.v1", "model": str(model), **options}


@pytest.mark.parametrize("shared", [True, False])
def test_spacy_trains_its_own_models_on_elmo_once_per_sentence(shared, tmp_path):
    fix_random_seed(0)
    model = tmp_path / "model"
    polyseme.load("en-classic").save(model)
    nlp = spacy.blank("en")
    tok2vec = make_tok2vec_config(model, width=32)
    if shared:
        nlp.add_pipe("tok2vec", config={"model": tok2vec})
        tok2vec = {"@architectures": "spacy.Tok2VecListener.v1", "width": 32, "upstream": "*"}
    for name in ("ner", "tagger"):
        nlp.add_pipe(name, config={"model": {"tok2vec": tok2vec}})
    nlp.add_pipe("parser", config={"model": {"tok2vec": tok2vec}, "min_action_freq": 1})
    nlp.add_pipe(
        "textcat",
        config={
            "model": {
                "@architectures": "spacy.TextCatReduce.v1",
                "tok2vec": tok2vec,
                "exclusive_classes": True,
                "use_reduce_first": False,
                "use_reduce_last": False,
                "use_reduce_max": True,
                "use_reduce_mean": True,
            }
        },
    )
    examples, dev = make_examples(nlp, make_tagged(60, seed=1)), make_examples(nlp, make_tagged(20, seed=2))
    optimizer = nlp.initialize(lambda: examples)
    optimizer.learn_rate = 0.02
    losses: list[dict[str, float]] = []
    for _ in range(30):
        losses.append(nlp.update(examples, sgd=optimizer, losses={}))
    for name in ("ner", "tagger", "parser", "textcat"):
        assert losses[-1][name] < 0.5 * losses[0][name], name
    scores = nlp.evaluate(dev)
    assert scores["ents_f"] > 0.8
    assert scores["cats_score"] > 0.8
    assert scores["dep_uas"] > 0.8
    assert scores["tag_acc"] > 0.8
    components: list[Any] = [pipe for _, pipe in nlp.pipeline]
    shims = [
        shim
        for pipe in components
        for node in pipe.model.walk()
        for shim in node.shims
        if hasattr(shim, "stored")
    ]
    assert len(shims) == (1 if shared else 4)
    distinct = len({tuple(token.text for token in example.x) for example in [*examples, *dev]})
    for shim in shims:  # until the first update it computes the documents that spaCy takes the widths from
        assert distinct <= shim.elmo.counts.sentences < distinct + 50
    text = "Anna Smith lives in Rome."
    expected = [(entity.text, entity.label_) for entity in nlp(text).ents]
    nlp.to_disk(tmp_path / "pipeline")
    data = nlp.to_bytes()
    shutil.rmtree(model)
    for loaded in (
        spacy.load(tmp_path / "pipeline"),
        spacy.blank("en").from_config(nlp.config).from_bytes(data),
    ):
        doc = loaded(text)
        assert [(entity.text, entity.label_) for entity in doc.ents] == expected
        assert doc.cats == pytest.approx(nlp(text).cats)


def test_the_gradient_of_the_mix_is_that_of_the_mixed_vectors(model):
    nlp = spacy.blank("en")
    docs = [nlp.make_doc("The bank  failed. The river!"), nlp.make_doc(" "), nlp.make_doc("bank")]
    tok2vec: Any = build_tok2vec(str(model))
    tok2vec.initialize(X=docs)
    (node,) = (node for node in tok2vec.walk() if node.name == "polyseme_elmo")
    rng = np.random.default_rng(0)
    node.set_param("weights", rng.normal(size=3).astype(np.float32))
    node.set_param("gamma", np.array([1.7], np.float32))
    outputs, backprop = tok2vec.begin_update(docs)
    assert [rows.shape for rows in outputs] == [(8, 8), (1, 8), (1, 8)]
    gradients = [rng.normal(size=rows.shape).astype(np.float32) for rows in outputs]
    backprop(gradients)

    def loss() -> float:
        products = zip(tok2vec.predict(docs), gradients, strict=True)
        return float(sum((rows * gradient).sum() for rows, gradient in products))

    for name in ("weights", "gamma"):
        values, gradient = node.get_param(name).copy(), node.get_grad(name)
        for number in range(len(values)):
            step = np.zeros_like(values)
            step[number] = 0.01
            node.set_param(name, values + step)
            above = loss()
            node.set_param(name, values - step)
            assert gradient[number] == pytest.approx((above - loss()) / 0.02, rel=0.02, abs=0.02)
        node.set_param(name, values)


@pytest.mark.parametrize("layer", ["mean", "top", 0])
def test_a_fixed_layer_has_nothing_to_train(model, layer):
    doc = spacy.blank("en").make_doc("The bank failed.")
    tok2vec: Any = build_tok2vec(str(model), layer=layer)
    tok2vec.initialize(X=[doc])
    expected = polyseme.load(model).embed([["The", "bank", "failed", "."]], layer=layer)[0]
    np.testing.assert_allclose(tok2vec.predict([doc])[0], expected, atol=2e-3)  # float16
    assert not any(node.param_names for node in tok2vec.walk())
    assert tok2vec.get_dim("nO") == 8


def test_vectors_are_kept_from_the_first_update_on_within_a_limit(model):
    nlp = spacy.blank("en")
    docs = [nlp.make_doc(f"The bank {n} failed.") for n in range(4)]
    for cache_mb, again in ((1, 0), (0, 4)):
        tok2vec: Any = build_tok2vec(str(model), cache_mb=cache_mb)
        tok2vec.initialize(X=docs)
        (shim,) = tok2vec.layers[0].shims
        for calls, is_train, computed in (
            (1, False, 4),
            (2, False, 4),
            (3, True, 4),
            (4, True, again),
            (5, False, again),
        ):
            before = shim.elmo.counts.sentences
            tok2vec(docs, is_train=is_train)
            assert shim.elmo.counts.sentences - before == computed, calls
        copy = pickle.loads(pickle.dumps(tok2vec))
        assert not copy.layers[0].shims[0]._rows  # vectors are not copied
        np.testing.assert_array_equal(copy.predict(docs)[0], tok2vec.predict(docs)[0])


def test_invalid_options_are_value_errors(model):
    for options, message in (
        ({"width": 0}, "width is 0"),
        ({"cache_mb": -1}, "cache_mb is -1"),
        ({"layer": "all"}, "layer is 'all'"),
    ):
        with pytest.raises(ValueError, match=message):
            spacy.blank("en").add_pipe("tok2vec", config={"model": make_tok2vec_config(model, **options)})
    nlp = spacy.blank("en")
    nlp.add_pipe("tok2vec", config={"model": make_tok2vec_config(Path("nowhere"))})
    with pytest.raises(ValueError, match="nowhere: no such file or folder"):
        nlp.initialize()


def test_spacy_train_learns_names_with_the_config_of_the_examples(tmp_path):
    for name, sentences in (("train", make_tagged(200, seed=1)), ("dev", make_tagged(40, seed=2))):
        lines = ["".join(f"{word} {tag}\n" for word, tag in sentence) for sentence in sentences]
        (tmp_path / f"{name}.conll").write_text("\n".join(lines), encoding="utf-8")
        run_spacy("convert", f"{name}.conll", ".", "-c", "ner", "-n", "5", folder=tmp_path)
    config = ROOT / "examples" / "spacy_ner.cfg"
    printed = run_spacy(
        "train",
        str(config),
        "--output",
        "out",
        "--training.max_epochs",
        "6",
        "--components.tok2vec.model.model",
        "en-classic",
        folder=tmp_path,
    )
    assert "Saved pipeline" in printed
    nlp = spacy.load(tmp_path / "out" / "model-best")
    doc = nlp("Lucy Brown lives in Vienna .")
    assert [(entity.text, entity.label_) for entity in doc.ents] == [("Lucy Brown", "PER"), ("Vienna", "LOC")]
    assert nlp.meta["performance"]["ents_f"] > 0.9


def run_spacy(*arguments: str, folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-m", "spacy", *arguments], cwd=folder, capture_output=True, encoding="utf-8"
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout
