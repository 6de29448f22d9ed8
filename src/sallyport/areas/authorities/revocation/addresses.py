"""Addresses of revocation lists and OCSP responders, and the HTTP exchanges with them.

An address comes from the settings of an authority, or from a certificate of a verified chain. In both cases the egress
rules decide whether the service may connect to it. A certificate of AD CS often has an LDAP address first; such an
address is skipped.
"""

from __future__ import annotations

import re
from typing import Final

import httpx
import trio

from sallyport.base.addresses import is_host
from sallyport.outgoing.errors import ProviderError
from sallyport.outgoing.http import HttpFactory

MAX_ADDRESS: Final = 1024
_PRINTABLE: Final = re.compile(r"[\x21-\x7e]+")


def is_http(address: str) -> bool:
    """Return whether an address is one that this service can ask: HTTP or HTTPS, without a user name, of at most 1,024
    ASCII characters."""
    if len(address) > MAX_ADDRESS or not _PRINTABLE.fullmatch(address):
        return False
    try:
        url = httpx.URL(address)
        return url.scheme in {"http", "https"} and is_host(url.host) and not url.userinfo and not url.fragment
    except (httpx.InvalidURL, ValueError):
        return False


class AddressClients:
    """Exchanges with addresses, each over a connection of its own: an answer is used for long. most: the maximum number
    of octets of an answer."""

    def __init__(self, http: HttpFactory, most: int) -> None:
        self._http = http
        self._most = most

    async def exchange(self, tenant_id: int, address: str, limit_s: float, post: bytes = b"", kind: str = "") -> bytes:
        """Return the body of an answer. Raises ProviderError if there is none within `limit_s` seconds.

        post: the body of a POST; empty for a GET. kind: the type of this body.
        """
        url = httpx.URL(address)
        answer: httpx.Response | None = None
        with trio.move_on_after(limit_s):
            origin = f"{url.scheme}://{url.netloc.decode()}"
            async with self._http.of(tenant_id)(origin, timeout_s=limit_s, most=self._most) as client:
                if post:
                    answer = await client.post(url, content=post, headers={"Content-Type": kind})
                else:
                    answer = await client.get(url)
        if answer is None:
            raise ProviderError(f"{url.host}: no answer in {limit_s:g} s")
        if answer.status_code != 200:
            raise ProviderError(f"{url.host}: the server answered HTTP {answer.status_code}")
        return answer.content
