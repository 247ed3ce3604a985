"""What each integration adds to the time of the plain call that it stands for.

    python benchmarks/integrations.py [--model en-classic] [--rounds 7] [NAME …]

A row is a function of `ROWS`: it gets a model and sentences, and returns the plain call and the call through
the other library, which embed the same sentences. Both run once before they are measured, then by turns; the
table has the medians of the processor time, and how much more the adapter takes. Goal: at most 10%.
Processor time of one thread, because other programs then disturb it little. A row whose library is missing
is named below the table; `make bench-integrations` has them all.
"""

from __future__ import annotations

import argparse
import atexit
import csv
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch

import polyseme

GOAL = 0.10
CORPUS = Path(__file__).parent.parent / "examples" / "data" / "topics.csv"
Call = Callable[[], object]


class Calls(NamedTuple):
    """The same work twice: by Polyseme alone, and through another library."""

    plain: Call
    adapter: Call


class Times(NamedTuple):
    """Processor seconds of both calls (medians), and the median of adapter over plain, minus one."""

    plain: float
    adapter: float
    more: float


Row = Callable[[polyseme.Elmo, list[str]], Calls]


def pandas_column(elmo: polyseme.Elmo, sentences: list[str]) -> Calls:
    """pandas: a column embedded."""
    import pandas as pd

    column = pd.Series(sentences)
    return Calls(
        plain=lambda: elmo.embed(sentences, pool="mean"),
        adapter=lambda: elmo.embed(column, pool="mean"),
    )


def langchain(elmo: polyseme.Elmo, sentences: list[str]) -> Calls:
    """LangChain: embed_documents."""
    from langchain_core.embeddings import Embeddings

    class ElmoEmbeddings(Embeddings):
        def embed_documents(self, texts: list[str]) -> list[list[float]]:
            vectors: list[list[float]] = elmo.embed(texts, pool="mean").tolist()
            return vectors

        def embed_query(self, text: str) -> list[float]:
            return self.embed_documents([text])[0]

    adapter = ElmoEmbeddings()
    return Calls(
        plain=lambda: elmo.embed(sentences, pool="mean"),
        adapter=lambda: adapter.embed_documents(sentences),
    )


def llama_index(elmo: polyseme.Elmo, sentences: list[str]) -> Calls:
    """LlamaIndex: get_text_embedding_batch."""
    from llama_index.core.base.embeddings.base import BaseEmbedding

    class ElmoEmbedding(BaseEmbedding):
        def _get_text_embeddings(self, texts: list[str]) -> list[list[float]]:
            vectors: list[list[float]] = elmo.embed(texts, pool="mean").tolist()
            return vectors

        def _get_text_embedding(self, text: str) -> list[float]:
            return self._get_text_embeddings([text])[0]

        def _get_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

        async def _aget_query_embedding(self, query: str) -> list[float]:
            return self._get_text_embedding(query)

    adapter = ElmoEmbedding(embed_batch_size=512)
    return Calls(
        plain=lambda: elmo.embed(sentences, pool="mean"),
        adapter=lambda: adapter.get_text_embedding_batch(sentences),
    )


def haystack(elmo: polyseme.Elmo, sentences: list[str]) -> Calls:
    """Haystack: a component that embeds documents."""
    from haystack import Document, component

    class ElmoDocumentEmbedder:
        @component.output_types(documents=list[Document])
        def run(self, documents: list[Document]) -> dict[str, list[Document]]:
            texts = [document.content or "" for document in documents]
            pairs = zip(documents, elmo.embed(texts, pool="mean").tolist(), strict=True)
            return {"documents": [replace(document, embedding=vector) for document, vector in pairs]}

    ElmoDocumentEmbedder.run.__annotations__["documents"] = list[Document]  # here it is the text of the type
    adapter = component(ElmoDocumentEmbedder)()
    documents = [Document(content=sentence) for sentence in sentences]
    return Calls(
        plain=lambda: elmo.embed(sentences, pool="mean"),
        adapter=lambda: adapter.run(documents=documents),
    )


def scikit_learn(elmo: polyseme.Elmo, sentences: list[str]) -> Calls:
    """scikit-learn: ElmoVectorizer in a pipeline."""
    from sklearn.pipeline import make_pipeline

    from polyseme.integrations.sklearn import ElmoVectorizer

    pipeline = make_pipeline(ElmoVectorizer(elmo), "passthrough").fit(sentences)
    return Calls(
        plain=lambda: elmo.embed(sentences, pool="mean"),
        adapter=lambda: pipeline.transform(sentences),
    )


