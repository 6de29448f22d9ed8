"""Tests of the limit for large answers in memory."""

import trio
import trio.testing
from starlette.responses import Response
from starlette.types import Message

from sallyport.web.content import LARGE, MAX_OCTETS_SENT, LargeAnswers


class Client:
    """A client that reads the body of its answer only after `reads` is set."""

    def __init__(self) -> None:
        self.reads = trio.Event()
        self.status = 0

    async def take(self, answers: LargeAnswers, tenant_id: int, size: int) -> None:
        """Receive an answer with a body of `size` octets."""
        await answers.counted(Response(bytes(size)), tenant_id)(
            {"type": "http", "path": "/"}, self._receive, self._send
        )

    async def _receive(self) -> Message:
        raise AssertionError("an answer is not received")

    async def _send(self, message: Message) -> None:
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif self.status == 200:
            await self.reads.wait()


async def test_a_tenant_has_a_limit_of_unread_large_answers() -> None:
    """Beyond the limit, the next large answer of the tenant has the status 429.

    Small answers are sent, and so are the answers of other tenants.
    """
    answers, slow = LargeAnswers(), [Client() for _ in range(2)]
    async with trio.open_nursery() as nursery:
        for client in slow:
            nursery.start_soon(client.take, answers, 1, MAX_OCTETS_SENT // 2)
        await trio.testing.wait_all_tasks_blocked()
        statuses = []
        for tenant_id, size in ((1, LARGE + 1), (1, LARGE), (2, MAX_OCTETS_SENT + 1)):
            client = Client()
            client.reads.set()
            await client.take(answers, tenant_id, size)
            statuses.append(client.status)
        for client in slow:
            client.reads.set()
    assert statuses == [429, 200, 200]
    assert +answers.octets == {}


async def test_a_cancelled_answer_is_no_longer_counted() -> None:
    """If the client disconnects before it has read the answer, the memory is released."""
    answers = LargeAnswers()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(Client().take, answers, 1, MAX_OCTETS_SENT)
        await trio.testing.wait_all_tasks_blocked()
        assert answers.octets[1] == MAX_OCTETS_SENT
        nursery.cancel_scope.cancel()
    assert +answers.octets == {}
