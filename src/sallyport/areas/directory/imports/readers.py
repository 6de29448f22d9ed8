"""Create the reader of a directory from the directory's settings. Raises ReadError if the settings are not valid."""

from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Final

from pydantic import TypeAdapter, ValidationError

from sallyport.areas.directory.directory import DirectoryKind, in_clear
from sallyport.areas.directory.entry.entry import Batch, Person
from sallyport.areas.directory.imports.job import ATTRIBUTES, Check, DirectorySource, Read
from sallyport.areas.directory.reading import ReadError
from sallyport.areas.directory.reading.connection import Account
from sallyport.areas.directory.reading.fields import Filter, LdapUrl, Name
from sallyport.areas.directory.reading.graph import GRAPH, LOGIN, GraphReader, GraphSource
from sallyport.areas.directory.reading.okta import OktaReader, OktaSource
from sallyport.areas.directory.reading.reader import NO_ACCOUNT, LdapReader, LdapSource
from sallyport.areas.directory.reading.search import ACCOUNTS
from sallyport.areas.directory.reading.server import Server
from sallyport.base.addresses import is_loopback
from sallyport.base.clock import Clock
from sallyport.base.errors import about
from sallyport.base.validation import described
from sallyport.outgoing.fields import Certificates, ServerUrl
from sallyport.outgoing.http import HttpFactory

Batches = AbstractAsyncContextManager[AsyncIterator[Batch]]

_URL: Final = TypeAdapter[str](LdapUrl)
_NAME: Final = TypeAdapter[str](Name)
_FILTER: Final = TypeAdapter[str](Filter)
_PEM: Final = TypeAdapter[str](Certificates)
_WEB: Final = TypeAdapter[str](ServerUrl)
# Login servers of the national clouds: https://learn.microsoft.com/graph/deployments
_LOGINS: Final = {
    GRAPH: LOGIN,
    "https://graph.microsoft.us": "https://login.microsoftonline.us",
    "https://dod-graph.microsoft.us": "https://login.microsoftonline.us",
    "https://microsoftgraph.chinacloudapi.cn": "https://login.chinacloudapi.cn",
}


def readers(http: Callable[[int], HttpFactory], clock: Clock) -> Mapping[str, Read]:
    """Return functions that read directories, by kind of directory. Kinds that the service does not read are left out.
    http: a function that takes the id of a domain and returns the HTTP factory of the domain's tenant."""

    def read_ldap(source: DirectorySource, cursor: str, full: bool) -> Batches:
        return LdapReader(http(source.domain_id).egress, clock).read(ldap_source(source), cursor, full=full)

    def read_graph(source: DirectorySource, cursor: str, full: bool) -> Batches:
        return GraphReader(http(source.domain_id)).read(graph_source(source), cursor, full=full)

    def read_okta(source: DirectorySource, cursor: str, full: bool) -> Batches:
        return OktaReader(http(source.domain_id), clock).read(okta_source(source), cursor, full=full)

    return {DirectoryKind.LDAP: read_ldap, DirectoryKind.GRAPH: read_graph, DirectoryKind.OKTA: read_okta}


def checks(http: Callable[[int], HttpFactory], clock: Clock) -> Mapping[str, Check]:
    """Return functions that test directories, by kind of directory. Kinds that the service does not read are left out.
    http: see `readers`."""
    read = readers(http, clock)

    async def check_ldap(source: DirectorySource) -> int:
        return await LdapReader(http(source.domain_id).egress, clock).check(ldap_source(source))

    async def check_cloud(source: DirectorySource) -> int:
        async with read[source.kind](source, "", True) as batches:
            async for batch in batches:
                if any(isinstance(each, Person) for each in batch.entries):
                    return len(batch.entries)
        raise ReadError(NO_ACCOUNT)

    return {DirectoryKind.LDAP: check_ldap, DirectoryKind.GRAPH: check_cloud, DirectoryKind.OKTA: check_cloud}


def ldap_source(source: DirectorySource) -> LdapSource:
    """Return the settings of an LDAP directory. The appUrl may have several URLs. If bindDN is not set, the
    accountName is used. Raises ReadError if a setting is missing or not valid."""
    settings = source.settings
    start_tls = settings.get("startTls") == "true"
    urls = [_fit(_URL, url, "appUrl") for url in source.app_url.replace(",", " ").split()]
    if not urls:
        raise ReadError("the directory has no appUrl")
    account = settings.get("bindDN") or source.account_name
    if account and source.secret is None:
        raise ReadError("the directory has a bindDN but no bindPassword")
    if account and not start_tls and any(in_clear(url) for url in urls):
        raise ReadError("ldap:// would send the password unencrypted: use ldaps:// or startTls")
    authorities = settings.get("caCertificate")
    return LdapSource(
        servers=tuple(Server(url, start_tls) for url in urls),
        base=_fit(_NAME, settings.get("baseDN", ""), "baseDN"),
        account=Account(account, source.secret.reveal().decode()) if account and source.secret is not None else None,
        accounts=_fit(_FILTER, settings["filter"], "filter") if settings.get("filter") else ACCOUNTS,
        attributes=_mapped(source),
        authorities=_fit(_PEM, authorities, "caCertificate") if authorities else None,
    )


def graph_source(source: DirectorySource) -> GraphSource:
    """Return the settings of an Entra ID tenant. If clientId is not set, the accountName is used. The appUrl is
    needed only for a national cloud. Raises ReadError if a setting is missing or not valid."""
    origin = _origin(source.app_url or GRAPH)
    host = origin.removeprefix("http://").rpartition(":")[0]
    login = origin if is_loopback(host) else _LOGINS.get(origin)
    tenant, client_id = source.settings.get("tenant"), source.settings.get("clientId") or source.account_name
    if login is None:
        raise ReadError("the directory's appUrl is not a URL of Microsoft Graph")
    if not tenant or not client_id or source.secret is None:
        raise ReadError("the directory needs tenant, clientId and clientSecret")
    return GraphSource(
        tenant, client_id, source.secret, origin, login, devices=source.settings.get("readDevices") == "true"
    )


def okta_source(source: DirectorySource) -> OktaSource:
    """Return the settings of an Okta organization. If clientId is set, the secret is the private key of the
    application. If clientId is not set, the secret is an API token. Raises ReadError if a setting is missing or not
    valid."""
    if source.secret is None:
        raise ReadError("the directory needs an apiToken, or clientId and clientSecret")
    return OktaSource(_origin(source.app_url), source.settings.get("clientId", ""), source.secret, _mapped(source))


def _mapped(source: DirectorySource) -> tuple[str, ...]:
    return tuple(filter(None, source.settings.get(ATTRIBUTES, "").split(",")))


def _origin(url: str) -> str:
    found = _fit(_WEB, url if "//" in url else f"https://{url}", "appUrl")
    scheme, _, rest = found.partition("://")
    return f"{scheme}://{rest.partition('/')[0].partition('?')[0]}"


def _fit(kind: TypeAdapter[str], value: str, name: str) -> str:
    try:
        return kind.validate_python(value)
    except ValidationError as error:
        raise ReadError(about(f"the directory's {name}", described(error.errors()[0]))) from None
