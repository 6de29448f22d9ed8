"""Checks that this machine can connect to the servers that logins need, and that the setting `egress` allows this."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final
from urllib.parse import urlsplit

import trio

from sallyport.areas.events.outlets.transport import targets_of
from sallyport.base.text import counted
from sallyport.base.wire import JSON, Row
from sallyport.cli.checks.model import Examination, Finding, ok, problem
from sallyport.outgoing.egress import Egress
from sallyport.outgoing.errors import AddressNotAllowed, ProviderError
from sallyport.shell.command import entries

PATIENCE_S: Final = 3.0
PORTS: Final = {"http": 80, "https": 443, "ldap": 389, "ldaps": 636}


@dataclass(frozen=True, slots=True)
class Target:
    """A server to check.

    name: the domain and the purpose of the server, for messages. over_tcp: whether to connect to the server. If it is
    False, the check only compares the address with `egress`.
    """

    name: str
    host: str
    port: int
    over_tcp: bool = True


def check_reach(examination: Examination) -> Iterator[Finding]:
    """Check that identity providers, MFA providers, directories and the SMTP server accept connections. For RADIUS
    servers and event outlets, check only that `egress` allows their addresses."""
    targets = list(dict.fromkeys(_targets(examination)))
    failed = trio.run(_connect_all, targets, Egress(examination.settings.egress))
    yield ok(f"{len(targets) - len(failed)} of {counted(len(targets), 'server')} can be connected to")
    for target in targets:
        if target in failed:
            yield problem(
                f"{target.name}: {target.host} port {target.port}: {failed[target]};"
                " check the address, the route and the firewall"
            )


def _targets(examination: Examination) -> Iterator[Target]:
    for outlet in targets_of(examination.settings):
        if outlet.host:
            yield Target("event outlet", outlet.host, outlet.port, over_tcp=False)
    mail = examination.settings.mail_server
    if mail is not None:
        yield Target("SMTP server", mail.host, mail.port)
    for named, each in examination.settings.identity_providers.items():
        yield from _of_url(f"identity provider {named}", each.issuer)
    for domain in examination.domains:
        name = str(domain["domainName"])
        providers = examination.line.run("/ad/ListMFAProviders", domain=str(domain["domainId"]))["providers"]
        for provider in entries(providers):
            body: Row = {"provider": provider["provider"]}
            shown = examination.line.run("/ad/GetMFAProvider", body, domain=str(domain["domainId"]))
            yield from _of_provider(name, str(provider["provider"]), shown)
        first = examination.line.run("/ad/GetFirstFactor", domain=str(domain["domainId"]))
        kind = str(first["firstFactor"])
        fields = first.get(kind)
        servers = fields.get("servers") if isinstance(fields, dict) else None
        for server in servers if isinstance(servers, list) else ():
            if isinstance(server, dict):
                yield Target(f"{name}: RADIUS server", str(server["host"]), int(str(server["port"])), over_tcp=False)
            else:
                yield from _of_url(f"{name}: directory", str(server))
        for directory in examination.line.listed(
            "/api/v1/directory/list", "directories", domain=str(domain["domainId"])
        ):
            for url in str(directory["appUrl"]).replace(",", " ").split():
                yield from _of_url(f"{name}: directory {directory['directoryName']}", url)


def _of_provider(domain: str, kind: str, fields: Mapping[str, JSON]) -> Iterator[Target]:
    """Yield the server of an MFA provider. The kind `totp` has no server. kind: the kind of provider. fields: the
    provider's configuration."""
    if kind == "radius":
        yield Target(f"{domain}: MFA provider radius", str(fields["host"]), int(str(fields["port"])), over_tcp=False)
    else:
        for field in ("url", "host", "domain", "issuer"):
            value = str(fields.get(field) or "")
            yield from _of_url(
                f"{domain}: MFA provider {kind}", value if "://" in value or not value else f"https://{value}"
            )


def _of_url(name: str, url: str) -> Iterator[Target]:
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or PORTS.get(parts.scheme)
    except ValueError:
        return
    if host and port:
        yield Target(name, host, port)


async def _connect_all(targets: Iterable[Target], egress: Egress) -> dict[Target, str]:
    """Connect to all servers at the same time. Return the reason for each server that could not be reached."""
    failed: dict[Target, str] = {}

    async def attempt(target: Target) -> None:
        try:
            with trio.fail_after(PATIENCE_S):
                address = (await egress.resolve(target.host, target.port))[0]
                if target.over_tcp:
                    await (await trio.open_tcp_stream(address, target.port)).aclose()
        except trio.TooSlowError:
            failed[target] = f"no answer within {PATIENCE_S:g} s"
        except AddressNotAllowed as error:
            failed[target] = error.advice
        except (OSError, ProviderError) as error:
            failed[target] = str(error)

    async with trio.open_nursery() as nursery:
        for target in targets:
            nursery.start_soon(attempt, target)
    return failed
