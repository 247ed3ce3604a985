"""Opening a model from any path, and saving it completely or not at all."""

from __future__ import annotations

import gzip
import json
import os
import shutil
import stat
from pathlib import Path

import pytest

from builders import BILM_MARKS, WORDS, Bilm, assert_same_vectors, random_model, small_config, write_bilm
from polyseme.errors import FormatError, UsageError
from polyseme.formats.models import hdf5
from polyseme.formats.models.open import open_pretrained
from polyseme.formats.models.save import save_pretrained


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_a_path_may_be_a_string(tmp_path: Path):
    write_bilm(tmp_path)
    assert_same_vectors(open_pretrained(str(tmp_path)), open_pretrained(tmp_path))


def test_a_path_may_begin_with_a_tilde(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("USERPROFILE", str(tmp_path))
    write_bilm(tmp_path / "elmo")
    save_pretrained(open_pretrained("~/elmo"), "~/mine")
    assert_same_vectors(open_pretrained("~/mine"), open_pretrained(tmp_path / "elmo"))


def test_weights_use_the_options_and_vocabulary_with_their_prefix(tmp_path: Path):
    small, large = Bilm(cells=6, softmax=True), Bilm(cells=9, softmax=True)
    for name, bilm in (("small", small), ("large", large)):
        write_bilm(
            tmp_path,
            bilm,
            weights=f"{name}_weights.hdf5",
            options=f"{name}_options.json",
            vocab=f"{name}_vocab.txt",
        )
    write_bilm(tmp_path, Bilm(cells=5), weights="other.hdf5")
    (tmp_path / "vocab.txt").write_text("<S>\n</S>\n<UNK>\n")
    for name, bilm in (("small", small), ("large", large)):
        model = open_pretrained(tmp_path / f"{name}_weights.hdf5")
        assert model.config.recurrent.cells == bilm.cells
        assert model.vocab is not None
        assert len(model.vocab) == len(WORDS) + 3
    assert open_pretrained(tmp_path / "other.hdf5").config.recurrent.cells == 5


def test_weights_without_a_suffix_use_the_options_with_their_name(tmp_path: Path):
    write_bilm(tmp_path, weights="elmo.hdf5", options="elmo_options.json", vocab="elmo_vocab.txt")
    write_bilm(tmp_path, Bilm(cells=9), weights="x.hdf5", options="options.json", vocab="vocab.txt")
    assert open_pretrained(tmp_path / "elmo.hdf5").config.recurrent.cells == 6


def test_options_may_have_any_name_if_they_are_the_only_ones(tmp_path: Path):
    write_bilm(tmp_path, options="settings.json")
    (tmp_path / "meta.json").write_text('{"language": "en"}')
    (tmp_path / "broken.json").write_text("{")
    assert open_pretrained(tmp_path).config.recurrent.cells == 6
    shutil.copy(tmp_path / "settings.json", tmp_path / "twin.json")
    with pytest.raises(FormatError, match=r"settings\.json, twin\.json.*`options`"):
        open_pretrained(tmp_path)


def test_the_options_can_be_a_separate_file(tmp_path: Path):
    write_bilm(tmp_path / "weights", Bilm(cells=6))
    write_bilm(tmp_path / "elsewhere", Bilm(cells=7))
    (tmp_path / "weights" / "options.json").rename(tmp_path / "right.json")
    (tmp_path / "elsewhere" / "options.json").rename(tmp_path / "weights" / "options.json")
    with pytest.raises(FormatError, match=r"lstm\.dim in options\.json"):
        open_pretrained(tmp_path / "weights")
    for path in (tmp_path / "weights", tmp_path / "weights" / "model.hdf5"):
        assert open_pretrained(path, tmp_path / "right.json").config.recurrent.cells == 6


def test_options_are_refused_for_native_models(tmp_path: Path):
    write_bilm(tmp_path / "theirs")
    save_pretrained(open_pretrained(tmp_path / "theirs"), tmp_path / "ours")
    with pytest.raises(UsageError, match=r"`options` is for \.hdf5 files"):
        open_pretrained(tmp_path / "ours", tmp_path / "theirs" / "options.json")


def test_missing_options_are_named(tmp_path: Path):
    write_bilm(tmp_path)
    (tmp_path / "options.json").unlink()
    with pytest.raises(FormatError, match=r"model_options\.json, options\.json.*`options`"):
        open_pretrained(tmp_path)


def test_among_several_hdf5_files_the_model_is_chosen_by_its_contents(tmp_path: Path):
    write_bilm(tmp_path, weights="elmo.hdf5")
    write_bilm(
        tmp_path, weights="cache.hdf5", changes=dict.fromkeys(Bilm().datasets()) | {"embedding": [[1.0]]}
    )
    (tmp_path / "notes.hdf5").write_text("not hdf5")
    assert open_pretrained(tmp_path).origin["file"] == "elmo.hdf5"
    write_bilm(tmp_path, weights="second.hdf5")
    with pytest.raises(FormatError, match=r"several models, elmo\.hdf5, second\.hdf5.*`options`"):
        open_pretrained(tmp_path)
    write_bilm(tmp_path, weights="model.hdf5")
    assert open_pretrained(tmp_path).origin["file"] == "model.hdf5"
    for name in ("elmo", "second", "model"):
        (tmp_path / f"{name}.hdf5").unlink()
    with pytest.raises(FormatError, match=r"none of cache\.hdf5, notes\.hdf5 is a model"):
        open_pretrained(tmp_path)


@pytest.mark.parametrize("name", ["vocab.txt.gz", "model_vocab.txt.gz", "my_vocab_v2.txt", "my-vocab.txt.gz"])
def test_a_vocabulary_is_found_compressed_or_by_another_name(name: str, tmp_path: Path):
    write_bilm(tmp_path, Bilm(filters=()), vocab=None)
    text = "\n".join([*BILM_MARKS.values(), *WORDS]).encode()
    (tmp_path / name).write_bytes(gzip.compress(text) if name.endswith(".gz") else text)
    vocab = open_pretrained(tmp_path).vocab
    assert vocab is not None
    assert vocab.words[3:] == WORDS


def test_a_char_model_needs_no_vocabulary_but_a_word_model_does(tmp_path: Path):
    write_bilm(tmp_path / "chars", vocab=None)
    assert open_pretrained(tmp_path / "chars").vocab is None
    write_bilm(tmp_path / "words", Bilm(filters=()), vocab=None)
    with pytest.raises(FormatError, match=r"Copy vocab\.txt into its folder"):
        open_pretrained(tmp_path / "words")


def test_a_missing_path_is_refused_with_similar_names(tmp_path: Path):
    write_bilm(tmp_path / "models" / "sanguo")
    with pytest.raises(FormatError, match=r"sangou: no such file or folder\. Did you mean sanguo\?"):
        open_pretrained(tmp_path / "models" / "sangou")
    with pytest.raises(FormatError, match=r"Did you mean model\.hdf5\?"):
        open_pretrained(tmp_path / "models" / "sanguo" / "modle.hdf5")
    with pytest.raises(FormatError, match="model does not exist either"):
        open_pretrained(tmp_path / "model" / "sanguo")
    with pytest.raises(FormatError, match=r"option\.json.*Did you mean options\.json\?"):
        open_pretrained(tmp_path / "models" / "sanguo", tmp_path / "models" / "sanguo" / "option.json")


def test_a_folder_without_a_model_is_refused_with_its_contents(tmp_path: Path):
    (tmp_path / "sub").mkdir()
    (tmp_path / "pytorch_model.bin").write_text("x")
    with pytest.raises(
        FormatError, match=r"Looked for .*config\.json.*options\.json.*encoder\.pkl"
    ) as problem:
        open_pretrained(tmp_path)
    assert "found pytorch_model.bin, sub/" in str(problem.value)
    with pytest.raises(FormatError, match="found nothing"):
        open_pretrained(tmp_path / "sub")


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("task.json", r"a task model, not an ELMo: `polyseme\.load_task\(path\)`"),
        ("index.json", r"an index, not an ELMo: `polyseme\.open_index\(path\)`"),
    ],
)
def test_another_folder_of_polyseme_is_refused_with_what_opens_it(tmp_path: Path, name: str, advice: str):
    (tmp_path / name).write_text("{}")
    with pytest.raises(FormatError, match=advice):
        open_pretrained(tmp_path)


