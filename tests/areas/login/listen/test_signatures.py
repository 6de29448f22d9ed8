"""Tests of unsigned requests, and of the settings that a RADIUS client latches."""

import pytest

from sallyport.areas.clients.client import CHECK, Client
from sallyport.radius.attributes import push_attribute
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.areas import Areas
from tests.areas.login.listen.conftest import Wire
from tests.packets import access_request, accounting, attributes, chap, pap, status_server

PROXIED = push_attribute(33, b"state")
SWITCH = attributes(NAS_IDENTIFIER=b"switch-1", CALLING_STATION_ID=b"02-01")


async def client(wire: Wire, network: str, **settings: str) -> tuple[str, int]:
    """Add a RADIUS client that is named after its network. Return its socket address."""
    await wire.areas.client(network, **settings)
    return network.partition("/")[0], 40000


def known(wire: Wire, source: tuple[str, int]) -> Client:
    """Return the present state of the client."""
    found = wire.areas.clients.table.find(source[0])
    assert found is not None
    return found


async def devices(wire: Wire) -> list[str]:
    """Return the device names in the inventory, with the stations of each device."""
    await wire.areas.devices.flush()
    sql = "select device_name as n from devices union all select station from stations order by 1"
    return await wire.areas.store.read(lambda tx: tx.all(lambda n: n, sql))


# --- sightings ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("datagram", "registers"),
    [
        (pap("ann", "hello", SWITCH), True),
        (pap("ann", "wrong", SWITCH), True),
        (pap("nobody@nowhere", "wrong", SWITCH), True),
        (chap("ann", "wrong"), True),
        (access_request(SWITCH), True),
        (pap("ann", "hello", SWITCH, signed=False), True),
        (pap("ann", "wrong", SWITCH, signed=False), False),
        (pap("nobody", "hello", SWITCH, signed=False), False),
        (access_request(SWITCH, signed=False), False),
        (chap("ann", "wrong", signed=False), False),
    ],
)
async def test_what_registers_a_device(wire: Wire, datagram: bytes, registers: bool) -> None:
    """A signed request registers its device, however the login ends.

    An unsigned request registers it only after a right password. Until then the sender is counted as unverified.
    """
    await wire.ask(datagram)
    assert bool(await devices(wire)) is registers
    assert [(each.host, each.reason) for each in wire.senders.all()] == (
        [] if registers else [("192.0.2.1", "unverified")]
    )


async def test_an_unproven_request_leaves_no_count(wire: Wire) -> None:
    """An unproven request is not counted for a known device and does not update its station."""
    await wire.ask(pap("ann", "hello", SWITCH, signed=False))
    other = attributes(NAS_IDENTIFIER=b"switch-1", CALLING_STATION_ID=b"02-02")
    await wire.ask(pap("ann", "wrong", other, identifier=1, signed=False))
    assert await devices(wire) == ["02-01", "switch-1"]
    assert await wire.areas.store.read(lambda tx: tx.value(int, "select request_count from devices")) == 1


async def test_unverified_senders_are_bounded(wire: Wire) -> None:
    """A flood of guessed passwords from a range fills a table of fixed size, but adds nothing to the inventory."""
    await wire.areas.client("10.0.0.0/8")
    for number in range(150):
        await wire.ask(pap("ann", "wrong", signed=False), source=(f"10.0.0.{number}", 1))
    senders = wire.senders.all()
    assert (len(senders), senders[0].host, senders[-1].host) == (100, "10.0.0.149", "10.0.0.50")
    assert await devices(wire) == []


