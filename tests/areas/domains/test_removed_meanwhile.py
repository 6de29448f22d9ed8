"""Requests in progress about a domain that is removed meanwhile. They are refused without an internal error."""

from collections.abc import Awaitable, Callable

import pytest
import trio
from prometheus_client import CollectorRegistry

from sallyport.areas.domains.bodies import Impact
from sallyport.areas.domains.domain import Domain, FirstFactor, Mode
from sallyport.areas.domains.enforcement import Enforcement, Switch
from sallyport.areas.domains.operations import local_operations
from sallyport.areas.domains.service import Domains
from sallyport.areas.events.event import EventQuery, EventRow
from sallyport.areas.events.operations import operations
from sallyport.areas.events.service import Events
from sallyport.areas.preview.rule_test import Question
from sallyport.areas.tenancy.keys.key import Agent, NewKey
from sallyport.base.errors import NotFound
from sallyport.metrics import DomainMetrics
from sallyport.shell.command import entries
from sallyport.web.scope import Caller, Gate, Role
from tests.areas import Areas
from tests.areas.domains.test_enforcement import FixedCheck, FixedImpact
from tests.areas.dynamic.nas import ack, running_nas
from tests.areas.dynamic.world import device, session, trail
from tests.waiting import until


@pytest.fixture
async def branch(areas: Areas) -> Domain:
    """Return a second domain, which can be removed."""
    domain_id = await areas.domains.add(areas.tenant, "branch", realms=["branch.example"])
    return areas.domains.table.present(domain_id)


class RemovingImpact(FixedImpact):
    """An impact preview that removes the domain."""

    def __init__(self, areas: Areas) -> None:
        super().__init__(denied=0)
        self._areas = areas

    async def impact(self, domain_id: int, *, days: int = 30, fallback: str | None = None) -> Impact:
        """Remove the domain, and return an impact."""
        await self._areas.removal.remove(domain_id)
        return await super().impact(domain_id, days=days, fallback=fallback)


@pytest.mark.parametrize("check", [FixedCheck(), FixedCheck(None)], ids=["provider", "no provider"])
async def test_a_mode_switch_of_a_removed_domain_is_refused(areas: Areas, branch: Domain, check: FixedCheck) -> None:
    """A change of the mode is refused if the domain is removed while the impact is computed."""
    enforcement = Enforcement(areas.domains, RemovingImpact(areas), check)
    with pytest.raises(NotFound, match="no such domain"):
        await enforcement.switch(branch.id, Switch(Mode.ENFORCE, require_clean=True))


class RemovingEvents(Events):
    """An event log that removes the domain when it is read."""

    def __init__(self, areas: Areas) -> None:
        super().__init__(areas.store)
        self._areas = areas

    async def walk(self, query: EventQuery, *, counts: bool = True) -> tuple[list[EventRow], str, int]:
        """Read the log, and remove the domain."""
        found = await super().walk(query, counts=counts)
        await self._areas.removal.remove(query.domain_id)
        return found


async def test_logins_of_a_removed_domain_are_not_found(areas: Areas, branch: Domain) -> None:
    """If a domain is removed while its log is read, the log is not found."""
    caller = Caller(0, 1, 1, areas.tenant, Role.ADMIN, "root", is_installation=True)
    (listing,) = operations(
        RemovingEvents(areas), areas.domains, Gate(areas.app.tenancy.authentication, areas.domains)
    ).all
    assert listing.run is not None
    with pytest.raises(NotFound, match="no such domain"):
        await listing.run(b'{"orgId": 1, "tenantId": 1, "domainId": %d}' % branch.id, caller)


REQUESTS: dict[str, Callable[[Areas, Domain], Awaitable[object]]] = {
    "mode": lambda areas, domain: areas.domains.set_mode([domain.id], Mode.ENFORCE),
    "first factor": lambda areas, domain: areas.first_settings.set(domain, FirstFactor.NONE, {}),
    "provider": lambda areas, domain: areas.providers.set(domain.id, "totp", {}, 60),
    "key": lambda areas, domain: areas.keys.create(NewKey(domain.id, Agent.ENDPOINT)),
    "impact": lambda areas, domain: areas.preview.impact(domain.id),
    "survey": lambda areas, domain: areas.preview.survey(domain.id),
    "rule test": lambda areas, domain: areas.app.preview.rule_test.run(domain.id, Question("ann", at=areas.clock())),
    "disconnect": lambda areas, domain: areas.dynamic.disconnect_user(domain.id, "ann"),
}


@pytest.mark.parametrize("name", REQUESTS)
async def test_a_request_after_the_scope_check_is_refused(areas: Areas, branch: Domain, name: str) -> None:
    """A request is refused if the domain is removed after its scope was checked."""
    await areas.removal.remove(branch.id)
    with pytest.raises(NotFound):
        await REQUESTS[name](areas, branch)


class RemovingDomains(Domains):
    """Domains one of which is removed as soon as break-glass has ended."""

    def __init__(self, areas: Areas, removed: Domain) -> None:
        super().__init__(areas.configuration, DomainMetrics(CollectorRegistry()))
        self._areas, self._removed = areas, removed

    async def restore(self) -> list[int]:
        """Restore the modes of the domains, and remove one domain."""
        restored = await super().restore()
        await self._areas.removal.remove(self._removed.id)
        return restored


async def test_the_end_of_break_glass_leaves_out_a_removed_domain(areas: Areas, branch: Domain) -> None:
    """A domain that is removed after its mode was restored is not in the result."""
    await areas.domains.break_glass()
    restore = local_operations(RemovingDomains(areas, branch), areas.removal)["domain.restore"]
    (answer,) = entries([await restore({})()])
    assert [each["domainName"] for each in entries(answer["domains"])] == ["corp"]


async def test_a_disconnect_in_progress_is_completed(areas: Areas, branch: Domain) -> None:
    """A Disconnect-Request in progress is repeated until the NAS answers, and the audit trail has the result. The next
    request finds no session.
    """
    gone = trio.Event()
    async with running_nas(lambda request, number: ack(request) if gone.is_set() else []) as nas:
        client = await areas.client("127.0.0.1", coa_port=nas.port)
        found = await session(areas, await device(areas, client, "127.0.0.1", domain=branch.id), "s1", USER_NAME="ann")
        async with trio.open_nursery() as nursery:
            nursery.start_soon(areas.dynamic.disconnect, found)
            await until(lambda: bool(nas.requests))
            await areas.removal.remove(branch.id)
            gone.set()
        assert [(action, "ack" in changes) for action, _, changes in await trail(areas)] == [
            ("session.disconnect", True)
        ]
        with pytest.raises(NotFound):
            await areas.dynamic.disconnect(found)
