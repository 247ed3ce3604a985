"""BERT in the duel: transformers' BertModel from scratch, masked language model, its own WordPiece.

Blocks of `length` pieces run across line ends, as in RoBERTa, without next-sentence prediction; masks are
drawn anew each time (of the chosen pieces 80% become a mask, 10% another piece, 10% stay). The output layer
is computed for chosen pieces only, which is quicker than `BertForMaskedLM`. AdamW; the rate follows the CPU
time. A token gets the mean of its pieces, and all layers side by side, the table of pieces included.
"""

from __future__ import annotations

import functools
import json
from pathlib import Path

import numpy as np
import torch
from rival import EmbedBatch, Run, Sentence, Settings, main, pool_pieces
from tokenizers import BertWordPieceTokenizer, Tokenizer
from torch import nn
from transformers import BertConfig, BertModel

DEFAULTS: Settings = {
    "layers": 2,
    "hidden": 128,
    "heads": 4,
    "pieces": 8000,  # of the vocabulary
    "length": 64,
    "batch": 16,
    "rate": 0.002,
    "warmup": 0.1,
    "dropout": 0.0,
    "masked": 0.2,
    "precision": "fp32",
}
MASK = "[MASK]"


class MaskedModel(nn.Module):
    """BERT and its head: dense, GELU, norm, and the table of pieces as the output layer."""

    def __init__(self, config: BertConfig) -> None:
        super().__init__()
        self.bert = BertModel(config, add_pooling_layer=False)
        self.head = nn.Sequential(
            nn.Linear(config.hidden_size, config.hidden_size), nn.GELU(), nn.LayerNorm(config.hidden_size)
        )
        self.bias = nn.Parameter(torch.zeros(config.vocab_size))

    def loss(self, blocks: torch.Tensor, targets: torch.Tensor, chosen: torch.Tensor) -> torch.Tensor:
        """Cross entropy of the pieces at the chosen positions."""
        hidden = self.head(self.bert(input_ids=blocks).last_hidden_state[chosen])
        table = self.bert.embeddings.word_embeddings.weight
        return nn.functional.cross_entropy((hidden @ table.T).float() + self.bias, targets[chosen])


def pretrain(run: Run) -> Settings:
    """Train the vocabulary, then the model until the budget is over."""
    settings = run.settings
    torch.manual_seed(run.seed)
    lines = run.read_lines()
    tokenizer = BertWordPieceTokenizer(lowercase=False, strip_accents=False)
    tokenizer.train_from_iterator(lines, vocab_size=settings["pieces"], min_frequency=2, show_progress=False)
    tokenizer.save(str(run.out / "tokenizer.json"))
    ids = [i for line in lines for i in tokenizer.encode(line, add_special_tokens=False).ids]
    length, vocabulary = settings["length"], tokenizer.get_vocab_size()
    stream, mask = torch.tensor(ids), tokenizer.token_to_id(MASK)
    config = BertConfig(
        vocab_size=vocabulary,
        hidden_size=settings["hidden"],
        num_hidden_layers=settings["layers"],
        num_attention_heads=settings["heads"],
        intermediate_size=4 * settings["hidden"],
        hidden_dropout_prob=settings["dropout"],
        attention_probs_dropout_prob=settings["dropout"],
        max_position_embeddings=length,
    )
    model = MaskedModel(config)
    model.train()
    decayed = [p for p in model.parameters() if p.dim() > 1]
    others = [p for p in model.parameters() if p.dim() <= 1]
    groups = [{"params": decayed, "weight_decay": 0.01}, {"params": others, "weight_decay": 0.0}]
    optimizer = torch.optim.AdamW(groups, betas=(0.9, 0.98))
    steps = 0
    while not run.budget.is_over:
        for group in optimizer.param_groups:
            group["lr"] = run.budget.rate(settings["rate"], settings["warmup"])
        starts = torch.randint(len(stream) - length, (settings["batch"], 1))
        targets = stream[starts + torch.arange(length)]
        chosen = torch.rand(targets.shape) < settings["masked"]
        fate = torch.rand(targets.shape)
        blocks = targets.masked_fill(chosen & (fate < 0.8), mask)
        random = torch.randint(vocabulary, targets.shape)
        blocks = torch.where(chosen & (fate >= 0.9), random, blocks)
        with torch.autocast("cpu", torch.bfloat16, enabled=settings["precision"] == "bf16"):
            loss = model.loss(blocks, targets, chosen)
        optimizer.zero_grad()
        loss.backward()
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        steps += 1
    model.bert.save_pretrained(run.out / "model")
    tokens = steps * settings["batch"] * length
    return {"steps": steps, "tokens": tokens, "epochs": round(tokens / len(stream), 2), "loss": loss.item()}


def load(folder: Path, language: str, characters: bool) -> EmbedBatch:
    """All layers of the pieces, averaged for each token."""
    bert = BertModel.from_pretrained(folder / "model", add_pooling_layer=False).eval()
    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    trained = json.loads((folder / "run.json").read_text())["settings"]["length"]
    unknown = tokenizer.token_to_id("[UNK]")

    @functools.cache
    def pieces_of(token: str) -> list[int]:
        return tokenizer.encode(token, add_special_tokens=False).ids or [unknown]

    @torch.no_grad()
    def embed(sentences: list[Sentence]) -> list[np.ndarray]:
        pieces = [[pieces_of(token) for token in sentence] for sentence in sentences]
        flat = [[i for token in sentence for i in token] for sentence in pieces]
        # Positions beyond the trained length have no meaning: longer sentences run in parts of that length.
        parts = [(n, ids[s : s + trained]) for n, ids in enumerate(flat) for s in range(0, len(ids), trained)]
        longest = max(len(part) for _, part in parts)
        batch = torch.zeros(len(parts), longest, dtype=torch.long)
        mask = torch.zeros(len(parts), longest, dtype=torch.long)
        for row, (_, part) in enumerate(parts):
            batch[row, : len(part)] = torch.tensor(part)
            mask[row, : len(part)] = 1
        layers = bert(input_ids=batch, attention_mask=mask, output_hidden_states=True).hidden_states
        joined = torch.cat(layers, dim=-1).numpy()
        rows: list[list[np.ndarray]] = [[] for _ in sentences]
        for row, (number, part) in enumerate(parts):
            rows[number].append(joined[row, : len(part)])
        return [
            pool_pieces(np.concatenate(vectors), [len(token) for token in sentence])
            for vectors, sentence in zip(rows, pieces, strict=True)
        ]

    return embed


if __name__ == "__main__":
    main(__doc__, DEFAULTS, pretrain, load)
