"""RADIUS clients: their settings, their signatures (BlastRADIUS), and their secrets."""

from collections.abc import Sequence
from typing import Final, cast

from sallyport.areas.clients.client import Client
from sallyport.base.errors import NotFound
from sallyport.base.secret import new_shared_secret
from sallyport.base.wire import JSON, Row
from sallyport.console.columns import Column, row_columns
from sallyport.console.pages import senders
from sallyport.console.pages.devices import device_columns
from sallyport.console.pages.reading import lines, number_at, rights, tag_changes
from sallyport.console.table import Filter, listed
from sallyport.console.visit import Pages, Visit
from sallyport.radius.vendors import PRODUCTS
from sallyport.shell.command import entries
from sallyport.web.bodies import LONG
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import ADMINS, OPERATORS, READERS

pages = Pages()
LIST: Final = "/network_device/ListClients"
UPDATE: Final = "/network_device/UpdateClient"
FILTERS: Final = (Filter("search", "Search"), Filter("tag", "Tag (key=value)"))
SIGNATURES: Final = (
    ("auto", "auto: after its first signed request"),
    ("yes", "yes: drop every unsigned request"),
    ("no", "no: unsigned requests are answered"),
)
PROXIES: Final = (
    ("auto", "auto: once it need not send them"),
    ("yes", "yes: drop unsigned requests with Proxy-State"),
    ("no", "no: they are answered"),
)
MAC_FORMS: Final = (
    ("login-user", "login-user: a Service-Type"),
    ("authenticate-only", "authenticate-only: a Service-Type"),
    ("no-station", "no-station: no Calling-Station-Id"),
    ("password", "password: one for all stations"),
)
"""The forms of MAC authentication bypass, with their texts."""
ALL: Final = "all"
NO_PRODUCT: Final = ("", "detected from packets")


@pages.show("/clients", "RADIUS clients", roles=READERS, template="clients.html", menu="Network")
async def clients(visit: Visit) -> Context:
    """List the RADIUS clients of the tenant."""
    names = {domain.id: domain.name for domain in visit.domains()}
    own = row_columns(
        Client,
        *("name", "address", "product", "signatureRequired", "requireMessageAuthenticator", "tags", "warnings"),
        links={"name": lambda row: f"/clients/{row['clientId']}"},
    )
    last = Column("lastUnsigned", "Last unsigned request", "age", is_chosen=False)
    columns = (*own[:2], Column("domainNames", "Domains"), *own[2:], last)
    table = await listed(
        visit,
        columns,
        LIST,
        "clients",
        {"search": visit.query.get("search", ""), "tag": visit.query.get("tag", "")},
        filters=FILTERS,
        empty="No RADIUS client yet. Add one: only known addresses are answered.",
        most=LONG,
    )
    unsigned = await _last_unsigned(visit, table.rows) if "lastUnsigned" in visit.query.getlist("column") else {}
    table.rows = [
        {**row, "domainNames": _domain_names(row, names), "lastUnsigned": unsigned.get(row["clientId"], "")}
        for row in table.rows
    ]
    senders.tell_elsewhere(table)
    return {"table": table, "elsewhere": senders.ELSEWHERE, **rights(visit)}


@pages.show("/clients/add", "Add a RADIUS client", roles=ADMINS, template="client_add.html")
async def new(visit: Visit) -> Context:
    """Show the form of a new client."""
    return {**_choices(visit), "main": str(visit.main or next((each.id for each in visit.domains()), ""))}


@pages.submit("/clients/add", roles=ADMINS, template="client_secret.html")
async def add(visit: Visit) -> Context:
    """Add a client, and show its secret once."""
    body: dict[str, JSON] = {**_settings(visit), **_trust(visit), "secret": visit.fields.get("secret", "")}
    body |= {"tags": lines(visit.fields.get("tags", "")), "note": visit.fields.get("note", "")}
    added = await visit.call("/network_device/AddClient", body)
    return {"title": f"{body['name']} is added", "number": added["clientId"], **_shown(added)}


