"""The values that options take by name, each list declared once.

    choices  ->  model, formats, elmo, search, api, cli

Imports nothing heavy, so that the command line starts fast. Segmentations are in `segmentations`.
"""

from __future__ import annotations

from typing import Literal

# Vectors of text
Pool = Literal["mean", "max", "first", "last", "sum", "concat", "sentence"]  # of the tokens of a sentence
Direction = Literal["both", "forward", "backward"]
VectorDtype = Literal["float32", "float16"]
VectorFormat = Literal["safetensors", "parquet", "npz", "hdf5"]  # files of a folder
Engine = Literal["local", "ray"]
ExportFormat = Literal["word2vec", "word2vec-binary", "projector"]  # of one vector per word

# Models on disk
ModelFormat = Literal["native", "hdf5", "onnx"]
CharacterEncoding = Literal["bytes", "codepoints"]  # what a character is
SavedPrecision = Literal["fp32", "bf16", "int8"]
ModelPrecision = Literal["fp32", "bf16", "int8", "auto"]

# The language model
Normalise = Literal["none", "lm", "total"]  # what is divided by the number of tokens

# Books
BookLanguage = Literal["en", "zh"]  # of the page about a book

# Search
IndexView = Literal["word", "context"]  # what a vector stands for: the word, or its context alone
UsageView = Literal["word", "context", "sentence"]
SpaceKind = Literal["none", "centre", "components", "whiten"]
Correction = Literal["none", "centre", "components", "whiten", "senses"]
IndexPrecision = Literal["fp16", "fp32"]
GraphDtype = Literal["float16", "int8"]
MapMethod = Literal["pca", "tsne"]
ConcordanceSort = Literal["document", "left", "right", "sense", "similarity"]  # the order of the lines
