"""Readings of Okta: complete readings and changes, with an API token or as a service application."""

from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
import trio
from joserfc.jwk import RSAKey

from sallyport.areas.directory.entry.entry import Gone, Problem, Unchanged
from sallyport.areas.directory.entry.status import Status
from sallyport.areas.directory.reading import ReadError
from sallyport.areas.directory.reading.okta import OktaReader, OktaSource
from sallyport.areas.mfa.contract import Behaviour
from sallyport.base.clock import now_us
from sallyport.base.secret import Secret
from sallyport.outgoing.http import HttpFactory
from sallyport.settings.values import ANYWHERE
from tests.areas import trust
from tests.areas.directory.reading.okta_server import CLIENT_ID, TOKEN, OktaServer
from tests.areas.directory.reading.readings import Reading, collect
from tests.areas.mfa.web import serving
from tests.outgoing import costly_keys

LONG_JWK = RSAKey.import_key(costly_keys.LONG_RSA).as_dict(private=True)
EARLY, LATE, LATER = "2026-01-01T08:00:00.000Z", "2026-01-02T08:00:00.000Z", "2026-01-03T08:00:00.000Z"


@pytest.fixture
async def okta() -> AsyncIterator[OktaServer]:
    """An organization with five users and two groups, and with the built-in group Everyone."""
    server = OktaServer()
    async with serving(server) as server.web:
        server.add_user("u1", "ann@corp.example", EARLY, email="ann@corp.example", firstName="Ann", costCenter="7",
                        mobilePhone=None, secretQuestion="no")  # fmt: skip
        for number, status in enumerate(("LOCKED_OUT", "SUSPENDED", "PASSWORD_EXPIRED", "STAGED"), start=2):
            server.add_user(f"u{number}", f"user{number}@corp.example", EARLY, status)
        server.add_user("u9", "left@corp.example", EARLY, "DEPROVISIONED")
        server.add_group("g0", "Everyone", EARLY, "u1", "u2", "u3", "u4", "u5", kind="BUILT_IN")
        server.add_group("g1", "vpn", EARLY, "u1", "u2", "u3")
        server.add_group("g2", "admins", EARLY, "u1")
        yield server


def source_of(server: OktaServer) -> OktaSource:
    """Return the organization as the source of a reading, with an API token."""
    return OktaSource(server.url, "", Secret(TOKEN.encode()))


async def read_from(source: OktaSource, cursor: str = "", *, full: bool = True) -> Reading:
    """Run one reading and return its result."""
    with trio.fail_after(60):
        return await collect(
            OktaReader(HttpFactory(egress=ANYWHERE, verify=trust()), now_us).read(source, cursor, full=full)
        )


async def test_a_complete_reading(okta: OktaServer) -> None:
    """The users and groups of all pages are read, and groups have their members. A deactivated user is left out.
    Everyone is not returned as a group.
    """
    reading = await read_from(source_of(okta))
    assert reading.complete
    ann = reading.people["ann@corp.example"]
    assert (ann.external_id, ann.dn) == ("u1", "id:u1")
    assert ann.attributes == {
        "login": ("ann@corp.example",),
        "mail": ("ann@corp.example",),
        "givenname": ("Ann",),
        "costcenter": ("7",),
    }
    assert [reading.people[f"user{number}@corp.example"].status for number in range(2, 6)] == [
        Status.LOCKED, Status.DISABLED, Status.ACTIVE, Status.DISABLED,
    ]  # fmt: skip
    assert "left@corp.example" not in reading.people
    assert {name: group.members for name, group in reading.groups.items()} == {
        "vpn": ("id:u1", "id:u2", "id:u3"),
        "admins": ("id:u1",),
    }


