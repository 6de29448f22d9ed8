"""Tests of the addresses to which connections are allowed, and of name look-ups."""

import errno
import resource
import socket
from collections.abc import Sequence
from ipaddress import ip_address, ip_network
from threading import Event

import pytest
import trio
import trio.testing
from structlog.testing import capture_logs

from sallyport.outgoing.egress import AT_ONCE, DENIED_HOSTS, MAX_ADDRESSES, Egress, Sockets
from sallyport.outgoing.errors import AddressNotAllowed, ProviderError
from sallyport.outgoing.pool import Pool
from sallyport.outgoing.tls import client_context
from sallyport.settings.values import ANYWHERE, EGRESS_DEFAULT
from tests.outgoing.test_pool import OK, answering, request


class Silent:
    """A DNS whose answers for `hostile.example` wait for the event `answers`. Other names are answered at once."""

    def __init__(self) -> None:
        self.answers = Event()
        self.asked = 0

    def look_up(self, host: str, port: int, kind: socket.SocketKind) -> Sequence[str]:
        """Return one address for each name."""
        self.asked += 1
        if host.endswith("hostile.example"):
            self.answers.wait(30)
        return ["192.0.2.7"]


async def test_unanswered_look_ups_delay_no_other_tenant() -> None:
    """Unanswered look-ups of one tenant, however many are waiting or cancelled, do not delay another tenant's look-up.

    They delay neither the use of an address nor other work in threads.
    """
    dns = Silent()
    hostile = Egress(ANYWHERE, dns.look_up)
    other = hostile.for_tenant()
    async with trio.open_nursery() as nursery:
        for number in range(100):
            nursery.start_soon(hostile.resolve, f"h{number}.hostile.example", 443)
        await trio.testing.wait_all_tasks_blocked()
        with trio.move_on_after(0.01):
            await hostile.resolve("one-more.hostile.example", 443)
        with trio.fail_after(10):
            assert await other.resolve("mfa.example", 443) == ["192.0.2.7"]
            assert await hostile.resolve("2001:db8::7", 443) == ["2001:db8::7"]
            assert await trio.to_thread.run_sync(lambda: "as the store") == "as the store"
            assert dns.asked == AT_ONCE + 1
        nursery.cancel_scope.cancel()
    dns.answers.set()


async def test_only_the_first_addresses_of_a_host_are_used() -> None:
    """Only the first addresses of a name are used, because its owner may give it thousands of addresses."""
    many = [f"198.51.{number >> 8}.{number & 255}" for number in range(4000)]
    found = await Egress(ANYWHERE, lambda *_: many).resolve("many.example", 443)
    assert found == many[:MAX_ADDRESSES]


# --- the default ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "address",
    ["192.0.2.1", "10.0.0.1", "192.168.1.1", "fd12::1", "2001:db8::1", "::ffff:198.51.100.1", "64:ff9b::c633:6401"],
)
def test_default_allows_other_machines(address: str) -> None:
    """Public and private addresses of other machines are allowed by default."""
    assert Egress().allows(address)


@pytest.mark.parametrize(
    "address",
    [
        pytest.param("127.0.0.1", id="loopback"),
        pytest.param("127.9.9.9", id="loopback-other"),
        pytest.param("::1", id="loopback-v6"),
        pytest.param("0.0.0.0", id="unspecified"),
        pytest.param("0.1.2.3", id="this-network"),
        pytest.param("::", id="unspecified-v6"),
        pytest.param("::7f00:1", id="compatible"),
        pytest.param("::ffff:127.0.0.1", id="mapped"),
        pytest.param("::ffff:0.0.0.0", id="mapped-unspecified"),
        pytest.param("169.254.1.1", id="link-local"),
        pytest.param("fe80::1", id="link-local-v6"),
        pytest.param("fe80::1%lo", id="link-local-scoped"),
        pytest.param("169.254.169.254", id="metadata"),
        pytest.param("fd00:ec2::254", id="metadata-aws-v6"),
        pytest.param("fd20:ce::254", id="metadata-google-v6"),
        pytest.param("100.100.100.200", id="metadata-alibaba"),
        pytest.param("168.63.129.16", id="metadata-azure"),
        pytest.param("192.0.0.192", id="metadata-oracle"),
        pytest.param("::ffff:100.100.100.200", id="metadata-mapped"),
        pytest.param("2002:a9fe:a9fe::1", id="metadata-6to4"),
        pytest.param("2002:7f00:1::", id="loopback-6to4"),
        pytest.param("64:ff9b::a9fe:a9fe", id="metadata-nat64"),
        pytest.param("64:ff9b::7f00:1", id="loopback-nat64"),
        pytest.param("64:ff9b:1::a9fe:a9fe", id="metadata-nat64-local-use"),
        pytest.param("64:ff9b:1:a9fe:a9:fe00::", id="metadata-nat64-local-use-48"),
        pytest.param("2001:0:7f00:1::1", id="teredo"),
        pytest.param("255.255.255.255", id="broadcast"),
        pytest.param("224.0.0.1", id="multicast"),
        pytest.param("rubbish", id="no-address"),
    ],
)
def test_default_refuses_this_machine_and_metadata(address: str) -> None:
    """Loopback, unspecified, link-local and metadata addresses are refused by default, in every IPv6 notation."""
    assert not Egress().allows(address)


