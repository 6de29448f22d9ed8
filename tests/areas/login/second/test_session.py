"""Tests of the session between two challenges: what it keeps of a login, who may answer it, its State and its row."""

import json
from collections.abc import Callable
from dataclasses import asdict, replace
from typing import cast

import pytest

from sallyport.areas.devices.device import Device
from sallyport.areas.devices.rows import UNANSWERED
from sallyport.areas.domains.domain import FirstFactor
from sallyport.areas.login.login import Found, Login, Reason
from sallyport.areas.login.second.challenges import Challenges
from sallyport.areas.login.second.conversation import SecondFactorResult
from sallyport.areas.login.second.session import (
    LIFETIME_US,
    MAX_PLACE,
    NOBODY,
    Asked,
    ChallengeKind,
    Session,
    delete,
    deny,
    new_session,
    open_state,
    purge,
    read,
    same_login,
    seal_state,
    sessions_of_user,
    void,
    write,
)
from sallyport.areas.mfa.circuit import Attached, Guarded
from sallyport.areas.mfa.provider import Code, Question
from sallyport.base.clock import SECOND
from sallyport.radius.attributes import REPLY_MESSAGE, STATE, pull_attributes
from sallyport.radius.password import Method
from sallyport.store.model import Store, Tx
from tests.areas import Areas
from tests.areas.login.conftest import FakeListener
from tests.packets import access_request, attributes, pap

ATTACHED = Attached("duo", "duo/7", cast(Guarded, None), 30.0)
ASKED = Asked(5, "stamp", "ldap")
ADDRESS = b"203.0.113.9"
MAC = b"00-11-22-33-44-55"


def a_login(listener: FakeListener, *, signed: bool = True, **values: bytes) -> Login:
    """Return ann's login from a device, with a right password. values: further attributes of the request; an empty one
    is left out."""
    values = {name: value for name, value in {"CALLING_STATION_ID": ADDRESS, **values}.items() if value}
    login = listener.login(pap("ann", "hello", attributes(**values), signed=signed))
    login.domain = listener.areas.domains.table.by_id[listener.areas.domain]
    login.user, login.method, login.station = "ann", Method.PAP, login.arrival.request.text(31)
    login.device = Device(login.domain.id, "192.0.2.1", "10.0.0.1", "switch-1", login.arrival.at)
    return login


def session_of(login: Login) -> Session:
    assert login.domain is not None
    return new_session(login, login.domain, ATTACHED, ASKED, b"\x12\x03a")


async def test_a_session_keeps_the_login(listener: FakeListener) -> None:
    """The session has what the provider is asked, what the first factor found, and the stamps that must stay."""
    login = a_login(listener)
    login.found = Found(groups=frozenset({"staff"}), ous=frozenset({"berlin"}), password_at="then")
    session, expires_at = session_of(login), login.arrival.at + 30 * SECOND
    assert len(bytes.fromhex(session.id)) == 16
    question = Question(
        session.id, listener.areas.domain, "corp", "ann", "switch-1", "10.0.0.1", "203.0.113.9", expires_at,
        signed=True, address="203.0.113.9", place=listener.client.name,
        takes_codes=True, shows_challenges=True, is_checked=True,
    )  # fmt: skip
    assert session == Session(
        question, "duo/7", listener.client.id, 5, ADDRESS.hex(), ChallengeKind.APPROVAL, handle="", step=0, wrong=0,
        expires_at=expires_at, accept="120361", groups=("staff",), ous=("berlin",), user_stamp="stamp", factor="ldap",
        password_at="then",
    )  # fmt: skip
    assert (session.asked, session.provider_name) == (ASKED, "duo")
    found = session.found
    assert (found.accept, found.groups, found.ous, found.password_at) == (b"\x12\x03a", {"staff"}, {"berlin"}, "then")


async def test_what_a_provider_cannot_rely_on(listener: FakeListener) -> None:
    """An unsigned request has no address. A login by MS-CHAPv2 takes no code, a device that shows no challenges is
    known, and nothing was checked if the first factor is the page."""
    login = a_login(listener, signed=False)
    assert login.domain is not None
    login.method, login.domain = Method.MSCHAP2, replace(login.domain, first_factor=FirstFactor.WEB)
    for _ in range(UNANSWERED):
        login.device.posture.count_challenge(login.arrival.at)
    asked = session_of(login).question
    assert (asked.signed, asked.address) == (False, "")
    assert (asked.takes_codes, asked.shows_challenges, asked.is_checked) == (False, False, False)


