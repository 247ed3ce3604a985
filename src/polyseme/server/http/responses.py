"""Schemas of responses, for /docs and openapi.json.

    server.http.responses  ->  server.http.openapi  ->  /docs, openapi.json

They document only: responses are written without them (server.http.rendering), which is faster. A test
validates the responses of all routes against them. Fields whose default is None may be absent.
"""

from __future__ import annotations

from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field, RootModel

from polyseme.search.change import GroupState
from polyseme.search.senses import SenseKind
from polyseme.search.similarity import TextKind

Vector = list[float]
Matrix = list[Vector]


class TokenOffsets(BaseModel):
    """A token and its offsets in the text."""

    text: str
    start: int
    end: int
    sentence: int = Field(description="Number of its sentence in the text, from 0.")


class TokenizeResponse(BaseModel):
    """Tokens."""

    tokens: list[list[TokenOffsets]] = Field(description="The tokens of each text.")


class EmbedResponse(BaseModel):
    """Vectors of texts."""

    vectors: list[Vector] = Field(description="One vector per text.")
    size: int = Field(description="Number of values in a vector.")


class TeiResponse(RootModel[Matrix]):
    """To a request with `inputs`: one vector per text."""


class EmbedAllResponse(BaseModel):
    """Vectors of tokens."""

    tokens: list[list[str]] = Field(description="The tokens of each text.")
    vectors: list[Matrix | list[Matrix]] = Field(
        description='Per text, one vector per token; with layer "all", such a list per layer.'
    )


class TextScore(BaseModel):
    """Natural log probabilities of a text."""

    tokens: list[str]
    forward: float = Field(description="Of the whole text, by the forward model.")
    backward: float = Field(description="Of the whole text, by the backward model.")
    mean: float = Field(description="Mean of forward and backward.")
    token_scores: list[float] = Field(description="Per token, the mean of both directions.")
    unknown: list[bool] = Field(description="Per token, whether it is missing from the vocabulary.")


class ScoreResponse(BaseModel):
    """Scores."""

    scores: list[TextScore] = Field(description="One score per text.")


class SentenceOfSummary(BaseModel):
    """A sentence of a summary."""

    text: str = Field(description="As it is in the text.")
    number: int = Field(description="Of the sentence in the text, from 0.")
    rank: float = Field(description="In the graph of sentences; 1 for the most central one.")
    offsets: tuple[int, int] = Field(description="Start and stop in characters of the text.")


class SummariseResponse(BaseModel):
    """A summary."""

    text: str = Field(description="The summary as one text.")
    sentences: list[SentenceOfSummary] = Field(description="Its sentences, in the order of the text.")
    total: int = Field(description="How many sentences the text has.")


class SubstituteWord(BaseModel):
    """A word that fits."""

    word: str
    probability: float


class SubstituteRanking(BaseModel):
    """Words that fit, by one ranking."""

    best: list[SubstituteWord] = Field(description="Most probable first.")
    rank: int | None = Field(description="Rank of the original word, from 1; null if it is unknown.")


class SubstitutesResponse(BaseModel):
    """Words that fit a position of a sentence."""

    tokens: list[str]
    position: int
    forward: SubstituteRanking = Field(description="Given the tokens to the left.")
    backward: SubstituteRanking = Field(description="Given the tokens to the right.")
    joint: SubstituteRanking = Field(description="Given both sides.")


class WordCosine(BaseModel):
    """A word, and how near it is."""

    word: str
    cosine: float


class GenerateResponse(BaseModel):
    """A prompt and its continuation."""

    text: str = Field(description="The prompt and the new words as readable text.")
    tokens: list[str] = Field(description="The new words.")
    log_probs: list[float] = Field(description="Natural log probability of each, whatever the temperature.")
    ended: bool = Field(description="Whether the model ended the sentence.")


class NeighbourWord(BaseModel):
    """A word near another."""

    word: str
    cosine: float
    count: int = Field(description="Number of its usages.")


class UsageLocation(BaseModel):
    """A usage: a word in its sentence."""

    number: int = Field(description="Of the usage in the index, for /passage.")
    word: str
    sentence: str
    start: int = Field(description="Offset of the first character of the word in the sentence.")
    stop: int = Field(description="Offset after the last character of the word.")
    document: str = Field(description="Name of its file.")
    line: int
    title: str = Field(description="Title of its chapter, or empty.")


