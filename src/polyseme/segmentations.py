"""The names of the ways to segment text, for settings, the command line, the library and the docs.

Imports nothing, so that the command line starts fast. `text.segment` implements them.
"""

from __future__ import annotations

from typing import Literal

Segmentation = Literal["split", "en", "zh", "zh-char", "letters", "auto"]

SEGMENTATIONS: dict[Segmentation, str] = {
    "split": "split at white space; for text that is tokenised already",
    "en": "rules for English and other European languages",
    "zh": "Chinese words, by jieba",
    "zh-char": "one token per Chinese character",
    "letters": "one token per letter or other character, such as the residues of a protein",
    "auto": "zh for lines in which Chinese characters outnumber other words, else en",
}
