"""Corpus, biLM and softmax to the loop, and what comes out of it to a model folder.

    text.corpus, formats, training.loop  ->  training.pretrain  ->  OUT/

OUT/ is a model folder of ours (see formats.native) with, beside it:
    run.json, metrics.jsonl   the settings of the run and its course
    checkpoints/, corpus/     where it stands, and the prepared text
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from polyseme.errors import ConfigError, PolysemeError, UsageError
from polyseme.formats import native
from polyseme.formats.pretrained import Pretrained, build_network
from polyseme.formats.writing import check_target
from polyseme.model.bilm import BiLM
from polyseme.model.softmax import AdaptiveSoftmax, AnySoftmax, Softmax, usual_cutoffs
from polyseme.model.start import initialise
from polyseme.text.corpus import Corpus, CorpusReport, CorpusSettings, Watch, open_corpus, prepare_corpus
from polyseme.training.bilm_work import BilmWork
from polyseme.training.checkpoint import Position
from polyseme.training.distributed import Ranks, join_ranks, restarts
from polyseme.training.loop import Loop, Metrics
from polyseme.training.settings import PretrainConfig
from polyseme.training.transfer import adapt

RUN = "run.json"


@dataclass(frozen=True)
class Pretraining:
    """A finished run."""

    folder: Path
    report: CorpusReport
    metrics: Metrics  # of the last validation: forward, backward, mean perplexity …
    before: Metrics | None  # the same before fine-tuning
    position: Position
    first: bool = True  # whether this process is the one that writes and speaks


def pretrain(
    inputs: Sequence[str | Path],
    out: Path,
    config: PretrainConfig,
    *,
    valid: Sequence[str | Path] = (),
    base: Pretrained | None = None,
    new_vocabulary: bool = False,
    resume: bool = False,
    force: bool = False,
    workers: int | None = None,
    reading: Watch | None = None,
    watch: Callable[[Position, Metrics], None] | None = None,
    prepared: Callable[[Corpus, int], None] | None = None,
) -> Pretraining:
    """Train a biLM on `inputs` and write it to the folder `out`.

    base: fine-tune this model, with its vocabulary or, with `new_vocabulary`, with that of the new text.
    resume: go on from the last checkpoint in `out`; force: although settings or text differ, or, without
    resume, although `out` exists. `reading`, `watch`, `prepared` see how far it is.
    """
    ranks = join_ranks()
    if restarts():  # torchrun started a killed process anew: go on where the run was
        resume, force = (out / RUN).exists(), True
    try:
        run = _Run(out, config, ranks, base, new_vocabulary)
        run.check_folder(resume=resume, force=force)
        try:
            corpus = run.corpus(inputs, valid, workers, reading)
            run.check_same(corpus, resume=resume, force=force)
        except PolysemeError:
            run.leave_nothing()
            raise
        return run.train(corpus, resume=resume, watch=watch, prepared=prepared)
    finally:
        ranks.close()


@dataclass
class _Run:
    """One run in one folder."""

    out: Path
    config: PretrainConfig
    ranks: Ranks
    base: Pretrained | None
    new_vocabulary: bool

    def check_folder(self, *, resume: bool, force: bool) -> None:
        """Refuse to overwrite, or to resume what is not there."""
        if resume and not (self.out / RUN).exists():
            raise UsageError(f"{self.out}: there is no run to resume. Leave --resume out to begin one.")
        if not resume and self.ranks.first:
            check_target(self.out, force=force)
            if (self.out / RUN).exists():
                shutil.rmtree(self.out / "checkpoints", ignore_errors=True)
                (self.out / "metrics.jsonl").unlink(missing_ok=True)
            if self.out.is_file():
                raise UsageError(f"{self.out}: is a file, a folder is to be made there. Choose another name.")
            self.out.mkdir(parents=True, exist_ok=True)
        self.ranks.wait()

    def leave_nothing(self) -> None:
        """A folder in which no run began goes again, so that the next try is not in its way."""
        if self.ranks.first and not (self.out / RUN).exists() and not any(self.out.iterdir()):
            self.out.rmdir()

    def corpus(
        self,
        inputs: Sequence[str | Path],
        valid: Sequence[str | Path],
        workers: int | None,
        watch: Watch | None,
    ) -> Corpus:
        """The prepared text; the first process prepares it for all."""
        if self.ranks.first:
            kept = None if self.base is None or self.new_vocabulary else self.base.vocab
            prepare_corpus(
                inputs,
                self.out / "corpus",
                corpus_settings(self.config),
                valid=valid,
                vocab=kept,
                alphabet=self.base.alphabet if self.base else None,
                workers=workers,
                watch=watch,
            )
        self.ranks.wait()
        return open_corpus(self.out / "corpus")

    def check_same(self, corpus: Corpus, *, resume: bool, force: bool) -> None:
        """A resumed run must have the same settings and text; a new one notes them."""
        if len(corpus.valid) == 0:
            raise ConfigError(
                "Nothing is held out, so the run could not be judged. Set corpus.valid_share or give --valid."
            )
        now = {"config": self.config.model_dump(mode="json"), "corpus": corpus.fingerprint}
        path = self.out / RUN
        if resume and not force:
            differences = _differences(json.loads(path.read_text(encoding="utf-8")), now)
            if differences:
                raise ConfigError(
                    f"{self.out}: the run to resume differs in {'; '.join(differences)}. "
                    "Use the same settings and text, or say --force."
                )
        self.ranks.wait()
        if self.ranks.first and (force or not resume):
            path.write_text(json.dumps(now, ensure_ascii=False, indent=2) + "\n", encoding="utf-8")

    def train(
        self,
        corpus: Corpus,
        *,
        resume: bool,
        watch: Callable[[Position, Metrics], None] | None,
        prepared: Callable[[Corpus, int], None] | None,
    ) -> Pretraining:
        """Run the loop and write the model."""
        network, softmax = self.modules(corpus)
        work = BilmWork(network, softmax, corpus, self.config, self.ranks)
        total = work.total_tokens()
        if prepared is not None and self.ranks.first:
            prepared(corpus, total)
        loop = Loop(work, self.config.train, self.out, total, self.ranks, watch)
        before = work.evaluate(final=True) if self.base is not None else None
        if resume:
            loop.resume()
        metrics = loop.run()
        if self.ranks.first:
            self.write(corpus, network, softmax, metrics)
        self.ranks.wait()
        return Pretraining(self.out, corpus.report, metrics, before, loop.position, self.ranks.first)

    def modules(self, corpus: Corpus) -> tuple[BiLM, AnySoftmax]:
        """A fresh network and softmax for the corpus, or those of the base model, made to fit."""
        if self.base is not None:
            return adapt(self.base, corpus, self.config)
        return fresh_modules(self.config, corpus)

    def write(self, corpus: Corpus, network: BiLM, softmax: AnySoftmax, metrics: Metrics) -> None:
        """The model's files into the folder of the run."""
        report, settings = corpus.report, self.config
        origin = {
            "trained on": f"{report.tokens:,} tokens, {report.words:,} words in the vocabulary",
            "held-out perplexity": "forward {forward:.1f}, backward {backward:.1f}, mean {mean:.1f}".format(
                **metrics
            ),
            "unknown words": f"{report.valid_unknown:.1%} of the held-out text",
            "optimiser": f"{settings.train.optimizer}, {settings.softmax.kind} softmax",
            "seed": str(settings.train.seed),
        }
        network.eval()
        model = Pretrained(settings.model, network, corpus.alphabet, corpus.vocab, softmax, origin)
        native.write_into(model, self.out)


