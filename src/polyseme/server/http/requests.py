"""What requests look like: pydantic models, from which /docs is made too.

a request's JSON  ->  server.http.requests  ->  server.verbs
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

MOST = 1000  # answers to one question
HEAVIEST = 1e6  # weight of a layer: a mixture stays far from the largest float32


def _whole(text: str) -> str:
    """Text that can be written again: half of a surrogate pair cannot."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        raise ValueError("half of a surrogate pair is no character") from None
    return text


Text = Annotated[str, AfterValidator(_whole)]
Token = Annotated[str, AfterValidator(_whole), Field(min_length=1, pattern=r"^\S+$")]
Texts = Annotated[list[Text], Field(min_length=1, description="Each is read as one sentence.")]
Count = Annotated[int, Field(ge=1, le=MOST, strict=True)]
Size = Annotated[int, Field(ge=1, strict=True)]
Number = Annotated[int, Field(ge=0, strict=True)]
Weight = Annotated[float, Field(ge=-HEAVIEST, le=HEAVIEST)]  # neither infinite nor NaN
Layer = Annotated[
    Literal["mean", "top"] | Number | Annotated[list[Weight], Field(min_length=1)],
    Field(description="mean, top, a number from 0 (the token layer), or a weight for each layer."),
]
AnyLayer = Layer | Literal["all"]


class Request(BaseModel):
    """What all requests have in common: other keys than those named are refused."""

    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class TokenizeRequest(Request):
    """Texts to cut into tokens, sentence by sentence."""

    texts: Annotated[list[Text], Field(min_length=1, description="Of any number of sentences.")]
    index: Text | None = Field(None, description="Cut as this index was; else as the model cuts.")


class EmbedRequest(Request):
    """Texts, one vector each."""

    texts: Texts
    layer: Layer = "mean"
    pool: Literal["mean", "max", "first", "last", "sum"] = "mean"


class EmbedAllRequest(Request):
    """Texts, one vector a token."""

    texts: Texts
    layer: AnyLayer = "mean"


class ScoreRequest(Request):
    """Texts, and how likely the model finds them."""

    texts: Texts


class MarkedSentence(Request):
    """A word in a sentence: in a text, or at a place among tokens."""

    text: Text | None = None
    tokens: list[Token] | None = None
    place: Number | None = None

    @model_validator(mode="after")
    def _one_of_both(self) -> MarkedSentence:
        if self.tokens is not None and (self.place is None or self.place >= len(self.tokens)):
            raise ValueError("tokens need a place among them")
        if self.tokens is not None and self.text is not None:
            raise ValueError("give a text, or tokens with a place, not both")
        return self


class SubstitutesRequest(MarkedSentence):
    """A sentence with one word in [brackets], or tokens and a place."""

    k: Count = 10

    @model_validator(mode="after")
    def _something(self) -> SubstitutesRequest:
        if self.text is None and self.tokens is None:
            raise ValueError("give a text with a word in [brackets], or tokens with a place")
        return self


class NearestRequest(MarkedSentence):
    """A word, and for usages in its sense the sentence that it stands in."""

    word: Token
    index: Text | None = None
    k: Count = 10
    min_count: Count = 1
    min_chars: Count = 1
    which: Count | None = None
    same_word: bool = False
    approximate: bool = False
    layers: bool = Field(
        False,
        description="Products of all layers, too, to mix them otherwise. With any word, `others` are the k "
        "usages that are nearest without context, as far as they are not among `usages`.",
    )


class SensesRequest(Request):
    """A word of an index."""

    word: Token
    index: Text | None = None
    most: Annotated[int, Field(ge=1, le=20, strict=True)] = 6


class ChangeRequest(Request):
    """Two indexes of one model, and words of both; without words, the frequent ones that moved most."""

    one: Text
    other: Text
    words: Annotated[list[Token], Field(min_length=1, max_length=100)] | None = None
    k: Count = 20


class SimilarityRequest(Request):
    """Two texts."""

    texts: Annotated[list[Text], Field(min_length=2, max_length=2)]
    layer: Layer = "mean"


class PredictRequest(Request):
    """Questions to a task model: texts, or pairs of texts."""

    task: Text | None = None
    texts: Annotated[
        list[Text | Annotated[list[Text], Field(min_length=2, max_length=2)]], Field(min_length=1)
    ]


class OpenAiRequest(BaseModel):
    """As OpenAI has it, null for what is left out too; what it may hold besides is let pass."""

    model_config = ConfigDict(hide_input_in_errors=True)
    input: Text | Annotated[list[Text], Field(min_length=1)]
    model: Text
    encoding_format: Literal["float", "base64"] | None = None
    dimensions: Size | None = None
