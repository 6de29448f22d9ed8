"""The examples in the description of the API are sent as they are written there, in the order of their story."""

import json
from collections.abc import Iterator

import pytest

from sallyport.web.examples import STORY
from tests.service import RunningService, running_service


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service at its first start: what the story begins with."""
    with running_service(tmp_path_factory.mktemp("fresh")) as service:
        yield service


def test_every_example_works_as_it_is_written(fresh: RunningService) -> None:
    """Each answers 200 to the first token, one after the other; what the description shows is what is sent."""
    paths = fresh.request("GET", "/openapi.json").json()["paths"]
    wrong = []
    for method, path, _ in STORY:
        example = paths[path][method.lower()]["requestBody"]["content"]["application/json"]["example"]
        answer = fresh.request(method, path, json=example)
        if answer.status_code != 200:
            wrong.append(f"{method} {path}: {answer.status_code} {answer.text}")
    assert not wrong, "\n".join(wrong)


def test_the_page_shows_them(fresh: RunningService) -> None:
    """/docs has each as the body of a call that can be typed."""
    page = fresh.request("GET", "/docs").text
    assert page.count("curl -s") == len(STORY)
    assert "Correct-Horse-7-Battery" in page


def test_each_is_an_example_of_one_operation() -> None:
    """No operation is shown twice, and every body is JSON."""
    assert len({(method, path) for method, path, _ in STORY}) == len(STORY)
    assert all(json.loads(json.dumps(body)) == body for _, _, body in STORY)
