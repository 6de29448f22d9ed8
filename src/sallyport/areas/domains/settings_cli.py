"""The commands `sallyport domain set` and `domain rename`, which change the settings, realms and name of a domain."""

import click

from sallyport.areas.domains.bodies import UpdateDomain
from sallyport.base.wire import Row
from sallyport.shell.command import CommandLine
from sallyport.shell.fields import field_argument, option, pass_body


@click.command("set")
@click.argument("name", metavar="NAME|ID")
@option(UpdateDomain, "addRealms", "--realm", metavar="REALM", help="Realm to add, as in user@REALM; repeatable.")
@option(UpdateDomain, "removeRealms", metavar="REALM")
@option(UpdateDomain, "issuerName", metavar="TEXT")
@option(UpdateDomain, "directoryName", metavar="TEXT")
@option(UpdateDomain, "disconnectOnRevoke", type=bool, callback=None, metavar="yes|no")
@pass_body
def set_(line: CommandLine, body: Row, *, name: str) -> None:
    """Change settings and realms of a domain. The next login uses them."""
    if not body:
        raise click.UsageError(
            "nothing to change: give --realm, --remove-realm, --issuer-name, --directory-name or --disconnect-on-revoke"
        )
    _tell(line, line.run("/ad/UpdateDomain", body, domain=name))


@click.command()
@click.argument("old", metavar="OLD|ID")
@field_argument("domainName", "new")
@pass_body
def rename(line: CommandLine, body: Row, *, old: str) -> None:
    """Rename a domain. The former name stays as a realm, so that user@OLD still logs in."""
    _tell(line, line.run("/ad/UpdateDomain", body, domain=old))


def _tell(line: CommandLine, domain: Row) -> None:
    realms = domain["realms"]
    told = ", ".join(str(each) for each in realms) if isinstance(realms, list) and realms else "none"
    line.note(
        f"domain {domain['domainName']} ({domain['domainId']}): realms {told};"
        f" issuer {domain['issuerName'] or domain['domainName']};"
        f" disconnect on revoke: {'yes' if domain['disconnectOnRevoke'] else 'no'}"
    )
