"""Concatenate static and contextual word vectors in three ways, and print their sizes.

python examples/join_static.py MODEL VECTORS

VECTORS is a word2vec, GloVe or fastText file, as text, binary or .gz.
"""

import sys

import polyseme

SENTENCES = ["He sat on the river bank .", "The bank failed ."]


def sizes(model: str, vectors: str) -> dict[str, int]:
    """Concatenate the vectors in each way and return the size of a token vector by method."""
    elmo = polyseme.load(model)
    static = polyseme.read_vectors(
        vectors
    )  # or pass the path to `features`, which keeps only the words it needs
    by_method = {}
    for method in ("top", "concat", "mix"):
        joined = elmo.features(SENTENCES, method=method, static=static)  # a list of (tokens, values)
        by_method[method] = joined[0].shape[1]
        print(f"{method:7} [{static.dim} static; {by_method[method] - static.dim} in context]")
    missing = elmo.counts.missing // len(by_method)
    print(f"{missing} of {sum(len(text.split()) for text in SENTENCES)} tokens have no static vector: zeros")
    return by_method


if __name__ == "__main__":
    sizes(*sys.argv[1:3])
