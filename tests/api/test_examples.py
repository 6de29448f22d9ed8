"""The examples of the API description, sent unchanged in the order of their story."""

import json
from collections.abc import Iterator

import pytest

from sallyport.web.examples import STORY
from tests.api.operations import FORMS, OPERATIONS
from tests.api.story import Caller
from tests.running_service import RunningService, running_service

CONFLICTS = {"/api/v1/cancelImport", "/api/v1/confirmImport"}
"""An import of an unreachable directory ends by itself and has nothing to confirm, so these operations answer 409."""


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
        if answer.status_code != 200 and not (path in CONFLICTS and answer.status_code == 409):
            wrong.append(f"{method} {path}: {answer.status_code} {answer.text}")
    assert not wrong, "\n".join(wrong)


def test_every_operation_has_one() -> None:
    """Each operation has exactly one example."""
    shown = [(method, path) for method, path, _ in STORY]
    assert sorted(shown) == sorted({(each.method, each.path) for each in (*OPERATIONS, *FORMS)})


def test_the_bodies_can_be_typed() -> None:
    """An example has only JSON values and contains no quotation mark that would end the shell's quotation."""
    assert all(json.loads(json.dumps(body)) == body and "'" not in json.dumps(body) for _, _, body in STORY)
