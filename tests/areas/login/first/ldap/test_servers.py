"""Tests of the servers of a directory: failover, connections and the service account."""

import os
import resource
from collections.abc import Iterator
from contextlib import contextmanager
from ipaddress import ip_network
from pathlib import Path

import pytest
import trio
import trio.testing

from sallyport.areas.login.login import Reason
from tests.areas.directory.reading.fake_directory import Manner, Person, directory
from tests.areas.login.first.ldap.checkers import asking, host

R = Reason
SERVICE = {"bindDN": "cn=service", "bindPassword": "service"}


@pytest.mark.parametrize("manner", [Manner.SILENT, Manner.HANGS_UP, Manner.NONSENSE])
async def test_the_next_server_is_asked(manner: Manner) -> None:
    """If the first server fails, the next one is asked.

    The failed server is skipped for a while, so that not every login has to wait for it.
    """
    async with directory(Person("ann")) as bad, directory(Person("ann")) as good:
        bad.manner = manner
        async with asking(servers=[bad.url, good.url], timeoutSeconds=9) as asked:
            for _ in range(3):
                assert await asked.bind("ann", "hello") is R.NONE
        assert bad.connections == 1
        assert len(good.binds) == 4  # one of them to search


async def test_a_server_that_is_busy_is_passed_over() -> None:
    """If a server answers a search with "busy", the next one is asked."""
    async with directory(Person("ann")) as busy, directory(Person("ann")) as good:
        busy.search_refusal = (51, "busy")
        async with asking(servers=[busy.url, good.url]) as asked:
            assert await asked.bind("ann", "hello") is R.NONE
        assert busy.binds == [""]


async def test_a_wrong_password_is_final() -> None:
    """After a wrong password no other server is asked, because it would count the failure again."""
    async with directory(Person("ann")) as first, directory(Person("ann")) as second:
        async with asking(servers=[first.url, second.url]) as asked:
            assert await asked.bind("ann", "wrong") is R.WRONG_PASSWORD
        assert second.connections == 0


@pytest.mark.parametrize("manner", [Manner.SILENT, Manner.HANGS_UP, Manner.NONSENSE])
async def test_no_server_answers(manner: Manner) -> None:
    """If no server answers within the time limit, the reason is that the directory is unreachable.

    When a server works again, the next login succeeds.
    """
    async with directory(Person("ann")) as server, asking(servers=[server.url], timeoutSeconds=2) as asked:
        server.manner = manner
        with trio.fail_after(20):
            assert await asked.bind("ann", "hello") is R.FIRST_FACTOR_UNREACHABLE
        server.manner = Manner.ANSWERS
        assert await asked.bind("ann", "hello") is R.NONE


async def test_a_hanging_directory_does_not_block_the_event_loop() -> None:
    """Many logins that wait for a silent directory do not block the event loop."""
    async with directory(Person("ann")) as server, asking(servers=[server.url], timeoutSeconds=30) as asked:
        server.manner = Manner.SILENT
        async with trio.open_nursery() as nursery:
            for _ in range(30):
                nursery.start_soon(asked.ldap.bind, "ann", "hello", lambda _step: None)
            longest = 0.0
            for _ in range(50):
                before = trio.current_time()
                await trio.sleep(0.02)
                longest = max(longest, trio.current_time() - before)
            nursery.cancel_scope.cancel()
        assert longest < 10
        assert server.connections > 0


async def test_a_cancelled_login_leaves_nothing_behind() -> None:
    """A login can be cancelled at any step. The directory can still be used for the next login."""
    async with directory(Person("ann")) as server, asking(servers=[server.url]) as asked:
        for step in range(40):
            with trio.CancelScope() as scope:
                async with trio.open_nursery() as nursery:
                    nursery.start_soon(asked.ldap.bind, "ann", "hello", lambda _step: None)
                    for _ in range(step):
                        await trio.lowlevel.checkpoint()
                    scope.cancel()
        assert await asked.bind("ann", "hello") is R.NONE


async def test_a_dead_kept_connection_is_noticed() -> None:
    """After a restart of the server, no login fails because its connection was closed."""
    async with directory(Person("ann")) as server, asking(servers=[server.url]) as asked:
        assert await asked.bind("ann", "hello") is R.NONE
        server.manner = Manner.HANGS_UP
        assert await asked.bind("ann", "hello") is R.FIRST_FACTOR_UNREACHABLE
        server.manner = Manner.ANSWERS
        assert await asked.bind("ann", "hello") is R.NONE


