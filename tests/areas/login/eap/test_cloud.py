"""Logins by EAP-TLS of people who exist only in Entra ID or Okta. Both are served by simulated APIs."""

from collections.abc import AsyncIterator, Sequence
from dataclasses import replace

import pytest
from cryptography import x509

from sallyport.areas.directory.directory import DirectoryConfiguration, DirectoryKind
from sallyport.areas.directory.imports.job import Job
from sallyport.areas.domains.domain import Fallback, Mode
from sallyport.areas.domains.repo import Update
from sallyport.areas.login.login import Reason
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.base.clock import SECOND
from sallyport.radius.eap import packet as eap
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.areas.directory.reading.graph_server import GraphServer
from tests.areas.directory.reading.okta_server import TOKEN, OktaServer
from tests.areas.directory.test_partial_objects import entra
from tests.areas.directory.test_revocations import revoked
from tests.areas.directory.world import at_work, imported, over, person
from tests.areas.login.eap.conftest import Ended, Nas
from tests.areas.login.eap.test_directory import Listed, configure
from tests.areas.mfa.web import serving
from tests.radius.eap.certificates import upn
from tests.radius.eap.supplicant import TlsSide, silent

ADA, MAIL = "ada@corp.example", "ada.lee@corp.example"
EARLY, LATE = "2026-01-01T08:00:00.000Z", "2026-01-02T08:00:00.000Z"
NO_PROVIDER = Reason.NO_PROVIDER.value
HOUR = 3600


@pytest.fixture
async def company(nas: Nas) -> Nas:
    """Return a NAS whose domain has the realm corp.example and ends the sessions of people who lose their access. A
    rule names the group vpn."""
    areas = nas.wire.areas
    await areas.domains.update(
        areas.domain, Update(add_realms=["corp.example"], settings={"disconnect_on_revoke": True})
    )
    rule = RuleFields.model_validate({"name": "vpn", "action": "allow", "groups": ["vpn"]})
    await areas.rules.add(areas.domain, rule)
    return nas


@pytest.fixture
async def graph() -> AsyncIterator[GraphServer]:
    """A tenant of Entra ID. ada is in the group vpn and ben is not; cid is disabled."""
    server = GraphServer()
    async with serving(server) as server.web:
        server.add_user(
            "8a7b", ADA, mail=MAIL, securityIdentifier="S-1-12-1-11-22-33-44",
            onPremisesSecurityIdentifier="S-1-5-21-1-2-3-1104",
        )  # fmt: skip
        server.add_user("9c8d", "ben@corp.example", securityIdentifier="S-1-12-1-55-66-77-88")
        server.add_user("7e6f", "cid@corp.example", accountEnabled=False)
        server.add_group("g1", "vpn", "8a7b", "7e6f")
        yield server


@pytest.fixture
async def okta() -> AsyncIterator[OktaServer]:
    """An organization of Okta with the active user ada."""
    server = OktaServer()
    async with serving(server) as server.web:
        server.add_user("00u1", ADA, EARLY, email=MAIL)
        server.add_group("00g1", "vpn", EARLY, "00u1")
        yield server


def okta_directory(server: OktaServer) -> DirectoryConfiguration:
    """Return the configuration of the organization."""
    return DirectoryConfiguration("okta", DirectoryKind.OKTA, app_url=server.url, secret=TOKEN.encode())


async def read(nas: Nas, configuration: DirectoryConfiguration, *, full: bool = False, fails: bool = False) -> Job:
    """Read a directory once."""
    areas = nas.wire.areas
    await areas.directory.directories.save([(areas.domain, configuration)])
    async with at_work(areas):
        job = await over(areas, await areas.directory.directories.sync(areas.domain, configuration.name, full=full))
    assert (job.state == "FAILED") is fails, job.message
    return job


async def log_in(nas: Nas, *names: x509.GeneralName, common_name: str = "") -> Ended:
    """Log in with a certificate."""
    shown = nas.authority.certificate(common_name, names)
    return await nas.log_in(TlsSide(eap.TLS, silent, shows=shown), b"anonymous@corp.example")


def named(*, mail: str = "", principal: str = "") -> Sequence[x509.GeneralName]:
    """Return the alternative names of a certificate."""
    return [*([upn(principal)] if principal else []), *([x509.RFC822Name(mail)] if mail else [])]


