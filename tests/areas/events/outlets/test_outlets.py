"""Tests of outlets: events are sent to each kind of outlet.

While an outlet is unavailable its events wait on disk, and are sent later.
"""

import json
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, closing, suppress
from pathlib import Path

import pytest
import trio
from prometheus_client import CollectorRegistry
from structlog.testing import capture_logs

from sallyport.areas.events.outlets.log import LoginLog
from sallyport.areas.events.outlets.service import BATCH, Outlets
from sallyport.areas.events.outlets.transport import Target, parse_target
from sallyport.base.log import set_level
from sallyport.metrics import OutletMetrics
from sallyport.outgoing.egress import Egress
from sallyport.settings.values import ANYWHERE
from sallyport.store import audit
from sallyport.store.model import Engine, Tx
from tests.areas import running_engine
from tests.peers.authority import Authority
from tests.ports import free_port
from tests.waiting import until

WAIT_S = 30.0


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[Engine]:
    """An empty store."""
    async with running_engine(tmp_path) as store:
        yield store


async def decide(store: Engine, *users: str, backwards: bool = False) -> None:
    """Write one event for each user in one transaction. backwards: whether the event that is written first has the
    latest time."""
    columns = (
        "at", "domain_id", "user_name", "ip_address", "client_ip", "device_id", "device_name", "station", "method",
        "factor", "decision", "applied_decision", "would_have_been", "reason", "latency_us",
    )  # fmt: skip

    def work(tx: Tx) -> None:
        rest = ("a", "b", 1, "d", "s", "pap", "local", "accept", "accept", "", "", 1)
        tx.insert("events", columns, [(-at if backwards else at, 1, user, *rest) for at, user in enumerate(users)])

    await store.write(work)


@asynccontextmanager
async def carried(store: Engine, *targets: Target, in_log: bool = False) -> AsyncIterator[OutletMetrics]:
    """Run outlets until the block ends. Their positions are stored before the block begins."""
    set_level("info")  # a command that ran earlier in this process may have set another one
    metrics = OutletMetrics(CollectorRegistry())
    outlets = Outlets(
        store,
        targets,
        Egress(ANYWHERE),
        metrics,
        changes=True,
        has_gaps=False,
        domain=lambda _id: "corp",
        pseudonyms=lambda: None,
    )
    async with trio.open_nursery() as nursery:
        nursery.start_soon(outlets.run)
        if in_log:
            await nursery.start(LoginLog(store, lambda _id: "corp", lambda: 0).run)
        await until(lambda: len(metrics.waiting) == 2 * len(targets))
        yield metrics
        nursery.cancel_scope.cancel()


def has_lines(path: Path, count: int) -> bool:
    """Return whether a file has `count` lines."""
    return path.exists() and path.read_bytes().count(b"\n") >= count


async def positions(store: Engine, total: int) -> bool:
    """Return whether the positions of the outlets add up to the given total."""
    return await store.read(lambda tx: tx.value(int, "select sum(last_id) from outlet_places")) == total


async def lines_of(path: Path, count: int) -> list[str]:
    """Wait until a file has `count` JSON lines. Return their users."""
    await until(lambda: has_lines(path, count))
    return [json.loads(line)["user"] for line in path.read_text().splitlines()]


async def test_a_file_gets_a_line_for_each_event(store: Engine, tmp_path: Path) -> None:
    """The file has the events since the start of the outlet in order, and has mode 0600.

    A rotated file is created again.
    """
    await decide(store, "before")
    path = tmp_path / "logins.jsonl"
    async with carried(store, parse_target(f"file://{path}")):
        await decide(store, "ann", "bob")
        assert await lines_of(path, 2) == ["ann", "bob"]
        assert path.stat().st_mode & 0o777 == 0o600
        path.rename(tmp_path / "old")
        await decide(store, "carl")
        assert await lines_of(path, 1) == ["carl"]


