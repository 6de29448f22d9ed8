"""`sallyport authority`: authorities that sign the client certificates of a domain's users."""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Final, TypeVar

import click

from sallyport.areas.authorities.bodies import AddAuthority, ListAuthorities, UpdateAuthority
from sallyport.base.errors import StartError
from sallyport.base.wire import JSON, Row
from sallyport.outgoing.pem import MAX_CERTIFICATES_LENGTH
from sallyport.shell.command import CommandLine, Form, entries, named, note_warnings
from sallyport.shell.command import domains as all_domains
from sallyport.shell.fields import field_argument, field_option, option, options, pass_body
from sallyport.shell.options import NUMBER, Group, InputFile, as_json, json_answer, json_form

LIST: Final = "/ad/ListAuthorities"
COLUMNS: Final = ("authorityId", "name", "domains", "kinds", "names", "revocation", "anchors")
LISTS: Final = ("address", "state", "thisUpdate", "nextUpdate", "entries", "nextFetch", "error")
DETAILS: Final = (
    "name", "domains", "kinds", "realms", "groups", "sidPrefixes", "names", "strongNames", "strongOnly", "revocation",
    "crlAddresses", "ocspAddress", "ocspNonce", "useCertificateAddresses",
)  # fmt: skip
_SETTINGS: Final = ("strongOnly", "revocation", "ocspAddress", "ocspNonce", "useCertificateAddresses")
_LISTS: Final = {
    "kinds": "--kind", "realms": "--realm", "groups": "--group", "sidPrefixes": "--sid-prefix", "names": "--by",
    "crlAddresses": "--crl-address",
}  # fmt: skip
CommandT = TypeVar("CommandT", bound=Callable[..., object])

any_org = click.option("--org", type=NUMBER, help="orgId of the authority, if several tenants have one of that name.")
any_tenant = click.option("--tenant", type=NUMBER, help="tenantId of the authority.")


def _file(*, required: bool) -> Callable[[CommandT], CommandT]:
    return field_option(
        "certificates",
        "--file",
        "file",
        type=InputFile(),
        required=required,
        expose_value=True,
        help="File with its certificates in PEM: a root, a root with intermediates, or an issuing authority alone.",
    )


def _domains(*, required: bool) -> Callable[[CommandT], CommandT]:
    return field_option(
        "domainIds",
        "--domain",
        "domains",
        multiple=True,
        required=required,
        expose_value=True,
        help="Name or domainId of a domain whose users may log in with its certificates; repeatable.",
    )


@click.group(cls=Group, first=("add", "list", "show", "set"))
def authority() -> None:
    """Authorities that sign the client certificates of a domain's users, for EAP-TLS."""


def _fields(model: type[AddAuthority | UpdateAuthority]) -> Callable[[CommandT], CommandT]:
    """Add the options for scope, names and revocation to a command."""

    def decorate(command: CommandT) -> CommandT:
        command = options(model, *_SETTINGS)(command)
        for field, name in reversed(_LISTS.items()):
            command = option(model, field, name)(command)
        return command

    return decorate


@authority.command()
@field_argument("name", "name")
@_domains(required=True)
@_file(required=True)
@_fields(AddAuthority)
@json_answer
@pass_body
def add(line: CommandLine, body: Row, *, domains: tuple[str, ...], file: Path) -> None:
    """Trust the client certificates of an authority for the users of some domains. Print its authorityId.

    A domain with authorities of its own does not trust those of the setting eap_ca.
    """
    given = {**body, "certificates": _read(file)}
    made = line.run("/ad/AddAuthority", given, domain=domains[0], domains=domains)
    line.print_answer(made, str(made["authorityId"]))
    line.note(str(made["message"]))
    note_warnings(line, made["warnings"])


@authority.command("list")
@click.option("--domain", help="Show only the authorities of this domain (name or domainId).")
@options(ListAuthorities, "search")
@json_form
@pass_body
def list_(line: CommandLine, body: Row, *, domain: str | None, form: Form | None) -> None:
    """List authorities: their domains, for whom they speak, and how they name holders."""
    rows = list(
        line.listed_everywhere(LIST, "authorities", body)
        if domain is None
        else line.listed(LIST, "authorities", body, domain=domain)
    )
    line.print_rows(rows if form == "json" else _shown(line, rows), COLUMNS, form, spare=("anchors",))