@pytest.mark.parametrize("signed", [True, False])
@pytest.mark.parametrize("is_claimed", [True, False])
async def test_the_place_of_a_device(listener: FakeListener, signed: bool, is_claimed: bool) -> None:
    """The place is the tags of the device. An unsigned request could claim the name of another device, so that tags
    that depend on this name are left out."""
    login = a_login(listener, signed=signed)
    login.device.find_own_tags = lambda _: ("floor=" + "x" * MAX_PLACE, "site=berlin")
    login.device.has_claimed_tags = lambda _: is_claimed
    place = session_of(login).question.place
    assert place == (listener.client.name if is_claimed and not signed else "floor=" + "x" * (MAX_PLACE - 6))


async def test_the_tags_of_a_place(listener: FakeListener) -> None:
    """People read all tags of the device."""
    login = a_login(listener)
    login.device.find_own_tags = lambda _: ("floor=2", "site=berlin")
    assert session_of(login).question.place == "floor=2, site=berlin"


async def test_who_may_answer(listener: FakeListener) -> None:
    """The same client, domain, user and station may answer. A station may write its MAC address in another way."""
    login = a_login(listener, CALLING_STATION_ID=MAC)
    session = session_of(login)
    assert session.is_of(login)
    assert session.is_of(a_login(listener, CALLING_STATION_ID=b"001122334455"))
    assert not session.is_of(a_login(listener, CALLING_STATION_ID=b"001122334456"))
    assert not replace(session, client_id=session.client_id + 1).is_of(login)
    assert not session_of(a_login(listener, CALLING_STATION_ID=b"")).is_of(login)
    assert session_of(a_login(listener, CALLING_STATION_ID=b"")).station == ""
    login.user = "ANN"
    assert session.is_of(login)
    login.user = "bob"
    assert not session.is_of(login)
    login = a_login(listener, CALLING_STATION_ID=MAC)
    assert login.domain is not None
    login.domain = replace(login.domain, id=login.domain.id + 1)
    assert not session.is_of(login)
    login.domain = None
    assert not session.is_of(login)


@pytest.mark.parametrize(
    "values",
    [
        {"CALLING_STATION_ID": b"203.0.113.8"},
        {"ACCT_SESSION_ID": b"2"},
        {"NAS_PORT": bytes((0, 0, 0, 2))},
        {"NAS_PORT_ID": b"ge-0/0/2"},
        {"NAS_IP_ADDRESS": bytes((10, 0, 0, 2))},
        {"NAS_IPV6_ADDRESS": bytes(15) + b"\2"},
        {"NAS_IDENTIFIER": b"switch-2"},
    ],
    ids=lambda values: next(iter(values)).lower(),
)
async def test_logins_of_other_places_differ(listener: FakeListener, values: dict[str, bytes]) -> None:
    """A request joins a login only if the device and every attribute of the session and the port are the same."""
    known = {"ACCT_SESSION_ID": b"1", "NAS_PORT": bytes((0, 0, 0, 1)), "NAS_PORT_ID": b"ge-0/0/1"}
    key = same_login(a_login(listener, **known), ASKED)
    assert key is not None
    assert same_login(a_login(listener, **known), ASKED) == key
    assert same_login(a_login(listener, **{**known, **values}), ASKED) != key


async def test_logins_of_other_people_differ(listener: FakeListener) -> None:
    """A request joins a login only if user, code and stamps are the same, and it is signed if the other one is."""
    key = same_login(a_login(listener), ASKED)
    assert same_login(a_login(listener), Asked(5, "other", "ldap")) != key
    assert same_login(a_login(listener, signed=False), ASKED) != key
    other = a_login(listener)
    other.code = Code("123456")
    assert same_login(other, ASKED) != key
    other = a_login(listener)
    other.user = "bob"
    assert same_login(other, ASKED) != key
    other.user = "ANN"
    assert same_login(other, ASKED) == key
    other.arrival = other.arrival._replace(source=("192.0.2.1", 40001))
    assert same_login(other, ASKED) == key
    other.arrival = other.arrival._replace(source=("192.0.2.2", 40000))
    assert same_login(other, ASKED) != key
    other.domain = None
    assert same_login(other, ASKED) is None


