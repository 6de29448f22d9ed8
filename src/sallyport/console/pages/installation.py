"""Pages about the installation as a whole: certificates, nodes and settings. Only installation administrators see these
pages."""

from typing import Final

from sallyport.base.wire import Row
from sallyport.console.columns import Column
from sallyport.console.pages.reading import one
from sallyport.console.table import Filter, complete
from sallyport.console.visit import Pages, Visit
from sallyport.shell.command import entries
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import INSTALLATIONS, READERS

pages = Pages()
SOON: Final = 30
"""Days before the expiry of a certificate from which it is listed as expiring."""
USES: Final = {
    "tls_certificate": "HTTPS of API and console",
    "eap_certificate": "EAP and RadSec",
    "eap_ca": "authority of clients",
    "authority": "own authority",
    "server": "EAP and RadSec, own authority",
    "client": "client, own authority",
}
CERTIFICATES: Final = (
    Column("name", "Name"),
    Column("useText", "For"),
    Column("stateText", "State"),
    Column("expires", "Expires", "time"),
    Column("days", "Days left", "number"),
    Column("org", "Org", "number"),
    Column("tenant", "Tenant", "number"),
    Column("serial", "Serial number", "code"),
    Column("sha256", "SHA-256", "code", is_chosen=False),
)
NO_CERTIFICATE: Final = (
    "No certificate yet. EAP and RadSec need one: sallyport cert init makes an authority and the certificate of the "
    "server, or the settings eap_certificate and eap_key name your own."
)
NODES: Final = (
    Column("name", "Node", link=lambda row: f"/nodes/{row['name']}" if not row["alive"] else "/nodes"),
    Column("state", "State"),
    Column("leads", "Leads", "flag"),
    Column("version", "Version"),
    Column("address", "Address", "code"),
    Column("started", "Started", "time"),
    Column("id", "Id", "number", is_chosen=False),
)
SETTINGS: Final = (
    Column("name", "Setting", "code"),
    Column("value", "Value", "code"),
    Column("isSet", "Set", "flag"),
    Column("change", "A change needs"),
    Column("description", "Meaning"),
    Column("environment", "Environment variable", "code", is_chosen=False),
)
SEARCH: Final = Filter("search", "Text")


@pages.show(
    "/installation", "Pages of the installation", roles=READERS, template="installation.html", menu="Installation"
)
async def closed(visit: Visit) -> Context:
    """Say which pages open for an installation administrator only, and which command adds one."""
    return {}


@pages.show("/certificates", "Certificates", roles=INSTALLATIONS, template="certificates.html", menu="Installation")
async def certificates(visit: Visit) -> Context:
    """List all certificates, ordered by their expiry. The certificate that expires first is at the top."""
    found = [_certificate(each) for each in entries(await visit.command("cert.list"))]
    found.sort(key=lambda each: (each["state"] == "revoked", each["days"] is not None, each["days"] or 0))
    soon = [each for each in found if each["state"] == "valid" and int(str(each["days"])) < SOON]
    states = [(each, each) for each in ("valid", "expired", "revoked")]
    filters = (SEARCH, Filter("state", "State", states))
    return {"table": complete(visit, CERTIFICATES, found, filters=filters, empty=NO_CERTIFICATE), "soon": soon}


@pages.show("/nodes", "Nodes", roles=INSTALLATIONS, template="nodes.html", menu="Installation")
async def nodes(visit: Visit) -> Context:
    """List the nodes that use the database."""
    found = entries(await visit.command("node.list"))
    return {"table": complete(visit, NODES, found, empty=ALONE)}


ALONE: Final = (
    "This is the only node: it has a database file of its own. Several nodes need a PostgreSQL database (setting "
    "database)."
)


@pages.show("/nodes/{node}", "Remove a node from the list", roles=INSTALLATIONS, template="node_forget.html")
async def confirm(visit: Visit) -> Context:
    """Show the node that would be removed from the list."""
    found = entries(await visit.command("node.list"))
    return {"node": one(found, "name", visit.at["node"], "node")}


@pages.submit("/nodes/{node}", roles=INSTALLATIONS)
async def forget(visit: Visit) -> Redirect:
    """Remove a silent node from the list."""
    await visit.command("node.forget", name=visit.at["node"])
    return Redirect("/nodes", f"The node {visit.at['node']} is removed from the list.")


@pages.show("/settings", "Settings", roles=INSTALLATIONS, template="settings.html", menu="Installation")
async def settings(visit: Visit) -> Context:
    """List the settings of the running service."""
    found = [_setting(each) for each in entries(await visit.command("settings.show"))]
    filters = (SEARCH, Filter("isSet", "Set", [("True", "in the file or the environment"), ("False", "default")]))
    return {"table": complete(visit, SETTINGS, found, filters=filters)}


def _certificate(row: Row) -> Row:
    state, days = str(row["state"]), row["days"]
    text = "expires soon" if state == "valid" and isinstance(days, int) and days < SOON else state
    return {**row, "useText": USES.get(str(row["use"]), str(row["use"])), "stateText": text}


def _setting(row: Row) -> Row:
    value = str(row["value"] or (f"({row['unset']})" if row["unset"] else ""))
    return {**row, "value": value.replace("`", ""), "description": str(row["description"]).replace("`", "")}
