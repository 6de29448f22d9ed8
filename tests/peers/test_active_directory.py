"""Tests of binds to Active Directory (Samba): TLS, user names, states of accounts, and failover."""

import base64
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from sallyport.areas.login.login import Reason
from tests.areas.login.first.ldap.checkers import Asked, asking, host
from tests.peers.authority import Authority
from tests.peers.programs import needs
from tests.peers.samba import (
    ADMIN_PASSWORD,
    BASE,
    DC_ADDRESS,
    DC_NAME,
    PASSWORD,
    PEOPLE,
    REALM,
    THRESHOLD,
    Corp,
    in_network,
    look_up,
    needs_samba,
)

pytestmark = [pytest.mark.peer, pytest.mark.system, needs_samba]

R = Reason


@asynccontextmanager
async def bound(corp: Corp, url: str = f"ldaps://{DC_NAME}", **fields: object) -> AsyncIterator[Asked]:
    """Yield a checker in the network of the joined host. It uses the service account `reader`."""
    account = {"bindDN": f"reader@{REALM.lower()}", "bindPassword": PASSWORD, "timeoutSeconds": 20}
    with in_network(corp):
        given = {"servers": [url], "baseDN": BASE, "caCertificate": corp.authority.pem, **account, **fields}
        async with asking(host(look_up=look_up), **given) as asked:
            yield asked


@pytest.mark.parametrize(
    ("url", "start_tls"),
    [(f"ldaps://{DC_NAME}", False), (f"ldap://{DC_NAME}", True), (f"ldaps://{DC_NAME}:3269", False)],
)
async def test_encrypted(corp: Corp, url: str, start_tls: bool) -> None:
    """Over LDAPS, StartTLS and the global catalogue a right password is accepted and a wrong one is reported."""
    async with bound(corp, url, startTls=start_tls) as asked:
        assert await asked.bind("ann", PASSWORD) is R.NONE, asked.steps
        assert asked.found is not None and "staff" in asked.found.groups
        assert await asked.bind("ann", PASSWORD + "x") is R.WRONG_PASSWORD
        assert any("data 52e" in step for step in asked.steps), asked.steps


async def test_names_of_a_user(corp: Corp) -> None:
    """The account name is found in any case.

    Similar names are not found, and neither is the principal name, which is another name.
    """
    async with bound(corp) as asked:
        for name in ("ann", "ANN"):
            assert await asked.bind(name, PASSWORD) is R.NONE, name
        assert await asked.bind("jörg", PEOPLE["jörg"]) is R.NONE
        for name in ("*", "an*", " ann", "änn", "ann)(cn=*", "CORP\\ann"):
            assert await asked.bind(name, PASSWORD) is R.UNKNOWN_USER, name
        assert await asked.bind("ann@corp.example", PASSWORD) is R.UNKNOWN_USER
        assert any("log in as ann" in step for step in asked.steps), asked.steps
    async with bound(corp, userFilter="(userPrincipalName={user}@corp.example)") as asked:
        assert await asked.bind("ann", PASSWORD) is R.NONE, asked.steps


async def test_states_of_accounts(corp: Corp) -> None:
    """The state of the account is read from the codes in the text of a refusal."""
    async with bound(corp) as asked:
        states = {}
        for user in ("off", "gone", "must"):
            reason = await asked.bind(user, PASSWORD)
            states[user] = reason, any("data " in step for step in asked.steps)
    assert states == {
        "off": (R.ACCOUNT_DISABLED, True),
        "gone": (R.ACCOUNT_EXPIRED, True),
        "must": (R.PASSWORD_MUST_CHANGE, True),
    }


@pytest.mark.parametrize(
    ("user", "password", "changed", "expected"),
    [
        pytest.param("ann", PASSWORD, {"baseDN": "DC=other,DC=example"}, "no base DN DC=other", id="another domain"),
        pytest.param("ann", PASSWORD, {"baseDN": f"OU=Nope,{BASE}"}, "no base DN OU=Nope", id="unit that is not there"),
        pytest.param(
            "ann", PASSWORD, {"bindDN": None, "bindPassword": None}, "anonymous searches: set bindDN", id="anonymous"
        ),
        pytest.param("ann", PASSWORD, {"bindPassword": "wrong"}, "check bindDN and bindPassword", id="bind password"),
        pytest.param("ann", PASSWORD, {"bindDN": "nobody@corp.example"}, "check bindDN and bindPassword", id="bind DN"),
        pytest.param(
            "ann",
            PASSWORD,
            {"bindDN": "off@corp.example"},
            "the service account cannot log in: account disabled",
            id="bind DN disabled",
        ),
        pytest.param("nobody", PASSWORD, {}, f"the base DN {BASE} exists: check the user's name", id="unknown user"),
        pytest.param("jörg", "wrong", {}, "the user's password is not correct", id="user's password"),
    ],
)
async def test_each_fault_has_its_remedy(
    corp: Corp, user: str, password: str, changed: dict[str, object], expected: str
) -> None:
    """A wrong base DN, an anonymous search, a wrong service account, a wrong user and a wrong password each have their
    own remedy."""
    async with bound(corp, **changed) as asked:
        assert await asked.bind(user, password) is not R.NONE
        assert any(expected in step for step in asked.steps), asked.steps
        hints = (
            "exists: check the user's name", "the user's password is not correct", "no base DN", "check bindDN",
            "set bindDN", "the service account cannot log in: ",
        )  # fmt: skip
        assert len([hint for hint in hints if any(hint in step for step in asked.steps)]) == 1, asked.steps


