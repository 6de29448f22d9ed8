"""Actions that take longer than a second: the page with the progress, and the answer afterwards."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
from starlette.responses import Response

from sallyport.console.running import FIRST_S, KEPT_S, MAX_OF_SESSION, Running, Work
from sallyport.nodes.answers import OwnAnswers
from sallyport.web.content import MAX_OCTETS_SENT, LargeAnswers
from tests.console.visitor import Site, Visitor, text_of

OWN, OTHER, TENANT = 1, 2, 7


@pytest.fixture
async def running(nursery: trio.Nursery) -> Running:
    """Return the slow actions of a process, which run."""
    running = Running(OwnAnswers(), LargeAnswers())
    await nursery.start(running.run)
    return running


def after(seconds: float) -> Work:
    """Return work that takes some time."""

    async def work() -> Response:
        await trio.sleep(seconds)
        return Response(str(seconds))

    return work


async def test_fast_work_is_answered_at_once(running: Running, autojump_clock: trio.abc.Clock) -> None:
    """Work that is complete in time needs no further request."""
    assert isinstance(await running.start(OWN, TENANT, after(FIRST_S / 2)), Response)


async def test_slow_work_is_answered_later_and_once(running: Running, autojump_clock: trio.abc.Clock) -> None:
    """The answer is kept for its own session until it is fetched."""
    number = await running.start(OWN, TENANT, after(3 * FIRST_S))
    assert isinstance(number, str)
    with pytest.raises(LookupError):
        await running.result(OTHER, number)
    assert await running.result(OWN, number) is None
    await trio.sleep(2 * FIRST_S)
    answer = await running.result(OWN, number)
    assert answer is not None and answer.status_code == 200
    with pytest.raises(LookupError):
        await running.result(OWN, number)


async def test_an_unread_answer_is_forgotten(running: Running, autojump_clock: trio.abc.Clock) -> None:
    """A complete answer is deleted after some time."""
    number = await running.start(OWN, TENANT, after(2 * FIRST_S))
    assert isinstance(number, str)
    await trio.sleep(FIRST_S + KEPT_S + 1)
    await running.start(OTHER, TENANT, after(0))
    with pytest.raises(LookupError):
        await running.result(OWN, number)


async def test_work_over_the_limit_is_done_in_its_request(running: Running, autojump_clock: trio.abc.Clock) -> None:
    """A session with many slow actions waits for the next one, and other sessions do not."""
    for _ in range(MAX_OF_SESSION):
        assert isinstance(await running.start(OWN, TENANT, after(1000)), str)
    assert isinstance(await running.start(OWN, TENANT, after(3 * FIRST_S)), Response)
    assert isinstance(await running.start(OTHER, TENANT, after(3 * FIRST_S)), str)


async def test_kept_answers_count_as_large_answers(nursery: trio.Nursery, autojump_clock: trio.abc.Clock) -> None:
    """The answers that a tenant does not fetch have a limit of octets. They count until they are fetched or
    forgotten, also if there is no further action."""
    large = LargeAnswers()
    running = Running(OwnAnswers(), large)
    await nursery.start(running.run)

    async def half() -> Response:
        await trio.sleep(2 * FIRST_S)
        return Response(bytes(MAX_OCTETS_SENT // 2 + 1))

    numbers = [await running.start(session, TENANT, half) for session in range(3)]
    await trio.sleep(3 * FIRST_S)
    assert large.octets[TENANT] == MAX_OCTETS_SENT // 2 + 1
    first, second = [await running.result(session, str(numbers[session])) for session in range(2)]
    assert first is not None and second is not None
    assert sorted([first.status_code, second.status_code]) == [200, 429]
    await trio.sleep(2 * KEPT_S)
    assert large.octets[TENANT] == 0


async def test_an_error_does_not_end_other_work(running: Running, autojump_clock: trio.abc.Clock) -> None:
    """An unexpected error becomes an answer."""

    async def broken() -> Response:
        raise ValueError("unexpected")

    number = await running.start(OTHER, TENANT, after(2 * FIRST_S))
    assert isinstance(number, str)
    answer = await running.start(OWN, TENANT, broken)
    assert isinstance(answer, Response) and answer.status_code == 500
    await trio.sleep(2 * FIRST_S)
    assert await running.result(OTHER, number) is not None


@asynccontextmanager
async def slow_directory(answers: trio.Event) -> AsyncIterator[str]:
    """Yield the URL of a directory that closes each connection when it may answer."""

    async def serve(stream: trio.SocketStream) -> None:
        await answers.wait()
        await stream.aclose()

    async with trio.open_nursery() as nursery:
        (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        yield f"ldap://127.0.0.1:{listener.socket.getsockname()[1]}"
        nursery.cancel_scope.cancel()


async def test_a_slow_form_leads_to_a_page_that_refreshes_itself(site: Site, admin: Visitor) -> None:
    """The browser gets the answer to the form, with its submitted values, as soon as it is complete."""
    answers = trio.Event()
    async with trio.open_nursery() as nursery, slow_directory(answers) as url:
        await nursery.start(site.running.run)
        fields = {"directoryName": "AD", "appUrl": url, "baseDN": "dc=x", "do": "test"}
        sent = await admin.send("/directories/add?domain=1", fields)
        address = sent.headers["location"]
        assert sent.status_code == 303 and address.startswith("/directories/add?domain=1&running=form-")
        waiting = await admin.get(address)
        assert waiting.headers["refresh"]
        assert "shows the result as soon as it is there" in text_of(waiting)
        async with site.visitor() as other:
            await other.sign_in(await site.token())
            assert (await other.get(address)).headers["location"] == "/directories/add?domain=1"
        answers.set()
        while "refresh" in (shown := await admin.get(address)).headers:
            await trio.sleep(0.01)
        assert "Nothing is saved" in text_of(shown) and 'value="AD"' in shown.text
        lost = await admin.get(address)
        assert lost.headers["location"] == "/directories/add?domain=1"
        assert "not kept any longer" in text_of(await admin.get("/directories/add?domain=1"))
        nursery.cancel_scope.cancel()


async def test_a_page_with_an_unknown_action_is_made_again(site: Site, admin: Visitor) -> None:
    """An address that names an action of another process shows the page, and its links do not name the action."""
    page = await admin.get("/domains/1/preview?running=page-1234&days=7")
    assert page.status_code == 200
    assert "running=" not in page.text
