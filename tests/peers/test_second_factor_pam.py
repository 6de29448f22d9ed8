"""Tests with pam_radius as the device of a domain that enforces: a login to a Linux machine with a second factor."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.peers.hook import Hook
from tests.peers.programs import needs
from tests.peers.second_factor import PASSWORD, SECRET, enrol, event, next_code, populate, provide
from tests.peers.test_pam_radius import configure, may_mount, module, pamtester
from tests.running_service import RunningService, running_service

WELCOME = "successfully authenticated"

pytestmark = [
    pytest.mark.peer,
    needs("pamtester"),
    pytest.mark.skipif(module() is None, reason="pam_radius_auth (libpam-radius-auth) is not installed"),
    pytest.mark.skipif(not may_mount(), reason="a mount namespace of its own is not permitted"),
]


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningService]:
    """Yield a service that enforces. Each test gives it a provider."""
    with running_service(tmp_path_factory.mktemp("service")) as service:
        populate(service, "bob", "carl", "dora", "emil")
        yield service


@pytest.fixture
def pam(tmp_path: Path, service: RunningService) -> Path:
    """Return a directory that replaces /etc/pam.d. The module waits for ten seconds."""
    return configure(tmp_path, service, SECRET, wait_s=10)


def test_a_challenge_is_shown_and_answered(pam: Path, service: RunningService) -> None:
    """PAM asks for the password, then shows the prompt and asks for the code, and accepts bob."""
    provide(service, "totp")
    seed = enrol(service, "bob")
    status, output = pamtester(pam, f"{PASSWORD}\n{next_code(seed)}", "authenticate")
    assert (status, WELCOME in output) == (0, True), output
    assert "Enter your code" in output
    assert event(service, "bob") == ("accept", "accept", "", "local+totp")


def test_a_wrong_code_is_asked_for_again(pam: Path, service: RunningService) -> None:
    """After a wrong code PAM asks again. After three wrong codes the login is rejected."""
    provide(service, "totp")
    seed = enrol(service, "carl")
    wrong = f"{(int(next_code(seed)) + 1) % 1_000_000:06}"
    status, output = pamtester(pam, f"{PASSWORD}\n{wrong}\n{next_code(seed)}", "authenticate", user="carl")
    assert status == 0, output
    status, output = pamtester(pam, f"{PASSWORD}\n{wrong}\n{wrong}\n{wrong}", "authenticate", user="carl")
    assert status != 0, output
    assert event(service, "carl")[2] == "wrong code"


def test_a_push_is_waited_for(pam: Path, service: RunningService) -> None:
    """PAM waits for the approval, and asks only for the password."""
    with Hook() as hook:
        provide(service, "webhook", **hook.fields)
        hook.will("dora", "approved", after_s=2)
        status, output = pamtester(pam, PASSWORD, "authenticate", user="dora")
        assert (status, WELCOME in output) == (0, True), output
        hook.will("emil", "denied")
        status, output = pamtester(pam, PASSWORD, "authenticate", user="emil")
        assert status != 0, output
        assert (hook.prompts_of("dora"), hook.prompts_of("emil"), hook.forged) == (1, 1, 0)
    assert event(service, "dora") == ("accept", "accept", "", "local+webhook")
    assert event(service, "emil")[2] == "second factor denied"


def test_retries_of_pam_join_the_prompt(tmp_path: Path, service: RunningService) -> None:
    """If the module waits for three seconds and tries again, its request joins the same prompt, so that the user is
    asked once."""
    pam = configure(tmp_path, service, SECRET, wait_s=3)
    with Hook() as hook:
        provide(service, "webhook", **hook.fields)
        hook.will("bob", "approved", after_s=4.5)
        try:
            pamtester(pam, PASSWORD, "authenticate")
        except subprocess.TimeoutExpired:
            pytest.fail("pamtester does not end")
        assert hook.prompts_of("bob") == 1