@pytest.mark.parametrize(
    ("values", "is_known"),
    [
        ({}, False),
        ({"NAS_PORT": bytes(4)}, False),
        ({"NAS_PORT": bytes((0, 0, 0, 1))}, True),
        ({"NAS_PORT_ID": b"1"}, True),
        ({"ACCT_SESSION_ID": b"1"}, True),
        ({"CALLING_STATION_ID": MAC}, True),
        ({"STATE": b"1"}, False),
    ],
    ids=["nothing", "port 0", "port 1", "name of a port", "session", "station", "State"],
)
async def test_what_identifies_a_login(listener: FakeListener, values: dict[str, bytes], is_known: bool) -> None:
    """A station that is the device itself, and port 0, are the same for all logins of a device."""
    login = a_login(listener, **{"CALLING_STATION_ID": b"192.0.2.1", **values})
    assert (same_login(login, ASKED) is not None) == is_known


async def test_the_state_of_an_eap_conversation_identifies_it(listener: FakeListener) -> None:
    """Without any other attribute, only requests of the same conversation are the same login."""
    eap, state = {"USER_NAME": b"ann", "EAP_MESSAGE": b"x"}, {"STATE": b"1"}
    keys = []
    for values in (eap, {**eap, **state}, {**eap, **state}, {**eap, "STATE": b"2"}):
        login = listener.login(access_request(attributes(**values)))
        login.user, login.domain = "ann", listener.areas.domains.table.by_id[listener.areas.domain]
        keys.append(same_login(login, ASKED))
    assert keys[0] is None
    assert keys[1] == keys[2] != keys[3]


async def test_a_state(areas: Areas, listener: FakeListener) -> None:
    """A State has the challenge and its step. It is valid in its domain alone, and a State of another length, which
    belongs to EAP, is not opened."""
    session = replace(session_of(a_login(listener)), step=3)
    state = seal_state(areas.vault, session)
    assert open_state(areas.vault, state, areas.domain) == (session.id, 3)
    assert open_state(areas.vault, state, areas.domain + 1) is None
    assert open_state(areas.vault, state[:-1] + bytes((state[-1] ^ 1,)), areas.domain) is None
    assert open_state(areas.vault, state[:-1], areas.domain) is None
    assert len(state) == 46


async def stored(areas: Areas, listener: FakeListener, *, life_us: int = LIFETIME_US, **fields: object) -> Session:
    """Return a new session in the store, of a user of `fields` or of ann. life_us: the time until its end."""
    session = session_of(a_login(listener))
    question = replace(session.question, **fields)  # type: ignore[arg-type]
    session = replace(session, question=question, expires_at=areas.clock() + life_us)
    await areas.store.write(lambda tx: write(tx, session))
    return await in_store(areas, session)


async def in_store(areas: Areas, session: Session) -> Session:
    """Return a session as it is stored. Its groups are lists."""
    found = await areas.store.read(lambda tx: read(tx, session.id))
    assert found is not None
    return found


async def test_a_session_in_the_store(areas: Areas, listener: FakeListener) -> None:
    """The next step of a session replaces its row. An expired session is purged, not before its end."""
    session = await stored(areas, listener)
    later = replace(session, step=1, expires_at=session.expires_at + 1)
    await areas.store.write(lambda tx: write(tx, later))
    assert await in_store(areas, session) == later
    assert (await in_store(areas, session)).kind is ChallengeKind.APPROVAL
    assert await areas.store.write(lambda tx: purge(tx, later.expires_at)) == 0
    assert await areas.store.write(lambda tx: purge(tx, later.expires_at + 1)) == 1
    assert await areas.store.read(lambda tx: read(tx, session.id)) is None


@pytest.mark.parametrize("remove", [delete, lambda tx, _: void(tx)], ids=["answered", "restored"])
async def test_a_session_is_removed(areas: Areas, listener: FakeListener, remove: Callable[[Tx, str], None]) -> None:
    """A session that was answered is removed, and so is each session of a backup."""
    session = await stored(areas, listener)
    await areas.store.write(lambda tx: remove(tx, session.id))
    assert await areas.store.read(lambda tx: read(tx, session.id)) is None


