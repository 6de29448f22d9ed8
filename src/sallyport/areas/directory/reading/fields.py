"""The types that check the settings of an LDAP directory before they are stored.

Error messages name the accepted values and never repeat a submitted value (`base/validation.py`).
"""

from __future__ import annotations

from typing import Annotated

from pydantic import AfterValidator, Field

from sallyport.areas.directory.directory import split_url
from sallyport.areas.directory.entry.dn import parsed
from sallyport.areas.directory.reading.search import checked
from sallyport.base.errors import Invalid
from sallyport.base.validation import unfit


def _url(value: str) -> str:
    try:
        split_url(value.strip())
    except ValueError:
        raise unfit("must be a URL such as ldaps://dc1.example.com or ldap://dc1.example.com:389") from None
    return value.strip()


def _dn(value: str) -> str:
    try:
        names = parsed(value)
    except Invalid:
        names = []
    if not names or not value.isprintable():
        raise unfit("must be a distinguished name such as dc=example,dc=com")
    return value.strip()


def _filter(value: str) -> str:
    try:
        return checked(value)
    except Invalid as error:
        raise unfit(str(error)) from None


def _line(value: str) -> str:
    if not value.isprintable():
        raise unfit("must be text without control characters")
    return value.strip()


LdapUrl = Annotated[str, Field(max_length=512), AfterValidator(_url)]
"""The URL of an LDAP server, such as ldaps://dc1.example.com."""
Name = Annotated[str, Field(max_length=1024), AfterValidator(_dn)]
"""A distinguished name. The empty name of the root is not valid."""
Line = Annotated[str, Field(min_length=1, max_length=1024), AfterValidator(_line)]
"""The name of the account that binds. It may be any text without control characters, because Active Directory also
accepts a UPN."""
Filter = Annotated[str, Field(max_length=4096), AfterValidator(_filter)]
"""A search filter (RFC 4515)."""
