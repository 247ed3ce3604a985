"""Polyseme in the duel: a biLM by `polyseme.pretrain`, its layers side by side.

The schedule of pretraining counts tokens, so a short run measures the speed first (not counted, as no rival
pays for finding its settings), and the tokens of the real run are planned from it. `plan` is the share of
the budget that is planned, the rest is a reserve for a machine that slows down. The preset is used as it is,
but for the dropout of long runs, which is what the preset advises.
"""

from __future__ import annotations

import tempfile
import time
from pathlib import Path

import numpy as np
from rival import EmbedBatch, Run, Sentence, Settings, main, pool_pieces, spread_words

import polyseme
from polyseme.training.pretrain import PretrainResult

DEFAULTS: Settings = {
    "preset": "novel",
    "segment": "",  # empty: split for English, zh for Chinese
    "more": "",  # further settings of pretrain, separated by ;
    "plan": 0.97,
}
PROBE_TOKENS = 80_000  # of the short run; the first third warms up
VALID_LINES = 60  # held out from the end of the text, to keep validation short
FEW_PASSES, LONG_DROPOUT = 3.0, 0.35  # more passes over the text need more dropout


def pretrain(run: Run) -> Settings:
    """Measure the speed, plan the tokens, train."""
    segment = run.settings["segment"] or {"en": "split", "zh": "zh"}[run.language]
    settings = [f"train.seed={run.seed}", f"model.segment={segment}", "train.evaluations=1"]
    settings += filter(None, run.settings["more"].split(";"))
    marks: list[tuple[float, int]] = []  # CPU time and tokens after each step
    with tempfile.TemporaryDirectory() as folder:
        lines = run.read_lines()
        text, valid = Path(folder) / "text.txt", Path(folder) / "valid.txt"
        text.write_text("\n".join(lines[:-VALID_LINES]) + "\n", encoding="utf-8")
        valid.write_text("\n".join(lines[-VALID_LINES:]) + "\n", encoding="utf-8")

        def train(tokens: int, out: Path, *changes: str) -> PretrainResult:
            marks.clear()
            return polyseme.pretrain(
                text,
                out,
                run.settings["preset"],
                settings=[*settings, f"train.tokens={tokens}", *changes],
                valid=[valid],
                workers=1,
                progress=False,
                on_metrics=lambda position, _: marks.append((time.process_time(), position.tokens)),
            )

        started = time.process_time()
        probe = train(PROBE_TOKENS, Path(folder) / "probe")
        first, last = marks[len(marks) // 3], marks[-2]
        speed = (last[1] - first[1]) / (last[0] - first[0])
        fixed = (time.process_time() - started) - last[1] / speed
        run.budget.started = time.process_time()  # the real run begins here
        tokens = int(speed * (run.budget.seconds * run.settings["plan"] - fixed))
        passes = tokens / len(probe.corpus.train)
        changes = [f"train.dropout={LONG_DROPOUT}"] if passes > FEW_PASSES else []
        train(tokens, run.out / "model", *changes)
    if segment == "zh-char":
        (run.out / "unit").write_text("characters")
    return {"tokens": marks[-1][1], "epochs": round(passes, 2), "tokens_per_cpu_second": round(speed)}


def load(folder: Path, language: str, characters: bool) -> EmbedBatch:
    """Vectors of words, or of words from characters where the model reads characters."""
    model = polyseme.load(folder / "model")

    def embed(sentences: list[Sentence]) -> list[np.ndarray]:
        return model.embed(sentences, layer="concat", progress=False)

    def embed_by_characters(sentences: list[Sentence]) -> list[np.ndarray]:
        pieces = embed([list("".join(sentence)) for sentence in sentences])
        return [
            pool_pieces(rows, [len(token) for token in sentence])
            for rows, sentence in zip(pieces, sentences, strict=True)
        ]

    if (folder / "unit").exists():
        return embed_by_characters
    return spread_words(embed) if characters else embed


if __name__ == "__main__":
    main(__doc__, DEFAULTS, pretrain, load)
