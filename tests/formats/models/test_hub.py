"""Models on a Hugging Face Hub: fetched, cached, pinned and pushed by the real huggingface_hub.

The Hub is a server on this machine (tests/fake_hub.py).
"""

from __future__ import annotations

import os
import pickle
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import polyseme
from builders import WORDS, random_model, small_config
from fake_hub import TOKEN, FakeHub, Files, HubRepository, run_hub
from polyseme.elmo import Elmo
from polyseme.errors import FormatError, MissingExtraError, PolysemeError, UsageError
from polyseme.formats.models.card import CardMetadata, drop_front_matter, render_card
from polyseme.formats.models.hub import find_repository
from polyseme.formats.models.native import FILES

huggingface_hub = pytest.importorskip("huggingface_hub")
pytest.importorskip("huggingface_hub.constants")
pytestmark = pytest.mark.filterwarnings("ignore:Use 'content=:DeprecationWarning")  # of its plain upload
SENTENCE = ["the", "bank", "failed"]
NAME = "user/river"


def point_to(monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    """Send requests to another Hub, as HF_ENDPOINT does when huggingface_hub is imported."""
    template = f"{address}/{{repo_id}}/resolve/{{revision}}/{{filename}}"
    monkeypatch.setattr(huggingface_hub.constants, "ENDPOINT", address)
    monkeypatch.setattr(huggingface_hub.constants, "HUGGINGFACE_CO_URL_TEMPLATE", template)


@pytest.fixture
def hub(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Iterator[FakeHub]:
    """A Hub that huggingface_hub is logged in to, with an empty cache."""
    with run_hub() as running:
        constants = huggingface_hub.constants
        point_to(monkeypatch, running.address)
        monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "cache"))
        monkeypatch.setattr(constants, "HF_HUB_DISABLE_XET", True)
        monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
        monkeypatch.setenv("HF_TOKEN", TOKEN)
        monkeypatch.chdir(tmp_path)
        yield running
        assert running.unknown == []


@pytest.fixture
def elmo() -> Elmo:
    return Elmo(random_model(small_config(segment="en"), seed=1))


def add_model(hub: FakeHub, elmo: Elmo, tmp_path: Path, others: Files | None = None) -> str:
    """Put a model and other files into the repository NAME, without huggingface_hub."""
    elmo.save(tmp_path / "saved")
    files = {file.name: file.read_bytes() for file in (tmp_path / "saved").iterdir()}
    shutil.rmtree(tmp_path / "saved")
    repository = hub.repositories.setdefault(NAME, HubRepository())
    return repository.commit(files | (others or {}))


def assert_same(left: Elmo, right: Elmo) -> None:
    np.testing.assert_array_equal(left.embed([SENTENCE], layer="all"), right.embed([SENTENCE], layer="all"))


def go_offline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(huggingface_hub.constants, "HF_HUB_OFFLINE", True)


def test_a_repository_is_loaded_by_its_name(hub, elmo, tmp_path):
    commit = add_model(hub, elmo, tmp_path)
    loaded = polyseme.load(NAME)
    assert_same(loaded, elmo)
    assert loaded.path == f"{NAME}@{commit}"
    assert loaded.model.origin["repository"] == f"{NAME}@{commit}"
    assert_same(Elmo.from_pretrained(NAME, precision="fp32"), elmo)


def test_only_the_files_of_polyseme_are_fetched_and_pickles_never_opened(hub, elmo, tmp_path):
    class Bomb:
        def __reduce__(self) -> tuple[object, tuple[str]]:
            return os.mkdir, (str(tmp_path / "exploded"),)

    bomb = pickle.dumps(Bomb())
    names = ("encoder.pkl", "token_embedder.pkl", "pytorch_model.bin", "model.hdf5")
    commit = add_model(hub, elmo, tmp_path, {name: bomb + name.encode() for name in names})
    polyseme.load(NAME)
    assert hub.fetched() <= set(FILES)
    assert "model.safetensors" in hub.fetched()
    # The same cache with everything in it, as another program would leave it.
    huggingface_hub.snapshot_download(NAME, revision=commit)
    assert set(names) <= hub.fetched()
    assert_same(polyseme.load(NAME), elmo)
    assert not (tmp_path / "exploded").exists()


def test_a_repository_of_another_program_is_refused_before_its_weights_are_fetched(hub):
    files = {"config.json": b'{"model_type": "bert"}', "model.safetensors": b"x" * 1000, "encoder.pkl": b"x"}
    hub.repositories[NAME] = HubRepository()
    hub.repositories[NAME].commit(files)
    with pytest.raises(
        FormatError, match=r"user/river: not a Polyseme model: its config\.json is of another"
    ):
        polyseme.load(NAME)
    assert hub.fetched() == {"config.json"}
    hub.repositories[NAME].commit({"weights.hdf5": b"x", "options.json": b"{}"})
    with pytest.raises(FormatError, match=r"it has no config\.json\. Only .* no pickles and no hdf5"):
        polyseme.load(NAME)
    hub.repositories[NAME].commit({"config.json": b'{"polyseme_format": 1}', "encoder.pkl": b"x"})
    with pytest.raises(FormatError, match=r"user/river: not a Polyseme model: it has no model\.safetensors"):
        polyseme.load(NAME)


