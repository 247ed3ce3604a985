"""Sentences that look like text to a clock: Zipf words of natural length, 5 to 40 tokens, from a seed.

    seed  ->  sentences  ->  one tokenised sentence a line, for every program that is timed

Words are 20,000 random letter strings; the frequent ones are short, as in any language. A text with real
repetition matters: a program may remember the words it has met.

    python benchmarks/peers/sentences.py 256 > .cache/peers/sentences.txt
"""

import argparse

import numpy as np

VOCABULARY = 20_000
SHORTEST, LONGEST = 5, 40  # tokens a sentence
LETTERS = np.array(list("etaoinshrdlcumwfgypbvkjxqz"))  # by falling frequency in English


def sentences(count: int, seed: int = 0) -> list[list[str]]:
    """Draw `count` tokenised sentences; the same seed gives the same text on every machine."""
    random = np.random.default_rng(seed)
    words = _words(random)
    chances = 1 / np.arange(1, VOCABULARY + 1)
    lengths = random.integers(SHORTEST, LONGEST + 1, count)
    ids = random.choice(VOCABULARY, size=lengths.sum(), p=chances / chances.sum())
    tokens = iter([words[i] for i in ids])
    return [[next(tokens) for _ in range(length)] for length in lengths]


def _words(random: np.random.Generator) -> list[str]:
    """Invent words by rank: about 3 letters for the most frequent, about 8 for the rarest, never twice."""
    chances = 1 / np.arange(2, len(LETTERS) + 2)
    chances /= chances.sum()
    words: dict[str, None] = {}  # a dict keeps the order
    while len(words) < VOCABULARY:
        usual = 1 + 0.7 * np.log(len(words) + 2)
        length = min(1 + random.poisson(usual), 20)
        words.setdefault("".join(random.choice(LETTERS, size=length, p=chances)))
    return list(words)


def main() -> None:
    """Print sentences, one a line."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    for sentence in sentences(given.count, given.seed):
        print(*sentence)


if __name__ == "__main__":
    main()