def sentence_transformers(elmo: polyseme.Elmo, sentences: list[str]) -> Calls:
    """sentence-transformers: encode with batches of 512 texts."""
    return encode_in_batches(elmo, sentences, 512)


def sentence_transformers_default(elmo: polyseme.Elmo, sentences: list[str]) -> Calls:
    """sentence-transformers: encode with batches of 32 texts, its default."""
    return encode_in_batches(elmo, sentences, 32)


def embed_in_calls(elmo: polyseme.Elmo, sentences: list[str]) -> Calls:
    """No other library: Elmo.embed in calls of 32 texts, which is what encode does by default."""
    falling = sorted(sentences, key=len, reverse=True)
    return Calls(
        plain=lambda: elmo.embed(sentences, pool="mean"),
        adapter=lambda: [
            elmo.embed(falling[start : start + 32], pool="mean", progress=False)
            for start in range(0, len(falling), 32)
        ],
    )


def encode_in_batches(elmo: polyseme.Elmo, sentences: list[str], size: int) -> Calls:
    """A SentenceTransformer with batches of `size` texts."""
    from sentence_transformers import SentenceTransformer

    from polyseme.integrations.sentence_transformers import ElmoModule

    model = SentenceTransformer(modules=[ElmoModule(elmo)], device="cpu")
    return Calls(
        plain=lambda: elmo.embed(sentences, pool="mean"),
        adapter=lambda: model.encode(sentences, batch_size=size, show_progress_bar=False),
    )


def vectors_in_a_table(elmo: polyseme.Elmo, sentences: list[str]) -> Calls:
    """pyarrow: a column of vectors added to a table."""
    import pyarrow as pa

    from polyseme.integrations.frames import add_vectors

    table = pa.table({"text": sentences})
    return Calls(
        plain=lambda: elmo.embed(sentences, pool="mean"),
        adapter=lambda: add_vectors(table, "text", elmo),
    )


def datasets_map(elmo: polyseme.Elmo, sentences: list[str]) -> Calls:
    """datasets: a column of vectors by map, which writes it to disk."""
    import datasets

    from polyseme.integrations.frames import add_vectors

    datasets.disable_progress_bars()
    datasets.disable_caching()
    table = datasets.Dataset.from_dict({"text": sentences})
    return Calls(
        plain=lambda: elmo.embed(sentences, pool="mean"),
        adapter=lambda: add_vectors(table, "text", elmo),
    )


def spacy_component(elmo: polyseme.Elmo, sentences: list[str]) -> Calls:
    """spaCy: the component `polyseme`, both with the time spaCy needs to make the documents."""
    import spacy
    from spacy.tokens import Doc

    from polyseme.integrations.spacy.stored_model import StoredModel
    from polyseme.integrations.spacy.vectors import VectorsComponent

    vocab = spacy.blank("en").vocab
    tokens = [elmo.token_texts(sentence) for sentence in sentences]
    stored = StoredModel("", lambda path, temporary: elmo, lambda model, folder: None)
    component = VectorsComponent("polyseme", stored, "mean", hooks=True)

    def make_documents() -> list[Doc]:
        """Each is one sentence, as for the plain call."""
        starts = [[True] + [False] * (len(words) - 1) for words in tokens]
        return [
            Doc(vocab, words=words, sent_starts=start) for words, start in zip(tokens, starts, strict=True)
        ]

    return Calls(
        plain=lambda: (make_documents(), elmo.embed(tokens)),
        adapter=lambda: list(component.pipe(make_documents(), batch_size=1000)),
    )


def keras_batches(elmo: polyseme.Elmo, sentences: list[str]) -> Calls:
    """Keras: batches of all layers, both padded."""
    from polyseme.integrations.keras import ElmoBatches

    def read_batches() -> list[object]:
        batches = ElmoBatches(elmo, sentences)
        return [batches[number] for number in range(len(batches))]

    def pad_batches() -> list[object]:
        vectors = elmo.embed(sentences, layer="all")  # (L, T, H) each
        batches: list[object] = []
        for start in range(0, len(vectors), 32):
            rows = vectors[start : start + 32]
            longest = max(row.shape[1] for row in rows)
            padded = np.zeros((len(rows), longest, rows[0].shape[0], rows[0].shape[2]), np.float32)
            for number, row in enumerate(rows):
                padded[number, : row.shape[1]] = row.swapaxes(0, 1)
            batches.append(padded)
        return batches

    return Calls(plain=pad_batches, adapter=read_batches)


