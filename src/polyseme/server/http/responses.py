"""What answers look like: pydantic models, from which /docs and openapi.json are made.

    server.http.responses  ->  server.http.openapi  ->  /docs, openapi.json

They describe, and nothing more: an answer is written without them (server.http.rendering), which is
faster; a test
holds the answers of all routes against them. Fields with None as their default may be absent.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

Vector = list[float]
Matrix = list[Vector]


class TokenPlace(BaseModel):
    """A token, and its characters in the text."""

    text: str
    start: int
    end: int
    sentence: int = Field(description="The number of its sentence in the text, from 0.")


class TokenizeResult(BaseModel):
    """Tokens."""

    tokens: list[list[TokenPlace]] = Field(description="Those of each text, with their places in it.")


class EmbedResult(BaseModel):
    """Vectors of texts."""

    vectors: list[Vector] = Field(description="One a text.")
    size: int = Field(description="How many values a vector has.")


class EmbedAllResult(BaseModel):
    """Vectors of tokens."""

    tokens: list[list[str]] = Field(description="Those of each text.")
    vectors: list[Matrix | list[Matrix]] = Field(
        description="Of each text, a vector for each token; with layer all, a list of such vectors a layer."
    )


class TextScore(BaseModel):
    """How likely a text is: natural logarithms of probabilities."""

    tokens: list[str]
    forward: float = Field(description="Of the whole text, read from the left.")
    backward: float = Field(description="Of the whole text, read from the right.")
    mean: float = Field(description="Of both.")
    token_scores: list[float] = Field(description="Of each token, the mean of both.")
    unknown: list[bool] = Field(description="Of each token, whether the model does not know it.")


class ScoreResult(BaseModel):
    """Scores."""

    scores: list[TextScore]


class Fit(BaseModel):
    """A word that fits."""

    word: str
    probability: float


class Fits(BaseModel):
    """Words that fit, by one measure."""

    best: list[Fit] = Field(description="The most probable first.")
    rank: int | None = Field(description="Of the word that stood there, from 1; null if it is not known.")


class SubstitutesResult(BaseModel):
    """Words for a place of a sentence."""

    tokens: list[str]
    place: int
    forward: Fits = Field(description="Judged by what stands to the left.")
    backward: Fits = Field(description="Judged by what stands to the right.")
    joint: Fits = Field(description="Judged by both.")


class NearWord(BaseModel):
    """A word near to another."""

    word: str
    cosine: float
    count: int = Field(description="Its usages.")


class UsagePlace(BaseModel):
    """A word in its sentence."""

    word: str
    sentence: str
    start: int = Field(description="The first character of the word in the sentence.")
    stop: int = Field(description="The character behind the word.")
    document: str = Field(description="The name of its file.")
    line: int


class NearUsage(UsagePlace):
    """A usage near to another."""

    cosine: float
    own: Matrix | None = Field(None, description="With layers: products of its layers with each other.")
    cross: Matrix | None = Field(None, description="With layers: products of the word's layers with its own.")


class OwnProducts(BaseModel):
    """The layers of the word that was asked for."""

    own: Matrix = Field(description="Products of its layers with each other.")


class NearestResult(BaseModel):
    """The nearest words, or usages where a sentence was given."""

    words: list[NearWord] | None = Field(None, description="Without a sentence.")
    usages: list[NearUsage] | None = Field(None, description="With a sentence.")
    others: list[NearUsage] | None = Field(
        None, description="With layers: further usages, which are nearest in the token layer."
    )
    query: OwnProducts | None = Field(None, description="With layers.")


class SenseGroup(BaseModel):
    """One sense."""

    share: float
    count: int
    neighbours: list[str] = Field(description="Words that lie nearest to its centre.")
    examples: list[str] = Field(description="The sentences nearest to its centre, the word in brackets.")
    documents: dict[str, float] = Field(description="Its share of the usages in each document.")


class MapUsage(UsagePlace):
    """A usage on the map."""

    x: float
    y: float
    sense: int = Field(description="The number of its sense, from 0.")


class SensesResult(BaseModel):
    """The senses of a word."""

    word: str
    stability: float = Field(description="How surely the same groups come back from a part of the usages.")
    silhouette: float = Field(description="How far the groups lie apart.")
    documents: dict[str, int] = Field(description="Usages in each document.")
    senses: list[SenseGroup] = Field(description="The most frequent first.")
    usages: list[MapUsage] = Field(description="Some of the usages, on a map.")


class WordChange(BaseModel):
    """How a word moved."""

    word: str
    counts: Annotated[list[int], Field(min_length=2, max_length=2)] = Field(
        description="Usages in both indexes."
    )
    distance: float
    prototype: float = Field(description="The distance of the mean vectors, by which words are ranked.")
    shift: float = Field(description="How much the shares of the senses differ, from 0 to 1.")
    shares: list[Annotated[list[float], Field(min_length=2, max_length=2)]] = Field(
        description="Of each sense, its shares in both indexes."
    )
    p: float = Field(description="How often chance moves the prototypes as far.")
    shift_p: float
    distance_p: float
    neighbours: list[list[str]] = Field(description="Of each sense, words that lie nearest to its centre.")
    changed: bool = Field(description="Whether the senses shifted by more than chance.")


class ChangeResult(BaseModel):
    """How words moved."""

    changes: list[WordChange] = Field(description="The greatest first.")
    complete: bool = Field(description="False where the time was over before all words were looked at.")


class SimilarityResult(BaseModel):
    """How near two texts are."""

    cosine: float | None = Field(description="Of the mean vectors; null where a text has no words.")
    tokens: list[list[str]]
    matrix: Matrix = Field(description="Cosines of the words of the first text with those of the second.")


class PredictResult(BaseModel):
    """Predictions."""

    predictions: list[dict[str, Any]] = Field(
        description="One per question, as the task has it: tokens, and a label, labels, tags or a number."
    )


class OpenAiVector(BaseModel):
    """A vector, as OpenAI has it."""

    object: Literal["embedding"]
    index: int
    embedding: Vector | str = Field(description="Numbers; or base64 of float32, little-endian.")


class OpenAiUsage(BaseModel):
    """What was read."""

    prompt_tokens: int
    total_tokens: int


class OpenAiResult(BaseModel):
    """Vectors, as OpenAI has them."""

    object: Literal["list"]
    data: list[OpenAiVector]
    model: str
    usage: OpenAiUsage


class OpenAiModel(BaseModel):
    """A model, as OpenAI has it."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class OpenAiModels(BaseModel):
    """Models, as OpenAI has them."""

    object: Literal["list"]
    data: list[OpenAiModel]


