"""Pages about the first factor of a domain: its kind and settings, and a test."""

from typing import Final

from sallyport.areas.domains.domain import FirstFactor
from sallyport.base.wire import JSON, Row
from sallyport.console.pages.domains import configuration
from sallyport.console.pages.reading import domain_at, lines
from sallyport.console.visit import Pages, Visit
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import ADMINS

pages = Pages()
KINDS: Final = (
    ("local", "local: passwords of the domain's endpoint users"),
    ("ldap", "ldap: a directory checks passwords"),
    ("radius", "radius: other RADIUS servers check passwords"),
    ("none", "none: the RADIUS client has checked the password"),
    ("web", "web: the identity provider checks both"),
)
CONFIGURED: Final = frozenset({"ldap", "radius"})
"""The kinds that have settings."""
UNTESTED: Final = frozenset({"none", "web"})
"""The kinds that check no password, so that no password can be tested."""
MAX_SERVERS: Final = 8
LDAP: Final = ("baseDN", "bindDN", "bindPassword", "userFilter", "caCertificate", "winbindDomain")
LDAP_NUMBERS: Final = ("timeoutSeconds", "cacheSeconds", "codeDigits")
LDAP_FLAGS: Final = ("startTls", "winbind")
RADIUS_NUMBERS: Final = ("responseWindowSeconds", "codeDigits")
RADIUS_FLAGS: Final = ("loadBalance", "statusCheck", "requireMessageAuthenticator", "stripRealm", "namesInnerUser")
TLS: Final = ("clientCertificate", "clientKey", "caCertificate", "serverName")


@pages.show("/domains/{domain}/first-factor", "First factor", roles=ADMINS, template="first_factor.html")
async def first_factor(visit: Visit) -> Context:
    """Show the first factor and the form of its test."""
    return await _first(visit, None)


@pages.submit("/domains/{domain}/first-factor", roles=ADMINS, is_slow=True)
async def test(visit: Visit) -> Context:
    """Check a user name and a password, and show each step."""
    body: dict[str, JSON] = {
        "userName": visit.fields.get("user", ""),
        "password": visit.fields.get("password", ""),
        "mschap": visit.fields.get("mschap", "no"),
    }
    result = await visit.call("/ad/CheckFirstFactor", body, domain=domain_at(visit).id)
    return await _first(visit, result)


async def _first(visit: Visit, result: Row | None) -> Context:
    domain = domain_at(visit)
    first = await visit.call("/ad/GetFirstFactor", domain=domain.id)
    title = f"First factor of {domain.name}"
    return {"title": title, "domain": domain, "configured": configuration(first), "result": result}


@pages.show(
    "/domains/{domain}/first-factor/set", "Set the first factor", roles=ADMINS, template="first_factor_set.html"
)
async def settings(visit: Visit) -> Context:
    """Show the form of a kind of first factor."""
    domain = domain_at(visit)
    first = await visit.call("/ad/GetFirstFactor", domain=domain.id)
    chosen = visit.fields.get("chosen") or visit.query.get("kind") or str(first["firstFactor"])
    if chosen not in dict(KINDS):
        chosen = FirstFactor.LOCAL.value
    stored = first.get(chosen)
    values = stored if isinstance(stored, dict) else {}
    return {
        "title": f"First factor of {domain.name}",
        "domain": domain,
        "kinds": KINDS,
        "chosen": chosen,
        "values": values,
        "rooms": _rooms(visit, values),
        "is_stored": isinstance(stored, dict) and first["firstFactor"] != chosen,
        "most_servers": MAX_SERVERS,
    }


def _rooms(visit: Visit, values: Row) -> int:
    """Return the number of servers for which the form has fields: one more than there are, and at least two."""
    servers = values.get("servers")
    stored = len(servers) if isinstance(servers, list) else 0
    sent = [index + 1 for index in range(MAX_SERVERS) if visit.fields.get(f"host{index}")]
    return min(max(stored + 1, 2, *sent), MAX_SERVERS)


@pages.submit("/domains/{domain}/first-factor/set", roles=ADMINS)
async def set_first(visit: Visit) -> Redirect:
    """Set the first factor from the next login on. Secrets are not shown in the form, so they are sent with each
    change, unless the stored settings are used."""
    domain, chosen = domain_at(visit), visit.fields.get("chosen", "")
    body: Row = {"firstFactor": chosen}
    if chosen in CONFIGURED and not visit.fields.get("stored"):
        body[chosen] = _ldap(visit) if chosen == "ldap" else _radius(visit)
    await visit.call("/ad/SetFirstFactor", body, domain=domain.id)
    notice = f"The first factor of {domain.name} is {chosen}, from the next login on."
    if chosen in UNTESTED:
        return Redirect(f"/domains/{domain.id}", notice)
    return Redirect(f"/domains/{domain.id}/first-factor", f"{notice} Test it now.")


def _ldap(visit: Visit) -> Row:
    return {
        "servers": lines(visit.fields.get("servers", "")),
        **_given(visit, (*LDAP, *LDAP_NUMBERS)),
        **_flags(visit, LDAP_FLAGS),
    }


def _radius(visit: Visit) -> Row:
    return {
        "servers": [_server(visit, index) for index in range(MAX_SERVERS) if visit.fields.get(f"host{index}")],
        **_given(visit, RADIUS_NUMBERS),
        **_flags(visit, RADIUS_FLAGS),
    }


def _server(visit: Visit, index: int) -> JSON:
    server = _given(visit, ("host", "port", "secret"), index)
    tls = _given(visit, TLS, index)
    return {**server, "tls": tls} if tls else server


def _given(visit: Visit, names: tuple[str, ...], index: int | str = "") -> Row:
    """Return the fields that are filled in. index: the number of the server to which the fields belong."""
    return {name: visit.fields[f"{name}{index}"] for name in names if visit.fields.get(f"{name}{index}")}


def _flags(visit: Visit, names: tuple[str, ...]) -> Row:
    return {name: "yes" if visit.fields.get(name) else "no" for name in names}
