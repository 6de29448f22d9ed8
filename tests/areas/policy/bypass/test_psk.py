"""Tests of pre-shared keys of stations: their form, the attribute of each product, and where a key never appears."""

import threading
from functools import partial
from hashlib import pbkdf2_hmac
from typing import Any

import pytest
import trio
from pydantic import ValidationError

from sallyport.areas.domains.domain import Mode
from sallyport.areas.login.login import Login, Verdict
from sallyport.areas.login.rows import is_stored
from sallyport.areas.policy.bypass import service
from sallyport.areas.policy.bypass.bodies import AddBypassStation
from sallyport.areas.policy.bypass.psk import KeyAttributes
from sallyport.areas.policy.bypass.service import IDENTITY
from sallyport.areas.policy.bypass.station import StationChange
from sallyport.areas.policy.roles.role import ReplySet
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.base.errors import Conflict, Invalid, SecretError
from sallyport.base.tags import of_store
from sallyport.radius.attributes import VENDOR_SPECIFIC, pull_attributes, pull_vendor_attributes
from sallyport.radius.salted import Hiding
from sallyport.store.sealed import rows_of, sealed_of
from tests.areas import Areas
from tests.areas.login.conftest import FakeListener
from tests.areas.policy.bypass.test_service import MAC, body
from tests.packets import attributes, pap

KEY = b"correct horse battery"
HEX = b"0123456789abcdef" * 4
WIRELESS = body(port=19) + attributes(CALLED_STATION_ID=b"00-11-22-33-44-55:staff")


async def answered(listener: FakeListener, client: str = "", request_body: bytes = WIRELESS) -> Login:
    """Decide a request of the station behind a client with a product."""
    areas = listener.areas
    address = f"192.0.2.{100 + len(client)}"
    sender = areas.clients.find((address, 1)) or await areas.client(f"{address}/32", product=client)
    login = listener.login(pap(MAC, MAC, request_body), sender)
    assert (await listener.decide(login)).applied is Verdict.ACCEPT
    return login


def keys(login: Login) -> dict[tuple[int, int], list[bytes]]:
    """Return the values in the keys of a login by vendor and type."""
    found: dict[tuple[int, int], list[bytes]] = {}
    for kind, value in pull_attributes(memoryview(login.found.keys)):
        vendor, parts = pull_vendor_attributes(value) if kind == VENDOR_SPECIFIC else (0, [(kind, value)])
        for number, octets in parts:
            found.setdefault((vendor, number), []).append(bytes(octets))
    return found


def revealed(login: Login, value: bytes) -> bytes:
    """Decrypt a salted value, as the access point does."""
    return Hiding(login.arrival.client.secret, login.arrival.request.authenticator).reveal(value)


@pytest.mark.parametrize("key", [KEY, HEX, b"8 octets", b"x" * 63], ids=["words", "hex", "shortest", "longest"])
@pytest.mark.parametrize("product", ["", "hostapd", "Ubiquiti UniFi", "Cisco Meraki"])
async def test_tunnel_password(listener: FakeListener, product: str, key: bytes) -> None:
    """hostapd, and products on it, get a salted Tunnel-Password with a tag of 0. Each answer has another salt."""
    await listener.areas.bypass.put(listener.areas.domain, [StationChange(MAC, psk=key)])
    login = await answered(listener, product)
    ((place, (value,)),) = keys(login).items()
    assert (place, value[0]) == ((0, 69), 0)
    assert revealed(login, value[1:]) == key
    assert not login.found.keys_in_clear


async def test_aruba(listener: FakeListener) -> None:
    """Aruba gets a salted Aruba-MPSK-Passphrase, without a tag."""
    await listener.areas.bypass.put(listener.areas.domain, [StationChange(MAC, psk=KEY)])
    login = await answered(listener, "Aruba Wireless")
    ((place, (value,)),) = keys(login).items()
    assert (place, revealed(login, value)) == ((14823, 44), KEY)


@pytest.mark.parametrize(("key", "mode"), [(KEY, b"psk-mode=ascii"), (HEX, b"psk-mode=hex")], ids=["words", "hex"])
@pytest.mark.parametrize("product", ["Cisco WLC", "Cisco Catalyst 9800"])
async def test_cisco(listener: FakeListener, product: str, key: bytes, mode: bytes) -> None:
    """Cisco gets two Cisco-AVPair in clear."""
    await listener.areas.bypass.put(listener.areas.domain, [StationChange(MAC, psk=key)])
    login = await answered(listener, product)
    assert keys(login) == {(9, 1): [mode, b"psk=" + key]}
    assert login.found.keys_in_clear


