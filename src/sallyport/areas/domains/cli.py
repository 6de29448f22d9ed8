"""The commands `sallyport domain ...` for directory domains and their enforcement mode."""

import click

from sallyport.areas.domains.bodies import AddDomain
from sallyport.areas.domains.clean_cli import DEVICES, USERS, survey, tell_refusal
from sallyport.areas.domains.first_factor_cli import check, first_factor
from sallyport.areas.domains.removal_cli import remove
from sallyport.areas.domains.settings_cli import rename, set_
from sallyport.base.errors import Refused
from sallyport.base.text import counted
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import CommandLine, Form, domains, entries, note_new
from sallyport.shell.fields import field_argument, field_option, option, options, pass_body
from sallyport.shell.options import Group, json_form

COLUMNS = (
    "domainId",
    "domainName",
    "org",
    "tenant",
    "enforcementMode",
    "fallbackAction",
    "firstFactor",
    "status",
    "realms",
    "revertsAt",
    "breakGlass",
)
MODES = ("monitor", "enforce")
RESTORE = "restore"
NUMBER = click.IntRange(min=1)


@click.group(cls=Group, first=("add", "list", "first-factor", "check", "preview", "mode", "confirm"))
def domain() -> None:
    """Directory domains of users, and whether they enforce the second factor."""


domain.add_command(check)
domain.add_command(rename)
domain.add_command(remove)
domain.add_command(set_)
domain.add_command(first_factor)


@domain.command()
@field_argument("domainName", "name")
@field_option("orgId", "--org", type=NUMBER, required=True, help="orgId of the domain.")
@field_option("tenantId", "--tenant", type=NUMBER, required=True, help="tenantId of the domain.")
@option(AddDomain, "realms")
@option(AddDomain, "enforcementMode", "--mode")
@option(AddDomain, "fallbackAction", "--fallback")
@options(AddDomain, "firstFactor", "disconnectOnRevoke")
@option(AddDomain, "issuerName", metavar="TEXT")
@pass_body
def add(line: CommandLine, body: Row) -> None:
    """Add a domain and print its domainId."""
    made = line.row("domain.add", **body)
    note_new(line, made)
    line.print(str(made["domainId"]))
    _warn(line, made)


@domain.command("list")
@json_form
@click.pass_obj
def list_(line: CommandLine, *, form: Form | None) -> None:
    """List the domains of the installation."""
    found = list(domains(line, None))
    line.print_rows(found, COLUMNS, form)
    names = [str(each["domainName"]) for each in found if each["breakGlass"]]
    if names and form != "json":
        line.note(
            f"break-glass is active: {', '.join(names)}; it stays until you run: sallyport domain mode --all restore"
        )


@domain.command("mode")
@click.argument("words", nargs=-1, required=True, metavar="[NAME|ID] monitor|enforce|restore")
@click.option(
    "--all", "everything", is_flag=True, help="Change every domain of the installation; only with monitor or restore."
)
@click.option(
    "--fallback", type=click.Choice(["deny", "allow"]), help="New outcome of a login if no second factor is available."
)
@click.option(
    "--require-clean",
    is_flag=True,
    help="Enforce only if the MFA provider works and enforcement would have denied no recent login.",
)
@click.option(
    "--accept-unknown", is_flag=True, help="With --require-clean: enforce although enrolments of users are unknown."
)
@click.option(
    "--revert-after",
    type=click.IntRange(1, 10_080),
    metavar="MINUTES",
    help="Minutes until the change is reverted, unless `domain confirm` keeps it.",
)
@click.pass_obj
def mode(
    line: CommandLine,
    *,
    words: tuple[str, ...],
    everything: bool,
    fallback: str | None,
    require_clean: bool,
    accept_unknown: bool,
    revert_after: int | None,
) -> None:
    """Switch a domain to monitor or enforce, from the next login on. `domain mode --all monitor` is the break-glass:
    every domain monitors from now on. `domain mode --all restore` restores the modes before the break-glass, except for
    domains whose mode was changed after it."""
    name, wanted = _which(words, everything)
    if everything and (require_clean or revert_after is not None or (fallback is not None and wanted == RESTORE)):
        raise click.UsageError(
            "--require-clean and --revert-after cannot be used with --all; `--all restore` accepts no options"
        )
    if accept_unknown and not require_clean:
        raise click.UsageError("--accept-unknown needs --require-clean")
    if name is None:
        switched = (
            line.row("domain.restore") if wanted == RESTORE else line.row("domain.break_glass", fallback=fallback)
        )
        if wanted == RESTORE and not switched["domains"]:
            line.note("nothing to restore")
        for each in entries(switched["domains"]):
            _note_mode(line, each)
        _warn(line, switched)
    else:
        body: Row = {
            "enforcementMode": wanted,
            "fallbackAction": fallback,
            "requireClean": require_clean,
            "acceptUnknown": accept_unknown,
            "revertAfterMinutes": revert_after,
        }
        _switch_clean(line, name, body) if require_clean and wanted == "enforce" else _switch(line, name, body)


