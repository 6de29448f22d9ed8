"""Agents of endpoints: their state, reports, drift, discovered accounts, orders and settings."""

from typing import Final

from sallyport.areas.agents.reports_repo import StoredDrift
from sallyport.areas.domains.domain import Domain
from sallyport.base.text import counted
from sallyport.base.wire import JSON, Row
from sallyport.console.columns import Column, row_columns
from sallyport.console.pages.reading import number, of, rights
from sallyport.console.table import Filter, listed, wanted
from sallyport.console.visit import Pages, Visit
from sallyport.shell.command import entries
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import OPERATORS, READERS

pages = Pages()
WAIT_S: Final = 5
"""Longest wait for the outcome of an order, in seconds. Later outcomes are on the page of the agent."""
KINDS: Final = (
    ("sync", "Apply the desired state again"),
    ("discover", "List the accounts of the machine"),
    ("rotate", "Change passwords"),
)
COLUMNS: Final = (
    Column("instanceName", "Instance", link=lambda row: str(row["address"])),
    Column("hostName", "Host name"),
    Column("status", "Agent"),
    Column("lastSeen", "Last message", "age"),
    Column("upToDate", "Up to date", "flag"),
    Column("agentVersion", "Version"),
    Column("drift", "Lasting drift", "number"),
    Column("enrolled", "Enrolled", "time", is_chosen=False),
    Column("wantedVersion", "Desired state", "number", is_chosen=False),
    Column("appliedVersion", "Applied state", "number", is_chosen=False),
)
_DRIFT: Final = row_columns(StoredDrift, "last", "kind", "name", "detail", "putBack", "first", "ended")
DRIFT: Final = (
    _DRIFT[0],
    Column("instanceName", "Instance", link=lambda row: str(row["address"])),
    *_DRIFT[1:],
)
ORDERS: Final = (
    Column("ordered", "Ordered", "time"),
    Column("kindText", "Order"),
    Column("userNames", "Accounts"),
    Column("outcome", "Outcome"),
    Column("ended", "Ended", "time"),
    Column("error", "Reason"),
)
PRIVILEGED: Final = (
    Column("name", "Account", "code"),
    Column("via", "By"),
    Column("managed", "Managed", "flag"),
    Column("wanted", "Wanted", "flag"),
)
REPORTS: Final = (
    Column("time", "Time", "time"),
    Column("outcome", "Outcome"),
    Column("done", "Actions"),
)
ACCOUNTS: Final = (
    Column("name", "Account", "code"),
    Column("userId", "Endpoint user", "flag"),
    Column("uid", "uid", "number"),
    Column("shell", "Shell", "code"),
    Column("groups", "Groups"),
    Column("found", "Found", "time"),
)
FILTERS: Final = (Filter("status", "Agent", (("Active", "active"), ("Inactive", "inactive"))),)
LASTING: Final = (Filter("all", "Show", (("yes", "ended drift too"),)),)
EMPTY: Final = (
    "No agent yet. Create an API key, and install the agent with it on a machine; the machine then appears here."
)
NO_DRIFT: Final = "No drift: no machine has a change that its agent has not made."
SETTINGS: Final = {
    "putBackPrivileges": "Remove privileges that an account should not have",
    "removeUnknownKeys": "Remove unknown SSH keys of managed accounts",
    "removeHomes": "Delete the home directory with an account",
    "sudoWithoutPassword": "sudo without a password for privileged users",
    "endSessions": "End the sessions of accounts that are locked or deleted",
}
NUMBERS: Final = {
    "rotateDays": ("Days between two rotations of a password", "0: no rotation."),
    "privilegeSeconds": ("Seconds between two privilege statuses", "10 to 604800."),
    "discoverSeconds": ("Seconds between two discoveries of accounts", "60 to 2592000."),
}


@pages.show("/agents", "Agents", roles=READERS, template="agents.html", menu="Endpoints")
async def agents(visit: Visit) -> Context:
    """List the agents of a domain."""
    domain = visit.domain()
    table = await listed(
        visit, COLUMNS, "/api/v1/agent/listAgents", "agents", wanted(visit, FILTERS), domain=domain.id,
        filters=FILTERS, empty=EMPTY, most=1000,
    )  # fmt: skip
    drift = await visit.call("/api/v1/agent/listDrift", {"pageSize": 1000}, domain=domain.id)
    of_instance: dict[JSON, int] = {}
    for each in entries(drift["drift"]):
        of_instance[str(each["instanceId"])] = of_instance.get(str(each["instanceId"]), 0) + 1
    table.rows = [
        {**each, "address": _address(each, domain), "drift": of_instance.get(str(each["instanceId"]), 0)}
        for each in table.rows
    ]
    return {"domain": domain, "table": table, "drift": drift["totalCount"], **rights(visit)}


