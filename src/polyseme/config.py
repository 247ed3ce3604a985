"""Settings: frozen, checked, all mistakes reported at once.

    TOML or JSON, or a plain dict  ->  config  ->  formats, training, cli

People write TOML, the library saves JSON. What the program can count (words, characters, tokens) is
no setting. `nn.Module`s never see these classes: `formats.models.pretrained` hands them plain numbers.
"""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, Self, TypeVar

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    NonNegativeInt,
    PositiveFloat,
    PositiveInt,
    ValidationError,
    model_validator,
)

from polyseme.errors import ConfigError
from polyseme.segmentations import Segmentation

PUBLISHED_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))


class Settings(BaseModel):
    """Base of all settings: they cannot change, and unknown names are mistakes."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class CharsSettings(Settings):
    """A word read from its characters: embedding, convolutions, highways."""

    encoding: Literal["bytes", "codepoints"] = "bytes"
    max_chars: Annotated[int, Field(ge=3)] = 50  # with the begin and the end of the word
    dim: PositiveInt = 16
    filters: Annotated[tuple[tuple[PositiveInt, PositiveInt], ...], Field(min_length=1)] = PUBLISHED_FILTERS
    activation: Literal["relu", "tanh"] = "relu"
    highways: NonNegativeInt = 2

    @property
    def size(self) -> int:
        """Values a word before any projection: the sum of the filters."""
        return sum(count for _, count in self.filters)

    @property
    def longest(self) -> str:
        """The longest word that is read whole: '48 bytes', or '48 characters'."""
        return f"{self.max_chars - 2} {'bytes' if self.encoding == 'bytes' else 'characters'}"

    @model_validator(mode="after")
    def _filters_fit_in_a_word(self) -> Self:
        widest = max(width for width, _ in self.filters)
        if widest > self.max_chars:
            raise ValueError(
                f"chars.filters has a width of {widest}, more than chars.max_chars ({self.max_chars}). "
                f"Leave that filter out, or set chars.max_chars to {widest} or more."
            )
        return self


class WordsSettings(Settings):
    """A word looked up in a table; unknown words share one row."""

    dim: PositiveInt  # size of a word vector
    trained: bool = True  # False: the table is frozen at its static vectors
    # File of vectors to start from: word2vec, GloVe or fastText. Only pretraining reads it: it is not saved
    # with the model, neither in config.json nor in the fingerprint.
    static: str | None = Field(default=None, exclude=True)


class RecurrentSettings(Settings):
    """The two stacks, one reading forward and one backward."""

    cell: Literal["lstm", "gru", "rnn"] = "lstm"
    layers: PositiveInt = 2
    cells: PositiveInt = 4096  # size of the memory
    outputs: PositiveInt = 512  # size after the projection; an ELMo vector is twice this
    projection: bool | None = None  # None: where outputs and cells differ
    cell_clip: PositiveFloat | None = 3.0
    output_clip: PositiveFloat | None = 3.0  # of the projected output; no projection, no clip
    residual: bool = True
    forget_bias: float = 1.0  # added to the forget gate beside the learned bias (lstm)
    candidate_bias: bool = False  # a bias of its own for the candidate (gru)

    @property
    def projects(self) -> bool:
        """Whether a projection follows the cell."""
        return self.outputs != self.cells if self.projection is None else self.projection

    @model_validator(mode="after")
    def _projection_shrinks(self) -> Self:
        if self.outputs > self.cells:
            raise ValueError(
                f"recurrent.outputs is {self.outputs}, more than recurrent.cells ({self.cells}). "
                f"The projection must shrink: set recurrent.outputs to {self.cells} or less."
            )
        if self.projection is False and self.outputs != self.cells:
            raise ValueError(
                f"recurrent.projection is false, but recurrent.outputs ({self.outputs}) and recurrent.cells "
                f"({self.cells}) differ. Make them equal, or leave recurrent.projection out."
            )
        return self


class ModelSettings(Settings):
    """A biLM: how its text was segmented, how a token becomes a vector, what reads the sentence."""

    segment: Segmentation = "split"
    chars: CharsSettings | None = None
    words: WordsSettings | None = None
    token_projection: bool | None = None  # None: where the token's size and recurrent.outputs differ
    recurrent: RecurrentSettings = RecurrentSettings()

    @property
    def token_size(self) -> int:
        """Values a token before the projection."""
        return (self.words.dim if self.words else 0) + (self.chars.size if self.chars else 0)

    @property
    def projects_tokens(self) -> bool:
        """Whether a projection stands between the token encoder and the stacks."""
        if self.token_projection is None:
            return self.token_size != self.recurrent.outputs
        return self.token_projection

    @property
    def layers(self) -> int:
        """How many layers a vector is mixed from: the token layer and the recurrent ones."""
        return self.recurrent.layers + 1

    @property
    def size(self) -> int:
        """H: values in a contextual vector, both directions."""
        return 2 * self.recurrent.outputs

    @model_validator(mode="after")
    def _tokens_fit_the_stacks(self) -> Self:
        if self.chars is None and self.words is None:
            raise ValueError("A model needs a [chars] or a [words] section, or both.")
        if self.token_projection is False and self.token_size != self.recurrent.outputs:
            raise ValueError(
                f"token_projection is false, but a token has {self.token_size} values and recurrent.outputs "
                f"is {self.recurrent.outputs}. Make them equal, or leave token_projection out."
            )
        return self


AnySettings = TypeVar("AnySettings", bound=Settings)


def parse_settings(kind: type[AnySettings], values: object, source: str) -> AnySettings:
    """Check `values` against `kind`; every mistake is named in one ConfigError that begins with `source`."""
    try:
        return kind.model_validate(values)
    except ValidationError as problem:
        mistakes = [_mistake(kind, error) for error in problem.errors(include_url=False)]
        raise ConfigError(f"{source}: " + " ".join(mistakes)) from None


def read_values(path: Path) -> dict[str, Any]:
    """Read a .toml or .json file as plain values."""
    try:
        text = path.read_bytes().decode("utf-8-sig")
        values = tomllib.loads(text) if path.suffix == ".toml" else json.loads(text)
    except FileNotFoundError:
        raise ConfigError(f"{path}: there is no such file.") from None
    except OSError as problem:
        raise ConfigError(f"{path}: cannot be read ({problem.strerror}).") from None
    except UnicodeDecodeError as problem:
        line = problem.object[: problem.start].count(b"\n") + 1
        raise ConfigError(f"{path}:{line}: not UTF-8. Save it as UTF-8.") from None
    except (ValueError, RecursionError) as problem:  # ValueError: also numbers too long to read
        place = re.search(r"line (\d+)", str(problem))
        where = f":{place[1]}" if place else ""
        raise ConfigError(f"{path}{where}: not valid {path.suffix[1:].upper()} ({problem}).") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: holds a {type(values).__name__}, expected settings with names.")
    return values


def suggest(word: str, choices: Mapping[str, Any] | list[str]) -> str:
    """' Did you mean x?' for the choice most like `word`, or nothing."""
    guesses = difflib.get_close_matches(word, list(choices), n=1)
    return f" Did you mean {guesses[0]}?" if guesses else ""


def _mistake(kind: type[Settings], error: Any) -> str:
    """Turn one of pydantic's errors into a plain sentence with the setting's full name."""
    place = [str(part) for part in error["loc"]]
    name = ".".join(place) or "it"
    if error["type"] == "extra_forbidden":
        known = _fields_at(kind, place[:-1])
        return f"{name} is no setting.{suggest(place[-1], known)}"
    if error["type"] == "missing":
        return f"{name} is missing."
    if error["type"] == "value_error":  # from the validators above: a sentence already
        return str(error["ctx"]["error"])
    if error["type"] == "model_type":
        return f"{name} is {error['input']!r:.60}, should be a section of settings with names."
    message = str(error["msg"])
    rule = message.partition(" should ")[2]
    return f"{name} is {error['input']!r:.60}" + (f", should {rule}." if rule else f": {message}.")


def _fields_at(kind: type[Settings], place: list[str]) -> list[str]:
    """Names of the settings in the section `place` of `kind`."""
    for part in place:
        field = kind.model_fields.get(part)
        if field is None:
            return []
        inner = [t for t in getattr(field.annotation, "__args__", (field.annotation,)) if isinstance(t, type)]
        sections = [t for t in inner if issubclass(t, Settings)]
        if not sections:
            return []
        kind = sections[0]
    return list(kind.model_fields)
