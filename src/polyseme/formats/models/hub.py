"""Models on the Hugging Face Hub: fetch a repository into the Hub's cache, write a model as a commit.

    formats.models.native  <->  formats.models.hub  <->  huggingface_hub

A name is `user/repository` or `user/repository@revision`; a path that exists wins over a name. Token, cache
folder, endpoint and offline mode are those of huggingface_hub (HF_TOKEN, HF_HOME, HF_ENDPOINT,
HF_HUB_OFFLINE).
What must not change: only the files of a Polyseme folder are fetched and read. Pickles and hdf5 files in a
repository are neither fetched nor opened, even if another program has put them into the cache.
"""

from __future__ import annotations

import os
import re
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

from polyseme.errors import FormatError, MissingExtraError, PolysemeError, UsageError, require
from polyseme.formats.models import native
from polyseme.formats.models.card import CardMetadata
from polyseme.formats.models.pretrained import Pretrained
from polyseme.formats.vectors.word_file import WORDS_FILE
from polyseme.io.progress import OnProgress, ignore_progress

NAME = re.compile(r"(?P<repository>\w[\w.-]*/\w[\w.-]*)(?:@(?P<revision>[\w./-]+))?", re.ASCII)
COMMIT = re.compile(r"[0-9a-f]{40}")
FILE_ENDINGS = (
    *(".bin", ".dic", ".gz", ".h5", ".hdf5", ".json", ".onnx", ".pkl", ".safetensors", ".toml", ".txt"),
    *(".vec", ".zip"),
)
LOG_IN = "log in with `hf auth login`, or set HF_TOKEN"


class Repository(NamedTuple):
    """A repository of the Hub, and which of its states."""

    name: str  # user/repository
    revision: str | None = None  # a branch, a tag or a commit; None is the main branch

    def __str__(self) -> str:
        return self.name if self.revision is None else f"{self.name}@{self.revision}"


def find_repository(path: str | Path, cache: str | Path | None = None) -> Repository | None:
    """The repository that `path` names; None if it is a path.

    A `Path`, anything that exists on disk, and names with the ending of a file are paths. So is a name in a
    folder that exists, such as a mistyped models/elmo, unless it has a revision or the cache has it.
    """
    repository = _parse_name(path)
    if repository is None or (_is_in_folder(repository) and not _is_cached(repository, cache)):
        return None
    return repository


def choose_revision(
    path: str | Path, revision: str | None, cache: str | Path | None = None
) -> Repository | None:
    """The repository that `path` names, at `revision` if that is not None.

    Raises:
        UsageError: There is a revision, but no repository, or a name with another revision.

    """
    if revision is None:
        return find_repository(path, cache)
    repository = _parse_name(path)
    if repository is None:
        raise UsageError(
            f"{path}: `revision` is for repositories of the Hugging Face Hub, user/repository. Leave it out."
        )
    if repository.revision not in (None, revision):
        raise UsageError(f"{path}: the name has a revision already, and `revision` is {revision!r}.")
    return Repository(repository.name, revision)


def describe_unasked(path: str | Path) -> str:
    """Say that the Hub was not asked for a name because it is in a folder that exists; else nothing."""
    repository = _parse_name(path)
    if repository is None or not _is_in_folder(repository):
        return ""
    return (
        f" The Hugging Face Hub was not asked, because the folder {_folder_of(repository)} exists; for its "
        f"repository of that name write {repository.name}@main."
    )


def _parse_name(path: str | Path) -> Repository | None:
    """The repository that `path` may name: nothing of that name exists on disk."""
    match = NAME.fullmatch(path) if isinstance(path, str) else None
    if match is None or match["repository"].lower().endswith(FILE_ENDINGS) or os.path.exists(path):
        return None
    return Repository(match["repository"], match["revision"])


def _folder_of(repository: Repository) -> str:
    return repository.name.partition("/")[0]


def _is_in_folder(repository: Repository) -> bool:
    """Whether the name, read as a path, is in a folder that exists; with a revision it is no path."""
    return repository.revision is None and os.path.isdir(_folder_of(repository))


def _is_cached(repository: Repository, cache: str | Path | None) -> bool:
    try:
        hub = _import_hub("Looking into its cache")
    except MissingExtraError:
        return False
    folder = None if cache is None else str(Path(cache).expanduser())
    return isinstance(hub.try_to_load_from_cache(repository.name, native.CONFIG, cache_dir=folder), str)


