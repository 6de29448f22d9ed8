"""Identity providers that are slow or down, while many people sign in."""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import httpx
import pytest
import trio

from sallyport.areas.signin.openid import SKEW_S, STARTED_S, OpenId, Started
from sallyport.base.clock import SECOND
from sallyport.outgoing.http import HttpFactory
from sallyport.outgoing.openid.client import AT_ONCE, TIMEOUT_S, ProviderDown
from sallyport.outgoing.pool import MAX_BODY
from sallyport.settings.identity_provider import IdentityProvider
from sallyport.settings.values import ANYWHERE
from tests.areas import SetClock
from tests.areas.mfa.web import Call, Reply
from tests.console.provider import CLIENT, SECRET, Provider, providing

ROLE = {"group": "netops", "role": "installation"}


class PatientFactory(HttpFactory):
    """A factory of clients that wait as long as the test runs."""

    def __call__(
        self, base_url: str, *, headers: Mapping[str, str] | None = None, timeout_s: float = 0, most: int = MAX_BODY
    ) -> httpx.AsyncClient:
        return super().__call__(base_url, headers=headers, timeout_s=600, most=most)


def open_id_of(providers: Mapping[str, Provider], clock: SetClock, directory: Path) -> OpenId:
    """Return the sign-in through these providers."""
    secret = directory / "secret"
    secret.write_text(SECRET)
    configured = {
        name: IdentityProvider.model_validate(
            {"issuer": each.issuer, "client_id": CLIENT, "client_secret_file": secret, "roles": [ROLE]}
        )
        for name, each in providers.items()
    }
    http = PatientFactory(egress=ANYWHERE)
    return OpenId(configured, http, lambda: "http://127.0.0.1:8080", clock)


async def returned(open_id: OpenId, provider: Provider, name: str, clock: SetClock) -> tuple[Started, dict[str, str]]:
    """Sign in at a provider. Return the sign-in that has begun, and the parameters with which the browser returns."""
    started = Started.new(name, "/", clock())
    back = await provider.visit(await open_id.address(started))
    return started, dict(parse_qsl(urlsplit(back).query))


@pytest.mark.parametrize(
    ("parts", "age_s", "is_read"),
    [
        (4, 0, True),
        (4, STARTED_S, True),
        (4, STARTED_S + 1, False),
        (4, -SKEW_S, True),
        (4, -SKEW_S - 1, False),
        (3, 0, False),
        (2, 0, False),
        (1, 0, False),
        (0, 0, False),
    ],
)
def test_a_cookie_is_whole_and_recent(clock: SetClock, parts: int, age_s: int, is_read: bool) -> None:
    """A sign-in ends after ten minutes. The clock of the node that finishes it may be a minute behind. A cookie that
    lacks a part is no sign-in."""
    started = Started.new("company", "/logins?user=a.b", clock())
    clock.pass_by(age_s)
    text = ".".join(started.text().split(".", 3)[:parts])
    assert Started.read(text, clock()) == (started if is_read else None)


async def test_a_provider_that_does_not_answer_in_time_is_not_tried_again_at_once(
    clock: SetClock, tmp_path: Path
) -> None:
    """All people that wait for the provider get the error at once. Otherwise 50 people would wait for minutes, one
    after the other."""

    async def time_out(call: Call) -> Reply:
        clock.pass_by(TIMEOUT_S)
        return Reply(503)

    async with providing(lambda: clock() // SECOND) as provider:
        assert provider.server
        provider.server.handler = time_out
        open_id = open_id_of({"company": provider}, clock, tmp_path)
        for _ in range(3):
            with pytest.raises(ProviderDown):
                await open_id.address(Started.new("company", "/", clock()))
        assert provider.server.requests == 1


async def test_a_clock_that_is_set_back_does_not_prolong_a_failure(clock: SetClock, tmp_path: Path) -> None:
    """If the clock was a day ahead when a provider failed, the provider is asked again after the clock is right."""

    async def fail(_call: Call) -> Reply:
        return Reply(503)

    async with providing(lambda: clock() // SECOND) as provider:
        assert provider.server
        handler, provider.server.handler = provider.server.handler, fail
        open_id = open_id_of({"company": provider}, clock, tmp_path)
        with pytest.raises(ProviderDown):
            await open_id.address(Started.new("company", "/", clock()))
        provider.server.handler = handler
        clock.pass_by(-86_400)
        assert await open_id.address(Started.new("company", "/", clock()))


async def test_a_slow_provider_does_not_delay_another(clock: SetClock, tmp_path: Path) -> None:
    """While as many codes as possible wait for one provider, a person signs in through another one."""
    resume, waiting = trio.Event(), list[Call]()
    finished = list[str]()
    async with (
        providing(lambda: clock() // SECOND) as slow,
        providing(lambda: clock() // SECOND) as other,
        trio.open_nursery() as nursery,
    ):
        assert slow.server

        async def wait(call: Call) -> Reply:
            if call.path == "/token":
                waiting.append(call)
                await resume.wait()
            return await slow.answer(call)

        slow.server.handler = wait
        open_id = open_id_of({"slow": slow, "other": other}, clock, tmp_path)

        async def sign_in(name: str, started: Started, answer: dict[str, str], source: str) -> None:
            await open_id.identity(started, answer, source)
            finished.append(name)

        for number in range(AT_ONCE):
            begun = await returned(open_id, slow, "slow", clock)
            nursery.start_soon(sign_in, "slow", *begun, f"192.0.2.{number}")
        while len(waiting) < AT_ONCE:
            await trio.sleep(0.01)
        with trio.fail_after(30):  # this ends the test if it fails
            await sign_in("other", *await returned(open_id, other, "other", clock), "198.51.100.1")
        resume.set()
    assert finished == ["other", *["slow"] * AT_ONCE]
