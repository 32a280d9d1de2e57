"""Is the OpenAPI document true? Schemathesis asks the running loop everything the document allows."""

import json
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis.errors import Unsatisfiable
from schemathesis import GenerationMode
from schemathesis.core.failures import Failure, FailureGroup
from schemathesis.specs.openapi import checks, schemas  # noqa: F401 - a late import of it has failed
from tests.support import Process, sized

pytestmark = pytest.mark.live
NOT_CHECKED = [
    checks.positive_data_acceptance,  # turns in order, time that goes on: no JSON Schema says that
]


STREAMS = {"GET /v1/events"}
"""They do not end; tests/api/test_events.py reads them."""


@pytest.fixture(scope="module")
def shared(tmp_path_factory):
    """One loop for all operations, in a process of its own; it has to outlive all of them."""
    process = Process.start(tmp_path_factory.mktemp("openapi") / "data")
    try:
        process.until_ready()
        yield process
        assert process.popen.poll() is None, process.log.read_text()
        assert "request failed" not in process.log.read_text()
        assert process.stop() == 0
    finally:
        process.destroy()


@pytest.fixture
def document(shared):
    return schemathesis.openapi.from_url(f"{shared.info['http_url']}/openapi.json")


def test_the_document_is_valid_openapi(document):
    document.validate()
    raw = document.raw_schema
    assert raw["openapi"].startswith("3.1")
    names = [op["operationId"] for methods in raw["paths"].values() for op in methods.values()]
    assert len(names) == len(set(names))
    assert len(names) >= 19


@pytest.mark.parametrize(
    "mode", [GenerationMode.POSITIVE, GenerationMode.NEGATIVE], ids=["valid", "invalid"]
)
@sized("examples", 8, 50)
def test_the_loop_does_what_the_document_says(document, shared, mode, examples):
    """Status codes, content types and answers are as documented, whatever is asked; never a 5xx."""
    key = {"Authorization": f"Bearer {shared.info['key']}"}
    lies = []
    for found in document.get_all_operations():
        operation = found.ok()
        if operation.label in STREAMS:
            continue
        try:
            ask_everything(operation, mode, key, examples)
        except (FailureGroup, Failure, AssertionError) as lie:
            lies.append(f"{operation.label}: {lie}")
        except Unsatisfiable:
            assert mode is GenerationMode.NEGATIVE, operation.label  # nothing to get wrong
    assert not lies, "\n\n".join(lies)


def ask_everything(operation, mode, key, examples):
    # An unknown query parameter counts as invalid, but it is passed over, as is usual in HTTP.
    unchecked = [*NOT_CHECKED, *([checks.negative_data_rejection] if operation.query else [])]

    @given(case=operation.as_strategy(generation_mode=mode))
    @settings(
        max_examples=examples,
        derandomize=True,
        deadline=None,
        database=None,
        phases=[Phase.explicit, Phase.generate],
        suppress_health_check=list(HealthCheck),
    )
    def asked(case):
        case.call_and_validate(headers=key, excluded_checks=unchecked)

    asked()


@pytest.mark.parametrize("limit", ["0", "1001", "-1", "1.5", "many", "", "+", "1" * 5000])
def test_a_limit_out_of_bounds_is_refused(shared, limit):
    request = Request(
        f"{shared.info['http_url']}/v1/dead?limit={limit}",
        headers={"Authorization": f"Bearer {shared.info['key']}"},
    )
    with pytest.raises(HTTPError) as refused, urlopen(request, timeout=60):
        pass
    with refused.value as answer:
        assert (answer.status, json.load(answer)["error"]) == (422, "schema")