async def test_a_locked_account(corp: Corp) -> None:
    """A locked account is reported as locked, even with the right password."""
    corp.administer(["user", "create", "shut", PASSWORD])
    async with bound(corp) as asked:
        for _ in range(THRESHOLD):
            assert await asked.bind("shut", "wrong") is R.WRONG_PASSWORD
        assert await asked.bind("shut", PASSWORD) is R.ACCOUNT_LOCKED
        assert not any("password is not correct" in step for step in asked.steps), asked.steps


@pytest.mark.parametrize(("scheme", "start_tls"), [("ldaps", False), ("ldap", True)])
async def test_an_untrusted_certificate(corp: Corp, scheme: str, start_tls: bool) -> None:
    """If the issuer is unknown, the step names the issuer.

    If the certificate is for another name, the step has both names.
    """
    for url, changed, expected in (
        (
            DC_NAME,
            {"caCertificate": Authority("another CA").pem},
            "its issuer is unknown: CN=corp; trust it by caCertificate",
        ),
        (DC_ADDRESS, {}, f"the certificate is for {DC_NAME}, and not for {DC_ADDRESS}; configure"),
    ):
        async with bound(corp, f"{scheme}://{url}", startTls=start_tls, **changed) as asked:
            assert await asked.bind("ann", PASSWORD) is R.FIRST_FACTOR_UNREACHABLE
            assert any(expected in step for step in asked.steps), asked.steps


@needs("ldapmodify")
async def test_restricted_hours(corp: Corp) -> None:
    """A user without a permitted hour is reported with that reason, not with a wrong password."""
    corp.dc.run("samba-tool", "user", "create", "night", PASSWORD)
    none = base64.b64encode(bytes(21)).decode()
    change = f"dn: CN=night,CN=Users,{BASE}\nchangetype: modify\nreplace: logonHours\nlogonHours:: {none}\n"
    corp.dc.run(
        "sh", "-c",
        f"printf '%s' '{change}' | LDAPTLS_REQCERT=never ldapmodify -x -H ldaps://127.0.0.1 "
        f"-D Administrator@{REALM.lower()} -w '{ADMIN_PASSWORD}'",
    )  # fmt: skip
    async with bound(corp) as asked:
        assert await asked.bind("night", PASSWORD) is R.LOGON_RESTRICTED, asked.steps


async def test_the_next_domain_controller(corp: Corp) -> None:
    """If one domain controller does not listen, the next one is asked."""
    async with bound(corp, servers=[f"ldaps://{DC_NAME}:1", f"ldaps://{DC_NAME}"]) as asked:
        assert await asked.bind("ann", PASSWORD) is R.NONE


async def test_many_logins_one_after_another(corp: Corp) -> None:
    """A directory that does not support the password policy control is asked for it only once, and can be used for all
    logins."""
    async with bound(corp) as asked:
        assert {await asked.bind("ann", PASSWORD) for _ in range(30)} == {R.NONE}


async def test_an_account_by_its_security_identifier(corp: Corp) -> None:
    """The SID of a certificate finds the account with its name, and an unknown SID finds none."""
    async with bound(corp) as asked:
        reason, _, known = await asked.ldap.identify("ann", asked.steps.append)
        assert reason is R.NONE and known is not None and known.sid.startswith("S-1-5-21-") and not known.is_machine
        reason, found, same = await asked.ldap.identify(known.sid, asked.steps.append, by_sid=True)
        assert (reason, same, "staff" in found.groups) == (R.NONE, known, True)
        for sid in (f"{known.sid}1", "S-1-5", "*", "S-1-5-21-x)(cn=*"):
            assert (await asked.ldap.identify(sid, asked.steps.append, by_sid=True))[0] is R.UNKNOWN_USER