async def test_ruckus(listener: FakeListener) -> None:
    """Ruckus gets the key of the SSID. Without an SSID in the request, there is none."""
    await listener.areas.bypass.put(listener.areas.domain, [StationChange(MAC, psk=KEY)])
    login = await answered(listener, "Ruckus")
    assert keys(login) == {(25053, 142): [pbkdf2_hmac("sha1", KEY, b"staff", 4096, 32)]}
    assert keys(await answered(listener, "Ruckus", body(port=19))) == {}
    await listener.areas.bypass.put(listener.areas.domain, [StationChange(MAC, psk=HEX)])
    assert keys(await answered(listener, "Ruckus")) == {(25053, 142): [bytes.fromhex(HEX.decode())]}


async def test_a_key_for_an_ssid_is_derived_once(listener: FakeListener, monkeypatch: pytest.MonkeyPatch) -> None:
    """A passphrase takes 2 ms, so it is hashed in a thread, and the result is kept."""
    areas, derived = listener.areas, list[str]()

    def derive(key: bytes, name: str) -> bytes:
        assert threading.current_thread() is not threading.main_thread()
        derived.append(name)
        return key[:4] * 8

    monkeypatch.setattr(service, "derived_pairwise_key", derive)
    await areas.bypass.put(areas.domain, [StationChange(MAC, psk=KEY)])
    for _ in range(2):
        assert keys(await answered(listener, "Ruckus")) == {(25053, 142): [KEY[:4] * 8]}
    other = body(port=19) + attributes(CALLED_STATION_ID=b"00-11-22-33-44-55:guests")
    assert keys(await answered(listener, "Ruckus", other)) != {}
    assert derived == ["staff", "guests"]


@pytest.mark.parametrize("change", ["blocked", "removed", "other key"])
async def test_a_change_while_a_key_is_derived(
    listener: FakeListener, monkeypatch: pytest.MonkeyPatch, change: str
) -> None:
    """The list and the rules after the wait decide. A key that has changed is not given."""
    areas, going, go_on = listener.areas, trio.Event(), trio.Event()
    derive = areas.bypass.derived_attributes

    async def slow(*given: Any) -> KeyAttributes:
        going.set()
        await go_on.wait()
        return await derive(*given)

    monkeypatch.setattr(areas.bypass, "derived_attributes", slow)
    await areas.bypass.put(areas.domain, [StationChange(MAC, psk=KEY)])
    await areas.domains.set_mode([areas.domain], Mode.ENFORCE)
    client = await areas.client("192.0.2.9/32", product="Ruckus")
    login, found = listener.login(pap(MAC, MAC, WIRELESS), client), list[Verdict | None]()

    async def decide() -> None:
        found.append((await listener.decide(login)).decision)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(decide)
        await going.wait()
        if change == "blocked":
            await areas.rules.add(areas.domain, RuleFields(name="r", action="block", kinds=["station"]))
        elif change == "removed":
            await areas.bypass.delete(areas.domain, [MAC])
        else:
            await areas.bypass.put(areas.domain, [StationChange(MAC, psk=b"another passphrase")])
        go_on.set()
    assert found == [Verdict.ACCEPT if change == "other key" else Verdict.REJECT]
    assert keys(login) == {}


async def test_mikrotik(listener: FakeListener) -> None:
    """MikroTik gets an attribute of its own."""
    await listener.areas.bypass.put(listener.areas.domain, [StationChange(MAC, psk=KEY)])
    assert keys(await answered(listener, "MikroTik RouterOS")) == {(14988, 16): [KEY]}


async def test_no_key(listener: FakeListener) -> None:
    """A switch gets no key, and neither does a station without one, or whose key was removed."""
    areas = listener.areas
    await areas.bypass.put(areas.domain, [StationChange(MAC, psk=KEY)])
    assert keys(await answered(listener, request_body=body())) == {}
    await areas.bypass.put(areas.domain, [StationChange(MAC, "printer")])
    assert keys(await answered(listener)) != {}, "a change without a key keeps the key"
    await areas.bypass.put(areas.domain, [StationChange(MAC, psk=b"")])
    assert keys(await answered(listener)) == {}


