"""`sallyport cert`: an authority for a start, its certificates, and what was taken back."""

import socket
from collections.abc import Sequence

import click

from sallyport.base.command import CommandLine, Form, Row
from sallyport.base.errors import StartError
from sallyport.certs.authority import common_name, fingerprint
from sallyport.certs.directory import Directory, Issued, present

COLUMNS = ("name", "kind", "state", "expires", "serial")
CA_NAME = "Sallyport CA"


@click.group()
def cert() -> None:
    """Certificates for EAP and RadSec: an authority of our own, in the data directory."""


@cert.command()
@click.option("--host", "hosts", multiple=True, help="A name or address of the server; without one, this machine's.")
@click.option("--ca-name", default=CA_NAME, show_default=True, help="What people see when they install it.")
@click.pass_obj
def init(line: CommandLine, *, hosts: Sequence[str], ca_name: str) -> None:
    """Make an authority and the certificate of the server."""
    directory = _directory(line)
    directory.make(ca_name, hosts or [socket.getfqdn()], present())
    line.print(f"{directory.ca}")
    line.note("the authority is made: install that file on whoever logs in or speaks RadSec (cert show --ca)")
    line.note(f"its key is in {directory.path}: keep a copy of that directory apart")


@cert.command()
@click.option("--ca", is_flag=True, help="The authority's certificate in PEM.")
@click.option("--json", "form", flag_value="json", help="As JSON.")
@click.pass_obj
def show(line: CommandLine, *, ca: bool, form: Form | None) -> None:
    """Show every certificate that was made here, or the authority's in PEM."""
    directory = _directory(line)
    if ca:
        line.print(directory.ca_pem().removesuffix("\n"))
    else:
        line.print_rows([_row(each) for each in directory.issued()], COLUMNS, form)


@cert.command()
@click.argument("name")
@click.pass_obj
def issue(line: CommandLine, *, name: str) -> None:
    """Make a certificate and key for a client: a user (with @ a mail address), a machine, a RADIUS server."""
    directory = _directory(line)
    certificate = directory.issue(name, present())
    path = directory.client(name)
    line.print(f"{path}\n{path.with_suffix('.key')}")
    line.note(f"SHA-256 fingerprint {fingerprint(certificate)}")


@cert.command()
@click.argument("name", required=False)
@click.option("--host", "hosts", multiple=True, help="Other names of the server.")
@click.pass_obj
def renew(line: CommandLine, *, name: str | None, hosts: Sequence[str]) -> None:
    """Make a new certificate for the key of the server, or of a client. It holds without a restart."""
    if name is not None and hosts:
        raise click.UsageError("--host is for the certificate of the server")
    certificate = _directory(line).renew(name, hosts, present())
    line.note(f"{common_name(certificate)}: until {certificate.not_valid_after_utc:%Y-%m-%d}")
    if name is not None:
        line.note(f"SHA-256 fingerprint {fingerprint(certificate)}")


@cert.command()
@click.argument("wanted", metavar="NAME|SERIAL")
@click.pass_obj
def revoke(line: CommandLine, *, wanted: str) -> None:
    """Take back all certificates of a client, or one. Its next handshake fails; open RadSec connections are closed."""
    for each in _directory(line).revoke(wanted, present()):
        line.note(f"{common_name(each)}, serial {each.serial_number:x}, is revoked")


def _directory(line: CommandLine) -> Directory:
    data_dir = line.settings().data_dir
    try:
        data_dir.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise StartError(f"data directory {data_dir}: {error.strerror}") from error
    return Directory(data_dir)


def _row(each: Issued) -> Row:
    return {
        "name": each.name,
        "kind": each.kind,
        "state": each.state(present()),
        "expires": f"{each.certificate.not_valid_after_utc:%Y-%m-%d}",
        "serial": f"{each.certificate.serial_number:x}",
        "sha256": fingerprint(each.certificate),
    }
