"""Tests of MS-CHAP logins with the first factor `ldap`: the directory finds the account, and winbind checks the
response."""

from dataclasses import replace
from typing import Any

import pytest

from sallyport.areas.domains.domain import FirstFactor
from sallyport.areas.login.login import Reason
from sallyport.base.errors import Invalid
from sallyport.radius.mschap import MsChap1
from tests.areas import Areas, areas, clock
from tests.areas.directory.reading.fake_directory import Manner, Person, directory
from tests.areas.login.first.ldap.checkers import asking, host
from tests.areas.login.first.winbind.conftest import KEY, Program, Running, question

__all__ = ["areas", "clock"]

ATTEMPT = MsChap1(1, question().challenge, question().response)


async def asked_about(running: Running, people: list[Person], user: str, **fields: Any) -> tuple[Any, frozenset[str]]:
    """Return the key or the reason, and the groups.

    fields: the fields of the first factor. manner: how the directory behaves.
    """
    manner = fields.pop("manner", Manner.ANSWERS)
    async with running() as helpers, directory(*people) as server:
        server.manner = manner
        options = {"servers": [server.url], "winbind": True, "timeoutSeconds": 3, **fields}
        async with asking(host(ntlm_auth=helpers), **options) as asked:
            key, found = await asked.ldap.ask_winbind(user, ATTEMPT, b"", asked.steps.append)
            assert server.binds in ([], [""]), "nobody is bound with a password"
            return key, found.groups


async def test_the_right_response_has_a_key_and_groups(running: Running) -> None:
    """A right response has the key from winbind and the groups from the directory."""
    ann = Person("ann", attributes={"memberOf": ["CN=staff,DC=example,DC=com"]})
    assert await asked_about(running, [ann], "ann") == (KEY, {"staff"})


async def test_the_wrong_response_has_a_reason(running: Running) -> None:
    """A wrong response has a reason and no groups."""
    bob = Person("bob", attributes={"memberOf": ["CN=staff,DC=example,DC=com"]})
    assert await asked_about(running, [bob], "bob") == (Reason.WRONG_PASSWORD, frozenset())


async def test_winbind_is_asked_about_the_account_that_was_found(running: Running, program: Program) -> None:
    """winbind is asked about the account that was found, with the name of that account.

    Therefore no user gets the groups of another user.
    """
    ann = Person("ann", attributes={"mail": ["ann@example.com"], "sAMAccountName": ["A.Smith"]})
    key, _ = await asked_about(
        running, [ann], "ann", userFilter="(mail={user}@example.com)", winbindDomain="CORP.example"
    )
    assert key is Reason.WRONG_PASSWORD
    assert len(program.asked) == 1
    assert "'Username': 'A.Smith'" in program.asked[0]
    assert "'NT-Domain': 'CORP.example'" in program.asked[0]


@pytest.mark.parametrize(
    ("user", "fields", "reason"),
    [
        ("bob", {}, Reason.UNKNOWN_USER),
        ("both", {}, Reason.UNKNOWN_USER),
        ("nameless", {"userFilter": "(uid={user})"}, Reason.UNKNOWN_USER),
        ("ann", {"manner": Manner.HANGS_UP}, Reason.FIRST_FACTOR_UNREACHABLE),
        ("ann", {"manner": Manner.SILENT}, Reason.FIRST_FACTOR_UNREACHABLE),
        ("ann", {"winbind": False}, Reason.METHOD_UNFIT),
    ],
)
async def test_without_one_account_winbind_is_not_asked(
    running: Running, program: Program, user: str, fields: dict[str, Any], reason: Reason
) -> None:
    """winbind is not asked if the directory finds no entry, more than one entry or an entry without an account name, or
    if the directory does not answer."""
    people = [
        Person("ann"),
        Person("both"),
        Person("both", dn="CN=other,DC=example,DC=com"),
        Person("nameless", attributes={"sAMAccountName": [], "uid": ["nameless"]}),
    ]
    assert await asked_about(running, people, user, **fields) == (reason, frozenset())
    assert program.started == []


async def test_an_organization_that_may_not_use_winbind(areas: Areas) -> None:
    """If an organization may not use winbind, it cannot set it, and the error names the field.

    If winbind was set before, MS-CHAP is not checked.
    """
    fields = {"servers": ["ldaps://dc.example.com"], "baseDN": "dc=example,dc=com", "winbind": True}
    domain = areas.domains.table.by_id[areas.domain]
    areas.ntlm_auth = None
    with pytest.raises(Invalid, match="invalid winbind") as refusal:
        await areas.first_settings.set(domain, FirstFactor.LDAP, {"ldap": fields})
    assert [each.field for each in refusal.value.fields] == ["ldap.winbind"]
    async with asking(replace(host(), ntlm_auth=None), **fields) as asked:
        assert not asked.ldap.checks_mschap
