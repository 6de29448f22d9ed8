"""The types of the fields that configure providers. They check the form of a value before it is stored.

Error messages name the accepted values and never repeat a value (`base/validation.py`).
"""

from __future__ import annotations

import re
from typing import Annotated, Final

from pydantic import AfterValidator, BaseModel, BeforeValidator, Field, SecretStr

from sallyport.base.addresses import is_host, is_loopback
from sallyport.base.validation import unfit
from sallyport.outgoing.errors import PemError
from sallyport.outgoing.pem import MAX_CERTIFICATES_LENGTH, MAX_KEY_LENGTH, certificates, is_encrypted

_PRINTABLE: Final = re.compile(r"[\x21-\x7e]+")


def _host(value: str) -> str:
    if not is_host(value.strip()):
        raise unfit("must be a host name or an IP address")
    return value.strip()


def _authority(value: str) -> str:
    host, colon, port = value.strip().partition(":")
    if not is_host(host) or (colon and not (is_loopback(host) and port.isascii() and port.isdecimal())):
        raise unfit("must be a host name")
    return value.strip()


def origin(authority: str) -> str:
    """Return the base URL of an Authority. The scheme is https. For a loopback host with a port, the scheme is http."""
    return f"http://{authority}" if ":" in authority else f"https://{authority}"


def _url(value: str) -> str:
    import httpx  # imported here, because commands import this module and check no URL

    try:
        url = httpx.URL(value.strip())
    except (httpx.InvalidURL, ValueError):
        raise unfit("must be a URL such as https://mfa.example.com/path") from None
    if not _PRINTABLE.fullmatch(value.strip()) or not is_host(url.host) or url.fragment:
        raise unfit("must be a URL such as https://mfa.example.com/path")
    if url.userinfo:
        raise unfit("must be a URL without a user name and a password")
    if url.scheme != "https" and not (url.scheme == "http" and is_loopback(url.host)):
        raise unfit("must be an https URL; http is accepted only for a loopback address")
    return str(url)


def _secret(value: SecretStr) -> SecretStr:
    if not _PRINTABLE.fullmatch(value.get_secret_value()):
        raise unfit("must be ASCII text without spaces")
    return value


def _plain(value: SecretStr) -> SecretStr:
    if not value.get_secret_value().isprintable():
        raise unfit("must be text without control characters")
    return value


def _stripped(value: object) -> object:
    return value.strip() if isinstance(value, str) else value


def _certificates(value: str) -> str:
    try:
        certificates(value)
    except PemError as error:
        raise unfit(str(error)) from None
    return value


def _unencrypted(value: SecretStr) -> SecretStr:
    if is_encrypted(value.get_secret_value()):
        raise unfit("must be a private key without a passphrase; decrypt it with: openssl pkey -in FILE")
    return value


HostName = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(_host)]
"""A host name or an IP address."""
Authority = Annotated[str, Field(min_length=1, max_length=255), AfterValidator(_authority)]
"""The host of an https service. For tests and local gateways, the service uses plain http for a loopback host with a
port, such as 127.0.0.1:8123 or localhost:8123. `origin` makes the URL."""
ServerUrl = Annotated[str, Field(min_length=1, max_length=2048), AfterValidator(_url)]
"""An https URL, or an http URL of a loopback host. It must have no credentials and no fragment."""
Key = Annotated[str, Field(min_length=1, max_length=255, pattern=r"^[\x21-\x7e]+$"), BeforeValidator(_stripped)]
"""A public identifier that an MFA provider has issued, such as a client id."""
SecretKey = Annotated[SecretStr, Field(min_length=1, max_length=1024), AfterValidator(_secret)]
"""A secret that an MFA provider has issued. All its characters are allowed in an HTTP header."""
SharedKey = Annotated[SecretStr, Field(min_length=1, max_length=1024), AfterValidator(_plain)]
"""A secret of any printable characters. Its UTF-8 octets are used as a key."""
Certificates = Annotated[str, Field(max_length=MAX_CERTIFICATES_LENGTH), AfterValidator(_certificates)]
"""Certificates in PEM."""
KeyText = Annotated[SecretStr, Field(max_length=MAX_KEY_LENGTH), AfterValidator(_unencrypted)]
"""A private key in PEM. Only its label is checked here; `private_key` parses the key."""


def revealed(fields: BaseModel) -> dict[str, object]:
    """Return all configured fields, including the secrets. The caller seals them for the store."""
    return {name: _plain_value(getattr(fields, name)) for name in type(fields).model_fields}


def shown(fields: BaseModel) -> dict[str, object]:
    """Return the configured fields without the secrets."""
    values = {name: getattr(fields, name) for name in type(fields).model_fields}
    return {
        name: _shown_value(value)
        for name, value in values.items()
        if value is not None and not isinstance(value, SecretStr)
    }


def _plain_value(value: object) -> object:
    if isinstance(value, SecretStr):
        return value.get_secret_value()
    if isinstance(value, BaseModel):
        return revealed(value)
    return [_plain_value(each) for each in value] if isinstance(value, list | tuple) else value


def _shown_value(value: object) -> object:
    if isinstance(value, BaseModel):
        return shown(value)
    return [_shown_value(each) for each in value] if isinstance(value, list | tuple) else value
