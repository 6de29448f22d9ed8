"""What the first factor `ldap` is configured with, checked before anything is stored."""

from __future__ import annotations

import re
import ssl
from importlib.util import find_spec
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, TypeAdapter, model_validator

from sallyport.base.validation import unfit
from sallyport.login.first.model import Fields
from sallyport.mfa.fields import HostName, SharedKey, is_loopback
from sallyport.web.scope import Flag

USER: Final = "{user}"
DEFAULT_FILTER: Final = "(|(sAMAccountName={user})(uid={user})(userPrincipalName={user}))"
ASSERTION: Final = re.compile(r"\(([A-Za-z][A-Za-z0-9-]*)=([^()=]*\{user\}[^()]*)\)")
"""The parts of a filter that hold the user's name: an attribute, and what its value must be (RFC 4515 section 3)."""
_DN: Final = re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]*\s*=[^\x00-\x1f]+")
_HOST: Final = TypeAdapter[str](HostName)


def principal_pattern(pattern: str) -> re.Pattern[str]:
    """What fits the values that an assertion's pattern can mean, with the user's name as its group `user`."""
    before, _, behind = pattern.partition(USER)
    behind = "(?P=user)".join(map(re.escape, behind.split(USER)))
    return re.compile(f"{re.escape(before)}(?P<user>.+){behind}", re.IGNORECASE | re.DOTALL)


def split_url(url: str) -> tuple[str, str, int]:
    """An LDAP URL as (scheme, host without brackets, port). ValueError: it has no such form."""
    parts = urlsplit(url)  # which takes some control characters out
    if (
        not url.isprintable()
        or parts.scheme not in ("ldap", "ldaps")
        or parts.path.strip("/")
        or parts.query
        or parts.fragment
        or "@" in url
    ):
        raise ValueError("not the URL of a directory server")
    default = 636 if parts.scheme == "ldaps" else 389
    return parts.scheme, _HOST.validate_python(parts.hostname or ""), parts.port or default


def _url(value: str) -> str:
    try:
        split_url(value.strip())
    except ValueError:
        raise unfit("a URL such as ldaps://dc1.example.com or ldap://dc1.example.com:389") from None
    return value.strip()


def _dn(value: str) -> str:
    if not _DN.fullmatch(value.strip()):
        raise unfit("a distinguished name such as dc=example,dc=com")
    return value.strip()


def _line(value: str) -> str:
    if not value.isprintable():
        raise unfit("text without control characters")
    return value.strip()


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
    if any("*" in pattern or "\\" in pattern for _, pattern in held):
        raise unfit("an LDAP filter without * and \\ beside {user}: a name must find one entry")
    return value


def _certificates(value: str) -> str:
    try:
        ssl.create_default_context(cadata=value)
    except (ssl.SSLError, ValueError):
        raise unfit("certificates in PEM") from None
    return value


_Url = Annotated[str, Field(max_length=512), AfterValidator(_url)]


class LdapFields(Fields):
    """A directory. servers: asked in this order. bindDN, bindPassword: the service account that looks for users;
    without them that search is anonymous. userFilter: finds a user, whose name takes the place of {user}; an entry's
    one name is that of the first attribute beside {user} that it has, by default sAMAccountName, else uid.
    caCertificate: PEM, trusted in place of the system's store. cacheSeconds: how long a right password is remembered.
    winbind: MS-CHAP is checked through winbind. winbindDomain: the domain's name there; empty: the host's own."""

    servers: Annotated[tuple[_Url, ...], Field(min_length=1, max_length=8)]
    baseDN: Annotated[str, Field(max_length=1024), AfterValidator(_dn)]  # noqa: N815
    bindDN: Annotated[str, Field(min_length=1, max_length=1024), AfterValidator(_line)] | None = None  # noqa: N815
    bindPassword: SharedKey | None = None  # noqa: N815
    userFilter: Annotated[str, Field(max_length=2048), AfterValidator(_filter)] = DEFAULT_FILTER  # noqa: N815
    startTls: Flag = False  # noqa: N815
    caCertificate: Annotated[str, Field(max_length=65_536), AfterValidator(_certificates)] | None = None  # noqa: N815
    cacheSeconds: Annotated[int, Field(ge=0, le=300)] = 0  # noqa: N815
    winbind: Flag = False
    winbindDomain: Annotated[str, Field(max_length=255, pattern="^[A-Za-z0-9._-]*$")] = ""  # noqa: N815
    timeoutSeconds: Annotated[int, Field(ge=1, le=30)] = 5  # noqa: N815

    @model_validator(mode="after")
    def _together(self) -> LdapFields:
        if (self.bindDN is None) != (self.bindPassword is None):
            raise unfit("bindDN and bindPassword belong together")
        if not self.startTls and any(_in_clear(url) for url in self.servers):
            raise unfit("ldap:// sends passwords in clear: use ldaps://, or startTls; without it, loopback only")
        if find_spec("bonsai") is None:
            raise unfit("the service was installed without LDAP: pip install 'sallyport[ldap]'")
        return self


def _in_clear(url: str) -> bool:
    scheme, host, _ = split_url(url)
    return scheme == "ldap" and not is_loopback(host)
