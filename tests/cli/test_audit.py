"""`sallyport audit`: the audit trail and its actors, with and without a running service."""

import csv
import io
import json
import os
import pwd
import re
import sqlite3
import time
from contextlib import closing
from typing import Any

import pytest

from sallyport.areas.audit.cli import ALL_COLUMNS
from sallyport.areas.audit.operations import PAGE
from sallyport.base.clock import SECOND, now_us
from tests.cli import Service, add_domain
from tests.running_service import RunningService

ENTRY = (
    "insert into audit_trail (at, tenant_id, domain_id, actor_kind, actor, token_id, action, target, changes) "
    "values (?, 1, 1, 'service', '', null, 'thing.set', ?, '{}')"
)
HOSTILE = "\u202eniamod"


def listed(service: RunningService, *options: str) -> list[dict[str, Any]]:
    """Return the entries of a list."""
    rows: list[dict[str, Any]] = json.loads(service.ok("audit", "list", "--json", *options))
    return rows


def me() -> str:
    """Return the name of the user that runs the tests."""
    return pwd.getpwuid(os.geteuid()).pw_name


def write(service: RunningService, count: int, days: int) -> None:
    """Store `count` entries t0, t1 ... in a stopped service. They are one second apart and `days` days old."""
    service.ok("db", "migrate")
    first = now_us() - days * 86_400 * SECOND
    with closing(sqlite3.connect(service.data_dir / "sallyport.db")) as connection, connection:
        connection.executemany(ENTRY, [(first + number * SECOND, f"t{number}") for number in range(count)])
        connection.execute("update audit_totals set value = value + ? where tenant_id = 1 and domain_id = 1", (count,))


def test_the_actor_over_the_socket_is_the_local_user(service: Service) -> None:
    """The entry of a command has the user that the operating system reports, and the organization and tenant of the
    change.
    """
    domain = add_domain(service, "who")
    (entry,) = listed(service, "--domain", "who")
    assert entry | {
        "actorKind": "command line", "actor": me(), "tokenId": None, "action": "domain.add", "org": 1, "tenant": 1,
        "domainId": int(domain),
    } == entry  # fmt: skip
    assert listed(service, "--domain", domain) == [entry]
    assert re.fullmatch("[0-9a-f]{32}", entry["requestId"])
    assert listed(service, "--search", entry["requestId"]) == [entry]


def test_the_actor_over_http_is_the_token(service: Service) -> None:
    """The entry of an HTTP request has the name and the ID of the token."""
    domain = int(add_domain(service, "http"))
    body = {"orgId": 1, "tenantId": 1, "domainId": domain, "enforcementMode": "enforce"}
    service.post("/ad/updateDomainEnforcement", body)
    newest, *_ = listed(service, "--domain", "http")
    assert (newest["actorKind"], newest["actor"], newest["tokenId"]) == ("token", "first start", 1)


def test_the_actor_of_the_first_start_is_the_service(service: Service) -> None:
    assert {(row["actorKind"], row["actor"]) for row in listed(service, "--domain", "default")} == {("service", "")}


def test_without_a_running_service_the_actor_is_the_user(stopped: RunningService) -> None:
    """When a command is the first start of an installation, the actor of the start is the service. The actor of the
    command's own change is the user.
    """
    stopped.ok("db", "migrate")
    stopped.ok("domain", "add", "alone", "--org", "1", "--tenant", "1")
    (entry,) = listed(stopped, "--domain", "alone")
    assert (entry["actorKind"], entry["actor"]) == ("command line", me())
    assert {row["actorKind"] for row in listed(stopped, "--domain", "default")} == {"service"}


