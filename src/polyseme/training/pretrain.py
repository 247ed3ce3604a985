"""Corpus, biLM and softmax to the loop, and what comes out of it to a model folder.

    text.corpus.prepared, formats, training.loop  ->  training.pretrain  ->  OUT/

OUT/ is a model folder of ours (see formats.models.native) with, beside it:
    run.json, metrics.jsonl   the settings of the run and its course
    checkpoints/, corpus/     where it stands, and the prepared text
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch

from polyseme.errors import ConfigError, FormatError, PolysemeError, UsageError
from polyseme.formats.models import native
from polyseme.formats.models.pretrained import Pretrained, build_network
from polyseme.io.atomic import check_target, remove_leftovers
from polyseme.io.progress import OnProgress, ignore_progress
from polyseme.model.bilm import BiLM
from polyseme.model.init import initialise
from polyseme.model.softmax import AdaptiveSoftmax, AnySoftmax, Softmax, default_cutoffs
from polyseme.text.corpus.prepared import (
    Corpus,
    CorpusReport,
    CorpusSpec,
    open_corpus,
    prepare_corpus,
)
from polyseme.training.bilm_trainable import BilmTrainable
from polyseme.training.checkpoint import Position
from polyseme.training.distributed import Ranks, join_ranks, restarts
from polyseme.training.fine_tuning import adapt
from polyseme.training.loop import CHECKPOINTS, METRICS, Loop, Metrics, OnMetrics
from polyseme.training.out_of_memory import saying_what_to_lower
from polyseme.training.progress import make_step_reporter, report_corpus
from polyseme.training.run_record import RunRecord, record_run
from polyseme.training.settings import PretrainSettings
from polyseme.training.static_words import (
    StaticCoverage,
    check_static_words,
    fill_word_table_from_file,
)
from polyseme.training.tensorboard_log import BOARD

logger = logging.getLogger(__name__)
CORPUS = "corpus"


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
    config: PretrainSettings,
    *,
    valid: Sequence[str | Path] = (),
    base: Pretrained | None = None,
    new_vocabulary: bool = False,
    resume: bool = False,
    force: bool = False,
    workers: int | None = None,
    on_progress: OnProgress = ignore_progress,
    on_metrics: OnMetrics | None = None,
) -> Pretraining:
    """Train a biLM on `inputs` and write it to the folder `out`.

    base: fine-tune this model, with its vocabulary or, with `new_vocabulary`, with that of the new text.
    resume: go on from the last checkpoint in `out`; force: although settings or text differ, or, without
    resume, although `out` exists. `on_metrics` receives the numbers of every step and validation.
    """
    if base is None:
        check_static_words(config.model.words)
    with saying_what_to_lower(config):
        ranks = join_ranks(config.train.device)
        try:
            run = _PretrainRun(out, config, ranks, base, new_vocabulary)
            how = _How(resume=resume, force=force, workers=workers, on_progress=on_progress)
            ranks.lead("prepared", lambda: run.prepare(inputs, valid, how))
            return run.train(open_corpus(out / CORPUS), on_progress, on_metrics)
        finally:
            ranks.close()


@dataclass(frozen=True)
class _How:
    """How a run begins."""

    resume: bool
    force: bool
    workers: int | None
    on_progress: OnProgress


@dataclass
class _PretrainRun:
    """One run in one folder."""

    out: Path
    config: PretrainSettings
    ranks: Ranks
    base: Pretrained | None
    new_vocabulary: bool

    def prepare(self, inputs: Sequence[str | Path], valid: Sequence[str | Path], how: _How) -> None:
        """All that comes before training, in the first process: compare, prepare the text, note the run.

        What is refused is refused before anything in the folder is replaced.
        """
        if not how.resume and not restarts():
            self.check_folder(force=how.force)
        before = self.before(how)
        now = self.record(inputs, valid, before)
        resume = self.resumes(before, now, how)
        if not resume:
            self.check_folder(force=how.force)
            self.out.mkdir(parents=True, exist_ok=True)
        remove_leftovers(self.out, CORPUS, "model")
        remove_leftovers(self.out / CHECKPOINTS, r"step-\d+", "best")
        try:
            self.prepare_corpus(inputs, valid, how)
        except PolysemeError:
            self.leave_nothing()
            raise
        if not resume:
            shutil.rmtree(self.out / CHECKPOINTS, ignore_errors=True)
            shutil.rmtree(self.out / BOARD, ignore_errors=True)
            (self.out / METRICS).unlink(missing_ok=True)
        now.write(self.out)

    def before(self, how: _How) -> RunRecord | None:
        """What the run in the folder was; one that is replaced need not be readable."""
        try:
            return RunRecord.read(self.out)
        except FormatError:
            if how.force and not how.resume:
                return None
            raise

    def record(
        self, inputs: Sequence[str | Path], valid: Sequence[str | Path], before: RunRecord | None
    ) -> RunRecord:
        """What this run is."""
        return record_run(
            self.config,
            inputs,
            valid,
            self.base,
            new_vocabulary=self.new_vocabulary,
            processes=self.ranks.world,
            known=before,
        )

    def resumes(self, before: RunRecord | None, now: RunRecord, how: _How) -> bool:
        """Whether to go on with the run in the folder; refused where there is none, or another one."""
        differences = before.differences(now) if before else []
        if before is not None and not differences and restarts():
            return True  # torchrun started a killed process anew: go on where the run was
        if not how.resume:
            return False
        if before is None:
            raise UsageError(f"{self.out}: there is no run to resume. Leave --resume out to begin one.")
        if differences and not how.force:
            raise ConfigError(
                f"{self.out}: the run to resume differs in {'; '.join(differences)}. "
                "Use the same settings and text, or say --force."
            )
        if before.processes != now.processes:
            logger.warning("%s had %d processes, goes on with %d.", self.out, before.processes, now.processes)
        return True

    def check_folder(self, *, force: bool) -> None:
        """Refuse to overwrite; a folder with nothing but a prepared text is not in the way."""
        if self.out.is_file():
            raise UsageError(f"{self.out}: is a file, a folder is to be made there. Choose another name.")
        names = {entry.name for entry in self.out.iterdir()} if self.out.is_dir() else set()
        only_text = bool(names) and all(name == CORPUS or name.startswith(f".{CORPUS}-") for name in names)
        check_target(self.out, force=force or only_text)

    def leave_nothing(self) -> None:
        """A folder in which no run began goes again, so that the next try is not in its way."""
        if not any(self.out.iterdir()):
            self.out.rmdir()

    def prepare_corpus(self, inputs: Sequence[str | Path], valid: Sequence[str | Path], how: _How) -> None:
        """Prepare the text, or find it prepared."""
        corpus = prepare_corpus(
            inputs,
            self.out / CORPUS,
            make_corpus_spec(self.config),
            valid=valid,
            vocab=None if self.base is None or self.new_vocabulary else self.base.vocab,
            alphabet=self.base.alphabet if self.base else None,
            workers=how.workers,
            on_progress=how.on_progress,
        )
        if len(corpus.valid) == 0:
            raise ConfigError(
                "Nothing is held out, so the run could not be judged. Set corpus.valid_share or give --valid."
            )

    def train(self, corpus: Corpus, on_progress: OnProgress, on_metrics: OnMetrics | None) -> Pretraining:
        """Run the loop and write the model."""
        network, softmax = self.modules(corpus)
        static = self.fill_static_words(network, corpus)
        work = BilmTrainable(network, softmax, corpus, self.config, self.ranks)
        total = work.total_tokens()
        if self.ranks.first:
            report_corpus(corpus.report, on_progress)
        reporter = make_step_reporter(total, on_progress, on_metrics)
        loop = Loop(work, self.config.train, self.out, total, self.ranks, reporter)
        before = work.evaluate(final=True) if self.base is not None else None
        loop.resume()
        metrics = loop.run()
        if self.ranks.first:
            self.write(corpus, network, softmax, metrics, static)
        self.ranks.wait()
        return Pretraining(self.out, corpus.report, metrics, before, loop.position, self.ranks.first)

    def modules(self, corpus: Corpus) -> tuple[BiLM, AnySoftmax]:
        """A fresh network and softmax for the corpus, or those of the base model, made to fit."""
        if self.base is not None:
            return adapt(self.base, corpus, self.config)
        return fresh_modules(self.config, corpus)

    def fill_static_words(self, network: BiLM, corpus: Corpus) -> StaticCoverage | None:
        """Start the word table of a new model from the static vectors that the settings name."""
        words, table = self.config.model.words, network.tokens.words
        if self.base is not None or words is None or words.static is None or table is None:
            return None
        return fill_word_table_from_file(table, corpus.vocab, words.static, self.config.train.seed)

    def write(
        self,
        corpus: Corpus,
        network: BiLM,
        softmax: AnySoftmax,
        metrics: Metrics,
        static: StaticCoverage | None,
    ) -> None:
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
        if static is not None and settings.model.words is not None:
            origin["static vectors"] = f"{static}, {'trained' if settings.model.words.trained else 'frozen'}"
        network.eval()
        model = Pretrained(settings.model, network, corpus.alphabet, corpus.vocab, softmax, origin)
        native.write_into(model, self.out)


def fresh_modules(config: PretrainSettings, corpus: Corpus) -> tuple[BiLM, AnySoftmax]:
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


def fresh_softmax(config: PretrainSettings, network: BiLM, n_words: int) -> AnySoftmax:
    """The softmax that the config asks for, not yet initialised."""
    size = config.model.recurrent.outputs
    if config.softmax.kind == "adaptive" and n_words >= 4:
        return AdaptiveSoftmax(n_words, size, default_cutoffs(n_words))
    return Softmax(n_words, size, tied=network.tokens.words if config.softmax.tied else None)


def make_corpus_spec(config: PretrainSettings) -> CorpusSpec:
    """What the corpus is prepared with."""
    chars = config.model.chars
    return CorpusSpec(
        config.corpus,
        segment=config.model.segment,
        encoding=chars.encoding if chars else None,
        max_chars=chars.max_chars if chars else 50,
        seed=config.train.seed,
    )
