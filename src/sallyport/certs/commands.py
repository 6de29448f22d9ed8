"""What the command line asks: cert.init, cert.issue, cert.renew, cert.revoke.

The files are written first, then the audit trail: a change that could not be noted is an error, and was made.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from functools import partial
from typing import TypeAlias

import trio
from cryptography import x509
from pydantic import Field

from sallyport.base.command import JSON, Arguments, Command, Row, command
from sallyport.certs.authority import common_name, fingerprint
from sallyport.certs.directory import Directory, present, read_certificates

Note: TypeAlias = Callable[[str, str, Mapping[str, JSON]], Awaitable[None]]
"""Writes action, target and changes into the audit trail."""
Gone: TypeAlias = Callable[[Sequence[str]], Awaitable[None]]
"""Ends the sessions of those whose certificates had these names."""


class NewAuthority(Arguments):
    """hosts: names and addresses of the server."""

    ca_name: str
    hosts: list[str]


class OfClient(Arguments):
    """A user, a machine, a RADIUS server."""

    name: str


class Renewed(Arguments):
    """name: a client's; None: the server's. hosts: other names of the server."""

    name: str | None = None
    hosts: list[str] = Field(default_factory=list)


class Revoked(Arguments):
    """A client's name, or the serial number of one certificate in hex."""

    wanted: str


def commands(directory: Directory, note: Note, gone: Gone) -> dict[str, Command]:
    """The commands of the certificates by name."""

    async def noted(action: str, certificates: Sequence[x509.Certificate]) -> list[JSON]:
        told = [_told(each) for each in certificates]
        for each in told:
            ends = {} if action == "revoke" else {"expires": list[JSON]([None, each["expires"]])}
            await note(f"certificate.{action}", f"certificate {each['serial']} {each['name']}", ends)
        return list(told)

    async def init(wanted: NewAuthority) -> JSON:
        await trio.to_thread.run_sync(partial(directory.make, wanted.ca_name, wanted.hosts, present()))
        made = [read_certificates(path)[0] for path in (directory.ca, directory.server)]
        await noted("issue", made)
        return str(directory.ca)

    async def issue(wanted: OfClient) -> JSON:
        made = await trio.to_thread.run_sync(partial(directory.issue, wanted.name, present()))
        await noted("issue", [made])
        return {**_told(made), "path": str(directory.client(wanted.name))}

    async def renew(wanted: Renewed) -> JSON:
        made = await trio.to_thread.run_sync(partial(directory.renew, wanted.name, wanted.hosts, present()))
        await noted("renew", [made])
        return _told(made)

    async def revoke(wanted: Revoked) -> JSON:
        found = await trio.to_thread.run_sync(partial(directory.revoke, wanted.wanted, present()))
        told = await noted("revoke", found)
        await gone([common_name(each) for each in found])
        return told

    return {
        "cert.init": command(NewAuthority, init),
        "cert.issue": command(OfClient, issue),
        "cert.renew": command(Renewed, renew),
        "cert.revoke": command(Revoked, revoke),
    }


def _told(certificate: x509.Certificate) -> Row:
    return {
        "name": common_name(certificate),
        "serial": f"{certificate.serial_number:x}",
        "sha256": fingerprint(certificate),
        "expires": f"{certificate.not_valid_after_utc:%Y-%m-%d}",
    }
