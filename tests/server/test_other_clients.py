"""Programs written for other servers, pages of other sites, and clients that accept gzip."""

from __future__ import annotations

import gzip
import subprocess
import sys

import httpx
import numpy as np
import pytest

import polyseme
from polyseme.server.http.compression import INLINE_BYTES, accepts_gzip

TEXTS = ["曹操大怒。", "天色将晚，人马困乏。"]


@pytest.fixture(scope="module")
def expected() -> np.ndarray:
    return np.asarray(polyseme.load("zh-classic").embed(TEXTS, pool="mean"))


def to_unit_length(vectors: np.ndarray) -> np.ndarray:
    return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)


def test_tei_clients_get_a_list_of_vectors_of_length_1(client: httpx.Client, expected):
    response = client.post("/embed", json={"inputs": TEXTS})
    np.testing.assert_allclose(response.json(), to_unit_length(expected), atol=1e-6)
    one = client.post("/embed", json={"inputs": TEXTS[0], "normalize": None, "truncate": None})
    np.testing.assert_allclose(one.json(), to_unit_length(expected[:1]), atol=1e-6)
    plain = client.post("/embed", json={"inputs": TEXTS, "normalize": False})
    np.testing.assert_allclose(plain.json(), expected, atol=1e-6)
    short = client.post("/embed", json={"inputs": TEXTS, "dimensions": 50})
    np.testing.assert_allclose(short.json(), to_unit_length(expected[:, :50]), atol=1e-6)


def test_tei_clients_may_have_long_texts_truncated_at_either_end(client: httpx.Client):
    elmo = polyseme.load("zh-classic")
    text = "曹操大怒。" * 700  # 2,100 tokens
    tokens = elmo.token_texts(text)
    refused = client.post("/embed", json={"inputs": text})
    assert (refused.status_code, refused.json()["code"]) == (413, "too_long")
    for direction, kept in (("Right", tokens[:2000]), ("left", tokens[-2000:])):
        body = {"inputs": text, "truncate": True, "truncation_direction": direction, "normalize": False}
        np.testing.assert_allclose(
            client.post("/embed", json=body).json(), elmo.embed([kept], pool="mean"), atol=1e-5
        )


@pytest.mark.parametrize(
    ("body", "status", "message"),
    [
        ({"inputs": [[1, 2]]}, 422, "token ids instead of text"),
        ({"inputs": []}, 422, "inputs: "),
        ({"inputs": "a", "dimensions": 100_000}, 422, "dimensions must be at most"),
        ({"inputs": "a", "prompt_name": "query"}, 422, "prompt_name: "),
        ({"inputs": "a", "normalise": True}, 422, "did you mean normalize?"),
        ({"inputs": ["a"] * 2049}, 413, "2049 texts, at most 2048"),
    ],
)
def test_invalid_requests_of_tei_clients_get_its_errors(client: httpx.Client, body, status, message):
    response = client.post("/embed", json=body)
    assert response.status_code == status
    assert message in response.json()["error"]
    assert response.json()["error_type"]


def test_text_is_compressed_for_clients_that_accept_gzip(client: httpx.Client):
    for texts in (["曹操大怒。" * 20], ["曹操大怒。" * 400]):  # compressed at once, and in a thread
        plain, packed = (
            client.post("/tokenize", json={"texts": texts}, headers={"Accept-Encoding": encoding})
            for encoding in ("identity", "gzip")
        )
        assert "content-encoding" not in plain.headers
        assert packed.headers["content-encoding"] == "gzip"
        assert packed.content == plain.content  # httpx has decompressed it
        assert int(packed.headers["content-length"]) < len(plain.content) / 4
        assert plain.headers["vary"] == packed.headers["vary"] == "Accept-Encoding"
    assert len(plain.content) > INLINE_BYTES


def test_the_bytes_that_are_sent_are_gzip(client: httpx.Client):
    with client.stream("GET", "/openapi.json", headers={"Accept-Encoding": "br, gzip;q=0.5"}) as response:
        assert gzip.decompress(b"".join(response.iter_raw())).startswith(b"{")


def test_short_responses_errors_vectors_and_heads_are_not_compressed(client: httpx.Client):
    for response in (
        client.get("/health"),
        client.head("/health"),
        client.post("/embed", json={"texts": TEXTS}),
        client.post("/embed", json={"inputs": TEXTS}),
        client.post("/v1/embeddings", json={"input": TEXTS, "model": "zh-classic"}),
        client.post("/embed", json={}),
    ):
        assert "content-encoding" not in response.headers


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        (b"gzip", True),
        (b"*", True),
        (b"gzip;q=0", False),
        (b"gzip;q=0, *", False),
        (b"br", False),
        (b"", False),
    ],
)
def test_gzip_is_sent_only_to_clients_that_accept_it(header: bytes, accepted: bool):
    assert accepts_gzip({"accept-encoding": header}) is accepted


def test_only_pages_of_the_given_sites_may_read_responses(start, tmp_path):
    (tmp_path / "key").write_text("s3cret", encoding="utf-8")
    server = start(
        "zh-classic", "--api-key-file", tmp_path / "key", "--cors-origins", "https://example.com"
    ).wait()
    site = {"Origin": "https://example.com"}
    asks = {
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "authorization,content-type",
    }
    with httpx.Client(base_url=server.address, timeout=30) as client:
        preflight = client.options("/embed", headers=site | asks)
        assert preflight.status_code == 200
        assert preflight.headers["access-control-allow-origin"] == "https://example.com"
        assert "authorization" in preflight.headers["access-control-allow-headers"]
        body = {"texts": ["曹操"]}
        for key, status in (("s3cret", 200), ("wrong", 401)):
            response = client.post("/embed", json=body, headers=site | {"Authorization": f"Bearer {key}"})
            assert response.status_code == status
            assert response.headers["access-control-allow-origin"] == "https://example.com"
            assert "X-Polyseme-Shapes" in response.headers["access-control-expose-headers"]
        other = {"Origin": "https://example.org"}
        assert client.options("/embed", headers=other | asks).status_code == 400
        response = client.post("/embed", json=body, headers=other | {"X-API-Key": "s3cret"})
        assert "access-control-allow-origin" not in response.headers


def test_without_an_option_no_page_of_another_site_may_read_responses(client: httpx.Client):
    response = client.get("/info", headers={"Origin": "https://example.com"})
    assert "access-control-allow-origin" not in response.headers


def test_a_path_is_no_origin():
    command = [sys.executable, "-m", "polyseme", "serve", "zh-classic", "--cors-origins", "https://a.org/x"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=60)
    assert (result.returncode, "http://" in result.stderr) == (2, False)
    assert "--cors-origins" in result.stderr
    assert "is not the origin of a site" in result.stderr
