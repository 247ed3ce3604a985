"""Pretraining finds names and keeps the word list with the model, whatever happens to it."""

import json
import pickle
import shutil
from pathlib import Path

import pytest

import polyseme
import training_story as story
from polyseme.errors import ConfigError, FormatError
from wuxia import NAMES, write_novel

SETTINGS = [
    *story.SETTINGS,
    "model.segment=zh",
    "model.chars.encoding=bytes",
    "train.epochs=1",
    "train.tokens=2000",
]


@pytest.fixture(scope="module")
def novel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("novel") / "novel.txt"
    path.write_text(write_novel(sentences=900), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def model(novel: Path) -> Path:
    folder = novel.parent / "model"
    polyseme.pretrain(novel, folder, "tiny", settings=SETTINGS, progress=False)
    return folder


def test_found_names_are_words_of_the_vocabulary_and_of_the_segmentation(model: Path):
    elmo = polyseme.load(model)
    assert elmo.model.vocab is not None
    assert set(NAMES) <= set(elmo.model.vocab.words)
    assert elmo.token_texts("郭芙道：霍青桐笑了") == ["郭芙", "道", "：", "霍青桐", "笑", "了"]
    assert [token.text for token in elmo.tokenize("郭芙道")] == ["郭芙", "道"]


def test_the_words_are_listed_in_the_folder_and_in_the_report(model: Path):
    lines = (model / "words.txt").read_text("utf-8").splitlines()
    assert any(line.startswith("郭芙 ") and line.endswith(" nr") for line in lines)
    page = (model / "report.html").read_text("utf-8")
    assert "Names and new words" in page
    assert "霍青桐" in page


@pytest.mark.parametrize("way", ["save", "copy", "hdf5", "zip", "pickle", "int8"])
def test_a_copy_of_the_model_segments_as_the_model(way: str, model: Path, tmp_path: Path):
    elmo = polyseme.load(model)
    if way == "pickle":
        copy = pickle.loads(pickle.dumps(elmo))
    elif way == "copy":
        shutil.copytree(model, tmp_path / "copy")
        copy = polyseme.load(tmp_path / "copy")
    elif way == "zip":
        elmo.save(tmp_path / "copy")
        shutil.make_archive(str(tmp_path / "model"), "zip", tmp_path / "copy")
        copy = polyseme.load(tmp_path / "model.zip")
    elif way == "hdf5":
        pytest.importorskip("h5py")
        elmo.save(tmp_path / "copy", to="hdf5")
        copy = polyseme.load(tmp_path / "copy")
    else:
        elmo.save(tmp_path / "copy", precision="int8" if way == "int8" else None)
        copy = polyseme.load(tmp_path / "copy")
    assert copy.word_list == elmo.word_list
    assert copy.token_texts("郭芙道") == ["郭芙", "道"]


def test_an_index_of_the_model_has_usages_of_the_names(model: Path, novel: Path, tmp_path: Path):
    polyseme.index(model, [novel], tmp_path / "index", only=["郭芙"], progress=False)
    assert len(polyseme.open_index(tmp_path / "index").usage_numbers("郭芙")) == novel.read_text(
        "utf-8"
    ).count("郭芙")


def test_new_words_can_be_turned_off(novel: Path, tmp_path: Path):
    off = [*SETTINGS, "corpus.new_words=false"]
    polyseme.pretrain(novel, tmp_path / "model", "tiny", settings=off, progress=False)
    elmo = polyseme.load(tmp_path / "model")
    assert elmo.word_list is None
    assert elmo.token_texts("郭芙道") == ["郭芙道"]
    assert json.loads((tmp_path / "model" / "config.json").read_text())["polyseme_format"] == 1


def test_a_corrected_list_replaces_what_would_be_found(novel: Path, tmp_path: Path):
    (tmp_path / "words.txt").write_text("郭芙 9 nr\n山路上\n", encoding="utf-8")
    settings = [*SETTINGS, "corpus.new_words=false"]
    polyseme.pretrain(
        novel, tmp_path / "model", "tiny", settings=settings, words=tmp_path / "words.txt", progress=False
    )
    elmo = polyseme.load(tmp_path / "model")
    assert (tmp_path / "model" / "words.txt").read_text("utf-8") == "郭芙 9 nr\n山路上\n"
    assert elmo.token_texts("郭芙道") == ["郭芙", "道"]
    (tmp_path / "words.txt").write_text("郭芙 9 nr\n", encoding="utf-8")
    with pytest.raises(ConfigError, match=r"differs in the word list \(`words`\)"):
        polyseme.pretrain(
            novel,
            tmp_path / "model",
            "tiny",
            settings=settings,
            words=tmp_path / "words.txt",
            resume=True,
            progress=False,
        )


def test_a_fine_tuned_model_keeps_the_words_of_its_base(model: Path, novel: Path, tmp_path: Path):
    settings = ["train.epochs=1", "train.tokens=500"]
    polyseme.pretrain(novel, tmp_path / "tuned", "tiny", settings=settings, base=model, progress=False)
    assert polyseme.load(tmp_path / "tuned").word_list == polyseme.load(model).word_list


def test_a_model_whose_word_list_is_missing_is_refused(model: Path, tmp_path: Path):
    shutil.copytree(model, tmp_path / "copy")
    (tmp_path / "copy" / "words.txt").unlink()
    with pytest.raises(FormatError, match=r"words\.txt: missing, but the model segments text with it"):
        polyseme.load(tmp_path / "copy")
