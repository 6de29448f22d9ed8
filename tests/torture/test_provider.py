"""Tests of a complete service whose provider is killed, is slow, or sends invalid answers or a wrong certificate.

The domain's fallback decides, the event and the metrics have the reason, and the provider is asked again when it works
again. Other tests kill the service between a challenge and its answer.
"""

import re
import ssl
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from itertools import count
from pathlib import Path

import pytest

from sallyport.radius.attributes import STATE
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_CHALLENGE, ACCESS_REJECT
from tests.areas.mfa.certificates import self_signed
from tests.peers.hook import Handler, Hook, Misbehaviour
from tests.peers.second_factor import PASSWORD, SECRET, enrol, event, next_code, populate, provide
from tests.running_service import RunningService, running_service

SETTINGS = {"SALLYPORT_REJECT_DELAY_S": "0"}
TIMEOUT_S = 5  # the shortest that a domain may have
OUTCOMES = pytest.mark.parametrize(("fallback", "code"), [("deny", ACCESS_REJECT), ("allow", ACCESS_ACCEPT)])

pytestmark = pytest.mark.torture
_numbers = count(1)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> tuple[ssl.SSLContext, ssl.SSLContext, Path]:
    """Return two TLS contexts for servers of the same name, the first with a trusted and the second with an untrusted
    certificate, and the trusted certificate."""
    right, chain = self_signed(tmp_path_factory.mktemp("right"), "localhost")
    wrong, _ = self_signed(tmp_path_factory.mktemp("wrong"), "localhost")
    return right, wrong, chain


@pytest.fixture(scope="module")
def service(
    tmp_path_factory: pytest.TempPathFactory, certificates: tuple[ssl.SSLContext, ssl.SSLContext, Path]
) -> Iterator[RunningService]:
    """A service that enforces and trusts one certificate. It is never restarted."""
    trust = {"SSL_CERT_FILE": str(certificates[2])}
    with running_service(tmp_path_factory.mktemp("service"), SETTINGS | trust) as service:
        populate(service)
        yield service
        assert "Traceback" not in service.log()


@pytest.fixture
def user(service: RunningService) -> str:
    """Return a user for one test, because a user gets at most ten prompts in a minute."""
    return new_user(service)


def new_user(service: RunningService) -> str:
    """Another user."""
    name = f"user{next(_numbers)}"
    service.add_user(name, PASSWORD)
    return name


@pytest.fixture
def hook(service: RunningService, user: str) -> Iterator[Hook]:
    """The provider of the domain. While it works, the user approves at once."""
    with Hook() as hook:
        provide(service, "webhook", timeoutSeconds=TIMEOUT_S, **hook.fields)
        hook.will(user, "approved")
        yield hook


def login(service: RunningService, user: str) -> int:
    """Log in at a new station. Return the code of the answer."""
    with service.radius(SECRET) as client:
        client.sock.settimeout(TIMEOUT_S + 10)
        return client.login(user, PASSWORD, CALLING_STATION_ID=b"station-%d" % next(_numbers))


def fall_back(service: RunningService, fallback: str) -> None:
    """Set the domain's fallback action."""
    service.set_mode("default", "enforce", fallbackAction=fallback)


def metric(service: RunningService, name: str, **labels: str) -> float:
    """Return the sum of those samples of a metric that have these labels."""
    text = service.request("GET", "/metrics").text
    found = re.findall(rf"^sallyport_{name}\{{([^}}]*)\}} (\S+)$", text, re.MULTILINE)
    wanted = {f'{label}="{value}"' for label, value in labels.items()}
    return sum(float(value) for told, value in found if wanted <= set(told.split(",")))


def unreachable(service: RunningService) -> float:
    """Return the number of conversations that ended because the provider was unreachable."""
    return metric(service, "mfa_challenges_total", provider="webhook", result="unreachable")


def failed_calls(service: RunningService, call: str) -> float:
    """Return the number of failed calls of the provider."""
    return metric(service, "mfa_call_duration_seconds_count", provider="webhook", call=call, result="error")


def check_fallen_back(service: RunningService, user: str, fallback: str) -> None:
    """Check that the last event of a user has the outcome of the fallback and the reason."""
    verdict = "accept" if fallback == "allow" else "reject"
    assert event(service, user) == (verdict, verdict, "provider unreachable", "local+webhook")


def check_recovered(service: RunningService, user: str) -> None:
    """Check that the provider is asked again, and that its answer is used."""
    assert login(service, user) == ACCESS_ACCEPT
    assert event(service, user) == ("accept", "accept", "", "local+webhook")


# --- what a provider may do -----------------------------------------------------------------------------------


def rubbish(handler: Handler) -> None:
    """Answer with the page of a router."""
    handler.say(200, "<html>Welcome</html>")


def another_document(handler: Handler) -> None:
    """Answer with JSON without a status."""
    handler.say(200, {"state": "approved"})


def no_http(handler: Handler) -> None:
    """Answer in another protocol."""
    handler.wfile.write(b"SSH-2.0-dropbear\r\n\r\n")


def broken_off(handler: Handler) -> None:
    """Answer with half a response."""
    handler.wfile.write(b'HTTP/1.1 200 OK\r\nContent-Length: 500\r\n\r\n{"status": "approved"}')


