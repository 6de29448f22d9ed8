"""`sallyport cert`: a certificate authority, its certificates and revocations."""

import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

import click

from sallyport.base.wire import Row
from sallyport.certs.authority import KeyKind, fingerprint
from sallyport.certs.bundle_cli import bundled, reserved, wanted, write
from sallyport.certs.folder import CertificateFolder, Issued, present
from sallyport.shell.command import CommandLine, Form
from sallyport.shell.options import NUMBER, Group, json_answer, json_form

COLUMNS = ("name", "kind", "org", "tenant", "state", "expires", "serial")
CA_NAME = "Sallyport CA"
KINDS = click.Choice([each.value for each in KeyKind])
SEND_ROOT = "Send the authority's certificate in each login, for Android devices that trust on first use."

org = click.option("--org", type=NUMBER, help="orgId of the certificate's tenant.")
tenant = click.option("--tenant", type=NUMBER, help="tenantId; required if there are several tenants.")


@click.group(cls=Group)
def cert() -> None:
    """Certificates for EAP and RadSec, from an authority in the data directory."""


@cert.command()
@click.option(
    "--host",
    "hosts",
    multiple=True,
    help="Name or address of the server; repeatable. Default: the name of this machine.",
)
@click.option(
    "--ca-name",
    default=CA_NAME,
    show_default=True,
    help="Name of the authority that users see when they install its certificate.",
)
@click.option(
    "--key-type",
    type=KINDS,
    default=KeyKind.P256.value,
    show_default=True,
    help="Kind of the keys. RSA is for devices without elliptic curves.",
)
@click.option("--send-root", is_flag=True, help=SEND_ROOT)
@json_answer
@click.pass_obj
def init(line: CommandLine, *, hosts: Sequence[str], ca_name: str, key_type: str, send_root: bool) -> None:
    """Create an authority (ten years) and the certificate of the server (397 days), both with SHA-256."""
    path = str(
        line.call(
            "cert.init",
            ca_name=ca_name,
            hosts=[*hosts] or [socket.getfqdn()],
            key_type=key_type,
            send_root=send_root,
        )
    )
    line.print_answer({"path": path}, path)
    line.note("the authority is created: install its certificate on the devices and the RadSec peers (cert show --ca)")
    line.note(f"the authority's key is in {Path(path).parent}: keep a copy of that directory on another machine")


@cert.command()
@click.option("--ca", is_flag=True, help="Print the authority's certificate in PEM.")
@json_form
@click.pass_obj
def show(line: CommandLine, *, ca: bool, form: Form | None) -> None:
    """Show all issued certificates, or the authority's certificate in PEM."""
    folder = CertificateFolder(line.settings().data_dir)
    if ca:
        line.print(folder.ca_pem().removesuffix("\n"))
    else:
        owners = {
            str(each["sha256"]): each for each in line.rows("cert.owners")
        }  # without a service, this opens the store
        issued = folder.issued()
        line.print_rows([_row(each, owners) for each in issued], COLUMNS, form)


@cert.command()
@click.argument("name")
@org
@tenant
@bundled
@json_answer
@click.pass_obj
def issue(line: CommandLine, /, *, name: str, org: int | None, tenant: int | None, **given: object) -> None:
    """Issue a certificate and key for a tenant's user, machine or RADIUS server. The name of a user may be a mail
    address.

    With --p12 or --mobileconfig, the last line of the output is the password of these files. The name belongs to the
    tenant until `cert revoke`. After that, another tenant can use the name.
    """
    files = wanted(given)
    with reserved(files.files):
        made = line.row("cert.issue", name=name, org=org, tenant=tenant)
        path = Path(str(made["path"]))
        line.note(f"SHA-256 fingerprint {made['sha256']}")
        write(line, made, files, str(path), str(path.with_suffix(".key")))


@cert.command()
@click.argument("name", required=False)
@click.option(
    "--host",
    "hosts",
    multiple=True,
    help="Name or address of the server; repeatable. Default: the names stay unchanged.",
)
@click.option(
    "--new-key-type", type=KINDS, help="Give the server a new key of this kind. Default: the key stays unchanged."
)
@click.option("--send-root/--no-send-root", default=None, help=f"{SEND_ROOT} Default: this stays unchanged.")
@org
@tenant
@bundled
@json_answer
@click.pass_obj
def renew(
    line: CommandLine,
    /,
    *,
    name: str | None,
    hosts: Sequence[str],
    new_key_type: str | None,
    send_root: bool | None,
    org: int | None,
    tenant: int | None,
    **given: object,
) -> None:
    """Issue a new certificate for the server, or for a client. The new certificate keeps the existing key. No restart
    is needed.

    If the server's certificate was revoked, the server gets a new key. A client's certificate keeps its tenant. If it
    has no tenant, --org and --tenant set the tenant.
    """
    for option, given_value in (
        ("--host", hosts or None),
        ("--new-key-type", new_key_type),
        ("--send-root", send_root),
    ):
        if name is not None and given_value is not None:
            raise click.UsageError(f"{option} is allowed only for the certificate of the server")
    if name is None and (org or tenant):
        raise click.UsageError("--org and --tenant are allowed only for the certificate of a client")
    files = wanted(given)
    if name is None and files.files:
        raise click.UsageError("--p12 and --mobileconfig are allowed only for the certificate of a client")
    with reserved(files.files):
        made = line.row(
            "cert.renew", name=name, hosts=[*hosts], new_key=new_key_type, send_root=send_root, org=org, tenant=tenant
        )
        line.note(f"{made['name']}: until {made['expires']}")
        if name is not None:
            line.note(f"SHA-256 fingerprint {made['sha256']}")
        write(line, made, files)


@cert.command()
@click.argument("wanted", metavar="NAME|SERIAL")
@click.pass_obj
def revoke(line: CommandLine, *, wanted: str) -> None:
    """Revoke all certificates of a client, or one certificate by its serial number.

    The client's next handshake fails, and its open RadSec connections are closed. In a domain with
    `--disconnect-on-revoke`, the client's live sessions end too.
    """
    for each in line.rows("cert.revoke", wanted=wanted):
        line.note(f"{each['name']}, serial {each['serial']}, is revoked")


def _row(each: Issued, owners: Mapping[str, Row]) -> Row:
    sha256 = fingerprint(each.certificate)
    owner = owners.get(sha256, {})
    return {
        "name": each.name,
        "kind": each.kind,
        "org": owner.get("org"),
        "tenant": owner.get("tenant"),
        "state": each.state(present()),
        "expires": f"{each.certificate.not_valid_after_utc:%Y-%m-%d}",
        "serial": f"{each.certificate.serial_number:x}",
        "sha256": sha256,
    }
