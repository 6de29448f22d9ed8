"""A hostile tenant that sends the costliest bodies to every operation.

The tenant is the first one of the installation, because the examples in the API description are written for it. The
examples are sent in an order in which each one finds what it needs. Each example is followed by its costly bodies.
"""

import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from functools import partial
from itertools import count
from typing import Any

import httpx

from sallyport.areas.login.first.fields import LdapFields, UpstreamFields
from sallyport.areas.mfa.providers import BUILT_IN
from sallyport.base.model import Model
from sallyport.web.examples import STORY
from tests.api.story import JSON_KIND, PASSWORD, SECRET, Caller
from tests.running_service import RunningService
from tests.torture import costly, crowd
from tests.torture.walk import Costly, Walk

_FIRST = (
    "/network_device/AddClient",
    "/network_device/ListClients",
    "/api/v1/endpointUsers/addEpmUserInfo",
    "/network_device/GetDevice",
    "/network_device/ResetDevice",
    "/network_device/DeleteDevice",
    "/api/v1/instances/addInstance",
    "/api/v1/agent/createKey",
    "/api/v1/machine/add-machine",
)
"""The examples to send before the crowd and the other tenant are added, because later examples use the ids 1 and 2."""
_DELETED = "/network_device/DeleteDevice"
_ADDS = ("add", "create", "register")
_NAMES = ("name", "userName", "instanceName", "groupName", "policyName", "domainName", "username", "emailAddress")


def open_fields() -> list[tuple[str, dict[str, Any], dict[str, Any]]]:
    """Return the bodies that the API description leaves open: the fields of each provider and first factor.

    Each entry has the path of an operation, the field that selects the provider, and a schema of its other fields.
    """
    found = [("/ad/SetMFAProvider", {"provider": each.name}, _schema(each.fields)) for each in BUILT_IN]
    for name, fields in (("ldap", LdapFields), ("radius", UpstreamFields)):
        schema = _schema(fields)
        within = {"type": "object", "properties": {name: schema}, "$defs": schema.get("$defs", {})}
        found.append(("/ad/SetFirstFactor", {"firstFactor": name}, within))
    return found


def _schema(model: type[Model]) -> dict[str, Any]:
    return model.model_json_schema(ref_template="#/components/schemas/{model}")


@dataclass(frozen=True)
class Request:
    """A request of the hostile tenant."""

    method: str
    path: str
    token: str
    field: str
    octets: bytes

    @property
    def operation(self) -> str:
        """Return the method and the path."""
        return f"{self.method} {self.path}"


@dataclass(frozen=True)
class Sent:
    """The result of a request.

    began, ended: the times in seconds since the epoch. status: the HTTP status, or 0 if there was no answer.
    """

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
    """The requests of the hostile tenant, and their results."""

    service: RunningService
    sent: list[Sent] = field(default_factory=list)
    _numbers: Iterator[int] = field(default_factory=count)

    def __post_init__(self) -> None:
        self.described: dict[str, Any] = self.service.request("GET", "/openapi.json").json()
        self._caller = Caller(self.service, self.described["paths"])
        self._open = open_fields()
        named = {name: schema for _, _, schema in self._open for name, schema in schema.get("$defs", {}).items()}
        self._walk = Walk({**self.described["components"]["schemas"], **named})
        for path in _FIRST:
            self._caller.happens(path)
            if path != _DELETED:
                self._example("POST", path)
        crowd.populate(self.service)

    def run(self) -> None:
        """Send each example, followed by its costly bodies."""
        with self._connected() as http:
            for method, path, _ in STORY:
                if path not in _FIRST:
                    self._caller.happens(path)
                if path not in _FIRST or path == _DELETED:
                    self._example(method, path)
                token, example = self._caller.token(method, path), self._caller.body(method, path)
                if "multipart/form-data" in self.described["paths"][path][method.lower()]["requestBody"]["content"]:
                    self._upload(http, path, example)
                for body in self._costly(method, path, example):
                    request = Request(method, path, token or self.service.token, body.field, body.octets)
                    self._send(http, request)
                if path.rpartition("/")[2].startswith("Set"):
                    self._example(method, path)  # the next examples go by what it sets
                self._log_in()

    def _example(self, method: str, path: str) -> None:
        """Send the example of an operation."""
        began = time.time()
        status = self._caller.send(method, path).status_code
        self.sent.append(Sent(f"{method} {path}", "example", 0, began, time.time(), status))

    def _upload(self, http: httpx.Client, path: str, example: Mapping[str, Any]) -> None:
        """Send costly files of directories. Each is imported while the walk continues."""
        for label, file in costly.LDIF.items():
            began, data = time.time(), {"domainId": example["domainId"], "directoryName": label}
            answer = http.post(path, data=data, files={"file": file}, headers={"x-authorization": self.service.token})
            self.sent.append(Sent(f"POST {path}", label, len(file), began, time.time(), answer.status_code))

    def _log_in(self) -> None:
        """Send logins that use the configured rules, groups and providers. Do not wait for the answers."""
        with self.service.radius(SECRET) as client:
            for name in ("ann", costly.MARKS[:126], "(" * 253):
                client.send(client.packet(name, PASSWORD, CALLING_STATION_ID=costly.MARKS[:120].encode()))

    def _costly(self, method: str, path: str, example: Mapping[str, Any]) -> Iterator[Costly]:
        """Yield the costly bodies of an operation."""
        content = self.described["paths"][path][method.lower()]["requestBody"]["content"]
        if JSON_KIND in content:
            yield from self._walk.bodies(content[JSON_KIND]["schema"], partial(self._with_own_names, path, example))
        for of, fixed, schema in self._open:
            if of == path:
                yield from self._walk.bodies(schema, partial(dict, example, **fixed))

    def _with_own_names(self, path: str, example: Mapping[str, Any]) -> dict[str, Any]:
        """Return an example.

        If the operation adds something, its names are new; if it reports something, the content is new.
        """
        number = next(self._numbers)
        if path == "/api/v1/agent/report":
            return {**example, "id": f"report-{number}"}
        if "sequence" in example:
            return {**example, "sequence": self._next_batch()}
        if not path.rpartition("/")[2].lower().startswith(_ADDS):
            return dict(example)
        own = {name: f"{number}.{example[name]}" for name in _NAMES if name in example}
        if "address" in example:
            own["address"] = f"198.18.{number >> 8}.{number & 0xFF}"
        return {**example, **own}

    def _next_batch(self) -> int:
        """Return the batch number that the run of a directory agent expects next."""
        return 1 + sum(each.operation.endswith("/batch") and each.status == 200 for each in self.sent)

    def _send(self, http: httpx.Client, request: Request) -> None:
        began, status = time.time(), 0
        headers = {"x-authorization": request.token, "content-type": JSON_KIND}
        with suppress(httpx.HTTPError):
            answer = http.request(request.method, request.path, content=request.octets, headers=headers)
            status = answer.status_code
        self.sent.append(Sent(request.operation, request.field, len(request.octets), began, time.time(), status))

    def _connected(self) -> httpx.Client:
        url = f"http://127.0.0.1:{self.service.ports.http}"
        return httpx.Client(base_url=url, timeout=60, trust_env=False)