def test_a_file_of_a_native_model_is_refused_with_the_advice_to_load_the_folder(tmp_path: Path):
    save_pretrained(random_model(small_config()), tmp_path / "model")
    for name in ("config.json", "model.safetensors", "vocab.txt"):
        with pytest.raises(FormatError, match="load its folder"):
            open_pretrained(tmp_path / "model" / name)


def test_an_unknown_file_is_refused(tmp_path: Path):
    (tmp_path / "vectors.bin").write_bytes(bytes(range(256)))
    with pytest.raises(FormatError, match=r"vectors\.bin: not a model.*Expected a folder"):
        open_pretrained(tmp_path / "vectors.bin")


def test_an_hdf5_file_may_have_any_ending(tmp_path: Path):
    write_bilm(tmp_path, weights="model.weights")
    assert open_pretrained(tmp_path / "model.weights").config.recurrent.cells == 6


def test_an_hdf5_file_is_written_with_its_companions(tmp_path: Path):
    model = random_model(small_config(), softmax=True)
    save_pretrained(model, tmp_path / "elmo_weights.hdf5", to="hdf5")
    assert names(tmp_path) == ["elmo_options.json", "elmo_vocab.txt", "elmo_weights.hdf5"]
    save_pretrained(model, tmp_path / "other.hdf5", to="hdf5")
    assert {"other.hdf5", "other_options.json", "other_vocab.txt"} < set(names(tmp_path))
    for name in ("elmo_weights.hdf5", "other.hdf5"):
        assert_same_vectors(open_pretrained(tmp_path / name), model)


