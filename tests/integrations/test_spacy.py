"""The spaCy components `polyseme` and the tokenizer, in real pipelines: vectors, hooks, files, processes."""

from __future__ import annotations

import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import spacy
from spacy.language import Language
from spacy.tokens import Doc, DocBin

import polyseme
from builders import random_model, small_config
from polyseme.elmo import Elmo
from polyseme.formats.models.save import save_pretrained
from polyseme.integrations.spacy import set_hooks

BANKS = "He sat on the bank of the river. The bank lent him the money."
CHINESE = {"nlp": {"tokenizer": {"@tokenizers": "polyseme.Tokenizer.v1", "segment": "zh"}}}
HOOKS_ARE_LOST = "ignore:.*W109.*:UserWarning"  # spaCy says so when it serialises a document


@pytest.fixture
def model(tmp_path: Path) -> Path:
    save_pretrained(random_model(small_config(segment="en")), tmp_path / "model")
    return tmp_path / "model"


@pytest.fixture
def elmo(model: Path) -> Elmo:
    return polyseme.load(model)


@pytest.fixture
def nlp(model: Path) -> Language:
    return make_pipeline(model)


def make_pipeline(model: Path | str | None, **config: Any) -> Language:
    nlp = spacy.blank("en")
    nlp.add_pipe("polyseme", config={"model": None if model is None else str(model), **config})
    return nlp


