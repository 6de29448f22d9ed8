"""Passkeys in the store: challenges that are used once, their bindings, limits, and the removal of passkeys."""

from collections.abc import Mapping
from typing import Any

import pytest
import trio
from structlog.testing import capture_logs

from sallyport.areas.factors.passkeys.passkey import LIFE_US, MAX_OPEN, MAX_PASSKEYS, Binding, Passkey, Person
from sallyport.areas.factors.passkeys.service import Passkeys
from sallyport.areas.users.accounts.account import UserChange
from sallyport.base.answer import answer
from sallyport.base.clock import SECOND
from sallyport.base.errors import Conflict, Invalid, NotFound, TooMany
from tests.areas import Areas, stored
from tests.areas.factors.authenticator import BE, BS, EDDSA, ORIGIN, RS256, UP, UV, Authenticator, of_base64

HERE = Binding("the cookie of the browser", "login 1")


def service(areas: Areas, url: str = ORIGIN) -> Passkeys:
    """Return the passkeys of a service with this public_url, as another node has them."""
    return Passkeys(areas.store, url, areas.clock)


def ann(areas: Areas) -> Person:
    """Return the person ann of the domain."""
    return Person(areas.domain, "Ann")


async def register(
    areas: Areas, device: Authenticator, person: Person | None = None, name: str = "phone", url: str = ORIGIN
) -> Passkey:
    """Register a passkey of a person."""
    passkeys, who = service(areas, url), person or ann(areas)
    options = await passkeys.begin_registration(who, HERE)
    return await passkeys.finish_registration(who, HERE, device.create(options), name)


async def actions(areas: Areas) -> list[tuple[str, str]]:
    """Return (action, target) of the audit trail about passkeys."""
    sql = "select action, target from audit_trail where action like 'user.passkey.%' order by id"
    return [(str(action), str(target)) for action, target in await areas.store.read(lambda tx: tx.rows(sql))]


async def test_a_passkey_is_registered_and_used(areas: Areas) -> None:
    """The passkey is stored with host, name and flags. Its use is stored with the time. Case of the name is ignored."""
    device = Authenticator(EDDSA)
    made = await register(areas, device, name=" phone ")
    assert (made.user_name, made.name, made.rp_id, made.transports) == (
        "Ann",
        "phone",
        "vpn.example.org",
        ("internal",),
    )
    assert (made.backup_eligible, made.backed_up, made.last_used_at) == (False, False, None)
    areas.clock.pass_by(60)
    person = Person(areas.domain, "ANN")
    options = await service(areas).begin_assertion(person, HERE)
    used = await service(areas).finish_assertion(person, HERE, device.get(options))
    assert (used.id, used.last_used_at) == (made.id, areas.clock())
    assert await service(areas).of_person(person) == [used]
    assert await actions(areas) == [("user.passkey.add", f"passkey {made.id} of Ann")]


async def test_the_options_for_browsers(areas: Areas) -> None:
    """Challenge and user handle are random. An authenticator makes no second passkey, and no name is in the handle."""
    device = Authenticator(RS256)
    first: Mapping[str, Any] = await service(areas).begin_registration(ann(areas), HERE)
    assert first["rp"]["id"] == "vpn.example.org" and first["attestation"] == "none"
    assert [each["alg"] for each in first["pubKeyCredParams"]] == [-8, -7, -257]
    assert first["authenticatorSelection"]["userVerification"] == "required" and first["excludeCredentials"] == []
    await register(areas, device)
    second: Mapping[str, Any] = await service(areas).begin_registration(ann(areas), HERE)
    assert of_base64(second["excludeCredentials"][0]["id"]) == device.credential_id
    assert of_base64(second["user"]["id"]) == device.handle and len(device.handle) == 32
    assert first["challenge"] != second["challenge"] and len(of_base64(first["challenge"])) == 32
    asked: Mapping[str, Any] = await service(areas).begin_assertion(ann(areas), HERE)
    assert [of_base64(each["id"]) for each in asked["allowCredentials"]] == [device.credential_id]
    assert asked["userVerification"] == "required" and asked["rpId"] == "vpn.example.org"


