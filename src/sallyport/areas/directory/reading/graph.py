"""Read the users and groups of Entra ID from Microsoft Graph.

    POST {login}/{tenant}/oauth2/v2.0/token      client credentials (RFC 6749 section 4.4)
    GET  {graph}/v1.0/users/delta                page after page by @odata.nextLink; the last has @odata.deltaLink
    GET  {graph}/v1.0/devices/delta              the same for devices, if they are read
    GET  {graph}/v1.0/groups/delta               the same for groups
    GET  {graph}/v1.0/groups/{id}/members        for each group in a delta

The first round of a delta query returns all objects. A later round returns only the changed objects. A removed object
is marked with `@removed`. A cursor has the links to the next round for users, for devices if they are read, and for
groups.

A device is read as an account with the login name `host/DEVICEID`, because its display name is not unique.

An object of a later round may lack all values that have not changed. The stored values are kept for them. A new account
whose status is not stated is not imported.

groups/delta distributes the changes of a group's members over several pages. If a page were missing, the reader would
not notice it. So all members of a changed group are read again.
"""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from typing import Final
from urllib.parse import quote

import httpx

from sallyport.areas.directory.entry.entry import (
    DEVICE_ID,
    Batch,
    Entry,
    Gone,
    Group,
    Person,
    Problem,
    is_name,
    mappable,
)
from sallyport.areas.directory.entry.status import Status
from sallyport.areas.directory.reading import NotAllowed, ReadError
from sallyport.areas.directory.reading.api import BY_ID, MAX_ANSWER_SIZE, AccessToken, Pages, as_read_error, texts
from sallyport.base.secret import Secret
from sallyport.base.text import trimmed
from sallyport.outgoing.errors import ProviderError
from sallyport.outgoing.http import HttpFactory, json_object, member, text_at

GRAPH: Final = "https://graph.microsoft.com"
LOGIN: Final = "https://login.microsoftonline.com"
PAGE: Final = 200
_MEMBERS: Final = "500"

# LDAP's names for Graph's attributes: https://learn.microsoft.com/graph/api/resources/user
_ATTRIBUTES: Final = {
    "userPrincipalName": "userprincipalname", "displayName": "displayname", "givenName": "givenname", "surname": "sn",
    "mail": "mail", "department": "department", "jobTitle": "title", "officeLocation": "physicaldeliveryofficename",
    "mobilePhone": "mobile", "businessPhones": "telephonenumber", "companyName": "company", "country": "co",
    "city": "l", "state": "st", "employeeId": "employeeid", "employeeType": "employeetype",
    "faxNumber": "facsimiletelephonenumber", "preferredLanguage": "preferredlanguage", "userType": "usertype",
    "onPremisesSamAccountName": "samaccountname", "onPremisesUserPrincipalName": "onpremisesuserprincipalname",
    "onPremisesSecurityIdentifier": "objectsid", "securityIdentifier": "securityidentifier",
}  # fmt: skip
_USERS: Final = ",".join(("id", "accountEnabled", *_ATTRIBUTES))
_ALIASES: Final = ("samaccountname", "onpremisesuserprincipalname")
# Graph's attributes of a device: https://learn.microsoft.com/graph/api/resources/device
_OF_DEVICE: Final = {
    "deviceId": DEVICE_ID, "displayName": "displayname", "isCompliant": "iscompliant", "isManaged": "ismanaged",
    "trustType": "trusttype", "operatingSystem": "operatingsystem", "onPremisesSecurityIdentifier": "objectsid",
}  # fmt: skip
_DEVICES: Final = ",".join(("id", "accountEnabled", *_OF_DEVICE))

_NO_DEVICES: Final = "Entra ID does not let the application read devices: grant Device.Read.All"

Batches = AsyncGenerator[Batch, None]
_Objects = AsyncGenerator[Sequence[object], None]


@dataclass(frozen=True, slots=True)
class GraphSource:
    """An Entra ID tenant, and the application that reads the tenant. graph, login: the origins of Microsoft Graph and
    of the login server. They are different in a national cloud. devices: whether devices are read too."""

    tenant: str
    client_id: str
    secret: Secret
    graph: str = GRAPH
    login: str = LOGIN
    devices: bool = False


