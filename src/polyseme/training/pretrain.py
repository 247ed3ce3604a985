"""Pretrain a biLM: prepare the text, run the loop, write a model folder.

    text.corpus.prepared, formats, training.loop  ->  training.pretrain  ->  OUT/

OUT/ is a native model folder (see formats.models.native) with these files in addition:
    run.json, metrics.jsonl   settings of the run, and its metrics step by step
    checkpoints/, corpus/     checkpoints, and the prepared text
"""

from __future__ import annotations

import logging
import shutil
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import torch

from polyseme.errors import ConfigError, FormatError, PolysemeError, UsageError
from polyseme.formats.models import native
from polyseme.formats.models.pretrained import Pretrained, build_network
from polyseme.io.atomic import check_output_path, remove_leftovers
from polyseme.io.output_lock import lock_output
from polyseme.io.progress import OnProgress, ignore_progress
from polyseme.model.bilm import BiLM
from polyseme.model.init import initialise
from polyseme.model.softmax import AdaptiveSoftmax, AnySoftmax, Softmax, choose_cutoffs
from polyseme.text.corpus.prepared import (
    Corpus,
    CorpusReport,
    CorpusSpec,
    open_corpus,
    prepare_corpus,
)
from polyseme.text.segment import WordList
from polyseme.training.bilm_trainable import BilmTrainable
from polyseme.training.checkpoint import Position
from polyseme.training.distributed import Ranks, count_restarts, join_ranks
from polyseme.training.fine_tuning import adapt_modules
from polyseme.training.loop import CHECKPOINTS, METRICS, Loop, Metrics, OnMetrics
from polyseme.training.out_of_memory import explain_out_of_memory
from polyseme.training.progress import make_step_reporter, report_corpus
from polyseme.training.run_record import RUN, RunRecord, record_run
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
class PretrainResult:
    """A finished run.

    Attributes:
        folder: The model folder.
        report: What was counted in the text.
        metrics: The last validation: `forward`, `backward` and `mean` perplexity, `unknown`, `targets`.
        before: The same before fine-tuning; None for a new model.
        position: Where the run ended: steps, tokens, seconds.
        model: The trained model, as it was saved.
        corpus: The prepared text.
        is_first: Whether this is the process that writes files; False in other processes of torchrun.

    """

    folder: Path
    report: CorpusReport
    metrics: Metrics
    before: Metrics | None
    position: Position
    model: Pretrained = field(repr=False)
    corpus: Corpus = field(repr=False)
    is_first: bool = True


def pretrain(
    inputs: Sequence[str | Path],
    out: Path,
    config: PretrainSettings,
    *,
    valid: Sequence[str | Path] = (),
    base: Pretrained | None = None,
    words: WordList | None = None,
    new_vocabulary: bool = False,
    resume: bool = False,
    force: bool = False,
    workers: int | None = None,
    on_progress: OnProgress = ignore_progress,
    on_metrics: OnMetrics | None = None,
    on_trained: Callable[[PretrainResult], object] | None = None,
) -> PretrainResult:
    """Train a biLM on text and write it to a folder.

    Args:
        inputs: Files, folders and globs.
        out: The model folder.
        config: The settings, from `read_pretrain_settings`; for a `base`, from `adapt_settings`.
        valid: Held-out text; by default a part of `inputs` is held out.
        base: A model to fine-tune; None trains a new one.
        words: Words that the segmentation must know; None: those of `base`, if any.
        new_vocabulary: Take the vocabulary of the new text instead of that of `base`.
        resume: Continue from the last checkpoint in `out`.
        force: Resume although settings or text differ; without `resume`, replace what is in `out`.
        workers: Processes that segment text; None chooses by the machine and the size of the text.
        on_progress: Receives progress events.
        on_metrics: Receives the metrics of every step and validation.
        on_trained: Receives the finished run while `out` is still locked; only in the process that
            writes files.

    Returns:
        The finished run.

    Raises:
        ConfigError: The settings do not fit each other, the text, or the run to resume.
        DataError: The text cannot be used.
        UsageError: `out` exists, or there is no run to resume.
        DivergedError: The loss is no longer a finite number.
        StoppedError: A signal ended the run after it was saved.

    """
    if base is None:
        check_static_words(config.model.words)
    with explain_out_of_memory(config), ExitStack() as stack:
        ranks = join_ranks(config.train.device)
        try:
            run = _PretrainRun(out, config, ranks, base, words, new_vocabulary)
            options = _RunOptions(resume=resume, force=force, workers=workers, on_progress=on_progress)

            def begin() -> None:
                stack.enter_context(lock_output(out))
                run.prepare(inputs, valid, options)

            ranks.run_first("prepared", begin)
            result = run.train(open_corpus(out / CORPUS), on_progress, on_metrics)
            if on_trained is not None and result.is_first:
                on_trained(result)
            return result
        finally:
            ranks.close()


