"""The limit of a tenant's connections."""

import errno
import socket

import pytest
import trio

from sallyport.base.setting_values import ANYWHERE
from sallyport.outgoing.egress import Egress, Sockets
from sallyport.outgoing.pool import Pool
from sallyport.outgoing.tls import client_context
from tests.outgoing.test_pool import OK, answering, request


def test_too_many_sockets_are_refused() -> None:
    """A tenant has so many sockets at a time. One that is closed makes room."""
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


async def test_tenants_have_limits_of_their_own() -> None:
    """What one tenant has open leaves another its own."""
    egress = Egress(ANYWHERE)
    assert egress.for_tenant().sockets is not egress.sockets


async def test_idle_connections_make_room() -> None:
    """A connection that is kept for the next request is closed where another server needs its place."""
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
