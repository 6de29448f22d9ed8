"""The examples in the description of the API are sent as they are written there, in the order of their story."""

import json
import re
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest
from pyotp import TOTP

from sallyport.base.ids import new_key, token_hash
from sallyport.radius.packet import ACCOUNTING_REQUEST, ACCOUNTING_RESPONSE, encode_request
from sallyport.web.docs import TOKEN
from sallyport.web.examples import STORY
from tests.api.operations import FORMS, OPERATIONS
from tests.inventory.sessions.records import octets
from tests.radius_client import RadiusClient
from tests.service import RunningService, running_service

PASSWORD = "Correct-Horse-7-Battery"
SECRET = "a secret of the tests"
START = 1
JSON_KIND = "application/json"
CONFLICTS = {"/api/v1/cancelImport", "/api/v1/confirmImport"}
"""An import of a directory that is not there ends by itself, and has nothing to confirm: 409 is right for these."""


@dataclass
class Caller:
    """Who tells the story: it fills in what stands in angle brackets, from what it has been answered."""

    service: RunningService
    described: dict[str, Any]
    answers: dict[str, Any] = field(default_factory=dict)
    key: str = field(default_factory=new_key)
    next_key: str = field(default_factory=new_key)

    def filled(self, value: Any) -> Any:
        """A value of an example with its angle brackets filled in."""
        if isinstance(value, dict):
            return {name: self.filled(each) for name, each in value.items()}
        if isinstance(value, list):
            return [self.filled(each) for each in value]
        if not isinstance(value, str) or not (bracket := re.fullmatch(r"<(.+)>", value)):
            return value
        if named := re.fullmatch(r"(\w+) of (\w+)", bracket[1]):
            return self.answers.get(named[2], {}).get(named[1], value)
        return self.own(bracket[1])

    def own(self, word: str) -> str:
        """What a caller makes up by itself."""
        if word == "the code that the app shows":
            return TOTP(self.answers["enrolTotp"]["seed"]).now()
        return {
            "the agent key": self.key,
            "SHA-256 of the agent key": token_hash(self.key),
            "SHA-256 of the next agent key": token_hash(self.next_key),
        }[word]

    def send(self, method: str, path: str) -> httpx.Response:
        """The example of an operation; its answer is remembered."""
        told = self.described[path][method.lower()]
        (kind, media), token = next(iter(told["requestBody"]["content"].items())), self.filled(told.get(TOKEN))
        body = self.filled(media["example"])
        if kind == JSON_KIND:
            answer = self.service.request(method, path, token=token, json=body)
        else:
            files = {"file": (body["fileName"], body.pop("file"))}
            answer = self.service.request(method, path, token=token, data=body, files=files)
        if answer.status_code == 200:
            self.answers[path.rpartition("/")[2]] = answer.json()
        return answer

    def happens(self, path: str) -> None:
        """What has to happen outside of the API before an operation has something to act on."""
        if path == "/network_device/DeleteDevice":
            self.log_in("ann", PASSWORD)
            self.account()
        elif path == "/ad/Unlock":
            self.log_in("bob", "wrong")
        elif path == "/ad/GetAllUsersByGroup":
            self.wait_for("select count(*) from directory_groups")

    def log_in(self, user: str, password: str) -> None:
        """A login by RADIUS."""
        with self.service.radius(SECRET) as client:
            client.login(user, password, NAS_IDENTIFIER=b"switch-1")

    def account(self) -> None:
        """A session begins."""
        with RadiusClient(self.service.ports.acct, SECRET) as client:
            body = octets(START, USER_NAME="ann", NAS_IDENTIFIER="switch-1")
            assert client.exchange(encode_request(ACCOUNTING_REQUEST, 0, client.secret, body))[0] == ACCOUNTING_RESPONSE

    def wait_for(self, count: str) -> None:
        """Until there is one."""
        deadline = time.monotonic() + 30
        while self.service.rows(count) == [(0,)]:
            assert time.monotonic() < deadline, count
            time.sleep(0.05)


@pytest.fixture(scope="module")
def fresh(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """A service at its first start: what the story begins with. One wrong password locks out."""
    settings = {"SALLYPORT_REJECT_DELAY_S": "0", "SALLYPORT_LOCKOUT_FAILURES": "1"}
    with running_service(tmp_path_factory.mktemp("fresh"), settings) as service:
        yield service


def test_every_example_works_as_it_is_written(fresh: RunningService) -> None:
    """Each answers 200, one after the other; what the description shows is what is sent."""
    caller = Caller(fresh, fresh.request("GET", "/openapi.json").json()["paths"])
    wrong = []
    for method, path, _ in STORY:
        if path == "/network_device/ListClients":  # the story's own client is not of this machine
            here = {"name": "here", "address": "127.0.0.1", "secret": SECRET.encode().hex(), "coa_port": 0}
            fresh.call("client.add", org=1, tenant=1, domains=[], clients=[here])
        caller.happens(path)
        answer = caller.send(method, path)
        if answer.status_code != 200 and not (path in CONFLICTS and answer.status_code == 409):
            wrong.append(f"{method} {path}: {answer.status_code} {answer.text}")
    assert not wrong, "\n".join(wrong)


def test_every_operation_has_one() -> None:
    """Nothing in the description is left to be guessed, and no operation is shown twice."""
    shown = [(method, path) for method, path, _ in STORY]
    assert sorted(shown) == sorted({(each.method, each.path) for each in (*OPERATIONS, *FORMS)})


def test_the_page_shows_them(fresh: RunningService) -> None:
    """/docs has each as the body of a call that can be typed."""
    page = fresh.request("GET", "/docs").text
    assert page.count("curl -s") == len(STORY)
    assert "Correct-Horse-7-Battery" in page
    assert "-F file=@people.ldif -F domainId=1" in page
    assert "X-Authorization: &lt;apiKey of createKey&gt;" in page


def test_the_bodies_can_be_typed() -> None:
    """Nothing in them is of a kind that only Python has, or ends a shell's quotation."""
    assert all(json.loads(json.dumps(body)) == body and "'" not in json.dumps(body) for _, _, body in STORY)
