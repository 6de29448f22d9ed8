"""A company moves from NPS: export, plan, import, the log of a week, report, three corrections, and the switch."""

import json
from pathlib import Path
from typing import Any

from tests.areas.shadow import company
from tests.areas.shadow.files import write
from tests.cli import TENANT, Service, add_user

LOGINS, USERS = 2_000, 20
ACCEPT, REJECT = 2, 3
IN_DOMAIN = ("--domain", "default")


def people(service: Service, *names: str) -> None:
    """Add people to the domain, as an import of the directory does, and put them into the group of the staff."""
    for name in names:
        add_user(service, "default", name)
    service.ok("group", "assign", company.GROUP, *IN_DOMAIN, *(word for name in names for word in ("--user", name)))


def report(service: Service, *arguments: str) -> Any:
    """Return the report of the recorded logins."""
    return json.loads(service.ok("shadow", "report", *IN_DOMAIN, "--json", *arguments))


def causes(found: Any) -> dict[tuple[str, str, str, str], int]:
    """Return the number of logins that differ, by result, reason, rule and reason of NPS."""
    return {(each["result"], each["reason"], each["rule"], each["oldReason"]): each["logins"] for each in found}


def test_a_company_moves(service: Service, tmp_path: Path) -> None:
    """Three disagreements are found, and explained by user, NAS, rule and reason. After they are mended, the report is
    clean. After the switch, the gateway gets the answers that NPS has given."""
    export, log = tmp_path / "nps.xml", write(tmp_path / "IN2611.log", company.week(LOGINS, USERS))
    export.write_text(company.exported())
    service.ok("group", "add", company.GROUP, *IN_DOMAIN)
    people(service, *company.people(USERS))
    command = ("import", "nps", str(export), *IN_DOMAIN, *company.DECISIONS)
    plan = service.ok(*command)
    assert "+ client VPN gateway" in plan and "warehouse.example" in plan and company.SECRET not in plan
    service.ok(*command, "--yes")

    limited = service.cli("shadow", "report", str(log), *IN_DOMAIN, "--zone", "UTC", "--limit", "0%")
    assert limited.returncode == 1
    each = LOGINS // 100
    assert f"{LOGINS} logins: {LOGINS - 3 * each} the same, {2 * each} stricter, {each} laxer, 0 unknown" in (
        limited.stderr
    )
    first = report(service)
    assert causes(first["groups"]) == {
        ("laxer", "", "Staff VPN", "65: denied by the policy"): each,
        ("stricter", "no RADIUS client has this address", "", ""): each,
        ("stricter", "unknown user", "", ""): each,
    }
    by_user = {one["name"]: one["stricter"] + one["laxer"] for one in first["users"]}
    assert by_user[company.FRIDA] == by_user[company.CONTRACTOR] == each
    by_device = {one["name"]: one["stricter"] + one["laxer"] for one in first["devices"]}
    assert by_device == {company.WIFI: each, company.VPN: each, company.WAREHOUSE: each, company.SWITCH: 0}
    (event, *others) = report(service, "--rule", "Staff VPN", "--result", "laxer")["cases"]
    assert len(others) == each - 1 and event["user"] == company.CONTRACTOR and event["oldPolicy"] == "Contractors"
    assert event["place"].startswith("IN2611.log:")

    block = ("--action", "block", "--user", company.CONTRACTOR, "--medium", "Virtual", "--priority", "990")
    service.ok("rule", "add", "Contractors", *IN_DOMAIN, *block)
    people(service, company.FRIDA)
    service.ok("client", "add", "Warehouse", "--address", company.WAREHOUSE, *IN_DOMAIN, *TENANT)
    clean = report(service, "--limit", "0%")
    assert (clean["logins"], clean["differing"]) == (LOGINS, 0)

    gateway = report(service, "--device", "VPN gateway", "--limit", "0%")
    assert (gateway["logins"], gateway["differing"]) == (LOGINS * 30 // 100, 0)
    service.ok("domain", "mode", "default", "enforce")
    with service.radius(company.SECRET, source=company.VPN) as nas:
        tunnel = {"NAS_PORT_TYPE": (5).to_bytes(4)}
        answered = {name: nas.login(name, "hello", **tunnel) for name in ("user1", company.FRIDA, company.CONTRACTOR)}
    assert answered == {"user1": ACCEPT, company.FRIDA: ACCEPT, company.CONTRACTOR: REJECT}