def test_the_list_is_filtered(service: Service) -> None:
    """The list is filtered by domain, action, actor, search text, time and number of entries."""
    add_domain(service, "narrow")
    service.set_mode("narrow", "enforce")
    service.set_mode("narrow", "monitor")
    newest, middle, oldest = listed(service, "--domain", "narrow")
    assert listed(service, "--domain", "narrow", "--action", "domain.mode") == [newest, middle]
    assert listed(service, "--search", "NARROW") == [newest, middle, oldest]
    assert listed(service, "--domain", "narrow", "--actor", "nobody") == []
    assert listed(service, "--domain", "narrow", "--since", newest["time"]) == [newest]
    assert listed(service, "--domain", "narrow", "--until", middle["time"]) == [oldest]
    assert listed(service, "--domain", "narrow", "--limit", "2") == [newest, middle]


def test_the_table_shows_old_and_new_values(service: Service) -> None:
    """A cell of the table has the values before and after a change. It leaves out fields that were and are empty."""
    domain = add_domain(service, HOSTILE)
    service.set_mode(domain, "enforce")
    shown = service.ok("audit", "list", "--domain", domain)
    assert "enforcementMode: monitor > enforce" in shown
    assert "realms" not in shown
    assert listed(service, "--domain", domain, "--action", "domain.add")[0]["changes"]["realms"] == [None, []]


@pytest.mark.parametrize("form", [(), ("--json",), ("--csv",)])
def test_no_format_prints_control_characters(service: Service, form: tuple[str, ...]) -> None:
    """A name that contains control characters is printed without them in each format."""
    name = f"{HOSTILE} {' '.join(form)}"
    domain = add_domain(service, name)
    assert "\u202e" not in service.ok("audit", "list", "--domain", domain, *form)


def test_csv_has_all_columns(service: Service) -> None:
    """CSV has every column, and the column `changes` is JSON."""
    add_domain(service, "csv")
    (row,) = csv.DictReader(io.StringIO(service.ok("audit", "list", "--domain", "csv", "--csv")))
    assert tuple(row) == ALL_COLUMNS
    assert json.loads(row["changes"])["enforcementMode"] == [None, "monitor"]


@pytest.mark.parametrize(
    ("options", "status"),
    [(("--domain", "nowhere"), 1), (("--since", "yesterdy"), 2), (("--until", "2026-13-01"), 2), (("--limit", "0"), 2)],
)
def test_invalid_options_are_refused(service: Service, options: tuple[str, ...], status: int) -> None:
    """An unknown domain, a malformed time and a limit of 0 are refused, and the message names the option."""
    done = service.cli("audit", "list", *options)
    assert (done.returncode, done.stdout) == (status, "")
    assert options[0] in done.stderr or "domain" in done.stderr


def test_backup_and_restore_are_in_the_audit_trail(service: Service) -> None:
    """A backup adds an entry without a tenant, with the name of the file. A restore adds an entry to the restored
    store.
    """
    service.ok("db", "backup", "trail.db")
    newest, *_ = listed(service, "--limit", "1")
    assert (newest["action"], newest["org"], newest["tenant"]) == ("store.backup", None, None)
    assert newest["target"].endswith("trail.db")
    service.ok("db", "restore", "trail.db", "--yes")
    restored = listed(service, "--action", "store.restore")
    assert {row["actor"] for row in restored} == {me()}
    assert {row["tenant"] for row in restored} >= {None, 1}


def test_a_list_of_several_pages_is_complete(stopped: RunningService) -> None:
    """JSON output has every entry once, newest first. A table has the newest 100 entries."""
    write(stopped, 2 * PAGE + 34, days=1)
    targets = [row["target"] for row in listed(stopped, "--action", "thing.set")]
    assert targets == [f"t{number}" for number in reversed(range(2 * PAGE + 34))]
    assert len(stopped.ok("audit", "list", "--action", "thing.set").splitlines()) == 102


def test_expired_entries_are_deleted_after_the_start(stopped: RunningService) -> None:
    """After its start, the service deletes entries that are older than audit_days and keeps the others."""
    write(stopped, 3, days=731)
    write(stopped, 2, days=729)
    stopped.start()
    deadline = time.monotonic() + 30
    while len(stopped.rows("select id from audit_trail where action = 'thing.set'")) > 2:
        assert time.monotonic() < deadline
        time.sleep(0.01)
