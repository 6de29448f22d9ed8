"""The names of the fields and facts of client certificates.

This module is apart from `certificate`, so that the command line need not import `cryptography`.
"""

from enum import StrEnum
from typing import Final

AUTHORITY: Final = "authority"
CERTIFICATE_KEYS: Final = ("issuer", "template", "eku", "san", "sid", AUTHORITY, "device")
"""The keys of the facts that rules compare. Two of them are not in the certificate: `authority` names the authority of
the domain that has signed it, and `device` has facts of the device of Entra ID that it names."""
MAX_FACTS: Final = 64
MAX_FACT: Final = 255
"""Maximum number of facts of a certificate, and of characters in a fact. Others are left out, and a fact
`more=KEY` says that there are others with this key."""
MORE: Final = "more"


class NamedBy(StrEnum):
    """A field of a certificate that can contain the user's name."""

    SID = "sid"
    OBJECT_ID = "object-id"
    UPN = "upn"
    MAIL = "mail"
    DNS = "dns"
    COMMON_NAME = "cn"
    SERIAL = "serial"


STRONG: Final = frozenset({NamedBy.SID, NamedBy.OBJECT_ID})
"""The fields whose value never belongs to another user later. All other fields are weak (KB5014754)."""
