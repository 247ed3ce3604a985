"""Settings of a model, and how settings of any kind are read and checked.

    TOML or JSON, or a plain dict  ->  config  ->  formats, training, tasks

Users write TOML, the library saves JSON. Settings are frozen. All mistakes are reported at once, with the
name of the setting and a suggestion. What the program can count (words, characters, tokens) is not a setting.
`nn.Module`s never see these classes: `formats.models.pretrained` passes them plain numbers.
"""

from __future__ import annotations

import difflib
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
    PositiveInt,
    ValidationError,
    model_validator,
)

from polyseme.choices import CharacterEncoding
from polyseme.errors import ConfigError
from polyseme.json_text import parse_json
from polyseme.segmentations import Segmentation

LARGEST = 1e30  # that float32 can represent, with a margin
MAX_CHARS = 1000  # characters of a word that a row of numbers may hold
Clip = Annotated[float, Field(gt=0, le=LARGEST)]
Representable = Annotated[float, Field(ge=-LARGEST, le=LARGEST)]
PUBLISHED_FILTERS = ((1, 32), (2, 32), (3, 64), (4, 128), (5, 256), (6, 512), (7, 1024))


class Settings(BaseModel):
    """Base of all settings: immutable, and unknown names are errors."""

    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class CharsSettings(Settings):
    """Character encoder: a word is read from its characters by convolutions and highway layers."""

    encoding: CharacterEncoding = "bytes"  # what a character is
    max_chars: Annotated[int, Field(ge=3, le=MAX_CHARS)] = 50  # per word, with its begin and end mark
    dim: PositiveInt = 16  # size of a character vector
    # Width and number of the convolutions.
    filters: Annotated[tuple[tuple[PositiveInt, PositiveInt], ...], Field(min_length=1)] = PUBLISHED_FILTERS
    activation: Literal["relu", "tanh"] = "relu"  # after the maximum over the word
    highways: NonNegativeInt = 2  # highway layers after the convolutions

    @property
    def size(self) -> int:
        """Values per word before any projection: the sum of the filters."""
        return sum(count for _, count in self.filters)

    @property
    def longest(self) -> str:
        """The longest word that is not truncated: '48 bytes' or '48 characters'."""
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
    """Word table: one vector per word of the vocabulary; unknown words share one."""

    dim: PositiveInt  # size of a word vector
    trained: bool = True  # False: the table is frozen at its static vectors
    # File of vectors to start from: word2vec, GloVe or fastText. Only pretraining reads it: it is not saved
    # with the model, neither in config.json nor in the fingerprint.
    static: str | None = Field(default=None, exclude=True)


class RecurrentSettings(Settings):
    """The two recurrent stacks, one per direction."""

    cell: Literal["lstm", "gru", "rnn"] = "lstm"  # kind of recurrent cell
    layers: PositiveInt = 2  # layers per direction
    cells: PositiveInt = 4096  # size of the cell state
    outputs: PositiveInt = 512  # D: size of one direction; an ELMo vector is twice this
    projection: bool | None = None  # project cells to outputs; None: if the sizes differ
    cell_clip: Clip | None = 3.0  # clip of the cell state (lstm)
    output_clip: Clip | None = 3.0  # clip of the projected output; needs a projection
    residual: bool = True  # every layer but the first adds its input
    forget_bias: Annotated[float, Field(ge=-LARGEST, le=LARGEST)] = (
        1.0  # added to the forget gate, in addition to the learned bias (lstm)
    )
    candidate_bias: bool = False  # a separate bias for the candidate (gru)

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
    """A biLM: the segmentation of its text, its token encoder, its recurrent stacks."""

    segment: Segmentation = "split"  # how raw text is segmented
    chars: CharsSettings | None = None  # None: words are not read from characters
    words: WordsSettings | None = None  # None: no word table
    token_projection: bool | None = None  # project tokens to recurrent.outputs; None: if the sizes differ
    recurrent: RecurrentSettings = RecurrentSettings()  # what reads the sentence

    @property
    def token_size(self) -> int:
        """Values per token before the projection."""
        return (self.words.dim if self.words else 0) + (self.chars.size if self.chars else 0)

    @property
    def projects_tokens(self) -> bool:
        """Whether token vectors are projected before the stacks."""
        if self.token_projection is None:
            return self.token_size != self.recurrent.outputs
        return self.token_projection

    @property
    def layers(self) -> int:
        """L: the token layer and the recurrent layers."""
        return self.recurrent.layers + 1

    @property
    def size(self) -> int:
        """H: values per contextual vector, of both directions."""
        return 2 * self.recurrent.outputs

    @model_validator(mode="after")
    def _tokens_fit_the_stacks(self) -> Self:
        if self.chars is None and self.words is None:
            raise ValueError("A model needs a [chars] section, a [words] section, or both.")
        if self.token_projection is False and self.token_size != self.recurrent.outputs:
            raise ValueError(
                f"token_projection is false, but a token has {self.token_size} values and recurrent.outputs "
                f"is {self.recurrent.outputs}. Make them equal, or leave token_projection out."
            )
        return self


