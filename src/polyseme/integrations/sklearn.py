"""ELMo as scikit-learn estimators: a vectorizer for pipelines, a classifier, a tagger.

    elmo, tasks.experiment  ->  integrations.sklearn  ->  Pipeline, GridSearchCV, ColumnTransformer …

Estimators follow scikit-learn's contract: `__init__` only stores parameters, `fit` checks them, invalid input
raises ValueError or TypeError, and a method that needs `fit` raises NotFittedError. A model that a parameter
names is loaded by `fit`, and again after unpickling: pickles hold its name, not its weights.
N texts, H values, K labels.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, Self, cast

import numpy as np
from numpy.typing import NDArray

from polyseme.choices import Direction, Pool
from polyseme.elmo import Elmo, ensure_loaded
from polyseme.errors import MissingExtraError, PolysemeError, UsageError, require
from polyseme.model.output import Layer
from polyseme.tasks.data.tag_schemes import read_spans
from polyseme.tasks.experiment import Experiment, train
from polyseme.tasks.metrics import score_classes, score_spans
from polyseme.tasks.task_model import TaskModel
from polyseme.text.validate import is_missing, list_sentences, list_values

require("sklearn", "sklearn", "polyseme.integrations.sklearn")

from sklearn.base import (  # noqa: E402  # after the check that names the command to install it
    BaseEstimator,
    ClassifierMixin,
    ClassNamePrefixFeaturesOutMixin,
    TransformerMixin,
)
from sklearn.utils import assert_all_finite, check_random_state  # noqa: E402
from sklearn.utils.multiclass import check_classification_targets, type_of_target  # noqa: E402
from sklearn.utils.validation import check_consistent_length, check_is_fitted, column_or_1d  # noqa: E402

Array = NDArray[Any]
Text = str | list[str]  # raw, or as tokens
LARGEST_SEED = 2**31 - 1


class ElmoVectorizer(ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    """Texts to ELMo vectors, one row per text.

    Nothing is learned: `fit` loads the model and checks the parameters.

    Args:
        model: A path, the name of a bundled model ("en", "zh"), or a loaded `Elmo`, which clones share.
        layer: "mean", "top", "concat", a number from 0, weights, or (weights, gamma); see `Elmo.embed`.
        pool: "mean", "max", "first", "last", "sum", "concat" (mean, maximum and minimum joined, which suits
            classifiers) or "sentence" (which suits comparing sentences).
        direction: "both", or the "forward" or "backward" half of each vector.
        segment: How texts are split into tokens; as the model was trained if None.
        precision: As in `polyseme.load`; only for a model that is loaded here.
        device: As in `polyseme.load`; only for a model that is loaded here.

    Attributes:
        n_features_out_: Values of a row.

    Example:
        >>> from sklearn.linear_model import LogisticRegression
        >>> from sklearn.pipeline import make_pipeline
        >>> pipeline = make_pipeline(ElmoVectorizer("en", pool="concat"), LogisticRegression(max_iter=1000))
        >>> pipeline.fit(texts, labels).predict(["The bank failed."])

    """

    def __init__(
        self,
        model: Elmo | str | Path = "en",
        *,
        layer: Layer = "mean",
        pool: Pool = "mean",
        direction: Direction = "both",
        segment: str | None = None,
        precision: str | None = None,
        device: str = "cpu",
    ) -> None:
        self.model = model
        self.layer = layer
        self.pool = pool
        self.direction = direction
        self.segment = segment
        self.precision = precision
        self.device = device

    def __getstate__(self) -> dict[str, Any]:
        """The parameters and what `fit` found, without a model that was loaded from its name."""
        state = dict(super().__getstate__())
        state.pop("_loaded", None)
        return state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        tags.transformer_tags.preserves_dtype = []
        return tags

    @property
    def _n_features_out(self) -> int:
        """What ClassNamePrefixFeaturesOutMixin names the columns by."""
        return self.n_features_out_

    def fit(self, X: Iterable[Text], y: object = None) -> Self:  # noqa: N803  # scikit-learn's name
        """Load the model and check the parameters.

        Args:
            X: N texts: strings, or lists of tokens.
            y: Ignored.

        Returns:
            This vectorizer.

        Raises:
            ValueError: If a parameter is invalid, there is no such model, or X does not hold texts.

        """
        _require_samples(_list_texts(X))
        self._fit_model()
        return self

    def fit_transform(self, X: Iterable[Text], y: object = None, **fit_params: Any) -> Array:  # noqa: N803
        """As `fit`, then `transform`; X may be a generator.

        Args:
            X: N texts.
            y: Ignored.
            **fit_params: Refused by `fit`.

        Returns:
            The vectors (N, H), float32; a DataFrame after `set_output`.

        """
        texts = _list_texts(X)
        fitted = self.fit(texts, y, **fit_params)
        return fitted._embed(texts)

    def transform(self, X: Iterable[Text]) -> Array:  # noqa: N803
        """Embed texts.

        Args:
            X: N texts: strings, or lists of tokens.

        Returns:
            The vectors (N, H), float32; zeros for a text without tokens. A DataFrame after `set_output`.

        Raises:
            NotFittedError: If `fit` was not called.
            ValueError: If X does not hold texts.

        """
        check_is_fitted(self)
        return self._embed(_list_texts(X))

    def _fit_model(self) -> None:
        with _raises_value_errors():
            elmo = self._load()
            spec = elmo.plan_embedding([], **self._embedding_options()).spec
            shape = spec.empty(elmo.config.layers, elmo.config.size).shape
        if len(shape) != 1:
            advice = 'pool="mean"' if self.pool is None else 'layer="concat"'
            raise ValueError(
                f"layer is {self.layer!r} and pool is {self.pool!r}, which give several rows per text; a "
                f"vectorizer needs one. Set {advice}."
            )
        self.n_features_out_ = shape[0]

    def _embed(self, texts: list[Text]) -> Array:
        with _raises_value_errors():
            return cast(Array, self._load().embed(texts, progress=False, **self._embedding_options()))

    def _embedding_options(self) -> dict[str, Any]:
        names = ("layer", "pool", "direction", "segment")
        return {name: getattr(self, name) for name in names}

    def _load(self) -> Elmo:
        """The model, loaded unless it already is."""
        if isinstance(self.model, Elmo):
            return self.model
        key = (self.model, self.precision, self.device)
        loaded: tuple[object, Elmo] | None = getattr(self, "_loaded", None)
        if loaded is None or loaded[0] != key:
            loaded = key, _load_model(self.model, self.precision, self.device)
            self._loaded = loaded
        return loaded[1]


class ElmoClassifier(ClassifierMixin, BaseEstimator):
    """Polyseme's classification as a classifier of texts: an LSTM and attention over ELMo's layers.

    Args:
        model: A path, the name of a bundled model ("en", "zh"), or a loaded `Elmo`, which clones share.
        config: A preset or a .toml file, as for `polyseme.train("classification", …)`.
        settings: Overrides, such as ("train.epochs=10", "head.pool=mean").
        random_state: The seed; None is that of the settings, so that training can be repeated.

    Attributes:
        classes_: The labels (K,); for an indicator matrix as y, the numbers of its columns.
        task_model_: The trained `TaskModel`: `save`, `predict` with tokens, `mix.shares`, `scores`.

    Example:
        >>> classifier = ElmoClassifier("en").fit(texts, labels)
        >>> classifier.predict_proba(["The bank failed."])

    """

    def __init__(
        self,
        model: Elmo | str | Path = "en",
        *,
        config: str | None = None,
        settings: Sequence[str] = (),
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.config = config
        self.settings = settings
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        tags.classifier_tags.multi_label = True
        return tags

    def fit(self, X: Iterable[str], y: Any) -> Self:  # noqa: N803
        """Train on labelled texts; a part of them (data.dev_share, 20%) chooses the best epoch.

        Args:
            X: N texts. Those without words are left out.
            y: N labels: strings, numbers or booleans; or an indicator matrix (N, K) of several labels.

        Returns:
            This classifier.

        Raises:
            ValueError: If X or y is invalid, a setting is wrong, or there is no such model.

        """
        texts = _require_samples(_list_strings(X))
        settings = _list_settings(self.settings, self.random_state)
        rows = self._label(texts, y)
        if self._is_multi_label:
            settings.append("data.multi=true")
        self.task_model_ = _train("classification", self.model, rows, self.config, settings)
        return self

    def _label(self, texts: list[str], y: Any) -> list[tuple[str, Any]]:
        """Rows for training: each text with its label, or with the list of its labels."""
        _refuse_missing(y)
        check_consistent_length(texts, y)
        values = y if hasattr(y, "toarray") else np.asarray(y)
        if values.dtype.kind == "f":
            assert_all_finite(values, input_name="y")  # before scikit-learn casts infinity to an integer
        self._is_multi_label = str(type_of_target(y, input_name="y")).startswith("multilabel")
        if self._is_multi_label:
            indicator = np.asarray(y.toarray() if hasattr(y, "toarray") else y).astype(bool)
            self.classes_ = np.arange(indicator.shape[1])
            self.class_prior_ = indicator.mean(axis=0)
            return [(text, np.flatnonzero(row).tolist()) for text, row in zip(texts, indicator, strict=True)]
        labels = column_or_1d(y, warn=True)
        check_classification_targets(labels)
        self.classes_, numbers = np.unique(labels, return_inverse=True)
        names = self._class_names()
        if len(names) < 2:
            raise ValueError(f"y has one class, {names[0]}: there is nothing to tell apart.")
        if len({name.strip() for name in names} - {""}) < len(names):
            raise ValueError("y has an empty label, or labels that differ in white space alone.")
        self.class_prior_ = np.bincount(numbers) / len(texts)
        return [(text, names[number]) for text, number in zip(texts, numbers, strict=True)]

    def _class_names(self) -> list[str]:
        """The labels as the task names them."""
        return [str(label) for label in self.classes_.tolist()]

    def predict(self, X: Iterable[str]) -> Array:  # noqa: N803
        """Predict the label of each text, or the indicator matrix of its labels.

        Args:
            X: N texts.

        Returns:
            The labels (N,), of the type of y; or (N, K).

        Raises:
            NotFittedError: If `fit` was not called.
            ValueError: If X does not hold texts.

        """
        probabilities = self.predict_proba(X)
        if self._is_multi_label:
            return (probabilities > 0.5).astype(int)
        return cast(Array, self.classes_[probabilities.argmax(axis=1)])

    def predict_proba(self, X: Iterable[str]) -> Array:  # noqa: N803
        """Predict the probability of each label; a text without words gets their shares in training.

        Args:
            X: N texts.

        Returns:
            The probabilities (N, K), float32, in the order of `classes_`.

        Raises:
            NotFittedError: If `fit` was not called.
            ValueError: If X does not hold texts.

        """
        check_is_fitted(self)
        texts = _require_samples(_list_strings(X))
        with _raises_value_errors():
            examples = self.task_model_.read([(text,) for text in texts], labelled=False)
            predictions = self.task_model_.predict_examples(examples)
        columns = {name.strip(): column for column, name in enumerate(self._class_names())}
        probabilities = np.zeros((len(texts), len(columns)), np.float32)
        for row, prediction in zip(probabilities, predictions, strict=True):
            if prediction is None:
                row[:] = self.class_prior_
            else:
                for label, probability in prediction.probabilities.items():
                    row[columns[label]] = probability
        return probabilities


class ElmoTagger(BaseEstimator):
    """Polyseme's tagging as an estimator: a tag for each token, by an LSTM and a CRF over ELMo's layers.

    Tags of a scheme such as B-PER, I-PER, O spell spans, which are then learned and scored as such.

    Args:
        model: A path, the name of a bundled model ("en", "zh"), or a loaded `Elmo`, which clones share.
        config: A preset or a .toml file, as for `polyseme.train("tagging", …)`.
        settings: Overrides, such as ("train.epochs=10", "head.crf=false").
        random_state: The seed; None is that of the settings, so that training can be repeated.

    Attributes:
        classes_: The tags (K,) of the training sentences.
        task_model_: The trained `TaskModel`: `save`, and `predict` with tokens, spans and probabilities.

    Example:
        >>> tagger = ElmoTagger("en").fit([["Anna", "left", "."]], [["B-PER", "O", "O"]])
        >>> tagger.predict([["Otto", "stayed", "."]])

    """

    def __init__(
        self,
        model: Elmo | str | Path = "en",
        *,
        config: str | None = None,
        settings: Sequence[str] = (),
        random_state: Any = None,
    ) -> None:
        self.model = model
        self.config = config
        self.settings = settings
        self.random_state = random_state

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.string, tags.input_tags.two_d_array = True, False
        tags.target_tags.required = True
        return tags

    def fit(self, X: Iterable[list[str]], y: Iterable[Sequence[Any]]) -> Self:  # noqa: N803
        """Train on tagged sentences; a part of them (data.dev_share, 20%) chooses the best epoch.

        Args:
            X: N sentences, each a list of tokens.
            y: N lists of tags, one per token: strings, or numbers.

        Returns:
            This tagger.

        Raises:
            ValueError: If X or y is invalid, a setting is wrong, or there is no such model.

        """
        rows, known = _list_tagged(X, y)
        settings = _list_settings(self.settings, self.random_state)
        self.classes_ = np.array(sorted(known.values(), key=str))
        self.task_model_ = _train("tagging", self.model, rows, self.config, settings)
        self._known = known
        return self

    def predict(self, X: Iterable[Text]) -> list[list[Any]]:  # noqa: N803
        """Predict the tag of each token.

        Args:
            X: N sentences: lists of tokens, or strings, which are split as the model was trained.

        Returns:
            N lists of tags, of the type and in the scheme of y; empty for a sentence without tokens.

        Raises:
            NotFittedError: If `fit` was not called.
            ValueError: If X does not hold sentences.

        """
        check_is_fitted(self)
        sentences = _list_texts(X)
        numbers = [number for number, sentence in enumerate(sentences) if "".join(sentence).strip()]
        tags: list[list[Any]] = [[] for _ in sentences]
        with _raises_value_errors():
            predictions = self.task_model_.predict([sentences[number] for number in numbers])
        for number, prediction in zip(numbers, predictions, strict=True):
            tags[number] = [self._known.get(tag, tag) for tag in prediction.tags]
        return tags

    def score(self, X: Iterable[list[str]], y: Iterable[Sequence[Any]]) -> float:  # noqa: N803
        """Score predictions: F1 of spans as conlleval counts it, or the accuracy of tags that spell none.

        Args:
            X: As in `fit`.
            y: As in `fit`; a tag that is not in the training sentences counts as an error.

        Returns:
            A number from 0 to 1.

        Raises:
            NotFittedError: If `fit` was not called.
            ValueError: If X or y is invalid.

        """
        check_is_fitted(self)
        rows, _ = _list_tagged(X, y)
        tags = [[str(tag) for tag in its_tags] for _, its_tags in rows]
        predicted = [list(map(str, its_tags)) for its_tags in self.predict([tokens for tokens, _ in rows])]
        if self.task_model_.settings.data.scheme != "none":  # type: ignore[attr-defined]  # of tagging
            return score_spans([*map(read_spans, tags)], [*map(read_spans, predicted)]).value
        flat, flat_predicted = list(chain(*tags)), list(chain(*predicted))
        return score_classes(flat, flat_predicted, sorted({*flat, *flat_predicted})).value


def _train(
    task: str, model: Elmo | str | Path, rows: list[Any], config: str | None, settings: list[str]
) -> TaskModel:
    with _raises_value_errors():
        elmo = _load_model(model)
        return train(Experiment(task, config, settings), elmo, (rows, None, None)).model


def _load_model(model: Any, precision: str | None = None, device: str = "cpu") -> Elmo:
    if not isinstance(model, Elmo | str | Path):
        raise ValueError(
            f"model is of type {type(model).__name__}, expected a path, the name of a bundled model, or what "
            "polyseme.load returns."
        )
    return ensure_loaded(model, precision=precision, device=device)


def _list_settings(settings: Any, random_state: Any) -> list[str]:
    """Overrides as lines; with a random state, its seed is the last one."""
    if isinstance(settings, str) or not isinstance(settings, Iterable):
        raise ValueError(f'settings is {settings!r}, expected a list such as ["train.epochs=10"].')
    lines = list(settings)
    wrong = next((line for line in lines if not isinstance(line, str)), None)
    if wrong is not None:
        raise ValueError(f'settings holds {wrong!r}, expected lines such as "train.epochs=10".')
    if random_state is None:
        return lines
    if isinstance(random_state, int | np.integer):
        seed = int(random_state)
    else:
        seed = int(check_random_state(random_state).randint(LARGEST_SEED))
    return [*lines, f"train.seed={seed}"]


def _list_texts(X: Any) -> list[Text]:  # noqa: N803
    """The texts of what scikit-learn passes: a list, a column, an array of one axis."""
    if isinstance(X, str):
        raise ValueError(f"X is the string {X!r:.60}, expected a list of texts: pass [text].")
    if hasattr(X, "nnz") and hasattr(X, "toarray"):
        raise TypeError("X is a sparse matrix, expected texts.")
    if len(getattr(X, "shape", "X")) != 1:
        raise ValueError(
            f"X has {len(X.shape)} dimensions, expected one column of texts. In a ColumnTransformer, name "
            'the column as "text", not as ["text"].'
        )
    with _raises_value_errors():
        return list_sentences(X, "X")


def _list_strings(X: Any) -> list[str]:  # noqa: N803
    texts = _list_texts(X)
    for number, text in enumerate(texts):
        if not isinstance(text, str):
            raise ValueError(f"X[{number}] is a list of tokens, expected a string.")
    return cast(list[str], texts)


def _list_tagged(X: Any, y: Any) -> tuple[list[tuple[list[str], list[Any]]], dict[str, Any]]:  # noqa: N803
    """Sentences with their tags, and the tags by how the task spells them."""
    if isinstance(X, np.ndarray) and X.ndim == 2:
        X = X.tolist()  # noqa: N806  # sentences that all have the same length
    sentences = _require_samples(_list_texts(X))
    with _raises_value_errors():
        tags = [list_values(its_tags, f"y[{number}]") for number, its_tags in enumerate(list_values(y, "y"))]
    check_consistent_length(sentences, tags)
    rows, known = [], {}
    for number, (tokens, its_tags) in enumerate(zip(sentences, tags, strict=True)):
        if isinstance(tokens, str):
            raise ValueError(
                f"X[{number}] is a string, expected a list of tokens, because y has a tag for each. "
                "Split it, for example with `[token.text for token in elmo.tokenize(text)]`."
            )
        if len(tokens) != len(its_tags):
            raise ValueError(
                f"X[{number}] has {len(tokens)} tokens and y[{number}] {len(its_tags)} tags, expected one "
                "tag per token."
            )
        for tag in its_tags:
            if is_missing(tag) or not isinstance(tag, str | int | np.integer):
                raise ValueError(f"y[{number}] has the tag {tag!r:.40}, expected a string or a number.")
            known[str(tag)] = tag
        rows.append((tokens, its_tags))
    return rows, known


def _refuse_missing(y: Any) -> None:
    """Refuse labels that are missing before scikit-learn sorts them, which None and text cannot be."""
    if y is None:
        raise ValueError("y is None, expected labels.")
    if hasattr(y, "toarray"):  # a sparse matrix
        return
    values = y if isinstance(y, list | tuple) else np.asarray(y, object)
    missing = next((number for number, label in enumerate(values) if is_missing(label)), None)
    if missing is not None:
        raise ValueError(f"y[{missing}] is a missing value, expected a label.")


def _require_samples(texts: list[Any]) -> list[Any]:
    if not texts:
        raise ValueError("X has 0 samples, expected 1 or more texts.")
    return texts


@contextmanager
def _raises_value_errors() -> Iterator[None]:
    """Raise our errors as scikit-learn's kind, ValueError; UsageError is one already."""
    try:
        yield
    except (UsageError, MissingExtraError):
        raise
    except PolysemeError as problem:
        raise ValueError(str(problem)) from problem
