"""Schemas of requests: pydantic models, which /docs shows, too.

    a request's JSON  ->  server.http.requests  ->  server.verbs

Fields have the names and defaults of the arguments in `polyseme.api`; tests/server/test_parity.py compares.
"""

from __future__ import annotations

import json
from typing import Annotated, Any, Literal

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    Tag,
    model_validator,
)
from pydantic_core import PydanticCustomError

from polyseme.choices import ConcordanceSort, Correction, Direction, MapMethod, Pool, UsageView

MAX_RESULTS = 1000  # per request
MAX_LINE = 1 << 40  # of the usages of an index
MAX_WIDTH = 500  # characters of text on each side of a word
IDS_INSTEAD_OF_TEXT = (
    "token ids instead of text. Send strings: the model has tokens of its own "
    "(OpenAIEmbeddings of LangChain: check_embedding_ctx_length=False)"
)
MAX_TEMPERATURE = 100.0  # draws all words alike
MAX_PRIOR = 100.0  # far above any that is useful: cosines are at most 1
MAX_LAYER_WEIGHT = 1e6  # keeps a mix far from the largest float32


def _check_encodable(text: str) -> str:
    """Refuse lone surrogates, which UTF-8 cannot encode."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair is not a character") from None
    return text


Text = Annotated[str, AfterValidator(_check_encodable)]
Token = Annotated[str, AfterValidator(_check_encodable), Field(min_length=1, pattern=r"^\S+$")]
Texts = Annotated[list[Text], Field(min_length=1, description="Each is read as one sentence.")]
Count = Annotated[int, Field(ge=1, le=MAX_RESULTS, strict=True)]
Size = Annotated[int, Field(ge=1, strict=True)]
Number = Annotated[int, Field(ge=0, strict=True)]
Weight = Annotated[float, Field(ge=-MAX_LAYER_WEIGHT, le=MAX_LAYER_WEIGHT)]  # neither infinite nor NaN
Layer = Annotated[
    Literal["mean", "top"] | Number | Annotated[list[Weight], Field(min_length=1)],
    Field(description="mean, top, a number from 0 (the token layer), or one weight per layer."),
]
JoinedLayer = Layer | Annotated[Literal["concat"], Field(description="All layers joined to one vector.")]
AnyLayer = JoinedLayer | Literal["all"]
ModelName = Annotated[
    Text | None,
    Field(description="Name of a model; that of the index or task model, or the first one, if left out."),
]
IndexName = Annotated[Text | None, Field(description="Name of an index; the first one if left out.")]
Results = Annotated[Count, Field(description="Number of results.")]


def _refuse_token_ids(value: Any) -> Any:
    """Refuse ids of another model's tokens, which some clients send instead of texts."""
    if isinstance(value, list) and value and all(isinstance(item, int | list) for item in value):
        raise PydanticCustomError("ids_instead_of_text", IDS_INSTEAD_OF_TEXT)
    return value


Inputs = Annotated[
    Text | Annotated[list[Text], Field(min_length=1)],
    BeforeValidator(_refuse_token_ids),
    Field(description="A text, or up to max_inputs of them."),
]
Dimensions = Annotated[
    Size | None,
    Field(description="Keep only the first values of each vector, and scale them to length 1."),
]


