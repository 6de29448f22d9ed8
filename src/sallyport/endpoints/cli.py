"""`sallyport user`: endpoint users of a domain."""

import sys

import click

from sallyport.base.command import CommandLine, Form

COLUMNS = ("id", "name", "type", "updated")


@click.group()
def user() -> None:
    """Endpoint users: the people whose password the service checks itself."""


@user.command()
@click.argument("name")
@click.option("--domain", required=True, help="The domain's name or domainId.")
@click.option("--password", metavar="-", help="- reads the first line of standard input; else it is asked for.")
@click.pass_obj
def add(line: CommandLine, *, name: str, domain: str, password: str | None) -> None:
    """Add a user, who can log in at once."""
    if password not in (None, "-"):
        raise click.UsageError("--password takes - only: all users of a machine see its command lines")
    if password is None and not sys.stdin.isatty():
        raise click.UsageError("--password - reads the password from standard input, which is no terminal")
    octets = line.read_secret("Password")
    if not octets:
        raise click.UsageError("the password is empty")
    line.call("user.add", name=name, domain=domain, password=octets.hex())
    line.note(f"user {name} is added to {domain}")


@user.command("list")
@click.option("--domain", required=True, help="The domain's name or domainId.")
@click.option("--json", "form", flag_value="json", help="As JSON.")
@click.pass_obj
def list_(line: CommandLine, *, domain: str, form: Form | None) -> None:
    """List the users of a domain."""
    line.print_rows(line.rows("user.list", domain=domain), COLUMNS, form)


@user.command()
@click.argument("name")
@click.option("--domain", required=True, help="The domain's name or domainId.")
@click.pass_obj
def remove(line: CommandLine, *, name: str, domain: str) -> None:
    """Remove a user; the next login is refused."""
    line.call("user.remove", name=name, domain=domain)
    line.note(f"user {name} is removed from {domain}")