def test_a_component_sets_the_vectors_of_elmo_sentence_by_sentence(nlp, elmo):
    doc = nlp("The bank failed. The river of the bank!")
    sentences = [["The", "bank", "failed", "."], ["The", "river", "of", "the", "bank", "!"]]
    expected = np.concatenate(elmo.embed(sentences))
    np.testing.assert_allclose(doc.tensor, expected, atol=1e-6)
    np.testing.assert_allclose(doc[1].vector, expected[1], atol=1e-6)
    np.testing.assert_allclose(doc[4:6].vector, expected[4:6].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(doc.vector, expected.mean(axis=0), atol=1e-6)
    assert doc.has_vector
    assert doc[1].has_vector
    assert doc[1].vector_norm == pytest.approx(np.linalg.norm(expected[1]), rel=1e-5)
    assert not doc.has_annotation("SENT_START")  # the boundaries are not ours to set


def test_sentence_boundaries_of_an_earlier_component_are_used(model, elmo):
    nlp = make_pipeline(model)

    @Language.component("two_halves")
    def two_halves(doc: Doc) -> Doc:
        for token in doc:
            token.is_sent_start = token.i in (0, 2)
        return doc

    nlp.add_pipe("two_halves", first=True)
    doc = nlp("the bank of river")
    expected = np.concatenate(elmo.embed([["the", "bank"], ["of", "river"]]))
    np.testing.assert_allclose(doc.tensor, expected, atol=1e-6)


def test_white_space_has_a_zero_vector_and_changes_no_mean(nlp, elmo):
    doc = nlp("  The bank \n\n failed.")
    spaces = [token.i for token in doc if token.is_space]
    words = [token.i for token in doc if not token.is_space]
    assert len(spaces) == 2
    expected = elmo.embed([["The", "bank", "failed", "."]])[0]
    np.testing.assert_allclose(doc.tensor[words], expected, atol=1e-6)
    assert not doc.tensor[spaces].any()
    assert [doc[position].has_vector for position in spaces] == [False, False]
    np.testing.assert_allclose(doc.vector, expected.mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(doc[1:4].vector, expected[:2].mean(axis=0), atol=1e-6)  # The bank \n\n
    assert doc[0].similarity(doc[1]) == 0.0


@pytest.mark.parametrize("text", ["", " ", "\n\n \n"])
def test_documents_without_words_have_zero_vectors(nlp, text):
    doc = nlp(text)
    assert doc.tensor.shape == (len(doc), 8)
    assert not doc.vector.any()
    assert doc.vector.shape == (8,)
    assert not doc.has_vector


def test_a_merged_token_has_the_mean_of_its_words(nlp, elmo):
    doc = nlp.make_doc("The river bank failed.")
    with doc.retokenize() as retokenizer:
        retokenizer.merge(doc[1:3])
    nlp.get_pipe("polyseme")(doc)
    rows = elmo.embed([["The", "river", "bank", "failed", "."]])[0]
    assert doc[1].text == "river bank"
    np.testing.assert_allclose(doc[1].vector, rows[1:3].mean(axis=0), atol=1e-6)
    np.testing.assert_allclose(doc.tensor[[0, 2, 3]], rows[[0, 3, 4]], atol=1e-6)


def test_the_same_word_in_two_sentences_is_not_the_same():
    doc = make_pipeline(None)(BANKS)  # the bundled English model
    river, money = (token for token in doc if token.text == "bank")
    vectors = polyseme.load("en").embed(
        [[token.text for token in sentence] for sentence in (doc[:9], doc[9:])]
    )
    first, second = vectors[0][4], vectors[1][1]
    cosine = first @ second / np.linalg.norm(first) / np.linalg.norm(second)
    assert river.similarity(money) == pytest.approx(cosine, abs=1e-5)
    assert river.similarity(money) < 0.95
    assert river.similarity(river) == pytest.approx(1, abs=1e-5)
    assert spacy.blank("en")(BANKS)[4].similarity(money) == 1.0  # spaCy alone compares spellings
    assert 0 < doc[:9].similarity(doc[9:]) < 1
    assert doc.similarity(doc) == pytest.approx(1, abs=1e-5)
    assert river.similarity(doc) == pytest.approx(doc.similarity(river))


@pytest.mark.parametrize(("layer", "size"), [("top", 8), (0, 8), ("concat", 24), ([0.2, 0.3, 0.5], 8)])
def test_the_layer_is_an_option(model, elmo, layer, size):
    doc = make_pipeline(model, layer=layer)("The bank failed.")
    assert doc.tensor.shape == (4, size)
    expected = elmo.embed([["The", "bank", "failed", "."]], layer=layer)[0]
    np.testing.assert_allclose(doc.tensor, expected, atol=1e-6)


def test_a_stream_gives_the_vectors_of_single_calls_in_order(nlp):
    texts = [f"The bank {'of river ' * (n % 5)}{n} failed." for n in range(50)] + ["", " "]
    for text, doc in zip(texts, nlp.pipe(iter(texts), batch_size=7), strict=True):
        assert doc.text == text
        np.testing.assert_allclose(doc.tensor, nlp(text).tensor, atol=1e-6)


@pytest.mark.filterwarnings(HOOKS_ARE_LOST)
def test_processes_give_the_same_vectors_and_set_hooks_restores_similarity(nlp):
    texts = [f"The bank {n} failed. The bank of the river!" for n in range(20)]
    expected = [nlp(text) for text in texts]  # torch has computed in this process before it forks
    docs = list(nlp.pipe(texts, n_process=2, batch_size=4))
    for doc, single in zip(docs, expected, strict=True):
        np.testing.assert_allclose(doc.tensor, single.tensor, atol=1e-6)
        assert doc[1].similarity(doc[6]) == 1.0  # without the hooks
        assert set_hooks(doc)[1].similarity(doc[6]) == pytest.approx(
            single[1].similarity(single[6]), abs=1e-5
        )


def test_documents_keep_their_vectors_in_a_doc_bin_and_in_pickles(nlp):
    doc = nlp("The bank failed. The bank!")
    copy = pickle.loads(pickle.dumps(doc))
    assert copy[1].similarity(copy[5]) == pytest.approx(doc[1].similarity(doc[5]))
    stored = DocBin(attrs=["ORTH", "SPACY"], docs=[doc], store_user_data=True).to_bytes()
    (bare,) = DocBin().from_bytes(stored).get_docs(nlp.vocab)
    with pytest.raises(ValueError, match="no ELMo vectors"):  # a DocBin has no tensors
        set_hooks(bare)
    part = doc[4:7].as_doc()
    np.testing.assert_array_equal(part[1].vector, doc[5].vector)


def test_without_hooks_documents_are_serialised_without_a_warning(model):
    nlp = make_pipeline(model, hooks=False)
    doc = Doc(nlp.vocab).from_bytes(nlp("The bank failed.").to_bytes())
    assert set_hooks(doc)[1].vector.any()


def test_a_pipeline_on_disk_holds_its_model(nlp, model, tmp_path):
    expected = nlp("The bank failed.").tensor
    nlp.to_disk(tmp_path / "pipeline")
    shutil.rmtree(model)
    (tmp_path / "pipeline").rename(tmp_path / "moved")
    loaded = spacy.load(tmp_path / "moved")
    np.testing.assert_array_equal(loaded("The bank failed.").tensor, expected)
    loaded.to_disk(tmp_path / "moved")  # over itself
    np.testing.assert_array_equal(spacy.load(tmp_path / "moved")("The bank failed.").tensor, expected)
    shutil.rmtree(tmp_path / "moved" / "polyseme")
    with pytest.raises(ValueError, match=r"no such folder\. Is the pipeline complete"):
        spacy.load(tmp_path / "moved").from_disk(tmp_path / "moved")("a")


def test_a_pipeline_as_bytes_holds_its_model(nlp, model):
    expected = nlp("The bank failed.").tensor
    data, pickled = nlp.to_bytes(), pickle.dumps(nlp)
    np.testing.assert_array_equal(pickle.loads(pickled)("The bank failed.").tensor, expected)
    shutil.rmtree(model)
    loaded = make_pipeline("gone").from_bytes(data)
    np.testing.assert_array_equal(loaded("The bank failed.").tensor, expected)
    again = pickle.loads(pickle.dumps(loaded))  # whose model is in no file
    np.testing.assert_array_equal(again("The bank failed.").tensor, expected)
    np.testing.assert_array_equal(
        make_pipeline("gone").from_bytes(loaded.to_bytes())("The bank failed.").tensor, expected
    )


def test_a_bundled_model_is_saved_by_its_name(tmp_path):
    nlp = make_pipeline("en-classic")
    nlp.to_disk(tmp_path / "pipeline")
    assert [path.name for path in (tmp_path / "pipeline" / "polyseme").iterdir()] == ["bundled.json"]
    expected = nlp("The bank failed.").tensor
    np.testing.assert_array_equal(spacy.load(tmp_path / "pipeline")("The bank failed.").tensor, expected)
    marker = tmp_path / "pipeline" / "polyseme" / "bundled.json"
    marker.write_text('{"name": "en-classic", "fingerprint": "0"}', encoding="utf-8")
    with pytest.raises(ValueError, match="another one than the pipeline was saved with"):
        spacy.load(tmp_path / "pipeline")


def test_bytes_that_leave_their_folder_are_refused(nlp):
    import srsly

    component = nlp.get_pipe("polyseme")
    with pytest.raises(ValueError, match="outside of its folder"):
        component.from_bytes(srsly.msgpack_dumps({"../../x": b"1"}))
    with pytest.raises(ValueError, match="no model of Polyseme"):
        component.from_bytes(srsly.msgpack_dumps([1]))


def test_invalid_options_are_value_errors_of_one_line(model):
    with pytest.raises(ValueError, match=r"^layer is \"all\", but a token has one vector"):
        make_pipeline(model, layer="all")
    with pytest.raises(ValueError, match="layer is 7, the model has layers 0 to 2"):
        make_pipeline(model, layer=7)("The bank")
    with pytest.raises(ValueError, match=r"^nowhere: no such file or folder"):
        make_pipeline("nowhere")("The bank")
    with pytest.raises(ValueError, match="unexpected argument: 'size'"):
        make_pipeline(model, size=3)
    with pytest.raises(ValueError, match=r"^There is no bundled model for the language 'fr'"):
        spacy.blank("fr").add_pipe("polyseme")


def test_the_error_handler_of_the_pipeline_gets_the_documents_that_failed(nlp):
    failed: list[str] = []
    component = nlp.get_pipe("polyseme")
    component.layer = 7
    nlp.set_error_handler(lambda name, proc, docs, problem: failed.extend(doc.text for doc in docs))
    assert list(nlp.pipe(["a b", "c"])) == []
    assert failed == ["a b", "c"]


def test_vectors_that_cannot_be_compared_are_refused(nlp):
    nlp.vocab.set_vector("bank", np.ones(3, np.float32))  # as pipelines with static vectors have
    doc = nlp("The bank failed.")
    assert doc[1].vector.shape == (8,)
    with pytest.raises(ValueError, match="a lexeme has no ELMo vector"):
        doc[1].similarity(nlp.vocab["bank"])
    doc.tensor = np.zeros((4, 3), np.float32)
    with pytest.raises(ValueError, match=r"expected 8 columns: a later component has replaced"):
        doc[1].similarity(doc[0])
    with pytest.raises(ValueError, match="no ELMo vectors"):
        set_hooks(spacy.blank("en")("The bank failed."))


def test_chinese_has_words_with_the_tokenizer_and_characters_without(tmp_path):
    text = "他在河边散步。\n\n  我去 银行取钱，a b。"
    nlp = spacy.blank("zh", config=CHINESE)
    nlp.add_pipe("polyseme")
    doc = nlp(text)
    assert doc.text == text
    assert [token.text for token in doc if not token.is_space] == [
        token.text for token in polyseme.load("zh").tokenize(text, "zh")
    ]
    expected = polyseme.load("zh").embed([["他", "在", "河边", "散步", "。"]])[0]
    np.testing.assert_allclose(doc.tensor[:5], expected, atol=1e-5)
    characters = spacy.blank("zh")
    characters.add_pipe("polyseme")
    assert characters("他在河边散步。").tensor.shape == (7, 384)
    nlp.to_disk(tmp_path / "zh")
    assert [token.text for token in spacy.load(tmp_path / "zh")("他在河边散步")] == [
        "他",
        "在",
        "河边",
        "散步",
    ]
    assert [token.text for token in pickle.loads(pickle.dumps(nlp))("在河边")] == ["在", "河边"]


@pytest.mark.parametrize("text", ["", " ", "a", " a", "a  b", "a\tb ", "\n", "a b\u3000c", "  a\n\n b  "])
def test_the_tokenizer_keeps_the_text(text):
    nlp = spacy.blank("zh", config=CHINESE)
    assert nlp(text).text == text


def test_an_unknown_segmentation_is_refused():
    config = {"nlp": {"tokenizer": {"@tokenizers": "polyseme.Tokenizer.v1", "segment": "words"}}}
    with pytest.raises(ValueError, match="words"):
        spacy.blank("zh", config=config)


def test_a_pipeline_is_built_before_elmo_is_imported():
    code = (
        "import sys, spacy\nnlp = spacy.blank('en')\nnlp.add_pipe('polyseme')\n"
        "assert 'polyseme.elmo' not in sys.modules\n"
        "nlp('The bank failed.')\nassert 'polyseme.elmo' in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_without_spacy_the_command_to_install_it_is_named():
    code = (
        "import sys\nsys.modules['spacy'] = None\nimport polyseme\n"
        "try:\n    import polyseme.integrations.spacy\nexcept ImportError as problem:\n    print(problem)"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == 'The spaCy integration needs spacy: pip install "polyseme[spacy]"\n'