def fetch_repository(
    repository: Repository, *, cache: str | Path | None = None, offline: bool = False
) -> Path:
    """Fetch the model in a repository, unless the cache has it.

    Args:
        repository: The repository.
        cache: The folder of the cache; None is that of huggingface_hub.
        offline: Use the cache only.

    Returns:
        The folder of its files in the cache, whose name is the commit.

    Raises:
        FormatError: There is no such repository or revision, it holds no Polyseme model, or it cannot be
            reached and is not in the cache.
        MissingExtraError: huggingface_hub is not installed.

    """
    hub = _import_hub(f"{repository}: no such file or folder. Loading it from the Hugging Face Hub")
    cached = None if cache is None else str(Path(cache).expanduser())
    bar = _make_progress_bar(hub)
    with _translate_errors(hub, repository, offline, cached):
        _check_connection(hub, repository, offline, cached)
        config = hub.hf_hub_download(
            repository.name,
            native.CONFIG,
            revision=repository.revision,
            cache_dir=cached,
            local_files_only=offline,
            tqdm_class=bar,
            library_name="polyseme",
            library_version=version("polyseme"),
        )
        commit = Path(config).parent.name
        if not native.is_native(Path(config).parent):
            raise FormatError(_describe_foreign(repository, f"its {native.CONFIG} is of another program"))
        folder = hub.snapshot_download(
            repository.name,
            revision=commit,
            cache_dir=cached,
            local_files_only=offline,
            allow_patterns=list(native.FILES),
            tqdm_class=bar,
            library_name="polyseme",
            library_version=version("polyseme"),
        )
    if not (Path(folder) / native.WEIGHTS).is_file():
        raise FormatError(_describe_foreign(repository, f"it has no {native.WEIGHTS}"))
    return Path(folder)


def _check_connection(hub: ModuleType, repository: Repository, offline: bool, cache: str | None) -> None:
    """Ask once for a repository that is not in the cache: a download tries for half a minute."""
    revision = repository.revision
    cached = hub.try_to_load_from_cache(repository.name, native.CONFIG, cache_dir=cache, revision=revision)
    if offline or hub.constants.is_offline_mode() or cached is not None:
        return
    address = hub.hf_hub_url(repository.name, native.CONFIG, revision=revision)
    try:
        hub.get_hf_file_metadata(address, timeout=hub.constants.HF_HUB_ETAG_TIMEOUT)
    except hub.errors.HfHubHTTPError:
        return  # the Hub has answered; the download gets the same answer, or waits until the Hub has time
    except hub.errors.HTTPError as problem:
        raise hub.errors.LocalEntryNotFoundError(str(problem)) from problem


def find_cached(repository: Repository) -> Path | None:
    """The folder of a repository in the cache; None if it is not there."""
    try:
        return fetch_repository(repository, offline=True)
    except PolysemeError:
        return None


def read(folder: Path, repository: Repository, progress: OnProgress = ignore_progress) -> Pretrained:
    """Read a model that was fetched; its files are Polyseme's, whatever else is in the folder."""
    try:
        model = native.read(folder, progress=progress)
    except PolysemeError as problem:  # name the repository, not the folder of the cache
        raise type(problem)(str(problem).replace(str(folder), str(repository))) from None
    return replace(model, origin={**model.origin, "repository": f"{repository.name}@{folder.name}"})


def push(
    model: Pretrained,
    name: str,
    *,
    revision: str | None = None,
    private: bool | None = None,
    message: str = "Upload model",
    precision: str,
    tables: bool,
    card: CardMetadata,
    replace_card: bool = False,
    words: bytes | None = None,
) -> str:
    """Write a model to a repository as one commit; a repository that does not exist is created.

    Files of an earlier model that this one does not have are removed in the same commit; other files stay.

    Args:
        model: The model.
        name: user/repository, or repository for that of the user who is logged in.
        revision: An existing or new branch; None is the main one.
        private: Whether a new repository is private; None is the setting of the account.
        message: The message of the commit.
        precision: Precision of the large weights.
        tables: Also write the tables in that precision.
        card: What the card says that the model does not know.
        replace_card: Replace a README.md that the repository has.
        words: The content of words.safetensors, if the model has word vectors.

    Returns:
        The address of the commit.

    Raises:
        UsageError: `name` is no name of a repository, nobody is logged in, or the Hub refuses.
        MissingExtraError: huggingface_hub is not installed.

    """
    hub = _import_hub("Writing to the Hugging Face Hub")
    if not isinstance(name, str) or not re.fullmatch(r"(\w[\w.-]*/)?\w[\w.-]*", name, re.ASCII):
        raise UsageError(f"{name!r:.80}: not the name of a repository. Expected user/repository.")
    api = hub.HfApi(library_name="polyseme", library_version=version("polyseme"))
    with _translate_push_errors(hub, name):
        full_name = api.create_repo(name, private=private, exist_ok=True).repo_id
        if revision is not None and not revision.startswith("refs/"):
            api.create_branch(full_name, branch=revision, exist_ok=True)
        has_card = api.file_exists(full_name, native.CARD, revision=revision)
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary) / "model"
        card = replace(card, name=full_name)
        native.write(model, folder, precision=precision, tables=tables, card=card)
        if words is not None:
            (folder / WORDS_FILE).write_bytes(words)
        written = {entry.name for entry in folder.iterdir()}
        with _translate_push_errors(hub, name):
            commit = api.upload_folder(
                repo_id=full_name,
                folder_path=folder,
                commit_message=message,
                revision=revision,
                ignore_patterns=[native.CARD] if has_card and not replace_card else None,
                delete_patterns=[file for file in native.FILES if file not in written],
            )
    return str(commit.commit_url)


