"""ELMo in a PyTorch model of your own, which tells sentences about money from those about water.

python examples/pytorch_task.py MODEL

The weights of the language model stay as they are; the mix of its layers and the classifier are trained.
"""

import sys

import torch
from torch import nn

import polyseme

MONEY = "the bank raised its rates, she opened an account, a loan from the bank, cash and credit, he paid tax"
WATER = "the bank of the river, a boat on the lake, they swam to the bank, rain fell on the sea, wet mud"


def train(model: str, epochs: int = 60) -> float:
    """Train on the ten sentences; return the share that is right afterwards."""
    torch.manual_seed(0)
    sentences = [text.split() for text in (MONEY + ", " + WATER).split(", ")]
    labels = torch.tensor([0] * 5 + [1] * 5)
    elmo = polyseme.ElmoLayer(model, dropout=0.1)
    classify = nn.Linear(elmo.size, 2)
    optimizer = torch.optim.Adam([*elmo.mixes.parameters(), *classify.parameters()], lr=0.05)
    for _ in range(epochs):
        vectors, mask = elmo(sentences)  # a list with a tensor (B, T, H) for each mix, and (B, T)
        scores = classify(vectors[0].sum(dim=1) / mask.sum(dim=1, keepdim=True))  # (B, 2)
        loss = nn.functional.cross_entropy(scores, labels)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    print(f"loss {loss:.3f}, shares of the layers", [round(share, 2) for share in elmo.mixes[0].shares])
    return (scores.argmax(dim=1) == labels).float().mean().item()


if __name__ == "__main__":
    print(f"{train(sys.argv[1]):.0%} of the ten training sentences are right")
