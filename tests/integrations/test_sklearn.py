"""Estimators of scikit-learn: its own checks, its pipelines and searches, its kinds of errors.

The checks of scikit-learn pass matrices of numbers. `spell` turns a row of numbers into a sentence, so that
they run on estimators of texts as they are.
"""

from __future__ import annotations

import importlib
import pickle
import subprocess
import sys
from typing import Any

import joblib
import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_matrix
from sklearn.base import clone
from sklearn.compose import ColumnTransformer
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.metrics import log_loss
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import FeatureUnion, make_pipeline
from sklearn.utils.estimator_checks import check_estimator
from sklearn.utils.validation import check_is_fitted, validate_data

import polyseme
from builders import random_model, small_config
from polyseme.elmo import Elmo
from polyseme.formats.models.save import save_pretrained
from polyseme.integrations.sklearn import ElmoClassifier, ElmoTagger, ElmoVectorizer

SECONDS = 300  # the limit for one program
QUICK = (
    "encoder.directions=0",
    "train.epochs=1",
    "train.min_steps=0",
    "input.elmo_dropout=0",
    "head.dropout=0",
)
LEARNS = (*QUICK, "train.epochs=40", "train.rate=0.05", "train.patience=40")
ENGLISH = ["the bank failed", "the river rose", "a bank lends money", "a river runs dry"] * 5
CHINESE = ["他在银行工作", "河水上涨了", "银行关门了", "他在河边散步"] * 5
TOPICS = ["money", "water"] * 10


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("sklearn") / "model"
    save_pretrained(random_model(small_config(segment="en")), folder)
    return str(folder)


def spell(estimator: Any, numbers: Any, *, reset: bool) -> list[str]:
    """A sentence per row: `ap1x25 bm0x70` for 1.25 and -0.70."""
    rows = validate_data(estimator, numbers, reset=reset)
    return [
        " ".join(
            f"{chr(97 + n)}{'m' if value < 0 else 'p'}{abs(value):.2f}".replace(".", "x")
            for n, value in enumerate(row)
        )
        for row in rows
    ]


def read_numbers(tags: Any) -> Any:
    tags.input_tags.string, tags.input_tags.two_d_array = False, True
    return tags


class VectorizerOfNumbers(ElmoVectorizer):
    def __init__(self, model, *, layer="mean", pool="mean", precision=None):
        super().__init__(model, layer=layer, pool=pool, precision=precision)

    def fit(self, X, y=None):
        return super().fit(spell(self, X, reset=True))

    def transform(self, X):
        check_is_fitted(self)
        return super().transform(spell(self, X, reset=False))

    def fit_transform(self, X, y=None, **fit_params):
        return self.fit(X, y, **fit_params).transform(X)

    def __sklearn_tags__(self):
        return read_numbers(super().__sklearn_tags__())


class ClassifierOfNumbers(ElmoClassifier):
    def __init__(self, model, *, settings=QUICK, random_state=None):
        super().__init__(model, settings=settings, random_state=random_state)

    def fit(self, X, y=None):
        if y is None:
            raise ValueError("requires y to be passed, but the target y is None")
        return super().fit(spell(self, X, reset=True), y)

    def predict_proba(self, X):
        check_is_fitted(self)
        return super().predict_proba(spell(self, X, reset=False))

    def __sklearn_tags__(self):
        tags = read_numbers(super().__sklearn_tags__())
        tags.classifier_tags.poor_score = True  # after one epoch
        return tags


