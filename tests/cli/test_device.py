"""`sallyport device`: the inventory in every format, even if devices have hostile names."""

import csv
import io
import json
import os
import pty
import sqlite3
import subprocess
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from sallyport.radius.attributes import push_vendor_attribute
from sallyport.radius.packet import ACCESS_ACCEPT
from tests.cli import SECRET, Service, add_client, add_domain, add_user
from tests.radius_client import RadiusClient
from tests.running_service import PROGRAM, RunningService

HOSTILE = "\x1b]0;owned\x07\x9b31mred\n\u202ednet\t"
FORMULA = "=cmd|'/c calc'!A1"
RED = (b"\x1b", b"\x07", "\x9b".encode(), "\u202e".encode())


@pytest.fixture(scope="module")
def domain(service: Service) -> Iterator[str]:
    """Yield a domain with three devices: a FortiGate, a device with a hostile name, and one whose name is a formula."""
    made = add_domain(service, "floor")
    add_client(service, "gate", "127.8.0.1", "floor")
    add_user(service, "floor", "ann")
    fortinet = push_vendor_attribute(12356, 3, b"root")
    with RadiusClient(service.ports.auth, SECRET, source="127.8.0.1") as client:
        for name, extra in (("fw1", fortinet), (HOSTILE, b""), (FORMULA, b"")):
            station = {"CALLING_STATION_ID": b"00-00-5E-00-53-01"}
            assert client.login("ann", "hello", NAS_IDENTIFIER=name.encode(), extra=extra, **station) == ACCESS_ACCEPT
    yield made


def devices(service: RunningService, *options: str) -> list[dict[str, object]]:
    """Return the devices of a list."""
    rows: list[dict[str, object]] = json.loads(service.ok("device", "list", "--json", *options))
    return rows


def test_the_list_has_the_devices_of_all_domains(service: Service, domain: str) -> None:
    """JSON has the product, address, domain and counts of each device. The table has the product."""
    row = next(each for each in devices(service) if each["device_name"] == "fw1")
    seen = ("domain", "domain_id", "device_type", "ip_address", "request_count", "registrations")
    assert [row[name] for name in seen] == ["floor", int(domain), "Fortinet FortiGate", "127.8.0.1", 1, 1]
    assert "Fortinet FortiGate" in service.ok("device", "list")


def test_tags_and_notes_are_set_and_listed(service: Service, domain: str) -> None:
    """Own tags join those of the client. `KEY=` removes a tag, an empty text removes all own ones."""
    service.ok("client", "set", "gate", "--tag", "site=Berlin/Floor 2", "--tag", "owner=net")
    service.ok("device", "set", "fw1", "--tag", "Role=Edge", "--tag", "owner=fw", "--note", "cabinet 4")
    (row,) = devices(service, "--tag", "role=edge")
    assert (row["tags"], row["note"]) == ({"owner": "fw", "role": "Edge", "site": "Berlin/Floor 2"}, "cabinet 4")
    service.ok("device", "set", "fw1", "--tag", "owner=")
    (row,) = devices(service, "--tag", "role=edge", "--search", "forti")
    assert row["tags"] == {"owner": "net", "role": "Edge", "site": "Berlin/Floor 2"}
    service.ok("device", "set", "fw1", "--tag", "", "--note", "")
    assert devices(service, "--tag", "role=edge") == []
    assert "role" not in service.ok("device", "show", "fw1")
    assert "site=Berlin/Floor 2" in service.ok("client", "list", "--tag", "site=berlin")
    wrong = service.cli("device", "set", "fw1", "--tag", "Berlin")
    assert wrong.returncode == 1 and "--tag" in wrong.stderr and "KEY=VALUE" in wrong.stderr
    assert service.cli("device", "set", "fw1").returncode == 2


def test_the_inventory_is_compared_with_a_file(service: Service, domain: str, tmp_path: Path) -> None:
    """The two tables have the differences; JSON has both."""
    file = tmp_path / "netbox.csv"
    file.write_bytes("\ufeffname;ip\nfw1;\nspäre;198.51.100.7\n".encode())
    shown = service.ok("device", "compare", str(file), "--domain", "floor")
    assert "in the list, and silent here: 1 of 2" in shown and "späre" in shown
    assert "seen here, and not in the list: 2" in shown
    assert json.loads(service.ok("device", "compare", str(file), "--domain", domain, "--json"))["unknownCount"] == 2
    assert "corp" not in service.ok("ssid", "list")


def test_the_list_is_filtered_by_search_and_domain(service: Service, domain: str) -> None:
    """The search matches a part of the product or the name. The domain is given by its name or its ID."""
    assert [row["device_name"] for row in devices(service, "--search", "FORTI")] == ["fw1"]
    assert len(devices(service, "--domain", "Floor")) == len(devices(service, "--domain", domain)) == 3
    assert devices(service, "--domain", "default") == []
    assert service.cli("device", "list", "--domain", "nowhere").returncode == 1


