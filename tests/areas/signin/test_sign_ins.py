"""Sign-ins with a password: refusals, the audit trail of failures, and the sessions that a sign-in ends."""

import json
from collections.abc import Awaitable, Callable
from typing import TypeVar, cast

import pytest
import trio

from sallyport.areas.signin.area import FAILED_SIGN_INS
from sallyport.areas.signin.sessions import Browser
from sallyport.areas.signin.sign_ins import MAX_REFUSALS, MAX_SESSIONS, SignIns
from sallyport.areas.tenancy.guesses import Guesses
from sallyport.base.clock import SECOND
from sallyport.base.errors import TooMany, Unauthenticated
from sallyport.base.secret import Secret
from sallyport.base.totp import hotp, seed_octets, step_at
from sallyport.store.model import Store, Work
from sallyport.store.vault import Vault
from sallyport.web.scope import Role
from tests.areas import Areas

PASSWORD = "a horse? 42 batteries"
OTHER_PASSWORD = "another cow, 17 turbines"
LAPTOP = Browser("192.0.2.7", "Firefox")
OUTSIDE = Browser("198.51.100.1")
T = TypeVar("T")


def code(areas: Areas, seed: str) -> str:
    """Return the present one-time code of a seed."""
    return hotp(seed_octets(seed), step_at(areas.clock()))


def sign_ins_of(areas: Areas, *, store: Store | None = None, vault: Vault | None = None) -> SignIns:
    """Return sign-ins with a store and a vault of the test."""
    parts = store or areas.store, vault or areas.vault, areas.tenancy, Guesses(), Guesses(), areas.open_id, areas.clock
    return SignIns(*parts, longest_us=3600 * SECOND)


class ChangingStore:
    """A store in which an administrator is changed after the check of a password, before the session is written."""

    def __init__(self, store: Store, change: Callable[[], Awaitable[object]]) -> None:
        self._store = store
        self._change = change
        self._writes = 0

    async def read(self, work: Work[T]) -> T:
        return await self._store.read(work)

    async def write(self, work: Work[T]) -> T:
        self._writes += 1
        if self._writes == 2:  # the first one counts the attempt
            await self._change()
        return await self._store.write(work)


@pytest.mark.parametrize("what", ["password", "seed", "removal"])
async def test_an_administrator_who_is_changed_meanwhile_is_refused(areas: Areas, what: str) -> None:
    """The former password or seed does not open a session, although it was right when it was checked. Otherwise the
    session would outlast the change, which ends all sessions of the administrator."""
    _, seed = await areas.administrators.add("root", PASSWORD, Role.INSTALLATION, None)
    changes: dict[str, Callable[[], Awaitable[object]]] = {
        "password": lambda: areas.administrators.set_password("root", OTHER_PASSWORD),
        "seed": lambda: areas.administrators.renew_seed("root"),
        "removal": lambda: areas.administrators.remove("root"),
    }
    sign_ins = sign_ins_of(areas, store=cast(Store, ChangingStore(areas.store, changes[what])))
    with pytest.raises(Unauthenticated):
        await sign_ins.by_password("root", PASSWORD, code(areas, seed), LAPTOP)
    assert await areas.console_sessions.everything() == []


@pytest.mark.parametrize("other", ["\0", "\ud800"], ids=["NUL", "surrogate"])
@pytest.mark.parametrize("name", ["root", "nobody"])
async def test_a_character_that_no_password_has_is_refused(areas: Areas, name: str, other: str) -> None:
    """A password with it is wrong, also if a question mark in its place is right."""
    _, seed = await areas.administrators.add("root", PASSWORD, Role.INSTALLATION, None)
    for password in (PASSWORD.replace("?", other), PASSWORD + other, other):
        with pytest.raises(Unauthenticated):
            await areas.sign_ins.by_password(name, password, code(areas, seed), LAPTOP)
    assert await areas.sign_ins.by_password("root", PASSWORD, code(areas, seed), LAPTOP)


async def test_the_longest_password(areas: Areas) -> None:
    """Each character of a password of 128 characters counts, and a longer text is a wrong password."""
    longest = ("a horse? 42 batteries, " * 6)[:128]
    _, seed = await areas.administrators.add("root", longest, Role.INSTALLATION, None)
    for password in (longest[:-1], longest[:-1] + "x", longest + "x"):
        with pytest.raises(Unauthenticated):
            await areas.sign_ins.by_password("root", password, code(areas, seed), LAPTOP)
    assert await areas.sign_ins.by_password("root", longest, code(areas, seed), LAPTOP)