async def last(nas: Nas) -> tuple[str, str]:
    """Return the reason and the user of the last event."""
    reason, user, _ = (await nas.outcomes())[-1]
    return reason, user


@pytest.mark.parametrize("names", [named(principal=ADA), named(mail=MAIL)], ids=["upn", "mail"])
async def test_an_active_person_logs_in_with_the_groups(
    company: Nas, graph: GraphServer, names: Sequence[x509.GeneralName]
) -> None:
    """The domain has no local users. The rule by group applies, and the event has the login name of the person."""
    await read(company, entra(graph))
    assert (await log_in(company, *names)).code == ACCESS_ACCEPT
    assert await last(company) == ("", "ada")
    assert (await log_in(company, *named(principal="ben@corp.example"))).code == ACCESS_ACCEPT
    assert await last(company) == (NO_PROVIDER, "ben")  # no rule applies


async def test_the_common_name_may_be_the_user_principal_name(company: Nas, graph: GraphServer) -> None:
    await read(company, entra(graph))
    assert (await log_in(company, common_name=ADA)).code == ACCESS_ACCEPT


async def test_a_mail_address_that_is_the_login_name_of_another_person_is_not_used(
    company: Nas, graph: GraphServer
) -> None:
    """A mail address names the person that has this address, not the person whose login name looks like it."""
    await read(company, entra(graph))
    assert (await log_in(company, *named(mail=ADA))).code == ACCESS_REJECT
    assert await last(company) == (Reason.UNKNOWN_USER.value, "ada")


async def test_a_disabled_person_is_out_within_one_synchronisation(company: Nas, graph: GraphServer) -> None:
    """A delta with the status alone refuses the next login, and ends the sessions under all names."""
    await read(company, entra(graph))
    assert (await log_in(company, *named(mail=MAIL))).code == ACCESS_ACCEPT
    graph.change("users", {"id": "8a7b", "accountEnabled": False})
    await read(company, entra(graph))
    assert (await log_in(company, *named(mail=MAIL))).code == ACCESS_REJECT
    assert await last(company) == (Reason.ACCOUNT_DISABLED.value, "ada")
    assert {ADA, MAIL} <= {*await revoked(company.wire.areas)}


async def test_a_deleted_person_is_out_within_one_synchronisation(company: Nas, graph: GraphServer) -> None:
    await read(company, entra(graph))
    assert (await log_in(company, *named(principal=ADA))).code == ACCESS_ACCEPT
    graph.remove("users", "8a7b")
    await read(company, entra(graph))
    assert (await log_in(company, *named(principal=ADA))).code == ACCESS_REJECT
    assert await last(company) == (Reason.UNKNOWN_USER.value, "ada")
    assert {ADA, MAIL} <= {*await revoked(company.wire.areas)}


@pytest.mark.parametrize(
    "change",
    [{"displayName": "Cid"}, {"accountEnabled": None}, {"accountEnabled": "true"}, {"accountEnabled": 1}],
    ids=str,
)
async def test_a_partial_answer_activates_nobody(company: Nas, graph: GraphServer, change: dict[str, object]) -> None:
    await read(company, entra(graph))
    graph.change("users", {"id": "7e6f", **change})
    await read(company, entra(graph))
    assert (await log_in(company, *named(principal="cid@corp.example"))).code == ACCESS_REJECT
    assert await last(company) == (Reason.ACCOUNT_DISABLED.value, "cid")


async def test_a_reading_without_its_last_page_changes_nothing(company: Nas, graph: GraphServer) -> None:
    """A reading that fails midway neither activates a person, nor makes the data younger."""
    await read(company, entra(graph))
    areas = company.wire.areas
    graph.change("users", {"id": "7e6f", "accountEnabled": True})
    graph.change("groups", {"id": "g1", "displayName": "vpn"})
    graph.lost = "/v1.0/groups/g1/members"
    areas.clock.pass_by(25 * HOUR)
    await read(company, entra(graph), fails=True)
    assert (await log_in(company, *named(principal="cid@corp.example"))).code == ACCESS_REJECT
    assert await last(company) == (Reason.ACCOUNT_DISABLED.value, "cid")
    assert (await log_in(company, *named(principal=ADA))).code == ACCESS_REJECT
    assert await last(company) == (Reason.DIRECTORY_STALE.value, "ada")