@pytest.mark.parametrize("form", [(), ("--json",), ("--csv",)])
def test_no_format_prints_control_characters(service: Service, domain: str, form: tuple[str, ...]) -> None:
    """Standard output never contains an escape sequence, a bell, a C1 control character or a change of the text
    direction.
    """
    printed = service.program("device", "list", *form).stdout.encode()
    assert not any(sign in printed for sign in RED)
    shown = [service.ok("device", "show", str(row["device_id"]), "--domain", domain) for row in devices(service)]
    assert not any(sign in text.encode() for text in shown for sign in RED)


def test_json_has_the_name_as_the_device_sent_it(service: Service, domain: str) -> None:
    assert {row["nas_identifier"] for row in devices(service)} == {"fw1", HOSTILE, FORMULA}


def test_csv_has_no_formulas(service: Service, domain: str) -> None:
    """CSV has a header line and a line for each device. No cell starts like a formula."""
    rows = list(csv.DictReader(io.StringIO(service.ok("device", "list", "--csv"))))
    assert len(rows) == 3
    assert {"device_id", "domain", "device_type", "last_seen"} <= rows[0].keys()
    assert f"'{FORMULA}" in {row["device_name"] for row in rows}
    empty = service.ok("device", "list", "--csv", "--domain", "default").splitlines()
    assert len(empty) == 1


def test_show_has_stations_history_and_evidence(service: Service, domain: str) -> None:
    """`show` takes an ID or a name. It prints the evidence, posture, stations, logins and history of the device."""
    device = next(row for row in devices(service) if row["device_name"] == "fw1")
    arguments = ("device", "show", str(device["device_id"]), "--domain", "floor")
    found = json.loads(service.ok(*arguments, "--json"))
    assert found["stations"] == [{**found["stations"][0], "station": "00-00-5E-00-53-01", "user": "ann"}]
    assert [each["event"] for each in found["history"]] == ["registered"]
    assert [(each["user"], each["appliedDecision"]) for each in found["logins"]] == [("ann", "accept")]
    assert (found["sessions"], found["signed_share"]) == ([], 1.0)
    for named in (arguments, arguments[:3], ("device", "show", "FW1")):
        text = service.ok(*named)
        for part in ("00-00-5E-00-53-01", "registered", "Fortinet FortiGate", "12356/3", "safe to require", "logins:"):
            assert part.replace(" ", "_") in text or part in text
    assert service.cli("device", "show", "999999", "--domain", "floor").returncode == 1
    for name in ("one", "999999", "9" * 40, "=cmd", "\x1b[31m"):
        missing = service.cli("device", "show", name)
        assert missing.returncode == 1 and "\x1b" not in missing.stderr
    assert service.cli("device", "show", str(device["device_id"]), "--domain", "default").returncode == 1


def test_an_ambiguous_name_is_refused_with_its_ids(service: Service, domain: str) -> None:
    """If several devices have the name, the message has the ID of each. With --domain the device of that domain is
    selected.
    """
    add_domain(service, "attic")
    add_client(service, "attic", "127.8.0.2", "attic")
    add_user(service, "attic", "ann")
    with RadiusClient(service.ports.auth, SECRET, source="127.8.0.2") as client:
        assert client.login("ann", "hello", NAS_IDENTIFIER=b"fw1") == ACCESS_ACCEPT
    refused = service.cli("device", "show", "fw1")
    ids = [row["device_id"] for row in devices(service) if row["device_name"] == "fw1"]
    assert refused.returncode == 1 and all(f"{each} in " in refused.stderr for each in ids) and len(ids) == 2
    assert "attic" not in service.ok("device", "show", "fw1", "--domain", "floor")


def stations(service: RunningService, *options: str) -> list[dict[str, object]]:
    """Return the stations of a list."""
    rows: list[dict[str, object]] = json.loads(service.ok("station", "list", "--json", *options))
    return rows


def test_stations_are_listed_and_filtered(service: Service, domain: str) -> None:
    """Each station has its device, product, last user and times. The list is filtered by domain, search text, device
    and limit. A note says if there are more stations.
    """
    of_floor = stations(service, "--domain", "floor")
    assert {row["station"] for row in of_floor} == {"00-00-5E-00-53-01"} and len(of_floor) == 3
    row = next(each for each in of_floor if each["device_name"] == "fw1")
    kept = ("user", "domain", "domain_id", "device_type", "request_count")
    assert [row[name] for name in kept] == ["ann", "floor", int(domain), "Fortinet FortiGate", 1]
    assert row["first_seen"] == row["last_seen"]
    assert stations(service, "--device", "fw1", "--domain", "floor") == [row]
    assert stations(service, "--device", str(row["device_id"])) == [row]
    assert stations(service, "--search", "ANN", "--domain", "floor") == of_floor
    assert stations(service, "--search", "nobody") == []
    limited = service.cli("station", "list", "--domain", "floor", "--limit", "2", "--csv")
    assert len(limited.stdout.splitlines()) == 3 and "more than 2 stations" in limited.stderr
    assert "more than" not in service.cli("station", "list", "--domain", "floor", "--limit", "3").stderr
    for wrong in (("--domain", "nowhere"), ("--device", "nobody"), ("--search", "x" * 100_000)):
        assert service.cli("station", "list", *wrong).returncode == 1


