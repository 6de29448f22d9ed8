"""Tests of the checks of providers: each fault is reported with its remedy."""

import re
import socket
from pathlib import Path

import pytest
from prometheus_client import CollectorRegistry

from sallyport.areas.mfa.circuit import FAILURES, Guarded
from sallyport.areas.mfa.contract import Behaviour
from sallyport.areas.mfa.duo import Duo
from sallyport.areas.mfa.host import ConfiguredProvider, Host
from sallyport.areas.mfa.privacyidea import PrivacyIdea
from sallyport.areas.mfa.provider import ProviderError
from sallyport.areas.mfa.webhook import Webhook
from sallyport.base.clock import SECOND, now_us
from sallyport.metrics import MfaMetrics
from sallyport.outgoing.http import HttpFactory
from sallyport.radius.packet import SharedSecret
from sallyport.settings.values import ANYWHERE
from tests.areas.mfa import duo_server
from tests.areas.mfa.benches import TotpBench, duo_bench, hook_bench, okta_bench, radius_bench
from tests.areas.mfa.certificates import self_signed
from tests.areas.mfa.host import make_host
from tests.areas.mfa.web import Call, Reply, serving


async def checked(kind: type[ConfiguredProvider], host: Host | None = None, /, **fields: object) -> str:
    """Return the finding of a provider's check, or the error that it raised."""
    provider = kind(kind.fields.model_validate(fields), host or make_host())
    guarded = Guarded(provider, MfaMetrics(CollectorRegistry()))
    try:
        return await guarded.check(deadline_s=20)
    except ProviderError as error:
        return f"wrong: {error}"
    finally:
        await guarded.aclose()


async def test_faults_of_duo() -> None:
    """A wrong key, a wrong host and a wrong clock each have their own error."""
    async with duo_bench() as bench:
        fields = dict(bench.fields)
        assert await checked(Duo, **fields) == "Duo accepts the keys, and the clocks agree"
        assert "check skey" in await checked(Duo, **{**fields, "skey": duo_server.SKEY[::-1]})
        bench.server.skew_s = -400
        assert re.search(r"differs from Duo's by \d+ s: set it, best by NTP", await checked(Duo, **fields))
        bench.behave(Behaviour.EMPTY)
        assert "the server is not Duo's Auth API" in await checked(Duo, **fields)
        bench.behave(Behaviour.RUBBISH)
        assert "without a JSON object" in await checked(Duo, **fields)
        assert bench.prompts == 0


async def test_faults_of_okta() -> None:
    """A wrong token is an error. A user that Okta does not know is not an error."""
    async with okta_bench() as bench:
        fields = dict(bench.fields)
        assert await checked(bench.provider, **fields) == "the provider answers"
        assert "Okta refuses the API token" in await checked(bench.provider, **{**fields, "apiToken": "wrong"})


async def test_faults_of_a_webhook() -> None:
    """A wrong signature, a wrong path and a refused enrolment request each have their own error.

    A webhook does not have to support pings.
    """
    async with hook_bench() as bench:
        fields, server = dict(bench.fields), bench.server
        assert await checked(Webhook, **fields) == "the hook answers"
        server.ping_status = 400
        assert await checked(Webhook, **fields) == "the hook answers"
        server.knows_enrolment = False
        assert "cannot be asked about enrolments" in await checked(Webhook, **fields)
        server.ping_status = 404
        assert "not at this path (HTTP 404): check url" in await checked(Webhook, **fields)
        server.secret = "another"
        assert "refuses the signature (HTTP 401): check secret" in await checked(Webhook, **fields)
        assert bench.prompts == 0


async def test_faults_of_radius() -> None:
    """There is an error if the server has another secret, and another one if it does not answer."""
    async with radius_bench() as bench:
        fields = dict(bench.fields)
        assert "answers with the same secret" in await checked(bench.provider, **fields)
        bench.server.secret = SharedSecret(b"another")
        assert "check the secret" in await checked(bench.provider, **fields)
        bench.behave(Behaviour.SILENT)
        assert "does not know this machine as a client" in await checked(bench.provider, **fields)


async def test_faults_of_privacyidea() -> None:
    """Without an admin token only the server is checked. A wrong admin token is an error."""

    async def serve(call: Call) -> Reply:
        if (call.method, call.path) == ("GET", "/validate/polltransaction/0"):
            return Reply(200, {"result": {"status": True, "value": False}})
        if call.headers["authorization"] != "right":
            return Reply(401, {"result": {"status": False, "error": {"code": 4033}}})
        return Reply(200, {"result": {"status": True, "value": {"tokens": []}}})

    async with serving(serve) as server:
        url = f"http://127.0.0.1:{server.port}"
        assert "cannot be asked about enrolments" in await checked(PrivacyIdea, url=url)
        assert "accepts the adminToken" in await checked(PrivacyIdea, url=url, adminToken="right")
        assert "does not accept the adminToken" in await checked(PrivacyIdea, url=url, adminToken="wrong")


async def test_connection_failures(tmp_path: Path) -> None:
    """A name without an address, a closed port and an unknown issuer each have their own error."""
    with socket.create_server(("127.0.0.1", 0)) as closed:
        port = closed.getsockname()[1]
    assert f"port {port} is closed" in await checked(Webhook, url=f"http://127.0.0.1:{port}/", secret="s")

    def unknown(host: str, port: int, kind: socket.SocketKind) -> list[str]:
        raise socket.gaierror(socket.EAI_NONAME, "unknown")

    host = make_host(http=HttpFactory(egress=ANYWHERE, look_up=unknown))
    wrong = await checked(Duo, host, ikey="DI1", skey="s", host="api-nowhere.duosecurity.com")
    assert "api-nowhere.duosecurity.com: the name has no address; check its spelling" in wrong

    async def serve(call: Call) -> Reply:
        raise AssertionError("no request is sent")

    context, _ = self_signed(tmp_path, "localhost", issuer="Example Root")
    async with serving(serve, tls=context) as server:
        wrong = await checked(Webhook, url=f"https://localhost:{server.port}/", secret="s")
    assert "its issuer is unknown: CN=Example Root" in wrong


async def test_a_failed_check_does_not_open_the_circuit() -> None:
    """A successful check closes an open circuit."""
    async with duo_bench() as bench:
        guarded = Guarded(bench.make(), MfaMetrics(CollectorRegistry()))
        bench.behave(Behaviour.FAIL)
        for _ in range(FAILURES):
            with pytest.raises(ProviderError):
                await guarded.check(deadline_s=5)
        assert not guarded.is_open
        for _ in range(FAILURES):
            with pytest.raises(ProviderError):
                await guarded.enrolled("ann", deadline_s=5)
        assert guarded.is_open
        bench.behave(Behaviour.APPROVE)
        await guarded.check(deadline_s=5)
        assert not guarded.is_open
        await guarded.aclose()


async def test_a_provider_without_a_server_is_reported() -> None:
    assert "no server is asked" in await checked(TotpBench.provider)


async def test_a_server_that_is_not_duo() -> None:
    """Another server with JSON is not taken for Duo, although its answer has a time."""

    async def serve(call: Call) -> Reply:
        return Reply(404, {"response": {"time": now_us() // SECOND}})

    async with serving(serve) as server:
        wrong = await checked(Duo, ikey="DI1", skey="s", host=f"127.0.0.1:{server.port}")
    assert "the server is not Duo's Auth API (HTTP 404): check host" in wrong