async def test_old_data_refuse_the_login_until_the_directory_is_read(company: Nas, graph: GraphServer) -> None:
    await read(company, entra(graph))
    areas = company.wire.areas
    for hours, code in ((23, ACCESS_ACCEPT), (2, ACCESS_REJECT)):
        areas.clock.pass_by(hours * HOUR)
        assert (await log_in(company, *named(principal=ADA))).code == code
    assert await last(company) == (Reason.DIRECTORY_STALE.value, "ada")
    await read(company, entra(graph))
    assert (await log_in(company, *named(principal=ADA))).code == ACCESS_ACCEPT


async def test_a_reading_in_the_future_says_nothing_about_the_age(company: Nas, graph: GraphServer) -> None:
    """The clock of the machine was 40 days ahead when the directory was read."""
    areas = company.wire.areas
    areas.clock.pass_by(40 * 24 * HOUR)
    await read(company, entra(graph))
    areas.clock.now -= 40 * 24 * HOUR * SECOND
    assert (await log_in(company, *named(principal=ADA))).code == ACCESS_REJECT
    assert await last(company) == (Reason.DIRECTORY_STALE.value, "ada")
    await areas.domains.update(areas.domain, Update(settings={"stale_directory": Fallback.ALLOW}))
    assert (await log_in(company, *named(principal=ADA))).code == ACCESS_ACCEPT
    rows = await areas.store.read(lambda tx: tx.rows("select detail from events order by id desc limit 1"))
    assert "in the future" in str(rows[0][0])


async def test_a_domain_can_accept_old_data_with_a_note(company: Nas, graph: GraphServer) -> None:
    """A disabled person is refused by old data as well."""
    areas = company.wire.areas
    await areas.domains.update(
        areas.domain, Update(settings={"directory_max_age_h": 1, "stale_directory": Fallback.ALLOW})
    )
    await read(company, entra(graph))
    areas.clock.pass_by(3 * HOUR)
    assert (await log_in(company, *named(principal=ADA))).code == ACCESS_ACCEPT
    rows = await areas.store.read(lambda tx: tx.rows("select detail from events order by id desc limit 1"))
    assert rows == [("the data of the directory are 3 hours old",)]
    assert (await log_in(company, *named(principal="cid@corp.example"))).code == ACCESS_REJECT


async def test_a_person_of_okta_logs_in_until_deactivated(company: Nas, okta: OktaServer) -> None:
    await read(company, okta_directory(okta))
    assert (await log_in(company, *named(mail=MAIL))).code == ACCESS_ACCEPT
    assert await last(company) == ("", "ada")
    okta.add_user("00u1", ADA, LATE, "SUSPENDED", email=MAIL)
    await read(company, okta_directory(okta))
    assert (await log_in(company, *named(mail=MAIL))).code == ACCESS_REJECT
    assert await last(company) == (Reason.ACCOUNT_DISABLED.value, "ada")
    assert {ADA, MAIL} <= {*await revoked(company.wire.areas)}


async def test_a_status_that_is_not_known_admits_nobody(company: Nas, okta: OktaServer) -> None:
    """Okta states DELETION_PENDING, which this service does not know. A full reading and a reading of changes agree."""
    await read(company, okta_directory(okta))
    okta.add_user("00u1", ADA, LATE, "DELETION_PENDING", email=MAIL)
    for full in (False, True):
        await read(company, okta_directory(okta), full=full)
        assert (await log_in(company, *named(mail=MAIL))).code == ACCESS_REJECT
        assert await last(company) == (Reason.ACCOUNT_DISABLED.value, "ada")


async def test_a_listed_user_that_was_deactivated_without_an_update_is_out(company: Nas, okta: OktaServer) -> None:
    """Some organizations list deactivated users, and lastUpdated may be the same as before."""
    okta.add_user("00u2", "ben@corp.example", LATE)
    await read(company, okta_directory(okta))
    assert (await log_in(company, *named(mail=MAIL))).code == ACCESS_ACCEPT
    okta.lists_all = True
    okta.add_user("00u1", ADA, EARLY, "DEPROVISIONED", email=MAIL)
    await read(company, okta_directory(okta))
    assert (await log_in(company, *named(mail=MAIL))).code == ACCESS_REJECT
    assert {ADA, MAIL} <= {*await revoked(company.wire.areas)}


