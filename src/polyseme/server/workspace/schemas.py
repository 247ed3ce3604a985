"""Requests and responses of the routes of a workspace, which /docs shows, too.

    server.workspace.routes, server.workspace.corpus_folder  ->  server.workspace.schemas

What a client may choose has the names and defaults of the arguments of `api.pretrain` and `api.index`.
"""

from __future__ import annotations

from typing import Annotated, Literal, Self

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, model_validator

from polyseme.segmentations import Segmentation
from polyseme.server.http.requests import Text
from polyseme.server.http.responses import CurvePoint
from polyseme.text.encodings import check_encoding

MAX_TITLE = 80  # characters
MAX_EPOCHS = 1000
Preset = Literal["tiny", "novel", "small"]  # for one machine
DocumentKind = Literal["auto", "file", "block", "line", "chapters-zh", "chapters-en"]


def _check_title(title: str) -> str:
    """Refuse a title that nobody could see."""
    if not title.strip() or not title.isprintable():
        raise ValueError("a title is a line of letters")
    return title.strip()


class JobSettings(BaseModel):
    """What the server makes of the text of a corpus."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    train: bool = Field(
        default=True, description="Train a model; false: index the text with the model of base."
    )
    config: Preset = Field(default="novel", description="Preset of the training.")
    base: Annotated[Text, Field(max_length=200)] | None = Field(
        default=None, description="A model of this server to train further, or to use; see GET /workspace."
    )
    segment: Segmentation | None = Field(
        default=None, description="How to split text into tokens; left out: as base does, or by the text."
    )
    names: bool = Field(default=False, description="Make English names of several words one token.")
    documents: DocumentKind = Field(
        default="auto", description="What is a document; auto: chapters, if there are any."
    )
    encoding: Annotated[Text, Field(max_length=40), AfterValidator(check_encoding)] = Field(
        default="auto", description="The encoding of the files; auto detects it."
    )
    epochs: Annotated[float, Field(gt=0, le=MAX_EPOCHS)] | None = Field(
        default=None, description="How often the text is read; left out: as the preset does."
    )

    @model_validator(mode="after")
    def _has_a_model(self) -> Self:
        if not self.train and self.base is None:
            raise ValueError("without train, base must name a model")
        return self


class CreateCorpusRequest(BaseModel):
    """A new corpus."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    title: Annotated[Text, Field(min_length=1, max_length=MAX_TITLE), AfterValidator(_check_title)]


class CorpusFile(BaseModel):
    """A file of a corpus."""

    name: str
    bytes: int
    encoding: str | None = Field(description="The encoding that was detected; null for plain ASCII.")


class CorpusStatus(BaseModel):
    """A corpus, and how far it is."""

    name: str = Field(description="Its name in addresses: /corpora/NAME/nearest.")
    title: str
    created: float
    state: Literal["draft", "waiting", "running", "stopping", "paused", "failed", "ready"]
    files: list[CorpusFile]
    settings: JobSettings | None
    error: str | None = Field(description="Why the job failed, and what to do.")
    error_code: str | None = Field(description="The name of this reason, for programs that translate it.")
    error_values: dict[str, str | int | list[str]] = Field(description="The names and numbers in it.")
    stage: Literal["starting", "preparing", "training", "indexing"] | None
    done: float | None = Field(description="How much of the stage is done, in any unit.")
    total: float | None = Field(description="How much there is, in the same unit.")
    seconds_left: float | None = Field(description="Of the stage.")
    loss: float | None
    perplexity: float | None = Field(description="The best of the held-out text so far.")
    rate: float | None = Field(description="Tokens per second.")


class LossPoint(BaseModel):
    """The loss after some tokens."""

    tokens: float
    loss: float


class CorpusDetail(CorpusStatus):
    """A corpus with the curves of its training."""

    losses: list[LossPoint]
    validations: list[CurvePoint]


class WorkspaceChoices(BaseModel):
    """What a client may choose."""

    presets: list[str]
    bases: list[str]
    segmentations: list[str]
    documents: list[str]


class WorkspaceResponse(BaseModel):
    """All corpora of the workspace, the newest first."""

    corpora: list[CorpusStatus]
    choices: WorkspaceChoices
    limits: dict[str, int]


class TextReceipt(BaseModel):
    """How much of a file has arrived."""

    name: str
    received: int
    complete: bool


class DeletedCorpus(BaseModel):
    """A corpus that was deleted."""

    deleted: str
