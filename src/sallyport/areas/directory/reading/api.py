"""Read the pages of a cloud directory's HTTP API, with an access token and within the API's rate limit."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Final

import httpx
import trio

from sallyport.areas.directory.reading import NotAllowed, ReadError
from sallyport.base.clock import BackOff
from sallyport.outgoing.errors import ProviderError
from sallyport.outgoing.http import REPEATABLE, json_object, link_of, member, text_at

BY_ID: Final = "id:"
"""Prefix of the identifier of an entry without a distinguished name."""

TRIES: Final = 6
MAX_WAIT_S: Final = 300.0
"""Maximum accepted Retry-After of an API, in seconds. A longer Retry-After is an error."""
ANSWER_S: Final = 60.0
MAX_ANSWER_SIZE: Final = 2**20
MAX_PAGES: Final = 200_000
_SOONER_S: Final = 60.0

Authorize = Callable[[bool], Awaitable[str]]
"""A function that returns the Authorization header. The argument True requests a new token, because the API has refused
the last one."""


class AccessToken:
    """The access token of an application (RFC 6749 section 4.4). If there is no token, or if the token expires soon, a
    new token is requested.

    form: a function that returns the body of the token request. refused: the message of the ReadError that is raised if
    the token request is refused.
    """

    def __init__(
        self, client: httpx.AsyncClient, path: str, form: Callable[[], Mapping[str, str]], refused: str
    ) -> None:
        self._client = client
        self._path = path
        self._form = form
        self._refused = refused
        self._value = ""
        self._until = 0.0

    async def __call__(self, renew: bool) -> str:
        """Return the Authorization header. renew: if true, request a new token although the last token is still valid.
        Raises ReadError, ProviderError."""
        if renew or trio.current_time() >= self._until:
            answer = await self._client.post(self._path, data=self._form(), extensions=REPEATABLE)
            if answer.status_code != 200:
                raise ReadError(self._refused)
            document = json_object(answer)
            self._value, lasts = text_at(document, "access_token"), member(document, "expires_in")
            if not (self._value.isascii() and self._value.isprintable() and self._value):
                raise ReadError(f"{self._client.base_url.host}: the answer has no access token")
            self._until = trio.current_time() + (float(lasts) if isinstance(lasts, int) else 0.0) - _SOONER_S
        return f"Bearer {self._value}"


class Pages:
    """The requests that read a directory once. client: the HTTP client for the API's origin. A link to another origin
    is not followed."""

    def __init__(self, client: httpx.AsyncClient, authorize: Authorize) -> None:
        self._client = client
        self._authorize = authorize
        self._asked = 0

    async def get(
        self, url: str, params: Mapping[str, str] | None = None, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """Send a GET request and return the answer. Raises ReadError or ProviderError if the status is 400 or more,
        except for 404 and 410."""
        renew = False
        self._asked += 1
        if self._asked > MAX_PAGES:
            raise ReadError(f"{self._client.base_url.host}: the list has more than {MAX_PAGES} pages")
        back_off = BackOff()
        for attempt in range(TRIES):
            authorization = await self._authorize(renew)
            try:
                answer = await self._client.get(
                    link_of(self._client, url),
                    params=params,
                    headers={"Accept": "application/json", "Authorization": authorization, **(headers or {})},
                    timeout=ANSWER_S,
                )
            except ProviderError as error:
                wait = error.retry_after_s or back_off.failed()
                if wait > MAX_WAIT_S or attempt == TRIES - 1:
                    raise
                await trio.sleep(wait)
                continue
            if answer.status_code == 401 and not renew:  # a token may expire early
                renew = True
                continue
            if answer.status_code == 403:
                raise NotAllowed(f"{self._client.base_url.host}: {_refusal(answer.status_code)}")
            if answer.status_code >= 400 and answer.status_code not in (404, 410):
                raise ReadError(f"{self._client.base_url.host}: {_refusal(answer.status_code)}")
            return answer
        raise ReadError(f"{self._client.base_url.host}: every request failed")


def _refusal(status: int) -> str:
    meanings = {
        401: "does not accept the credentials",
        403: "does not allow the application to read users, groups or devices",
    }
    return f"{meanings.get(status, 'refuses the request')} (HTTP {status})"


def texts(value: object) -> list[str]:
    """Return the texts in a JSON value, which is either a text or an array."""
    values = value if isinstance(value, list) else [value]
    return [each.encode(errors="replace").decode() for each in values if isinstance(each, str)]


@contextmanager
def as_read_error() -> Iterator[None]:
    """Convert a ProviderError within the block to a ReadError."""
    try:
        yield
    except ProviderError as error:
        raise ReadError(str(error), retry_after_s=error.retry_after_s) from None