async def test_a_batch_is_sent_in_order_of_time(store: Engine, tmp_path: Path) -> None:
    """Events are sent in order of time, whatever order they were written in.

    Each batch of a long queue is sent once and completely.
    """
    path = tmp_path / "logins.jsonl"
    users = [f"user{number}" for number in range(2 * BATCH)]
    async with carried(store, parse_target(f"file://{path}")):
        await decide(store, *users, backwards=True)
        assert await lines_of(path, len(users)) == [*users[:BATCH][::-1], *users[BATCH:][::-1]]


async def test_log_lines_are_in_order_of_time(store: Engine) -> None:
    """Two decisions of one transaction are logged once each, in order of time."""
    with capture_logs() as logged:
        async with carried(store, in_log=True):
            await decide(store, "late", "early", backwards=True)
            await until(lambda: len(logged) == 2)
            await decide(store, "next")
            await until(lambda: len(logged) == 3)
    assert [line["user"] for line in logged] == ["early", "late", "next"]


async def change(store: Engine, *targets: str) -> None:
    """Write one entry of the audit trail for each target."""
    await store.write(
        lambda tx: [audit.record(tx, "user.update", at=1, tenant_id=0, target=target) for target in targets]
    )


async def test_the_audit_trail_is_sent(store: Engine, tmp_path: Path) -> None:
    """Each entry since the start of the outlet is sent once, together with the logins.

    The audit trail has its own position, which survives a restart.
    """
    await change(store, "before")
    path = tmp_path / "siem.jsonl"
    target = parse_target(f"file://{path}")

    async def records(count: int) -> list[tuple[str, str]]:
        await until(lambda: has_lines(path, count))
        lines = [json.loads(line) for line in path.read_text().splitlines()]
        return sorted((line["type"], line.get("user") or line["target"]) for line in lines)

    async with carried(store, target):
        await change(store, "user 1 ann")
        await decide(store, "ann")
        assert await records(2) == [("audit", "user 1 ann"), ("login", "ann")]
        await until(lambda: positions(store, 3))
    await change(store, *(f"user {number}" for number in range(300)))
    async with carried(store, target):
        assert len(await records(302)) == 302


async def test_events_before_a_restart_are_sent_after_it(store: Engine, tmp_path: Path) -> None:
    """The position is in the store. After a restart the outlet continues there and repeats no event."""
    path = tmp_path / "logins.jsonl"
    target = parse_target(f"file://{path}")
    async with carried(store, target):
        await decide(store, "ann")
        await lines_of(path, 1)
        await until(lambda: positions(store, 1))
    await decide(store, *(f"user{number}" for number in range(500)))
    async with carried(store, target):
        assert await lines_of(path, 501) == ["ann", *(f"user{number}" for number in range(500))]


async def test_events_wait_while_the_siem_is_unavailable(store: Engine) -> None:
    """No event is lost if the SIEM refuses connections or closes a connection."""
    port = free_port()
    target = parse_target(f"tcp://127.0.0.1:{port}")
    async with carried(store, target) as metrics:
        await decide(store, "ann", "bob")
        await until(lambda: metrics.waiting.get((target.url, "login")) == 2)
        (listener,) = await trio.open_tcp_listeners(port, host="127.0.0.1")
        async with listener:
            assert await users_over(listener, 2) == ["ann", "bob"]
            await decide(store, "carl")  # the first connection is closed
            assert await users_over(listener, 1) == ["carl"]


async def test_events_deleted_before_they_were_sent_are_logged(store: Engine, tmp_path: Path) -> None:
    """If retention deletes events before they are sent, the log has the number of these events.

    The deleted events may lie between other events.
    """
    path = tmp_path / "away" / "logins.jsonl"
    with capture_logs() as logged:
        async with carried(store, parse_target(f"file://{path}")):
            await decide(store, *(f"user{number}" for number in range(6)))
            await store.write(
                lambda tx: tx.execute("delete from events where user_name in ('user0', 'user2', 'user3')")
            )
            path.parent.mkdir()
            assert await lines_of(path, 3) == ["user1", "user4", "user5"]
    assert [each["count"] for each in logged if each["event"] == "outlet_events_lost"] == [3]


