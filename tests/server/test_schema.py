"""Valid and invalid requests generated from the OpenAPI schema: none of them gets a 500."""

from __future__ import annotations

from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings

schemathesis = pytest.importorskip("schemathesis")
checks = pytest.importorskip("schemathesis.specs.openapi.checks")
EXAMPLES = 12
CONFORMANCE = [
    checks.response_schema_conformance,
    checks.content_type_conformance,
    checks.status_code_conformance,
]


@pytest.fixture(scope="module")
def with_workspace(start_server, tmp_path_factory: pytest.TempPathFactory):
    """A server in whose workspace a few texts fit."""
    options = ("--workspace", tmp_path_factory.mktemp("workspace"), "--workspace-corpora", "3")
    process = start_server("zh-classic", *options).wait()
    yield process
    process.stop()


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode), ids=lambda mode: mode.value)
def test_no_request_breaks_the_server(server, mode):
    send_requests(server.address, mode)


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode), ids=lambda mode: mode.value)
def test_no_request_breaks_a_workspace(with_workspace, mode):
    httpx.post(f"{with_workspace.address}/workspace", json={"title": "a"})
    send_requests(with_workspace.address, mode, "/workspace")


def send_requests(address: str, mode: Any, prefix: str = "/") -> None:
    """Send requests that fit the schema, or do not, to the routes that begin with `prefix`."""
    schema = schemathesis.openapi.from_url(f"{address}/openapi.json")
    statuses = set()
    for result in schema.get_all_operations():
        operation = result.ok()
        invalid = mode == schemathesis.GenerationMode.NEGATIVE
        if not operation.path.startswith(prefix) or (invalid and operation.method == "get"):
            continue  # a request without parameters cannot be invalid
        if invalid and prefix != "/" and "requestBody" not in operation.definition.raw:
            continue  # only the name of a corpus, which may be anything
        cases = operation.as_strategy(generation_mode=mode)

        @settings(
            max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck)
        )
        @given(case=cases)
        def send(case):
            response = case.call(timeout=30)
            statuses.add((case.operation.path, response.status_code))
            assert response.status_code < 500, response.text
            case.validate_response(response, checks=CONFORMANCE)
            if response.status_code >= 400:
                assert_error_format(case.operation.path, response.json())

        send()
    assert len({path for path, _ in statuses}) >= (11 if prefix == "/" else 3 if invalid else 8)
    assert any(status == (422 if invalid else 200) for _, status in statuses)


def assert_error_format(path: str, values: dict) -> None:
    if path.startswith("/v1/"):
        assert set(values["error"]) == {"message", "type", "param", "code"}
    else:
        assert set(values) - {"code", "values"} == {"error", "error_type"}


def test_the_server_is_still_healthy(client: httpx.Client):
    assert client.get("/health").status_code == 200