@domain.command()
@click.argument("name", metavar="NAME|ID")
@click.pass_obj
def confirm(line: CommandLine, *, name: str) -> None:
    """Keep a new mode of a domain that would otherwise be reverted. During break-glass, the domain returns to this mode
    at the end."""
    _switch(line, name, {"confirm": True})


@domain.command()
@click.argument("name", metavar="NAME|ID")
@click.option(
    "--days",
    type=click.IntRange(1, 365),
    default=30,
    show_default=True,
    help="Number of past days whose logins are evaluated.",
)
@json_form
@click.pass_obj
def preview(line: CommandLine, *, name: str, days: int, form: Form | None) -> None:
    """Show the impact of enforcing a domain: users and devices with their outcome and reason.

    The impact is computed from recent logins. At most 1,000 users and devices are listed. The counts include all users
    and devices.
    """
    impact = line.run("/ad/PreviewEnforcement", {"days": days}, domain=name)
    if form == "json":
        line.print_json(impact)
        return
    line.print_rows(entries(impact["users"]), USERS)
    line.print_rows(entries(impact["devices"]), DEVICES)
    _tell_impact(line, impact)


def _switch_clean(line: CommandLine, name: str, body: Row) -> None:
    """Enforce a domain if enforcing would deny no login. Otherwise print the users and devices that would be denied."""
    survey(line, name)
    try:
        _switch(line, name, body)
    except Refused:
        tell_refusal(line, name)
        raise


def _switch(line: CommandLine, name: str, body: Row) -> None:
    """Switch one domain. Print the stored mode, its warnings and its impact."""
    changed = line.run("/ad/updateDomainEnforcement", body, domain=name)
    _note_mode(line, changed)
    _warn(line, changed)
    impact = changed["preview"]
    if isinstance(impact, dict):
        _tell_impact(line, impact)


def _note_mode(line: CommandLine, domain: Row) -> None:
    until = f", until {domain['revertsAt']} unless confirmed" if domain["revertsAt"] else ""
    if domain.get("breakGlass"):
        until = f"; break-glass, until you run domain mode --all restore; then {domain['breakGlass']}{until}"
    line.note(
        f"domain {domain['domainName']} ({domain['domainId']}): {domain['enforcementMode']},"
        f" fallback {domain['fallbackAction']}{until}"
    )


def _warn(line: CommandLine, changed: Row) -> None:
    warnings = changed["warnings"]
    for warning in warnings if isinstance(warnings, list) else ():
        line.note(f"warning: {warning}")


def _tell_impact(line: CommandLine, impact: Row) -> None:
    counts = _object(impact["counts"])
    for what in ("users", "devices"):
        told = ", ".join(f"{number} {outcome}" for outcome, number in _object(counts[what]).items())
        line.note(f"{what}: {told}")
    line.note(f"from {counted(impact['logins'], 'login')} between {impact['from']} and {impact['to']}")


def _object(value: JSON) -> Row:
    return value if isinstance(value, dict) else {}


def _which(words: tuple[str, ...], everything: bool) -> tuple[str | None, str]:
    """Return the name of the domain and the mode. The name is None for all domains."""
    if len(words) != (1 if everything else 2):
        raise click.UsageError("give one DOMAIN and one MODE, as in `domain mode corp enforce`, or --all monitor")
    wanted = words[-1].casefold()
    if everything and wanted == RESTORE:
        return None, RESTORE
    if wanted not in MODES:
        raise click.BadParameter(f'"{words[-1]}" is not understood; give monitor or enforce', param_hint="MODE")
    if everything and wanted != "monitor":
        raise click.UsageError("--all accepts only monitor or restore: enforce one domain at a time")
    return (None if everything else words[0]), wanted
