"""The way of a body from the connection to the app."""

import trio
import trio.testing

from sallyport.web.inbox import HELD, Inbox


async def test_pieces_are_joined_and_the_end_is_told(autojump_clock: trio.testing.MockClock) -> None:
    """Small pieces come out as one; after the end `receive` waits for the client to leave."""
    inbox = Inbox()
    for piece in (b"a", b"b"):
        await inbox.put({"type": "http.request", "body": piece, "more_body": True})
    await inbox.put({"type": "http.request", "body": b"", "more_body": False})
    assert await inbox.receive() == {"type": "http.request", "body": b"ab", "more_body": False}
    with trio.move_on_after(1) as waiting:
        await inbox.receive()
    assert waiting.cancelled_caught
    await inbox.put({"type": "http.disconnect"})
    assert await inbox.receive() == {"type": "http.disconnect"}


async def test_a_body_that_is_not_read_waits(autojump_clock: trio.testing.MockClock) -> None:
    """No more than the limit and one piece is held; reading lets the rest in."""
    inbox = Inbox()
    await inbox.put({"type": "http.request", "body": bytes(HELD + 1), "more_body": True})
    with trio.move_on_after(1) as waiting:
        await inbox.put({"type": "http.request", "body": b"x", "more_body": True})
    assert waiting.cancelled_caught
    async with trio.open_nursery() as nursery:
        nursery.start_soon(inbox.put, {"type": "http.request", "body": b"x", "more_body": False})
        await trio.testing.wait_all_tasks_blocked()
        await inbox.receive()
    assert await inbox.receive() == {"type": "http.request", "body": b"x", "more_body": False}


async def test_nothing_waits_for_an_app_that_has_ended(autojump_clock: trio.testing.MockClock) -> None:
    """Once the app has answered, the rest of the body and the disconnect are taken at once."""
    inbox = Inbox()
    await inbox.put({"type": "http.request", "body": bytes(HELD + 1), "more_body": True})
    async with trio.open_nursery() as nursery:
        nursery.start_soon(inbox.put, {"type": "http.request", "body": b"x", "more_body": True})
        await trio.testing.wait_all_tasks_blocked()
        inbox.close()
    with trio.fail_after(1):
        await inbox.put({"type": "http.request", "body": bytes(HELD + 1), "more_body": True})
        await inbox.put({"type": "http.disconnect"})
