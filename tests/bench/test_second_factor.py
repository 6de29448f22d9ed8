"""The benchmark of the second factor: the provider approves late, and an unfair turn is void."""

import shutil
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import httpx
import pytest

from .child import Running, child_process, wait_until
from .radload import Load, compile_c, compile_radload, run_radload
from .second_factor import ANSWER_S, SERVERS, Turn, check_fair
from .settings import BenchmarkError
from .test_comparison import has_freeradius, load

DELAY_S = 0.3

pytestmark = [
    pytest.mark.bench,
    pytest.mark.skipif(shutil.which("cc") is None, reason="cc is not installed"),
]


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """Return a client of a provider whose users need 0.3 s to approve."""
    directory = tmp_path_factory.mktemp("provider")
    program, output = compile_c("provider.c", directory), directory / "output"
    with child_process([str(program), str(DELAY_S * 1000)], directory=directory, output=output) as process:
        wait_until(lambda: output.read_text().endswith("\n"), process, output, seconds=10)
        url = f"http://127.0.0.1:{int(output.read_text())}"
        with httpx.Client(base_url=url, trust_env=False, timeout=5) as client:
            yield client


@pytest.mark.parametrize(("path", "status"), [("/held", 200), ("/rest", 204)])
def test_an_answer_is_held_back(provider: httpx.Client, path: str, status: int) -> None:
    """The answer arrives after the user has approved, on a connection that stays open."""
    for _ in range(2):
        began = time.monotonic()
        answer = provider.post(path, json={"user": "x"})
        assert time.monotonic() - began >= DELAY_S
        assert answer.status_code == status
    assert status == 204 or answer.json() == {"status": "approved"}


def test_a_poll_waits_until_the_user_has_approved(provider: httpx.Client) -> None:
    """The poll_url is returned at once. At first it returns `waiting`, and later `approved`."""
    answer = provider.post("/polled", content=b"x" * 5000)
    assert answer.status_code == 202
    url = answer.json()["poll_url"]
    assert provider.get(url).json() == {"status": "waiting"}
    time.sleep(DELAY_S + 0.05)
    assert provider.get(url).json() == {"status": "approved"}


def slow(**changes: int) -> Load:
    """Return the measurements of ten accepts that took as long as the users, with some fields changed."""
    return replace(load(**changes), p50_ms=5100.0)


def running(events: int | None = None) -> Running:
    """Return a server that has recorded this number of events, or one that records none."""
    return Running("x", 1, 1, None if events is None else lambda: events)


def test_a_fair_turn_passes() -> None:
    """A turn is fair if all answers are accepts, none was sent before the user's approval, and a recording server
    recorded all.
    """
    check_fair(running(), Turn("at once", slow(), load()), 0)
    check_fair(running(25), Turn("at once", slow(), load()), 5)


@pytest.mark.parametrize(
    ("turn", "events"),
    [
        (Turn("at once", slow(bad_replies=1), load()), None),
        (Turn("at once", slow(), load(accepts=9, rejects=1)), None),
        (Turn("at once", load(), load()), None),
        (Turn("at once", slow(), load()), 19),
    ],
    ids=["a forged reply", "a reject", "let in too soon", "fewer recorded"],
)
def test_an_unfair_turn_is_void(turn: Turn, events: int | None) -> None:
    """Each doubt about a measurement ends the benchmark."""
    with pytest.raises(BenchmarkError):
        check_fair(running(events), turn, 0)


def test_the_last_users_wait_is_not_counted() -> None:
    """Ten logins that are spread over a second count as ten a second, although the last answer arrives after the time
    that its user needs.
    """
    asked = replace(load(), seconds=ANSWER_S + 1)
    assert Turn("spread", asked, load()).rate == pytest.approx(10)
    assert Turn("at once", asked, load()).rate == pytest.approx(10 / (ANSWER_S + 1))


@pytest.mark.system
@pytest.mark.parametrize("key", ["freeradius", "sallyport", "sallyport-held"])
def test_users_are_asked(provider: httpx.Client, tmp_path: Path, key: str) -> None:
    """user0 to user99 are accepted at once, and all others after the answer of the provider."""
    if key == "freeradius" and not has_freeradius():
        pytest.skip("freeradius is not installed")
    (server,) = [server for server in SERVERS if server.key == key]
    program, own = compile_radload(tmp_path), tmp_path / "own"
    own.mkdir()
    with server.start(own, f"{provider.base_url}/{server.path}", 105) as running:
        arguments = ["-p", str(running.port), "-n", "5", "-u", "5", "-t", "10", "-R", "1"]
        plain = run_radload(program, arguments, seconds=5)
        asked = run_radload(program, [*arguments, "-f", "100"], seconds=5)
    assert (plain.accepts, asked.accepts) == (5, 5)
    assert plain.max_ms < DELAY_S * 1000 <= asked.p50_ms