async def test_a_challenge_is_used_once(areas: Areas) -> None:
    """A replayed assertion is refused, and so is a right assertion after a wrong one of the same challenge."""
    device, passkeys = Authenticator(), service(areas)
    await register(areas, device)
    answer = device.get(await passkeys.begin_assertion(ann(areas), HERE))
    await passkeys.finish_assertion(ann(areas), HERE, answer)
    with pytest.raises(Conflict, match="has ended"):
        await passkeys.finish_assertion(ann(areas), HERE, answer)
    await passkeys.begin_assertion(ann(areas), HERE)
    with pytest.raises(Invalid, match="Wrong challenge"):
        await passkeys.finish_assertion(ann(areas), HERE, answer)
    options = await passkeys.begin_assertion(ann(areas), HERE)
    device.flags = UP
    with pytest.raises(Invalid, match="verified"):
        await passkeys.finish_assertion(ann(areas), HERE, device.get(options))
    device.flags = UP | UV
    with pytest.raises(Conflict, match="has ended"):
        await passkeys.finish_assertion(ann(areas), HERE, device.get(options))


async def test_two_nodes_accept_an_answer_once(areas: Areas) -> None:
    """Of two simultaneous answers to one challenge at two nodes, one is accepted."""
    device, results = Authenticator(), list[str]()
    await register(areas, device)
    answer = device.get(await service(areas).begin_assertion(ann(areas), HERE))

    async def finish(node: Passkeys) -> None:
        try:
            await node.finish_assertion(ann(areas), HERE, answer)
        except Conflict:
            results.append("refused")
        else:
            results.append("accepted")

    async with trio.open_nursery() as nursery:
        for node in (service(areas), service(areas)):
            nursery.start_soon(finish, node)
    assert sorted(results) == ["accepted", "refused"]


async def test_a_challenge_belongs_to_a_browser_a_login_and_a_person(areas: Areas) -> None:
    """Another browser, another login, another person and another purpose find no challenge. The attempt of another
    browser does not end it. A new challenge of the same login replaces it."""
    device, passkeys = Authenticator(), service(areas)
    await register(areas, device)
    bob = Person(areas.domain, "bob")
    await register(areas, Authenticator(), bob)
    answer = device.get(await passkeys.begin_assertion(ann(areas), HERE))
    for binding in (Binding("another cookie", "login 1"), Binding(HERE.browser, "login 2")):
        with pytest.raises(Conflict, match="has ended"):
            await passkeys.finish_assertion(ann(areas), binding, answer)
    with pytest.raises(Conflict, match="has ended"):
        await passkeys.finish_registration(ann(areas), HERE, answer, "phone")
    await passkeys.finish_assertion(ann(areas), HERE, answer)
    answer = device.get(await passkeys.begin_assertion(ann(areas), HERE))
    with pytest.raises(Conflict, match="has ended"):
        await passkeys.finish_assertion(bob, HERE, answer)
    answer = device.get(await passkeys.begin_assertion(ann(areas), HERE))
    await passkeys.begin_assertion(ann(areas), HERE)
    with pytest.raises(Invalid, match="Wrong challenge"):
        await passkeys.finish_assertion(ann(areas), HERE, answer)
    with pytest.raises(ValueError, match="a browser and a login"):
        Binding("", "login 1")


async def test_a_challenge_expires(areas: Areas) -> None:
    """A challenge is valid for less than two minutes. Later challenges delete the expired rows."""
    device, passkeys = Authenticator(), service(areas)
    await register(areas, device)
    answer = device.get(await passkeys.begin_assertion(ann(areas), HERE))
    areas.clock.pass_by(LIFE_US / SECOND)
    with pytest.raises(Conflict, match="has ended"):
        await passkeys.finish_assertion(ann(areas), HERE, answer)
    await passkeys.begin_assertion(ann(areas), Binding("b", "1"))
    areas.clock.pass_by(LIFE_US / SECOND)
    await passkeys.begin_assertion(ann(areas), Binding("b", "2"))
    assert await areas.store.read(lambda tx: tx.value(int, "select count(*) from passkey_challenges")) == 1


