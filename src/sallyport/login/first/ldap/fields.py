"""What the first factor `ldap` is configured with, checked before anything is stored."""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator, Field, model_validator

from sallyport.base.errors import FieldError
from sallyport.base.validation import Between, unfit
from sallyport.directory.reading.connection import WITHOUT_LDAP, has_ldap
from sallyport.directory.reading.fields import LdapUrl, Line, Name
from sallyport.directory.reading.server import in_clear
from sallyport.login.first.model import CodeDigits, Fields, Host
from sallyport.outgoing.fields import SharedKey
from sallyport.outgoing.pem import Certificates
from sallyport.web.scope import Flag

USER: Final = "{user}"
DEFAULT_FILTER: Final = "(|(sAMAccountName={user})(uid={user})(userPrincipalName={user}))"
ASSERTION: Final = re.compile(r"\(([A-Za-z][A-Za-z0-9-]*)=([^()=]*\{user\}[^()]*)\)")
"""The parts of a filter that hold the user's name: an attribute, and what its value must be (RFC 4515 section 3)."""


def principal_pattern(pattern: str) -> re.Pattern[str]:
    """Return the pattern of the values that an assertion matches, with the user's name as its group `user`."""
    before, _, behind = pattern.partition(USER)
    return re.compile(f"{re.escape(before)}(?P<user>.+){re.escape(behind)}", re.IGNORECASE | re.DOTALL)


def _filter(value: str) -> str:
    value = value.strip()
    held = ASSERTION.findall(value)
    depth = 0
    for character in value[:-1]:
        depth += (character == "(") - (character == ")")
        if depth < 1:
            break
    if depth != 1 or value[-1:] != ")" or not value.isprintable():
        raise unfit("an LDAP filter in parentheses")
    if not held or value.count(USER) != sum(pattern.count(USER) for _, pattern in held):
        raise unfit("an LDAP filter with {user} as, or in, the value of an attribute: (uid={user})")
    if any(pattern.count(USER) > 1 for _, pattern in held):
        raise unfit("an LDAP filter with one {user} in each assertion")
    if any("*" in pattern or "\\" in pattern for _, pattern in held):
        raise unfit("an LDAP filter without * and \\ beside {user}: a name must find one entry")
    return value


class LdapFields(Fields):
    """A directory. servers: asked in this order. bindDN, bindPassword: the service account that looks for users;
    without them that search is anonymous. userFilter: finds a user, whose name takes the place of {user}; an entry's
    one name is that of the first attribute beside {user} that it has, by default sAMAccountName, else uid.
    caCertificate: PEM, trusted in place of the system's store. cacheSeconds: how long a right password is remembered.
    winbind: MS-CHAP is checked through winbind. winbindDomain: the domain's name there; empty: the host's own.
    codeDigits: how long a code behind the password is."""

    servers: Annotated[tuple[LdapUrl, ...], Field(min_length=1, max_length=8)]
    baseDN: Name  # noqa: N815
    bindDN: Line | None = None  # noqa: N815
    bindPassword: SharedKey | None = None  # noqa: N815
    userFilter: Annotated[str, Field(max_length=2048), AfterValidator(_filter)] = DEFAULT_FILTER  # noqa: N815
    startTls: Flag = False  # noqa: N815
    caCertificate: Certificates | None = None  # noqa: N815
    cacheSeconds: Annotated[int, Between(0, 300)] = 0  # noqa: N815
    winbind: Flag = False
    winbindDomain: Annotated[str, Field(max_length=255, pattern="^[A-Za-z0-9._-]*$")] = ""  # noqa: N815
    codeDigits: CodeDigits = 6  # noqa: N815
    timeoutSeconds: Annotated[int, Between(1, 30)] = 5  # noqa: N815

    def refused(self, host: Host) -> FieldError | None:
        """Winbind is the host's, and not every organization's."""
        if self.winbind and host.ntlm_auth is None:
            return FieldError("winbind", "the setting winbind_orgs leaves out this organization")
        return None

    @model_validator(mode="after")
    def _together(self) -> LdapFields:
        if (self.bindDN is None) != (self.bindPassword is None):
            raise unfit("bindDN and bindPassword belong together", "bindDN", "bindPassword")
        if not self.startTls and any(in_clear(url) for url in self.servers):
            raise unfit(
                "ldap:// sends passwords in clear: use ldaps://, or startTls; without it, loopback only", "servers"
            )
        if not has_ldap():
            raise unfit(WITHOUT_LDAP)
        return self
