"""API keys of agents."""

from collections.abc import Mapping
from typing import Final

from sallyport.base.wire import Row
from sallyport.console.columns import Column
from sallyport.console.pages.reading import find, instances, lines, number, of, rights
from sallyport.console.table import listed
from sallyport.console.visit import Pages, Visit
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import ADMINS, READERS

pages = Pages()
KINDS: Final = {"enrolment": "enrols agents", "own": "agent's own key"}
COLUMNS: Final = (
    Column("keyId", "Key", "number"),
    Column("name", "Name"),
    Column("kindText", "Kind"),
    Column("agent", "Agent"),
    Column("instanceText", "Instance"),
    Column("status", "Status"),
    Column("usedText", "Machines enrolled"),
    Column("createdAt", "Created", "time", is_chosen=False),
    Column("expiresAt", "Expires", "time"),
    Column("lastSeen", "Last used", "age"),
)
AGENTS: Final = (("endpoint", "Endpoint agent"), ("directory", "Directory agent"))
EMPTY: Final = "No key yet. Create one to enrol an endpoint agent or a directory agent."


@pages.show("/keys", "API keys", roles=READERS, template="keys.html", menu="Administration")
async def keys(visit: Visit) -> Context:
    """List the API keys of a domain."""
    domain = visit.domain()
    columns = COLUMNS
    if visit.may(ADMINS):
        columns = (Column("keyId", "Key", link=lambda row: of(f"/keys/{row['keyId']}/revoke", domain)), *COLUMNS[1:])
    table = await listed(visit, columns, "/api/v1/agent/listKeys", "keys", {}, domain=domain.id, empty=EMPTY, most=1000)
    names = dict(await instances(visit, domain))
    table.rows = [{**_key(each), "instanceText": _instance(each, names)} for each in table.rows]
    return {"domain": domain, "table": table, **rights(visit)}


@pages.show("/keys/add", "Create an API key", roles=ADMINS, template="key_add.html")
async def new_key(visit: Visit) -> Context:
    """Show the form of a new key."""
    domain = visit.domain()
    choices = [("", "any instance of the domain"), *await instances(visit, domain, visit.query.get("filter", ""))]
    return {"domain": domain, "agents": AGENTS, "instances": choices}


@pages.submit("/keys/add", roles=ADMINS, template="key_made.html")
async def add_key(visit: Visit) -> Context:
    """Create a key, and show it once with the configuration file of its agent."""
    domain, fields = visit.domain(), visit.fields
    body: Row = {name: fields.get(name, "") for name in ("agent", "name")}
    for name in ("uses", "expiresAt", "instanceId", "service", "directoryName", "baseDN", "bindDN"):
        if fields.get(name):
            body[name] = fields[name]
    if fields.get("servers"):
        body["servers"] = lines(fields["servers"])
    made = await visit.call("/api/v1/agent/createKey", body, domain=domain.id)
    return {"title": "The API key is created", "domain": domain, "made": made, "agent": body["agent"]}


@pages.show("/keys/{key}/revoke", "Revoke an API key", roles=ADMINS, template="key_revoke.html")
async def confirm_key(visit: Visit) -> Context:
    """Show the key that would be revoked."""
    domain = visit.domain()
    wanted = number(visit.at["key"], "API key")
    found = await find(visit, "/api/v1/agent/listKeys", "keys", "keyId", wanted, "API key", domain=domain.id)
    return {"domain": domain, "key": _key(found)}


@pages.submit("/keys/{key}/revoke", roles=ADMINS)
async def revoke_key(visit: Visit) -> Redirect:
    """Revoke a key."""
    domain = visit.domain()
    body: Row = {"keyId": number(visit.at["key"], "API key")}
    await visit.call("/api/v1/agent/revokeKey", body, domain=domain.id)
    return Redirect(of("/keys", domain), f"The key {body['keyId']} is revoked.")


def _key(row: Row) -> Row:
    most = "" if row["uses"] is None else f" of {row['uses']}"
    enrolled = f"{row['used']}{most}" if row["kind"] == "enrolment" else None
    return {**row, "kindText": KINDS[str(row["kind"])], "usedText": enrolled}


def _instance(row: Row, names: Mapping[str, str]) -> str:
    """Return the name of the instance of a key. names: the names of the first instances of the domain, by id."""
    known = row["instanceId"]
    return names.get(str(known), f"instance {known}") if known else ""
