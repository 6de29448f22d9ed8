"""`sallyport agent key`: enrolment keys, and the files that agents start with."""

import click

from sallyport.base.clock import now_us
from sallyport.base.command import CommandLine, Form, expiry, named
from sallyport.base.wire import Row

COLUMNS = ("keyId", "name", "kind", "agent", "instanceId", "status", "uses", "used", "expiresAt", "lastSeen")
NUMBER = click.IntRange(min=1)


@click.group()
def key() -> None:
    """API keys of agents."""


@key.command()
@click.option("--org", type=NUMBER, required=True, help="orgId of the domain.")
@click.option("--tenant", type=NUMBER, required=True, help="tenantId of the domain.")
@click.option("--domain", required=True, metavar="NAME|ID", help="For agents of this domain.")
@click.option("--instance", help="For the agent of this instance alone, also where it has one already.")
@click.option("--kind", type=click.Choice(["endpoint", "directory"]), default="endpoint", show_default=True)
@click.option("--name", default="", help="Names it in lists and in the audit trail.")
@click.option("--uses", type=NUMBER, help="How many machines may use it; any number unless given.")
@click.option("--expires", help="A span such as 7d, 12h, or an ISO 8601 time; 30d unless given.")
@click.option("--service", metavar="URL", help="Where agents reach the service; public_url unless given.")
@click.option("--directory-name", help="What the service calls the directory; as the domain unless given.")
@click.option("--ldap-server", "servers", multiple=True, metavar="URL", help="Of the directory; may be repeated.")
@click.option("--base-dn", help="Below which its people and groups are.")
@click.option("--bind-dn", help="The account that reads it.")
@click.option("--start-tls", is_flag=True, help="Encrypt an ldap:// connection.")
@click.option("--key-only", is_flag=True, help="Print the key alone.")
@click.pass_obj
def create(
    line: CommandLine,
    *,
    org: int,
    tenant: int,
    domain: str,
    instance: str | None,
    kind: str,
    name: str,
    uses: int | None,
    expires: str | None,
    key_only: bool,
    service: str | None,
    directory_name: str | None,
    servers: tuple[str, ...],
    base_dn: str | None,
    bind_dn: str | None,
    start_tls: bool,
) -> None:
    """Make an enrolment key and print the agent's configuration file with it; it is shown only here.

    Where a directory is need not be said if the domain's first factor is `ldap`.
    """
    place: Row = {
        "service": service,
        "directoryName": directory_name,
        "servers": list(servers),
        "baseDN": base_dn,
        "bindDN": bind_dn,
        "startTls": start_tls,
    }
    scope: Row = {"orgId": org, "tenantId": tenant}
    given = {field: value for field, value in place.items() if value}
    body: Row = {**scope, "agent": kind, "name": name, "uses": uses, **given}
    if instance is not None:
        found = line.listed("/api/v1/instances/list", "instances", {**scope, "filter": instance}, domain=domain)
        body["instanceId"] = named(found, "instanceName", instance, "instance")["instanceId"]
    if expires is not None:
        body["expiresAt"] = expiry(expires, now_us())
    made = line.run("/api/v1/agent/createKey", body, domain=domain)
    if key_only:
        line.print(str(made["apiKey"]))
        return
    for text in str(made["configuration"]).splitlines():
        line.print(text)
    line.note(f"the key can be used until {made['expiresAt']}; the file is for the agent's user alone: chmod 600")


@key.command("list")
@click.option("--domain", required=True, metavar="NAME|ID", help="Of this domain.")
@click.option("--json", "form", flag_value="json", help="As JSON.")
@click.pass_obj
def list_(line: CommandLine, *, domain: str, form: Form | None) -> None:
    """List enrolment keys and the keys of agents, without their secrets."""
    line.print_rows(line.listed("/api/v1/agent/listKeys", "keys", domain=domain), COLUMNS, form)


@key.command()
@click.argument("key", type=NUMBER, metavar="ID")
@click.option("--domain", required=True, metavar="NAME|ID", help="Of this domain.")
@click.pass_obj
def revoke(line: CommandLine, *, key: int, domain: str) -> None:
    """Revoke a key. Keys that agents got by an enrolment key stay valid."""
    line.run("/api/v1/agent/revokeKey", {"keyId": key}, domain=domain)
    line.note(f"API key {key} is revoked")
