"""What ntlm_auth says, as a reason."""

import pytest

from sallyport.login.first.winbind.checker import why_refused
from sallyport.login.login import Reason


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
