"""Pages about the second factor of a domain: its provider, with a check and the removal."""

from typing import Final

from sallyport.base.wire import JSON, Row
from sallyport.console.labels import PROVIDERS
from sallyport.console.pages.domains import provider_of
from sallyport.console.pages.reading import domain_at
from sallyport.console.visit import Pages, Visit
from sallyport.web.pages import Context, Redirect
from sallyport.web.scope import ADMINS

pages = Pages()
FIELDS: Final[dict[str, tuple[tuple[str, str], ...]]] = {
    "totp": (),
    "duo": (("ikey", "Integration key"), ("skey", "Secret key"), ("host", "API host name")),
    "okta": (("domain", "Okta domain"), ("apiToken", "API token")),
    "privacyidea": (("url", "URL"), ("realm", "Realm"), ("adminToken", "Admin token")),
    "webhook": (("url", "URL"), ("secret", "Shared secret")),
    "radius": (("host", "Host"), ("port", "Port"), ("secret", "Shared secret")),
    "wallet": (("issuerDid", "DID of the issuer"), ("schemaId", "Id of the credential schema")),
}
"""The fields of each provider that a form sets, with their labels. The operation has further fields."""
SECRETS: Final = frozenset({"skey", "apiToken", "adminToken", "secret"})
OPTIONAL: Final = frozenset({"realm", "adminToken", "port", "schemaId"})


@pages.show("/domains/{domain}/provider", "Second factor", roles=ADMINS, template="provider.html")
async def provider(visit: Visit) -> Context:
    """Show the form of a provider."""
    domain = domain_at(visit)
    present = await provider_of(visit, domain)
    chosen = visit.query.get("provider", "")
    if chosen not in FIELDS:
        chosen = str(present["provider"]) if present and present["provider"] in FIELDS else "totp"
    is_same = present is not None and present["provider"] == chosen
    return {
        "title": f"Second factor of {domain.name}",
        "domain": domain,
        "present": present,
        "chosen": chosen,
        "choices": tuple((name, PROVIDERS[name]) for name in FIELDS),
        "fields": FIELDS[chosen],
        "values": present["fields"] if present is not None and is_same else {},
        "timeout": present["timeoutSeconds"] if present is not None and is_same else 60,
        "secrets": SECRETS,
        "optional": OPTIONAL,
    }


@pages.submit("/domains/{domain}/provider", roles=ADMINS)
async def set_provider(visit: Visit) -> Redirect:
    """Set the provider from the next login on."""
    domain, fields = domain_at(visit), visit.fields
    chosen = fields.get("chosen", "")
    own: dict[str, JSON] = {
        name: fields[name] for name, _ in FIELDS.get(chosen, ()) if fields.get(name) or name not in OPTIONAL
    }
    body: dict[str, JSON] = {**own, "provider": chosen, "timeoutSeconds": fields.get("timeout", "60")}
    await visit.call("/ad/SetMFAProvider", body, domain=domain.id)
    return Redirect(f"/domains/{domain.id}", f"{chosen} is the second factor of {domain.name}. Check it now.")


@pages.show("/domains/{domain}/provider/check", "Check the provider", roles=ADMINS, template="provider_check.html")
async def check(visit: Visit) -> Context:
    """Show the form of the check."""
    return _checked(visit, None)


@pages.submit("/domains/{domain}/provider/check", roles=ADMINS, is_slow=True)
async def run_check(visit: Visit) -> Context:
    """Ask the provider whether it works, and show its answer."""
    return _checked(visit, await visit.call("/ad/CheckMFAProvider", domain=domain_at(visit).id))


def _checked(visit: Visit, result: Row | None) -> Context:
    domain = domain_at(visit)
    return {"title": f"Check the second factor of {domain.name}", "domain": domain, "result": result}


@pages.show("/domains/{domain}/provider/remove", "Remove the provider", roles=ADMINS, template="provider_remove.html")
async def removal(visit: Visit) -> Context:
    """Show the provider that would be removed."""
    domain = domain_at(visit)
    present = await provider_of(visit, domain)
    return {"title": f"Remove the second factor of {domain.name}", "domain": domain, "present": present}


@pages.submit("/domains/{domain}/provider/remove", roles=ADMINS)
async def remove(visit: Visit) -> Redirect:
    """Remove the provider."""
    domain = domain_at(visit)
    await visit.call("/ad/DeleteMFAProvider", domain=domain.id)
    return Redirect(f"/domains/{domain.id}", f"{domain.name} has no second factor any more.")