@authority.command()
@click.argument("name")
@any_org
@any_tenant
@as_json
@click.pass_obj
def show(line: CommandLine, *, name: str, org: int | None, tenant: int | None, as_json: bool) -> None:
    """Show an authority with its trust anchors, its scope and its settings."""
    found = line.run("/ad/GetAuthority", _selected(_find(line, name, org, tenant)))
    if as_json:
        return line.print_json(found)
    (shown,) = _shown(line, [found])
    line.print_rows([{"field": each, "value": shown[each]} for each in DETAILS], ("field", "value"))
    line.print_rows(entries(found["anchors"]), ("subject", "validUntil", "key"))
    return note_warnings(line, found["warnings"])


@authority.command("set")
@click.argument("name")
@any_org
@any_tenant
@option(UpdateAuthority, "name", "--name", metavar="NAME", help="New name.")
@_domains(required=False)
@_file(required=False)
@_fields(UpdateAuthority)
@pass_body
def set_(
    line: CommandLine,
    body: Row,
    *,
    name: str,
    org: int | None,
    tenant: int | None,
    domains: tuple[str, ...],
    file: Path | None,
) -> None:
    """Change an authority. The values of a repeatable option replace all present ones; an empty value, such as
    --realm '', removes them."""
    if file is not None:
        body["certificates"] = _read(file)
    if not body and not domains:
        raise click.UsageError("nothing to change: give an option, such as --domain")
    selected = _selected(_find(line, name, org, tenant))
    changed = line.run("/ad/UpdateAuthority", {**selected, **body}, domains=domains or None)
    line.note(str(changed["message"]))
    note_warnings(line, changed["warnings"])


@authority.command()
@click.argument("name")
@any_org
@any_tenant
@click.option("--fetch", is_flag=True, help="Fetch the lists again at once, for example after a revocation.")
@json_form
@click.pass_obj
def lists(line: CommandLine, *, name: str, org: int | None, tenant: int | None, fetch: bool, form: Form | None) -> None:
    """Show the revocation lists of an authority: their ages, and the results of the last fetches."""
    selected = _selected(_find(line, name, org, tenant))
    if fetch:
        line.note(str(line.run("/ad/FetchRevocationLists", selected)["message"]))
        return
    found = line.listed("/ad/ListRevocationLists", "lists", selected)
    line.print_rows(found, LISTS, form, spare=("nextFetch", "thisUpdate"))


@authority.command()
@click.argument("name")
@any_org
@any_tenant
@click.pass_obj
def remove(line: CommandLine, *, name: str, org: int | None, tenant: int | None) -> None:
    """Remove an authority. Its certificates are refused from the next login on."""
    removed = line.run("/ad/DeleteAuthority", _selected(_find(line, name, org, tenant)))
    line.note(str(removed["message"]))


def _read(file: Path) -> str:
    with file.open("rb") as opened:
        octets = opened.read(MAX_CERTIFICATES_LENGTH + 1)
    try:
        text = octets.decode("ascii")
    except UnicodeDecodeError:
        raise StartError(
            f"{file}: must be certificates in PEM; to convert one: openssl x509 -inform DER -in FILE"
        ) from None
    if len(octets) > MAX_CERTIFICATES_LENGTH:
        raise StartError(f"{file}: must have at most {MAX_CERTIFICATES_LENGTH} octets")
    return text


def _find(line: CommandLine, name: str, org: int | None, tenant: int | None) -> Row:
    """Return the authority with a name, including its orgId and tenantId. Raises NotFound."""
    if (org is None) != (tenant is None):
        raise click.UsageError("--org and --tenant go together: give both or neither")
    if org is not None:
        scope: Row = {"orgId": org, "tenantId": tenant}
        return named(line.listed(LIST, "authorities", scope), "name", name, "authority") | scope
    found = named(line.listed_everywhere(LIST, "authorities"), "name", name, "authority")
    return found | {"orgId": found["org"], "tenantId": found["tenant"]}


def _selected(row: Row) -> Row:
    return {field: row[field] for field in ("orgId", "tenantId", "authorityId")}


def _shown(line: CommandLine, rows: Sequence[Row]) -> list[Row]:
    """Return rows with the names of their domains, and with the subjects of their anchors."""
    names = {each["domainId"]: each["domainName"] for each in all_domains(line, None)} if rows else {}
    return [{**row, "domains": _named(row["domainIds"], names), "anchors": _subjects(row["anchors"])} for row in rows]


def _named(ids: JSON, names: Mapping[JSON, JSON]) -> list[JSON]:
    return [names.get(each, each) for each in ids] if isinstance(ids, list) else []


def _subjects(anchors: JSON) -> list[JSON]:
    return [each["subject"] for each in entries(anchors)]