@pytest.mark.parametrize(("kind", "least"), [(VectorizerOfNumbers, 40), (ClassifierOfNumbers, 50)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.UndefinedMetricWarning")
def test_all_checks_of_scikit_learn_pass(model, kind, least):
    results = check_estimator(kind(model), on_fail=None, on_skip=None)
    assert [(r["check_name"], r["exception"]) for r in results if r["status"] == "failed"] == []
    assert sum(result["status"] == "passed" for result in results) >= least


@pytest.mark.parametrize(("name", "texts"), [("en", ENGLISH), ("zh", CHINESE)])
@pytest.mark.parametrize("options", [{}, {"pool": "concat"}, {"pool": "sentence"}, {"layer": "top"}])
def test_vectors_equal_those_of_embed(name, texts, options):
    elmo = polyseme.load(name)
    vectors = ElmoVectorizer(name, **options).fit_transform(texts)
    expected = elmo.embed(texts, **({"pool": "mean"} | options))
    np.testing.assert_array_equal(vectors, expected)
    by_half = ElmoVectorizer(elmo, direction="forward").fit_transform(iter(texts))
    np.testing.assert_array_equal(by_half, elmo.embed(texts, pool="mean", direction="forward"))


def test_every_kind_of_column_gives_the_same_vectors(model):
    vectorizer = ElmoVectorizer(model).fit(ENGLISH)
    expected = vectorizer.transform(ENGLISH)
    tokens = [text.split() for text in ENGLISH]
    for column in (
        pd.Series(ENGLISH),
        pd.Series(ENGLISH, dtype="category"),
        pl.Series(ENGLISH),
        np.array(ENGLISH),
        np.array(ENGLISH, dtype=object),
        tuple(ENGLISH),
        tokens,
    ):
        np.testing.assert_array_equal(vectorizer.transform(column), expected)
    assert vectorizer.transform([]).shape == (0, 8)
    assert not vectorizer.transform([""]).any()


def test_frames_of_vectors_have_names_and_the_index_of_the_texts(model):
    texts = pd.Series(["the bank", "a river"], index=[7, 9])
    frame = ElmoVectorizer(model).set_output(transform="pandas").fit_transform(texts)
    assert list(frame.columns) == [f"elmovectorizer{n}" for n in range(8)]
    assert list(frame.index) == [7, 9]
    assert set(frame.dtypes.astype(str)) == {"float32"}
    assert isinstance(ElmoVectorizer(model).set_output(transform="polars").fit_transform(texts), pl.DataFrame)


def test_columns_unions_and_pipelines_combine_vectors_with_others(model):
    frame = pd.DataFrame({"title": ENGLISH, "body": ENGLISH[::-1], "year": range(20)})
    columns = ColumnTransformer(
        [("title", ElmoVectorizer(model), "title"), ("body", ElmoVectorizer(model, pool="max"), "body")],
        remainder="passthrough",
    )
    table = columns.set_output(transform="pandas").fit_transform(frame)
    assert table.shape == (20, 17)
    assert {"title__elmovectorizer0", "body__elmovectorizer7", "remainder__year"} <= set(table.columns)
    union = FeatureUnion([("elmo", ElmoVectorizer(model)), ("words", TfidfVectorizer())])
    matrix = union.fit_transform(ENGLISH)
    assert matrix.shape == (20, len(union.get_feature_names_out()))
    pipeline = make_pipeline(union, LogisticRegression(C=100))
    assert pipeline.fit(ENGLISH, TOPICS).score(ENGLISH, TOPICS) == 1.0


def test_a_pickle_holds_the_name_of_a_model_and_not_its_weights(model, tmp_path):
    vectorizer = ElmoVectorizer(model).fit(ENGLISH)
    expected = vectorizer.transform(ENGLISH)
    assert len(pickle.dumps(vectorizer)) < 1000
    np.testing.assert_array_equal(pickle.loads(pickle.dumps(vectorizer)).transform(ENGLISH), expected)
    path = tmp_path / "pipeline.joblib"
    pipeline = make_pipeline(ElmoVectorizer(model), LogisticRegression()).fit(ENGLISH, TOPICS)
    joblib.dump(pipeline, path)
    np.testing.assert_array_equal(joblib.load(path).predict_proba(ENGLISH), pipeline.predict_proba(ENGLISH))


def test_clones_share_a_loaded_model_and_changed_parameters_load_another(model):
    elmo = polyseme.load(model)
    assert clone(ElmoVectorizer(elmo)).model is elmo
    vectorizer = ElmoVectorizer(model).fit(ENGLISH)
    changed = clone(vectorizer).set_params(model="en-classic", pool="max")
    assert changed.fit_transform(ENGLISH).shape == (20, 256)
    np.testing.assert_array_equal(
        vectorizer.set_params(model=elmo).transform(ENGLISH), ElmoVectorizer(model).fit_transform(ENGLISH)
    )


def test_a_cache_of_a_pipeline_is_used_again(model, tmp_path, monkeypatch):
    memory = joblib.Memory(tmp_path / "cache", verbose=0)
    make_pipeline(ElmoVectorizer(model), LogisticRegression(), memory=memory).fit(ENGLISH, TOPICS)
    monkeypatch.setattr(Elmo, "embed", lambda *_, **__: pytest.fail("embedded again"))
    make_pipeline(ElmoVectorizer(model), LogisticRegression(), memory=memory).fit(ENGLISH, TOPICS)


def test_searches_run_in_two_processes(model, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        f"""
import sys
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from polyseme.integrations.sklearn import ElmoClassifier, ElmoTagger, ElmoVectorizer

model, texts, topics, quick = sys.argv[1], {ENGLISH!r}, {TOPICS!r}, {QUICK!r}
pipeline = make_pipeline(ElmoVectorizer(model), LogisticRegression())
grid = {{"elmovectorizer__layer": ["top", 0], "elmovectorizer__pool": ["mean", "max"]}}
options = {{"n_jobs": 2, "cv": 2, "error_score": "raise"}}
print(GridSearchCV(pipeline, grid, **options).fit(texts, topics).best_score_)
grid = {{"settings": [quick, (*quick, "train.epochs=2")]}}
print(GridSearchCV(ElmoClassifier(model), grid, **options).fit(texts, topics).best_score_)
sentences = [text.split() for text in texts]
tags = [[token[0].upper() for token in sentence] for sentence in sentences]
print(GridSearchCV(ElmoTagger(model), grid, **options).fit(sentences, tags).best_score_)
""",
        encoding="utf-8",
    )
    done = subprocess.run(
        [sys.executable, "-W", "ignore", str(program), model], capture_output=True, text=True, timeout=SECONDS
    )
    assert done.returncode == 0, done.stderr
    scores = list(map(float, done.stdout.split()))
    assert len(scores) == 3
    assert scores[0] >= 0.75
    assert all(0 <= score <= 1 for score in scores)


@pytest.mark.parametrize(("name", "texts"), [("en", ENGLISH), ("zh", CHINESE)])
def test_the_classifier_learns_english_and_chinese(name, texts):
    settings = ("encoder.directions=0", "train.epochs=15", "train.rate=0.01", "train.patience=15")
    classifier = ElmoClassifier(name, settings=settings).fit(pd.Series(texts), TOPICS)
    assert classifier.score(texts, TOPICS) == 1.0
    probabilities = classifier.predict_proba(texts)
    assert log_loss(TOPICS, probabilities) < 0.5
    expected = [prediction.label for prediction in classifier.task_model_.predict(texts)]
    assert classifier.predict(texts).tolist() == expected
    again = pickle.loads(pickle.dumps(classifier))
    np.testing.assert_allclose(again.predict_proba(texts), probabilities, atol=1e-3)  # stored as float16


@pytest.mark.parametrize(
    "labels",
    [
        [3, -1] * 10,
        [True, False] * 10,
        [0.0, 1.0] * 10,
        ["b c", "a|b"] * 10,
        np.array(["x", "y"] * 10),
        pd.Series(["x", "y"] * 10, dtype="category"),
    ],
)
def test_predictions_have_the_type_of_the_labels(model, labels):
    classifier = ElmoClassifier(model, settings=LEARNS, random_state=np.int64(4)).fit(ENGLISH, labels)
    assert classifier.predict(ENGLISH).tolist() == list(labels)
    assert classifier.classes_.tolist() == sorted(set(labels))


def test_an_indicator_matrix_is_learned_as_several_labels(model):
    labels = np.array([[topic == "money", topic == "water", True] for topic in TOPICS]).astype(int)
    for matrix in (labels, csr_matrix(labels)):
        classifier = ElmoClassifier(model, settings=LEARNS).fit(ENGLISH, matrix)
        np.testing.assert_array_equal(classifier.predict(ENGLISH), labels)
        assert classifier.predict_proba(ENGLISH).shape == (20, 3)


def test_a_text_without_words_gets_the_shares_of_the_labels(model):
    labels = ["a"] * 15 + ["b"] * 5
    classifier = ElmoClassifier(model, settings=QUICK).fit(ENGLISH, labels)
    np.testing.assert_allclose(classifier.predict_proba(["", " \n"]), [[0.75, 0.25]] * 2)
    assert classifier.predict([""]).tolist() == ["a"]


def test_a_random_state_is_the_seed(model):
    def predict(random_state: object) -> Any:
        classifier = ElmoClassifier(model, settings=QUICK, random_state=random_state)
        return classifier.fit(ENGLISH, TOPICS).predict_proba(ENGLISH)

    np.testing.assert_array_equal(predict(7), predict(7))
    np.testing.assert_array_equal(predict(None), predict(1))  # the seed of the settings
    assert np.abs(predict(7) - predict(8)).max() > 1e-4
    np.testing.assert_array_equal(predict(np.random.RandomState(3)), predict(np.random.RandomState(3)))


SENTENCES = [["Anna", "left", "."], ["he", "met", "Anna", "Weiss", "."]] * 8
SPANS = [["B-PER", "O", "O"], ["O", "O", "B-PER", "I-PER", "O"]] * 8
HAN = [["王", "先生", "来", "了"], ["他", "见", "了", "王", "先生"]] * 8
HAN_SPANS = [["B-PER", "I-PER", "O", "O"], ["O", "O", "O", "B-PER", "I-PER"]] * 8


@pytest.mark.parametrize(("name", "sentences", "tags"), [("en", SENTENCES, SPANS), ("zh", HAN, HAN_SPANS)])
def test_the_tagger_learns_english_and_chinese(name, sentences, tags):
    settings = ("encoder.directions=0", "train.epochs=15", "train.rate=0.01", "train.patience=15")
    tagger = ElmoTagger(name, settings=settings).fit(sentences, tags)
    assert tagger.predict(sentences) == tags
    assert tagger.score(sentences, tags) == 1.0
    assert tagger.predict([[], "", sentences[0]]) == [[], [], tags[0]]
    assert set(tagger.classes_) == {"B-PER", "I-PER", "O"}
    (prediction,) = tagger.task_model_.predict(sentences[:1])
    assert tagger.predict(["".join(sentences[0])])[0][: len(prediction.tags)]
    again = pickle.loads(pickle.dumps(clone(tagger).fit(sentences, tags)))
    assert again.predict(sentences) == tags


def test_tags_that_are_numbers_come_back_as_numbers_and_unknown_ones_count_as_errors(model):
    numbers = [[int(token == ".") for token in sentence] for sentence in SENTENCES]
    tagger = ElmoTagger(model, settings=LEARNS).fit(SENTENCES, numbers)
    assert tagger.predict(SENTENCES) == numbers
    assert tagger.score(SENTENCES, numbers) == 1.0
    assert tagger.score([["Anna", "left"]], [[99, 0]]) == 0.5
    square = np.array([["Anna", "left"]] * 4)
    assert ElmoTagger(model, settings=QUICK).fit(square, np.array([[1, 2]] * 4)).predict(square.tolist())


def test_the_tagger_is_cross_validated(model):
    scores = cross_val_score(ElmoTagger(model, settings=QUICK), SENTENCES, SPANS, cv=3, error_score="raise")
    assert scores.shape == (3,)


@pytest.mark.parametrize("estimator", [ElmoVectorizer(), ElmoClassifier(), ElmoTagger()])
def test_before_fit_methods_raise_not_fitted_error(estimator):
    for method in ("transform", "predict", "predict_proba", "get_feature_names_out"):
        if hasattr(estimator, method):
            arguments = [] if method == "get_feature_names_out" else [["a text"]]
            with pytest.raises(NotFittedError if arguments else (NotFittedError, AttributeError)):
                getattr(estimator, method)(*arguments)
    if hasattr(estimator, "score"):
        with pytest.raises(NotFittedError):
            estimator.score(["a text"], ["a"])


@pytest.mark.parametrize(
    ("texts", "kind", "message"),
    [
        ("the bank", ValueError, r"X is the string 'the bank', expected a list of texts: pass \[text\]"),
        ([], ValueError, "X has 0 samples"),
        (["a", None], ValueError, "sentence 1 is a missing value"),
        (["a", 3.5], ValueError, "sentence 1 is 3.5, expected a string or a list of tokens"),
        (pd.DataFrame({"text": ["a"]}), ValueError, 'name the column as "text"'),
        (pl.DataFrame({"text": ["a"]}), ValueError, 'name the column as "text"'),
        (np.array([["a"], ["b"]]), ValueError, "X has 2 dimensions"),
        (np.zeros((2, 3)), ValueError, "X has 2 dimensions"),
        (csr_matrix(np.eye(2)), TypeError, "sparse matrix"),
        ({"a": 1}, ValueError, "X is a dict"),
        (7, ValueError, "X is of type int"),
    ],
)
def test_what_is_no_list_of_texts_is_refused(model, texts, kind, message):
    for estimator in (ElmoVectorizer(model), ElmoClassifier(model)):
        with pytest.raises(kind, match=message):
            estimator.fit(texts, ["a", "b"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"model": "no-such-model"}, "no-such-model"),
        ({"model": 3}, "model is of type int, expected a path, the name of a bundled model"),
        ({"pool": "average"}, "pool is 'average', expected one of"),
        ({"pool": None}, 'a vectorizer needs one. Set pool="mean"'),
        ({"layer": "all"}, 'a vectorizer needs one. Set layer="concat"'),
        ({"layer": 9}, "layer is 9, the model has layers 0 to 2"),
        ({"direction": "up"}, "direction is 'up'"),
        ({"segment": "xx"}, "xx"),
        ({"precision": "fp8"}, "fp8"),
        ({"device": "abacus"}, "abacus"),
    ],
)
def test_an_invalid_parameter_of_the_vectorizer_is_a_value_error(model, options, message):
    with pytest.raises(ValueError, match=message):
        ElmoVectorizer(**({"model": model} | options)).fit(["a text"])