class HealthResult(BaseModel):
    """The server is ready."""

    status: Literal["ready"]


class CurvePoint(BaseModel):
    """Held-out perplexities at one moment of training."""

    tokens: int = Field(description="Read so far.")
    forward: float
    backward: float
    mean: float


class ModelInfo(BaseModel):
    """The model."""

    name: str
    path: str
    layers: int
    size: int = Field(description="Of a vector.")
    segment: str = Field(description="How texts are cut.")
    language: str | None
    vocabulary: int | None
    has_softmax: bool = Field(description="Whether it can predict words.")
    facts: list[list[str]] = Field(description="Names and values.")
    card: str | None = Field(description="Markdown.")
    curves: list[CurvePoint]


class IndexExamples(BaseModel):
    """Words to try, and a sentence for each."""

    words: list[str]
    texts: list[str]


class IndexInfo(BaseModel):
    """An index."""

    name: str
    path: str
    usages: int
    words: int
    layer: Any
    view: str = Field(description="word, or place: what stands around the word.")
    documents: list[str]
    examples: IndexExamples


class TaskInfo(BaseModel):
    """A task model."""

    name: str
    task: str
    labels: list[str]


class InfoResult(BaseModel):
    """What is served."""

    version: str
    model: ModelInfo
    indexes: list[IndexInfo]
    tasks: list[TaskInfo]
    limits: dict[str, float] = Field(description="By the names of the options of polyseme serve.")
    key: bool = Field(description="Whether requests need a key.")


class Refusal(BaseModel):
    """Why there is no answer."""

    error: str = Field(description="One sentence; it never repeats what was sent.")
    error_type: str
    code: str | None = Field(None, description="Which of the refusals of its kind it is.")
    values: dict[str, Any] | None = Field(None, description="With a code: what the sentence tells.")