class NeighbourUsage(UsageLocation):
    """A usage near another."""

    cosine: float
    own: Matrix | None = Field(None, description="With layers: dot products of its layers with each other.")
    cross: Matrix | None = Field(None, description="With layers: dot products of the query's and its layers.")


class QueryProducts(BaseModel):
    """The layers of the query."""

    own: Matrix = Field(description="Dot products of its layers with each other.")


class NeighbourWordsGroup(BaseModel):
    """The words nearest to a word in a group of documents."""

    group: str
    count: int = Field(description="Number of usages of the word in the group.")
    words: list[WordCosine] = Field(description="Nearest first.")


class NearestResponse(BaseModel):
    """The nearest words, or the nearest usages if the request has a context."""

    groups: list[NeighbourWordsGroup] | None = Field(None, description="With `by`.")

    words: list[NeighbourWord] | None = Field(None, description="Without a context.")
    usages: list[NeighbourUsage] | None = Field(None, description="With a context.")
    others: list[NeighbourUsage] | None = Field(
        None, description="With layers: further usages, nearest in the token layer."
    )
    query: QueryProducts | None = Field(None, description="With layers.")


class SenseSummary(BaseModel):
    """One sense, or one group of usages, in short."""

    share: float
    count: int
    neighbours: list[str] = Field(description="Words nearest to its centre.")
    collocates: list[str] = Field(description="Content words typical of its contexts.")


class LineOfConcordance(BaseModel):
    """A usage with the text around it."""

    number: int = Field(description="Of the usage in the index, for /passage.")
    left: str
    word: str = Field(description="As it is written in the text.")
    right: str
    document: str = Field(description="Name of its file.")
    line: int
    title: str = Field(description="Title of its chapter, or empty.")
    sense: int | None = Field(description="Number of its sense, from 0; null unless sorted by it.")
    cosine: float | None = Field(description="To the chosen usage; null unless sorted by similarity.")


class CountInDocument(BaseModel):
    """How often the word is used in a document, or in a group of documents."""

    name: str
    count: int
    total: int = Field(description="Usages of all words.")
    per_10_000: float


class ConcordanceResponse(BaseModel):
    """Usages of a word as lines."""

    word: str
    total: int = Field(description="How many lines there are in all.")
    start: int = Field(description="Which of them is the first here, from 0.")
    lines: list[LineOfConcordance]
    documents: list[CountInDocument] = Field(description="At most 1,000.")
    kind: SenseKind | None = Field(description="What the senses are; null unless sorted by them.")
    senses: list[SenseSummary] | None = Field(description="Most frequent first; null unless sorted by them.")


class CollocateOfWord(BaseModel):
    """A word that stands near another."""

    word: str
    count: int = Field(description="How often it stands near.")
    left: int
    right: int
    total: int = Field(description="How often it is used in all.")
    expected: float = Field(description="How often it would stand near by chance.")
    log_likelihood: float
    senses: list[int] = Field(description="How often near each sense; empty unless asked for.")


class CollocatesResponse(BaseModel):
    """Words that stand near a word more often than elsewhere."""

    word: str
    collocates: list[CollocateOfWord] = Field(description="Highest log-likelihood first.")
    kind: SenseKind | None = Field(description="What the senses are; null unless asked for.")
    senses: list[SenseSummary] | None = Field(description="Most frequent first; null unless asked for.")


class ParagraphOfText(BaseModel):
    """A paragraph."""

    line: int = Field(description="Where it begins in its file.")
    text: str


class PassageResponse(BaseModel):
    """The text around a usage."""

    number: int
    word: str
    document: str = Field(description="Name of its file.")
    title: str
    line: int
    paragraphs: list[ParagraphOfText]
    paragraph: int = Field(description="Which paragraph has the usage, from 0.")
    start: int = Field(description="Offset of the word in that paragraph.")
    stop: int
    before: bool = Field(description="Whether the document has text before.")
    after: bool = Field(description="Whether it has text after.")
    complete: bool = Field(description="False if the index was built of selected words.")


