"""Logins of people of Entra ID with certificates of a domain's own authorities: strong names, and the scope."""

import pytest
import trio
from cryptography import x509

from sallyport.areas.authorities.authority import HolderKind
from sallyport.areas.login.first.cloud import identifier_of
from sallyport.areas.login.login import Reason
from sallyport.areas.mfa.provider import Outcome
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.radius.eap.certificate_names import NamedBy
from sallyport.radius.eap.model import Certificate
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.areas.directory.reading.graph_server import GraphServer
from tests.areas.directory.test_partial_objects import entra
from tests.areas.login.eap.conftest import Nas
from tests.areas.login.eap.test_authorities import Signers, log_in, signers
from tests.areas.login.eap.test_cloud import (
    ADA,
    DEVICE,
    DEVICE_ID,
    MAIL,
    company,
    graph,
    read,
    with_devices,
)
from tests.areas.login.listen.second import prompted
from tests.areas.login.second.scripted import Script
from tests.radius.eap.certificates import upn

__all__ = ["company", "graph", "signers"]
ENTRA, LOCAL = "S-1-12-1-11-22-33-44", "S-1-5-21-1-2-3-1104"
OUTSIDE, REFUSED = Reason.MAY_NOT_SPEAK.value, Reason.CERTIFICATE_REFUSED.value


def sid(value: str) -> x509.GeneralName:
    """Return the URI with which Intune writes a security identifier."""
    return x509.UniformResourceIdentifier(f"tag:microsoft.com,2022-09-14:sid:{value}")


@pytest.mark.parametrize("value", [ENTRA, LOCAL])
async def test_a_security_identifier_names_the_person(
    company: Nas, graph: GraphServer, signers: Signers, value: str
) -> None:
    """The certificate needs no other name. Entra ID and Active Directory give a person one identifier each."""
    await read(company, with_devices(graph))
    await signers.add("intune", names=(NamedBy.SID,), strong_only=True)
    assert await log_in(company, signers.issue("intune", "whoever", sid(value))) == (ACCESS_ACCEPT, "", "ada")
    code, reason, _ = await log_in(company, signers.issue("intune", "whoever", sid(f"{value}9")))
    assert (code, reason) == (ACCESS_REJECT, Reason.UNKNOWN_USER.value)


async def test_an_object_id_names_a_device(company: Nas, graph: GraphServer, signers: Signers) -> None:
    """The common name is the deviceId, as Intune writes it. An authority for people may not speak for a device."""
    graph.add_device(DEVICE, DEVICE_ID, "PC1")
    await read(company, with_devices(graph))
    await signers.add("intune", names=(NamedBy.OBJECT_ID,))
    await signers.add("people", names=(NamedBy.OBJECT_ID,), kinds=(HolderKind.PEOPLE,))
    code, _, user = await log_in(company, signers.issue("intune", DEVICE_ID))
    assert (code, user) == (ACCESS_ACCEPT, f"host/{DEVICE_ID}")
    assert (await log_in(company, signers.issue("people", DEVICE_ID)))[:2] == (ACCESS_REJECT, OUTSIDE)


async def test_the_scope_is_that_of_the_account(company: Nas, graph: GraphServer, signers: Signers) -> None:
    """A hostile authority names a person by the mail address. The groups, the realm and the security identifier of the
    account decide, and not what the certificate says."""
    await read(company, with_devices(graph))
    mail = x509.RFC822Name(MAIL)
    for name, fields, is_inside in (
        ("group", {"groups": ("vpn",)}, True),
        ("other group", {"groups": ("guests",)}, False),
        ("realm", {"realms": ("corp.example",)}, True),
        ("other realm", {"realms": ("guests.example",)}, False),
        ("prefix", {"sid_prefixes": ("S-1-5-21-1-2-3",)}, True),
        ("other prefix", {"sid_prefixes": ("S-1-5-21-9-9-9",)}, False),
    ):
        await signers.add(name, **fields)
        code, reason, _ = await log_in(company, signers.issue(name, "", mail))
        assert (code, reason) == ((ACCESS_ACCEPT, "") if is_inside else (ACCESS_REJECT, OUTSIDE)), name