def fresh_modules(config: PretrainConfig, corpus: Corpus) -> tuple[BiLM, AnySoftmax]:
    """A network and a softmax for the corpus as they start, drawn by the seed."""
    torch.manual_seed(config.train.seed)
    network = build_network(
        config.model,
        n_chars=corpus.alphabet.size if corpus.alphabet else 1,
        n_words=len(corpus.vocab),
        padding=corpus.alphabet.padding if corpus.alphabet else 0,
    )
    softmax = fresh_softmax(config, network, len(corpus.vocab))
    initialise(network, softmax)
    return network, softmax


def fresh_softmax(config: PretrainConfig, network: BiLM, n_words: int) -> AnySoftmax:
    """The softmax that the config asks for, not yet initialised."""
    size = config.model.recurrent.outputs
    if config.softmax.kind == "adaptive" and n_words >= 4:
        return AdaptiveSoftmax(n_words, size, usual_cutoffs(n_words))
    return Softmax(n_words, size, tied=network.tokens.words if config.softmax.tied else None)


def corpus_settings(config: PretrainConfig) -> CorpusSettings:
    """What the corpus is prepared with."""
    chars = config.model.chars
    return CorpusSettings(
        segment=config.model.segment,
        documents=config.corpus.documents,
        field=config.corpus.field,
        min_count=config.corpus.min_count,
        max_words=config.corpus.max_words,
        encoding=chars.encoding if chars else None,
        max_chars=chars.max_chars if chars else 50,
        valid_share=config.corpus.valid_share,
        valid_tokens=config.corpus.valid_tokens,
        valid_every=config.corpus.valid_every,
        seed=config.train.seed,
    )


def _differences(before: Any, now: Any, place: str = "") -> list[str]:
    """Where two nested values differ: `config.train.rate was 0.2, is 0.1`."""
    if isinstance(before, dict) and isinstance(now, dict):
        names = [*before, *(name for name in now if name not in before)]
        found = [_differences(before.get(name), now.get(name), f"{place}{name}.") for name in names]
        return [line for lines in found for line in lines]
    name = place.removesuffix(".").removeprefix("config.")
    if before == now:
        return []
    return ["the text"] if name == "corpus" else [f"{name} (was {before}, is {now})"]