@pytest.mark.parametrize("key", ["short", "x" * 64, "g" * 64, "0" * 65, "k\u00e4se" * 4, "tab\tin the key"])
def test_an_invalid_key(key: str) -> None:
    """A key that is too short or too long, or that has other characters, is refused. The error does not repeat it."""
    with pytest.raises(ValidationError) as refused:
        AddBypassStation.model_validate({"orgId": 1, "tenantId": 1, "domainId": 1, "station": MAC, "psk": key})
    (error,) = refused.value.errors()
    assert error["loc"] == ("psk",)
    assert key not in str(error["msg"])


async def test_a_key_is_sealed_and_never_shown(listener: FakeListener) -> None:
    """The store has the key only sealed. The audit trail, events, stored answers, lists and reprs do not have it, also
    if the attribute of the product has the key in clear."""
    areas = listener.areas
    change = StationChange(MAC, psk=KEY)
    await areas.bypass.put(areas.domain, [change])
    for product in ("", "Cisco WLC", "Ruckus"):
        login = await answered(listener, product)
        assert KEY not in login.attributes and not login.attributes
    (column,) = [each for each in areas.app.areas.sealed if each.column == "psk"]
    (row,) = await areas.store.read(partial(rows_of, column, None))  # as a rotation of the master key reads it
    sealed = sealed_of(row)
    assert sealed and KEY not in sealed
    assert column.identity_of(row) == IDENTITY.format(areas.domain, MAC)
    assert areas.vault.open(sealed, column.identity_of(row)) == KEY
    texts = await areas.store.read(lambda tx: tx.rows("select changes from audit_trail"))
    rows, _ = await areas.bypass.page(areas.domain, "", offset=0, limit=1)
    shown = f"{texts} {rows} {change} {areas.bypass.entry(areas.domain, MAC, 1)}"
    assert KEY.decode() not in shown and "psk" in shown and rows[0].has_psk == 1
    with pytest.raises(SecretError):
        areas.vault.open(sealed, IDENTITY.format(areas.domain, "000000000001"))


async def test_an_answer_with_a_key_in_clear_is_not_stored(listener: FakeListener) -> None:
    """The answers for retransmissions after a restart contain no key in clear."""
    await listener.areas.bypass.put(listener.areas.domain, [StationChange(MAC, psk=KEY)])
    assert not is_stored(await answered(listener, "Cisco WLC"))
    assert is_stored(await answered(listener, "Aruba Wireless"))


async def test_the_role_of_an_entry(listener: FakeListener) -> None:
    """The role of an entry replaces that of a rule, and its VLAN replaces that of the role. A role that an entry uses
    is not removed, and a role that the domain does not have is refused."""
    areas = listener.areas
    roles = areas.app.roles.service
    await roles.set(areas.domain, "Things", ReplySet(vlan="20"))
    await areas.rules.add(
        areas.domain,
        RuleFields.model_validate({"name": "r", "action": "allow", "kinds": ["station"], "vlan": "1"}),
    )
    with pytest.raises(Invalid) as refused:
        await areas.bypass.put(areas.domain, [StationChange(MAC, role="thngs")])
    assert [each.field for each in refused.value.errors] == ["role"]
    for vlan, sent in (("", b"20"), ("30", b"30")):
        await areas.bypass.put(areas.domain, [StationChange(MAC, vlan=vlan, role="things")])
        login = await answered(listener)
        assert [value for kind, value in pull_attributes(memoryview(login.attributes)) if kind == 81] == [sent]
        assert login.role is not None and login.role.name.casefold() == "things"
    with pytest.raises(Conflict, match="1 station of MAC bypass"):
        await roles.remove(areas.domain, "things")
    await areas.bypass.put(areas.domain, [StationChange(MAC, role="")])
    await roles.remove(areas.domain, "things")


async def test_tags(areas: Areas) -> None:
    """Tags replace those with the same keys, `KEY=` removes one, and an empty list removes all. A part of a tag finds
    the station."""
    kept = []
    for tags in (("site=Berlin", "owner=it"), ("owner=Facilities",), ("site=",), None, ()):
        await areas.bypass.put(areas.domain, [StationChange(MAC, tags=tags)])
        (row,), _ = await areas.bypass.page(areas.domain, "", offset=0, limit=1)
        kept.append(of_store(row.tags))
    assert kept == [
        ("owner=it", "site=Berlin"),
        ("owner=Facilities", "site=Berlin"),
        ("owner=Facilities",),
        ("owner=Facilities",),
        (),
    ]
    await areas.bypass.put(areas.domain, [StationChange("000000000001", tags=("site=Bonn",))])
    rows, total = await areas.bypass.page(areas.domain, "SITE=bonn", offset=0, limit=2)
    assert ([row.station for row in rows], total) == (["000000000001"], 1)