def test_an_hdf5_folder_has_the_layout_of_simple_elmo(tmp_path: Path):
    save_pretrained(random_model(small_config()), tmp_path / "elmo", to="hdf5")
    assert names(tmp_path / "elmo") == ["model.hdf5", "options.json", "vocab.txt"]
    save_pretrained(random_model(small_config(), words=None), tmp_path / "bare", to="hdf5")
    assert names(tmp_path / "bare") == ["model.hdf5", "options.json"]


@pytest.mark.parametrize(("to", "name"), [("native", "model"), ("hdf5", "model"), ("hdf5", "model.hdf5")])
def test_an_existing_model_is_replaced_only_with_force(to: str, name: str, tmp_path: Path):
    first, second = (random_model(small_config(), seed) for seed in (1, 2))
    save_pretrained(first, tmp_path / name, to=to)
    before = names(tmp_path)
    with pytest.raises(UsageError, match=r"exists already.*`force=True`"):
        save_pretrained(second, tmp_path / name, to=to)
    assert_same_vectors(open_pretrained(tmp_path / name), first)
    save_pretrained(second, tmp_path / name, to=to, force=True)
    assert_same_vectors(open_pretrained(tmp_path / name), second)
    assert names(tmp_path) == before


@pytest.mark.parametrize("companion", ["x_options.json", "x_vocab.txt"])
def test_an_existing_companion_file_is_not_overwritten(companion: str, tmp_path: Path):
    (tmp_path / companion).write_text("precious")
    with pytest.raises(UsageError, match=f"{companion}: exists already"):
        save_pretrained(random_model(small_config()), tmp_path / "x.hdf5", to="hdf5")
    assert names(tmp_path) == [companion]
    assert (tmp_path / companion).read_text() == "precious"


def test_an_old_vocabulary_is_removed_if_the_new_model_has_none(tmp_path: Path):
    save_pretrained(random_model(small_config(), softmax=True), tmp_path / "x.hdf5", to="hdf5")
    save_pretrained(random_model(small_config(), words=None), tmp_path / "x.hdf5", to="hdf5", force=True)
    assert names(tmp_path) == ["x.hdf5", "x_options.json"]


@pytest.mark.parametrize("to", ["native", "hdf5"])
def test_force_never_deletes_files_that_are_not_a_model(to: str, tmp_path: Path):
    (tmp_path / "home").mkdir()
    (tmp_path / "home" / "thesis.tex").write_text("years of work")
    with pytest.raises(UsageError, match=r"thesis\.tex, which would be lost"):
        save_pretrained(random_model(small_config()), tmp_path / "home", to=to, force=True)
    assert (tmp_path / "home" / "thesis.tex").read_text() == "years of work"


