"""Read the users, groups and memberships of Okta.

    GET /api/v1/users, /api/v1/groups, /api/v1/groups/{id}/users     page after page by the Link header's rel="next"

The reader authenticates with an API token (SSWS), or as a service application with the application's own key (client
credentials with private_key_jwt, RFC 7523). Okta requires such a key for the scopes of its management API.

A reading of changes lists all users and groups too, because a filter by the time of the last update would not return
deleted ones: a user that was deactivated and deleted between two readings would stay. The list has the status of each
user. Deactivated users, which it leaves out, are found by a filter. But a reading of changes interprets only users and
groups that were updated since a short time before the last known update, and requests only the members of such groups.
Most requests of a full reading are for members.

If a user or a group lacks a value that Okta always states, such as the status, the stored value is kept.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Collection, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from secrets import token_urlsafe
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

import httpx
import trio

from sallyport.areas.directory.entry.entry import (
    Batch,
    Entry,
    Gone,
    Group,
    Person,
    Problem,
    Unchanged,
    is_name,
    mappable,
)
from sallyport.areas.directory.entry.status import Status
from sallyport.areas.directory.reading import ReadError
from sallyport.areas.directory.reading.api import (
    BY_ID,
    MAX_ANSWER_SIZE,
    AccessToken,
    Authorize,
    Pages,
    as_read_error,
    texts,
)
from sallyport.base.clock import SECOND, Clock, from_iso, iso, iso_or_empty
from sallyport.base.secret import Secret
from sallyport.base.text import trimmed
from sallyport.outgoing.errors import PemError, ProviderError
from sallyport.outgoing.http import HttpFactory, json_array, member, text_at
from sallyport.outgoing.pem import private_key

if TYPE_CHECKING:
    from joserfc.jwk import ECKey, KeyParameters, RSAKey


PAGE: Final = "100"
OVERLAP_US: Final = 300 * SECOND
_SCOPES: Final = "okta.users.read okta.groups.read"
_ASSERTION: Final = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_ASSERTION_S: Final = 300
# Statuses of a user: https://developer.okta.com/docs/api/openapi/okta-management
_STATUSES: Final = {
    "ACTIVE": Status.ACTIVE,
    "PROVISIONED": Status.ACTIVE,
    "RECOVERY": Status.ACTIVE,
    "PASSWORD_EXPIRED": Status.ACTIVE,
    "STAGED": Status.DISABLED,
    "SUSPENDED": Status.DISABLED,
    "LOCKED_OUT": Status.LOCKED,
}
_DEPROVISIONED: Final = "DEPROVISIONED"
_BUILT_IN: Final = "BUILT_IN"  # the group Everyone
# LDAP's names for Okta's attributes. A custom attribute keeps its name.
_ATTRIBUTES: Final = {
    "email": "mail", "firstname": "givenname", "lastname": "sn", "mobilephone": "mobile", "primaryphone":
    "telephonenumber", "organization": "company", "city": "l", "state": "st", "countrycode": "c",
    "usertype": "employeetype", "streetaddress": "street", "zipcode": "postalcode",
}  # fmt: skip

Batches = AsyncGenerator[Batch, None]
_Objects = AsyncGenerator[Sequence[object], None]


@dataclass(frozen=True, slots=True)
class OktaSource:
    """An organization of Okta. url: the origin of the organization, without a trailing slash. attributes: the profile
    attributes that mappings use. If a user has too many attributes, these attributes are kept before others.

    client_id: the id of the application. If it is set, the secret is the private key of the application (RSA or P-256,
    in PEM or as a JWK). If it is empty, the secret is an API token.
    """

    url: str
    client_id: str
    secret: Secret
    attributes: Sequence[str] = ()


class OktaReader:
    """A reader of Okta organizations. It can read several organizations at the same time."""

    def __init__(self, http: HttpFactory, clock: Clock) -> None:
        self._http = http
        self._clock = clock

    @asynccontextmanager
    async def read(self, source: OktaSource, cursor: str = "", *, full: bool = True) -> AsyncIterator[Batches]:
        """Read an organization, and yield the entries in batches. Raises ReadError, also during the iteration.

        cursor: the cursor that the last reading returned. Only the changes since that reading are read. But if `full`
        is set, all entries are read.
        """
        async with self._http(source.url, most=MAX_ANSWER_SIZE) as client:
            authorize: Authorize = (
                _token_of(source) if not source.client_id else await _application(client, source, self._clock)
            )
            reading = _Reading(client, authorize, source.attributes, self._clock())
            async with aclosing(reading.batches(cursor, full=full)) as batches:
                yield batches


def _token_of(source: OktaSource) -> Authorize:
    async def authorize(_renew: bool) -> str:
        return f"SSWS {source.secret.reveal().decode()}"

    return authorize


async def _application(client: httpx.AsyncClient, source: OktaSource, clock: Clock) -> AccessToken:
    from joserfc import jwt

    try:
        key = await trio.to_thread.run_sync(application_key, source.secret.reveal())
    except PemError as error:
        raise ReadError(f"the application's clientSecret {error}") from None
    header = {"alg": "RS256" if key.key_type == "RSA" else "ES256", **({"kid": key.kid} if key.kid else {})}
    path = "/oauth2/v1/token"

    def form() -> dict[str, str]:
        now = clock() // SECOND
        claims = {
            "iss": source.client_id,
            "sub": source.client_id,
            "aud": f"{source.url}{path}",
            "iat": now,
            "exp": now + _ASSERTION_S,
            "jti": token_urlsafe(16),
        }
        return {
            "grant_type": "client_credentials",
            "scope": _SCOPES,
            "client_assertion_type": _ASSERTION,
            "client_assertion": jwt.encode(header, claims, key),
        }

    return AccessToken(
        client,
        path,
        form,
        "Okta refuses the application: check the clientId, the key and the scopes of the application",
    )


def application_key(octets: bytes) -> RSAKey | ECKey:
    """Return the private key of an application, from PEM or a JWK. Call this function in a worker thread (see
    `outgoing.pem`). Raises PemError if the text is not a supported key."""
    from cryptography.hazmat.primitives.asymmetric.ec import SECP256R1, EllipticCurvePrivateKey
    from cryptography.hazmat.primitives.asymmetric.rsa import RSAPrivateKey
    from joserfc.jwk import ECKey, RSAKey

    text = octets.decode(errors="replace")
    key = private_key(text)
    kid = json.loads(text).get("kid") if text.lstrip().startswith("{") else None
    parameters: KeyParameters = {"kid": kid} if isinstance(kid, str) else {}
    if isinstance(key, RSAPrivateKey):
        return RSAKey.import_key(key, parameters)
    if isinstance(key, EllipticCurvePrivateKey) and isinstance(key.curve, SECP256R1):
        return ECKey.import_key(key, parameters)
    raise PemError("must be an RSA private key, or a private key on the curve P-256")


def key_flaw(octets: bytes) -> str:
    """Return "" if the secret is a private key of a kind that Okta accepts. Otherwise return the message of a
    FieldError."""
    try:
        application_key(octets)
    except PemError as error:
        return str(error)
    return ""


class _Reading:
    def __init__(self, client: httpx.AsyncClient, authorize: Authorize, mapped: Collection[str], now: int) -> None:
        self._pages = Pages(client, authorize)
        self._now = now  # a later time would hide the updates until then
        self._mapped = frozenset(mapped)
        self._latest = 0
        self._has_accounts = False

    async def batches(self, cursor: str, *, full: bool) -> Batches:
        """Yield all batches. Raises ReadError."""
        since = None if full else _moment(cursor)
        self._latest = min(since or 0, self._now)
        with as_read_error():
            async with aclosing(self._users(since)) as batches:
                async for batch in batches:
                    yield batch
            async with aclosing(self._groups(since)) as batches:
                async for batch in batches:
                    yield batch
        if not self._has_accounts:
            raise ReadError("Okta shows no user: check the rights of the token or the application")
        yield Batch((), complete=True, cursor=iso_or_empty(self._latest))

    async def _users(self, since: int | None) -> Batches:
        async with aclosing(self._all("/api/v1/users", {"limit": PAGE})) as pages:
            async for page in pages:
                entries: list[Entry] = []
                for found in page:
                    is_changed = self._note(found, "lastUpdated", since=since)
                    entries.append(_user(found, self._mapped, whole=since is None) if is_changed else _unchanged(found))
                self._has_accounts |= any(isinstance(entry, Person | Unchanged) for entry in entries)
                yield Batch(entries)
        if since is not None:
            async with aclosing(self._deactivated(since)) as batches:
                async for batch in batches:
                    yield batch

    async def _deactivated(self, since: int) -> Batches:
        """Yield the users that were deactivated since a time. They are missing in the list, too. But if more than half
        of the users are missing, the import waits for a confirmation before it removes them."""
        moment = iso(max(since - OVERLAP_US, 0))[:-4] + "Z"  # Okta writes milliseconds
        changed = {"limit": PAGE, "filter": f'lastUpdated gt "{moment}"'}
        async with aclosing(self._all("/api/v1/users", changed)) as pages:
            async for page in pages:
                entries = (_user(found, self._mapped, whole=False) for found in page)
                yield Batch([entry for entry in entries if isinstance(entry, Gone)])

    async def _groups(self, since: int | None) -> Batches:
        async with aclosing(self._all("/api/v1/groups", {"limit": PAGE})) as pages:
            async for page in pages:
                for found in page:
                    if text_at(found, "type") == _BUILT_IN:
                        continue
                    is_changed = self._note(found, "lastUpdated", "lastMembershipUpdated", since=since)
                    yield Batch([await self._group(found, whole=since is None) if is_changed else _unchanged(found)])

    async def _group(self, found: object, *, whole: bool) -> Entry:
        external_id, name = text_at(found, "id"), trimmed(text_at(found, "profile", "name"))
        name = name if is_name(name) else ""
        if not external_id or (whole and not name):  # otherwise the stored name is kept
            return Problem(f"{BY_ID}{external_id}", "the entry has no name", external_id)
        members: list[str] = []
        path = f"/api/v1/groups/{quote(external_id, safe='')}/users"
        async with aclosing(self._all(path, {"limit": PAGE})) as pages:
            async for page in pages:
                members += (f"{BY_ID}{text_at(each, 'id')}" for each in page)
        return Group(external_id, f"{BY_ID}{external_id}", name, tuple(dict.fromkeys(members)))

    async def _all(self, path: str, params: dict[str, str]) -> _Objects:
        """Yield all pages of a list. If the list belongs to a group that was removed, yield nothing. Raises
        ProviderError."""
        answer = await self._pages.get(path, params)
        while answer.status_code < 400:
            yield json_array(answer)
            following = answer.links.get("next", {}).get("url")
            if following is None:
                return
            answer = await self._pages.get(following)
        if answer.status_code == 410 or path in ("/api/v1/users", "/api/v1/groups"):
            raise ProviderError("Okta does not find the list of users or groups: check the URL")

    def _note(self, found: object, *names: str, since: int | None) -> bool:
        """Note the times of an object's last updates. Return whether the object may have changed since a time: one of
        the updates is later than OVERLAP_US before this time, or is not stated."""
        moments = [_moment(text_at(found, name)) for name in names]
        self._latest = max(self._latest, *(min(moment or 0, self._now) for moment in moments))
        return since is None or any(moment is None or moment > since - OVERLAP_US for moment in moments)


def _user(found: object, mapped: Collection[str], *, whole: bool) -> Entry:
    """Return the account of an object. whole: whether the object must have a login."""
    external_id, name = text_at(found, "id"), trimmed(text_at(found, "profile", "login"))
    stated = text_at(found, "status").upper()
    if stated == _DEPROVISIONED:
        return Gone(external_id)
    status = _status(stated)
    is_stated = whole or member(member(found, "profile"), "login") is not None
    if not external_id or (is_stated and not is_name(name)):
        blocked = None if status is Status.ACTIVE else status
        return Problem(f"{BY_ID}{external_id}", "the entry has no login", external_id, blocked)
    profile = member(found, "profile")
    values = profile if isinstance(profile, dict) else {}
    named = {_ATTRIBUTES.get(key := str(each).lower(), key): texts(value) for each, value in values.items()}
    if not name:
        named.pop("login", None)
    attributes = mappable(named.items(), mapped)
    return Person(
        external_id=external_id,
        dn=f"{BY_ID}{external_id}",
        name=name,
        aliases=(),
        status=status,
        member_of=(),
        attributes=attributes if name else {**dict.fromkeys(named, ()), **attributes},
        alias_attributes=None if name else (),  # a profile with a login is a whole profile
    )


def _unchanged(found: object) -> Unchanged | Gone | Problem:
    """Return a user or group that was not updated. Only users have a status. A user may be deactivated although the
    time of the last update is the same."""
    external_id, stated = text_at(found, "id"), text_at(found, "status").upper()
    if not external_id:
        return Problem(BY_ID, "the entry has no id")
    if stated == _DEPROVISIONED:
        return Gone(external_id)
    return Unchanged(external_id, f"{BY_ID}{external_id}", _status(stated))


def _status(stated: str) -> Status | None:
    """Return the status of a user. It is None if Okta does not state it; then the stored status is kept. A status that
    this reader does not know, such as DELETION_PENDING, is an inactive one."""
    return _STATUSES.get(stated, Status.DISABLED) if stated else None


def _moment(text: str) -> int | None:
    """Return an ISO 8601 time in microseconds. Return None if the text is not a time."""
    try:
        return from_iso(text)
    except (ValueError, OverflowError):
        return None
