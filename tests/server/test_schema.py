"""Valid and invalid requests generated from the OpenAPI schema: none of them gets a 500."""

from __future__ import annotations

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


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode), ids=lambda mode: mode.value)
def test_no_request_breaks_the_server(server, mode):
    schema = schemathesis.openapi.from_url(f"{server.address}/openapi.json")
    statuses = set()
    for result in schema.get_all_operations():
        operation = result.ok()
        invalid = mode == schemathesis.GenerationMode.NEGATIVE
        if invalid and operation.method == "get":
            continue  # a request without parameters cannot be invalid
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
    assert len({path for path, _ in statuses}) >= 11
    assert any(status == (422 if invalid else 200) for _, status in statuses)


def assert_error_format(path: str, values: dict) -> None:
    if path.startswith("/v1/"):
        assert set(values["error"]) == {"message", "type", "param", "code"}
    else:
        assert set(values) - {"code", "values"} == {"error", "error_type"}


def test_the_server_is_still_healthy(client: httpx.Client):
    assert client.get("/health").status_code == 200
