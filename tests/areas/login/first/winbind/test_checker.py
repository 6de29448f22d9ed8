"""Tests of how winbind checks one response: the result is the key for the answer, or the reason."""

import pytest
import structlog.testing

from sallyport.areas.login.first.checker import silent
from sallyport.areas.login.first.winbind.checker import Winbind, account_name, hashed_name
from sallyport.areas.login.first.winbind.texts import CHECK_MEMBERSHIP, NO_PIPE, NOT_RUNNING, remedy_of, why_refused
from sallyport.areas.login.login import Reason
from sallyport.radius.mschap import MsChap1, challenge_response, nt_hash
from tests.areas.login.first.winbind.conftest import CHALLENGE, KEY, Program, Running

SILENCE = "Reading winbind reply failed!"
ATTEMPT = MsChap1(1, CHALLENGE, challenge_response(CHALLENGE, nt_hash(b"hello")))


async def test_a_right_response_has_a_key(running: Running, program: Program) -> None:
    """A right response has a key, and a wrong response has a reason.

    The steps contain both, and the question contains the domain.
    """
    steps: list[str] = []
    async with running() as helpers:
        winbind = Winbind(helpers, "corp", "CORP")
        assert await winbind.ask("ann", ATTEMPT, b"ann", steps.append) == KEY
        assert await winbind.ask("bob", ATTEMPT, b"bob", steps.append) is Reason.WRONG_PASSWORD
    assert "confirms" in steps[1]
    assert "logon is invalid" in steps[3]
    assert all("'NT-Domain': 'CORP'" in line for line in program.asked)


async def test_trouble_is_logged_once_with_a_hint(running: Running) -> None:
    """A cause is logged once with a hint.

    It is logged again after it has changed or ended. A refused password is not logged.
    """
    away = f"says {SILENCE}"
    async with running() as helpers:
        winbind = Winbind(helpers, "corp", "")
        with structlog.testing.capture_logs() as logged:
            for user in (away, away, "says No logon servers", "ann", away, "says Wrong Password"):
                await winbind.ask(user, ATTEMPT, b"", silent)
    assert [entry["error"].partition(";")[0] for entry in logged] == [away[5:], "No logon servers", away[5:]]
    assert "winbindd_priv" in logged[0]["error"]


async def test_no_answer_is_unreachable(running: Running) -> None:
    """If a process gives no valid answer, the first factor is unreachable, and no error is raised."""
    async with running() as helpers:
        for user in ("dies", "lies", "keyless", "says No logon servers"):
            reason = await Winbind(helpers, "corp", "").ask(user, ATTEMPT, b"", lambda _step: None)
            assert reason is Reason.FIRST_FACTOR_UNREACHABLE


@pytest.mark.parametrize(
    ("wbinfo", "expected"),
    [
        pytest.param("exit 0", f"{SILENCE}; {NO_PIPE}", id="no privilege"),
        pytest.param("exit 1", f"{SILENCE}; {NOT_RUNNING}", id="not running"),
        pytest.param(None, f"{SILENCE}; either {NOT_RUNNING}; or {NO_PIPE}", id="no wbinfo"),
    ],
)
async def test_a_silent_winbindd(running: Running, program: Program, wbinfo: str | None, expected: str) -> None:
    """`wbinfo --ping` shows whether winbindd is not running or the service may not use its pipe.

    Each check reports this.
    """
    if wbinfo is not None:
        beside = program.path.with_name("wbinfo")
        beside.write_text(f'#!/bin/sh\n[ "$*" = --ping ] || exit 9\n{wbinfo}\n')
        beside.chmod(0o755)
    async with running() as helpers:
        winbind = Winbind(helpers, "corp", "")
        for _ in range(2):
            steps: list[str] = []
            assert await winbind.ask(f"says {SILENCE}", ATTEMPT, b"", steps.append) is Reason.FIRST_FACTOR_UNREACHABLE
            assert steps[-1] == expected