# --- dropped and accepted requests --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("required", "limit", "plain", "proxied"),
    [
        ("yes", "no", "unsigned", "unsigned"),
        ("yes", "yes", "unsigned", "unsigned"),
        ("no", "yes", "", "proxy_state"),
        ("no", "no", "", ""),
        ("auto", "yes", "", "proxy_state"),
        ("auto", "auto", "", ""),
    ],
)
async def test_the_settings_refuse_unsigned_requests(
    wire: Wire, required: str, limit: str, plain: str, proxied: str
) -> None:
    """Unsigned requests are dropped as configured, and so are unsigned requests with Proxy-State.

    Signed requests are accepted.
    """
    source = await client(wire, "192.0.2.0/24", require_message_authenticator=required, limit_proxy_state=limit)
    source = ("192.0.2.77", source[1])
    for number, (body, reason) in enumerate(((PROXIED, proxied), (b"", plain))):
        datagram = pap("ann", "hello", body, identifier=number, signed=False)
        if reason:
            before = wire.dropped(reason)
            wire.put(datagram, source=source)
            await wire.silence()
            assert wire.dropped(reason) == before + 1
        else:
            assert await wire.ask(datagram, source=source) == ACCESS_ACCEPT
    for number, body in ((7, PROXIED), (8, b"")):
        assert await wire.ask(pap("ann", "hello", body, identifier=number), source=source) == ACCESS_ACCEPT


async def test_accounting_needs_no_signature(wire: Wire) -> None:
    """Accounting is accepted whatever the client's settings are, because its authenticator proves the sender."""
    source = await client(wire, "192.0.2.2/32", require_message_authenticator="yes", limit_proxy_state="yes")
    assert await wire.ask(accounting(PROXIED), source=source, acct=True) == 5


# --- latches ------------------------------------------------------------------------------------------------------


async def test_a_signed_request_latches_at_once(wire: Wire) -> None:
    """After a signed request, an unsigned request in the same wake-up is dropped.

    Both latches are stored and reported as events.
    """
    source = await client(wire, "192.0.2.2/32")
    for number, user in enumerate(("ann", "nobody")):
        await wire.ask(
            pap(user, "x", identifier=100 + number), source=("192.0.2.1", 1)
        )  # so that both users are in memory
    signed, unsigned = pap("ann", "hello"), pap("ann", "hello", identifier=1, signed=False)
    wire.put(signed, unsigned, source=source)
    assert (await wire.take())[0][:2] == bytes((ACCESS_ACCEPT, 0))
    await wire.silence()
    assert wire.dropped("unsigned") == 1
    assert [what for name, what in wire.learned if name == "192.0.2.2/32"] == [
        "signed_since", "proxy_state_limited_since",
    ]  # fmt: skip
    await wire.areas.clients.latches.store()
    later = Areas(wire.areas.store, wire.areas.clock)
    await later.configuration.reload()
    kept = later.clients.table.find(source[0])
    assert kept is not None
    assert (kept.signature_required, kept.proxy_state_limited) == (True, True)


@pytest.mark.parametrize(
    ("datagram", "signature", "limit"),
    [
        (pap("ann", "hello"), True, True),
        (pap("ann", "wrong"), True, True),
        (pap("ann", "hello", PROXIED), True, True),
        (chap("nobody", "x"), True, True),
        (pap("ann", "hello", signed=False), False, True),
        (chap("ann", "hello", signed=False), False, False),
        (pap("ann", "hello", PROXIED, signed=False), False, False),
        (pap("ann", "wrong", signed=False), False, False),
        (access_request(signed=False), False, False),
        (access_request(attributes(USER_NAME=b"ann", EAP_MESSAGE=b"\2\1\0\5\1")), False, True),
        (status_server(), False, False),
    ],
)
async def test_latches_of_a_single_address(wire: Wire, datagram: bytes, signature: bool, limit: bool) -> None:
    """A signed Access-Request without EAP latches the signature.

    A signed request also limits unsigned Proxy-State, and so does an unsigned request with a right password and without
    Proxy-State. Nothing is latched by a wrong unsigned password, by unsigned CHAP (which needs no shared secret), or by
    Status-Server.
    """
    source = await client(wire, "192.0.2.2/32")
    before = known(wire, source)
    await wire.ask(datagram, source=source)
    assert (before.signature_required, before.proxy_state_limited) == (signature, limit)
    wanted = [("signed_since", signature), ("proxy_state_limited_since", limit)]
    assert [what for _, what in wire.learned] == [what for what, latched in wanted if latched]