@pytest.mark.parametrize("status", ["DEPROVISIONED", ""], ids=["deactivated", "deleted"])
async def test_a_person_whom_okta_lists_no_longer_is_out(company: Nas, okta: OktaServer, status: str) -> None:
    """A user may be deactivated and deleted between two readings."""
    okta.add_user("00u2", "ben@corp.example", EARLY)
    await read(company, okta_directory(okta))
    assert (await log_in(company, *named(mail=MAIL))).code == ACCESS_ACCEPT
    okta.users = [user for user in okta.users if user["id"] != "00u1"]
    if status:
        okta.add_user("00u1", ADA, LATE, status, email=MAIL)
    await read(company, okta_directory(okta))
    assert (await log_in(company, *named(mail=MAIL))).code == ACCESS_REJECT
    assert await last(company) == (Reason.UNKNOWN_USER.value, "ada.lee")
    assert {ADA, MAIL} <= {*await revoked(company.wire.areas)}


async def test_a_status_that_okta_changes_without_an_update_counts(company: Nas, okta: OktaServer) -> None:
    """The status is read from the list, so it does not depend on lastUpdated. A status that is missing is kept."""
    await read(company, okta_directory(okta))
    okta.add_user("00u1", ADA, "2025-12-31T08:00:00.000Z", "SUSPENDED", email=MAIL)
    for _ in range(2):
        await read(company, okta_directory(okta))
        assert (await log_in(company, *named(mail=MAIL))).code == ACCESS_REJECT
        assert await last(company) == (Reason.ACCOUNT_DISABLED.value, "ada")
        okta.users[0]["status"] = ""


async def test_a_name_in_two_directories_is_refused(company: Nas, graph: GraphServer, okta: OktaServer) -> None:
    """It is not clear whose groups and whose status would apply."""
    await read(company, entra(graph))
    await read(company, okta_directory(okta))
    assert (await log_in(company, *named(principal=ADA))).code == ACCESS_REJECT
    assert (await last(company))[0] == Reason.ACCOUNT_UNCLEAR.value


async def test_a_domain_with_ldap_knows_people_of_the_cloud(company: Nas, graph: GraphServer) -> None:
    """The LDAP directory is asked first. If it has disabled the user, the cloud is not asked."""
    await configure(company)
    await read(company, entra(graph))
    assert (await log_in(company, *named(principal="ben@corp.example"))).code == ACCESS_ACCEPT
    Listed.disabled.add("ben")
    try:
        assert (await log_in(company, *named(principal="ben@corp.example"))).code == ACCESS_REJECT
    finally:
        Listed.disabled.clear()
    assert await last(company) == (Reason.ACCOUNT_DISABLED.value, "ben")


async def test_a_local_user_comes_first(company: Nas, graph: GraphServer) -> None:
    """But if the principal name is that of a disabled account, the certificate was issued to this account."""
    await company.wire.areas.add_user(company.wire.areas.domain, "cid", b"secret")
    await company.wire.areas.add_user(company.wire.areas.domain, "ben", b"secret")
    await read(company, entra(graph))
    assert (await log_in(company, *named(principal="ben@corp.example"))).code == ACCESS_ACCEPT
    assert (await log_in(company, *named(principal="cid@corp.example"))).code == ACCESS_REJECT
    assert await last(company) == (Reason.ACCOUNT_DISABLED.value, "cid")


async def test_people_of_other_directories_do_not_log_in_by_certificate(company: Nas) -> None:
    """A person from an LDIF file has no state that is read regularly."""
    await imported(company.wire.areas, person("dan", "userPrincipalName: dan@corp.example"))
    assert (await log_in(company, *named(principal="dan@corp.example"))).code == ACCESS_REJECT


@pytest.mark.parametrize("rule_name", ["alee", "ada"])
async def test_a_rule_by_another_name_is_about_the_same_person(
    company: Nas, graph: GraphServer, rule_name: str
) -> None:
    """Entra ID knows the person by a name of Active Directory too."""
    graph.add_user("8a7b", ADA, mail=MAIL, onPremisesSamAccountName="alee")
    await read(company, entra(graph))
    areas = company.wire.areas
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    rule = {"name": "no ada", "action": "block", "users": [rule_name], "priority": 1}
    await areas.rules.add(areas.domain, RuleFields.model_validate(rule))
    assert (await log_in(company, *named(mail=MAIL))).code == ACCESS_REJECT
    assert await last(company) == (Reason.BLOCKED.value, "ada")