def _import_hub(purpose: str) -> ModuleType:
    """huggingface_hub with its errors and constants, which it imports when they are used."""
    for module in ("huggingface_hub.errors", "huggingface_hub.constants", "huggingface_hub.utils"):
        require(module, "hub", purpose)
    return require("huggingface_hub", "hub", purpose)


def _make_progress_bar(hub: ModuleType) -> type:
    """The progress bar of huggingface_hub, but shown on a terminal only."""

    class TerminalBar(hub.utils.tqdm):  # type: ignore[misc, name-defined]
        def __init__(self, *arguments: Any, **options: Any) -> None:
            super().__init__(*arguments, **options | {"disable": options.get("disable") or None})

    return TerminalBar


def _describe_foreign(repository: Repository, reason: str) -> str:
    return (
        f"{repository}: not a Polyseme model: {reason}. Only folders of Polyseme are read from the Hub, no "
        "pickles and no hdf5: download and convert other models yourself."
    )


@contextmanager
def _translate_errors(
    hub: ModuleType, repository: Repository, offline: bool, cache: str | None
) -> Iterator[None]:
    """Turn what huggingface_hub raises when it reads into one line."""
    errors = hub.errors
    try:
        yield
    except errors.GatedRepoError:
        raise FormatError(
            f"{repository}: a gated repository. Accept its terms on the Hub, and {LOG_IN}."
        ) from None
    except errors.RepositoryNotFoundError:
        raise FormatError(
            f"{repository}: no such file or folder, and no such repository on the Hugging Face "
            f"Hub. If it is private, {LOG_IN}."
        ) from None
    except errors.RevisionNotFoundError:
        raise FormatError(
            f"{repository.name}: has no revision {repository.revision!r}. Expected a branch, tag or commit."
        ) from None
    except (errors.LocalEntryNotFoundError, errors.OfflineModeIsEnabled) as problem:
        folder = cache or hub.constants.HF_HUB_CACHE
        if offline or hub.constants.is_offline_mode():
            reason = "the Hub is not asked when offline"
        else:
            cause = problem.__cause__ or problem
            reason = f"the Hub cannot be reached ({_join_lines(cause)})"
        raise FormatError(
            f"{repository}: no such file or folder; not (completely) in the cache {folder}, and {reason}."
        ) from None
    except errors.EntryNotFoundError:
        raise FormatError(_describe_foreign(repository, f"it has no {native.CONFIG}")) from None
    except errors.HFValidationError:
        raise FormatError(
            f"{repository}: no such file or folder, and not a name of the Hugging Face Hub. Check the path."
        ) from None
    except errors.HTTPError as problem:  # base of HfHubHTTPError, too
        raise FormatError(
            f"{repository}: cannot be fetched from the Hugging Face Hub: {_first_line(problem)}"
        ) from None
    except OSError as problem:
        raise FormatError(
            f"{repository}: cannot be written to the cache: {_first_line(problem)}. Choose another `cache`."
        ) from None


@contextmanager
def _translate_push_errors(hub: ModuleType, name: str) -> Iterator[None]:
    """Turn what huggingface_hub raises when it writes into one line."""
    errors = hub.errors
    try:
        yield
    except (errors.HFValidationError, errors.LocalTokenNotFoundError) as problem:
        raise UsageError(f"{name}: cannot be written: {_first_line(problem)}") from None
    except errors.OfflineModeIsEnabled:
        raise UsageError(f"{name}: cannot be written offline. Unset HF_HUB_OFFLINE.") from None
    except errors.HTTPError as problem:
        status = getattr(getattr(problem, "response", None), "status_code", None)
        advice = f" You need permission to write: {LOG_IN}." if status in (401, 403) else ""
        raise UsageError(f"{name}: the Hugging Face Hub refused: {_first_line(problem)}{advice}") from None
    except (RuntimeError, ValueError) as problem:  # an upload that failed; a card that is not accepted
        cause = problem.__cause__ or problem
        raise UsageError(f"{name}: cannot be written to the Hugging Face Hub: {_join_lines(cause)}") from None


def _join_lines(problem: BaseException) -> str:
    return " ".join(str(problem).split()) or type(problem).__name__


def _first_line(problem: BaseException) -> str:
    """What a server said, without addresses and request numbers that follow in other lines."""
    lines = [line.strip() for line in str(problem).splitlines() if line.strip()]
    return lines[-1] if len(lines) == 2 and lines[0].startswith("Client error") else " ".join(lines[:1])
