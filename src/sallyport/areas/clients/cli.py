"""The commands `sallyport client ...`, which manage RADIUS clients."""

import os
from pathlib import Path

import click

from sallyport.areas.clients import freeradius
from sallyport.areas.clients.bodies import AddClient, ListClients
from sallyport.areas.clients.freeradius import Entries, Entry
from sallyport.areas.clients.set_cli import (
    LIST,
    any_org,
    any_tenant,
    find,
    mac_fields,
    mac_password,
    set_,
)
from sallyport.base.addresses import canonical
from sallyport.base.errors import StartError
from sallyport.base.text import counted
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import CommandLine, Form, entries, note_warnings
from sallyport.shell.command import domains as all_domains
from sallyport.shell.fields import field_argument, field_option, of_tenant, option, options, pass_body
from sallyport.shell.options import Group, InputFile, as_json, json_answer, json_form

COLUMNS = (
    "clientId",
    "name",
    "org",
    "tenant",
    "address",
    "domains",
    "product",
    "tls",
    "signatures",
    "proxy_state",
    "tags",
)
SENDERS = ("address", "packets", "verdict", "client", "packet", "nas_identifier", "product", "last")
UNKNOWN_CLIENT = "unknown_client"
MAX_REMEDIES = 20
PLAN = ("action", "name", "address", "what")

domains = field_option(
    "domainIds",
    "--domain",
    "domains",
    multiple=True,
    expose_value=True,
    help=(
        "Name or domainId of a domain; repeatable. The first is the default. Without this option, the client has all "
        "domains of the tenant."
    ),
)


@click.group(cls=Group, first=("add", "list", "unknown", "import", "set", "unlatch"))
def client() -> None:
    """RADIUS clients: addresses that may send requests, and their secrets."""


client.add_command(set_)


@client.command()
@field_argument("name", "name")
@option(AddClient, "address", required=False)
@click.option(
    "--from-unknown",
    is_flag=True,
    help="Use the address and the product of a sender in `client unknown`. Of several, choose one with --address.",
)
@click.option(
    "--secret",
    help="The shared secret. Give - to read the secret from standard input. Default: a new secret, which is printed.",
)
@of_tenant("client")
@domains
@options(
    AddClient, "product", "requireMessageAuthenticator", "limitProxyState", "passwordVerified", "shadow", "coaPort"
)
@options(AddClient, "macForms")
@mac_password
@options(AddClient, "tlsName", "tlsFingerprint", "tags", "note")
@json_answer
@pass_body
def add(
    line: CommandLine,
    body: Row,
    *,
    from_unknown: bool,
    secret: str | None,
    domains: tuple[str, ...],
    mac_password: str | None,
) -> None:
    """Add a RADIUS client. Its next packet is answered."""
    if from_unknown:
        sender = _unknown_sender(line, str(body["address"]) if "address" in body else None)
        body |= {"address": sender["address"], "product": body.get("product") or sender["product"]}
        product, name = body["product"] or "product unknown", sender["nas_identifier"] or "no NAS-Identifier"
        line.note(f"{body['address']}: {product}, {name}")
    elif "address" not in body:
        raise click.UsageError("--address is missing: give it, or --from-unknown")
    body |= mac_fields(line, mac_password, secret)
    if secret is not None:
        body["secret"] = {"hex": _octets(line, secret).hex()}
    made = line.run("/network_device/AddClient", body, domains=domains)
    line.print_answer(made, str(made["secret"]) if secret is None else "")
    line.note(f"RADIUS client {body['name']} is added")
    note_warnings(line, made["warnings"])


@client.command("list")
@options(ListClients, "search", "tag")
@json_form
@pass_body
def list_(line: CommandLine, body: Row, *, form: Form | None) -> None:
    """List the RADIUS clients of the installation, without their secrets."""
    rows = list(line.listed_everywhere(LIST, "clients", body))
    if form != "json":
        names = {each["domainId"]: each["domainName"] for each in all_domains(line, None)}
        for row in rows:
            own = row["domainIds"]
            row["domains"] = [names.get(each) for each in own] if isinstance(own, list) and own else "all"
            row["tls"] = row["tlsName"] or str(row["tlsFingerprint"])[:16]
            row["signatures"] = _setting(row, "requireMessageAuthenticator", "signatureRequired", "required")
            row["proxy_state"] = _setting(row, "limitProxyState", "proxyStateLimited", "limited")
    line.print_rows(rows, COLUMNS, form, spare=("tags", "tls", "proxy_state", "product"))


@client.command()
@json_form
@click.pass_obj
def unknown(line: CommandLine, *, form: Form | None) -> None:
    """List senders whose requests were dropped, or were unsigned logins that were rejected. Each cause of a sender has
    a line with its number of packets, and the remedy. The list begins at the start of the service."""
    senders = line.rows("listen.senders")
    line.print_rows(senders, SENDERS, form)
    if form != "json":
        remedies = [f"{each['address']}: {each['verdict']}: {each['remedy']}" for each in senders if each["remedy"]]
        for text in list(dict.fromkeys(remedies))[:MAX_REMEDIES]:
            line.note(text)


@client.command()
@click.argument("name")
@any_org
@any_tenant
@click.pass_obj
def remove(line: CommandLine, *, name: str, org: int | None, tenant: int | None) -> None:
    """Remove a RADIUS client. Its next packet is dropped."""
    found = find(line, name, org, tenant)
    line.run("/network_device/DeleteClient", {field: found[field] for field in ("orgId", "tenantId", "clientId")})
    line.note(f"RADIUS client {name} is removed")


