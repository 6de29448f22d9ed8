"""`sallyport doctor`: find faults and weaknesses of the installation."""

import sqlite3
from collections.abc import Iterator

import click

from sallyport.base.errors import Absent, SallyportError
from sallyport.base.wire import Row
from sallyport.cli.checks import certificates, data, machine, reach, service
from sallyport.cli.checks.model import Check, Examination, Finding, Level, problem
from sallyport.cli.line import Line
from sallyport.shell.command import Form

FIRST: tuple[tuple[str, Check], ...] = (
    ("settings", machine.check_settings),
    ("data directory", machine.check_directory),
    ("clock", machine.check_clock),
    ("IPv6", machine.check_ipv6),
    ("service", machine.check_service),
)
"""The first checks. If one of them finds a problem, no other checks run, because all others need these settings."""

STORE: tuple[tuple[str, Check], ...] = (
    ("files", machine.check_files),
    ("master key", machine.check_key),
    ("disk", machine.check_disk),
    ("database", data.check_database),
    ("integrity", data.check_integrity),
)
"""The checks that run before the store is opened. If one of them finds a problem, the store is not opened, because
opening would create a new master key or write to a damaged file."""

THEN: tuple[tuple[str, Check], ...] = (
    ("records", data.check_records),
    ("limits", data.check_limits),
    ("certificates", certificates.check_certificates),
    ("ports", machine.check_ports),
    ("pages of people", machine.check_people),
)

ASKING: tuple[tuple[str, Check], ...] = (
    ("nodes", service.check_nodes),
    ("configuration", service.check_configuration),
    ("clients", service.check_clients),
    ("Proxy-State", service.check_proxy_state),
    ("silence", service.check_silent),
    ("domains", service.check_domains),
    ("server certificates", certificates.check_server_certificates),
    ("authorities", service.check_authorities),
    ("profiles", certificates.check_profiles),
    ("senders", service.check_senders),
    ("devices", service.check_devices),
    ("agents", service.check_agents),
    ("directories", service.check_directories),
    ("reach", reach.check_reach),
)
"""The checks that need a running service, or a store that can be opened without a migration."""


@click.command()
@click.option("--json", "form", flag_value="json", help="Print JSON.")
@click.pass_obj
def doctor(line: Line, *, form: Form | None) -> int:
    """Look for faults and weaknesses of this installation. Exit status 1 means that a fault was found."""
    found = list(examine(Examination(line)))
    rows: list[Row] = [{"level": each.level.value, "check": name, "finding": each.text} for name, each in found]
    line.print_rows(rows, ("level", "check", "finding"), form)
    return int(_problem([each for _, each in found]))


def examine(examination: Examination) -> Iterator[tuple[str, Finding]]:
    """Run the checks. Yield (name of the check, finding) for each finding."""
    for name, check in FIRST:
        findings = list(_run(check, examination))
        yield from ((name, each) for each in findings)
        if _problem(findings):
            return
    sound = True
    for name, check in STORE:
        findings = list(_run(check, examination))
        yield from ((name, each) for each in findings)
        sound = sound and not _problem(findings)
    asks = examination.process_id is not None or (sound and data.is_current(examination))
    for name, check in (*THEN, *(ASKING if asks else ())):
        yield from ((name, each) for each in _run(check, examination))


def _problem(findings: list[Finding]) -> bool:
    return any(each.level is Level.PROBLEM for each in findings)


def _run(check: Check, examination: Examination) -> Iterator[Finding]:
    try:
        yield from check(examination)
    except Absent:
        raise
    except (SallyportError, OSError, sqlite3.Error) as error:
        yield problem(str(error))
