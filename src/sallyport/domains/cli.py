"""`sallyport domain`: directory domains and their enforcement mode."""

import click

from sallyport.base.command import CommandLine, Form, entries

COLUMNS = ("id", "name", "org", "tenant", "mode", "fallback", "first_factor", "status", "realms")
MODES = ("monitor", "enforce")
NUMBER = click.IntRange(min=1)


@click.group()
def domain() -> None:
    """Directory domains: whose users log in, and whether a second factor is enforced."""


@domain.command()
@click.argument("name")
@click.option("--org", type=NUMBER, required=True, help="orgId of the domain.")
@click.option("--tenant", type=NUMBER, required=True, help="tenantId of the domain.")
@click.option("--realm", "realms", multiple=True, help="Also chooses it, as user@REALM; may be repeated.")
@click.option("--mode", type=click.Choice(MODES), default="monitor", show_default=True)
@click.option(
    "--fallback",
    type=click.Choice(["deny", "allow"]),
    default="deny",
    show_default=True,
    help="What happens to a login whose second factor cannot be asked.",
)
@click.option(
    "--first-factor",
    type=click.Choice(["local", "ldap", "radius", "none"]),
    default="local",
    show_default=True,
    help="Who checks the password.",
)
@click.pass_obj
def add(
    line: CommandLine,
    *,
    name: str,
    org: int,
    tenant: int,
    realms: tuple[str, ...],
    mode: str,
    fallback: str,
    first_factor: str,
) -> None:
    """Add a domain and print its domainId."""
    made = line.call(
        "domain.add",
        name=name,
        org=org,
        tenant=tenant,
        realms=list(realms),
        mode=mode,
        fallback=fallback,
        first_factor=first_factor,
    )
    line.print(str(made))


@domain.command("list")
@click.option("--json", "form", flag_value="json", help="As JSON.")
@click.pass_obj
def list_(line: CommandLine, *, form: Form | None) -> None:
    """List the domains of the installation."""
    line.print_rows(line.rows("domain.list"), COLUMNS, form)


@domain.command("mode")
@click.argument("words", nargs=-1, required=True, metavar="[NAME|ID] monitor|enforce")
@click.option("--all", "everything", is_flag=True, help="Every domain of the installation; monitor only.")
@click.option("--fallback", type=click.Choice(["deny", "allow"]), help="Set the fallback action too.")
@click.pass_obj
def mode(line: CommandLine, *, words: tuple[str, ...], everything: bool, fallback: str | None) -> None:
    """Switch a domain to monitor or enforce; it holds for the next login.

    `domain mode --all monitor` is the break-glass: no domain enforces anything from now on.
    """
    name, wanted = _which(words, everything)
    changed = line.row("domain.mode", domain=name, everything=everything, mode=wanted, fallback=fallback)
    for each in entries(changed["domains"]):
        line.note(f"domain {each['name']} ({each['id']}): {each['mode']}, fallback {each['fallback']}")
    warnings = changed["warnings"]
    for warning in warnings if isinstance(warnings, list) else ():
        line.note(f"warning: {warning}")


def _which(words: tuple[str, ...], everything: bool) -> tuple[str | None, str]:
    """The domain's name, None for all, and the mode."""
    if len(words) != (1 if everything else 2):
        raise click.UsageError("a domain and a mode, or --all monitor")
    wanted = words[-1].casefold()
    if wanted not in MODES:
        raise click.BadParameter("monitor or enforce", param_hint="mode")
    if everything and wanted != "monitor":
        raise click.UsageError("--all takes monitor only: domains are enforced one by one")
    return (None if everything else words[0]), wanted