# --- devices ----------------------------------------------------------------------------------------------------------


DEVICE, DEVICE_ID = "5b1e8f2a-0c7d-4e5f-9a3b-1c2d3e4f5a6b", "3f2504e0-4f89-41d3-9a0c-0305e82c3301"


def with_devices(server: GraphServer) -> DirectoryConfiguration:
    """Return the configuration of the tenant with its devices."""
    before = entra(server)
    return replace(before, settings={**(before.settings or {}), "readDevices": "true"})


async def demand(nas: Nas, *facts: str) -> None:
    """Let a rule admit computers whose devices have some facts, and block all other computers."""
    areas = nas.wire.areas
    rules = [
        {"name": "fit", "action": "allow", "certificates": [f"device={fact}" for fact in facts]},
        {"name": "others", "action": "block", "kinds": ["machine"]},
    ]
    for rule in rules:
        await areas.rules.add(areas.domain, RuleFields.model_validate(rule))
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)


@pytest.mark.parametrize(
    ("stated", "reason"),
    [
        ({"isCompliant": True, "isManaged": True}, ""),
        ({"isCompliant": False, "isManaged": True}, Reason.BLOCKED.value),
        ({"isManaged": True}, Reason.BLOCKED.value),
        ({"isCompliant": None}, Reason.BLOCKED.value),
        ({"isCompliant": "true"}, Reason.BLOCKED.value),
    ],
    ids=["compliant", "noncompliant", "not stated", "null", "text"],
)
async def test_a_rule_admits_only_compliant_devices(
    company: Nas, graph: GraphServer, stated: dict[str, object], reason: str
) -> None:
    """The host name in the certificate names the device. A fact that Entra ID does not state admits no device."""
    graph.add_device(DEVICE, DEVICE_ID, "PC1", **stated)
    await read(company, with_devices(graph))
    await demand(company, "compliant")
    await log_in(company, x509.DNSName("pc1.corp.example"))
    assert await last(company) == (reason, f"host/{DEVICE_ID}")


async def test_a_device_that_becomes_noncompliant_is_out_with_the_next_delta(company: Nas, graph: GraphServer) -> None:
    """A delta without the other values keeps them."""
    graph.add_device(DEVICE, DEVICE_ID, "PC1", isCompliant=True, isManaged=True)
    await read(company, with_devices(graph))
    await demand(company, "compliant")
    assert (await log_in(company, x509.DNSName("pc1.corp.example"))).code == ACCESS_ACCEPT
    graph.change("devices", {"id": DEVICE, "isCompliant": False})
    await read(company, with_devices(graph))
    assert (await log_in(company, x509.DNSName("pc1.corp.example"))).code == ACCESS_REJECT
    found = await company.wire.areas.directory.principals.find(company.wire.areas.domain, f"host/{DEVICE_ID}", ())
    assert found.cloud is not None and found.cloud.device == ("noncompliant", "managed", "joined")


@pytest.mark.parametrize("change", [{"accountEnabled": False}, {"@removed": {"reason": "deleted"}}], ids=str)
async def test_a_disabled_or_deleted_device_is_out(company: Nas, graph: GraphServer, change: dict[str, object]) -> None:
    graph.add_device(DEVICE, DEVICE_ID, "PC1")
    await read(company, with_devices(graph))
    assert (await log_in(company, x509.DNSName("pc1.corp.example"))).code == ACCESS_ACCEPT
    graph.change("devices", {"id": DEVICE, **change})
    await read(company, with_devices(graph))
    assert (await log_in(company, x509.DNSName("pc1.corp.example"))).code == ACCESS_REJECT
    assert f"host/{DEVICE_ID}" in await revoked(company.wire.areas)