def test_a_revision_is_a_branch_a_tag_or_a_commit(hub, elmo, tmp_path):
    first = add_model(hub, elmo, tmp_path)
    newer = Elmo(random_model(small_config(segment="en"), seed=2))
    hub.repositories[NAME].branches["refs/pr/1"] = hub.repositories[NAME].branches["v1"] = first
    second = add_model(hub, newer, tmp_path)
    assert_same(polyseme.load(NAME), newer)
    assert polyseme.load(NAME).path == f"{NAME}@{second}"
    for revision in ("v1", first, "refs/pr/1"):
        assert_same(polyseme.load(NAME, revision=revision), elmo)
        assert_same(polyseme.load(f"{NAME}@{revision}"), elmo)
    with pytest.raises(FormatError, match=r"user/river: has no revision 'v9'\. Expected a branch, tag or"):
        polyseme.load(f"{NAME}@v9")
    with pytest.raises(UsageError, match="the name has a revision already, and `revision` is 'v2'"):
        polyseme.load(f"{NAME}@v1", revision="v2")
    with pytest.raises(UsageError, match="`revision` is for repositories"):
        polyseme.load("en", revision="v1")


def test_offline_the_cache_is_enough_and_nothing_is_asked(hub, elmo, tmp_path, monkeypatch):
    commit = add_model(hub, elmo, tmp_path)
    with pytest.raises(
        FormatError, match=r"not \(completely\) in the cache .*cache, and the Hub is not asked"
    ):
        polyseme.load(NAME, offline=True)
    polyseme.load(NAME)
    hub.requests.clear()
    for name in (NAME, f"{NAME}@{commit}"):
        assert_same(polyseme.load(name, offline=True), elmo)
    assert_same(polyseme.load(NAME, revision=commit), elmo)  # a commit does not change: nothing to ask
    go_offline(monkeypatch)
    assert_same(polyseme.load(NAME), elmo)
    with pytest.raises(FormatError, match=r"user/other: no such file or folder; .*not asked when offline"):
        polyseme.load("user/other")
    assert hub.requests == []


def test_a_hub_that_is_down_is_replaced_by_the_cache(hub, elmo, tmp_path, monkeypatch):
    add_model(hub, elmo, tmp_path)
    polyseme.load(NAME)
    hub.failing = True
    assert_same(polyseme.load(NAME), elmo)
    point_to(monkeypatch, "http://127.0.0.1:9")
    assert_same(polyseme.load(NAME), elmo)
    with pytest.raises(FormatError, match=r"user/other: .* the Hub cannot be reached \(.*refused"):
        polyseme.load("user/other")


def test_an_interrupted_download_is_completed(hub, elmo, tmp_path):
    add_model(hub, elmo, tmp_path)
    polyseme.load(NAME)
    (weights,) = (tmp_path / "cache").glob("models--user--river/snapshots/*/model.safetensors")
    weights.unlink()
    with pytest.raises(FormatError, match=r"not \(completely\) in the cache"):
        polyseme.load(NAME, offline=True)
    assert_same(polyseme.load(NAME), elmo)


def test_a_cache_folder_can_be_chosen(hub, elmo, tmp_path):
    add_model(hub, elmo, tmp_path)
    loaded = polyseme.load(NAME, cache=tmp_path / "mine")
    assert not (tmp_path / "cache").exists()
    assert loaded.path is not None
    assert Path(loaded.path).is_relative_to(tmp_path / "mine")
    assert_same(pickle.loads(pickle.dumps(loaded)), elmo)
    assert_same(Elmo.from_pretrained(NAME, cache_dir=tmp_path / "mine", local_files_only=True), elmo)


def test_a_pickle_names_the_commit_and_opens_it_from_the_cache(hub, elmo, tmp_path):
    add_model(hub, elmo, tmp_path)
    content = pickle.dumps(polyseme.load(NAME))
    assert len(content) < 1000
    add_model(hub, Elmo(random_model(small_config(segment="en"), seed=2)), tmp_path)  # main moves on
    hub.requests.clear()
    assert_same(pickle.loads(content), elmo)
    assert hub.requests == []


