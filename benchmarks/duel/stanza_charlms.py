"""stanza in the duel: its character language models, forward and backward, and its rule for words.

A word is the state at the end mark after its last character in reading direction, as stanza's taggers use it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from character_lms import count_characters, train_direction
from rival import EmbedBatch, Run, Sentence, Settings, main
from stanza.models.common.char_model import CHARLM_START, CharacterLanguageModel
from stanza.models.common.vocab import CharVocab

DEFAULTS: Settings = {
    "hidden": 256,
    "embedding": 64,
    "dropout": 0.05,
    "unit_dropout": 1e-6,
    "at_least": 10,  # occurrences of a character in the vocabulary
    "rows": 32,
    "length": 128,
    "optimizer": "adamw",
    "rate": 0.003,
}


def pretrain(run: Run) -> Settings:
    """Train both directions, each with half of what is left."""
    torch.manual_seed(run.seed)
    lines = run.read_lines()
    text = "\n".join(lines)
    known = set(count_characters(lines, run.settings["at_least"]))
    vocabulary = {"char": CharVocab([[c for c in text if c in known]], "", cutoff=0)}
    ids_of = {character: vocabulary["char"].unit2id(character) for character in set(text)}
    ids = torch.tensor([ids_of[character] for character in text])
    settings = {
        "char_emb_dim": run.settings["embedding"],
        "char_hidden_dim": run.settings["hidden"],
        "char_num_layers": 1,
        "char_dropout": run.settings["dropout"],
        "char_unit_dropout": run.settings["unit_dropout"],
        "char_rec_dropout": 0.0,
    }
    numbers: Settings = {}
    for name, share in (("forward", 0.5), ("backward", 1.0)):
        model = CharacterLanguageModel(settings, vocabulary, is_forward_lm=name == "forward")

        def step(
            data: torch.Tensor, state: Any, model: CharacterLanguageModel = model
        ) -> tuple[torch.Tensor, Any]:
            _, state, logits = model(data.t(), [data.shape[0]] * data.shape[1], state)
            return logits.transpose(0, 1), state

        budget = run.budget.part((1 - run.budget.share) * share)
        numbers[name] = train_direction(model, step, ids if name == "forward" else ids.flip(0), run, budget)
        model.save(str(run.out / f"{name}.pt"))
    return {"tokens": sum(part["tokens"] for part in numbers.values()), **numbers}


def load(folder: Path, language: str, characters: bool) -> EmbedBatch:
    """States at the ends of words, by stanza's own `build_char_representation`.

    That puts a space after each word. Chinese text has none, so there the state at the last character of the
    word in reading direction is taken.
    """
    models = [CharacterLanguageModel.load(str(folder / f"{name}.pt")) for name in ("forward", "backward")]

    def embed(sentences: list[Sentence]) -> list[np.ndarray]:
        if language == "en":
            parts = [model.build_char_representation(sentences) for model in models]
        else:
            parts = [embed_unspaced(model, sentences) for model in models]
        return [np.hstack([rows.numpy() for rows in pair]) for pair in zip(*parts, strict=True)]

    return embed


def embed_unspaced(model: CharacterLanguageModel, sentences: list[Sentence]) -> list[torch.Tensor]:
    """The state after the last character of each word; of the first one, for the backward model."""
    texts = ["".join(sentence) for sentence in sentences]
    ordered = texts if model.is_forward_lm else [text[::-1] for text in texts]
    states = model.per_char_representation([CHARLM_START + text for text in ordered])
    rows = []
    for sentence, text, vectors in zip(sentences, texts, states, strict=True):
        ends = np.cumsum([len(word) for word in sentence])
        starts = ends - [len(word) for word in sentence]
        rows.append(vectors[ends if model.is_forward_lm else len(text) - starts])
    return rows


if __name__ == "__main__":
    main(__doc__, DEFAULTS, pretrain, load)
