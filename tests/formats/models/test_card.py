"""The model card: facts about the model in a folder."""

from __future__ import annotations

import ast
from dataclasses import replace
from typing import Any

import pytest

from builders import random_model, small_config
from polyseme.formats.models.card import describe, drop_front_matter, render_card


def test_the_card_describes_the_model():
    stacks = "lstm 6 cells projected to 4, cell clip 3, output clip 3, residual"
    assert describe(random_model(small_config(), softmax=True)) == {
        "tokens": "char-CNN over bytes, at most 12 a word, 5 filters, relu, highways: 1, projected",
        "layers": f"3 (token layer and 2 of {stacks})",
        "vector": "8 values",
        "parameters": "1,859 without the softmax",
        "segmentation": "split",
        "vocabulary": "12 words",
        "softmax": "yes",
        "origin: made": "at random",
    }


@pytest.mark.parametrize(
    ("changes", "fact", "value"),
    [
        ({"chars": None, "words": {"dim": 4}}, "tokens", "word table of 4"),
        ({"words": {"dim": 7}}, "tokens", "word table of 7 and char-CNN over bytes"),
        (
            {"recurrent": {"cell": "gru", "layers": 1, "cells": 4, "outputs": 4}},
            "layers",
            "2 (token layer and 1",
        ),
        ({"segment": "zh-char"}, "segmentation", "zh-char"),
    ],
)
def test_the_facts_follow_the_config(changes: dict[str, Any], fact: str, value: str):
    assert describe(random_model(small_config(**changes)))[fact].startswith(value)


def test_large_models_are_counted_in_millions():
    model = random_model(small_config(recurrent={"layers": 1, "cells": 600, "outputs": 200}), words=None)
    facts = describe(model)
    assert facts["parameters"] == "2.2 million without the softmax"
    assert facts["vocabulary"] == "none"


@pytest.mark.parametrize("name", ["sanguo", "三国 模型", 'a "quoted" name', "back\\slash"])
def test_the_example_code_names_the_folder(name: str):
    card = render_card(random_model(small_config()), name)
    assert drop_front_matter(card).startswith(f"# {name}\n")
    code = ast.parse(card.partition("```python\n")[2].partition("```")[0])
    strings = [node.value for node in ast.walk(code) if isinstance(node, ast.Constant)]
    assert name in strings


def test_special_characters_do_not_break_the_table():
    model = replace(random_model(small_config()), origin={"a|b": "one\ntwo | three"})
    lines = render_card(model, "x").splitlines()
    assert "| origin: a\\|b | one two \\| three |" in lines