@pytest.mark.parametrize(
    ("form", "is_accepted"),
    [
        ("{0}{1}", True),
        (" {0}-{1} ", True),
        ("", False),
        ("{0}", False),
        ("{0}{1}0", False),
        ("0{0}{1}", False),
        ("{0}{1}{0}{1}", False),
        ("{0}{1}é", False),
        ("{0}{1}\0", False),
    ],
    ids=["six digits", "as shown", "empty", "three", "seven", "one before", "twice", "letter", "NUL"],
)
async def test_the_form_of_a_code(areas: Areas, form: str, is_accepted: bool) -> None:
    """A code has six digits, and is accepted as authenticator apps show it. No longer text with the code is."""
    _, seed = await areas.administrators.add("root", PASSWORD, Role.INSTALLATION, None)
    digits = code(areas, seed)
    typed = form.format(digits[:3], digits[3:])
    if is_accepted:
        assert await areas.sign_ins.by_password("root", PASSWORD, typed, LAPTOP)
        return
    with pytest.raises(Unauthenticated):
        await areas.sign_ins.by_password("root", PASSWORD, typed, LAPTOP)


async def test_secrets_of_another_key_open_no_session(areas: Areas) -> None:
    """If the service does not have the key that has sealed the password, the sign-in is refused like a wrong one."""
    _, seed = await areas.administrators.add("root", PASSWORD, Role.INSTALLATION, None)
    sign_ins = sign_ins_of(areas, vault=Vault(Secret(b"1" * 32)))
    for password in (PASSWORD, ""):
        with pytest.raises(Unauthenticated):
            await sign_ins.by_password("root", password, code(areas, seed), LAPTOP)


async def test_a_blocked_address_is_refused_at_once(areas: Areas) -> None:
    """It reads nothing, and does not wait until the passwords of other people are checked."""
    for _ in range(FAILED_SIGN_INS):
        with pytest.raises(Unauthenticated):
            await areas.sign_ins.by_token("sp_wrong", OUTSIDE)
    with trio.testing.assert_no_checkpoints(), pytest.raises(TooMany):
        await areas.sign_ins.by_password("root", PASSWORD, "123456", OUTSIDE)


async def test_failures_of_an_administrator_are_always_recorded(areas: Areas) -> None:
    """The limit of the entries about unknown names does not hide that the password of an administrator is guessed. The
    entry is in the trail of the administrator's tenant, and counts no other entry as left out."""
    await areas.administrators.add("root", PASSWORD, Role.INSTALLATION, None)
    await areas.administrators.add("ann", PASSWORD, Role.ADMIN, areas.tenant)
    for number in range(MAX_REFUSALS):
        with pytest.raises(Unauthenticated):
            await areas.sign_ins.by_token("sp_wrong", Browser(f"198.51.100.{number}"))
    for name in ("root", "nobody", "ann"):
        with pytest.raises(Unauthenticated):
            await areas.sign_ins.by_password(name, "wrong", "123456", LAPTOP)
    sql = "select target, tenant_id, changes from audit_trail where action = 'console.refuse' order by id"
    entries = await areas.store.read(lambda tx: tx.rows(sql))
    assert [json.loads(str(row[2])) for row in entries[:MAX_REFUSALS]] == [
        {"from": [None, f"198.51.100.{number}"]} for number in range(MAX_REFUSALS)
    ]
    left_out = {"leftOut": [None, 1]}
    assert [(row[0], row[1], json.loads(str(row[2]))) for row in entries[MAX_REFUSALS:]] == [
        ("administrator 1 root", 0, {"from": [None, LAPTOP.source]}),
        ("administrator 2 ann", areas.tenant, {"from": [None, LAPTOP.source], **left_out}),
    ]


async def test_many_sign_ins_end_the_oldest_sessions_of_the_same_token(areas: Areas) -> None:
    """A token has a limited number of sessions. Those of an administrator with the same number stay."""
    _, seed = await areas.administrators.add("root", PASSWORD, Role.INSTALLATION, None)
    _, token = await areas.tenancy.create_token(1, 1, Role.OPERATOR, "ci", None)
    await areas.sign_ins.by_password("root", PASSWORD, code(areas, seed), LAPTOP)
    for number in range(MAX_SESSIONS + 2):
        await areas.sign_ins.by_token(token, Browser(f"192.0.2.{number}"))
    found = await areas.console_sessions.everything()
    assert {each.owner_id for each in found} == {1}
    assert [each.source for each in found if each.kind == "token"] == [
        f"192.0.2.{number}" for number in range(MAX_SESSIONS + 1, 1, -1)
    ]
    assert [each.name for each in found if each.kind == "administrator"] == ["root"]


async def test_a_sign_in_that_succeeds_is_not_counted(areas: Areas) -> None:
    """If one attempt is left, it is still left after a sign-in with the right password and code."""
    _, seed = await areas.administrators.add("root", PASSWORD, Role.INSTALLATION, None)
    for _ in range(FAILED_SIGN_INS - 1):
        with pytest.raises(Unauthenticated):
            await areas.sign_ins.by_password("root", "wrong", "123456", OUTSIDE)
    assert await areas.sign_ins.by_password("root", PASSWORD, code(areas, seed), OUTSIDE)
    for error in (Unauthenticated, TooMany):
        with pytest.raises(error):
            await areas.sign_ins.by_password("root", "wrong", "123456", OUTSIDE)