def redirect(handler: Handler) -> None:
    """Redirect to a page that approves everything."""
    handler.say(302, {"status": "approved"}, Location="/approved")


def server_error(handler: Handler) -> None:
    """Answer HTTP 500 with a body that approves."""
    handler.say(500, {"status": "approved"})


def silence(handler: Handler) -> None:
    """Do not answer."""
    handler.server.hook.closing.wait(TIMEOUT_S + 20)


@pytest.mark.parametrize("misbehave", [rubbish, another_document, no_http, broken_off, redirect, server_error])
@OUTCOMES
def test_wrong_answers(
    service: RunningService, hook: Hook, user: str, misbehave: Misbehaviour, fallback: str, code: int
) -> None:
    """After any invalid answer of a provider the fallback decides. The next valid answer is used."""
    fall_back(service, fallback)
    before, calls = unreachable(service), failed_calls(service, "start")
    hook.misbehave = misbehave
    assert login(service, user) == code
    check_fallen_back(service, user, fallback)
    assert unreachable(service) == before + 1
    assert failed_calls(service, "start") == calls + 1
    hook.misbehave = None
    check_recovered(service, user)


@OUTCOMES
def test_a_slow_provider(service: RunningService, hook: Hook, user: str, fallback: str, code: int) -> None:
    """A provider that does not answer within the domain's time limit is unreachable, and the fallback decides."""
    fall_back(service, fallback)
    before = unreachable(service)
    hook.misbehave = silence
    assert login(service, user) == code
    check_fallen_back(service, user, fallback)
    assert unreachable(service) == before + 1
    hook.misbehave = None
    check_recovered(service, user)


@OUTCOMES
def test_killed_while_a_login_waits(service: RunningService, hook: Hook, user: str, fallback: str, code: int) -> None:
    """If the provider is killed, the fallback decides the pending login and the next one.

    When the provider runs again, its answer decides.
    """
    fall_back(service, fallback)
    away = new_user(service)
    before, polls = unreachable(service), failed_calls(service, "poll")
    with ThreadPoolExecutor(1) as pool:
        waiting = pool.submit(login, service, away)
        hook.wait_for_prompt(away)
        hook.close()
        assert waiting.result(timeout=TIMEOUT_S + 15) == code
    assert event(service, away)[2] == "provider unreachable"
    assert failed_calls(service, "poll") > polls
    assert login(service, user) == code
    check_fallen_back(service, user, fallback)
    assert unreachable(service) == before + 2
    hook.open()
    check_recovered(service, user)


@OUTCOMES
def test_a_wrong_certificate(
    service: RunningService,
    certificates: tuple[ssl.SSLContext, ssl.SSLContext, Path],
    user: str,
    fallback: str,
    code: int,
) -> None:
    """A server with an untrusted certificate is not asked. A server with a trusted one is asked."""
    right, wrong, _ = certificates
    fall_back(service, fallback)
    before, calls = unreachable(service), failed_calls(service, "start")
    with Hook(tls=wrong) as hook:
        provide(service, "webhook", timeoutSeconds=TIMEOUT_S, **hook.fields)
        hook.will(user, "approved")
        assert login(service, user) == code
        check_fallen_back(service, user, fallback)
        assert hook.prompts == []
        assert (unreachable(service), failed_calls(service, "start")) == (before + 1, calls + 1)
        assert "its certificate is not trusted" in service.log()
        hook.close()
        hook.tls = right
        hook.open()
        check_recovered(service, user)


@pytest.mark.parametrize("status", ["denied", "unknown_user"])
def test_the_fallback_covers_no_refusal(service: RunningService, hook: Hook, user: str, status: str) -> None:
    """A user that denies is rejected although the fallback allows, and so is a user that the provider does not know."""
    fall_back(service, "allow")
    hook.will(user, status)
    assert login(service, user) == ACCESS_REJECT


# --- a kill of the service ------------------------------------------------------------------------------------


def kill_and_start(service: RunningService) -> None:
    """A crash, followed by a start."""
    service.kill()
    service.start()


def leave(service: RunningService) -> None:
    """Do nothing."""


@pytest.mark.parametrize("between", [leave, kill_and_start], ids=["running", "killed"])
def test_a_challenge_outlives_the_service(tmp_path: Path, between: Callable[[RunningService], None]) -> None:
    """If the service is killed between a challenge and its answer, the code is accepted once.

    After another kill neither the State nor the code is accepted again.
    """
    with running_service(tmp_path, SETTINGS) as service:
        populate(service, "kim")
        provide(service, "totp")
        code = next_code(enrol(service, "kim"))
        with service.radius(SECRET) as client:
            request = client.packet("kim", PASSWORD, CALLING_STATION_ID=b"station")
            answer, attributes = client.exchange(request)
            assert answer == ACCESS_CHALLENGE
            state = attributes[STATE]
            service.kill()
            service.start()
            assert client.login("kim", code, CALLING_STATION_ID=b"station", STATE=state) == ACCESS_ACCEPT
            between(service)
            assert client.login("kim", code, CALLING_STATION_ID=b"station", STATE=state) == ACCESS_REJECT
            assert event(service, "kim")[2] == "the challenge is unknown, over or another's"
            assert client.login("kim", PASSWORD + code, CALLING_STATION_ID=b"station") == ACCESS_REJECT
            assert event(service, "kim")[2] == "wrong code"