async def test_a_forgotten_connection_costs_no_login(mock_clock: trio.testing.MockClock) -> None:
    """If a firewall has forgotten the pooled connection, the search is repeated on a new one, and the login succeeds.
    The user's password is sent once, and the server is not skipped.
    """
    async with directory(Person("ann")) as server, asking(servers=[server.url], timeoutSeconds=9) as asked:
        assert await asked.bind("ann", "hello") is R.NONE
        server.forgotten = server.connections
        server.binds.clear()

        async def log_in() -> None:
            assert await asked.bind("ann", "hello") is R.NONE
            assert any("repeated on a new connection" in step for step in asked.steps), asked.steps

        async with trio.open_nursery() as nursery:
            nursery.start_soon(log_in)
            await server.ignored.wait()
            mock_clock.jump(4)  # longer than the wait for the pooled connection, shorter than the limit of the login
        assert server.binds == ["", server.people[0].dn]
        assert await asked.bind("ann", "hello") is R.NONE
        assert server.binds == ["", server.people[0].dn, server.people[0].dn]


async def test_an_idle_connection_is_not_kept_long(mock_clock: trio.testing.MockClock) -> None:
    """A connection that was idle for 30 seconds is not used again, because firewalls forget idle connections."""
    async with directory(Person("ann")) as server, asking(servers=[server.url]) as asked:
        assert await asked.bind("ann", "hello") is R.NONE
        assert server.connections == 2
        mock_clock.jump(29)
        assert await asked.bind("ann", "hello") is R.NONE
        assert server.connections == 3
        mock_clock.jump(30)
        assert await asked.bind("ann", "hello") is R.NONE
        assert server.connections == 5


@contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """Leave only this number of file descriptors free in this process until the block ends."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(
        resource.RLIMIT_NOFILE, (max(int(each.name) for each in Path("/proc/self/fd").iterdir()) + 40, hard)
    )
    taken: list[int] = []
    try:
        try:
            while True:
                taken.append(os.open("/dev/null", os.O_RDONLY))
        except OSError:
            for each in taken[len(taken) - count :]:
                os.close(each)
            del taken[len(taken) - count :]
        yield
    finally:
        for each in taken:
            os.close(each)
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize("count", [*range(1, 13), 30])
async def test_no_file_descriptors_are_left(count: int) -> None:
    """If there are too few file descriptors, only that login fails. The next one succeeds."""
    async with directory(Person("ann")) as server, asking(servers=[server.url]) as asked:
        assert await asked.bind("ann", "hello") is R.NONE
        with descriptors_left(count):
            starved = await asked.bind("ann", "hello")
        assert starved in (R.NONE, R.FIRST_FACTOR_UNREACHABLE) and (starved is R.NONE or count < 30)
        assert await asked.bind("ann", "hello") is R.NONE


async def test_a_refused_service_account_is_left_alone() -> None:
    """If the password of the service account is refused, it is not tried again at once, because the directory could
    lock the account."""
    async with directory(Person("ann")) as server:
        async with asking(servers=[server.url], bindDN="cn=service", bindPassword="outdated") as asked:
            for _ in range(5):
                assert await asked.bind("ann", "hello") is R.FIRST_FACTOR_UNREACHABLE
        assert server.binds == ["cn=service"]


async def test_a_forbidden_address_is_not_connected_to() -> None:
    """The setting `egress` also applies to directories."""
    async with directory(Person("ann")) as server:
        async with asking(host(egress=[ip_network("192.0.2.0/24")]), servers=[server.url]) as asked:
            assert await asked.bind("ann", "hello") is R.FIRST_FACTOR_UNREACHABLE
            assert any("address not allowed" in step for step in asked.steps)
        assert server.connections == 0


async def test_a_server_without_start_tls() -> None:
    """No password is sent to a server without StartTLS."""
    async with directory(Person("ann")) as server:
        async with asking(servers=[server.url], startTls=True) as asked:
            assert await asked.bind("ann", "hello") is R.FIRST_FACTOR_UNREACHABLE
            assert any("refuses StartTLS" in step for step in asked.steps)
        assert server.binds == []