async def test_passkeys_of_others(areas: Areas) -> None:
    """The passkey of another person, of another domain and of another tenant is refused, and so is a foreign credential
    id with a signature of the attacker's key."""
    passkeys, mine, foreign = service(areas), Authenticator(), Authenticator()
    tenant = await areas.tenancy.ensure_tenant(2, 2)
    await register(areas, mine)
    await register(areas, foreign, Person(await areas.domains.add(tenant, "other"), "ann"))
    bobs = Authenticator()
    await register(areas, bobs, Person(areas.domain, "bob"))
    for device in (foreign, bobs):
        with pytest.raises(Invalid, match="not one of this person"):
            await passkeys.finish_assertion(
                ann(areas), HERE, device.get(await passkeys.begin_assertion(ann(areas), HERE))
            )
    bobs.credential_id, bobs.handle = mine.credential_id, mine.handle
    with pytest.raises(Invalid, match="Invalid signature"):
        await passkeys.finish_assertion(ann(areas), HERE, bobs.get(await passkeys.begin_assertion(ann(areas), HERE)))
    with pytest.raises(Conflict, match="registered already"):
        await register(areas, bobs, Person(areas.domain, "carol"))


async def test_a_changed_public_url(areas: Areas) -> None:
    """After a change of the host, former passkeys are neither offered nor accepted, and the log has their number. With
    the former host, they work again. A challenge of the former host ends."""
    device, new = Authenticator(), "https://login.example.org"
    await register(areas, device)
    options = await service(areas).begin_assertion(ann(areas), HERE)
    with pytest.raises(Conflict, match="no passkey for this service"):
        await service(areas, new).begin_assertion(ann(areas), HERE)
    with pytest.raises(Conflict, match="has ended"):
        await service(areas, new).finish_assertion(ann(areas), HERE, device.get(options))
    with capture_logs() as logs:
        await service(areas).warn()
        await service(areas, new).warn()
    assert [(each["event"], each["passkeys"], each["host"]) for each in logs] == [
        ("passkeys_of_other_hosts", 1, "login.example.org")
    ]
    second = Authenticator(host="login.example.org", origin=new)
    await register(areas, second, url=new)
    assert second.handle == device.handle
    options = await service(areas).begin_assertion(ann(areas), HERE)
    await service(areas).finish_assertion(ann(areas), HERE, device.get(options))
    with pytest.raises(Conflict, match="public_url"):
        await service(areas, "http://vpn.example.org").begin_assertion(ann(areas), HERE)


async def test_a_counter_that_goes_back(areas: Areas) -> None:
    """The assertion is refused, and the log names person and passkey. The counter stays, so that the next assertion of
    the real authenticator is accepted."""
    device, passkeys = Authenticator(counts=True), service(areas)
    made = await register(areas, device)
    assert made.sign_count == 1
    device.count = 0
    with capture_logs() as logs, pytest.raises(Invalid, match="counter went back"):
        await passkeys.finish_assertion(ann(areas), HERE, device.get(await passkeys.begin_assertion(ann(areas), HERE)))
    assert [(each["event"], each["passkey_id"], each["user"]) for each in logs] == [
        ("passkey_counter_went_back", made.id, "Ann")
    ]
    device.count = 7
    used = await passkeys.finish_assertion(
        ann(areas), HERE, device.get(await passkeys.begin_assertion(ann(areas), HERE))
    )
    assert used.sign_count == 8


async def test_two_first_passkeys_at_once(areas: Areas) -> None:
    """All passkeys of a person have the same user handle. So of two simultaneous first registrations, the later one
    begins again."""
    passkeys, other = service(areas), Binding("another cookie", "login 1")
    first, second = Authenticator(), Authenticator()
    answers = [
        first.create(await passkeys.begin_registration(ann(areas), HERE)),
        second.create(await passkeys.begin_registration(ann(areas), other)),
    ]
    await passkeys.finish_registration(ann(areas), HERE, answers[0], "phone")
    with pytest.raises(Conflict, match="has ended"):
        await passkeys.finish_registration(ann(areas), other, answers[1], "key")
    await register(areas, second)
    assert second.handle == first.handle


async def test_limits(areas: Areas) -> None:
    """A person has a limit of passkeys and of open challenges. Other people are not affected."""
    for _ in range(MAX_PASSKEYS):
        await register(areas, Authenticator())
    with pytest.raises(Conflict, match="at most 10 passkeys"):
        await service(areas).begin_registration(ann(areas), HERE)
    for number in range(MAX_OPEN):
        await service(areas).begin_assertion(ann(areas), Binding("b", str(number)))
    with pytest.raises(TooMany):
        await service(areas).begin_assertion(ann(areas), HERE)
    await service(areas).begin_assertion(ann(areas), Binding("b", "0"))
    await register(areas, Authenticator(), Person(areas.domain, "bob"))


