"""The check of revocation at a login: after the certificate was verified, and before its user is looked up."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Protocol

from sallyport.areas.authorities.authority import Revocation
from sallyport.areas.authorities.revocation.state import NEVER, RevocationState, RevocationStatus
from sallyport.areas.login.login import PASSED, Reason

if TYPE_CHECKING:
    from cryptography import x509

    from sallyport.areas.authorities.authority import Authority

NOT_CHECKED: Final = RevocationState(RevocationStatus.GOOD, "", NEVER)
"""The state of a certificate whose revocation is not checked here."""


class ChecksRevocation(Protocol):
    """The check of verified chains (`authorities.revocation`). chain: the certificates from the client's on."""

    def known(self, chain: Sequence[x509.Certificate], authority: Authority) -> RevocationState | None:
        """Return the state of a chain if it is known without asking, else None."""

    async def state(self, chain: Sequence[x509.Certificate], authority: Authority) -> RevocationState:
        """Return the state of a chain. Ask for it if it is not known."""

    def noted(
        self,
        chain: Sequence[x509.Certificate],
        authority: Authority,
        domain_id: int,
        user: str,
        state: RevocationState,
    ) -> None:
        """Note a login whose certificate was accepted. user: the name without its realm."""


def refusal_of(state: RevocationState, authority: Authority) -> Reason:
    """Return why a certificate in this state is refused. Return PASSED if it may be accepted."""
    if state.status is RevocationStatus.REVOKED:
        return Reason.CERTIFICATE_REVOKED
    is_unknown = state.status is RevocationStatus.UNKNOWN
    return Reason.REVOCATION_UNKNOWN if is_unknown and authority.revocation is Revocation.HARD else PASSED
