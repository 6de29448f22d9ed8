"""The commands `sallyport domain ...` for directory domains and their enforcement mode."""

import sys

import click

from sallyport.areas.domains.bodies import AddDomain, UpdateDomain, UpdateDomainEnforcement
from sallyport.base.errors import Conflict, NotFound, Refused
from sallyport.base.text import counted
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import CommandLine, Form, domains, entries, note_new, note_warnings
from sallyport.shell.fields import field_argument, of_tenant, option, options, pass_body
from sallyport.shell.options import Group, as_json, json_answer, json_form

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
DELETED = ("count", "kind")
REMOVE = "/ad/RemoveDomain"
USERS = ("user", "outcome", "reason", "logins", "lastSeen")
DEVICES = ("device_id", "device_name", "outcome", "reason")
NEXT = (
    "next: enrol the users with `reject` at the MFA provider, or exempt them by a login rule; --accept-unknown ignores "
    "users with `unknown`"
)

BEGINS = "checking the MFA provider and the enrolments"
MODES = ("monitor", "enforce")
RESTORE = "restore"


@click.group(cls=Group, first=("add", "list", "first-factor", "check", "preview", "mode", "confirm"))
def domain() -> None:
    """Directory domains of users, and whether they enforce the second factor."""


@domain.command()
@field_argument("domainName", "name")
@of_tenant("domain")
@option(AddDomain, "realms")
@option(AddDomain, "enforcementMode", "--mode")
@option(AddDomain, "fallbackAction", "--fallback")
@options(AddDomain, "firstFactor", "disconnectOnRevoke")
@option(AddDomain, "issuerName", metavar="TEXT")
@json_answer
@pass_body
def add(line: CommandLine, body: Row) -> None:
    """Add a domain and print its domainId."""
    made = line.row("domain.add", **body)
    note_new(line, made)
    line.print_answer(made, str(made["domainId"]))
    note_warnings(line, made["warnings"])


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
@option(UpdateDomainEnforcement, "fallbackAction", "--fallback")
@options(UpdateDomainEnforcement, "requireClean", "acceptUnknown")
@option(UpdateDomainEnforcement, "revertAfterMinutes", "--revert-after")
@pass_body
def mode(line: CommandLine, body: Row, *, words: tuple[str, ...], everything: bool) -> None:
    """Switch a domain to monitor or enforce, from the next login on. `domain mode --all monitor` is the break-glass:
    every domain monitors from now on. `domain mode --all restore` restores the modes before the break-glass, except for
    domains whose mode was changed after it."""
    name, wanted = _which(words, everything)
    is_clean = bool(body.get("requireClean"))
    if everything and (is_clean or "revertAfterMinutes" in body or ("fallbackAction" in body and wanted == RESTORE)):
        raise click.UsageError(
            "--require-clean and --revert-after cannot be used with --all; `--all restore` accepts no options"
        )
    if "acceptUnknown" in body and not is_clean:
        raise click.UsageError("--accept-unknown needs --require-clean")
    if name is None:
        fallback = body.get("fallbackAction")
        switched = (
            line.row("domain.restore") if wanted == RESTORE else line.row("domain.break_glass", fallback=fallback)
        )
        if wanted == RESTORE and not switched["domains"]:
            line.note("nothing to restore")
        for each in entries(switched["domains"]):
            _note_mode(line, each)
        note_warnings(line, switched["warnings"])
        return
    body["enforcementMode"] = wanted
    _switch_clean(line, name, body) if is_clean and wanted == "enforce" else _switch(line, name, body)


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


@domain.command()
@click.argument("old", metavar="OLD|ID")
@field_argument("domainName", "new")
@pass_body
def rename(line: CommandLine, body: Row, *, old: str) -> None:
    """Rename a domain. The former name stays as a realm, so that user@OLD still logs in."""
    _note_settings(line, line.run("/ad/UpdateDomain", body, domain=old))


@domain.command()
@click.argument("name", metavar="NAME|ID")
@click.option("--dry-run", is_flag=True, help="Only list what would be deleted.")
@click.option("--yes", is_flag=True, help="Do not ask for confirmation.")
@as_json
@click.pass_obj
def remove(line: CommandLine, *, name: str, dry_run: bool, yes: bool, as_json: bool) -> None:
    """Remove a domain with everything in it, after a list and a confirmation.

    Logins, agents, wallets and DIDs of the domain stop working at once, and its name can be used again. Live sessions
    and the audit trail stay. The command fails while the domain is the default of a RADIUS client.
    """
    found = line.run(REMOVE, {"dryRun": True}, domain=name)
    label = f"domain {found['domainName']} ({found['domainId']})"
    if dry_run:
        _print_deleted(line, found, as_json=as_json)
        return
    if not yes:
        line.print_rows(entries(found["deleted"]), DELETED, to=sys.stderr)
        if not sys.stdin.isatty():
            raise click.UsageError(f"{label} would be removed with everything listed; to remove it, add --yes")
        click.confirm(f"Remove {label} with everything listed? This cannot be undone.", abort=True, err=True)
    removed = line.run(REMOVE, domain=str(found["domainId"]))
    if as_json:
        _print_deleted(line, removed, as_json=True)
    line.note(f"{label} is removed")
    if not line.row("domain.erase")["done"]:
        line.note("the service deletes the domain's rows in the background, and forgets the domain after ten minutes")