def hub_load(elmo: polyseme.Elmo, sentences: list[str]) -> Calls:
    """Hugging Face Hub: a model loaded from the cache."""
    import huggingface_hub  # noqa: F401  # or this row is missing

    cache = Path(tempfile.mkdtemp(prefix="polyseme-hub-"))
    atexit.register(shutil.rmtree, cache, ignore_errors=True)
    repository = cache / "models--user--model"
    snapshot = repository / "snapshots" / ("0" * 40)
    elmo.save(snapshot)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("0" * 40)
    return Calls(
        plain=lambda: polyseme.load(snapshot).embed(sentences[:64]),
        adapter=lambda: polyseme.load("user/model", cache=cache, offline=True).embed(sentences[:64]),
    )


def gensim_vectors(elmo: polyseme.Elmo, sentences: list[str]) -> Calls:
    """gensim: word vectors as KeyedVectors."""
    from gensim.models import KeyedVectors

    words = polyseme.mean_vectors(elmo, sentences, min_count=1)

    def build() -> None:
        for _ in range(100):
            keyed = KeyedVectors(words.vectors.shape[1])
            keyed.add_vectors(list(words.words), words.vectors - words.centre)
            keyed.allocate_vecattrs(["count"], [int])
            keyed.expandos["count"][:] = words.counts

    def convert() -> None:
        for _ in range(100):
            words.to_gensim()

    return Calls(plain=build, adapter=convert)


ROWS: tuple[Row, ...] = (
    pandas_column,
    scikit_learn,
    sentence_transformers,
    sentence_transformers_default,
    embed_in_calls,
    vectors_in_a_table,
    datasets_map,
    langchain,
    llama_index,
    haystack,
    spacy_component,
    keras_batches,
    hub_load,
    gensim_vectors,
)


def main() -> None:
    """Parse the command line, measure, print the table."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", help="only these rows (default: all)")
    parser.add_argument("--model", default="en-classic")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--sentences", type=int, default=512)
    arguments = parser.parse_args()
    unknown = set(arguments.names) - {row.__name__ for row in ROWS}
    if unknown:
        parser.error(f"no row {', '.join(sorted(unknown))}; there are {', '.join(r.__name__ for r in ROWS)}")
    torch.set_num_threads(1)
    elmo, sentences = polyseme.load(arguments.model), make_sentences(arguments.sentences)
    rows = [row for row in ROWS if not arguments.names or row.__name__ in arguments.names]
    print(f"{arguments.model}, {len(sentences)} sentences, median of {arguments.rounds} rounds, CPU ms")
    print_table(elmo, sentences, rows, arguments.rounds)


def print_table(elmo: polyseme.Elmo, sentences: list[str], rows: list[Row], rounds: int) -> None:
    """Measure the rows and print them, then those whose library is missing."""
    missing = []
    print("| integration | plain call | adapter | more |")
    print("|---|---|---|---|")
    for row in rows:
        try:
            calls = row(elmo, sentences)
        except ImportError as problem:
            missing.append(f"{row.__name__}: {problem}")
            continue
        times = measure(calls, rounds)
        mark = "" if times.more <= GOAL else " (over the goal)"
        name = (row.__doc__ or "").splitlines()[0].rstrip(".")
        milliseconds = f"{1000 * times.plain:.1f} | {1000 * times.adapter:.1f}"
        print(f"| {name} | {milliseconds} | {times.more:+.1%}{mark} |", flush=True)
    for line in missing:
        print(line)


def measure(calls: Calls, rounds: int) -> Times:
    """Run both calls by turns, once to warm up and then `rounds` times."""
    pairs = [(time_call(calls.plain), time_call(calls.adapter)) for _ in range(rounds + 1)][1:]
    plain, adapter = zip(*pairs, strict=True)
    more = statistics.median(late / early for early, late in pairs) - 1
    return Times(statistics.median(plain), statistics.median(adapter), more)


def time_call(call: Call) -> float:
    """Processor seconds of this process while `call` runs."""
    start = time.process_time()
    call()
    return time.process_time() - start


def make_sentences(count: int) -> list[str]:
    """Sentences of the sample data with a number in each, so that no two are the same."""
    with CORPUS.open(encoding="utf-8", newline="") as file:
        lines = [row["text"] for row in csv.DictReader(file)]
    return [f"{lines[number % len(lines)]} {number}" for number in range(count)]


if __name__ == "__main__":
    main()
