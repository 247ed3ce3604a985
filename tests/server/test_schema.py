"""Requests made up from the OpenAPI schema, right and wrong ones: none of them is answered with a 500."""

from __future__ import annotations

import httpx
import pytest
from hypothesis import HealthCheck, given, settings

schemathesis = pytest.importorskip("schemathesis")
checks = pytest.importorskip("schemathesis.specs.openapi.checks")
EXAMPLES = 12
DESCRIBED = [
    checks.response_schema_conformance,
    checks.content_type_conformance,
    checks.status_code_conformance,
]


@pytest.mark.parametrize("mode", list(schemathesis.GenerationMode), ids=lambda mode: mode.value)
def test_no_request_breaks_the_server(server, mode):
    schema = schemathesis.openapi.from_url(f"{server.address}/openapi.json")
    asked = set()
    for found in schema.get_all_operations():
        operation = found.ok()
        wrong = mode == schemathesis.GenerationMode.NEGATIVE
        if wrong and operation.method == "get":
            continue  # without parameters nothing can be wrong
        cases = operation.as_strategy(generation_mode=mode)

        @settings(
            max_examples=EXAMPLES, deadline=None, database=None, suppress_health_check=list(HealthCheck)
        )
        @given(case=cases)
        def ask(case):
            answer = case.call(timeout=30)
            asked.add((case.operation.path, answer.status_code))
            assert answer.status_code < 500, answer.text
            case.validate_response(answer, checks=DESCRIBED)
            if answer.status_code >= 400:
                assert set(answer.json()) - {"code", "values"} == {"error", "error_type"}

        ask()
    assert len({path for path, _ in asked}) >= 11
    assert any(status == (422 if wrong else 200) for _, status in asked)


def test_the_server_lives_on(client: httpx.Client):
    assert client.get("/health").status_code == 200
