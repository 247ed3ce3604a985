"""Static word vectors joined with their context: the three classic ways, and their sizes.

python examples/join_static.py MODEL VECTORS

VECTORS is a word2vec, GloVe or fastText file, as text, binary or .gz.
"""

import sys

import polyseme

SENTENCES = ["He sat on the river bank .", "The bank failed ."]


def sizes(model: str, vectors: str) -> dict[str, int]:
    """Join the vectors in every way; return how many values a token gets by each."""
    elmo = polyseme.load(model)
    static = polyseme.read_vectors(vectors)  # or give `features` the path: it reads only the words it needs
    found = {}
    for method in ("top", "concat", "mix"):
        joined = elmo.features(SENTENCES, method=method, static=static)  # a list of (tokens, values)
        found[method] = joined[0].shape[1]
        print(f"{method:7} [{static.dim} static; {found[method] - static.dim} in context]")
    missing = elmo.counts.missing // len(found)
    print(f"{missing} of {sum(len(text.split()) for text in SENTENCES)} tokens have no static vector: zeros")
    return found


if __name__ == "__main__":
    sizes(*sys.argv[1:3])
