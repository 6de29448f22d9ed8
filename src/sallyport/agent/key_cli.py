"""`sallyport agent key` manages enrolment keys on the host of the service. It prints the initial configuration files of
agents."""

import click

from sallyport.base.wire import Row
from sallyport.shell.command import CommandLine, Form, named
from sallyport.shell.fields import field_option, of_tenant, pass_body
from sallyport.shell.options import FUTURE, NUMBER, Group, json_answer, json_form

COLUMNS = ("keyId", "name", "kind", "agent", "instanceId", "status", "uses", "used", "expiresAt", "lastSeen")


@click.group(cls=Group)
def key() -> None:
    """The API keys of agents."""


@key.command()
@of_tenant("domain")
@click.option("--domain", required=True, metavar="NAME|ID", help="Domain of the agents (name or domainId).")
@click.option("--instance", help="Generate a key for this instance only, even if it has an agent already.")
@click.option(
    "--kind",
    type=click.Choice(["endpoint", "directory"]),
    default="endpoint",
    show_default=True,
    help="endpoint: the accounts of a machine; directory: an LDAP directory to which the service cannot connect.",
)
@field_option("name", "--name", help="Name of the key in lists and in the audit trail.")
@field_option("uses", "--uses", type=NUMBER, help="Number of machines that may use the key. Default: unlimited.")
@field_option(
    "expiresAt",
    "--expires",
    type=FUTURE,
    help="Expiry of the key: a span such as 7d, or a time such as 2027-11-23. Default: 30d.",
)
@field_option(
    "service",
    "--service",
    metavar="URL",
    help="URL at which agents reach the service. Default: the setting public_url.",
)
@field_option(
    "directoryName",
    "--directory-name",
    help="Name of the directory in the service. Default: the name of the domain.",
)
@field_option(
    "servers", "--ldap-server", multiple=True, metavar="URL", help="URL of a server of the directory; repeatable."
)
@field_option("baseDN", "--base-dn", help="DN below which the directory's people and groups are.")
@field_option("bindDN", "--bind-dn", help="DN of the account that reads the directory.")
@field_option("startTls", "--start-tls", is_flag=True, help="Encrypt ldap:// connections with StartTLS.")
@click.option("--key-only", is_flag=True, help="Print only the key.")
@json_answer
@pass_body
def create(line: CommandLine, body: Row, *, domain: str, instance: str | None, kind: str, key_only: bool) -> None:
    """Generate an enrolment key, and print an agent's configuration file with the key. The key cannot be shown again.

    The options for a directory can be omitted if the domain's first factor is `ldap`.
    """
    body["agent"] = kind
    if instance is not None:
        found = line.listed(
            "/api/v1/instances/list",
            "instances",
            {"orgId": body["orgId"], "tenantId": body["tenantId"], "filter": instance},
            domain=domain,
        )
        body["instanceId"] = named(found, "instanceName", instance, "instance")["instanceId"]
    made = line.run("/api/v1/agent/createKey", body, domain=domain)
    line.print_answer(made, str(made["apiKey"] if key_only else made["configuration"]).removesuffix("\n"))
    if key_only:
        return
    line.note(
        f"the key can be used until {made['expiresAt']}; the file contains the key, so only the agent's "
        "user may read it: chmod 600"
    )


@key.command("list")
@click.option("--domain", required=True, metavar="NAME|ID", help="Domain of the key.")
@json_form
@click.pass_obj
def list_(line: CommandLine, *, domain: str, form: Form | None) -> None:
    """List enrolment keys and the keys of agents, without their secrets."""
    line.print_rows(line.listed("/api/v1/agent/listKeys", "keys", domain=domain), COLUMNS, form)


@key.command()
@click.argument("key", type=NUMBER, metavar="ID")
@click.option("--domain", required=True, metavar="NAME|ID", help="Domain of the key.")
@click.pass_obj
def revoke(line: CommandLine, *, key: int, domain: str) -> None:
    """Revoke a key. The keys that agents received in exchange for an enrolment key stay valid."""
    line.run("/api/v1/agent/revokeKey", {"keyId": key}, domain=domain)
    line.note(f"API key {key} was revoked")