@domain.command("set")
@click.argument("name", metavar="NAME|ID")
@option(UpdateDomain, "addRealms", "--realm", metavar="REALM", help="Realm to add, as in user@REALM; repeatable.")
@option(UpdateDomain, "removeRealms", metavar="REALM")
@option(UpdateDomain, "issuerName", metavar="TEXT")
@option(UpdateDomain, "directoryName", metavar="TEXT")
@option(UpdateDomain, "disconnectOnRevoke", type=bool, callback=None, metavar="yes|no")
@options(UpdateDomain, "unknownStations", "directoryMaxAgeHours", "staleDirectoryAction", "certificateNames")
@options(UpdateDomain, "ruleOrder", "rememberHours")
@option(UpdateDomain, "lockOnNotMe", type=bool, callback=None, metavar="yes|no")
@pass_body
def set_(line: CommandLine, body: Row, *, name: str) -> None:
    """Change settings and realms of a domain. The next login uses them."""
    if not body:
        raise click.UsageError(
            "nothing to change: give --realm, --remove-realm, --issuer-name, --directory-name, "
            "--disconnect-on-revoke, --unknown-stations, --rule-order, --directory-max-age-hours, "
            "--stale-directory-action, --certificate-names, --lock-on-not-me or --remember-hours"
        )
    _note_settings(line, line.run("/ad/UpdateDomain", body, domain=name))


def _switch_clean(line: CommandLine, name: str, body: Row) -> None:
    """Enforce a domain if enforcing would deny no login. Otherwise print the users and devices that would be denied."""
    _survey(line, name)
    try:
        _switch(line, name, body)
    except Refused:
        _tell_refusal(line, name)
        raise


def _survey(line: CommandLine, domain: str) -> None:
    """Check the MFA provider, then look up the enrolments of all users. On a terminal, show a progress bar.

    Raises Conflict if the provider does not work.
    """
    if sys.stderr.isatty():
        line.note(BEGINS)
    try:
        checked = line.run("/ad/CheckMFAProvider", domain=domain)
    except NotFound:  # if there is no provider, the switch reports it
        return
    if not checked["works"]:
        raise Conflict(f"the MFA provider does not work: {checked['problem']}; the mode of {domain} is not changed")
    users, left = _ask(line, domain, again=True)
    if not users:
        return
    with click.progressbar(
        length=users, label="enrolments", file=sys.stderr, hidden=not sys.stderr.isatty(), show_pos=True
    ) as bar:
        bar.update(users - left)
        while left:
            users, still = _ask(line, domain, again=False)
            if still >= left:  # the provider no longer answers
                break
            bar.update(left - still)
            left = still
    line.note(f"looked up {users - left} of {users} enrolments")


def _tell_refusal(line: CommandLine, domain: str) -> None:
    """Print the users and devices that enforcing would deny. Also print what the admin can do. The texts go to standard
    error."""
    impact = line.run("/ad/PreviewEnforcement", domain=domain)
    users = [each for each in entries(impact["users"]) if each["outcome"] in ("reject", "unknown")]
    devices = [each for each in entries(impact["devices"]) if each["outcome"] == "reject"]
    for rows, columns in ((users, USERS), (devices, DEVICES)):
        if rows:
            line.print_rows(rows, columns, to=sys.stderr)
    if users or devices:
        line.note(NEXT)


def _ask(line: CommandLine, domain: str, *, again: bool) -> tuple[int, int]:
    """Continue to ask whether users are enrolled. Return the number of users, and the number of users whose enrolment
    is still unknown.

    again: whether to ask about all users again.
    """
    told: Row = line.run("/ad/CheckEnrolments", {"again": again}, domain=domain)
    return int(str(told["users"])), int(str(told["left"]))


def _switch(line: CommandLine, name: str, body: Row) -> None:
    """Switch one domain. Print the stored mode, its warnings and its impact."""
    changed = line.run("/ad/updateDomainEnforcement", body, domain=name)
    _note_mode(line, changed)
    note_warnings(line, changed["warnings"])
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


def _note_settings(line: CommandLine, domain: Row) -> None:
    realms = domain["realms"]
    told = ", ".join(str(each) for each in realms) if isinstance(realms, list) and realms else "none"
    line.note(
        f"domain {domain['domainName']} ({domain['domainId']}): realms {told};"
        f" issuer {domain['issuerName'] or domain['domainName']};"
        f" disconnect on revoke: {'yes' if domain['disconnectOnRevoke'] else 'no'};"
        f" unknown stations: {domain['unknownStations']};"
        f" order of rules: {domain['ruleOrder']};"
        f" directory data older than {domain['directoryMaxAgeHours']} h: {domain['staleDirectoryAction']};"
        f" names in certificates: {domain['certificateNames']};"
        f" lock on not me: {'yes' if domain['lockOnNotMe'] else 'no'};"
        f" stations remembered for {domain['rememberHours']} h"
    )


def _print_deleted(line: CommandLine, found: Row, *, as_json: bool) -> None:
    if as_json:
        line.print_json({name: found[name] for name in ("domainId", "domainName", "deleted")})
    else:
        line.print_rows(entries(found["deleted"]), DELETED)