def test_a_path_that_exists_wins_over_a_repository(hub, elmo, tmp_path):
    add_model(hub, elmo, tmp_path)
    local = Elmo(random_model(small_config(segment="en"), seed=3))
    local.save(tmp_path / "user" / "river")
    assert_same(polyseme.load("user/river"), local)
    assert hub.requests == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("user/river", ("user/river", None)),
        ("user/river@v1.0", ("user/river", "v1.0")),
        ("user/river@refs/pr/3", ("user/river", "refs/pr/3")),
        ("en", None),
        ("models/weights.hdf5", None),
        ("models/elmo.zip", None),
        ("./river", None),
        ("../river", None),
        ("/user/river", None),
        ("~/river", None),
        ("a/b/c", None),
        ("user/", None),
        ("user/ri ver", None),
        ("用户/模型", None),
        (Path("user/river"), None),
    ],
)
def test_names_of_repositories_and_paths_are_told_apart(name, expected):
    assert find_repository(name) == expected


def test_wrong_names_get_one_line(hub, elmo, tmp_path, monkeypatch):
    with pytest.raises(FormatError) as problem:
        polyseme.load("models/rivre")
    assert str(problem.value) == (
        "models/rivre: no such file or folder, and no such repository on the Hugging Face Hub. If it is "
        "private, log in with `hf auth login`, or set HF_TOKEN."
    )
    with pytest.raises(FormatError, match="not a name of the Hugging Face Hub"):
        polyseme.load("user/double--dash..")
    add_model(hub, elmo, tmp_path)
    hub.repositories[NAME].gated = True
    with pytest.raises(FormatError, match=r"a gated repository\. Accept its terms"):
        polyseme.load(NAME)
    hub.repositories[NAME].gated, hub.repositories[NAME].private = False, True
    assert_same(polyseme.load(NAME), elmo)
    monkeypatch.delenv("HF_TOKEN")
    shutil.rmtree(tmp_path / "cache")
    with pytest.raises(FormatError, match=r"no such repository on the Hugging Face Hub\. If it is private"):
        polyseme.load(NAME)


def test_a_mistyped_path_in_a_folder_that_exists_does_not_ask_the_hub(hub, elmo, tmp_path):
    elmo.save(tmp_path / "user" / "lake")
    with pytest.raises(FormatError) as problem:
        polyseme.load("user/lkae")
    assert str(problem.value) == (
        "user/lkae: no such file or folder. Did you mean lake? The Hugging Face Hub was not asked, because "
        "the folder user exists; for its repository of that name write user/lkae@main."
    )
    assert hub.requests == []
    with pytest.raises(FormatError, match=r"user/lkae@main: .* no such repository on the Hugging Face Hub"):
        polyseme.load("user/lkae@main")


def test_a_folder_named_as_the_user_hides_no_repository_of_the_cache(hub, elmo, tmp_path):
    commit = add_model(hub, elmo, tmp_path)
    (tmp_path / "user").mkdir()
    with pytest.raises(FormatError, match="was not asked"):
        polyseme.load(NAME)
    assert polyseme.load(NAME, revision="main").path == f"{NAME}@{commit}"
    assert_same(polyseme.load(NAME), elmo)
    assert polyseme.load(NAME, cache=tmp_path / "mine", revision="main").path != f"{NAME}@{commit}"
    assert_same(polyseme.load(NAME, cache=tmp_path / "mine"), elmo)


def test_a_hub_that_cannot_be_reached_is_asked_once(hub, monkeypatch, caplog):
    point_to(monkeypatch, "http://127.0.0.1:9")
    with pytest.raises(
        FormatError, match=r"no such file or folder; not .* in the cache .* cannot be reached"
    ):
        polyseme.load("user/other")
    assert not any("Retrying" in record.getMessage() for record in caplog.records)


def test_a_damaged_model_is_named_by_its_repository(hub, elmo, tmp_path):
    add_model(hub, elmo, tmp_path, {"model.safetensors": b"damaged"})
    with pytest.raises(PolysemeError, match=rf"{NAME}/model\.safetensors"):
        polyseme.load(NAME)


def test_without_huggingface_hub_the_message_has_the_command(monkeypatch, elmo):
    monkeypatch.setitem(sys.modules, "huggingface_hub", None)
    with pytest.raises(MissingExtraError, match=r'user/river: no such file.*pip install "polyseme\[hub\]"'):
        polyseme.load("user/river")
    with pytest.raises(MissingExtraError, match=r'pip install "polyseme\[hub\]"'):
        elmo.push_to_hub("user/river")
    assert polyseme.load("en").config.size == 384


def test_a_pushed_model_is_loaded_again(hub, elmo):
    address = elmo.push_to_hub("user/new", license="apache-2.0", tags=["novels"], message="First")
    repository = hub.repositories["user/new"]
    commit = repository.branches["main"]
    assert address == f"{hub.address}/user/new/commit/{commit}"
    assert (repository.messages, repository.private) == (["initial commit", "First"], False)
    assert set(repository.files) == {
        ".gitattributes", "README.md", "config.json", "model.safetensors", "vocab.txt"
    }  # fmt: skip
    assert 'polyseme.load("user/new")' in repository.files["README.md"].decode()
    assert_same(polyseme.load("user/new"), elmo)