@pages.show("/clients/{client}", "RADIUS client", roles=READERS, template="client.html")
async def client(visit: Visit) -> Context:
    """Show a client, its signatures, and the devices that have the client's address."""
    found, domains = await _client(visit), visit.domains()
    names = {domain.id: domain.name for domain in domains}
    served = [domain for domain in domains if domain.id in (found["domainIds"] or names)]  # type: ignore[operator]
    devices: list[tuple[str, list[Row]]] = []
    if "/" not in str(found["address"]):
        behind: dict[str, JSON] = {
            "filter": {"filterBy": "IP_ADDRESS", "value": found["address"]},
            "pageSize": 20,
        }
        for domain in served[:5]:
            answer = await visit.call("/network_device/ListDevices", behind, domain=domain.id)
            devices.append((domain.name, entries(answer["network_devices"])))
    wanted = ("device_name", "device_type", "client_ip", "signed_share", "last_unsigned", "safe_to_require")
    return {
        "title": f"RADIUS client {found['name']}",
        "client": found,
        "domain_names": _domain_names(found, names),
        "mac_forms": [text for value, text in MAC_FORMS if value in cast(list[JSON], found["macForms"])],
        "devices": [(name, rows) for name, rows in devices if rows],
        "columns": [column for column in device_columns(served[0].id) if column.key in wanted] if served else [],
        **rights(visit),
    }


@pages.show(
    "/clients/{client}/settings", "Settings of a RADIUS client", roles=OPERATORS, template="client_settings.html"
)
async def settings(visit: Visit) -> Context:
    """Show the form of the settings that an operator may change."""
    return {**await _titled(visit, "Settings of"), **_choices(visit)}


@pages.submit("/clients/{client}/settings", roles=OPERATORS)
async def change(visit: Visit) -> Redirect:
    """Change the settings."""
    return await _changed(visit, _settings(visit), "The settings are changed, from the next request on.")


@pages.show("/clients/{client}/trust", "Trust of a RADIUS client", roles=ADMINS, template="client_trust.html")
async def trust(visit: Visit) -> Context:
    """Show the form of the settings that decide which requests are trusted."""
    return {**await _titled(visit, "Trust of"), **_choices(visit)}


@pages.submit("/clients/{client}/trust", roles=ADMINS)
async def change_trust(visit: Visit) -> Redirect:
    """Change domains, signatures, certificate and MAC authentication."""
    return await _changed(visit, _trust(visit), "The trust is changed, from the next request on.")


@pages.show("/clients/{client}/tags", "Tags and note", roles=OPERATORS, template="tags.html")
async def own_tags(visit: Visit) -> Context:
    """Show the form of the tags and the note of a client."""
    found = await _client(visit)
    return {
        "title": f"Tags and note of {found['name']}",
        "name": found["name"],
        "tags": found["tags"],
        "inherited": {},
        "note": found["note"],
        "back": f"/clients/{found['clientId']}",
        **rights(visit),
    }


@pages.submit("/clients/{client}/tags", roles=OPERATORS)
async def change_tags(visit: Visit) -> Redirect:
    """Change the tags and the note of the client."""
    found = await _client(visit)
    return await _changed(visit, tag_changes(visit, found["tags"]), "Tags and note are changed.")


@pages.show("/clients/{client}/unlatch", "Unlatch a RADIUS client", roles=ADMINS, template="client_unlatch.html")
async def latched(visit: Visit) -> Context:
    """Show the settings that the service has learned for the client."""
    return await _titled(visit, "Unlatch")


@pages.submit("/clients/{client}/unlatch", roles=ADMINS)
async def unlatch(visit: Visit) -> Redirect:
    """Delete the settings that the service has learned for the client."""
    return await _changed(visit, {"unlatch": True}, "The client begins to learn again with its next request.")


@pages.show("/clients/{client}/secret", "Change the secret", roles=ADMINS, template="client_new_secret.html")
async def secret(visit: Visit) -> Context:
    """Show the form of a new secret."""
    return await _titled(visit, "Change the secret of")


@pages.submit("/clients/{client}/secret", roles=ADMINS, template="client_secret.html")
async def change_secret(visit: Visit) -> Context:
    """Change the secret, and show it once."""
    found, number = await _client(visit), number_at(visit, "client")
    given = visit.fields.get("secret", "") or new_shared_secret()
    updated = await visit.call(UPDATE, {"clientId": number, "secret": given})
    shown = _shown({"secret": given, "warnings": updated["warnings"]})
    return {"title": f"{found['name']} has a new secret", "number": number, **shown}


