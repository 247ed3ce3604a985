"""LangChain, LlamaIndex and Haystack: the classes of docs/integrations.md in the hands of these libraries."""

from __future__ import annotations

import asyncio
import inspect
from typing import Any

import numpy as np
import pytest

import polyseme
from test_readme import ROOT, blocks, run_python

pytestmark = [pytest.mark.integrations, pytest.mark.filterwarnings("ignore")]  # warnings of the libraries

PAGE = ROOT / "docs" / "integrations.md"
TEXTS = ["The bank lent him the money.", "He sat on the bank of the river.", "The bank lent him the money."]


@pytest.fixture(scope="module")
def names() -> dict[str, Any]:
    """What the page defines."""
    values: dict[str, Any] = {"__name__": "page"}
    for block in blocks(PAGE):
        is_first = block.language == "python" and "elmo =" in block.code
        if is_first or any(name in block.code for name in ("langchain", "llama_index", "from haystack")):
            run_python(PAGE, block, values)
    return values


@pytest.fixture(scope="module")
def expected(names: dict[str, Any]) -> np.ndarray:
    vectors: np.ndarray = names["en"].embed(TEXTS, pool="sentence")
    return vectors


def test_langchain_accepts_the_embeddings_by_its_standard_tests(names: dict[str, Any]):
    from langchain_tests.integration_tests import EmbeddingsIntegrationTests
    from langchain_tests.unit_tests import EmbeddingsUnitTests

    model, ran = names["ElmoEmbeddings"](names["en"]), set()
    for kind in (EmbeddingsUnitTests, EmbeddingsIntegrationTests):
        properties = {"embeddings_class": names["ElmoEmbeddings"]}
        properties["embedding_model_params"] = {"elmo": names["en"]}  # type: ignore[assignment]
        standard = type("TestElmo", (kind,), properties)()
        for name in dir(standard):
            if name.startswith("test_") and "override" not in name:
                test = getattr(standard, name)
                result = test(model) if "model" in inspect.signature(test).parameters else test()
                if inspect.iscoroutine(result):
                    asyncio.run(result)
                ran.add(name)
    asked = {"query", "documents"}
    assert ran >= {"test_init", *(f"test_{call}_{what}" for call in ("embed", "aembed") for what in asked)}


def test_langchain_gets_the_vectors_of_embed(names: dict[str, Any], expected: np.ndarray):
    model = names["ElmoEmbeddings"](names["en"])
    np.testing.assert_array_equal(model.embed_documents(TEXTS), expected)
    np.testing.assert_allclose(model.embed_query(TEXTS[1]), expected[1], atol=1e-6)
    assert model.embed_documents([]) == []


def test_llama_index_gets_the_vectors_of_embed_and_caches_and_waits(
    names: dict[str, Any], expected: np.ndarray
):
    from llama_index.core.schema import TextNode

    model = names["ElmoEmbedding"](elmo=names["en"], embed_batch_size=2)
    np.testing.assert_allclose(model.get_text_embedding_batch(TEXTS), expected, atol=1e-6)
    np.testing.assert_allclose(model.get_query_embedding(TEXTS[1]), expected[1], atol=1e-6)
    np.testing.assert_allclose(asyncio.run(model.aget_text_embedding(TEXTS[1])), expected[1], atol=1e-6)
    np.testing.assert_allclose(asyncio.run(model.aget_query_embedding(TEXTS[1])), expected[1], atol=1e-6)
    nodes = model([TextNode(text=text) for text in TEXTS])  # as a step of an ingestion pipeline
    np.testing.assert_allclose(np.array([node.embedding for node in nodes]), expected, atol=1e-6)


def test_haystack_indexes_and_asks_in_pipelines(names: dict[str, Any], expected: np.ndarray):
    from haystack import Document, Pipeline
    from haystack.components.writers import DocumentWriter
    from haystack.document_stores.in_memory import InMemoryDocumentStore

    store = InMemoryDocumentStore()
    pipeline = Pipeline()
    pipeline.add_component("embedder", names["ElmoDocumentEmbedder"](names["en"]))
    pipeline.add_component("writer", DocumentWriter(store))
    pipeline.connect("embedder.documents", "writer.documents")
    documents = [Document(id=str(number), content=text) for number, text in enumerate(TEXTS)]
    assert pipeline.run({"embedder": {"documents": documents}})["writer"]["documents_written"] == 3
    written = sorted(store.filter_documents(), key=lambda document: document.id)
    np.testing.assert_allclose(np.array([document.embedding for document in written]), expected, atol=1e-6)
    assert all(document.embedding is None for document in documents)  # the input is unchanged
    query = names["ElmoTextEmbedder"](names["en"]).run(TEXTS[1])
    np.testing.assert_allclose(query["embedding"], expected[1], atol=1e-6)


def test_a_document_without_text_is_refused_with_its_position(names: dict[str, Any]):
    from haystack import Document

    embedder = names["ElmoDocumentEmbedder"](names["en"])
    with pytest.raises(ValueError, match="1") as refused:
        embedder.run([Document(content="The bank."), Document(content=None)])
    assert isinstance(refused.value, polyseme.PolysemeError)
