"""A small service for tests of the HTTP layer: sample operations, two tenants, and a token for each role."""

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import httpx
from pydantic import BaseModel, Field
from starlette.types import ASGIApp, Message

from sallyport.base.errors import Conflict, NotFound, StoreError, TookTooLong, Unauthenticated
from sallyport.web.app import create_app
from sallyport.web.bodies import Body, Flag, Id, InDomain, Many, Name, OfDomain, Plain, ShortPaged
from sallyport.web.operation import Operations
from sallyport.web.scope import OPERATORS, READERS, Caller, Gate, Role

DOMAIN, OTHER_DOMAIN, FOREIGN_DOMAIN = 3, 5, 4
LIST = "/network_device/List"
RENAME = "/api/v1/sample/rename"
REMOVE = "/api/v1/sample/remove"
FAIL = "/api/v1/sample/fail"
KEYED = "/api/v1/sample/keyed"
BIG = "/api/v1/sample/big"
SCOPE = {"orgId": 1, "tenantId": 1, "domainId": DOMAIN}


class SampleTokens:
    """The tokens `sp_ROLE` of tenant 1. It counts the calls of authenticate()."""

    def __init__(self) -> None:
        self.asked = 0
        self.sources: list[str] = []

    async def authenticate(self, token: str, source: str = "") -> Caller:
        self.asked += 1
        self.sources.append(source)
        prefix, _, role = token.partition("_")
        if prefix != "sp" or role not in set(Role):
            raise Unauthenticated("invalid token")
        bound = DOMAIN if role == Role.AGENT else None
        return Caller(1, 1, 1, tenant_id=7, role=Role(role), name=role, domain_id=bound)


class SampleOwners:
    """The domains 3 and 5, which belong to tenant 7, and the domain 4 of another tenant."""

    def tenant_of(self, domain_id: int) -> int | None:
        return {DOMAIN: 7, OTHER_DOMAIN: 7, FOREIGN_DOMAIN: 8}.get(domain_id)


class ListThings(InDomain, ShortPaged):
    """A page of things."""

    search: str = ""


class Things(BaseModel):
    """The answer of LIST, with the field names of the API."""

    network_devices: list[str]
    totalCount: int  # noqa: N815


class Rename(OfDomain):
    """The body of an endpoint operation."""

    name: Name
    secret: str = ""
    always: Flag = False
    instanceIds: Many[Id] = Field(default_factory=list)  # noqa: N815


class Remove(Body):
    """An item of an array body."""

    policyId: Id  # noqa: N815


class Renamed(BaseModel):
    """An answer with irregular field names, as in some answers of the API."""

    Code: str
    Message: str


class Keyed(Body):
    """A body that may contain a key."""

    key: str | None = None

    def claimed_key(self) -> str | None:
        return self.key


class Fail(Body):
    """A body with the kind of failure to raise."""

    how: str = ""


@dataclass
class Sample:
    """The app, and the calls that its operations recorded."""

    app: ASGIApp
    tokens: SampleTokens
    worked: list[str] = field(default_factory=list)
    observed: list[tuple[str, str, int]] = field(default_factory=list)
    reasons: list[str] = field(default_factory=list)


def sample_operations(worked: list[str], gate: Gate) -> Operations:
    """Return operations that record their calls in `worked`."""
    operations = Operations("Sample", gate)

    @operations.post(LIST, roles=READERS | {Role.AGENT})
    async def list_things(body: ListThings, caller: Caller) -> Plain[Things]:
        """List things of a domain."""
        page = body.page()
        worked.append(f"{caller.name} {page.offset} {page.size}")
        return Plain({"network_devices": [body.search], "totalCount": 1})

    @operations.post(KEYED, roles=OPERATORS | {Role.ENROLMENT})
    async def keyed(body: Keyed, caller: Caller) -> str:
        """Record the caller of a request with a key in the body."""
        worked.append(caller.name)
        return caller.name

    @operations.post(RENAME, "/api/v1/sample/Rename2", roles=OPERATORS)
    @operations.put(RENAME, roles=OPERATORS)
    async def rename(body: Rename, caller: Caller) -> Renamed:
        """Rename a thing."""
        worked.append(f"{body.name} {body.always} {body.instanceIds}")
        return Renamed(Code="200", Message=body.name)

    @operations.delete(REMOVE, roles=OPERATORS)
    async def remove(body: list[Remove], caller: Caller) -> list[Remove]:
        """Remove all of the given things, or none."""
        return body

    @operations.post(FAIL, "/ad/Fail", roles=OPERATORS)
    async def fail(body: Fail, caller: Caller) -> str:
        """Raise the exception that the body names."""
        raise {
            "store": StoreError("disk"),
            "slow": TookTooLong(10),
            "missing": NotFound("thing not found"),
            "twice": Conflict("name taken"),
        }.get(body.how, RuntimeError("hunter2 is in this message"))

    @operations.post(BIG, roles=READERS)
    async def big(body: Fail, caller: Caller) -> str:
        """Answer with 16 MiB."""
        return "x" * (1 << 24)

    return operations


def make_sample() -> Sample:
    """Return a new sample service."""
    tokens = SampleTokens()
    worked: list[str] = []
    observed: list[tuple[str, str, int]] = []
    reasons: list[str] = []

    def observe(method: str, route: str, status: int, seconds: float) -> None:
        observed.append((method, route, status))

    app = create_app(
        [sample_operations(worked, Gate(tokens, SampleOwners()))],
        version="1.2.3",
        observe=observe,
        not_ready=lambda: reasons,
        metrics=render_sample,
    )
    return Sample(app, tokens, worked, observed, reasons)


async def render_sample(kind: str) -> bytes:
    """Return metrics that name their format."""
    return f"sample 1 of {kind.partition(';')[0]}\n".encode()


@asynccontextmanager
async def client_of(app: ASGIApp, role: str = "admin") -> AsyncIterator[httpx.AsyncClient]:
    """Yield a client that calls the app in memory with the token of a role. If the role is empty, it sends no token."""
    headers = {"x-authorization": f"sp_{role}"} if role else {}
    async with httpx.AsyncClient(
        transport=httpx.ASGITransport(app), base_url="http://sample", headers=headers
    ) as client:
        yield client


@dataclass
class Exchange:
    """The result of a request that was passed to the app without an HTTP client."""

    status: int
    body: dict[str, object]
    pulled: int
    """The number of calls of receive()."""


async def exchange(app: ASGIApp, path: str, headers: dict[str, str], piece: bytes | None) -> Exchange:
    """POST an endless body that repeats `piece`. If `piece` is None, the client disconnects instead."""
    status, pulled, answer = 0, 0, b""

    async def receive() -> Message:
        nonlocal pulled
        pulled += 1
        if piece is None:
            return {"type": "http.disconnect"}
        return {"type": "http.request", "body": piece, "more_body": True}

    async def send(message: Message) -> None:
        nonlocal status, answer
        status = message.get("status", status)
        answer += message.get("body", b"")

    raw = [(name.encode(), value.encode()) for name, value in headers.items()]
    scope = {"type": "http", "method": "POST", "path": path, "raw_path": path.encode(), "query_string": b""}
    await app({**scope, "headers": raw, "root_path": "", "scheme": "http", "server": ("s", 80)}, receive, send)
    return Exchange(status, json.loads(answer), pulled)