@pytest.mark.parametrize(
    ("labels", "message"),
    [
        (None, "y is None, expected labels"),
        (["a"], "inconsistent numbers of samples"),
        (["a", "a"], "y has one class, a"),
        (["a", "a "], "white space"),
        (["", "a"], "empty label"),
        (["a", None], r"y\[1\] is a missing value"),
        (pd.Series(["a", pd.NA]), r"y\[1\] is a missing value"),
        ([0.5, 1.5], "Unknown label type"),
        ([["a"], ["b", "c"]], "y"),
    ],
)
def test_invalid_labels_are_value_errors(model, labels, message):
    with pytest.raises(ValueError, match=message):
        ElmoClassifier(model).fit(["one", "two"], labels)


def test_an_invalid_setting_of_a_task_is_a_value_error(model):
    data: list[tuple[Any, Any, Any]] = [(ElmoClassifier, ENGLISH, TOPICS), (ElmoTagger, SENTENCES, SPANS)]
    for estimator, texts, labels in data:
        for options, message in (
            ({"settings": ("train.epoch=2",)}, "epoch"),
            ({"settings": "train.epochs=2"}, "settings is 'train.epochs=2', expected a list"),
            ({"settings": [3]}, "settings holds 3"),
            ({"settings": 3}, "settings is 3"),
            ({"config": "tangging"}, "There is no preset 'tangging'"),
            ({"random_state": "x"}, "cannot be used to seed"),
        ):
            with pytest.raises(ValueError, match=message):
                estimator(model, **options).fit(texts, labels)


