"""Tests of host name look-ups during a login."""

from pathlib import Path
from threading import Event
from typing import ClassVar

import trio
import trio.testing

from sallyport.areas.mfa.circuit import Attached
from sallyport.areas.mfa.host import Fields, Host
from sallyport.areas.mfa.totp import Totp
from sallyport.outgoing.egress import AT_ONCE
from tests.areas import Areas, SetClock, running_areas


class Noted(Totp):
    """A provider that records the host that it received."""

    name: ClassVar[str] = "noted"

    def __init__(self, fields: Fields, host: Host) -> None:
        super().__init__(fields, host)
        self.host = host


async def host_of(areas: Areas, domain_id: int) -> Host:
    """Return the host that the provider of a domain received."""
    areas.kinds["noted"] = Noted
    await areas.providers.set(domain_id, "noted", {}, 60)
    attached = areas.providers.of(domain_id)
    assert isinstance(attached, Attached) and isinstance(attached.provider.provider, Noted)
    return attached.provider.provider.host


async def test_one_tenants_names_do_not_hold_up_anothers(tmp_path: Path) -> None:
    """Hosts whose name servers do not answer use up only the look-ups of their own tenant, in all its domains."""
    answers = Event()
    async with running_areas(tmp_path, SetClock(), look_up=lambda host, _port, _kind: _found(host, answers)) as areas:
        branch = await areas.domains.add(areas.tenant, "branch")
        foreign = await areas.domains.add(await areas.tenancy.ensure_tenant(2, 1), "foreign")
        hostile, same, other = [await host_of(areas, each) for each in (areas.domain, branch, foreign)]
        async with trio.open_nursery() as nursery:
            for number in range(AT_ONCE):
                nursery.start_soon(hostile.http.egress.resolve, f"h{number}.hostile.example", 443)
            await trio.testing.wait_all_tasks_blocked()
            with trio.fail_after(10):
                assert await other.http.egress.resolve("mfa.example", 443) == ["192.0.2.7"]
                with trio.move_on_after(0.1) as waited:
                    await same.http.egress.resolve("mfa.example", 443)
            assert waited.cancelled_caught
            nursery.cancel_scope.cancel()
        answers.set()


def _found(host: str, answers: Event) -> list[str]:
    if host.endswith("hostile.example"):
        answers.wait(30)
    return ["192.0.2.7"]