@pages.show("/agents/drift", "Drift", roles=READERS, template="agent_drift.html")
async def drift(visit: Visit) -> Context:
    """List the changes on the machines of a domain, except the changes that an agent has made."""
    domain = visit.domain()
    body: Row = {"lasting": not visit.query.get("all")}
    table = await listed(
        visit, DRIFT, "/api/v1/agent/listDrift", "drift", body, domain=domain.id, filters=LASTING, empty=NO_DRIFT,
        most=1000,
    )  # fmt: skip
    known = await visit.call("/api/v1/agent/listAgents", {"pageSize": 1000}, domain=domain.id)
    names = {each["instanceId"]: each["instanceName"] for each in entries(known["agents"])}
    table.rows = [
        {**each, "address": _address(each, domain), "instanceName": names.get(each["instanceId"], each["instanceId"])}
        for each in table.rows
    ]
    return {"domain": domain, "table": table}


@pages.show("/agents/settings", "Settings of agents", roles=OPERATORS, template="agent_settings.html")
async def settings(visit: Visit) -> Context:
    """Show the settings of the agents of a domain, or of one instance."""
    domain, instance = visit.domain(), visit.query.get("instance", "")
    shown = await visit.call("/api/v1/agent/getSettings", _chosen(instance), domain=domain.id)
    return {"domain": domain, "settings": shown, "flags": SETTINGS, "numbers": NUMBERS, "instance": instance}


@pages.submit("/agents/settings", roles=OPERATORS)
async def set_settings(visit: Visit) -> Redirect:
    """Set the settings."""
    domain, fields, instance = visit.domain(), visit.fields, visit.query.get("instance", "")
    body: Row = {
        **_chosen(instance),
        "removal": fields.get("removal", ""),
        **{name: bool(fields.get(name)) for name in SETTINGS},
        **{name: fields.get(name, "") for name in NUMBERS},
    }
    await visit.call("/api/v1/agent/setSettings", body, domain=domain.id)
    back = f"/agents/{instance}" if instance else "/agents"
    return Redirect(of(back, domain), "The settings are stored. Agents get them with the next desired state.")


@pages.show("/agents/{instance}", "Agent", roles=READERS, template="agent.html")
async def agent(visit: Visit) -> Context:
    """Show an agent with its last report, its drift and its orders."""
    domain, body = visit.domain(), _one(visit)
    found, own = await _status(visit, domain)
    paged: Row = {**body, "pageSize": 20}
    reports = await visit.call("/api/v1/agent/listReports", paged, domain=domain.id)
    drift = await visit.call("/api/v1/agent/listDrift", {**body, "lasting": False, "pageSize": 50}, domain=domain.id)
    privileges = found["privilegeStatus"] if isinstance(found["privilegeStatus"], dict) else {}
    return {
        "title": f"Agent of {own['instanceName']}",
        "domain": domain,
        "agent": own,
        "status": found,
        "privileged": entries(privileges.get("privileged")),
        "privileged_columns": PRIVILEGED,
        "orders": _orders(entries(found["orders"])),
        "order_columns": ORDERS,
        "reports": [_report(each) for each in entries(reports["reports"])],
        "report_columns": REPORTS,
        "drift": entries(drift["drift"]),
        "drift_columns": [column for column in DRIFT if column.key not in ("instanceName", "driftId")],
        **rights(visit),
    }


@pages.show("/agents/{instance}/order", "Order", roles=OPERATORS, template="agent_order.html")
async def ask_order(visit: Visit) -> Context:
    """Show the orders that an agent can get."""
    domain = visit.domain()
    status, own = await _status(visit, domain)
    title = f"Order for {own['instanceName']}"
    return {"title": title, "domain": domain, "agent": own, "users": status["users"], "kinds": KINDS}