@pytest.mark.parametrize("user", ["ann", "zoë"])
async def test_the_sessions_of_a_user(areas: Areas, listener: FakeListener, user: str) -> None:
    """The sessions of a user are found by the name in any case, and neither those of others nor expired ones."""
    first, second = [await stored(areas, listener, user=name) for name in (user, f" {user.upper()}")]
    await stored(areas, listener, user=f"{user}e")
    challenges = Challenges(areas.store, areas.vault, areas.clock)
    found = await challenges.sessions_of(areas.domain, user.upper())
    assert {each.id for each in found} == {first.id, second.id}
    at = areas.clock()
    assert len(await areas.store.read(lambda tx: sessions_of_user(tx, areas.domain, user, at, 1))) == 1
    assert not await challenges.sessions_of(areas.domain + 1, user)
    areas.clock.pass_by(LIFETIME_US / SECOND)
    assert not await challenges.sessions_of(areas.domain, user)


async def test_a_row_of_another_version(areas: Areas, listener: FakeListener) -> None:
    """Nodes of two versions share the rows: the kinds keep their names, and fields that are missing are empty."""
    assert [str(each) for each in ChallengeKind] == ["code", "approval", "denied"]
    assert Asked(0, "", "") == NOBODY
    session = await stored(areas, listener)
    later = ("accept", "groups", "ous", "user_stamp", "factor", "password_at")
    row = json.dumps({name: value for name, value in asdict(session).items() if name not in later})
    await areas.store.write(lambda tx: tx.execute("update challenges set session = :row", row=row))
    found = await in_store(areas, session)
    assert [getattr(found, name) for name in later] == ["", (), (), "", "", ""]


async def test_an_answered_session_leaves_the_others(areas: Areas, listener: FakeListener) -> None:
    """Only the session that was answered is removed."""
    answered, other = await stored(areas, listener), await stored(areas, listener, user="bob")
    await areas.store.write(lambda tx: delete(tx, answered.id))
    assert await in_store(areas, other) == other


async def test_the_name_of_a_user_in_another_form(areas: Areas, listener: FakeListener) -> None:
    """A name in capitals, or with spaces around it, is the same user."""
    login = a_login(listener)
    session = session_of(login)
    assert replace(session, question=replace(session.question, user="ANN")).is_of(login)
    await stored(areas, listener)
    assert await areas.store.read(lambda tx: sessions_of_user(tx, areas.domain, " Ann ", areas.clock()))
    challenges = Challenges(areas.store, areas.vault, areas.clock)
    in_capitals = await stored(areas, listener, user="ANN")
    challenges.sent(in_capitals, 1)
    challenges.denied(areas.domain, "ann")
    found = await challenges.find(in_capitals.id)
    assert found is not None
    assert found.kind is ChallengeKind.DENIED


async def test_expired_challenges_are_purged(areas: Areas, listener: FakeListener) -> None:
    """The upkeep removes expired challenges from the store, too."""
    expired, other = await stored(areas, listener, life_us=1), await stored(areas, listener)
    challenges = Challenges(areas.store, areas.vault, areas.clock)
    await challenges.purge(expired.expires_at + 1)
    assert await areas.store.read(lambda tx: read(tx, expired.id)) is None
    assert await in_store(areas, other) == other


async def test_the_limit_counts_the_sessions_of_the_user(areas: Areas, listener: FakeListener) -> None:
    """The earlier sessions of other users, whose names begin alike, take no place of the user's."""
    at = areas.clock()
    for number, user in enumerate(("anx", "a", "ann")):
        await stored(areas, listener, user=user, life_us=(number + 1) * SECOND)
    found = await areas.store.read(lambda tx: sessions_of_user(tx, areas.domain, "ann", at, 1))
    assert [each.question.user for each in found] == ["ann"]


async def test_a_denial_leaves_expired_challenges(areas: Areas, listener: FakeListener) -> None:
    """The cost of a denial has a limit, so it writes no challenge that has expired."""
    expired = await stored(areas, listener, life_us=-1)
    await areas.store.write(lambda tx: deny(tx, areas.domain, "ann", areas.clock()))
    assert (await in_store(areas, expired)).kind is ChallengeKind.APPROVAL


async def test_a_challenge_in_memory_is_not_read(areas: Areas, listener: FakeListener) -> None:
    """The store is not asked for a challenge that this node has in memory, or that was answered on it."""
    session = await stored(areas, listener)
    reads = list[object]()

    class Counting:
        async def read(self, transaction: object) -> Session | None:
            reads.append(transaction)
            return session

    challenges = Challenges(cast(Store, Counting()), areas.vault, areas.clock)
    assert await challenges.find(session.id) == session
    challenges.sent(session, 1)
    assert await challenges.find(session.id) == session
    challenges.ended(session, 1)
    assert await challenges.find(session.id) is None
    assert len(reads) == 1