MAX_TOML = 1 << 20  # characters of a file of settings
MAX_PARTS = 100  # of a dotted name
AnySettings = TypeVar("AnySettings", bound=Settings)


def parse_settings(kind: type[AnySettings], values: object, source: str) -> AnySettings:
    """Check values and turn them into settings.

    Args:
        kind: The class of the settings.
        values: Nested values, as TOML or JSON gives them.
        source: Where they come from; error messages begin with it.

    Raises:
        ConfigError: The values are invalid; the message lists every mistake.

    Example:
        >>> parse_settings(RecurrentSettings, {"cells": 1024, "outputs": 128}, "model.toml").layers
        2

    """
    try:
        return kind.model_validate(values)
    except ValidationError as problem:
        mistakes = [_describe_mistake(kind, error) for error in problem.errors(include_url=False)]
        raise ConfigError(f"{source}: " + " ".join(mistakes)) from None


def read_values(path: Path) -> dict[str, Any]:
    """Read a .toml or .json file as nested values.

    Raises:
        ConfigError: The file is missing, not UTF-8, or not valid TOML or JSON.

    """
    try:
        if path.exists() and not path.is_file() and not path.is_dir():  # it may have no end
            raise ConfigError(f"{path}: not a regular file. Copy it into one.")
        text = path.read_bytes().decode("utf-8-sig")
        if path.suffix == ".toml":
            _check_toml(text, path)
        values = tomllib.loads(text) if path.suffix == ".toml" else parse_json(text)
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file. Check the path.") from None
    except OSError as problem:
        raise ConfigError(f"{path}: cannot be read ({problem.strerror}). Check its permissions.") from None
    except UnicodeDecodeError as problem:
        line = problem.object[: problem.start].count(b"\n") + 1
        raise ConfigError(f"{path}:{line}: not UTF-8. Save it as UTF-8.") from None
    except (ValueError, RecursionError) as problem:  # ValueError: also numbers too long to read
        match = re.search(r"line (\d+)", str(problem))
        line_number = f":{match[1]}" if match else ""
        raise ConfigError(f"{path}{line_number}: not valid {path.suffix[1:].upper()} ({problem}).") from None
    if not isinstance(values, dict):
        raise ConfigError(f"{path}: contains a {type(values).__name__}, expected named settings.")
    return values


def _check_toml(text: str, path: Path) -> None:
    """Refuse what tomllib would read in quadratic time and memory: names with thousands of parts."""
    if len(text) > MAX_TOML:
        raise ConfigError(f"{path}: {len(text):,} characters, more than settings have ({MAX_TOML:,}).")
    for number, line in enumerate(text.splitlines(), start=1):
        if line.count(".") > MAX_PARTS and any(
            part.count(".") > MAX_PARTS for part in re.split(r"[=,{]", line)
        ):
            raise ConfigError(f"{path}:{number}: a name of more than {MAX_PARTS} parts.")


def suggest(word: str, choices: Mapping[str, Any] | list[str]) -> str:
    """Return ' Did you mean x?' with the closest choice, or an empty string."""
    guesses = difflib.get_close_matches(word, list(choices), n=1)
    return f" Did you mean {guesses[0]}?" if guesses else ""


def _describe_mistake(kind: type[Settings], error: Any) -> str:
    """Turn an error of pydantic into a sentence with the full name of the setting."""
    path = [str(part) for part in error["loc"]]
    name = ".".join(path) or "it"
    if error["type"] == "extra_forbidden":
        known = _list_fields(kind, path[:-1])
        return f"{name} is not a setting.{suggest(path[-1], known)}"
    if error["type"] == "missing":
        return f"{name} is missing."
    if error["type"] == "value_error":  # raised by a validator above: already a sentence
        return str(error["ctx"]["error"])
    if error["type"] == "model_type":
        return f"{name} is {error['input']!r:.60}, should be a section."
    message = str(error["msg"])
    rule = message.partition(" should ")[2]
    return f"{name} is {error['input']!r:.60}" + (f", should {rule}." if rule else f": {message}.")


def _list_fields(kind: type[Settings], path: list[str]) -> list[str]:
    """Names of the settings in the section at `path`, such as ["model", "chars"]."""
    for part in path:
        field = kind.model_fields.get(part)
        if field is None:
            return []
        inner = [t for t in getattr(field.annotation, "__args__", (field.annotation,)) if isinstance(t, type)]
        sections = [t for t in inner if issubclass(t, Settings)]
        if not sections:
            return []
        kind = sections[0]
    return list(kind.model_fields)