@client.command()
@click.argument("name")
@any_org
@any_tenant
@click.pass_obj
def unlatch(line: CommandLine, *, name: str, org: int | None, tenant: int | None) -> None:
    """Accept unsigned packets of a RADIUS client again, until the client sends a signed packet. This resets the learned
    settings whose value is `auto`."""
    line.call("client.unlatch", client=find(line, name, org, tenant)["clientId"])
    line.note(f"RADIUS client {name} is unlatched")


@client.command("import")
@click.argument("file", type=InputFile())
@of_tenant("client")
@domains
@field_option(
    "tags",
    "--tag",
    "tags",
    multiple=True,
    expose_value=True,
    help="Tag KEY=VALUE of all imported clients; repeatable. A client keeps its tags with other keys.",
)
@click.option("--dry-run", is_flag=True, help="Show what would change, and change nothing.")
@click.option("--skip-refused", is_flag=True, help="Leave out clients that cannot be imported.")
@as_json
@pass_body
def import_(
    line: CommandLine,
    body: Row,
    *,
    file: Path,
    domains: tuple[str, ...],
    tags: tuple[str, ...],
    dry_run: bool,
    skip_refused: bool,
    as_json: bool,
) -> None:
    """Import the clients of a FreeRADIUS clients.conf. Existing clients with the same name are updated. If an entry
    cannot be imported, nothing is changed."""
    found = freeradius.read(file, environ=os.environ)
    unusable: list[Row] = [
        {
            "action": "refused",
            "name": each.name,
            "address": "",
            "changes": [],
            "reason": f"{each.reason} ({each.where})",
        }
        for each in found.unusable
    ]
    done = line.row(
        "client.import",
        org=body["orgId"],
        tenant=body["tenantId"],
        clients=[_imported(entry) for entry in found],
        domains=list(domains) or None,
        tags=list[JSON](tags),
        apply=not dry_run and (skip_refused or not unusable),
        skip_refused=skip_refused,
        override=line.override,
    )
    steps = [*entries(done["clients"]), *unusable]
    _show(line, steps, found, applied=done["applied"], as_json=as_json)
    refused = sum(step["action"] == "refused" for step in steps)
    if refused and not skip_refused:
        raise StartError(
            f"{refused} of {counted(len(steps), 'client')} cannot be imported, so none is imported; "
            "correct the file, or skip them with --skip-refused"
        )
    line.note(_summary(steps, dry_run=dry_run))


def _show(line: CommandLine, steps: list[Row], found: Entries, *, applied: JSON, as_json: bool) -> None:
    """Print the plan and the warnings about the file."""
    warnings = freeradius.findings(found)
    warnings += _notes(found, warnings)
    if as_json:
        line.print_json({"applied": applied, "clients": list[JSON](steps), "warnings": list[JSON](warnings)})
        return
    line.print_rows([{**step, "what": step["reason"] or step["changes"]} for step in steps], PLAN)
    note_warnings(line, list[JSON](warnings))


def _setting(row: Row, name: str, learned: str, word: str) -> str:
    """Return a setting as text for the table, such as `auto`. If the service has learned the setting, add the word, as
    in `auto, required`."""
    return f"auto, {word}" if row[name] == "auto" and row[learned] else str(row[name])


def _imported(entry: Entry) -> JSON:
    return {
        "name": entry.name,
        "address": str(entry.addresses),
        "secret": {"hex": entry.secret.reveal().hex()},
        "product": entry.product,
        "require_message_authenticator": entry.require_message_authenticator,
        "limit_proxy_state": entry.limit_proxy_state,
    }


def _notes(found: Entries, warnings: list[str]) -> list[str]:
    """Return the notes about the imported clients. Leave out the notes that are also in `warnings`."""
    notes = [f"{each.name!r} {each.addresses} ({each.where}): {note}" for each in found for note in each.notes]
    return [note for note in notes if note not in warnings]


def _summary(steps: list[Row], *, dry_run: bool) -> str:
    actions = [str(step["action"]) for step in steps]
    counts = ", ".join(f"{actions.count(each)} {each}" for each in dict.fromkeys(actions)) or "no clients in the file"
    return f"{counts}; nothing was changed (--dry-run)" if dry_run else counts


def _unknown_sender(line: CommandLine, address: str | None) -> Row:
    """Return the unknown sender of RADIUS requests with the given address. Without an address, return the only unknown
    sender.

    Raises StartError if no sender matches, or if `address` is None and there are several unknown senders.
    """
    senders = [each for each in line.rows("listen.senders") if each["reason"] == UNKNOWN_CLIENT and each["packet"]]
    wanted = None if address is None else canonical(address)
    found = [each for each in senders if wanted in (None, each["address"])]
    if len(found) == 1:
        return found[0]
    if not senders and wanted is None:
        raise StartError("no unknown address has sent a RADIUS request: send one from the device, or give --address")
    if wanted is not None and not found:
        raise StartError(
            f"{wanted} is not among the unknown addresses; it may be registered already: sallyport client list"
        )
    names = ", ".join(str(each["address"]) for each in senders[:10])
    raise StartError(f"unknown addresses that sent RADIUS requests: {names}; give one of them with --address")


def _octets(line: CommandLine, secret: str) -> bytes:
    """Return the octets of a secret. If `secret` is `-`, read the secret from standard input."""
    octets = line.read_secret("Secret") if secret == "-" else os.fsencode(secret)  # noqa: S105
    if not octets:
        raise click.UsageError("--secret is empty")
    return octets
