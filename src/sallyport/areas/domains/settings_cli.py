"""The commands `sallyport domain set` and `domain rename`, which change the settings, realms and name of a domain."""

import click

from sallyport.base.wire import JSON, Row
from sallyport.shell.command import CommandLine


@click.command("set")
@click.argument("name", metavar="NAME|ID")
@click.option("--realm", "realms", multiple=True, metavar="REALM", help="Realm to add, as in user@REALM; repeatable.")
@click.option("--remove-realm", "gone", multiple=True, metavar="REALM", help="Realm to remove; repeatable.")
@click.option(
    "--issuer-name", metavar="TEXT", help="Issuer that authenticator apps show. Give '' to show the name of the domain."
)
@click.option("--directory-name", metavar="TEXT", help="Display name of the domain's directory.")
@click.option(
    "--disconnect-on-revoke",
    type=bool,
    metavar="yes|no",
    help="End live sessions of users that are deleted or lose a group that a login rule names.",
)
@click.pass_obj
def set_(
    line: CommandLine,
    *,
    name: str,
    realms: tuple[str, ...],
    gone: tuple[str, ...],
    issuer_name: str | None,
    directory_name: str | None,
    disconnect_on_revoke: bool | None,
) -> None:
    """Change settings and realms of a domain. The next login uses them."""
    wanted: Row = {
        "addRealms": list[JSON](realms) or None,
        "removeRealms": list[JSON](gone) or None,
        "issuerName": issuer_name,
        "directoryName": directory_name,
        "disconnectOnRevoke": disconnect_on_revoke,
    }
    body = {field: value for field, value in wanted.items() if value is not None}
    if not body:
        raise click.UsageError(
            "nothing to change: give --realm, --remove-realm, --issuer-name, --directory-name or --disconnect-on-revoke"
        )
    _tell(line, line.run("/ad/UpdateDomain", body, domain=name))


@click.command()
@click.argument("old", metavar="OLD|ID")
@click.argument("new")
@click.pass_obj
def rename(line: CommandLine, *, old: str, new: str) -> None:
    """Rename a domain. The former name stays as a realm, so that user@OLD still logs in."""
    _tell(line, line.run("/ad/UpdateDomain", {"domainName": new}, domain=old))


def _tell(line: CommandLine, domain: Row) -> None:
    realms = domain["realms"]
    told = ", ".join(str(each) for each in realms) if isinstance(realms, list) and realms else "none"
    line.note(
        f"domain {domain['domainName']} ({domain['domainId']}): realms {told};"
        f" issuer {domain['issuerName'] or domain['domainName']};"
        f" disconnect on revoke: {'yes' if domain['disconnectOnRevoke'] else 'no'}"
    )