@pytest.mark.parametrize("name", ["", " ", "x" * 65, "a\nb", "\u202eb"])
async def test_the_name_of_a_passkey(areas: Areas, name: str) -> None:
    """A name is printable and short. A refused name does not end the challenge."""
    device, passkeys = Authenticator(), service(areas)
    answer = device.create(await passkeys.begin_registration(ann(areas), HERE))
    with pytest.raises(Invalid) as refused:
        await passkeys.finish_registration(ann(areas), HERE, answer, name)
    assert refused.value.fields[0].field == "name"
    await passkeys.finish_registration(ann(areas), HERE, answer, "phone")


async def test_an_operator_removes_a_passkey(areas: Areas) -> None:
    """A removed passkey is not accepted, not even for an open challenge. Only the named user's passkey is removed."""
    device, passkeys = Authenticator(), service(areas)
    made = await register(areas, device)
    answer = device.get(await passkeys.begin_assertion(ann(areas), HERE))
    for person, number in ((Person(areas.domain, "bob"), made.id), (ann(areas), made.id + 1)):
        with pytest.raises(NotFound):
            await passkeys.remove(person, number)
    assert (await passkeys.remove(Person(areas.domain, "ann"), made.id)).name == "phone"
    with pytest.raises(Invalid):
        await passkeys.finish_assertion(ann(areas), HERE, answer)
    assert [action for action, _ in await actions(areas)] == ["user.passkey.add", "user.passkey.remove"]


async def test_the_next_user_of_a_name_gets_no_passkey(areas: Areas) -> None:
    """The passkeys of an endpoint user are deleted with the user, and when the user gets another name."""
    for leave in ("delete", "rename"):
        user_id = await areas.add_user(areas.domain, "Ann", b"hello")
        await register(areas, Authenticator())
        await service(areas).begin_assertion(ann(areas), HERE)
        if leave == "delete":
            await areas.remove_user(areas.domain, "Ann")
        else:
            await areas.accounts.update(areas.domain, user_id, UserChange("anna"))
        assert await service(areas).of_person(ann(areas)) == []
        assert await areas.store.read(lambda tx: tx.value(int, "select count(*) from passkey_challenges")) == 0


async def test_a_restored_backup_has_no_challenges(areas: Areas) -> None:
    """An assertion that was accepted after the backup is not accepted again after its restore."""
    device, passkeys = Authenticator(), service(areas)
    await register(areas, device)
    answer = device.get(await passkeys.begin_assertion(ann(areas), HERE))
    await areas.store.write(lambda tx: areas.app.areas.void(tx, revoke_tokens=False))
    with pytest.raises(Conflict, match="has ended"):
        await passkeys.finish_assertion(ann(areas), HERE, answer)


async def test_pages_of_a_list(areas: Areas) -> None:
    """The passkeys of a domain are ordered by user. A user's name selects only this user."""
    for name in ("bob", "Ann", "bob"):
        await register(areas, Authenticator(), Person(areas.domain, name))
    found, total = await service(areas).page(areas.domain, "", 0, 2)
    assert ([each.user_name for each in found], total) == (["Ann", "bob"], 3)
    found, total = await service(areas).page(areas.domain, "BOB", 1, 10)
    assert (len(found), total) == (1, 2)


async def test_answers_have_no_keys(areas: Areas) -> None:
    """Answers have the fields for people, and neither the key nor the credential id."""
    made = await register(areas, Authenticator(flags=UP | UV | BE | BS))
    assert answer(made, host="vpn.example.org") == {
        "passkeyId": made.id, "domainId": areas.domain, "userName": "Ann", "name": "phone", "rpId": "vpn.example.org",
        "usable": True, "backupEligible": True, "backedUp": True, "transports": ["internal"],
        "createdAt": "2026-01-01T00:00:00.000000Z", "lastUsedAt": "",
    }  # fmt: skip
    assert answer(made, host="other.example.org")["usable"] is False


async def test_the_store_has_no_cookie_of_a_browser(areas: Areas) -> None:
    """A copy of the database does not let its reader continue the page of a browser."""
    await service(areas).begin_registration(ann(areas), HERE)
    assert HERE.browser.encode() not in stored(areas.store)