@dataclass(frozen=True)
class _RunOptions:
    """How a run begins; see `pretrain`."""

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
    words: WordList | None
    new_vocabulary: bool

    def prepare(
        self, inputs: Sequence[str | Path], valid: Sequence[str | Path], options: _RunOptions
    ) -> None:
        """Do all that comes before training, in the first process: compare, prepare the text, write run.json.

        Everything is checked before anything in the folder is replaced.
        """
        if not options.resume and not count_restarts():
            self.check_folder(force=options.force)
        earlier = self.read_earlier_run(options)
        current = record_run(
            self.config,
            inputs,
            valid,
            self.base,
            words=self.words,
            new_vocabulary=self.new_vocabulary,
            processes=self.ranks.world,
            known=earlier,
        )
        resume = self.should_resume(earlier, current, options)
        if not resume:
            self.check_folder(force=options.force)
            self.out.mkdir(parents=True, exist_ok=True)
        remove_leftovers(self.out, CORPUS, "model")
        remove_leftovers(self.out / CHECKPOINTS, r"step-\d+", "best")
        try:
            self.prepare_corpus(inputs, valid, options)
        except PolysemeError:
            self.remove_empty_folder()
            raise
        if not resume:
            shutil.rmtree(self.out / CHECKPOINTS, ignore_errors=True)
            shutil.rmtree(self.out / BOARD, ignore_errors=True)
            (self.out / METRICS).unlink(missing_ok=True)
        current.write(self.out)

    def read_earlier_run(self, options: _RunOptions) -> RunRecord | None:
        """Read run.json; a run that will be replaced need not be readable."""
        try:
            return RunRecord.read(self.out)
        except FormatError:
            if options.force and not options.resume:
                return None
            raise

    def should_resume(self, earlier: RunRecord | None, current: RunRecord, options: _RunOptions) -> bool:
        """Whether to continue the run in the folder; refuses if there is none, or a different one."""
        differences = earlier.list_differences(current) if earlier else []
        if earlier is not None and not differences and count_restarts():
            return True  # torchrun restarted a killed process
        if not options.resume:
            return False
        if earlier is None and self.has_only_text():
            return False  # killed before the run began
        if earlier is None:
            raise UsageError(f"{self.out}: no run to resume. Leave out `resume=True` to start one.")
        if differences and not options.force:
            raise ConfigError(
                f"{self.out}: the run to resume differs in {'; '.join(differences)}. "
                "Use the same settings and text, or `force=True`."
            )
        if earlier.processes != current.processes:
            logger.warning(
                "%s had %d processes and continues with %d.", self.out, earlier.processes, current.processes
            )
        return True

    def check_folder(self, *, force: bool) -> None:
        """Refuse to overwrite; a folder with nothing but a prepared text may be used."""
        if self.out.is_file():
            raise UsageError(f"{self.out}: is a file, but a folder will be written. Choose another name.")
        check_output_path(self.out, force=force or self.has_only_text())

    def has_only_text(self) -> bool:
        """Whether the folder holds what a run leaves that was killed before it began: a text, or nothing."""
        leftovers = (f".{CORPUS}-", f".{Path(RUN).stem}-")
        return self.out.is_dir() and all(
            entry.name == CORPUS or entry.name.startswith(leftovers) for entry in self.out.iterdir()
        )

    def remove_empty_folder(self) -> None:
        """Remove the folder if nothing is in it, so that the next attempt need not overwrite it."""
        if not any(self.out.iterdir()):
            self.out.rmdir()

    def prepare_corpus(
        self, inputs: Sequence[str | Path], valid: Sequence[str | Path], options: _RunOptions
    ) -> None:
        """Prepare the text, unless an earlier run did."""
        corpus = prepare_corpus(
            inputs,
            self.out / CORPUS,
            make_corpus_spec(self.config, self.base, self.words),
            valid=valid,
            vocab=None if self.base is None or self.new_vocabulary else self.base.vocab,
            alphabet=self.base.alphabet if self.base else None,
            workers=options.workers,
            on_progress=options.on_progress,
        )
        if len(corpus.valid) == 0:
            raise ConfigError(
                "No text is held out, so the run could not be evaluated. Set corpus.valid_share above 0, "
                "or name held-out text with `valid`."
            )

    def train(self, corpus: Corpus, on_progress: OnProgress, on_metrics: OnMetrics | None) -> PretrainResult:
        """Run the loop and write the model."""
        network, softmax = self.make_modules(corpus)
        coverage = self.fill_static_words(network, corpus)
        trainable = BilmTrainable(network, softmax, corpus, self.config, self.ranks)
        total = trainable.count_total_tokens()
        if self.ranks.is_first:
            report_corpus(corpus.report, on_progress)
        reporter = make_step_reporter(total, on_progress, on_metrics)
        loop = Loop(trainable, self.config.train, self.out, total, self.ranks, reporter)
        before = trainable.evaluate(final=True) if self.base is not None else None
        loop.resume()
        metrics = loop.run()
        network.eval()
        origin = self.describe_origin(corpus.report, metrics, coverage)
        model = Pretrained(
            self.config.model,
            network,
            corpus.alphabet,
            corpus.vocab,
            softmax,
            origin,
            word_list=corpus.word_list,
        )
        if self.ranks.is_first:
            native.write_into(model, self.out)
        self.ranks.wait()
        return PretrainResult(
            self.out, corpus.report, metrics, before, loop.position, model, corpus, self.ranks.is_first
        )

    def make_modules(self, corpus: Corpus) -> tuple[BiLM, AnySoftmax]:
        """Make a fresh network and softmax for the corpus, or adapt those of the base model."""
        if self.base is not None:
            return adapt_modules(self.base, corpus, self.config)
        return make_fresh_modules(self.config, corpus)

    def fill_static_words(self, network: BiLM, corpus: Corpus) -> StaticCoverage | None:
        """Start the word table of a new model from the static vectors that the settings name."""
        words, table = self.config.model.words, network.tokens.words
        if self.base is not None or words is None or words.static is None or table is None:
            return None
        return fill_word_table_from_file(table, corpus.vocab, words.static, self.config.train.seed)

    def describe_origin(
        self, report: CorpusReport, metrics: Metrics, coverage: StaticCoverage | None
    ) -> dict[str, str]:
        """Facts of the run for the model card."""
        settings, words = self.config, self.config.model.words
        origin = {
            "trained on": f"{report.tokens:,} tokens, {report.words:,} words in the vocabulary",
            "held-out perplexity": "forward {forward:.1f}, backward {backward:.1f}, mean {mean:.1f}".format(
                **metrics
            ),
            "unknown words": f"{report.valid_unknown:.1%} of the held-out text",
            "optimiser": f"{settings.train.optimizer}, {settings.softmax.kind} softmax",
            "seed": str(settings.train.seed),
        }
        if coverage is not None and words is not None:
            origin["static vectors"] = f"{coverage}, {'trained further' if words.trained else 'frozen'}"
        return origin


