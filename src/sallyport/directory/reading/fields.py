"""The types of what an admin configures of an LDAP directory, checked before anything is stored.

Error messages say what a field takes and never repeat a value (`base/validation.py`).
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Annotated, Final
from urllib.parse import urlsplit

from pydantic import AfterValidator, Field, TypeAdapter

from sallyport.base.errors import Invalid
from sallyport.base.validation import unfit
from sallyport.directory.dn import parsed
from sallyport.directory.reading.search import checked
from sallyport.outgoing.fields import HostName, is_loopback

WITHOUT_LDAP: Final = "Sallyport was installed without LDAP: pip install 'sallyport[ldap]'"
_HOST: Final = TypeAdapter[str](HostName)


def has_ldap() -> bool:
    """Whether the extra `ldap` is installed."""
    return find_spec("bonsai") is not None


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
    try:
        names = parsed(value)
    except Invalid:
        names = []
    if not names or not value.isprintable():
        raise unfit("a distinguished name such as dc=example,dc=com")
    return value.strip()


def _filter(value: str) -> str:
    try:
        return checked(value)
    except Invalid as error:
        raise unfit(str(error)) from None


def _line(value: str) -> str:
    if not value.isprintable():
        raise unfit("text without control characters")
    return value.strip()


def in_clear(url: str) -> bool:
    """Whether an LDAP URL sends what is said in clear over a network."""
    scheme, host, _ = split_url(url)
    return scheme == "ldap" and not is_loopback(host)


LdapUrl = Annotated[str, Field(max_length=512), AfterValidator(_url)]
"""Such as ldaps://dc1.example.com."""
Name = Annotated[str, Field(max_length=1024), AfterValidator(_dn)]
"""A distinguished name other than the root's."""
Line = Annotated[str, Field(min_length=1, max_length=1024), AfterValidator(_line)]
"""Text without control characters: whom to bind as, which Active Directory takes as a UPN too."""
Filter = Annotated[str, Field(max_length=4096), AfterValidator(_filter)]
"""A search filter."""
