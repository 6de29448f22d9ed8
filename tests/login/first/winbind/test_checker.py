"""One response: the key for its answer, or why not."""

import pytest
import structlog.testing

from sallyport.login.first.winbind.checker import Winbind, account_name, hashed_name, why_refused
from sallyport.login.login import Reason
from sallyport.radius.mschap import MsChap1, challenge_response, nt_hash
from tests.login.first.winbind.conftest import CHALLENGE, KEY, Program, Running

ATTEMPT = MsChap1(1, CHALLENGE, challenge_response(CHALLENGE, nt_hash(b"hello")))


async def test_a_right_response_has_a_key(running: Running, program: Program) -> None:
    """And a wrong one its reason; both steps are told; the domain goes along."""
    steps: list[str] = []
    async with running() as helpers:
        winbind = Winbind(helpers, "corp", "CORP")
        assert await winbind.ask("ann", ATTEMPT, b"ann", steps.append) == KEY
        assert await winbind.ask("bob", ATTEMPT, b"bob", steps.append) is Reason.WRONG_PASSWORD
    assert "right" in steps[1]
    assert "logon is invalid" in steps[3]
    assert all("'NT-Domain': 'CORP'" in line for line in program.asked)


async def test_trouble_is_logged_once_with_a_hint(running: Running) -> None:
    """Until it changes or is over; a refusal is no trouble."""
    away = "says Reading winbind reply failed!"
    async with running() as helpers:
        winbind = Winbind(helpers, "corp", "")
        with structlog.testing.capture_logs() as logged:
            for user in (away, away, "says No logon servers", "ann", away, "says Wrong Password"):
                await winbind.ask(user, ATTEMPT, b"", lambda _step: None)
    assert [entry["error"].partition(";")[0] for entry in logged] == [away[5:], "No logon servers", away[5:]]
    assert "winbindd_priv" in logged[0]["error"]


async def test_no_answer_is_unreachable(running: Running) -> None:
    """It never lets anybody in, and raises nothing."""
    async with running() as helpers:
        for user in ("dies", "lies", "keyless", "says No logon servers"):
            reason = await Winbind(helpers, "corp", "").ask(user, ATTEMPT, b"", lambda _step: None)
            assert reason is Reason.FIRST_FACTOR_UNREACHABLE


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
    """Without what is before a backslash, and with what is behind an @."""
    assert hashed_name(sent) == hashed


def test_a_computer_has_its_account() -> None:
    """It logs in as host/NAME.DOMAIN."""
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
    """In Samba's older and newer words; what says nothing of the user means that nobody has checked."""
    assert why_refused(said) is reason