@pages.show("/clients/{client}/delete", "Delete a RADIUS client", roles=OPERATORS, template="client_delete.html")
async def removal(visit: Visit) -> Context:
    """Show the client that would be deleted, and the effects of its deletion."""
    return await _titled(visit, "Delete")


@pages.submit("/clients/{client}/delete", roles=OPERATORS)
async def delete(visit: Visit) -> Redirect:
    """Delete the client."""
    found = await _client(visit)
    await visit.call("/network_device/DeleteClient", {"clientId": found["clientId"]})
    return Redirect("/clients", f"{found['name']} is deleted. Its requests are not answered any more.")


async def _last_unsigned(visit: Visit, rows: Sequence[Row]) -> dict[JSON, JSON]:
    """Return when each client of the rows has sent its last unsigned request, by id."""
    found = dict[JSON, JSON]()
    ids = [row["clientId"] for row in rows]
    for at in range(0, len(ids), LONG):
        body: dict[str, JSON] = {"clientIds": ids[at : at + LONG], "pageSize": LONG}
        activity = entries((await visit.call("/network_device/ClientActivity", body))["clients"])
        found |= {each["clientId"]: each["lastUnsigned"] for each in activity}
    return found


async def _client(visit: Visit) -> Row:
    """Return the client of the path. Raises NotFound."""
    found = entries((await visit.call(LIST, {"clientId": number_at(visit, "client")}))["clients"])
    if not found:
        raise NotFound("RADIUS client not found")
    return found[0]


async def _titled(visit: Visit, title: str) -> dict[str, object]:
    """Return the variables of a form about the client of the path. title: the title of the form, without the name of
    the client. Raises NotFound."""
    found = await _client(visit)
    return {"title": f"{title} {found['name']}", "client": found}


async def _changed(visit: Visit, body: dict[str, JSON], notice: str) -> Redirect:
    number = number_at(visit, "client")
    answer = await visit.call(UPDATE, {"clientId": number, **body})
    warnings = answer["warnings"] if isinstance(answer["warnings"], list) else []
    return Redirect(f"/clients/{number}", " ".join([notice, *(f"Warning: {each}." for each in warnings)]))


def _settings(visit: Visit) -> dict[str, JSON]:
    fields = visit.fields
    return {
        "name": fields.get("name", ""),
        "address": fields.get("address", ""),
        "product": fields.get("product", ""),
        "coaPort": fields.get("port", "") or 0,
    }


def _trust(visit: Visit) -> dict[str, JSON]:
    fields, chosen = visit.fields, visit.fields.get("domain", ALL)
    others: list[JSON] = [each for each in fields.getlist("more") if each != chosen]
    return {
        "domainIds": [] if chosen == ALL else [chosen, *others],
        "requireMessageAuthenticator": fields.get("signatures", "auto"),
        "limitProxyState": fields.get("proxies", "auto"),
        "passwordVerified": fields.get("vouches", "no"),
        "shadow": fields.get("shadow", "no"),
        "tlsName": fields.get("tls_name", ""),
        "tlsFingerprint": fields.get("tls_fingerprint", ""),
        "macForms": list[JSON](fields.getlist("mac_forms")),
        "macPassword": fields.get("mac_password", ""),
    }


def _choices(visit: Visit) -> dict[str, object]:
    domains = visit.domain_choices()
    return {
        "products": (NO_PRODUCT, *((name, name) for name in PRODUCTS)),
        "signatures": SIGNATURES,
        "proxies": PROXIES,
        "mac_forms": MAC_FORMS,
        "domains": domains,
        "domain_choices": ((ALL, "every domain of the tenant"), *domains),
    }


def _domain_names(row: Row, names: dict[int, str]) -> list[JSON] | str:
    ids = row["domainIds"] if isinstance(row["domainIds"], list) else []
    return [names.get(int(str(each)), str(each)) for each in ids] or "all"


def _shown(answer: Row) -> dict[str, object]:
    return {"secret": answer["secret"], "warnings": answer["warnings"]}
