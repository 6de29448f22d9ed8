"""The bounded table of those who are not known or not proven."""

from sallyport.listen.commands import commands
from sallyport.listen.senders import Senders


def test_a_sender_is_counted() -> None:
    """How often, when first and last, and why its last datagram was of no use."""
    senders = Senders()
    for at, reason in ((10, "unknown_client"), (20, "malformed"), (30, "unverified")):
        senders.note("192.0.2.1", reason, at)
    (sender,) = senders.all()
    assert (sender.host, sender.packets, sender.first_at, sender.last_at, sender.reason) == (
        "192.0.2.1", 3, 10, 30, "unverified",
    )  # fmt: skip


def test_who_sent_last_comes_first() -> None:
    """An address that sends again moves to the front."""
    senders = Senders()
    for host in ("a", "b", "c", "a"):
        senders.note(host, "x", 0)
    assert [sender.host for sender in senders.all()] == ["a", "c", "b"]


def test_what_is_new_is_said_once() -> None:
    """A new address is news, and so is another reason; the same one again is not."""
    senders = Senders()
    assert [senders.note("a", reason, 0) for reason in ("x", "x", "y", "y", "x")] == [True, False, True, False, True]


def test_the_table_is_bounded() -> None:
    """The one that was silent longest makes room; who goes on sending keeps its count."""
    senders = Senders(max_senders=10)
    for number in range(1000):
        senders.note(str(number), "x", number)
        senders.note("loud", "x", number)
    found = senders.all()
    assert len(found) == 10
    assert (found[0].host, found[0].packets) == ("loud", 1000)
    assert [sender.host for sender in found[1:]] == [str(number) for number in range(999, 990, -1)]


async def test_the_command_line_sees_the_table() -> None:
    """listen.senders gives the addresses with times in ISO 8601."""
    senders = Senders()
    senders.note("192.0.2.1", "unknown_client", 1_767_225_600_000_000)
    time = "2026-01-01T00:00:00.000000Z"
    assert await commands(senders)["listen.senders"].run({}) == [
        {"address": "192.0.2.1", "packets": 1, "reason": "unknown_client", "first": time, "last": time}
    ]