def make_fresh_modules(config: PretrainSettings, corpus: Corpus) -> tuple[BiLM, AnySoftmax]:
    """Make a network and a softmax for the corpus, drawn by the seed."""
    torch.manual_seed(config.train.seed)
    network = build_network(
        config.model,
        n_chars=corpus.alphabet.size if corpus.alphabet else 1,
        n_words=len(corpus.vocab),
        padding=corpus.alphabet.padding if corpus.alphabet else 0,
    )
    softmax = make_softmax(config, network, len(corpus.vocab))
    initialise(network, softmax)
    return network, softmax


def make_softmax(config: PretrainSettings, network: BiLM, n_words: int) -> AnySoftmax:
    """Make the softmax that the settings choose, not yet initialised."""
    size = config.model.recurrent.outputs
    if config.softmax.kind == "adaptive" and n_words >= 4:
        return AdaptiveSoftmax(n_words, size, choose_cutoffs(n_words))
    return Softmax(n_words, size, tied=network.tokens.words if config.softmax.tied else None)


def make_corpus_spec(
    config: PretrainSettings, base: Pretrained | None = None, words: WordList | None = None
) -> CorpusSpec:
    """Collect from all sections what decides the content of the prepared corpus.

    A model to fine-tune keeps its word list: new words would change the segmentation it was trained with.
    """
    chars = config.model.chars
    corpus = (
        config.corpus
        if base is None
        else config.corpus.model_copy(update={"new_words": False, "names": False})
    )
    return CorpusSpec(
        corpus,
        segment=config.model.segment,
        encoding=chars.encoding if chars else None,
        max_chars=chars.max_chars if chars else 50,
        seed=config.train.seed,
        word_list=base.word_list if words is None and base is not None else words,
    )