def test_stations_print_no_control_characters(service: Service) -> None:
    """In every format, standard output contains no escape sequence from a station or a user name."""
    add_domain(service, "roof")
    add_client(service, "roof", "127.8.0.3", "roof")
    add_user(service, "roof", "ann")
    with RadiusClient(service.ports.auth, SECRET, source="127.8.0.3") as client:
        assert client.login("ann", "hello", CALLING_STATION_ID=HOSTILE.encode()) == ACCESS_ACCEPT
    (row,) = stations(service, "--domain", "roof")
    assert row["station"] == HOSTILE
    forms = [("station", "list", "--domain", "roof", *form) for form in ((), ("--json",), ("--csv",))]
    for words in (*forms, ("device", "show", str(row["device_id"]))):
        printed = service.ok(*words).encode()
        assert not any(sign in printed for sign in RED)


def test_a_list_of_several_pages_is_complete(stopped: RunningService) -> None:
    """The list has every device once, in the order of the IDs, also if no service runs."""
    stopped.ok("db", "migrate")
    with closing(sqlite3.connect(stopped.data_dir / "sallyport.db")) as connection, connection:
        connection.executemany(
            "insert into devices (domain_id, ip_address, client_ip, nas_identifier, device_name, device_type, "
            "device_type_certainty, nas_device_type, evidence, nas_port_type, first_seen, last_seen, request_count, "
            "registrations) values (1, '10.0.0.1', '10.0.0.1', ?, ?, 'Unknown', '', 'Unknown', '{}', 'Unknown', "
            "1, 1, 1, 1)",
            [(f"nas-{number}", f"nas-{number}") for number in range(2345)],
        )
    rows = devices(stopped)
    assert [row["device_name"] for row in rows] == [f"nas-{number}" for number in range(2345)]
    assert len(stopped.ok("device", "list", "--csv").splitlines()) == 2346


def test_a_device_is_reset(service: Service, domain: str) -> None:
    """A reset forgets the learned values. The device keeps its id."""
    (before,) = devices(service, "--search", "fw1", "--domain", domain)
    assert service.cli("device", "reset", str(before["device_id"])).stderr.strip() == "1 device reset"
    (after,) = devices(service, "--search", "fw1", "--domain", domain)
    assert (after["device_id"], before["signed_share"], after["signed_share"]) == (before["device_id"], 1, None)


def test_a_device_is_deleted(service: Service, domain: str) -> None:
    """A deleted device is not listed. Its next login registers it again."""
    with RadiusClient(service.ports.auth, SECRET, source="127.8.0.1") as client:
        for registrations in (1, 2):
            assert client.login("ann", "hello", NAS_IDENTIFIER=b"old") == ACCESS_ACCEPT
            (found,) = devices(service, "--search", "old", "--domain", domain)
            assert found["registrations"] == registrations
            assert service.cli("device", "delete", "old", "--domain", domain).stderr.strip() == "1 device deleted"
            assert devices(service, "--search", "old", "--domain", domain) == []


def test_a_deletion_at_a_terminal_asks(service: Service, domain: str) -> None:
    """The question names the device, also if its id was given, and what is deleted with it. Without a yes, the device
    stays. The option --yes asks nothing. A terminal gets no control characters from a name.
    """
    with RadiusClient(service.ports.auth, SECRET, source="127.8.0.1") as client:
        assert client.login("ann", "hello", NAS_IDENTIFIER=b"asked") == ACCESS_ACCEPT
    ids = {str(each["nas_identifier"]): str(each["device_id"]) for each in devices(service, "--domain", domain)}
    question = f'Delete device {ids["asked"]} "asked" with its stations, learned values, tags and note? [y/N]'
    by_id = at_terminal(service, "device", "delete", ids["asked"], typed="n\n")
    assert (by_id.returncode, question in by_id.stderr) == (1, True)
    hostile = at_terminal(service, "device", "delete", ids[HOSTILE], typed="n\n")
    assert hostile.returncode == 1 and not any(sign in hostile.stderr.encode() for sign in RED)
    words = ("device", "delete", "asked", "--domain", domain)
    refused = at_terminal(service, *words, typed="n\n")
    assert (refused.returncode, question in refused.stderr) == (1, True)
    assert devices(service, "--search", "asked", "--domain", domain)
    done = at_terminal(service, *words, "--yes", typed="")
    assert (done.returncode, done.stderr) == (0, "1 device deleted\n")


def at_terminal(service: Service, *words: str, typed: str) -> "subprocess.CompletedProcess[str]":
    """Run the program with a terminal as its standard input."""
    terminal, end = pty.openpty()
    try:
        os.write(terminal, typed.encode())
        command, environ = [PROGRAM, *words], service.environ
        return subprocess.run(
            command, stdin=end, env=environ, cwd=service.directory, capture_output=True, text=True, check=False
        )
    finally:
        os.close(terminal)
        os.close(end)


def test_an_unknown_device_is_not_deleted(service: Service, domain: str) -> None:
    """The message says how to list the devices."""
    for command in ("delete", "reset"):
        done = service.cli("device", command, "nowhere")
        assert done.returncode == 1
        assert "sallyport device list" in done.stderr
