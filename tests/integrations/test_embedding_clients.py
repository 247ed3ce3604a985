"""Clients of other embedding servers read the vectors of `polyseme serve`: LangChain and Hugging Face."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Iterator

import numpy as np
import pytest

import polyseme

pytestmark = pytest.mark.integrations
TEXTS = ["曹操大怒。", "天色将晚，人马困乏。"]


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    """The address of a server, which shows it when it is ready."""
    command = [sys.executable, "-m", "polyseme", "serve", "zh-classic", "--port", "0"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        line = process.stderr.readline()
        found = re.search(r"http://[^\s/]+", line)
        assert found, line
        yield found.group()
        process.terminate()


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    return np.asarray(polyseme.load("zh-classic").embed(TEXTS, pool="mean"))


def test_langchain_embeds_many_documents(address: str, expected: np.ndarray) -> None:
    from langchain_openai import OpenAIEmbeddings
    from pydantic import SecretStr

    client = OpenAIEmbeddings(
        model="zh-classic",
        base_url=f"{address}/v1",
        api_key=SecretStr("any"),
        check_embedding_ctx_length=False,
    )
    vectors = client.embed_documents(TEXTS * 600)
    np.testing.assert_allclose(vectors[-2:], expected, atol=1e-6)
    np.testing.assert_allclose(client.embed_query(TEXTS[0]), expected[0], atol=1e-6)


def test_a_client_with_a_tokenizer_of_openai_is_told_how_to_send_text(address: str) -> None:
    import openai

    client = openai.OpenAI(base_url=f"{address}/v1", api_key="any")
    with pytest.raises(openai.BadRequestError, match="check_embedding_ctx_length=False"):
        client.embeddings.create(model="zh-classic", input=[[101, 102]])


def test_hugging_face_reads_normalised_and_plain_vectors(address: str, expected: np.ndarray) -> None:
    from huggingface_hub import InferenceClient

    client = InferenceClient(f"{address}/embed")
    for text, vector in zip(TEXTS, expected, strict=True):
        plain = client.feature_extraction(text, normalize=False)
        np.testing.assert_allclose(plain[0], vector, atol=1e-6)
        np.testing.assert_allclose(
            client.feature_extraction(text)[0], vector / np.linalg.norm(vector), atol=1e-6
        )
