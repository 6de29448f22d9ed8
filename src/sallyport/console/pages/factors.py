"""Pages about the second factors of a domain: its providers, with a check and the removal."""

from collections.abc import Mapping
from typing import Final

from sallyport.areas.mfa.fields import BUILT_IN, AuthTime, Binding, UserIs, secret_field
from sallyport.areas.mfa.provider import Strength
from sallyport.base.wire import JSON, Row
from sallyport.console.labels import PROVIDERS
from sallyport.console.pages.domains import provider_of, providers_of
from sallyport.console.pages.reading import domain_at
from sallyport.console.visit import Pages, Visit
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import ADMINS

pages = Pages()
FIELDS: Final = {
    kind: tuple((name, str(each.title)) for name, each in fields.model_fields.items())
    for kind, fields in BUILT_IN.items()
}
"""The fields of each provider that a form sets, with their labels. The operation has further fields."""
CHOICES: Final = {
    name: tuple((each.value, each.value.replace("_", " ")) for each in kind)
    for name, kind in (
        ("binding", Binding),
        ("userIs", UserIs),
        ("authTime", AuthTime),
        ("changeStrength", Strength),
    )
} | dict.fromkeys(("pageByMail", "enrolByChallenge"), (("False", "no"), ("True", "yes")))
"""The values of the fields that have a fixed set."""
HINTS: Final = {
    "binding": "code: the user types digits of the page at the device. address: the browser has the address of the "
    "station. unbound: a forwarded link lets another person in.",
    "factors": "Separated by commas: passkey, oidc, totp, bypass, mail.",
    "pageByMail": "For devices that show no challenge. Needs the binding address or unbound.",
    "enrolByChallenge": "The challenge shows people without any factor a link for 10 minutes. Anybody who knows only "
    "the password of such a person can then enrol.",
    "digits": "4 to 8",
    "issuer": "Such as https://login.microsoftonline.com/TENANT/v2.0.",
    "userClaim": "It must identify the user of the login.",
    "userIs": "name: the user name of the login. directory id: the object id in a cloud directory of the domain.",
    "userSuffix": "Such as @example.com, if the user names of logins do not have it.",
    "authTime": "required: the ID token proves that the person has just signed in. optional: for providers without it.",
    "amr": "Separated by commas, such as mfa,hwk. Empty: any.",
    "acr": "Separated by commas. Empty: any.",
    "changeStrength": "Of the proof with which people change their app and bypass codes at /me. A passkey always needs "
    "a passkey or a link.",
    "ownCodes": "0 to 10 for each person, at /me. 0: only operators make codes.",
    "resistantAmr": "Separated by commas. They count as phishing-resistant with the binding address.",
}
SECRETS: Final = frozenset(filter(None, map(secret_field, BUILT_IN.values())))
OPTIONAL: Final = frozenset(
    name for fields in BUILT_IN.values() for name, each in fields.model_fields.items() if not each.is_required()
)
DEFAULTS: Final[Mapping[str, Row]] = {
    kind: {
        name: each.default
        for name, each in fields.model_fields.items()
        if name not in SECRETS and not each.is_required() and each.default is not None
    }
    for kind, fields in BUILT_IN.items()
}
"""The values that the form of a new provider shows."""


@pages.show("/domains/{domain}/provider", "Second factor", roles=ADMINS, template="provider.html")
async def provider(visit: Visit) -> Context:
    """Show the form of the default provider, or of one beside it (`beside` in the address)."""
    domain, is_beside = domain_at(visit), _is_beside(visit)
    default = await provider_of(visit, domain)
    kinds = [each for each in FIELDS if not (is_beside and default is not None and default["provider"] == each)]
    chosen = visit.query.get("provider", "")
    if chosen not in kinds:
        chosen = str(default["provider"]) if default and default["provider"] in kinds else kinds[0]
    present = await provider_of(visit, domain, chosen) if is_beside else default
    is_same = present is not None and present["provider"] == chosen
    return {
        "title": f"Second factor of {domain.name} for login rules" if is_beside else f"Second factor of {domain.name}",
        "domain": domain,
        "is_beside": is_beside,
        "present": present,
        "chosen": chosen,
        "choices": tuple((name, PROVIDERS[name]) for name in kinds),
        "fields": FIELDS[chosen],
        "values": present["fields"] if present is not None and is_same else DEFAULTS[chosen],
        "timeout": present["timeoutSeconds"] if present is not None and is_same else 60,
        "secrets": SECRETS,
        "optional": OPTIONAL,
        "choices_of": CHOICES,
        "hints": HINTS,
    }


def _is_beside(visit: Visit) -> bool:
    return visit.query.get("beside") == "yes"


@pages.submit("/domains/{domain}/provider", roles=ADMINS)
async def set_provider(visit: Visit) -> Redirect:
    """Set the default provider, or one beside it, from the next login on."""
    domain, fields = domain_at(visit), visit.fields
    chosen = fields.get("chosen", "")
    own: dict[str, JSON] = {
        name: fields[name] for name, _ in FIELDS.get(chosen, ()) if fields.get(name) or name not in OPTIONAL
    }
    body: dict[str, JSON] = {**own, "provider": chosen, "timeoutSeconds": fields.get("timeout", "60")}
    if _is_beside(visit):
        await visit.call("/ad/AddMFAProvider", body, domain=domain.id)
        return Redirect(f"/domains/{domain.id}", f"Login rules of {domain.name} can name {chosen}. Check it now.")
    await visit.call("/ad/SetMFAProvider", body, domain=domain.id)
    return Redirect(f"/domains/{domain.id}", f"{chosen} is the second factor of {domain.name}. Check it now.")


@pages.show("/domains/{domain}/provider/check", "Check the provider", roles=ADMINS, template="provider_check.html")
async def check(visit: Visit) -> Context:
    """Show the form of the check."""
    return _checked(visit, None)


@pages.submit("/domains/{domain}/provider/check", roles=ADMINS, is_slow=True)
async def run_check(visit: Visit) -> Context:
    """Ask the provider whether it works, and show its answer."""
    return _checked(visit, await visit.call("/ad/CheckMFAProvider", _named(visit), domain=domain_at(visit).id))


def _named(visit: Visit) -> Row:
    """Return the body of a request about the provider in the address; without one, it is the default provider."""
    return {"provider": visit.query.get("provider", "")}


def _checked(visit: Visit, result: Row | None) -> Context:
    domain = domain_at(visit)
    title = f"Check the second factor of {domain.name}"
    return {"title": title, "domain": domain, "result": result, "named": _named(visit)["provider"]}


@pages.show("/domains/{domain}/provider/remove", "Remove the provider", roles=ADMINS, template="provider_remove.html")
async def removal(visit: Visit) -> Context:
    """Show the provider that would be removed."""
    domain, name = domain_at(visit), str(_named(visit)["provider"])
    found = [each for each in await providers_of(visit, domain) if each["provider"] == name or not name]
    present = next((each for each in found if name or each["isDefault"]), None)
    what = f"{name} of" if name else "the second factor of"
    return {"title": f"Remove {what} {domain.name}", "domain": domain, "present": present}


@pages.submit("/domains/{domain}/provider/remove", roles=ADMINS)
async def remove(visit: Visit) -> Redirect:
    """Remove the provider."""
    domain, named = domain_at(visit), _named(visit)
    await visit.call("/ad/DeleteMFAProvider", named, domain=domain.id)
    if named["provider"]:
        return Redirect(f"/domains/{domain.id}", f"{named['provider']} of {domain.name} is removed.")
    return Redirect(f"/domains/{domain.id}", f"{domain.name} has no second factor any more.")