async def test_a_name_that_was_given_to_another_person_is_refused(
    company: Nas, graph: GraphServer, signers: Signers
) -> None:
    """The certificate has the security identifier of the person who had the name before."""
    await read(company, with_devices(graph))
    await signers.add("intune")
    assert (await log_in(company, signers.issue("intune", "", upn(ADA), sid(ENTRA))))[0] == ACCESS_ACCEPT
    other = signers.issue("intune", "", upn(ADA), sid("S-1-5-21-1-2-3-1999"))
    assert (await log_in(company, other))[:2] == (ACCESS_REJECT, REFUSED)


@pytest.mark.parametrize(
    ("by", "identifier"),
    [
        (NamedBy.SID, "sid:s-1-12-1-11-22-33-44"), (NamedBy.SID, "sid:s-1-5-21-1-2-3-1104"),
        (NamedBy.OBJECT_ID, "id:8a7b"), (NamedBy.SERIAL, "serial:e-17"),
    ],
    ids=str,
)  # fmt: skip
async def test_every_kind_of_name_finds_the_person(
    company: Nas, graph: GraphServer, by: NamedBy, identifier: str
) -> None:
    """Both security identifiers find the person: the one of Entra ID, and the one of Active Directory."""
    graph.add_user("8a7b", ADA, employeeId="E-17", securityIdentifier="S-1-12-1-11-22-33-44",
                   onPremisesSecurityIdentifier="S-1-5-21-1-2-3-1104")  # fmt: skip
    await read(company, entra(graph))
    areas = company.wire.areas
    domain = areas.domains.table.by_id[areas.domain]
    question = Certificate(identifier.partition(":")[2].upper().encode(), "", by)
    assert identifier_of(question, domain) == identifier
    account = await areas.directory.principals.account(areas.domain, identifier, domain.realm_keys, since=0)
    assert (account.user, account.name) == ("ada", ADA)
    assert account.sids == ("S-1-12-1-11-22-33-44", "S-1-5-21-1-2-3-1104")


@pytest.mark.parametrize("is_disabled", [False, True], ids=["active", "disabled"])
async def test_an_object_id_has_the_user_names_of_an_active_account(
    company: Nas, graph: GraphServer, is_disabled: bool
) -> None:
    """A sign-in at Entra ID (claim oid) is one of this user. A disabled account and another id belong to no user."""
    graph.add_user("8a7b", ADA, accountEnabled=not is_disabled)
    await read(company, entra(graph))
    areas = company.wire.areas
    principals, realms = areas.directory.principals, areas.domains.table.by_id[areas.domain].realm_keys
    names = await principals.names_of(areas.domain, "8a7b", realms)
    assert names == (frozenset() if is_disabled else {"ada", ADA})
    assert await principals.names_of(areas.domain, "8a7c", realms) == frozenset()


@pytest.mark.parametrize("is_disabled", [False, True], ids=["active", "disabled meanwhile"])
async def test_a_person_is_asked_for_a_second_factor(
    company: Nas, graph: GraphServer, script: Script, is_disabled: bool
) -> None:
    """The state of the account counts again after the approval."""
    await read(company, with_devices(graph))
    areas = company.wire.areas
    rule = {"name": "asks", "action": "mfa_required", "users": ["ben"]}
    await areas.rules.add(areas.domain, RuleFields.model_validate(rule))

    async def approve() -> None:
        await prompted(script)
        if is_disabled:
            graph.change("users", {"id": "9c8d", "accountEnabled": False})
            await read(company, with_devices(graph))
        script.answer(0, Outcome.APPROVED)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(approve)
        shown = company.authority.certificate("", [upn("ben@corp.example")])
        code, reason, user = await log_in(company, shown)
    assert [each.user for each in script.started] == ["ben"]
    expected = (ACCESS_REJECT, Reason.ACCOUNT_DISABLED.value) if is_disabled else (ACCESS_ACCEPT, "")
    assert ((code, reason), user) == (expected, "ben")