async def test_a_reading_of_changes(okta: OktaServer) -> None:
    """A reading of changes interprets objects that were updated later than five minutes before the last known update.
    It lists all others as unchanged, with their status, so that deleted users are missing. Deactivated
    users are returned as Gone.
    """
    okta.add_user("u6", "late@corp.example", LATE)
    okta.add_user("u7", "same@corp.example", "2026-01-02T07:55:00.000Z")
    before = await read_from(source_of(okta))
    okta.add_user("u2", "renamed@corp.example", LATER)
    okta.add_user("u5", "user5@corp.example", LATER, "DEPROVISIONED")
    okta.users = [user for user in okta.users if user["id"] != "u4"]
    okta.add_group("g2", "admins", LATER, "u1", "u2")
    okta.asked.clear()
    after = await read_from(source_of(okta), before.cursor, full=False)
    assert after.complete
    assert {name: person.external_id for name, person in after.people.items()} == {
        "renamed@corp.example": "u2",
        "late@corp.example": "u6",
    }
    assert [gone.external_id for gone in after.all(Gone)] == ["u5"]
    assert [(each.external_id, each.status) for each in after.all(Unchanged)] == [
        ("u1", Status.ACTIVE), ("u3", Status.DISABLED), ("u7", Status.ACTIVE), ("g1", None),
    ]  # fmt: skip
    assert {name: group.members for name, group in after.groups.items()} == {"admins": ("id:u1", "id:u2")}
    assert okta.asked == {"g2"}
    assert after.cursor == LATER.replace(".000Z", ".000000Z")


@pytest.mark.parametrize("cursor", ["", "rubbish", "[]"])
async def test_a_malformed_cursor_is_ignored(okta: OktaServer, cursor: str) -> None:
    """If the cursor is malformed, the reading is complete."""
    assert (await read_from(source_of(okta), cursor, full=False)).complete


@pytest.mark.parametrize("as_jwk", [True, False])
async def test_a_service_application_signs_for_its_token(okta: OktaServer, as_jwk: bool) -> None:
    """The reader signs the request for a token with the application's key, and reads with the token."""
    key = RSAKey.generate_key(2048, parameters={"kid": "of-the-tests"})
    okta.key = RSAKey.import_key(key.as_dict(private=False))
    octets = str(key.as_dict(private=True)).replace("'", '"').encode() if as_jwk else key.as_pem(private=True)
    source = replace(source_of(okta), client_id=CLIENT_ID, secret=Secret(octets))
    assert "ann@corp.example" in (await read_from(source)).people


@pytest.mark.parametrize(
    "secret",
    [
        b"not a key", b'{"kty": "RSA"}', b"{", b"", b"\xff", costly_keys.ENCRYPTED["PKCS#8"].encode(),
        costly_keys.pem(costly_keys.LONG_RSA).encode(), str(LONG_JWK).replace("'", '"').encode(),
    ],
    ids=["text", "part of a JWK", "no JSON", "empty", "no UTF-8", "encrypted", "RSA of 6144 bits", "long JWK"],
)  # fmt: skip
async def test_an_unusable_private_key_is_reported(okta: OktaServer, secret: bytes) -> None:
    """If the secret is not a usable private key, the reading ends with an error."""
    source = replace(source_of(okta), client_id=CLIENT_ID, secret=Secret(secret))
    with pytest.raises(ReadError, match="the application's clientSecret must be "):
        await read_from(source)


async def test_a_rejected_api_token_is_reported(okta: OktaServer) -> None:
    with pytest.raises(ReadError, match="does not accept the credentials"):
        await read_from(replace(source_of(okta), secret=Secret(b"wrong")))


async def test_an_unusable_entry_is_reported(okta: OktaServer) -> None:
    """A user without a login and a group without a name are returned as Problems."""
    okta.users.append({"id": "u7", "status": "ACTIVE", "profile": {"login": "\n"}})
    okta.groups.append({"id": "g7", "type": "OKTA_GROUP", "profile": None})
    reading = await read_from(source_of(okta))
    assert {problem.external_id for problem in reading.all(Problem)} == {"u7", "g7"}


@pytest.mark.parametrize(
    "behaviour", [Behaviour.RUBBISH, Behaviour.EMPTY, Behaviour.REDIRECT, Behaviour.FAIL, Behaviour.BROKEN_OFF]
)
async def test_a_failing_service_ends_the_reading(
    okta: OktaServer, behaviour: Behaviour, autojump_clock: trio.testing.MockClock
) -> None:
    """If the service fails in any way, the reading raises ReadError."""
    autojump_clock.autojump_threshold = 0.05
    assert okta.web is not None
    okta.web.behave(behaviour)
    with pytest.raises(ReadError):
        await read_from(source_of(okta))