class SenseGroup(BaseModel):
    """One sense, or one group of usages."""

    share: float
    count: int
    neighbours: list[str] = Field(description="Words nearest to its centre.")
    collocates: list[str] = Field(description="Content words typical of its contexts, by log-likelihood.")
    before: list[str] = Field(description="Words that stand typically before it.")
    after: list[str] = Field(description="Words that stand typically after it.")
    examples: list[str] = Field(description="Sentences nearest to its centre, with the word in [brackets].")
    documents: dict[str, float] = Field(description="Its share of the usages in each document.")


class MapUsage(UsageLocation):
    """A usage on the map."""

    x: float
    y: float
    sense: int = Field(description="Number of its sense or group, from 0.")


class MapPoint(UsageLocation):
    """A usage as a point."""

    x: float
    y: float
    group: str = Field(description="What `by` names: a word, or a word and its sense or documents.")


class MapResponse(BaseModel):
    """Usages as points in two dimensions."""

    usages: list[MapPoint] = Field(description="At most 400 of each word, drawn at random.")


class SenseEvidence(BaseModel):
    """How much groups of usages differ in meaning."""

    topic: float = Field(description="Agreement of the topics in two parts of the context, from -1 to 1.")
    p: float = Field(description="p-value of topic, from a permutation test.")
    usual: float = Field(description="The same correlation around words that are used alike.")
    overlap: float = Field(description="Share of nearest words that the groups have in common.")
    grammar: float = Field(
        description="How well grammatical position tells the group: 0 for chance, 1 for certainty."
    )
    is_grammatical: bool = Field(description="Whether the groups are mainly grammatical positions.")


class SensesResponse(BaseModel):
    """The senses of a word, or one group of its usages."""

    word: str
    kind: SenseKind = Field(description="Senses if there is evidence that they are.")
    candidates: int = Field(description="Number of stable groups, with evidence or without.")
    evidence: SenseEvidence | None = Field(description="Of the stable groups; null if there is one.")
    stability: float = Field(description="How well the groups are reproduced from samples of the usages.")
    silhouette: float = Field(description="How well the groups are separated.")
    documents: dict[str, int] = Field(description="Number of usages in each document.")
    senses: list[SenseGroup] = Field(description="Most frequent first.")
    usages: list[MapUsage] = Field(description="A sample of the usages, as a map.")


class Companionship(BaseModel):
    """Another person, and how often both occur together."""

    name: str
    paragraphs: int = Field(description="Number of paragraphs that have both.")


class PersonCosine(BaseModel):
    """Another person, and how alike the names are used."""

    name: str
    cosine: float


class PersonPassage(BaseModel):
    """A part of a paragraph that mentions a person."""

    text: str
    document: str
    line: int


class PersonOfIndex(BaseModel):
    """A person."""

    name: str
    aliases: list[str]
    count: int = Field(description="Number of mentions.")
    group: int = Field(description="Group of persons who often occur together, from 0.")
    documents: list[list[int]] = Field(description="Pairs: position of a document, mentions in it.")
    companions: list[Companionship] = Field(description="Most paragraphs first.")
    nearest: list[PersonCosine] = Field(description="Whose names are used most alike, by mean vectors.")
    passages: list[PersonPassage] = Field(description="Where the person is mentioned most.")


class CharactersResponse(BaseModel):
    """The persons of an index."""

    language: str
    documents: list[str] = Field(description="Names of the documents, in the order of the text.")
    persons: list[PersonOfIndex] = Field(description="Most mentions first.")
    pairs: list[list[int]] = Field(description="Positions of two persons, their paragraphs and sentences.")


class TimelineSense(BaseModel):
    """A sense that is counted in each period."""

    share: float
    count: int
    neighbours: list[str] = Field(description="Words nearest to its centre.")
    collocates: list[str] = Field(description="Content words typical of its contexts.")


Bounds = Annotated[list[float], Field(min_length=2, max_length=2)]


class PeriodOfTimeline(BaseModel):
    """A word in a document, or in a group of documents."""

    name: str
    documents: str = Field(description="Selects its documents, for `documents` of other routes.")
    total: int = Field(description="Number of usages of all words.")
    count: int = Field(description="Number of usages of the word.")
    frequency: float = Field(description="count per million usages.")
    interval: Bounds = Field(description="95% interval of frequency.")
    shares: list[float] = Field(description="Per sense; empty if the period has no usage.")
    share_intervals: list[Bounds] = Field(description="95% interval of each share.")


