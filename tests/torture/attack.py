"""A hostile tenant who sends every operation with its costliest bodies.

The tenant is the first one of the installation, since the examples of the API's description are written for it. They
are sent in the order of their story, each with its costly bodies behind it.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

import httpx

from sallyport.web.examples import STORY
from tests.api.story import JSON_KIND, Caller
from tests.service import RunningService
from tests.torture.walk import Costly, Walk

_CLIENT, _USER = "/network_device/AddClient", "/api/v1/endpointUsers/addEpmUserInfo"
_LISTED, _DELETED = "/network_device/ListClients", "/network_device/DeleteDevice"
_ADDS = ("add", "create", "register")
_NAMES = ("name", "userName", "instanceName", "groupName", "policyName", "domainName", "username", "emailAddress")


@dataclass(frozen=True)
class Sent:
    """A request of the hostile tenant. began, ended: seconds since the epoch. status: 0 without an answer."""

    operation: str
    field: str
    octets: int
    began: float
    ended: float
    status: int

    def __str__(self) -> str:
        took = self.ended - self.began
        return f"{self.operation}: {self.field}, {self.octets} octets, answered {self.status} after {took:.3f} s"


@dataclass
class Attack:
    """The requests of the hostile tenant, and what came of them."""

    service: RunningService
    sent: list[Sent] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.described: dict[str, Any] = self.service.request("GET", "/openapi.json").json()
        self._caller = Caller(self.service, self.described["paths"])
        self._walk = Walk(self.described["components"]["schemas"])
        # Later examples take 1 for the ids of what these add, so that no other tenant may come before.
        self._caller.send("POST", _CLIENT)
        self._caller.happens(_LISTED)
        self._caller.send("POST", _USER)
        self._caller.happens(_DELETED)

    def run(self) -> None:
        """Send each example, and its costly bodies behind it."""
        url = f"http://127.0.0.1:{self.service.ports.http}"
        with httpx.Client(base_url=url, timeout=60, trust_env=False) as http:
            for method, path, _ in STORY:
                if path not in (_LISTED, _DELETED):
                    self._caller.happens(path)
                token, example = self._caller.token(method, path), self._caller.body(method, path)
                began = time.time()
                status = self._caller.send(method, path).status_code
                self.sent.append(Sent(f"{method} {path}", "example", 0, began, time.time(), status))
                content = self.described["paths"][path][method.lower()]["requestBody"]["content"]
                if JSON_KIND in content:
                    schema = content[JSON_KIND]["schema"]
                    for costly in self._walk.bodies(schema, partial(self._with_own_names, path, example)):
                        self._send(http, method, path, token or self.service.token, costly)

    def _with_own_names(self, path: str, example: Mapping[str, Any]) -> dict[str, Any]:
        """Return an example, with names that are not taken if the operation adds something."""
        if not path.rpartition("/")[2].lower().startswith(_ADDS):
            return dict(example)
        number = next(self._numbers)
        own = {name: f"{number}.{example[name]}" for name in _NAMES if name in example}
        if "address" in example:
            own["address"] = f"198.18.{number >> 8}.{number & 0xFF}"
        return {**example, **own}

    def _send(self, http: httpx.Client, method: str, path: str, token: str, costly: Costly) -> None:
        octets, status = costly.octets, 0
        headers = {"x-authorization": token, "content-type": JSON_KIND}
        began = time.time()
        with suppress(httpx.HTTPError):
            status = http.request(method, path, content=octets, headers=headers).status_code
        self.sent.append(Sent(f"{method} {path}", costly.field, len(octets), began, time.time(), status))
