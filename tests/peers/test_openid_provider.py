"""Proofs of logins with a certified OpenID Connect provider (oidc-provider from npm), whose pages a browser walks
through."""

import re
import subprocess
from collections.abc import AsyncIterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import parse_qsl, urljoin, urlsplit, urlunsplit

import httpx
import pytest
import trio

from sallyport.areas.factors.openid.service import PATH
from sallyport.areas.factors.stepup.stepup import Shown
from sallyport.areas.mfa.provider import Strength
from sallyport.base.clock import now_us
from sallyport.base.errors import Forbidden, Unauthenticated
from tests.areas import Areas, areas, clock
from tests.areas.factors.sign_ins import Bench
from tests.areas.factors.stepups import SITE, node
from tests.console.provider import SECRET, Provider
from tests.peers.companies import needs_oidc_provider
from tests.peers.npm_verifiers import HERE, MODULES
from tests.peers.programs import find
from tests.ports import free_port

__all__ = ["areas", "clock"]
pytestmark = [
    pytest.mark.peer,
    pytest.mark.system,
    needs_oidc_provider,
]
_FORM = re.compile(r'<form[^>]*action="([^"]+)"')
_PROMPT = re.compile(r'name="prompt" value="([a-z]+)"')
MAX_STEPS = 12


@dataclass
class Walk:
    """A browser at the provider. stops_at: the address to which the provider leads back. prompts: what the provider
    has asked."""

    client: httpx.AsyncClient
    stops_at: str
    prompts: list[str]

    async def sign_in(self, address: str, name: str) -> dict[str, str]:
        """Follow the pages of the provider as this account. Return the parameters of the redirect."""
        answer = await self.client.get(address)
        for _ in range(MAX_STEPS):
            if answer.is_redirect:
                to = urljoin(str(answer.url), answer.headers["location"])
                if to.startswith(self.stops_at):
                    return dict(parse_qsl(urlsplit(to).query))
                answer = await self.client.get(to)
                continue
            form, prompt = _FORM.search(answer.text), _PROMPT.search(answer.text)
            assert form and prompt, answer.text
            self.prompts.append(prompt[1])
            fields = {"prompt": prompt[1], "login": name, "password": "any"}
            answer = await self.client.post(urljoin(str(answer.url), form[1]), data=fields)
        raise AssertionError("the provider does not lead back")


@dataclass
class Company:
    """The provider, and a step-up of ann."""

    bench: Bench
    walk: Walk
    stepup: Shown

    async def prove(self, name: str) -> Strength:
        """Sign in as an account, and prove the login with it."""
        address = await self.bench.sign_ins.address(self.stepup, "the cookie of ann's browser")
        return await self.bench.prove(self.stepup, await self.walk.sign_in(address, name))


@pytest.fixture
async def company(areas: Areas, tmp_path: Path) -> AsyncIterator[Company]:
    """Yield the provider. The service has the present time."""
    areas.clock.now = now_us()
    port, back = free_port(), f"{SITE}{PATH}/{areas.domain}"
    command = [find("node"), "--preserve-symlinks-main", "oidc.mjs", str(port), back, SECRET]
    (tmp_path / "oidc.mjs").write_bytes((HERE / "oidc.mjs").read_bytes())
    (tmp_path / "node_modules").symlink_to(MODULES)
    process = await trio.lowlevel.open_process(command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    try:
        assert process.stdout is not None
        with trio.fail_after(60):
            assert b"listening" in await process.stdout.receive_some()
        bench = Bench(areas, Provider(now_us, f"http://127.0.0.1:{port}"), node(areas, factors=("oidc",)))
        bench.configure(userSuffix="@example.com")
        async with httpx.AsyncClient() as client:
            yield Company(bench, Walk(client, back, []), await bench.stepup())
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        await process.stdout.aclose() if process.stdout else None
        await process.stderr.aclose() if process.stderr else None


async def test_a_person_proves_a_login(company: Company) -> None:
    """The provider accepts the request, and its ID token is accepted."""
    assert await company.prove("ann") is Strength.TWO_CHANNELS


async def test_a_signed_in_browser_must_sign_in_again(company: Company) -> None:
    """The session of the browser with the provider is not enough."""
    await company.prove("ann")
    company.walk.prompts.clear()
    assert await company.prove("ann") is Strength.TWO_CHANNELS
    assert "login" in company.walk.prompts


async def test_another_account_proves_nothing(company: Company) -> None:
    """A colleague signs in at the same provider."""
    with pytest.raises(Forbidden):
        await company.prove("eve")


async def test_a_request_for_an_old_session_is_noticed(company: Company) -> None:
    """A person removes `prompt` and `max_age` from the address, so that the provider lets the old session of the
    browser through. Its ID token has no time, or an old one."""
    await company.prove("ann")
    company.bench.areas.clock.pass_by(90)
    stepup = company.stepup
    address = urlsplit(await company.bench.sign_ins.address(stepup, "the cookie of ann's browser"))
    asked = [(name, value) for name, value in parse_qsl(address.query) if name not in ("prompt", "max_age")]
    changed = urlunsplit(address._replace(query=str(httpx.QueryParams(asked))))
    company.walk.prompts.clear()
    answer = await company.walk.sign_in(changed, "ann")
    assert company.walk.prompts == []
    with pytest.raises(Unauthenticated):
        await company.bench.prove(stepup, answer)