@pages.submit("/agents/{instance}/order", roles=OPERATORS, is_slow=True)
async def give_order(visit: Visit) -> Redirect:
    """Give an order, and wait some seconds for its outcome."""
    domain, fields = visit.domain(), visit.fields
    names = list[JSON](fields.getlist("user")) if fields.get("kind") == "rotate" else []
    body: Row = {**_one(visit), "kind": fields.get("kind", ""), "userNames": names, "waitSeconds": WAIT_S}
    given = entries((await visit.call("/api/v1/agent/order", body, domain=domain.id))["orders"])
    outcome = str(given[0]["outcome"]) if given else "waiting"
    text = "The agent has not answered yet: the order waits." if outcome == "waiting" else f"The order is {outcome}."
    return Redirect(_address(body, domain), text)


@pages.show("/agents/{instance}/accounts", "Discovered accounts", roles=READERS, template="agent_accounts.html")
async def accounts(visit: Visit) -> Context:
    """List the accounts that an agent has discovered on its machine."""
    domain, body = visit.domain(), _one(visit)
    table = await listed(
        visit, ACCOUNTS, "/api/v1/agent/listDiscovered", "discovered", body, domain=domain.id, most=1000,
        empty="No account yet: order the agent to list the accounts.",
    )  # fmt: skip
    table.rows = [_account(each) for each in table.rows]
    _, own = await _status(visit, domain)
    title = f"Discovered accounts of {own['instanceName']}"
    return {"title": title, "domain": domain, "table": table, "instance": body["instanceId"], **rights(visit)}


@pages.show("/agents/{instance}/take-over", "Manage accounts", roles=OPERATORS, template="agent_take_over.html")
async def ask_take_over(visit: Visit) -> Context:
    """Show the discovered accounts that the agent can manage."""
    domain, body = visit.domain(), _one(visit)
    found = await visit.call("/api/v1/agent/listDiscovered", {**body, "pageSize": 1000}, domain=domain.id)
    names = [str(each["name"]) for each in entries(found["discovered"])]
    _, own = await _status(visit, domain)
    title = f"Manage accounts of {own['instanceName']}"
    return {"title": title, "domain": domain, "instance": body["instanceId"], "names": [(name, name) for name in names]}


@pages.submit("/agents/{instance}/take-over", roles=OPERATORS)
async def take_over(visit: Visit) -> Redirect:
    """Tell the agent to manage the chosen accounts, or to stop managing them."""
    domain, fields = visit.domain(), visit.fields
    names = list[JSON](fields.getlist("account"))
    action = "remove" if fields.get("do") == "remove" else "add"
    body: Row = {**_one(visit), "userNames": names, "action": action}
    await visit.call("/api/v1/agent/takeOver", body, domain=domain.id)
    done = "manages" if action == "add" else "no longer manages"
    return Redirect(_address(body, domain), f"The agent {done} {counted(len(names), 'account')}.")


async def _status(visit: Visit, domain: Domain) -> tuple[Row, Row]:
    """Return the status of the agent of the path, and the agent itself. Raises NotFound, Refused, StoreError."""
    found = await visit.call("/api/v1/agent/agentStatus", _one(visit), domain=domain.id)
    return found, found["agent"] if isinstance(found["agent"], dict) else {}


def _chosen(instance: str) -> Row:
    """Return the field of a request for settings. instance: an instance id; empty for the settings of the domain."""
    return {"instanceId": number(instance, "instance") if instance else 0}


def _one(visit: Visit) -> Row:
    return {"instanceId": number(visit.at["instance"], "instance")}


def _address(row: Row, domain: Domain) -> str:
    return of(f"/agents/{row['instanceId']}", domain)


def _orders(found: list[Row]) -> list[Row]:
    return [{**each, "kindText": dict(KINDS).get(str(each["kind"]), each["kind"])} for each in found]


def _account(row: Row) -> Row:
    """Return a discovered account with the fields that the agent has reported."""
    told = row["told"] if isinstance(row["told"], dict) else {}
    return {**told, **row, "userId": bool(row["userId"]), "groups": told.get("groups") or None}


def _report(row: Row) -> Row:
    """Return a report for the page, with its actions in words."""
    told = row["told"] if isinstance(row["told"], dict) else {}
    done = [
        ": ".join(text for text in (_words(each, "kind", "name", "detail"), _words(each, "error")) if text)
        for each in entries(told.get("actions"))
    ]
    return {**row, "done": list[JSON](text for text in done if text)}


def _words(row: Row, *keys: str) -> str:
    return " ".join(str(part) for key in keys if (part := row.get(key)))
