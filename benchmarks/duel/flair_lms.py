"""flair in the duel: its character language models, forward and backward, and its rule for words.

The dictionary is made by hand (`Dictionary.load` downloads). A word is the forward state after its last
character beside the backward state at its first, as `FlairEmbeddings` has it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from character_lms import count_characters, train_direction
from flair.data import Dictionary
from flair.models import LanguageModel
from rival import EmbedBatch, Run, Sentence, Settings, main

DEFAULTS: Settings = {
    "hidden": 256,
    "embedding": 64,
    "dropout": 0.1,
    "at_least": 10,  # occurrences of a character in the dictionary
    "rows": 32,
    "length": 128,
    "optimizer": "adamw",
    "rate": 0.003,
}


def pretrain(run: Run) -> Settings:
    """Train both directions, each with half of what is left."""
    torch.manual_seed(run.seed)
    lines = run.read_lines()
    dictionary = Dictionary()  # with <unk>
    for character in count_characters(lines, run.settings["at_least"]):
        dictionary.add_item(character)
    known = {character: dictionary.get_idx_for_item(character) for character in set("\n".join(lines))}
    ids = torch.tensor([known[character] for character in "\n".join(lines)])
    numbers: Settings = {}
    for name, share in (("forward", 0.5), ("backward", 1.0)):
        model = LanguageModel(
            dictionary,
            is_forward_lm=name == "forward",
            hidden_size=run.settings["hidden"],
            nlayers=1,
            embedding_size=run.settings["embedding"],
            dropout=run.settings["dropout"],
        )

        def step(data: torch.Tensor, state: Any, model: LanguageModel = model) -> tuple[torch.Tensor, Any]:
            logits, _, state = model.forward(data, state or model.init_hidden(data.shape[1]))
            return logits, state

        budget = run.budget.part((1 - run.budget.share) * share)
        numbers |= {
            name: train_direction(model, step, ids if name == "forward" else ids.flip(0), run, budget)
        }
        model.save(run.out / f"{name}.pt")
    return {"tokens": sum(part["tokens"] for part in numbers.values()), **numbers}


def load(folder: Path, language: str, characters: bool) -> EmbedBatch:
    """States at the ends of words, by flair's own `FlairEmbeddings`."""
    from flair.data import Sentence as FlairSentence
    from flair.embeddings import FlairEmbeddings

    spaced = language == "en"  # else words follow each other without a space, as in the training text
    models = [
        FlairEmbeddings(folder / f"{name}.pt", with_whitespace=spaced, tokenized_lm=spaced)
        for name in ("forward", "backward")
    ]

    @torch.no_grad()
    def embed(sentences: list[Sentence]) -> list[np.ndarray]:
        batch = [FlairSentence(sentence, use_tokenizer=False) for sentence in sentences]
        if not spaced:
            for sentence in batch:
                for token in sentence:
                    token.whitespace_after = 0
        for model in models:
            model.embed(batch)
        vectors = [
            np.stack([token.get_embedding().cpu().numpy() for token in sentence]) for sentence in batch
        ]
        for sentence in batch:
            sentence.clear_embeddings()
        return vectors

    return embed


if __name__ == "__main__":
    main(__doc__, DEFAULTS, pretrain, load)