async def test_a_challenge_that_continues_during_the_read(areas: Areas, listener: FakeListener) -> None:
    """The challenge that another request has sent meanwhile is newer than the one that was read."""
    session = await stored(areas, listener)
    later = replace(session, step=1)

    class Slow:
        async def read(self, _transaction: object) -> Session | None:
            challenges.sent(later, 1)
            return session

    challenges = Challenges(cast(Store, Slow()), areas.vault, areas.clock)
    assert await challenges.find(session.id) == later


async def test_a_denial(areas: Areas, listener: FakeListener) -> None:
    """After a denial, no answer to the user's challenges is accepted, in the store or in memory. Others stay."""
    ann, bob = await stored(areas, listener), await stored(areas, listener, user="bob")
    challenges = Challenges(areas.store, areas.vault, areas.clock)
    await areas.store.write(lambda tx: challenges.deny(tx, areas.domain, "ANN"))
    kinds = [(await in_store(areas, each)).kind for each in (ann, bob)]
    assert kinds == [ChallengeKind.DENIED, ChallengeKind.APPROVAL]
    elsewhere = replace(ann, question=replace(ann.question, challenge_id="1" * 32, domain_id=areas.domain + 1))
    for each in (ann, bob, elsewhere):
        challenges.sent(each, 1)
    challenges.denied(areas.domain, "ANN")
    found = [await challenges.find(each.id) for each in (ann, bob, elsewhere)]
    assert [each and each.kind for each in found] == [
        ChallengeKind.DENIED, ChallengeKind.APPROVAL, ChallengeKind.APPROVAL,
    ]  # fmt: skip


async def test_the_next_challenge(areas: Areas, listener: FakeListener) -> None:
    """The next challenge of a session has the next step, its own end, and a State and a text for the device."""
    before = await stored(areas, listener)
    challenges = Challenges(areas.store, areas.vault, areas.clock)
    areas.clock.pass_by(10)
    result = challenges.next_step(before, ChallengeKind.CODE, "handle", "Code? " + "é" * 200)
    after = replace(before, kind=ChallengeKind.CODE, handle="handle", step=1, expires_at=areas.clock() + LIFETIME_US)
    assert (result.reason, result.session, result.asked) == (Reason.ASKED, after, ASKED)
    (kind, text), (state_kind, state) = pull_attributes(challenges.attributes(result))
    assert (kind, state_kind) == (REPLY_MESSAGE, STATE)
    assert text.decode() == "Code? " + "é" * 123  # 253 octets would end in half a letter
    assert challenges.named(areas.domain, state) == (before.id, 1)


async def test_challenges_in_memory(areas: Areas, listener: FakeListener) -> None:
    """A challenge that is sent is found in memory, and one that ended is not found, even before its row is deleted.
    After a restore, memory is empty."""
    session = await stored(areas, listener)
    challenges = Challenges(areas.store, areas.vault, areas.clock)
    sent = replace(session, step=9)
    challenges.sent(sent, 1)
    assert await challenges.find(session.id) is sent
    challenges.forget()
    assert await challenges.find(session.id) == session
    challenges.ended(session, 1)
    assert await challenges.find(session.id) is None
    areas.clock.pass_by(LIFETIME_US / SECOND - 1)
    await challenges.purge(areas.clock())
    assert await challenges.find(session.id) is None


async def test_what_a_result_writes(areas: Areas, listener: FakeListener) -> None:
    """A result with a session stores it, one that ends a session deletes it, and any other one writes nothing."""
    session = session_of(a_login(listener))
    challenges = Challenges(areas.store, areas.vault, areas.clock)
    keep = challenges.keep(SecondFactorResult(Reason.ASKED, session=session))
    assert keep is not None
    await areas.store.write(keep)
    assert (await in_store(areas, session)).question == session.question
    end = challenges.keep(SecondFactorResult(Reason.NONE, over=session.id))
    assert end is not None
    await areas.store.write(end)
    assert await areas.store.read(lambda tx: read(tx, session.id)) is None
    assert challenges.keep(SecondFactorResult(Reason.DENIED)) is None
