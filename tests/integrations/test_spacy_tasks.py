"""The component `polyseme_task`: taggers and classifiers annotate documents in pipelines of spaCy."""

from __future__ import annotations

import pickle
import shutil
from pathlib import Path
from typing import Any

import pytest
import spacy
from spacy.language import Language

import polyseme

QUICK = ["train.epochs=15", "train.patience=40", "encoder.size=32", "train.batch=2"]
NAMES = [
    ([first, "Weber", "met", second, "in", city, "."], ["B-PER", "I-PER", "O", "B-PER", "O", "B-LOC", "O"])
    for first, second, city in zip(
        ("Anna", "Karl", "Lucy", "Emma"),
        ("Paul", "John", "Nina", "Omar"),
        ("Rome", "Oslo", "Bonn", "Riga"),
        strict=True,
    )
] * 4
WORDS = [
    (
        words,
        [
            "PROPN" if word[0].isupper() else "PUNCT" if word == "." else "VERB" if word == "met" else "ADP"
            for word in words
        ],
    )
    for words, _ in NAMES
]
FINE = [(words, [f"x-{tag}" for tag in tags]) for words, tags in WORDS]
REVIEWS = [("A warm and funny play.", "pos"), ("A dull and noisy play.", "neg")] * 8
SENTENCE = "Anna Weber met Paul in Rome."


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Task models named after what they were trained on."""
    root = tmp_path_factory.mktemp("tasks")
    model = root / "elmo"
    polyseme.load("en-classic").save(model)
    for name, task, rows in (
        ("names", "tagging", NAMES),
        ("words", "tagging", WORDS),
        ("fine", "tagging", FINE),
        ("reviews", "classification", REVIEWS),
    ):
        polyseme.train(task, model, train=rows, out=root / name, settings=QUICK, progress=False)
    return root


def make_pipeline(path: Path, **config: Any) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("polyseme_task", config={"model": str(path), **config})
    return nlp


def list_entities(doc: Any) -> list[tuple[str, str]]:
    return [(entity.text, entity.label_) for entity in doc.ents]


def test_a_tagger_of_names_sets_entities_of_each_sentence(folder):
    nlp = make_pipeline(folder / "names")
    names = [("Anna Weber", "PER"), ("Paul", "PER"), ("Rome", "LOC")]
    assert list_entities(nlp(SENTENCE)) == names
    assert list_entities(nlp(f"  {SENTENCE} \n\n {SENTENCE}")) == names * 2  # around white space
    assert [list_entities(doc) for doc in nlp.pipe([SENTENCE, "", SENTENCE], n_process=1)] == [
        names,
        [],
        names,
    ]
    component: Any = nlp.get_pipe("polyseme_task")
    assert component.labels == ("LOC", "PER")


def test_entities_of_earlier_components_stay_unless_overwritten(folder):
    for overwrite, expected in ((False, "X"), (True, "PER")):
        nlp = make_pipeline(folder / "names", overwrite=overwrite)
        ruler: Any = nlp.add_pipe("entity_ruler", first=True)
        ruler.add_patterns([{"label": "X", "pattern": "Weber met"}])
        labels = {entity.label_ for entity in nlp(SENTENCE).ents if "Weber" in entity.text}
        assert labels == {expected}


def test_spans_can_go_to_a_group_of_their_own(folder):
    doc = make_pipeline(folder / "names", assigns="spans")(SENTENCE)
    assert not doc.ents
    assert [(span.text, span.label_) for span in doc.spans["polyseme_task"]][:1] == [("Anna Weber", "PER")]


def test_a_merged_token_is_one_entity(folder):
    nlp = make_pipeline(folder / "names")
    doc = nlp.make_doc(SENTENCE)
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[0:2])
    nlp.get_pipe("polyseme_task")(doc)
    assert (doc.ents[0].text, len(doc.ents[0])) == ("Anna Weber", 1)


def test_universal_parts_of_speech_go_to_pos_and_other_tags_to_tag(folder):
    doc = make_pipeline(folder / "words")(f"{SENTENCE}\n")
    assert [token.pos_ for token in doc][2:] == ["VERB", "PROPN", "ADP", "PROPN", "PUNCT", "SPACE"]
    doc = make_pipeline(folder / "fine")(SENTENCE)
    assert [token.tag_ for token in doc][2:4] == ["x-VERB", "x-PROPN"]
    assert not doc[2].pos_
    assert make_pipeline(folder / "words", assigns="tag")(SENTENCE)[2].tag_ == "VERB"


def test_a_classifier_sets_categories(folder):
    doc = make_pipeline(folder / "reviews")("A warm and funny play.")
    expected = polyseme.load_task(folder / "reviews").predict([["A", "warm", "and", "funny", "play", "."]])[0]
    assert doc.cats == pytest.approx(expected.probabilities)
    assert make_pipeline(folder / "reviews")(" ").cats == {"neg": 0.0, "pos": 0.0}


def test_a_pipeline_holds_its_task_model(folder, tmp_path):
    shutil.copytree(folder / "names", tmp_path / "names")
    nlp = make_pipeline(tmp_path / "names")
    expected = list_entities(nlp(SENTENCE))
    nlp.to_disk(tmp_path / "pipeline")
    data, pickled = nlp.to_bytes(), pickle.dumps(nlp)
    assert list_entities(pickle.loads(pickled)(SENTENCE)) == expected
    shutil.rmtree(tmp_path / "names")
    from_bytes = make_pipeline(tmp_path / "names").from_bytes(data)
    for loaded in (spacy.load(tmp_path / "pipeline"), from_bytes, pickle.loads(pickle.dumps(from_bytes))):
        assert list_entities(loaded(SENTENCE)) == expected
    docs = nlp.pipe([SENTENCE] * 8, n_process=2, batch_size=2)
    assert [list_entities(doc) for doc in docs] == [expected] * 8


def test_what_does_not_fit_is_a_value_error_of_one_line(folder):
    for path, config, message in (
        (
            folder / "names",
            {"assigns": "pos"},
            "assigns is 'pos', but .*names tags spans. Expected ents or spans",
        ),
        (folder / "words", {"assigns": "ents"}, "tags single tags. Expected tag or pos"),
        (folder / "fine", {"assigns": "pos"}, "'x-ADP' is no universal part of speech"),
        (folder / "reviews", {"assigns": "tag"}, "is a classifier, which sets doc.cats"),
        (folder / "elmo", {}, "no task.json in it"),
        (folder / "nowhere", {}, "nowhere"),
    ):
        with pytest.raises(ValueError, match=message):
            make_pipeline(path, **config)(SENTENCE)
    with pytest.raises(ValueError, match="assigns"):
        make_pipeline(folder / "names", assigns="cats")