@pytest.mark.parametrize("mark", ["NAS_IDENTIFIER", "CONNECT_INFO"])
@pytest.mark.parametrize("signed", [True, False])
async def test_a_check_latches_nothing(wire: Wire, signed: bool, mark: str) -> None:
    """A successful login of `sallyport check` latches nothing, whatever NAS-Identifier it has.

    A client that has latched refuses it like any other request.
    """
    source = await client(wire, "192.0.2.2/32")
    check = attributes(**{mark: CHECK})
    assert await wire.ask(pap("ann", "hello", check, signed=signed), source=source) == ACCESS_ACCEPT
    assert await wire.ask(pap("ann", "wrong", check, identifier=1, signed=signed), source=source) == ACCESS_REJECT
    assert wire.learned == []
    datagram = pap("ann", "hello", PROXIED, identifier=2, signed=False)
    assert await wire.ask(datagram, source=source) == ACCESS_ACCEPT
    await wire.ask(pap("ann", "hello", identifier=3), source=source)
    for number, body in ((4, check), (5, check + PROXIED)):
        wire.put(pap("ann", "hello", body, identifier=number, signed=False), source=source)
    await wire.silence()
    assert wire.dropped("unsigned") == 2


@pytest.mark.parametrize("network", ["192.0.2.4/31", "10.0.0.0/8"])
async def test_a_range_never_latches(wire: Wire, network: str) -> None:
    """A client with a range never latches, because one address proves nothing about the others."""
    source = await client(wire, network)
    for number in range(3):
        await wire.ask(pap("ann", "hello", identifier=number), source=source)
    assert await wire.ask(pap("ann", "hello", PROXIED, identifier=9, signed=False), source=source) == ACCESS_ACCEPT
    assert wire.learned == []


@pytest.mark.parametrize("setting", ["yes", "no"])
async def test_a_fixed_setting_is_not_latched(wire: Wire, setting: str) -> None:
    """Requests do not change the settings yes and no."""
    source = await client(wire, "192.0.2.2/32", require_message_authenticator=setting, limit_proxy_state=setting)
    await wire.ask(pap("ann", "hello"), source=source)
    assert wire.learned == []
    assert known(wire, source).signature_required is (setting == "yes")


async def test_a_client_latches_once(wire: Wire) -> None:
    """Ten signed requests in one wake-up cause one event for each latch."""
    source = await client(wire, "192.0.2.2/32")
    wire.put(*(pap("ann", "hello", identifier=number) for number in range(10)), source=source)
    for _ in range(10):
        assert (await wire.take())[0][0] == ACCESS_ACCEPT
    await wire.silence()
    assert sorted(wire.learned) == [("192.0.2.2/32", "proxy_state_limited_since"), ("192.0.2.2/32", "signed_since")]


async def test_an_unlatched_client_may_be_unsigned_again(wire: Wire) -> None:
    """After an unlatch unsigned requests are accepted until the next signed one."""
    source = await client(wire, "192.0.2.2/32")
    unsigned = [pap("ann", "hello", identifier=number, signed=False) for number in range(3)]
    await wire.ask(pap("ann", "hello", identifier=99), source=source)
    await wire.areas.clients.latches.store()
    wire.put(unsigned[0], source=source)
    await wire.silence()
    await wire.areas.clients.latches.unlatch(known(wire, source))
    assert await wire.ask(unsigned[1], source=source) == ACCESS_ACCEPT
    assert await wire.ask(pap("ann", "wrong", identifier=98), source=source) == ACCESS_REJECT
    wire.put(unsigned[2], source=source)
    await wire.silence()
    assert wire.dropped("unsigned") == 2