class Request(BaseModel):
    """Base of all requests, which may name a model: unknown fields are an error."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)
    model: ModelName = None


class TokenizeRequest(Request):
    """Texts to segment into sentences and tokens."""

    texts: Annotated[list[Text], Field(min_length=1, description="Each may have any number of sentences.")]
    index: Text | None = Field(None, description="Segment like this index; like the model if left out.")


class EmbedRequest(Request):
    """Texts to embed, one vector each."""

    texts: Texts
    layer: JoinedLayer = "mean"
    pool: Pool = "mean"
    direction: Direction = "both"


class TeiRequest(Request):
    """The same for clients of text-embeddings-inference; null means left out."""

    inputs: Inputs
    normalize: Annotated[bool | None, Field(description="Scale vectors to length 1.")] = True
    truncate: Annotated[
        bool | None, Field(description="Shorten texts of more than max_tokens tokens, instead of an error.")
    ] = False
    truncation_direction: Annotated[
        Literal["Right", "Left", "right", "left"] | None, Field(description="The end that is cut off.")
    ] = "Right"
    prompt_name: Annotated[None, Field(description="The model has no prompts.")] = None
    dimensions: Dimensions = None


def _name_embed_request(body: Any) -> str:
    """Tell the two kinds of requests to /embed apart."""
    return "TeiRequest" if isinstance(body, dict) and "inputs" in body else "EmbedRequest"


EmbedBody = Annotated[
    Annotated[EmbedRequest, Tag("EmbedRequest")] | Annotated[TeiRequest, Tag("TeiRequest")],
    Discriminator(_name_embed_request),
]


class EmbedAllRequest(Request):
    """Texts to embed, one vector per token."""

    texts: Texts
    layer: AnyLayer = "mean"
    direction: Direction = "both"


class ScoreRequest(Request):
    """Texts to score with the language model."""

    texts: Texts


class SummariseRequest(Request):
    """A text to summarise by its most central sentences."""

    text: Text
    sentences: Count = Field(3, description="Number of sentences.")
    diversity: Annotated[float, Field(ge=0, le=1)] = Field(
        0.3, description="0: most central sentences, even if alike; 1: as different as possible."
    )


class TokenPosition(Request):
    """A position in a list of tokens, for clients that have segmented the text before."""

    tokens: list[Token] | None = Field(None, description="A sentence as tokens, instead of text.")
    position: Number | None = Field(None, description="Index of the word among the tokens, from 0.")

    @model_validator(mode="after")
    def _check_position(self) -> TokenPosition:
        if self.tokens is not None and (self.position is None or self.position >= len(self.tokens)):
            raise ValueError("tokens need a position among them")
        return self


class SubstitutesRequest(TokenPosition):
    """A sentence with one word in [brackets], or tokens and a position."""

    sentence: Text | None = Field(None, description="With one word in [brackets].")
    k: Results = 10
    context: list[Text] = Field([], description="Sentences before this one.")
    following: list[Text] = Field([], description="Sentences after this one.")
    counts: dict[Token, Number] | None = Field(
        None, description="How often words occur, to discount frequent ones; by the vocabulary if left out."
    )

    @model_validator(mode="after")
    def _check_sentence(self) -> SubstitutesRequest:
        if (self.sentence is None) == (self.tokens is None):
            raise ValueError("give a sentence with a word in [brackets], or tokens with a position")
        return self


Selection = Annotated[
    Text | None,
    Field(description="Only these documents: numbers (1-20), titles, or year=1900-1950, with commas."),
]
Groups = Annotated[
    Text | None, Field(description="Group by document, or a field of the metadata: year, year/10.")
]


class NearestRequest(TokenPosition):
    """A word; with its context, usages in the same sense are searched instead of words."""

    word: Token
    context: Text | None = Field(
        None, description="A sentence that uses the word; [brackets] may mark it. Finds usages, not words."
    )
    index: IndexName = None
    k: Results = 10
    like: list[Token] = Field([], description="Words to add to the word.")
    unlike: list[Token] = Field([], description="Words to subtract from it.")
    min_count: Count = Field(1, description="Only words with at least this many usages.")
    min_chars: Count = Field(1, description="Only words with at least this many characters.")
    which: Count | None = Field(None, description="Which occurrence of the word in the context, from 1.")
    same_word: bool = Field(False, description="Only usages of the same word.")
    approximate: bool = Field(False, description="Use the graph of the index: faster, not exact.")
    layer: Layer | None = Field(None, description="Refuse an index of another layer.")
    documents: Selection = None
    by: Groups = None
    layers: bool = Field(
        False,
        description="Also return dot products of all layers, to mix them in other ways. Unless same_word is "
        "set, `others` are the k usages nearest in the token layer that are not among `usages`.",
    )

    @model_validator(mode="after")
    def _check_context(self) -> NearestRequest:
        if self.context is not None and self.tokens is not None:
            raise ValueError("give a context, or tokens with a position, not both")
        if self.tokens is not None and self.tokens[self.position or 0] != self.word:
            raise ValueError("the word is not the token at this position")
        return self


class GenerateRequest(Request):
    """A prompt for the forward language model to continue."""

    prompt: Annotated[Text, Field(description="How the text begins.")] = ""
    tokens: Annotated[Count, Field(description="Largest number of new tokens.")] = 50
    temperature: Annotated[
        float, Field(ge=0, le=MAX_TEMPERATURE, description="0 always takes the likeliest word.")
    ] = 1.0
    top_k: Annotated[Size | None, Field(description="Choose among this many words; all if left out.")] = None
    seed: Number = 0
    stop_at_end: Annotated[bool, Field(description="Stop when the model ends the sentence.")] = True


class MapRequest(Request):
    """Words of an index, to show their usages as points."""

    words: Annotated[Token | Annotated[list[Token], Field(min_length=1, max_length=20)], Field()]
    index: IndexName = None
    by: Annotated[
        Text, Field(description="Group by word, sense, document, or a field of the metadata: year/10.")
    ] = "word"
    method: MapMethod = "pca"
    documents: Selection = None


class SensesRequest(Request):
    """A word of an index."""

    word: Token
    index: IndexName = None
    max_senses: Annotated[int, Field(ge=1, le=20, strict=True)] = 6
    groups: Annotated[bool, Field(description="Return groups without evidence of senses, too.")] = False
    seed: Number = 0
    documents: Selection = None
    by: Groups = None


class CharactersRequest(Request):
    """An index, to find its persons."""

    index: IndexName = None
    k: Annotated[Count, Field(description="Largest number of persons.")] = 40
    documents: Selection = None


class TimelineRequest(Request):
    """A word of an index, to count over documents or years."""

    word: Token
    index: IndexName = None
    by: Annotated[
        Text | None,
        Field(description="document, document/10, or a field such as year/10; years or documents if null."),
    ] = None
    max_senses: Annotated[int, Field(ge=1, le=20, strict=True)] = 6
    groups: Annotated[bool, Field(description="Count groups without evidence of senses, too.")] = False
    seed: Number = 0
    documents: Selection = None


Window = Annotated[
    int, Field(ge=1, le=20, strict=True, description="Words on each side that are near, in the sentence.")
]
MaxSenses = Annotated[int, Field(ge=1, le=20, strict=True)]
LineNumber = Annotated[int, Field(ge=0, le=MAX_LINE, strict=True)]


class ConcordanceRequest(Request):
    """A word of an index, whose usages are listed as lines."""

    word: Token
    index: IndexName = None
    k: Results = 50
    start: Annotated[LineNumber, Field(description="How many lines to skip.")] = 0
    sort: ConcordanceSort = "document"
    usage: Annotated[LineNumber | None, Field(description="For similarity: the number of a usage.")] = None
    collocate: Annotated[Token | None, Field(description="Only lines with this word near the word.")] = None
    window: Window = 5
    width: Annotated[
        int, Field(ge=0, le=MAX_WIDTH, strict=True, description="Characters of text on each side.")
    ] = 60
    max_senses: MaxSenses = 6
    groups: Annotated[bool, Field(description="For sense: groups without evidence of senses, too.")] = False
    seed: Number = 0
    documents: Selection = None
    by: Groups = None


class CollocatesRequest(Request):
    """A word of an index, to find the words that stand near it."""

    word: Token
    index: IndexName = None
    k: Results = 30
    window: Window = 5
    min_count: Annotated[Count, Field(description="Only words that stand near this often.")] = 2
    all_words: Annotated[bool, Field(description="Function words, numbers and punctuation, too.")] = False
    senses: Annotated[bool, Field(description="Count by sense of the word.")] = False
    max_senses: MaxSenses = 6
    groups: Annotated[bool, Field(description="Groups without evidence of senses, too.")] = False
    seed: Number = 0
    documents: Selection = None


class PassageRequest(Request):
    """A usage of an index, to read the text around it."""

    usage: Annotated[LineNumber, Field(description="Its number, which lines and usages have.")]
    index: IndexName = None
    sentences: Annotated[
        int, Field(ge=0, le=MAX_RESULTS, strict=True, description="Sentences before and after it.")
    ] = 15


class ChangeRequest(Request):
    """Two indexes of one model, and words of both; without words, the frequent ones that changed most."""

    first: Text = Field(description="Name of an index.")
    second: Text = Field(description="Name of another index.")
    words: Annotated[list[Token], Field(max_length=100, description="All frequent words if empty.")] = []
    k: Annotated[Count, Field(description="Number of results if there are no words.")] = 30
    min_count: Annotated[
        Size, Field(description="Only words with this many usages in both, if there are no words.")
    ] = 20
    all_words: Annotated[bool, Field(description="Rank function words and numbers, too.")] = False
    seed: Number = 0
    documents: Selection = None
    against: Annotated[Text | None, Field(description="Only these documents of the second index.")] = None


class SimilarityRequest(Request):
    """Words, sentences, or usages, to compare."""

    texts: Annotated[
        list[Text],
        Field(min_length=2, description="Words, sentences, or usages, each with a word in [brackets]."),
    ]
    index: Text | None = Field(
        None, description="Compare in the space of this index; by the model if left out."
    )
    layer: Layer | None = Field(
        None,
        description="Layer of the model; a word alone is then a sentence. If left out, words are compared by "
        "their mean vectors, and the rest by the top layer.",
    )


class PredictRequest(Request):
    """Texts, or pairs of texts, for a task model."""

    task: Text | None = Field(None, description="Name of a task model; the first one if left out.")
    texts: Annotated[
        list[Text | Annotated[list[Text], Field(min_length=2, max_length=2)]], Field(min_length=1)
    ]


def _check_row(row: Any) -> Any:
    """Refuse lone surrogates in any value of a row."""
    try:
        _check_encodable(json.dumps(row, ensure_ascii=False))
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return row


Row = Annotated[list[Any] | dict[str, Any], AfterValidator(_check_row)]


class EvaluateRequest(Request):
    """Texts for the language model, or labelled examples for a task model."""

    texts: Annotated[
        list[Text] | None, Field(min_length=1, description="Each may have any number of sentences.")
    ] = None
    examples: Annotated[
        list[Row] | None,
        Field(
            min_length=1,
            description="Rows as train takes them: [text, label], [tokens, tags], or an object by column.",
        ),
    ] = None
    task: Text | None = Field(None, description="Name of a task model; the first one if left out.")

    @model_validator(mode="after")
    def _check_data(self) -> EvaluateRequest:
        if (self.texts is None) == (self.examples is None):
            raise ValueError("give texts for the language model, or examples for a task model")
        if self.task is not None and self.examples is None:
            raise ValueError("a task model needs examples")
        return self


class SenseExample(BaseModel):
    """A word in a sentence, and its sense if it is known."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)
    word: Token
    sentence: Annotated[Text, Field(description="With the word in [brackets].")]
    sense: Annotated[Text | None, Field(description="Empty or left out if it is not known.")] = None


class DisambiguateRequest(Request):
    """Examples of the senses of words, and usages whose senses are to be found."""

    train: Annotated[list[SenseExample], Field(min_length=1, description="With their senses.")]
    test: Annotated[
        list[SenseExample], Field(min_length=1, description="To predict; with senses, to score as well.")
    ]
    layer: JoinedLayer = "concat"
    view: UsageView = "sentence"
    space: Correction = "senses"
    prior: Annotated[
        Literal["auto"] | Annotated[float, Field(ge=0, le=MAX_PRIOR)],
        Field(description="Weight of how frequent a sense is in the examples."),
    ] = "auto"


class OpenAiRequest(BaseModel):
    """OpenAI's request; null means left out, and unknown fields are ignored."""

    model_config = ConfigDict(hide_input_in_errors=True)
    input: Inputs
    model: Text
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Dimensions = None
