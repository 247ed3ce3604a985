"""Contextual vectors with onnxruntime and numpy alone: neither Polyseme nor torch is needed.

polyseme convert en en.onnx
python examples/onnx_vectors.py en.onnx "He sat on the river bank ." "The bank failed ."
"""

import json
import sys

import numpy as np
import onnxruntime


def embed(session, sentences):
    """The layers (L, tokens, H) of each token list."""
    ids = json.loads(session.get_modelmeta().custom_metadata_map["polyseme"])
    chars, words, feed = ids["chars"], ids["words"], {}
    shape = (len(sentences), max(map(len, sentences)) + 2)  # with <S> and </S>; 0 behind a sentence
    if chars:
        limit, padding = chars["max_chars"] - 2, [chars["padding"]] * chars["max_chars"]
        feed["chars"] = np.zeros((*shape, limit + 2), np.int64)
    if words:
        numbers = {word: number for number, word in enumerate(words["list"], 1)}
        plain = str.maketrans(words["simplified"])  # of traditional Chinese characters
        feed["words"] = np.zeros(shape, np.int64)
    for b, tokens in enumerate(sentences):
        for t, token in enumerate([None, *tokens, None]):
            mark = ("begin" if t == 0 else "end") if token is None else None
            if chars:
                inside = [chars[f"sentence_{mark}"]] if mark else encode(chars, token)[:limit]
                row = [chars["word_begin"], *inside, chars["word_end"], *padding]
                feed["chars"][b, t] = row[: limit + 2]
            if words:
                word = words[mark] if mark else token[: limit if chars else None]
                known = [numbers[form] for form in (word, word.translate(plain)) if form in numbers]
                feed["words"][b, t] = min(known, default=numbers[words["unknown"]])
    (layers,) = session.run(["layers"], feed)
    return [layers[:, b, 1 : len(tokens) + 1] for b, tokens in enumerate(sentences)]


def encode(chars, token):
    """The ids of the characters of a token: UTF-8 bytes, or entries of a list."""
    if "first_byte" in chars:
        return [chars["first_byte"] + byte for byte in token.encode("utf-8", "ignore")]
    return [chars["ids"].get(character, chars["unknown"]) for character in token]


if __name__ == "__main__":
    model = onnxruntime.InferenceSession(sys.argv[1], providers=["CPUExecutionProvider"])
    for line, layers in zip(sys.argv[2:], embed(model, [line.split() for line in sys.argv[2:]]), strict=True):
        print(line, layers.mean(axis=0).shape, layers.mean(axis=0)[:, :4].round(3).tolist(), sep="\n")