class GraphReader:
    """A reader of Entra ID tenants. It can read several tenants at the same time."""

    def __init__(self, http: HttpFactory) -> None:
        self._http = http

    @asynccontextmanager
    async def read(self, source: GraphSource, cursor: str = "", *, full: bool = True) -> AsyncIterator[Batches]:
        """Read a tenant, and yield the entries in batches. Raises ReadError, also during the iteration.

        cursor: the cursor that the last reading returned. Only the changes since that reading are read. But all entries
        are read if `full` is set, or if the cursor has expired.
        """
        async with self._http(source.graph, most=MAX_ANSWER_SIZE) as graph, self._http(source.login) as login:
            reading = _Reading(graph, _token(login, source), devices=source.devices)
            async with aclosing(reading.batches(cursor, full=full)) as batches:
                yield batches


class _Expired(Exception):
    """The error for a delta link that has expired (HTTP 410)."""


def _token(login: httpx.AsyncClient, source: GraphSource) -> AccessToken:
    form = {
        "grant_type": "client_credentials",
        "client_id": source.client_id,
        "client_secret": source.secret.reveal().decode(),
        "scope": f"{source.graph}/.default",
    }
    path = f"/{quote(source.tenant, safe='')}/oauth2/v2.0/token"
    refused = "Entra ID refuses the application: check tenant, clientId and clientSecret"
    return AccessToken(login, path, lambda: form, refused)


class _Reading:
    def __init__(self, graph: httpx.AsyncClient, token: AccessToken, *, devices: bool) -> None:
        self._reads_devices = devices
        self._pages = Pages(graph, token)
        self._origin = str(graph.base_url).rstrip("/")
        self._links: list[str] = []  # the links at which the next rounds start
        self._has_accounts = self._lacks_devices = False

    async def batches(self, cursor: str, *, full: bool) -> Batches:
        """Yield all batches. Raises ReadError."""
        links = None if full else _links_of(cursor, self._origin, 3 if self._reads_devices else 2)
        with as_read_error():
            try:
                async with aclosing(self._rounds(links)) as batches:
                    async for batch in batches:
                        yield batch
            except _Expired:
                if links is None:
                    raise ReadError("a new delta query expired while the directory was read") from None
                links, self._links = None, []
                async with aclosing(self._rounds(None)) as batches:
                    async for batch in batches:
                        yield batch
        if links is None and not self._has_accounts:
            raise ReadError("Graph shows no user: check that the application has the permission User.Read.All")
        complete = links is None and not self._lacks_devices  # otherwise all stored devices would be removed
        yield Batch((), complete=complete, cursor=json.dumps(self._links))

    async def _rounds(self, links: Sequence[str] | None) -> Batches:
        users = links[0] if links else f"/v1.0/users/delta?$select={_USERS}"
        groups = links[-1] if links else "/v1.0/groups/delta?$select=id,displayName,members"
        async with aclosing(self._round(users)) as pages:
            async for page in pages:
                entries = [_user(found, whole=links is None) for found in page]
                self._has_accounts |= any(isinstance(entry, Person) for entry in entries)
                yield Batch(entries)
        if self._reads_devices:
            async with aclosing(self._devices(links[1] if links else "", whole=links is None)) as batches:
                async for batch in batches:
                    yield batch
        done: set[str] = set()
        async with aclosing(self._round(groups)) as pages:
            async for page in pages:
                for found in page:
                    if text_at(found, "id") not in done:
                        done.add(text_at(found, "id"))
                        yield Batch([await self._group(found, whole=links is None)])

    async def _devices(self, link: str, *, whole: bool) -> Batches:
        """Yield the devices. If the application may not read devices, yield a problem instead, so that people are read
        all the same. The next reading then starts at the same link."""
        link = link or f"{self._origin}/v1.0/devices/delta?$select={_DEVICES}"
        try:
            async with aclosing(self._round(link)) as pages:
                async for page in pages:
                    yield Batch([_device(found, whole=whole) for found in page])
        except NotAllowed:
            self._lacks_devices = True
            self._links.append(link)
            yield Batch([Problem("devices", _NO_DEVICES)])

    async def _round(self, link: str) -> _Objects:
        """Yield all pages of one delta query, and store the link for the next delta query."""
        while True:
            answer = await self._pages.get(link, headers={"Prefer": f"odata.maxpagesize={PAGE}"})
            if answer.status_code == 410:
                raise _Expired
            document = json_object(answer)
            yield _objects(document)
            link, last = text_at(document, "@odata.nextLink"), text_at(document, "@odata.deltaLink")
            if last:
                self._links.append(last)
                return
            if not link:
                raise ReadError("Graph ended a delta query without the link for the next delta query")

    async def _group(self, found: object, *, whole: bool) -> Entry:
        external_id, name = text_at(found, "id"), trimmed(text_at(found, "displayName"))
        if member(found, "@removed") is not None:
            return Gone(external_id)
        name = name if is_name(name) else ""
        if not external_id or (whole and not name):  # otherwise the stored name is kept
            return Problem(f"{BY_ID}{external_id}", "the entry has no name", external_id)
        members: list[str] = []
        link = f"/v1.0/groups/{quote(external_id, safe='')}/members?$select=id&$top={_MEMBERS}"
        while link:
            answer = await self._pages.get(link)
            if answer.status_code >= 400:
                return Gone(external_id)  # removed after the last page
            document = json_object(answer)
            members += (f"{BY_ID}{text_at(each, 'id')}" for each in _objects(document))
            link = text_at(document, "@odata.nextLink")
        return Group(external_id, f"{BY_ID}{external_id}", name, tuple(dict.fromkeys(members)))


