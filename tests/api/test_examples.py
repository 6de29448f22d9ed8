"""The examples of the API description, sent unchanged in the order of their story."""

import json
from collections.abc import Iterator

import pytest

from sallyport.web.examples import STORY
from tests.api.operations import FORMS, OPERATIONS
from tests.api.story import Caller
from tests.running_service import RunningService, running_service

CONFLICTS = {"/api/v1/cancelImport", "/api/v1/confirmImport", "/ad/EnrolUser", "/ad/EnrolGroup"}
"""An import of an unreachable directory ends by itself and has nothing to confirm, and this service has no site of
people for links, so these operations answer 409."""
ABSENT = {"/ad/RemovePasskey", "/ad/RemoveRememberedStation"}
"""Only the browser of a user makes a passkey, and only a login makes a remembered station. So there is none to
remove."""


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Return a service at its first start, with which the story begins. One wrong password locks a user out."""
    settings = {"SALLYPORT_REJECT_DELAY_S": "0", "SALLYPORT_LOCKOUT_FAILURES": "1"}
    with running_service(tmp_path_factory.mktemp("fresh"), settings) as service:
        yield service


def test_every_example_works_as_it_is_written(fresh: RunningService) -> None:
    """Each example answers 200, in order."""
    caller = Caller(fresh, fresh.request("GET", "/openapi.json").json()["paths"])
    wrong = []
    for method, path, _ in STORY:
        caller.happens(path)
        answer = caller.send(method, path)
        expected = 409 if path in CONFLICTS else 404 if path in ABSENT else 200
        if answer.status_code not in (200, expected):
            wrong.append(f"{method} {path}: {answer.status_code} {answer.text}")
    assert not wrong, "\n".join(wrong)


def test_every_operation_has_one() -> None:
    """Each operation has exactly one example."""
    shown = [(method, path) for method, path, _ in STORY]
    assert sorted(shown) == sorted({(each.method, each.path) for each in (*OPERATIONS, *FORMS)})


def test_the_bodies_can_be_typed() -> None:
    """An example has only JSON values and contains no quotation mark that would end the shell's quotation."""
    assert all(json.loads(json.dumps(body)) == body and "'" not in json.dumps(body) for _, _, body in STORY)