@pytest.mark.parametrize(
    ("sentences", "tags", "message"),
    [
        (["Anna left"], [["O", "O"]], r"X\[0\] is a string, expected a list of tokens"),
        ([["Anna", "left"]], [["O"]], r"X\[0\] has 2 tokens and y\[0\] 1 tags"),
        ([["Anna", "left"]], [["O", None]], r"y\[0\] has the tag None"),
        ([["Anna", "left"]], [["O", "O"], ["O"]], "inconsistent numbers of samples"),
        ([["Anna", "left"]], "OO", "y is of type str"),
        ([["Anna", "left"]], ["OO"], r"y\[0\] is of type str"),
        ([["Anna left"]], [["O"]], "token 0 of sentence 0 holds white space"),
    ],
)
def test_sentences_and_tags_that_do_not_fit_are_value_errors(model, sentences, tags, message):
    with pytest.raises(ValueError, match=message):
        ElmoTagger(model).fit(sentences, tags)


def test_without_scikit_learn_the_command_to_install_it_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "sklearn", None)
    monkeypatch.delitem(sys.modules, "polyseme.integrations.sklearn")
    with pytest.raises(polyseme.MissingExtraError, match=r'pip install "polyseme\[sklearn\]"'):
        importlib.import_module("polyseme.integrations.sklearn")
