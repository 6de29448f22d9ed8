"""The command `sallyport domain remove`. It lists the rows that are deleted with a domain, and asks for a
confirmation."""

import sys

import click

from sallyport.base.wire import Row
from sallyport.shell.command import CommandLine, entries

COLUMNS = ("count", "kind")
PATH = "/ad/RemoveDomain"


@click.command()
@click.argument("name", metavar="NAME|ID")
@click.option("--dry-run", is_flag=True, help="Only list what would be deleted.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON.")
@click.pass_obj
def remove(line: CommandLine, *, name: str, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Remove a domain with everything in it, after a list and a confirmation.

    Logins, agents, wallets and DIDs of the domain stop working at once, and its name can be used again. Live sessions
    and the audit trail stay. The command fails while the domain is the default of a RADIUS client.
    """
    found = line.run(PATH, {"dryRun": True}, domain=name)
    label = f"domain {found['domainName']} ({found['domainId']})"
    if dry_run:
        _list(line, found, as_json=as_json)
        return
    if not yes:
        line.print_rows(entries(found["deleted"]), COLUMNS, to=sys.stderr)
        if not sys.stdin.isatty():
            raise click.UsageError(f"{label} would be removed with everything listed; to remove it, add --yes")
        click.confirm(f"Remove {label} with everything listed? This cannot be undone.", abort=True, err=True)
    removed = line.run(PATH, domain=str(found["domainId"]))
    if as_json:
        _list(line, removed, as_json=True)
    line.note(f"{label} is removed")
    if not line.row("domain.erase")["done"]:
        line.note("the service deletes the domain's rows in the background, and forgets the domain after ten minutes")


def _list(line: CommandLine, found: Row, *, as_json: bool) -> None:
    if as_json:
        line.print_json({name: found[name] for name in ("domainId", "domainName", "deleted")})
    else:
        line.print_rows(entries(found["deleted"]), COLUMNS)