def test_force_replaces_an_empty_folder_and_a_link_but_not_its_target(tmp_path: Path):
    model = random_model(small_config())
    (tmp_path / "empty").mkdir()
    save_pretrained(model, tmp_path / "empty", force=True)
    assert_same_vectors(open_pretrained(tmp_path / "empty"), model)
    save_pretrained(random_model(small_config(), 5), tmp_path / "real")
    (tmp_path / "link").symlink_to(tmp_path / "real")
    save_pretrained(model, tmp_path / "link", force=True)
    assert_same_vectors(open_pretrained(tmp_path / "link"), model)
    assert_same_vectors(open_pretrained(tmp_path / "real"), random_model(small_config(), 5))
    assert names(tmp_path) == ["empty", "link", "real"]


@pytest.mark.parametrize(("to", "name"), [("native", "model"), ("hdf5", "model"), ("hdf5", "model.hdf5")])
def test_a_path_that_cannot_be_written_is_refused(to: str, name: str, tmp_path: Path):
    (tmp_path / "file").write_text("x")  # below a file nothing can be written, not even by root
    with pytest.raises(UsageError, match=r"cannot be written.*Choose another path"):
        save_pretrained(random_model(small_config()), tmp_path / "file" / name, to=to)
    with pytest.raises(UsageError, match=r"the output is a text of .* characters, expected a path"):
        save_pretrained(random_model(small_config()), tmp_path / ("n" * 300 + name), to=to)
    assert names(tmp_path) == ["file"]


@pytest.mark.parametrize("name", ["x.hdf5", "x_options.json", "x_vocab.txt"])
def test_a_folder_instead_of_a_file_is_refused_even_with_force(name: str, tmp_path: Path):
    (tmp_path / name).mkdir()
    with pytest.raises(UsageError, match="is a folder"):
        save_pretrained(random_model(small_config()), tmp_path / "x.hdf5", to="hdf5", force=True)
    assert names(tmp_path) == [name]


@pytest.mark.parametrize(("to", "name"), [("native", "model"), ("hdf5", "model"), ("hdf5", "model.hdf5")])
def test_a_failed_save_leaves_the_old_model(
    to: str, name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    model = random_model(small_config(), 1)
    save_pretrained(model, tmp_path / name, to=to)
    before = names(tmp_path)

    def fail(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(hdf5, "write", fail)
    monkeypatch.setattr("polyseme.formats.models.native.write_tensors", fail)
    with pytest.raises(UsageError, match="No space left on device"):
        save_pretrained(random_model(small_config(), 2), tmp_path / name, to=to, force=True)
    assert names(tmp_path) == before
    assert_same_vectors(open_pretrained(tmp_path / name), model)


def test_unknown_formats_and_wrong_endings_are_refused(tmp_path: Path):
    model = random_model(small_config())
    with pytest.raises(UsageError, match=r"to is 'hdf'.*Did you mean hdf5\?"):
        save_pretrained(model, tmp_path / "x", to="hdf")
    for name in ("x.hdf5", "x.zip"):
        with pytest.raises(UsageError, match="the native format is a folder"):
            save_pretrained(model, tmp_path / name, to="native")
    with pytest.raises(UsageError, match="the native format is a folder"):
        save_pretrained(model, tmp_path / "x.zip")
    assert names(tmp_path) == []


@pytest.mark.skipif(os.name == "nt", reason="permissions of POSIX")
@pytest.mark.parametrize("to", ["native", "hdf5"])
def test_saved_files_have_the_permissions_of_the_umask(to: str, tmp_path: Path):
    mask = os.umask(0o022)
    try:
        save_pretrained(random_model(small_config()), tmp_path / "model", to=to)
    finally:
        os.umask(mask)
    modes = {entry.name: stat.S_IMODE(entry.stat().st_mode) for entry in (tmp_path / "model").iterdir()}
    assert set(modes.values()) == {0o644}, modes
    assert stat.S_IMODE((tmp_path / "model").stat().st_mode) == 0o755


def test_written_options_have_the_keys_of_bilm_tf(tmp_path: Path):
    save_pretrained(random_model(small_config()), tmp_path / "model", to="hdf5")
    options = json.loads((tmp_path / "model" / "options.json").read_text())
    assert options["lstm"] == {
        "dim": 6,
        "projection_dim": 4,
        "n_layers": 2,
        "use_skip_connections": True,
        "cell_clip": 3.0,
        "proj_clip": 3.0,
    }
    assert options["char_cnn"]["n_characters"] == 262
    assert options["n_tokens_vocab"] == len(WORDS) + 3
