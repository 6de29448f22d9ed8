"""The Python providers of docs/guides/mfa-provider.md pass the contract of all providers."""

import runpy
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

import pytest

from sallyport.plugins import HTTP_FAILURES, Behaviour, ConfiguredProvider, Host, ProviderContract
from tests.areas.mfa.host import USER, make_host
from tests.areas.mfa.web import Call, Reply, WebServer, serving

EXAMPLE = Path(__file__).parents[2] / "docs" / "guides" / "acme_sallyport.py"
TOKEN: Final = "token-of-acme"
CODE: Final = "492039"
STATUS = {
    Behaviour.APPROVE: "approved",
    Behaviour.DENY: "denied",
    Behaviour.WAIT: "waiting",
    Behaviour.UNKNOWN_USER: "unknown",
}


@dataclass
class AcmeBench:
    """The example, and an approval service for it on loopback."""

    provider: type[ConfiguredProvider]
    fields: dict[str, object] = field(default_factory=dict)
    secrets: tuple[str, ...] = (TOKEN,)
    right_code: str = ""
    host: Host = field(default_factory=make_host)
    failures: frozenset[Behaviour] = HTTP_FAILURES
    user: str = USER
    asked: set[object] = field(default_factory=set)
    web: WebServer = field(init=False)

    @property
    def prompts(self) -> int:
        """The number of users that were prompted. The service sends one prompt for each ID."""
        return len(self.asked)

    @property
    def requests(self) -> int:
        """The number of requests that have arrived."""
        return self.web.requests

    def behave(self, behaviour: Behaviour) -> None:
        """Set how the service behaves for the following requests."""
        self.web.behave(behaviour)

    async def __call__(self, call: Call) -> Reply:
        """Answer a request."""
        assert call.headers["authorization"] == f"Bearer {TOKEN}"
        status = STATUS[self.web.behaviour]
        if call.path == "/codes" and status != "unknown":
            is_right = status != "denied" and call.json()["code"] == CODE
            return Reply(200, {"status": "approved" if is_right else "wrong"})
        if call.path.startswith("/users/"):
            return Reply(200, {"status": "unknown" if status == "unknown" else "enrolled"})
        if call.path == "/prompts" and status != "unknown":
            self.asked.add(call.json()["id"])
        return Reply(200, {"status": status})


@asynccontextmanager
async def running(name: str, right_code: str = "") -> AsyncIterator[AcmeBench]:
    """Yield a class of the example and the server that it uses. right_code: the code that the server accepts."""
    bench = AcmeBench(runpy.run_path(str(EXAMPLE))[name], right_code=right_code)
    async with serving(bench) as bench.web:
        bench.fields = {"url": f"http://127.0.0.1:{bench.web.port}", "token": TOKEN}
        yield bench


class TestAcme(ProviderContract):
    """The contract of providers, applied to the push of the guide."""

    @pytest.fixture
    async def bench(self) -> AsyncIterator[AcmeBench]:
        """Yield the provider and its server."""
        async with running("Acme") as bench:
            yield bench


class TestAcmeCodes(ProviderContract):
    """The contract of providers, applied to the codes of the guide."""

    @pytest.fixture
    async def bench(self) -> AsyncIterator[AcmeBench]:
        """Yield the provider and its server."""
        async with running("AcmeCodes", CODE) as bench:
            yield bench