async def test_a_host_name_is_used_only_if_one_device_has_it(company: Nas, graph: GraphServer) -> None:
    """Display names are not unique in Entra ID. A host name with a realm of another domain names no device."""
    graph.add_device(DEVICE, DEVICE_ID, "PC1")
    await read(company, with_devices(graph))
    assert (await log_in(company, x509.DNSName("pc1.evil.example"))).code == ACCESS_REJECT
    second = "00000000-0000-4000-8000-000000000002"
    graph.add_device("d2", second, "pc1")
    await read(company, with_devices(graph))
    assert (await log_in(company, x509.DNSName("pc1.corp.example"))).code == ACCESS_REJECT
    assert (await last(company))[0] == Reason.ACCOUNT_UNCLEAR.value
    rows = await company.wire.areas.store.read(lambda tx: tx.rows("select detail from events order by id desc limit 1"))
    assert {*str(rows[0][0]).removeprefix("accounts: ").split(", ")} == {f"host/{DEVICE_ID}", f"host/{second}"}
    graph.change("devices", {"id": DEVICE, "accountEnabled": False})  # enrolled again as another device
    await read(company, with_devices(graph))
    assert (await log_in(company, x509.DNSName("pc1.corp.example"))).code == ACCESS_ACCEPT
    assert (await last(company))[1] == f"host/{second}"


async def test_a_device_has_the_groups_of_its_object_and_two_identifiers(company: Nas, graph: GraphServer) -> None:
    """The object id and the deviceId find the device. A group of Entra ID may have devices as members."""
    graph.add_device(DEVICE, DEVICE_ID, "PC1")
    graph.add_group("g2", "laptops", DEVICE)
    await read(company, with_devices(graph))
    principals, domain = company.wire.areas.directory.principals, company.wire.areas.domain
    for identifier in (f"id:{DEVICE}", f"id:{DEVICE_ID}"):
        assert (await principals.account(domain, identifier, (), since=0)).user == f"host/{DEVICE_ID}"
    assert (await principals.find(domain, f"host/{DEVICE_ID}", ())).groups == {"laptops"}


async def test_people_are_read_if_devices_may_not_be_read(company: Nas, graph: GraphServer) -> None:
    """The job has a problem, and keeps the known devices. With the permission, the devices are read again."""
    graph.add_device(DEVICE, DEVICE_ID, "PC1")
    await read(company, with_devices(graph))
    graph.forbidden = "/v1.0/devices/delta"
    for full in (True, False):
        graph.change("users", {"id": "9c8d", "accountEnabled": full})
        job = await read(company, with_devices(graph), full=full)
        assert (job.state, job.failed, job.removed) == ("DONE", 1, 0)
        assert "Device.Read.All" in job.errors
        assert (await log_in(company, x509.DNSName("pc1.corp.example"))).code == ACCESS_ACCEPT
    assert (await log_in(company, *named(principal="ben@corp.example"))).code == ACCESS_REJECT
    graph.forbidden = ""
    graph.devices[DEVICE]["accountEnabled"] = False
    await read(company, with_devices(graph))
    assert (await log_in(company, x509.DNSName("pc1.corp.example"))).code == ACCESS_REJECT


async def test_many_missing_devices_need_a_confirmation(company: Nas, graph: GraphServer) -> None:
    """The devices are counted apart from the people, of whom none is missing."""
    for number in range(20):
        graph.add_device(f"d{number}", f"00000000-0000-4000-8000-0000000000{number:02}", f"X{number}")
        graph.add_user(f"u{number}", f"user{number}@corp.example")
    await read(company, with_devices(graph))
    for number in range(20):
        graph.remove("devices", f"d{number}")
    job = await read(company, with_devices(graph), full=True, fails=True)
    assert "20 of the 20 devices" in job.message and "the rights of the application" in job.message


async def test_devices_are_removed_if_they_are_no_longer_read(company: Nas, graph: GraphServer) -> None:
    graph.add_device(DEVICE, DEVICE_ID, "PC1")
    await read(company, with_devices(graph))
    for number in range(25):  # more than half of all entries
        graph.add_device(f"d{number}", f"00000000-0000-4000-8000-0000000000{number:02}", f"X{number}")
    await read(company, with_devices(graph))
    without = replace(entra(graph), settings={**(entra(graph).settings or {}), "readDevices": ""})
    job = await read(company, without)
    assert job.removed == 26
    assert (await log_in(company, x509.DNSName("pc1.corp.example"))).code == ACCESS_REJECT
