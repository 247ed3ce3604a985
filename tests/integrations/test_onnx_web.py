"""A converted model in a browser: onnxruntime-web gives the layers of torch.

onnxruntime-web comes from npm: 33 MB packed, of which a page loads 14 MB of WebAssembly (4 MB compressed).
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import tarfile
import threading
from collections.abc import Iterator
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import polyseme

pytestmark = [pytest.mark.integrations]
PACKAGE = "onnxruntime-web@1.30.0"
FILES = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")
RUN = """async ([chars, words, shape]) => {
  const ort = await import("./ort.wasm.min.mjs");
  ort.env.wasm.numThreads = 1;
  const session = await ort.InferenceSession.create("./en.onnx");
  const tensor = (values, dims) => new ort.Tensor("int64", BigInt64Array.from(values, BigInt), dims);
  const feeds = { chars: tensor(chars, shape), words: tensor(words, shape.slice(0, 2)) };
  const { layers } = await session.run(feeds);
  return { dims: layers.dims, values: Array.from(layers.data) };
}"""


class _QuietHandler(SimpleHTTPRequestHandler):
    extensions_map = SimpleHTTPRequestHandler.extensions_map | {".mjs": "text/javascript"}

    def log_message(self, *_: object) -> None:
        """Nothing: a test has no log."""


@pytest.fixture
def site(tmp_path: Path) -> Iterator[str]:
    """A page beside onnxruntime-web and the model en."""
    if shutil.which("npm") is None:
        pytest.skip("npm is missing, which fetches onnxruntime-web")
    subprocess.run(["npm", "pack", PACKAGE], cwd=tmp_path, check=True, capture_output=True)
    with tarfile.open(next(tmp_path.glob("*.tgz"))) as archive:
        for name in FILES:
            source = archive.extractfile(f"package/dist/{name}")
            assert source is not None
            (tmp_path / name).write_bytes(source.read())
    (tmp_path / "index.html").write_text("<!doctype html><title>en</title>", encoding="utf-8")
    polyseme.convert("en", tmp_path / "en.onnx")
    handler = functools.partial(_QuietHandler, directory=str(tmp_path))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_address[1]}"
    server.shutdown()
    thread.join()
    server.server_close()


def test_onnxruntime_web_gives_the_layers_of_torch(browser: Any, site: str):
    elmo = polyseme.load("en", precision="fp32")
    sentences = [["The", "bank", "failed", "."], ["He", "sat", "on", "the", "river", "bank", "."]]
    width, alphabet = max(map(len, sentences)) + 2, elmo.model.alphabet
    assert alphabet is not None
    chars = np.zeros((len(sentences), width, alphabet.max_chars), np.int64)
    words = np.zeros((len(sentences), width), np.int64)
    for b, tokens in enumerate(sentences):
        order = [0, *range(2, len(tokens) + 2), 1]  # <S> tokens </S>
        char_ids, word_ids = elmo.model.token_ids(tokens)
        assert char_ids is not None
        assert word_ids is not None
        chars[b, : len(order)], words[b, : len(order)] = char_ids.numpy()[order], word_ids.numpy()[order]
    page = browser.new_page()
    page.goto(f"{site}/index.html")
    result = page.evaluate(RUN, [chars.ravel().tolist(), words.ravel().tolist(), list(chars.shape)])
    page.close()
    layers = np.array(result["values"], np.float32).reshape(result["dims"])
    for b, expected in enumerate(elmo.embed(sentences, layer="all")):
        found = layers[:, b, 1 : expected.shape[1] + 1]
        np.testing.assert_allclose(found, expected, atol=1e-5, rtol=0)
