"""Tests of TLS to servers that a tenant configures."""

import ssl
from pathlib import Path

import pytest
import trio
import trio.testing

from sallyport.outgoing.tls import LazyContext, client_context, secured
from tests.areas.mfa.certificates import self_signed


def test_no_finite_field_diffie_hellman() -> None:
    """A server cannot choose a Diffie-Hellman prime, because a handshake with a prime of 9,900 bits took 2.4 s."""
    names = [each["name"] for each in client_context().get_ciphers()]
    assert names
    assert not [name for name in names if name.startswith(("DHE", "ADH"))]


def test_no_renegotiation() -> None:
    """A server cannot start another handshake, because it would run on the event loop."""
    assert client_context().options & ssl.OP_NO_RENEGOTIATION


async def test_a_handshake_runs_in_a_thread(tmp_path: Path) -> None:
    """The computation of a handshake waits for one of the tenant's threads. The event loop continues meanwhile."""
    server, chain = self_signed(tmp_path, "localhost")
    trusting, threads = client_context(chain.read_text()), trio.CapacityLimiter(1)
    ours, theirs = await _sockets()
    over = trio.Event()

    async def connect() -> None:
        await secured(ours, trusting, "localhost", threads)
        over.set()

    async with trio.open_nursery() as nursery:
        tls = trio.SSLStream(theirs, server, server_side=True)
        nursery.start_soon(tls.do_handshake)
        await threads.acquire_on_behalf_of("another handshake")
        nursery.start_soon(connect)
        await trio.testing.wait_all_tasks_blocked(0.01)
        assert threads.statistics().tasks_waiting == 1
        threads.release_on_behalf_of("another handshake")
        with trio.fail_after(10):
            await over.wait()
    await ours.aclose()
    await theirs.aclose()


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 400 Bad Request\r\n\r\n"], ids=["nothing", "plain text"])
async def test_a_server_without_tls_breaks_the_stream(answer: bytes) -> None:
    """If a server closes the connection or answers in plain text, the stream is broken."""
    ours, theirs = await _sockets()
    async with trio.open_nursery() as nursery:

        async def reply() -> None:
            await theirs.receive_some()
            if answer:
                await theirs.send_all(answer)
            await theirs.aclose()

        nursery.start_soon(reply)
        with pytest.raises(trio.BrokenResourceError) as broken, trio.fail_after(10):
            await secured(ours, client_context(), "localhost", trio.CapacityLimiter(1))
    assert isinstance(broken.value.__cause__, ssl.SSLError)
    await ours.aclose()


async def test_a_context_is_created_once() -> None:
    """Tasks that need the same TLS context at the same time share it."""
    made: list[ssl.SSLContext] = []

    def make() -> ssl.SSLContext:
        made.append(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT))
        return made[-1]

    context, found = LazyContext(make), list[ssl.SSLContext]()
    assert not made

    async def get() -> None:
        found.append(await context.get())

    async with trio.open_nursery() as nursery:
        nursery.start_soon(get)
        nursery.start_soon(get)
    assert found == [made[0], made[0]]


async def _sockets() -> tuple[trio.SocketStream, trio.SocketStream]:
    ours, theirs = trio.socket.socketpair()
    return trio.SocketStream(ours), trio.SocketStream(theirs)
