"""Settings: all mistakes are reported at once, with suggestions and locations."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from polyseme.config import (
    CharsSettings,
    ModelSettings,
    RecurrentSettings,
    parse_settings,
    read_values,
    suggest,
)
from polyseme.errors import ConfigError

SMALL: dict[str, Any] = {"words": {"dim": 4}, "recurrent": {"cells": 6, "outputs": 4}}


def config_error(values: object) -> str:
    """Return the error message for `values`, without the source."""
    with pytest.raises(ConfigError) as problem:
        parse_settings(ModelSettings, values, "model.toml")
    message = str(problem.value)
    assert "\n" not in message
    assert message.startswith("model.toml: ")
    return message.removeprefix("model.toml: ")


def read_model(path: Path) -> ModelSettings:
    return parse_settings(ModelSettings, read_values(path), str(path))


def write(path: Path, content: str | bytes) -> Path:
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# ---- mistakes ----


def test_all_mistakes_are_reported_at_once_each_with_its_full_name():
    values = {
        "segment": "klingon",
        "words": {},
        "chars": {"filter": [[1, 2]], "dim": 0, "max_chars": 2, "filters": [[1, -4]]},
        "recurrent": {"cell": "lsmt", "layers": "two", "cell_clip": -1},
        "recurent": {},
    }
    message = config_error(values)
    for part in (
        "segment is 'klingon', should be 'split', 'en', 'zh', 'zh-char', 'letters' or 'auto'.",
        "words.dim is missing.",
        "chars.filter is not a setting. Did you mean filters?",
        "chars.dim is 0, should be greater than 0.",
        "chars.max_chars is 2, should be greater than or equal to 3.",
        "chars.filters.0.1 is -4, should be greater than 0.",
        "recurrent.cell is 'lsmt', should be 'lstm', 'gru' or 'rnn'.",
        "recurrent.layers is 'two', should be a valid integer",
        "recurrent.cell_clip is -1, should be greater than 0.",
        "recurent is not a setting. Did you mean recurrent?",
    ):
        assert part in message


@pytest.mark.parametrize(
    ("name", "guess"),
    [("layer", " Did you mean layers?"), ("clip", " Did you mean cell_clip?"), ("colour", "")],
)
def test_an_unknown_name_gets_a_suggestion_from_its_section(name, guess):
    message = config_error(SMALL | {"recurrent": SMALL["recurrent"] | {name: 1}})
    assert message == f"recurrent.{name} is not a setting.{guess}"


def test_a_name_from_another_section_is_not_suggested():
    assert config_error(SMALL | {"activation": "relu"}) == "activation is not a setting."


@pytest.mark.parametrize("values", [None, [], 5, "text", [1, 2]], ids=repr)
def test_a_value_instead_of_a_section_is_refused(values):
    assert config_error(values) == f"it is {values!r}, should be a section."
    assert config_error(SMALL | {"chars": 5}) == "chars is 5, should be a section."


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["cell_clip", "output_clip", "forget_bias"])
def test_numbers_must_be_finite(name, value):
    message = config_error(SMALL | {"recurrent": {"cells": 6, "outputs": 4, name: value}})
    assert message.startswith(f"recurrent.{name} is {value}, should be")


# ---- settings that do not fit each other ----


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({}, "A model needs a [chars] section, a [words] section, or both."),
        (
            SMALL | {"recurrent": {"cells": 4, "outputs": 5}},
            "recurrent.outputs is 5, more than recurrent.cells (4). The projection must shrink: set "
            "recurrent.outputs to 4 or less.",
        ),
        (
            SMALL | {"recurrent": {"cells": 6, "outputs": 4, "projection": False}},
            "recurrent.projection is false, but recurrent.outputs (4) and recurrent.cells (6) differ. Make "
            "them equal, or leave recurrent.projection out.",
        ),
        (
            {"chars": {"max_chars": 6}},
            "chars.filters has a width of 7, more than chars.max_chars (6). Leave that filter out, or set "
            "chars.max_chars to 7 or more.",
        ),
        (
            {"words": {"dim": 5}, "recurrent": {"cells": 6, "outputs": 4}, "token_projection": False},
            "token_projection is false, but a token has 5 values and recurrent.outputs is 4. Make them "
            "equal, or leave token_projection out.",
        ),
        ({"chars": {"filters": []}}, "chars.filters is [], should have at least 1 item"),
    ],
)
def test_settings_that_contradict_each_other_are_reported_with_a_fix(values, message):
    assert config_error(values).startswith(message)


# ---- derived values ----


def test_the_defaults_are_those_of_the_published_original_model():
    config = ModelSettings(chars=CharsSettings())
    assert (config.layers, config.size, config.token_size) == (3, 1024, 2048)
    assert config.projects_tokens
    assert config.recurrent.projects
    assert config.segment == "split"
    assert config.chars is not None
    assert config.chars.longest == "48 bytes"


def test_projections_exist_if_sizes_differ_or_if_they_are_set():
    assert not RecurrentSettings(cells=4, outputs=4).projects
    assert RecurrentSettings(cells=4, outputs=4, projection=True).projects
    assert RecurrentSettings(cells=5, outputs=4).projects
    same = ModelSettings.model_validate(SMALL)
    assert not same.projects_tokens
    assert same.model_copy(update={"token_projection": True}).projects_tokens
    both = ModelSettings.model_validate(SMALL | {"chars": {"filters": [[1, 2], [2, 3]]}})
    assert both.token_size == 4 + 5
    assert both.projects_tokens
    assert both.size == 8


def test_settings_cannot_be_changed():
    config = ModelSettings.model_validate(SMALL)
    with pytest.raises(ValidationError, match="frozen"):
        config.segment = "en"  # type: ignore[misc]


def test_settings_survive_a_round_trip_through_json():
    config = ModelSettings.model_validate(SMALL | {"chars": {"encoding": "codepoints", "filters": [[1, 2]]}})
    assert ModelSettings.model_validate(json.loads(json.dumps(config.model_dump(mode="json")))) == config
    assert config.chars is not None
    assert config.chars.longest == "48 characters"


def test_only_similar_names_are_suggested():
    assert suggest("lsmt", ["lstm", "gru"]) == " Did you mean lstm?"
    assert suggest("transformer", {"lstm": 1, "gru": 2}) == ""


# ---- files ----


def test_toml_and_json_give_the_same_settings(tmp_path):
    toml = write(
        tmp_path / "a.toml", 'segment = "zh"\n[words]\ndim = 4\n[recurrent]\ncells = 6\noutputs = 4\n'
    )
    values = json.dumps(SMALL | {"segment": "zh"})
    json_with_bom = write(tmp_path / "b.json", "\ufeff" + values)  # as some Windows programs save it
    expected = ModelSettings.model_validate(SMALL | {"segment": "zh"})
    assert read_model(toml) == read_model(json_with_bom) == expected


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", '{\n  "words": {"dim": 4},\n}', r"a\.json:3: not valid JSON \("),
        ("a.json", "", r"a\.json:1: not valid JSON"),
        ("a.json", "[" * 100_000, r"a\.json: not valid JSON"),
        ("a.json", '{"dim": ' + "9" * 5000 + "}", r"a\.json: not valid JSON \(Exceeds the limit"),
        ("a.json", "[1, 2]", r"a\.json: contains a list, expected named settings"),
        ("a.toml", "segment = 'zh'\n[words\ndim = 4", r"a\.toml:2: not valid TOML \("),
        ("a.toml", "segment = 'zh'\nsegment = 'en'\n", r"a\.toml:2: not valid TOML \(Cannot overwrite"),
        ("a.toml", "x = [1, 2", r"a\.toml: not valid TOML \(Unclosed array \(at end of document\)\)"),
        ("a.toml", b"x = 1\n# caf\xe9\n", r"a\.toml:2: not UTF-8\. Save it as UTF-8"),
        ("a.json", b'{"a":\n1,\n"\xff": 2}', r"a\.json:3: not UTF-8"),
        ("a.toml", "words = {dim = 0}", r"a\.toml: words\.dim is 0, should be greater than 0"),
    ],
)
def test_a_broken_file_is_reported_with_its_line(name, content, message, tmp_path):
    path = write(tmp_path / name, content)
    with pytest.raises(ConfigError, match=message) as problem:
        read_model(path)
    assert str(problem.value).startswith(str(path))
    assert "\n" not in str(problem.value)


def test_a_missing_or_unreadable_file_is_reported(tmp_path):
    with pytest.raises(ConfigError, match=r"a\.toml: no such file"):
        read_model(tmp_path / "a.toml")
    with pytest.raises(ConfigError, match=r"cannot be read \(Is a directory\)"):
        read_model(tmp_path)
