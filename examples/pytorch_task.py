"""Use ELMo in your own PyTorch model: classify sentences about money and about water.

python examples/pytorch_task.py MODEL

The language model is frozen; the mix of its layers and the classifier are trained.
"""

import sys

import torch
from torch import nn

import polyseme

MONEY = "the bank raised its rates, she opened an account, a loan from the bank, cash and credit, he paid tax"
WATER = "the bank of the river, a boat on the lake, they swam to the bank, rain fell on the sea, wet mud"


def train(model: str, epochs: int = 60) -> float:
    """Train on ten sentences and return the training accuracy."""
    torch.manual_seed(0)
    sentences = [text.split() for text in (MONEY + ", " + WATER).split(", ")]
    labels = torch.tensor([0] * 5 + [1] * 5)
    elmo = polyseme.ElmoLayer(model, dropout=0.1)
    classify = nn.Linear(elmo.size, 2)
    optimizer = torch.optim.Adam([*elmo.mixes.parameters(), *classify.parameters()], lr=0.05)
    for _ in range(epochs):
        vectors, mask = elmo(sentences)  # a list of one (B, T, H) tensor per mix, and a (B, T) mask
        scores = classify(vectors[0].sum(dim=1) / mask.sum(dim=1, keepdim=True))  # (B, 2)
        loss = nn.functional.cross_entropy(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss:.3f}, layer weights", [round(share, 2) for share in elmo.mixes[0].shares])
    return (scores.argmax(dim=1) == labels).float().mean().item()


if __name__ == "__main__":
    print(f"training accuracy: {train(sys.argv[1]):.0%}")