async def users_over(listener: trio.SocketListener, count: int) -> list[str]:
    """Read `count` JSON lines from one connection. Return their users."""
    with trio.fail_after(WAIT_S):
        async with await listener.accept() as stream:
            octets = b""
            while octets.count(b"\n") < count:
                octets += await stream.receive_some()
    return [json.loads(line)["user"] for line in octets.splitlines()]


async def test_events_are_sent_to_a_unix_socket(store: Engine, tmp_path: Path) -> None:
    """A collector on the same machine may listen on a stream socket."""
    path = tmp_path / "siem.sock"
    sock = trio.socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    with closing(sock):
        await sock.bind(str(path))
        sock.listen(1)
        async with carried(store, parse_target(f"unix://{path}")):
            await decide(store, "ann")
            assert await users_over(trio.SocketListener(sock), 1) == ["ann"]


async def test_a_datagram_has_one_message(store: Engine) -> None:
    """A datagram has no length and no terminator (RFC 5426)."""
    sock = trio.socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
    with closing(sock):
        await sock.bind(("127.0.0.1", 0))
        url = f"syslog+udp://127.0.0.1:{sock.getsockname()[1]}"
        async with carried(store, parse_target(url)) as metrics:
            await decide(store, "ann", "bob")
            with trio.fail_after(WAIT_S):
                messages = [await sock.recv(4096), await sock.recv(4096)]
            await until(lambda: metrics.sent.cell(url, "login").count == 2)
    assert [b'user="ann"' in messages[0], b'user="bob"' in messages[1]] == [True, True]
    assert all(message.startswith(b"<86>1 ") for message in messages)


@pytest.fixture
def authority(tmp_path: Path) -> Iterator[tuple[Path, ssl.SSLContext]]:
    """The authority that issued the SIEM's certificate, and the SIEM's TLS context."""
    made = Authority("the SIEM's authority")
    (tmp_path / "ca.pem").write_text(made.pem)
    (tmp_path / "siem.pem").write_bytes(made.key_for("localhost", "127.0.0.1"))
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "siem.pem")
    yield tmp_path / "ca.pem", context


@pytest.mark.parametrize("trusted", [True, False])
async def test_syslog_over_tls_has_lengths_and_needs_trust(
    store: Engine, authority: tuple[Path, ssl.SSLContext], trusted: bool
) -> None:
    """A message starts with its length (RFC 5425). A server without a trusted certificate receives nothing."""
    ca, context = authority
    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    query = f"?ca={ca}" if trusted else ""
    async with listener, carried(store, parse_target(f"syslog+tls://127.0.0.1:{port}{query}")):
        await decide(store, "ann")
        with trio.fail_after(WAIT_S):
            plain = await listener.accept()
            async with plain:
                stream = trio.SSLStream(plain, context, server_side=True, https_compatible=True)
                if trusted:
                    octets = bytes(await stream.receive_some())
                    length, _, rest = octets.partition(b" ")
                    while len(rest) < int(length):
                        rest += await stream.receive_some()
                    assert b'user="ann"' in rest
                else:
                    with suppress(trio.BrokenResourceError):
                        assert await stream.receive_some() == b""


async def test_a_symbolic_link_is_not_followed(store: Engine, tmp_path: Path) -> None:
    """If the file is replaced by a symbolic link, the events wait and are not written."""
    secret = tmp_path / "somebody's file"
    secret.write_text("")
    (tmp_path / "logins.jsonl").symlink_to(secret)
    with capture_logs() as logged:
        async with carried(store, parse_target(f"file://{tmp_path / 'logins.jsonl'}")):
            await decide(store, "ann")
            await until(lambda: bool(logged))
    assert [line["event"] for line in logged] == ["outlet_unreachable"]
    assert secret.read_text() == ""