def test_pushing_again_keeps_a_card_that_people_have_edited_and_other_files(hub, elmo):
    words = polyseme.mean_vectors(elmo, [list(WORDS)] * 5)
    elmo.save_pretrained("with-words")
    words.save("with-words/words.safetensors")
    loaded = polyseme.load("with-words")
    loaded.push_to_hub("user/new", private=True)
    repository = hub.repositories["user/new"]
    assert repository.private
    assert polyseme.open_words("user/new").words == words.words
    repository.commit(repository.files | {"README.md": b"# Mine\n", "notes.txt": b"kept"})
    elmo.push_to_hub("user/new", precision="int8")
    assert (repository.files["README.md"], repository.files["notes.txt"]) == (b"# Mine\n", b"kept")
    assert "words.safetensors" not in repository.files  # of the earlier model
    assert polyseme.load("user/new").model.network.precision == "int8"
    elmo.push_to_hub("user/new", replace_card=True)
    assert repository.files["README.md"].startswith(b"---\nlibrary_name")


def test_a_model_can_be_pushed_to_a_branch(hub, elmo):
    elmo.push_to_hub("user/new")
    other = Elmo(random_model(small_config(segment="en"), seed=2))
    for _ in range(2):  # the second time the branch exists
        other.push_to_hub("user/new", revision="next")
    assert_same(polyseme.load("user/new"), elmo)
    assert_same(polyseme.load("user/new@next"), other)


def test_pushing_is_refused_in_one_line(hub, elmo, monkeypatch):
    with pytest.raises(UsageError, match="'a b': not the name of a repository"):
        elmo.push_to_hub("a b")
    with pytest.raises(UsageError, match=r"precision is 'int4'"):
        elmo.push_to_hub("user/new", precision="int4")
    monkeypatch.setenv("HF_TOKEN", "hf_wrong")
    with pytest.raises(UsageError, match=r"user/new: the Hugging Face Hub refused: .*`hf auth login`"):
        elmo.push_to_hub("user/new")
    go_offline(monkeypatch)
    with pytest.raises(UsageError, match="user/new: cannot be written offline"):
        elmo.push_to_hub("user/new")
    assert hub.repositories == {}


def test_the_front_matter_of_a_card_is_what_the_hub_reads():
    origin = {"held-out perplexity": "forward 71.2, backward 71.4, mean 71.3"}
    model = random_model(small_config(segment="zh"))
    object.__setattr__(model, "origin", origin)
    text = render_card(model, "folder", metadata=CardMetadata("user/x", "cc-by-4.0", None, ["a: b", "elmo"]))
    card = huggingface_hub.ModelCard(text)
    assert card.data.library_name == "polyseme"
    assert card.data.pipeline_tag == "feature-extraction"
    assert (card.data.license, card.data.language) == ("cc-by-4.0", ["zh"])
    assert card.data.tags == ["elmo", "bilm", "contextual-word-vectors", "a: b"]
    assert card.data.metrics == ["perplexity"]
    (result,) = card.data.eval_results
    assert (result.metric_type, result.metric_value, card.data.model_name) == ("perplexity", 71.3, "user/x")
    assert drop_front_matter(text).startswith("# user/x\n")
    plain = huggingface_hub.ModelCard(render_card(random_model(small_config()), "x")).data.to_dict()
    assert not {"license", "language", "metrics", "model-index"} & set(plain)


def test_the_command_line_takes_a_name_with_a_revision(hub, elmo, tmp_path, run):
    commit = add_model(hub, elmo, tmp_path)
    ran = run("info", f"{NAME}@{commit}")
    assert ran.code == 0
    assert f"origin: repository  {NAME}@{commit}" in ran.out
    assert run("convert", NAME, "copy").code == 0
    assert_same(polyseme.load("copy"), elmo)
    ran = run("info", "user/nothing")
    assert ran.code == 2
    assert len(ran.err.splitlines()) == 1
    assert "no such repository on the Hugging Face Hub" in ran.err


def test_the_environment_names_the_hub_and_the_cache(hub, elmo, tmp_path):
    add_model(hub, elmo, tmp_path)
    environment = os.environ | {"HF_ENDPOINT": hub.address, "HF_HOME": str(tmp_path / "home")}
    code = f"import polyseme; print(polyseme.load({NAME!r}).path)"
    ran = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True)
    assert (ran.returncode, ran.stderr) == (0, "")  # no progress bar without a terminal
    assert ran.stdout.startswith(f"{NAME}@")
    assert list((tmp_path / "home" / "hub").glob("models--user--river/snapshots/*/model.safetensors"))
