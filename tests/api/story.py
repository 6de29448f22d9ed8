"""A caller that sends the examples of the API description in the order of the story."""

import re
import time
from dataclasses import dataclass, field
from typing import Any

import httpx
from pyotp import TOTP

from sallyport.base.secret import new_key, token_hash
from sallyport.radius.packet import ACCOUNTING_REQUEST, ACCOUNTING_RESPONSE, encode_request
from sallyport.web.description import TOKEN
from tests.areas.sessions.records import octets
from tests.radius_client import RadiusClient
from tests.running_service import RunningService

PASSWORD = "Correct-Horse-7-Battery"
SECRET = "a secret of the tests"
START = 1
JSON_KIND = "application/json"


@dataclass
class Caller:
    """A caller that replaces the placeholders in angle brackets with values from earlier answers."""

    service: RunningService
    described: dict[str, Any]
    answers: dict[str, Any] = field(default_factory=dict)
    key: str = field(default_factory=new_key)
    next_key: str = field(default_factory=new_key)

    def filled(self, value: Any) -> Any:
        """Return a value of an example with its placeholders replaced."""
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
        """Return a value that the caller generates itself."""
        if word == "the code that the app shows":
            return TOTP(self.answers["enrolTotp"]["seed"]).now()
        return {
            "the agent key": self.key,
            "SHA-256 of the agent key": token_hash(self.key),
            "SHA-256 of the next agent key": token_hash(self.next_key),
        }[word]

    def token(self, method: str, path: str) -> str | None:
        """Return the token of an operation's example. If the example names none, return the service's first token."""
        token: str | None = self.filled(self.described[path][method.lower()].get(TOKEN))
        return token

    def body(self, method: str, path: str) -> Any:
        """Return the body of an operation's example with its placeholders replaced."""
        media: dict[str, Any] = next(iter(self.described[path][method.lower()]["requestBody"]["content"].values()))
        return self.filled(media["example"])

    def send(self, method: str, path: str) -> httpx.Response:
        """Send the example of an operation and store its answer."""
        token, body = self.token(method, path), self.body(method, path)
        if JSON_KIND in self.described[path][method.lower()]["requestBody"]["content"]:
            answer = self.service.request(method, path, token=token, json=body)
        else:
            files = {"file": (body["fileName"], body.pop("file"))}
            answer = self.service.request(method, path, token=token, data=body, files=files)
        if answer.status_code == 200:
            self.answers[path.rpartition("/")[2]] = answer.json()
        return answer

    def happens(self, path: str) -> None:
        """Cause the events outside the API that an operation needs."""
        if path == "/network_device/ListClients":  # the RADIUS client of the story has another address
            self.service.add_client("here", "127.0.0.1", SECRET, coaPort=0)
        elif path == "/network_device/GetDevice":
            self.log_in("ann", PASSWORD)
            self.account()
        elif path == "/ad/Unlock":
            self.log_in("bob", "wrong")
        elif path == "/ad/GetProfileFile":  # it names the server's certificate
            self.service.call("cert.init", ca_name="Tests CA", hosts=["radius.example.org"])
        elif path == "/ad/GetAllUsersByGroup":
            self.wait_for("select count(*) from directory_groups")

    def log_in(self, user: str, password: str) -> None:
        """Send a login by RADIUS."""
        with self.service.radius(SECRET) as client:
            client.login(user, password, NAS_IDENTIFIER=b"switch-1")

    def account(self) -> None:
        """Start a session by RADIUS accounting."""
        with RadiusClient(self.service.ports.acct, SECRET) as client:
            body = octets(START, USER_NAME="ann", NAS_IDENTIFIER="switch-1")
            assert client.exchange(encode_request(ACCOUNTING_REQUEST, 0, client.secret, body))[0] == ACCOUNTING_RESPONSE

    def wait_for(self, count: str) -> None:
        """Wait until the query finds an entry."""
        deadline = time.monotonic() + 30
        while self.service.rows(count) == [(0,)]:
            assert time.monotonic() < deadline, count
            time.sleep(0.05)
