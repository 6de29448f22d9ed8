"""Sessions of people and devices that exist only in Entra ID: they are decided again, and end with their account."""

import pytest
from cryptography import x509

from sallyport.areas.domains.domain import Mode
from sallyport.areas.login.login import Reason
from sallyport.areas.sessions.report import Status
from sallyport.base.clock import SECOND
from sallyport.radius.eap.certificate_names import NamedBy
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.areas.directory.reading.graph_server import GraphServer
from tests.areas.directory.test_partial_objects import entra
from tests.areas.directory.test_revocations import revoked
from tests.areas.login.eap.conftest import Nas
from tests.areas.login.eap.test_authorities import Signers, signers
from tests.areas.login.eap.test_authorities import log_in as log_in_at
from tests.areas.login.eap.test_cloud import (
    ADA,
    DEVICE,
    DEVICE_ID,
    MAIL,
    company,
    demand,
    graph,
    log_in,
    named,
    read,
    with_devices,
)
from tests.areas.login.eap.test_directory import configure
from tests.areas.sessions.records import octets
from tests.packets import accounting

__all__ = ["company", "graph", "signers"]
GONE = ("disconnect", Reason.UNKNOWN_USER.value)


async def begin(nas: Nas, user: str) -> int:
    """Let a session of a user begin, and return its id."""
    areas = nas.wire.areas
    areas.clock.pass_by(1)
    body = octets(Status.START, user.encode(), USER_NAME=user, EVENT_TIMESTAMP=areas.clock() // SECOND)
    await nas.wire.ask(accounting(body), acct=True)
    return await areas.store.read(lambda tx: tx.value(int, "select max(id) from sessions")) or 0


async def preview(nas: Nas) -> dict[int, tuple[str, str]]:
    """Decide the sessions again. Return the effect and the reason of each one that would change."""
    found = await nas.wire.areas.app.reauthorization.service.preview(nas.wire.areas.domain)
    return {each.session_id: (each.effect, each.reason) for each in found.changes}


async def test_a_person_of_the_cloud_keeps_the_session(company: Nas, graph: GraphServer) -> None:
    """In a domain with endpoint users, the person exists too while the account is active."""
    await read(company, with_devices(graph))
    areas = company.wire.areas
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    assert (await log_in(company, *named(principal=ADA))).code == ACCESS_ACCEPT
    ada = await begin(company, "ada")
    assert await preview(company) == {}
    graph.change("users", {"id": "8a7b", "accountEnabled": False})
    await read(company, with_devices(graph))
    assert await preview(company) == {ada: ("disconnect", Reason.ACCOUNT_DISABLED.value)}
    graph.remove("users", "8a7b")
    await read(company, with_devices(graph))
    assert await preview(company) == {ada: GONE}


async def test_the_present_facts_of_a_device_count(company: Nas, graph: GraphServer) -> None:
    """The event of the login says that the device was compliant. The sessions of the device end, too."""
    graph.add_device(DEVICE, DEVICE_ID, "PC1", isCompliant=True)
    await read(company, with_devices(graph))
    await demand(company, "compliant")
    assert (await log_in(company, x509.DNSName("pc1.corp.example"))).code == ACCESS_ACCEPT
    device = await begin(company, f"host/{DEVICE_ID}")
    assert await preview(company) == {}
    graph.change("devices", {"id": DEVICE, "operatingSystem": "Linux"})
    await read(company, with_devices(graph))
    assert await revoked(company.wire.areas) == []
    graph.change("devices", {"id": DEVICE, "isCompliant": False})
    await read(company, with_devices(graph))
    assert await preview(company) == {device: ("disconnect", Reason.BLOCKED.value)}
    assert f"host/{DEVICE_ID}" in await revoked(company.wire.areas)


@pytest.mark.parametrize("has_ldap", [False, True], ids=["local", "LDAP"])
async def test_an_identifier_is_no_login_name(
    company: Nas, graph: GraphServer, signers: Signers, has_ldap: bool
) -> None:
    """A user whose login name looks like a serial number or an object id is another user."""
    areas, uuid = company.wire.areas, "00000000-0000-4000-8000-000000000009"
    await read(company, entra(graph))
    await areas.add_user(areas.domain, uuid, b"secret")
    await areas.add_user(areas.domain, "s-1-5-21-9-9-9-9", b"secret")
    if has_ldap:
        await configure(company)
    await signers.add("mdm", names=(NamedBy.SID, NamedBy.OBJECT_ID))
    alternatives = ("urn:uuid:" + uuid, "tag:microsoft.com,2022-09-14:sid:S-1-5-21-9-9-9-9")
    for value in alternatives[: 1 if has_ldap else 2]:
        shows = signers.issue("mdm", "", x509.UniformResourceIdentifier(value))
        code, reason, _ = await log_in_at(company, shows)
        assert (code, reason) == (ACCESS_REJECT, Reason.UNKNOWN_USER.value), value


async def test_a_device_that_is_named_like_a_person_ends_no_session_of_the_person(
    company: Nas, graph: GraphServer
) -> None:
    """Any user may rename a device. The sessions of the device itself have its host name in the domain's realms."""
    areas = company.wire.areas
    graph.add_device(DEVICE, DEVICE_ID, "ann")
    graph.add_device("d2", "00000000-0000-4000-8000-000000000002", "ada")
    await read(company, with_devices(graph))
    for device in (DEVICE, "d2"):
        graph.change("devices", {"id": device, "accountEnabled": False})
    await read(company, with_devices(graph))
    ended = {*await revoked(areas)}
    assert {f"host/{DEVICE_ID}", "host/ann.corp.example", "ann.corp.example"} <= ended
    assert not ended & {"ann", "ada"}


async def test_a_mail_address_that_is_the_name_of_another_person_ends_no_session_of_that_person(
    company: Nas, graph: GraphServer
) -> None:
    areas = company.wire.areas
    graph.add_user("f1", "mallory@corp.example", mail="ann@corp.example")
    graph.add_user("f2", "mallet@corp.example", mail=ADA)
    graph.add_user("f3", "eve@corp.example", mail="eve.long@corp.example")
    await read(company, entra(graph))
    for person in ("f1", "f2", "f3"):
        graph.change("users", {"id": person, "accountEnabled": False})
    await read(company, entra(graph))
    ended = {*await revoked(areas)}
    assert {"mallory@corp.example", "mallet@corp.example", "eve.long@corp.example"} <= ended
    assert not ended & {"ann", "ann@corp.example", "ada", ADA, MAIL}
