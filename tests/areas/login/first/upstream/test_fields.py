"""Tests of the configuration of home servers: fields that are stored, fields that are shown, and errors."""

import gc

import pytest
import trio

from sallyport.areas.domains.domain import FirstFactor
from sallyport.areas.login.first.upstream.checker import SILENCE
from sallyport.areas.login.first.upstream.pool import Question
from sallyport.areas.login.login import Reason
from sallyport.base.errors import Invalid
from tests.areas.login.first.upstream.conftest import Upstream
from tests.areas.login.first.upstream.home_server import PASSWORD, nothing
from tests.packets import pap

SERVER = {"host": "192.0.2.9", "secret": "x"}


async def test_the_shown_fields_have_no_secrets(upstream: Upstream) -> None:
    """All fields except the secrets are shown. Omitted fields are shown with their defaults."""
    await upstream.configure(upstream.first, loadBalance="true", responseWindowSeconds=5)
    shown = upstream.areas.first_settings.shown(upstream.areas.domain)["radius"]
    assert shown == {
        "servers": [{"host": "127.0.0.1", "port": upstream.first.port}],
        "responseWindowSeconds": 5.0,
        "loadBalance": True,
        "statusCheck": True,
        "requireMessageAuthenticator": True,
        "stripRealm": False,
        "codeDigits": 6,
        "namesInnerUser": False,
    }


@pytest.mark.parametrize(
    ("fields", "wrong"),
    [
        ({}, "radius.servers"),
        ({"servers": []}, "radius.servers"),
        ({"servers": [SERVER] * 9}, "radius.servers"),
        ({"servers": [{"host": "192.0.2.9"}]}, "radius.servers.0.secret"),
        ({"servers": [{**SERVER, "host": "a b"}]}, "radius.servers.0.host"),
        ({"servers": [{**SERVER, "port": 0}]}, "radius.servers.0.port"),
        ({"servers": [SERVER], "responseWindowSeconds": 0}, "radius.responseWindowSeconds"),
        ({"servers": [SERVER], "responseWindowSeconds": 61}, "radius.responseWindowSeconds"),
        ({"servers": [SERVER], "loadBalancing": True}, "radius.loadBalance"),
    ],
)
async def test_wrong_fields_are_named(upstream: Upstream, fields: dict[str, object], wrong: str) -> None:
    """The error names a wrong field, and nothing is changed."""
    domain = upstream.areas.domains.table.by_id[upstream.areas.domain]
    with pytest.raises(Invalid) as refused:
        await upstream.areas.first_settings.set(domain, FirstFactor.RADIUS, {"radius": fields})
    assert [each.field for each in refused.value.fields] == [wrong]
    assert (await upstream.ask(pap("ann", PASSWORD)))[0] == 2


async def test_the_steps_of_a_check(upstream: Upstream) -> None:
    """The steps of a check contain the server and its answer, or that it did not answer."""
    await upstream.configure(upstream.first, responseWindowSeconds=1, statusCheck=False)
    areas = upstream.areas
    domain = areas.domains.table.by_id[areas.domain]
    steps: list[str] = []
    for reply in (upstream.first.reply, nothing):
        upstream.first.reply = reply
        login = upstream.login(pap("ann", PASSWORD))
        with trio.fail_after(60):
            result = await areas.first.check(login, domain, lambda: False, steps.append)
    server = f"127.0.0.1:{upstream.first.port}"
    assert result.reason is Reason.FIRST_FACTOR_UNREACHABLE
    assert steps == [
        f"asks {server}",
        f"{server} answers Access-Accept",
        f"asks {server}",
        f"{server} is zombie",
        SILENCE,
    ]
    assert all("s3cret" not in step for step in steps)


async def test_a_server_without_an_address_is_named(upstream: Upstream) -> None:
    """If the name of a server cannot be resolved, the step shows that it has no address and does not call it alive."""
    areas, steps = upstream.areas, list[str]()
    domain = areas.domains.table.by_id[areas.domain]
    fields = {"servers": [{**SERVER, "host": "nowhere.invalid"}]}
    await areas.first_settings.set(domain, FirstFactor.RADIUS, {"radius": fields})
    domain = areas.domains.table.by_id[areas.domain]
    with trio.fail_after(30):
        await areas.first.check(upstream.login(pap("ann", PASSWORD)), domain, lambda: False, steps.append)
    assert any("nowhere.invalid" in step and "has no address" in step for step in steps), steps
    assert not any("alive" in step for step in steps), steps


async def test_a_login_that_is_cancelled_leaves_nothing(upstream: Upstream) -> None:
    """The identifier of a cancelled login is not used again for a while.

    A late answer with that identifier is dropped.
    """
    areas = upstream.areas
    domain = areas.domains.table.by_id[areas.domain]
    upstream.first.reply = nothing
    login = upstream.login(pap("ann", PASSWORD))
    with trio.move_on_after(0.2):
        await areas.first.check(login, domain, lambda: False)
    assert login.known.on_again is None
    assert len(upstream.first.received) <= 1


async def test_a_change_holds_for_the_next_login(upstream: Upstream) -> None:
    """A change applies to the next login. Pending logins are still answered by the previous servers."""
    upstream.first.reply = nothing
    old, new = pap("ann", PASSWORD), pap("bob", PASSWORD, identifier=1)
    upstream.wire.put(old)
    while not upstream.first.received:
        await trio.sleep(0.01)
    await upstream.configure(upstream.second)
    assert (await upstream.ask(new))[0] == 2
    await upstream.first.send(0, upstream.accepts(0))
    assert (await upstream.answer(old))[0] == 2
    assert (upstream.first.names, upstream.second.names) == ([b"ann"], [b"bob"])


async def test_logins_leave_no_cycles(upstream: Upstream) -> None:
    """A login leaves no reference cycles, because the service seldom runs the garbage collector."""
    await upstream.ask(pap("ann", PASSWORD))
    gc.collect()
    gc.disable()
    try:
        for number in range(1, 50):
            await upstream.ask(pap("ann", PASSWORD, identifier=number))
        kept = sum(isinstance(each, Question) for each in gc.get_objects())
    finally:
        gc.enable()
    assert kept == 0