class TimelineResponse(BaseModel):
    """A word over documents or years."""

    word: str
    by: str = Field(description="What the periods are.")
    choices: list[str] = Field(description="What `by` could be.")
    kind: SenseKind | None = Field(description="What is counted; null if the word has too few usages.")
    senses: list[TimelineSense] = Field(description="Most frequent first.")
    periods: list[PeriodOfTimeline] = Field(description="In order.")


class ChangedGroup(BaseModel):
    """A group of usages in two indexes."""

    state: GroupState
    shares: Annotated[list[float], Field(min_length=2, max_length=2)]
    neighbours: list[str]
    examples: list[str] = Field(description="Sentences, with the word in [brackets].")


class WordChange(BaseModel):
    """The change of a word between two indexes."""

    word: str
    counts: Annotated[list[int], Field(min_length=2, max_length=2)] = Field(
        description="Number of usages in both indexes."
    )
    distance: float = Field(description="Mean distance between usages of the two indexes.")
    prototype: float = Field(description="Distance of the mean vectors; words are ranked by it.")
    interval: Annotated[list[float], Field(min_length=2, max_length=2)] = Field(
        description="95% confidence interval of prototype."
    )
    shift: float = Field(description="Difference of the shares of the groups of usages, from 0 to 1.")
    shares: list[Annotated[list[float], Field(min_length=2, max_length=2)]] = Field(
        description="Per group of usages, its shares in both indexes."
    )
    p: float = Field(description="p-value of prototype.")
    q: float = Field(description="p corrected for the number of words compared.")
    usual: float = Field(description="Median prototype of words of similar frequency.")
    percentile: float | None = Field(description="Share of words of similar frequency that changed less.")
    shift_p: float = Field(description="p-value of shift.")
    distance_p: float = Field(description="p-value of distance.")
    groups: list[ChangedGroup] = Field(description="Groups of usages, with examples.")
    neighbours: list[list[str]] = Field(description="Per group, the words nearest to its centre.")
    changed: bool = Field(description="Whether it changed by more than chance and more than is usual.")


class ChangeResponse(BaseModel):
    """Changes of words."""

    changes: list[WordChange] = Field(description="Greatest change first.")
    complete: bool = Field(description="False if time ran out before all words were compared.")


class UsualCosinesOfIndex(BaseModel):
    """Quantiles of cosines from 0 to 100%, in steps of 5%."""

    same_word: list[float] = Field(description="Of two usages of one content word.")
    random: list[float] = Field(description="Of usages of two different content words.")


class SimilarityResponse(BaseModel):
    """The similarity of texts."""

    kind: TextKind = Field(description="What was compared.")
    cosines: Matrix = Field(description="One row and one column per text.")
    odd_one_out: str | None = Field(description="Of three or more texts the one farthest from their mean.")
    tokens: list[list[str]] = Field(description="The tokens of each text.")
    cosine: float | None = Field(description="Of two texts; null if there are more.")
    matrix: Matrix | None = Field(
        description="Cosines of the tokens of two texts, one row per token of the first; null for more texts."
    )
    usual: UsualCosinesOfIndex | None = Field(
        description="With an index: what cosines are usual; null for words."
    )


class PredictResponse(BaseModel):
    """Predictions."""

    predictions: list[dict[str, Any]] = Field(
        description="One per question, as the task defines it: tokens, and a label, labels, tags or a number."
    )


class Perplexities(BaseModel):
    """Perplexities by direction; null if nothing was predicted."""

    forward: float | None
    backward: float | None
    mean: float | None


class EvaluateResponse(BaseModel):
    """How well the language model predicts texts."""

    perplexity: Perplexities
    perplexity_of_known_words: Perplexities = Field(description="Of words in the vocabulary alone.")
    sentences: int
    words: int
    targets: int = Field(description="Predictions of one direction: words, and the end of each sentence.")
    unknown: int = Field(description="Words that are missing from the vocabulary.")
    unknown_rate: float


class LabelScores(BaseModel):
    """The scores of one label."""

    label: str
    precision: float
    recall: float
    f1: float
    count: int


