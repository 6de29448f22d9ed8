"""Tests of large bodies from several tenants."""

import time
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from threading import Event
from typing import Annotated

import httpx
import trio
from pydantic import AfterValidator
from trio.testing import wait_all_tasks_blocked

from sallyport.web.app import create_app
from sallyport.web.bodies import Body
from sallyport.web.handling import LARGE
from sallyport.web.operation import Operations
from sallyport.web.scope import MAX_LARGE_BODIES, OPERATORS, Caller, Gate
from tests.web.sample import SampleOwners, SampleTokens, client_of

PATH = "/api/v1/sample/large"


class TwoTenants(SampleTokens):
    """Tokens of two tenants: the operator's token belongs to another tenant than the admin's."""

    async def authenticate(self, token: str, source: str = "") -> Caller:
        caller = await super().authenticate(token, source)
        return replace(caller, tenant_id=8) if caller.name == "operator" else caller


async def test_large_bodies_are_parsed_one_at_a_time_and_by_tenant_in_turn() -> None:
    """A tenant that sends many large bodies delays only itself. Small bodies do not wait."""
    parsed, begun, resume = list[str](), trio.Event(), Event()

    def parse(value: str) -> str:
        parsed.append(value[:1])
        if len(value) > 1:
            trio.from_thread.run_sync(begun.set)
            resume.wait(10)
        return value

    class Large(Body):
        text: Annotated[str, AfterValidator(parse)]

    operations = Operations("Large", Gate(TwoTenants(), SampleOwners()))

    @operations.post(PATH, roles=OPERATORS)
    async def large(body: Large, caller: Caller) -> str:
        """Take a large body."""
        return ""

    app = create_app([operations], version="1", observe=lambda *_: None, not_ready=lambda: [], metrics=None)
    async with client_of(app) as many, client_of(app, "operator") as one, trio.open_nursery() as nursery:

        async def send(client: httpx.AsyncClient, text: str) -> None:
            answer = await client.post(PATH, json={"text": text})
            assert answer.status_code == 200

        for client, letter in ((many, "a"), (many, "b"), (many, "c"), (one, "x")):
            nursery.start_soon(send, client, letter * LARGE)
            await wait_all_tasks_blocked()
        await begun.wait()
        await send(one, "s")
        assert parsed == ["a", "s"]
        resume.set()
    assert parsed == ["a", "s", "b", "x", "c"]


async def test_a_large_body_waits_for_that_of_another_tenant() -> None:
    """One slot is for all tenants."""
    gate, begun = Gate(TwoTenants(), SampleOwners()), list[int]()

    async def parse(tenant_id: int) -> None:
        async with gate.large_bodies.slot(tenant_id):
            begun.append(tenant_id)

    async with trio.open_nursery() as nursery, gate.large_bodies.slot(7):
        nursery.start_soon(parse, 8)
        await wait_all_tasks_blocked()
        assert begun == []
    assert begun == [8]


async def test_the_next_large_body_waits_as_long_as_the_last_one_took() -> None:
    """Between two bodies, the interpreter lock is free for logins."""
    times = list[float]()

    def parse(value: str) -> str:
        times.append(time.monotonic())
        time.sleep(0.02)
        times.append(time.monotonic())
        return value

    class Large(Body):
        text: Annotated[str, AfterValidator(parse)]

    operations = Operations("Large", Gate(TwoTenants(), SampleOwners()))

    @operations.post(PATH, roles=OPERATORS)
    async def large(body: Large, caller: Caller) -> str:
        """Take a large body."""
        return ""

    app = create_app([operations], version="1", observe=lambda *_: None, not_ready=lambda: [], metrics=None)
    async with client_of(app) as client, trio.open_nursery() as nursery:
        for _ in range(2):
            nursery.start_soon(partial(client.post, PATH, json={"text": "x" * LARGE}))
    first_began, first_ended, second_began, _ = times
    assert second_began - first_ended >= first_ended - first_began


async def test_a_tenant_has_a_limited_number_of_large_bodies_in_memory() -> None:
    """A large body beyond the limit is refused before it is read.

    Small bodies are accepted, and so are large bodies of other tenants.
    """
    gate = Gate(TwoTenants(), SampleOwners())
    operations = Operations("Large", gate)

    class Large(Body):
        """A body with a text of any length."""

        text: str

    @operations.post(PATH, roles=OPERATORS)
    async def large(body: Large, caller: Caller) -> str:
        """Take a large body."""
        return ""

    app = create_app([operations], version="1", observe=lambda *_: None, not_ready=lambda: [], metrics=None)
    async with client_of(app) as many, client_of(app, "operator") as one:

        async def status(client: httpx.AsyncClient, text: str) -> int:
            return (await client.post(PATH, json={"text": text})).status_code

        with ExitStack() as held:
            for _ in range(MAX_LARGE_BODIES):
                held.enter_context(gate.large_body(await TwoTenants().authenticate("sp_admin")))
            assert await status(many, "m" * LARGE) == 429
            assert (await status(many, "m"), await status(one, "o" * LARGE)) == (200, 200)
        assert await status(many, "m" * LARGE) == 200