def _user(found: object, *, whole: bool) -> Entry:
    """Return the account of an object. whole: whether the object has all values that the account has."""
    external_id, name = text_at(found, "id"), trimmed(text_at(found, "userPrincipalName"))
    if member(found, "@removed") is not None:
        return Gone(external_id)
    enabled = member(found, "accountEnabled")
    status = (Status.ACTIVE if enabled else Status.DISABLED) if isinstance(enabled, bool) else None
    is_stated = whole or member(found, "userPrincipalName") is not None
    if not external_id or (is_stated and not is_name(name)):
        blocked = status if status is Status.DISABLED else None
        return Problem(f"{BY_ID}{external_id}", "the entry has no userPrincipalName", external_id, blocked)
    stated = found if isinstance(found, dict) else {}
    values = {ours: texts(stated[theirs]) for theirs, ours in _ATTRIBUTES.items() if theirs in stated}
    if not name:  # a missing or empty name is not a change of the name
        values.pop("userprincipalname", None)
    attributes = mappable(values.items())
    others = (trimmed(value) for alias in _ALIASES for value in attributes.get(alias, ()))
    return Person(
        external_id=external_id,
        dn=f"{BY_ID}{external_id}",
        name=name,
        aliases=tuple(other for other in dict.fromkeys(others) if is_name(other) and other != name),
        status=status,
        member_of=(),
        attributes=attributes if whole else {**dict.fromkeys(values, ()), **attributes},
        alias_attributes=None if whole else _ALIASES,
    )


def _device(found: object, *, whole: bool) -> Entry:
    """Return the account of a device. whole: whether the object has all values that the device has."""
    external_id, device_id = text_at(found, "id"), trimmed(text_at(found, "deviceId"))
    if member(found, "@removed") is not None:
        return Gone(external_id)
    enabled = member(found, "accountEnabled")
    status = (Status.ACTIVE if enabled else Status.DISABLED) if isinstance(enabled, bool) else None
    if not external_id or (whole and not is_name(device_id)):
        blocked = status if status is Status.DISABLED else None
        return Problem(f"{BY_ID}{external_id}", "the device has no deviceId", external_id, blocked)
    stated = found if isinstance(found, dict) else {}
    values = {ours: texts(stated[theirs]) for theirs, ours in _OF_DEVICE.items() if theirs in stated}
    flags = {name: stated[name] for name in ("isCompliant", "isManaged") if name in stated}
    values |= {_OF_DEVICE[name]: ["true" if flag else "false"] * isinstance(flag, bool) for name, flag in flags.items()}
    if not device_id:
        values.pop(DEVICE_ID, None)
    attributes = mappable(values.items())
    return Person(
        external_id=external_id,
        dn=f"{BY_ID}{external_id}",
        name=f"host/{device_id}" if device_id else "",
        aliases=(),
        status=status,
        member_of=(),
        attributes=attributes if whole else {**dict.fromkeys(values, ()), **attributes},
        alias_attributes=None if whole else (),
    )


def _objects(document: object) -> Sequence[object]:
    values = member(document, "value")
    if not isinstance(values, list):
        raise ProviderError("Graph sent a page without the field `value`")
    return values


def _links_of(cursor: str, origin: str, count: int) -> Sequence[str] | None:
    """Return the links of a cursor. Return None if the text is not a cursor with this number of links, or if a link has
    another origin than the given one."""
    try:
        links = json.loads(cursor)
    except ValueError:
        return None
    fits = isinstance(links, list) and len(links) == count
    return links if fits and all(isinstance(link, str) and link.startswith(f"{origin}/") for link in links) else None