class Confusion(BaseModel):
    """Which labels are taken for which."""

    labels: list[str]
    counts: list[list[int]] = Field(description="Labels down, predictions across.")


class TaskScores(BaseModel):
    """To a request with `examples`: the scores of a task model."""

    main: str = Field(description="Name of the metric that training maximises.")
    metrics: dict[str, float | None]
    labels: list[LabelScores]
    confusion: Confusion
    notes: list[str] | None = None


class AccuracyOfSenses(BaseModel):
    """How many predicted senses are right."""

    accuracy: float
    accuracy_by_word: float = Field(description="Mean of the accuracies of the words.")
    baseline: float = Field(description="Accuracy of the most frequent sense of each word.")
    unseen: float = Field(description="Share of usages whose word has no examples.")
    count: int


class DisambiguateResponse(BaseModel):
    """Predicted senses."""

    senses: list[str | None] = Field(description="Per usage of test; null if its word has no examples.")
    scores: AccuracyOfSenses | None = Field(description="Null if no usage of test has a sense.")


class OpenAiVector(BaseModel):
    """A vector in OpenAI's format."""

    object: Literal["embedding"]
    index: int
    embedding: Vector | str = Field(description="Numbers, or base64 of little-endian float32.")


class OpenAiUsage(BaseModel):
    """Number of tokens."""

    prompt_tokens: int
    total_tokens: int


class OpenAiResponse(BaseModel):
    """Vectors in OpenAI's format."""

    object: Literal["list"]
    data: list[OpenAiVector]
    model: str
    usage: OpenAiUsage


class OpenAiModel(BaseModel):
    """A model in OpenAI's format."""

    id: str
    object: Literal["model"]
    created: int
    owned_by: str


class OpenAiModelsResponse(BaseModel):
    """Models in OpenAI's format."""

    object: Literal["list"]
    data: list[OpenAiModel]


class OpenAiError(BaseModel):
    """What is wrong, in OpenAI's format."""

    message: str = Field(description="One sentence; it never repeats the request.")
    type: Literal["invalid_request_error", "rate_limit_error", "server_error"]
    param: str | None = Field(description="The field at fault.")
    code: str | None = Field(description="Stable name of this error.")


class OpenAiErrorResponse(BaseModel):
    """An error in OpenAI's format."""

    error: OpenAiError


class HealthResponse(BaseModel):
    """The server is ready."""

    status: Literal["ready"]


class CurvePoint(BaseModel):
    """Validation perplexities at one point of training."""

    tokens: int = Field(description="Tokens trained on so far.")
    forward: float
    backward: float
    mean: float


class ModelInfo(BaseModel):
    """The model."""

    name: str
    path: str
    layers: int
    size: int = Field(description="Number of values in a vector.")
    segment: str = Field(description="Segmentation of texts.")
    language: str | None
    vocabulary: int | None = Field(description="Number of words.")
    has_softmax: bool = Field(description="Whether the model can predict words.")
    facts: list[list[str]] = Field(description="Pairs of name and value.")
    card: str | None = Field(description="The model card, Markdown.")
    curves: list[CurvePoint] = Field(description="Learning curve of pretraining.")


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
    view: str = Field(description="word, or context: the states around the word.")
    documents: list[str]
    examples: IndexExamples


class TaskInfo(BaseModel):
    """A task model."""

    name: str
    path: str
    task: str
    labels: list[str]
    texts: int = Field(description="How many texts a question has.")


class InfoResponse(BaseModel):
    """A model, its indexes and task models, and what the server has besides."""

    version: str
    model: ModelInfo
    indexes: list[IndexInfo]
    tasks: list[TaskInfo]
    models: list[str] = Field(description="Names of all models of this server; the first is the default.")
    limits: dict[str, float] = Field(description="By the names of the options of polyseme serve.")
    key: bool = Field(description="Whether requests need an API key.")
    workspace: bool = Field(description="Whether texts may be sent to /workspace, to train models on them.")


class ErrorResponse(BaseModel):
    """An error."""

    error: str = Field(description="One sentence; it never repeats the request.")
    error_type: str
    code: str | None = Field(None, description="Stable name of this error.")
    values: dict[str, Any] | None = Field(None, description="With a code: the values in the sentence.")
