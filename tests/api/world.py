"""The running service for tests of its HTTP operations. Each test has a new tenant and real devices that send real
packets.
"""

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import httpx

from sallyport.web.problem import FIXED
from tests.radius_client import RadiusClient
from tests.running_service import RunningService

LIST_DEVICES = "/network_device/ListDevices"
SECRET = "a secret of the tests"
PASSWORD = "the password of ann"
REFUSED_BODIES = {400, 413, 415}


@dataclass
class World:
    """The service, one HTTP connection to it, and counters for values that are used once."""

    service: RunningService
    http: httpx.Client
    _organizations: Iterator[int] = field(default_factory=lambda: count(100))
    _addresses: Iterator[int] = field(default_factory=lambda: count(1))

    def address(self) -> str:
        """Return an address of this machine from which no other test sends."""
        number = next(self._addresses)
        return f"127.9.{number // 250}.{number % 250 + 1}"

    def tenant(self, domain: str = "corp") -> "Tenant":
        """Create a tenant that has an admin token and one domain with the user ann."""
        organization = next(self._organizations)
        made = self.service.call("token.create", org=organization, tenant=7, role="admin")
        tenant = Tenant(self, organization, 7, made["token"])
        tenant.domain = tenant.ask("/ad/AddDomain", domainName=domain)["domainId"]
        tenant.user("ann")
        return tenant

    def post(
        self, path: str, token: str | None, *, headers: Mapping[str, str] | None = None, **body: Any
    ) -> httpx.Response:
        """Send a POST with a token. If the token is None, send no token header. body: the json= or content= argument of
        httpx.
        """
        return self.send("POST", path, token, headers=headers, **body)

    def send(
        self, method: str, path: str, token: str | None, *, headers: Mapping[str, str] | None = None, **body: Any
    ) -> httpx.Response:
        """Send a request like `post`, but with another method."""
        sent = {} if token is None else {"x-authorization": token}
        return self.http.request(method, path, headers={**sent, **(headers or {})}, **body)


@dataclass
class Tenant:
    """The tenant with number 7 of an organization of its own."""

    world: World
    org: int
    number: int
    token: str
    domain: int = 0
    _roles: dict[str, str] = field(default_factory=dict)

    def scoped(self, **fields: Any) -> dict[str, Any]:
        """Return a body with orgId and tenantId."""
        return {"orgId": self.org, "tenantId": self.number, **fields}

    def role(self, role: str) -> str:
        """Return a token that has this role."""
        if role not in self._roles:
            made = self.world.service.call("token.create", org=self.org, tenant=self.number, role=role)
            self._roles[role] = made["token"]
        return self._roles[role]

    def ask(self, path: str, *, token: str | None = None, method: str = "POST", **fields: Any) -> Any:
        """Call an operation that must succeed and return its answer."""
        answer = self.world.send(method, path, token or self.token, json=self.scoped(**fields))
        assert answer.status_code == 200, f"{path}: {answer.status_code} {answer.text}"
        assert answer.headers["content-type"] == "application/json"
        assert answer.headers["cache-control"] == "no-store"
        return answer.json()

    def refused(self, path: str, *, token: str | None = None, method: str = "POST", **fields: Any) -> tuple[int, str]:
        """Call an operation that must be refused, and return the status and the text of its error body. Check that the
        error body has no other field.
        """
        return problem(self.world.send(method, path, token or self.token, json=self.scoped(**fields)))

    def user(self, name: str, password: str = PASSWORD, domain: int = 0) -> None:
        """Add a user to the domain."""
        self.world.service.add_user(name, password, str(domain or self.domain))

    def devices(self, *, domain: int = 0, **fields: Any) -> list[dict[str, Any]]:
        """Return the matching devices of the domain, at most 100, and assert that the total is their number."""
        answer = self.ask(LIST_DEVICES, domainId=domain or self.domain, pageSize=100, **fields)
        assert answer["totalCount"] == len(answer["network_devices"])
        found: list[dict[str, Any]] = answer["network_devices"]
        return found

    def names(self, **fields: Any) -> list[str]:
        """Return the names of the devices."""
        return [device["device_name"] for device in self.devices(**fields)]

    @contextmanager
    def nas(self, **fields: Any) -> Iterator[RadiusClient]:
        """Register a RADIUS client of the domain and return it. It can send from an address of its own."""
        address = fields.pop("address", None) or self.world.address()
        fields = {"name": address, "address": address, "secret": SECRET, "domainId": self.domain, **fields}
        self.ask("/network_device/AddClient", **fields)
        with self.world.service.radius(fields["secret"], source=address) as client:
            yield client

    def device(self, name: str, **attributes: bytes) -> str:
        """Log ann in once from a new device and return the address of the device."""
        with self.nas() as client:
            assert client.login("ann", PASSWORD, NAS_IDENTIFIER=name.encode(), **attributes) == 2
            return str(client.sock.getsockname()[0])


def problem(answer: httpx.Response) -> tuple[int, str]:
    """Return the status and the text of an error body. Check that it has `errors` if and only if the body was
    refused, and none if the interface fixes the error.

    The text of a refused role is returned without the roles, which depend on the operation.
    """
    body, is_radius = answer.json(), not answer.request.url.path.startswith("/api/")
    is_fixed = is_radius and body["error"] in FIXED
    assert bool(body.pop("errors", None)) == (answer.status_code in REFUSED_BODIES and not is_fixed)
    text = "error" if is_radius else "message"
    if answer.status_code == 403 and body[text].startswith("role not allowed"):
        assert re.fullmatch("role not allowed: needs [a-z]+( or [a-z]+)*, not [a-z]+", body[text])
        body[text] = "role not allowed"
    if not is_radius:
        assert body == {"code": answer.status_code, "status": "Failure", "message": body["message"]}
        return answer.status_code, body["message"]
    assert body == {"error": body["error"], "code": answer.status_code}
    return answer.status_code, body["error"]
