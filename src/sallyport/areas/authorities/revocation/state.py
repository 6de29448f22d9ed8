"""The values of revocation: the rules of an authority, and the state of a certificate."""

from collections.abc import Iterable
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from sallyport.base.clock import SECOND


class RevocationStatus(StrEnum):
    """The status of a certificate."""

    GOOD = "good"
    REVOKED = "revoked"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class RevocationRules:
    """How the revocation of an authority's certificates is checked.

    authority_id, tenant_id: the authority and its tenant. bundle: the certificates of the authority in PEM. is_hard:
    whether a certificate is refused if its state is unknown. lists: the addresses of revocation lists; empty for those
    in the certificates. responder: the address of the OCSP responder; empty for the one in the certificate. uses_nonce:
    whether requests to the responder have a nonce. uses_certificates: whether addresses in certificates are used.
    anchors: the keys of the authority's certificates (`key_hash`).
    """

    authority_id: int
    tenant_id: int
    bundle: str = field(repr=False)
    is_hard: bool = False
    lists: tuple[str, ...] = ()
    responder: str = ""
    uses_nonce: bool = False
    uses_certificates: bool = True
    anchors: frozenset[bytes] = frozenset()


@dataclass(frozen=True, slots=True)
class RevocationState:
    """The state of a certificate, or of all certificates of a chain.

    text: the sources and their answers, for a login's steps. until: the end of its validity, in microseconds.
    """

    status: RevocationStatus
    text: str
    until: int

    def refuses(self, rules: RevocationRules) -> bool:
        """Return whether the certificate is refused. A revoked one always is."""
        is_unknown = self.status is RevocationStatus.UNKNOWN
        return self.status is RevocationStatus.REVOKED or (is_unknown and rules.is_hard)


NEVER: Final = 1 << 62
"""The end of a state that does not end."""
SOON_US: Final = 5 * SECOND
"""For how long an unknown state is valid, in microseconds."""


def combined(states: Iterable[RevocationState]) -> RevocationState:
    """Return the state of a chain from those of its certificates: the worst one decides, and the first to end ends
    it."""
    found = list(states)
    if len(found) == 1:
        return found[0]
    texts = "; ".join(each.text for each in found if each.text)
    statuses = {each.status for each in found}
    worst = next((each for each in (RevocationStatus.REVOKED, RevocationStatus.UNKNOWN) if each in statuses), None)
    until = min((each.until for each in found), default=NEVER)
    return RevocationState(worst or RevocationStatus.GOOD, texts, until)
