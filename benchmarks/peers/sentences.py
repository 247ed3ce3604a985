"""Print made-up sentences for benchmarks: Zipf-distributed words, 5 to 40 tokens, one sentence per line.

The vocabulary is 20,000 random strings; frequent words are short, as in natural languages. Realistic
repetition matters, because programs may cache words.

    python benchmarks/peers/sentences.py 256 > .cache/peers/sentences.txt
"""

import argparse

import numpy as np

VOCABULARY = 20_000
SHORTEST, LONGEST = 5, 40  # tokens per sentence
LETTERS = np.array(list("etaoinshrdlcumwfgypbvkjxqz"))  # by frequency in English


def sentences(count: int, seed: int = 0) -> list[list[str]]:
    """`count` tokenised sentences; the same seed gives the same text on every machine."""
    random = np.random.default_rng(seed)
    words = _words(random)
    weights = 1 / np.arange(1, VOCABULARY + 1)
    lengths = random.integers(SHORTEST, LONGEST + 1, count)
    ids = random.choice(VOCABULARY, size=lengths.sum(), p=weights / weights.sum())
    tokens = iter([words[i] for i in ids])
    return [[next(tokens) for _ in range(length)] for length in lengths]


def _words(random: np.random.Generator) -> list[str]:
    """Distinct words by rank: about 3 letters for the most frequent, about 8 for the rarest."""
    weights = 1 / np.arange(2, len(LETTERS) + 2)
    weights /= weights.sum()
    words: dict[str, None] = {}  # a dict keeps the order
    while len(words) < VOCABULARY:
        mean = 1 + 0.7 * np.log(len(words) + 2)
        length = min(1 + random.poisson(mean), 20)
        words.setdefault("".join(random.choice(LETTERS, size=length, p=weights)))
    return list(words)


def main() -> None:
    """Parse the command line and print the sentences."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("count", type=int)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    for sentence in sentences(arguments.count, arguments.seed):
        print(*sentence)


if __name__ == "__main__":
    main()
