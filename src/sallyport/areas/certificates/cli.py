"""`sallyport cert add`, `list`, `remove` and `check`: server certificates of domains, and their faults."""

from pathlib import Path
from typing import Final

import click

from sallyport.areas.certificates.bodies import CheckServerCertificate, RemoveServerCertificate, SetServerCertificate
from sallyport.base.errors import StartError
from sallyport.base.wire import Row
from sallyport.certs.cli import cert
from sallyport.certs.expiry import certificates_of
from sallyport.certs.folder import present, read_certificates
from sallyport.certs.supplicants import Verdict, remarks
from sallyport.shell.command import CommandLine, Form, entries, note_warnings
from sallyport.shell.exits import ExitStatus
from sallyport.shell.fields import field_option, option, options, pass_body
from sallyport.shell.options import InputFile, in_domain, json_form

COLUMNS: Final = ("realm", "hostNames", "issuer", "keyType", "expires", "warnings")
REMARKS: Final = ("verdict", "supplicant", "text")
_FILE = InputFile()


def _text(_context: click.Context, _option: click.Parameter, path: Path | None) -> str | None:
    return None if path is None else path.read_text(errors="replace")


@cert.command()
@in_domain
@options(SetServerCertificate, "realm")
@option(
    SetServerCertificate,
    "certificate",
    "--file",
    type=_FILE,
    callback=_text,
    help="PEM file with the server's certificate, followed by the intermediate certificates.",
)
@field_option(
    "privateKey",
    "--key-file",
    "key_file",
    type=_FILE,
    required=True,
    expose_value=True,
    help="PEM file with the key of the server's certificate, without a passphrase.",
)
@pass_body
def add(line: CommandLine, body: Row, *, domain: str, key_file: Path) -> None:
    """Set the server certificate of a domain for EAP, in place of that of the installation. No restart is needed."""
    body["privateKey"] = key_file.read_text(errors="replace")
    done = line.run("/ad/SetServerCertificate", body, domain=domain)
    line.note(str(done["message"]))
    note_warnings(line, done["warnings"])


@cert.command("list")
@in_domain
@json_form
@pass_body
def list_(line: CommandLine, body: Row, *, domain: str, form: Form | None) -> None:
    """List the server certificates of a domain."""
    found = line.run("/ad/ListServerCertificates", body, domain=domain)
    line.print_rows(entries(found["certificates"]), COLUMNS, form)


@cert.command()
@in_domain
@options(RemoveServerCertificate, "realm")
@pass_body
def remove(line: CommandLine, body: Row, *, domain: str) -> None:
    """Remove the server certificate of a domain. The domain then uses that of the installation."""
    line.note(str(line.run("/ad/RemoveServerCertificate", body, domain=domain)["message"]))


@cert.command()
@click.argument("file", type=_FILE, required=False)
@click.option("--domain", metavar="NAME|ID", help="Check the server certificate of this domain.")
@options(CheckServerCertificate, "realm", "serverName")
@json_form
@pass_body
def check(line: CommandLine, body: Row, *, file: Path | None, domain: str | None, form: Form | None) -> None:
    """Report why Windows, Apple's systems, Android or wpa_supplicant would refuse a server certificate.

    FILE has the certificate and its chain in PEM. Without FILE and --domain, the installation's certificate is checked.
    The exit status is 1 if a kind of supplicant refuses the certificate. Nothing is sent.
    """
    if domain is not None:
        if file is not None:
            body["certificate"] = file.read_text(errors="replace")
        rows = entries(line.run("/ad/CheckServerCertificate", body, domain=domain)["remarks"])
    elif "realm" in body:
        raise click.UsageError("--realm requires --domain")
    else:
        rows = _local(file or _of_installation(line), str(body.get("serverName", "")))
    line.print_rows(rows, REMARKS, form)
    if any(each["verdict"] == Verdict.REFUSES for each in rows):
        raise click.exceptions.Exit(ExitStatus.FAILED)


def _of_installation(line: CommandLine) -> Path:
    used = certificates_of(line.settings()).server()
    if used is None:
        raise StartError("the installation has no server certificate; to create one: sallyport cert init")
    return used.certificate_file


def _local(path: Path, server_name: str) -> list[Row]:
    return [
        {"verdict": each.verdict.value, "supplicant": each.supplicant.value, "text": each.text}
        for each in remarks(read_certificates(path), present(), server_name)
    ]