async def test_the_remedy_follows_the_text(running: Running) -> None:
    """For a refusal and for a known fault the steps contain the remedy.

    For an unknown fault the remedy is to check the domain membership.
    """
    steps: list[str] = []
    async with running() as helpers:
        for said in ("Wrong Password", "No logon servers", "Odd"):
            await Winbind(helpers, "corp", "").ask(f"says {said}", ATTEMPT, b"", steps.append)
    assert steps[1] == "Wrong Password; winbind works: the user's password is not right"
    assert steps[3].startswith("No logon servers; no domain controller answers: check the network")
    assert steps[5] == f"Odd; {CHECK_MEMBERSHIP}"


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("NT_STATUS_TIME_DIFFERENCE_AT_DC", "synchronize this host"),
        ("NT_STATUS_NO_TRUST_LSA_SECRET", "net ads join"),
        ("NT_STATUS_CANT_ACCESS_DOMAIN_INFO", "net ads join"),
        ("NT_STATUS_ACCESS_DENIED", "net ads join"),
        ("NT_STATUS_NO_LOGON_SERVERS", "no domain controller answers"),
        ("NT_STATUS_NO_SUCH_DOMAIN", "winbindDomain"),
        ("NT_STATUS_NO_SUCH_USER", "check the name"),
        ("NT_STATUS_LOGON_FAILURE", "wbinfo -t"),
        ("NT_STATUS_NTLM_BLOCKED", "refuse NTLM"),
        ("winbind client not authorized to use winbindd_pam_auth_crap.", "winbindd_priv"),
        ("/usr/bin/ntlm_auth cannot be run: No such file or directory", "install Samba's winbind"),
    ],
)
def test_a_text_has_a_remedy(said: str, remedy: str) -> None:
    """Each known text has a remedy. This includes older texts, which are the names of the status codes."""
    assert remedy in remedy_of(said)


@pytest.mark.parametrize(
    ("sent", "hashed"),
    [
        (b"ann", b"ann"),
        (b"CORP\\ann", b"ann"),
        (b"ann@corp.test", b"ann@corp.test"),
        (b"host/pc.corp", b"host/pc.corp"),
    ],
)
def test_the_likeliest_name_is_taken(sent: bytes, hashed: bytes) -> None:
    """The name in the hash does not have the part before a backslash, but has the part after an @."""
    assert hashed_name(sent) == hashed


def test_a_computer_has_its_account() -> None:
    """A computer logs in as host/NAME.DOMAIN. Its account is NAME$."""
    names = {
        "host/PC1.corp.example": "PC1$",
        "host/pc1": "pc1$",
        "ann": "ann",
        "host/a/b": "host/a/b",
        "host/": "host/",
    }
    assert {name: account_name(name) for name in names} == names


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("The attempted logon is invalid. This is either due to a bad username or ...", Reason.WRONG_PASSWORD),
        ("Wrong Password", Reason.WRONG_PASSWORD),
        ("NT_STATUS_LOGON_FAILURE", Reason.WRONG_PASSWORD),
        ("The specified account does not exist.", Reason.UNKNOWN_USER),
        ("The user account has been automatically locked because ...", Reason.ACCOUNT_LOCKED),
        ("Account locked out", Reason.ACCOUNT_LOCKED),
        ("NT_STATUS_ACCOUNT_DISABLED", Reason.ACCOUNT_DISABLED),
        ("The user account has expired.", Reason.ACCOUNT_EXPIRED),
        ("The user account password has expired.", Reason.PASSWORD_EXPIRED),
        ("Must change password", Reason.PASSWORD_MUST_CHANGE),
        ("The user account has time restrictions and ...", Reason.LOGON_RESTRICTED),
        ("... cannot be used to log on from the source workstation.", Reason.LOGON_RESTRICTED),
        ("No logon servers are currently available to service the logon request.", Reason.FIRST_FACTOR_UNREACHABLE),
        ("{Access Denied} ... has not been granted those access rights.", Reason.FIRST_FACTOR_UNREACHABLE),
        ("Reading winbind reply failed!", Reason.FIRST_FACTOR_UNREACHABLE),
        ("", Reason.FIRST_FACTOR_UNREACHABLE),
    ],
)
def test_a_text_is_a_reason(said: str, reason: Reason) -> None:
    """The texts of older and newer Samba versions are mapped to a reason.

    If the text says that there is no such user, the password was not checked.
    """
    assert why_refused(said) is reason
