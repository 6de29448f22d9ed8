"""The first factor `ldap` outside a service: a checker that runs until the block ends."""

import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path

import trio
from prometheus_client import CollectorRegistry

from sallyport.areas.login.first.checker import Host
from sallyport.areas.login.first.fields import LdapFields
from sallyport.areas.login.first.ldap.checker import Ldap
from sallyport.areas.login.first.winbind.helpers import Helpers
from sallyport.areas.login.login import Found, Reason
from sallyport.base.clock import Clock, now_us
from sallyport.base.fair import LoopTurns
from sallyport.metrics import UpstreamMetrics
from sallyport.outgoing.egress import Egress, LookUp, look_up
from sallyport.settings.values import ANYWHERE, Network


@dataclass
class Asked:
    """A running checker, and the steps of its last check."""

    ldap: Ldap
    steps: list[str] = field(default_factory=list)
    found: Found | None = None

    async def bind(self, user: str, password: str) -> Reason:
        """Check a name and a password."""
        self.steps.clear()
        reason, self.found = await self.ldap.bind(user, password, self.steps.append)
        assert not any(len(password) > 3 and password in step for step in self.steps), self.steps
        return reason


def host(
    clock: Clock = now_us,
    egress: Sequence[Network] = ANYWHERE,
    ntlm_auth: Helpers | None = None,
    look_up: LookUp = look_up,
    turns: LoopTurns | None = None,
    monotonic: Callable[[], float] = time.monotonic,
) -> Host:
    """Return the host of a checker.

    egress: the networks that it may connect to. look_up: the DNS. turns: the turns in which answers are read.
    monotonic: the clock of the cache of passwords, in seconds.
    """
    return Host(
        domain_id=1,
        domain="corp",
        egress=Egress(egress, look_up, turns),
        clock=clock,
        upstream=UpstreamMetrics(CollectorRegistry()),
        hidden={},
        ntlm_auth=ntlm_auth or Helpers(Path("/there/is/no/ntlm_auth")),
        monotonic=monotonic,
    )


@asynccontextmanager
async def asking(given: Host | None = None, **fields: object) -> AsyncIterator[Asked]:
    """Yield a running checker. Its fields are given as in SetFirstFactor."""
    ldap = LdapFields.model_validate({"baseDN": "dc=example,dc=com", **fields}).checker(given or host())
    async with trio.open_nursery() as nursery:
        nursery.start_soon(ldap.run)
        yield Asked(ldap)
        nursery.cancel_scope.cancel()
