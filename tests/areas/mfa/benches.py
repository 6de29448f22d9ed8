"""Servers for the built-in providers. They are used by the contract and by the tests of each provider."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import ClassVar, Generic, TypeVar

from sallyport.areas.mfa.contract import HTTP_FAILURES, Behaviour
from sallyport.areas.mfa.duo import Duo
from sallyport.areas.mfa.host import ConfiguredProvider, Host
from sallyport.areas.mfa.okta import Okta
from sallyport.areas.mfa.provider import Provider
from sallyport.areas.mfa.radius import Radius
from sallyport.areas.mfa.totp import Totp
from sallyport.areas.mfa.webhook import Webhook
from sallyport.base.totp import hotp, seed_octets, step_at
from tests.areas import SetClock
from tests.areas.mfa import duo_server, hook_server, okta_server, radius_server
from tests.areas.mfa.duo_server import DuoServer
from tests.areas.mfa.hook_server import HookServer
from tests.areas.mfa.host import USER, MemorySeeds, make_host
from tests.areas.mfa.okta_server import OktaServer
from tests.areas.mfa.radius_server import RadiusServer, radius_serving
from tests.areas.mfa.web import serving

ServerT = TypeVar("ServerT", DuoServer, OktaServer, HookServer)


@dataclass
class HttpBench(Generic[ServerT]):
    """A provider over HTTP, and its server."""

    provider: type[ConfiguredProvider]
    fields: Mapping[str, object]
    secrets: Sequence[str]
    right_code: str
    server: ServerT
    host: Host = field(default_factory=make_host)
    failures: frozenset[Behaviour] = HTTP_FAILURES
    user: str = USER

    @property
    def prompts(self) -> int:
        """The number of prompts."""
        return self.server.prompts

    @property
    def requests(self) -> int:
        """The number of requests."""
        return self.server.web.requests

    def behave(self, behaviour: Behaviour) -> None:
        """Behave this way from the next request on."""
        self.server.web.behave(behaviour)

    def make(self) -> Provider:
        """Return a new instance of the provider."""
        return self.provider(self.provider.fields.model_validate(self.fields), self.host)


@asynccontextmanager
async def duo_bench() -> AsyncIterator[HttpBench[DuoServer]]:
    """Run a Duo server."""
    server = DuoServer()
    async with serving(server) as server.web:
        fields = {"ikey": duo_server.IKEY, "skey": duo_server.SKEY, "host": f"127.0.0.1:{server.web.port}"}
        yield HttpBench(Duo, fields, [duo_server.SKEY], duo_server.CODE, server)


@asynccontextmanager
async def okta_bench() -> AsyncIterator[HttpBench[OktaServer]]:
    """Run an Okta server."""
    server = OktaServer()
    async with serving(server) as server.web:
        fields = {"domain": f"127.0.0.1:{server.web.port}", "apiToken": okta_server.TOKEN}
        yield HttpBench(Okta, fields, [okta_server.TOKEN], okta_server.CODE, server)


@asynccontextmanager
async def hook_bench() -> AsyncIterator[HttpBench[HookServer]]:
    """Run a webhook."""
    server = HookServer()
    async with serving(server) as server.web:
        fields = {"url": f"http://127.0.0.1:{server.web.port}/hook", "secret": hook_server.SECRET}
        yield HttpBench(Webhook, fields, [hook_server.SECRET], "", server)


class HastyRadius(Radius):
    """A RADIUS provider with short timeouts."""

    tries_s: ClassVar[tuple[float, ...]] = (0.1, 0.1, 0.1)


@dataclass
class RadiusBench:
    """The RADIUS provider, and another RADIUS server."""

    server: RadiusServer
    fields: Mapping[str, object]
    provider: type[ConfiguredProvider] = HastyRadius
    secrets: Sequence[str] = (radius_server.SECRET,)
    right_code: str = radius_server.CODE
    host: Host = field(default_factory=make_host)
    failures: frozenset[Behaviour] = frozenset({Behaviour.SILENT, Behaviour.NO_PROTOCOL})
    user: str = USER
    prompts: int = 0

    @property
    def requests(self) -> int:
        """The number of packets that the server received."""
        return self.server.requests

    def behave(self, behaviour: Behaviour) -> None:
        """Behave this way from the next request on."""
        self.server.behave(behaviour)

    def make(self) -> Provider:
        """Return a new instance of the provider."""
        return self.provider(self.provider.fields.model_validate(self.fields), self.host)


@asynccontextmanager
async def radius_bench() -> AsyncIterator[RadiusBench]:
    """Run another RADIUS server."""
    async with radius_serving() as server:
        yield RadiusBench(server, {"host": "127.0.0.1", "port": server.port, "secret": radius_server.SECRET})


SEED = "GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ"


class TotpBench:
    """One user with a seed. Instead of a server there is the user's authenticator app."""

    provider: type[ConfiguredProvider] = Totp
    secrets: Sequence[str] = ()
    failures: frozenset[Behaviour] = frozenset()
    user = USER
    prompts = 0
    requests = 0

    def __init__(self) -> None:
        self.fields: Mapping[str, object] = {}
        self.clock = SetClock()
        self.seeds = MemorySeeds({USER: SEED})
        self.host = make_host(seeds=self.seeds, clock=self.clock)
        self.behaviour = Behaviour.APPROVE

    @property
    def right_code(self) -> str:
        """Return the code that the app shows. For a user without a seed return another code."""
        late = 100 if self.behaviour is Behaviour.DENY else 0
        return self.code(late)

    def code(self, steps: int = 0) -> str:
        """Return the code that the app shows after `steps` time steps."""
        return hotp(seed_octets(SEED), step_at(self.clock()) + steps)

    def behave(self, behaviour: Behaviour) -> None:
        """Behave this way from the next request on."""
        self.behaviour = behaviour

    def make(self) -> Totp:
        """Return a new instance of the provider for apps."""
        return Totp(Totp.fields.model_validate({}), self.host)