@pytest.mark.parametrize("form", ["{}", "::ffff:{}"])
def test_default_refuses_the_addresses_of_this_machine(form: str) -> None:
    """The addresses of this machine's interfaces are refused by default."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as udp:
        try:
            udp.connect(("192.0.2.77", 9))
        except OSError:
            pytest.skip("this machine has no route")
        own = udp.getsockname()[0]
    assert not Egress().allows(form.format(own))
    assert Egress([EGRESS_DEFAULT, ip_network(own)]).allows(form.format(own))


def test_networks_are_an_allow_list() -> None:
    """If the setting does not contain `default`, only the listed networks are allowed."""
    egress = Egress([ip_network("192.0.2.0/24"), ip_network("2001:db8::/32")])
    assert egress.allows("192.0.2.7")
    assert egress.allows("::ffff:192.0.2.7")
    assert egress.allows("2001:db8::7")
    assert not egress.allows("198.51.100.1")
    assert not egress.allows("127.0.0.1")
    assert not Egress([]).allows("192.0.2.7")


def test_default_is_a_member_of_the_list() -> None:
    """`default, 127.0.0.1/32` allows that loopback address in addition to everything that `default` allows."""
    egress = Egress([EGRESS_DEFAULT, ip_network("127.0.0.1/32")]).for_tenant()
    assert egress.allows("127.0.0.1")
    assert egress.allows("198.51.100.1")
    assert not egress.allows("127.0.0.2")
    assert not egress.allows("169.254.169.254")


@pytest.mark.parametrize("address", ["127.0.0.1", "::1", "169.254.169.254", "0.0.0.0"])
def test_anywhere_has_no_exception(address: str) -> None:
    """The directory agent may also connect to its own machine, because an admin configures it."""
    assert Egress(ANYWHERE).allows(address)


async def test_a_message_to_a_tenant_has_no_address() -> None:
    """The message to the tenant is `address not allowed`.

    The log and the advice name the networks that an admin can add.
    """
    egress = Egress(look_up=lambda _host, _port, _kind: ["127.0.0.5", "::1"])
    with capture_logs() as logged, pytest.raises(AddressNotAllowed) as refused:
        await egress.resolve("ldap.corp.example", 389)
    assert str(refused.value) == "address not allowed"
    assert [(each["event"], each["add"]) for each in logged] == [("egress_denied", "127.0.0.5/32, ::1/128")]
    assert egress.advice() == [
        "ldap.corp.example: address not allowed; to allow it, add 127.0.0.5/32, ::1/128 to the setting egress, "
        "and reload the service"
    ]


async def test_a_denied_host_is_logged_once() -> None:
    """A repeated attempt is not logged again. The list of denied hosts is bounded."""
    egress = Egress()
    with capture_logs() as logged:
        for number in range(2 * (DENIED_HOSTS + 10)):
            with pytest.raises(AddressNotAllowed):
                await egress.resolve(str(ip_address("127.0.0.0") + number // 2), 389)
    assert len(logged) == DENIED_HOSTS + 10
    assert len(egress.advice()) == DENIED_HOSTS


async def test_unreadable_interfaces_allow_no_address() -> None:
    """A refused address raises a ProviderError."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
        with pytest.raises(ProviderError, match="routing table"):
            await Egress().resolve("198.51.100.1", 389)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_too_many_sockets_are_refused() -> None:
    """The number of a tenant's open sockets is limited. When a socket is closed, another one can be opened."""
    sockets = Sockets(2)
    first, second = (sockets.open("127.0.0.1", socket.SOCK_DGRAM) for _ in range(2))
    with pytest.raises(OSError, match="too many connections") as refused:
        sockets.open("::1", socket.SOCK_STREAM)
    assert refused.value.errno == errno.EMFILE
    first.close()
    third = sockets.open("::1", socket.SOCK_STREAM)
    assert (third.family, third.type) == (socket.AF_INET6, socket.SOCK_STREAM)
    second.close()
    third.close()


async def test_each_tenant_has_its_own_limit_of_sockets() -> None:
    """The open sockets of one tenant are not counted for another tenant."""
    egress = Egress(ANYWHERE)
    assert egress.for_tenant().sockets is not egress.sockets


async def test_idle_connections_make_room() -> None:
    """If the limit is reached and a connection to another server is needed, an idle connection is closed."""
    egress = Egress(ANYWHERE)
    egress.sockets = Sockets(1)
    async with (
        answering(OK) as one,
        answering(OK) as other,
        Pool(egress, client_context()) as first,
        Pool(egress, client_context()) as second,
    ):
        for pool, peer in ((first, one), (second, other), (first, one)):
            assert (await pool.fetch(request(peer.port))).body == b"ok"
        with trio.fail_after(10):
            await one.ended[0].wait()
            await other.ended[0].wait()
        assert (one.connections, other.connections) == (2, 1)
        assert len(egress.sockets.idle) == 1
