"""Pages about password policies: the rules of a policy, the machines that have it, and a check of a password."""

from typing import Final

from sallyport.base.text import counted
from sallyport.base.wire import JSON, Row
from sallyport.console.columns import Column
from sallyport.console.pages.reading import changes, every, instances, number, one, rights
from sallyport.console.table import complete
from sallyport.console.visit import Pages, Visit
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import OPERATORS, READERS

pages = Pages()
LIST: Final = "/api/v1/instances/listAllPasswordPolicy"
MAX_DOMAINS: Final = 20
YES_OR_NO: Final = (("", "yes (default)"), ("yes", "yes"), ("no", "no"))
FIRSTS: Final = (("", "any"), ("uppercase", "uppercase letter"), ("lowercase", "lowercase letter"), ("digit", "digit"))
CHARACTERS: Final = {
    "minLen": ("Minimum length", "Characters of any script."),
    "maxLen": ("Maximum length", ""),
}
LIBRARY: Final = {
    "minlen": ("Minimum length (minlen)", "Credits reduce it; values below 6 count as 6."),
    "minclass": ("Classes of characters (minclass)", "At least so many of: digits, uppercase, lowercase, others."),
    "dcredit": ("Digits (dcredit)", "-2 requires two digits; 2 lets up to two count twice."),
    "ucredit": ("Uppercase letters (ucredit)", "As for digits."),
    "lcredit": ("Lowercase letters (lcredit)", "As for digits."),
    "ocredit": ("Other characters (ocredit)", "As for digits."),
    "maxrepeat": ("Equal characters in a row (maxrepeat)", "0 or empty: no limit."),
    "maxclassrepeat": ("Consecutive characters of one class (maxclassrepeat)", "0 or empty: no limit."),
    "maxsequence": ("Length of a sequence such as 1234 (maxsequence)", "0 or empty: no limit."),
}
FLAGS: Final = {
    "allowUpperLower": "Both uppercase and lowercase letters allowed",
    "allowSpecial": "Special characters allowed",
    "allowNumeric": "Digits allowed",
}
FIELDS: Final = ("templateName", *CHARACTERS, "firstChar", *FLAGS, *LIBRARY, "usercheck")
COLUMNS: Final = (
    Column("policyName", "Policy", link=lambda row: f"/policies/{row['policyId']}"),
    Column("rules", "Rules"),
    Column("machines", "Machines", "number"),
    Column("templateName", "Template", is_chosen=False),
    Column("policyId", "Id", "number", is_chosen=False),
)
EMPTY: Final = (
    "No policy yet. Add one and assign it to machines; passwords of their users must meet it from then on. A machine "
    "without a policy sets no rule."
)


@pages.show("/policies", "Password policies", roles=READERS, template="policies.html", menu="Endpoints")
async def policies(visit: Visit) -> Context:
    """List the policies of the tenant."""
    found = [_row(each) for each in await every(visit, LIST, "passwordPolicies", {})]
    return {"table": complete(visit, COLUMNS, found, empty=EMPTY), **rights(visit)}


@pages.show("/policies/add", "Add a password policy", roles=OPERATORS, template="policy_form.html")
async def new(visit: Visit) -> Context:
    """Show the form of a new policy."""
    return _form(None)


@pages.submit("/policies/add", roles=OPERATORS)
async def add(visit: Visit) -> Redirect:
    """Add a policy."""
    made = await visit.call("/api/v1/instances/addPasswordPolicy", _body(visit))
    warned = " Warning: it has no rule, so it accepts every password." if made["warnings"] else ""
    notice = f"The policy is added.{warned} Try a password, then assign it to machines."
    return Redirect(f"/policies/{made['policyId']}", notice)


@pages.show("/policies/{policy}", "Password policy", roles=READERS, template="policy.html")
async def policy(visit: Visit) -> Context:
    """Show a policy, its machines, and a form to check a password."""
    return {**await _shown(visit), "checked": None}


@pages.submit("/policies/{policy}", roles=READERS)
async def check(visit: Visit) -> Context:
    """Check a password against the policy. The password is neither stored nor shown again."""
    shown = await _shown(visit)
    fields = visit.fields
    body: Row = {
        "policyId": number(visit.at["policy"], "policy"),
        "password": fields.get("password", ""),
        "userName": fields.get("userName", ""),
    }
    await visit.call("/api/v1/instances/validatePolicy", body)
    return {**shown, "checked": "The password meets the policy."}


@pages.show("/policies/{policy}/edit", "Change a password policy", roles=OPERATORS, template="policy_form.html")
async def edit(visit: Visit) -> Context:
    """Show the form of a policy."""
    found = await _policy(visit)
    return {**_form(found), "title": f"Change the policy {found['policyName']}"}


@pages.submit("/policies/{policy}/edit", roles=OPERATORS)
async def change(visit: Visit) -> Redirect:
    """Change a policy."""
    number_ = number(visit.at["policy"], "policy")
    await visit.call("/api/v1/instances/updatePasswordPolicy", [{**_body(visit), "policyId": number_}])
    return Redirect(f"/policies/{number_}", "The policy is changed. It applies to the next new password.")


@pages.show("/policies/{policy}/machines", "Machines of a policy", roles=OPERATORS, template="policy_machines.html")
async def machines(visit: Visit) -> Context:
    """Show the machines of a domain, or those whose name contains a text. The machines to which the policy is assigned
    are already chosen."""
    domain, found = visit.domain(), await _policy(visit)
    choices = await instances(visit, domain, visit.query.get("filter", ""))
    chosen = [str(each) for each in _ids(found)]
    return {"domain": domain, "policy": found, "choices": choices, "chosen": chosen}


@pages.submit("/policies/{policy}/machines", roles=OPERATORS)
async def assign(visit: Visit) -> Redirect:
    """Assign the policy to the chosen machines of a page, and to no other machine of this page."""
    domain, found = visit.domain(), await _policy(visit)
    here = [each for each, _ in await instances(visit, domain, visit.query.get("filter", ""))]
    chosen = visit.fields.getlist("instance")
    body: list[Row] = [
        {"policyId": found["policyId"], "instanceId": each, "action": action}
        for action, changed in changes(here, list[JSON](_ids(found)), chosen, "instance")
        for each in changed
    ]
    if body:
        await visit.call("/api/v1/instances/assignPolicyToMachine", body)
    machines_ = counted(len({*here} & {*chosen}), "machine")
    return Redirect(f"/policies/{found['policyId']}", f"The policy is assigned to {machines_} of {domain.name}.")


@pages.show("/policies/{policy}/remove", "Remove a password policy", roles=OPERATORS, template="policy_remove.html")
async def confirm(visit: Visit) -> Context:
    """Show the policy and its assignments, which would be removed."""
    found = await _policy(visit)
    return {**await _shown(visit), "title": f"Remove the policy {found['policyName']}"}


@pages.submit("/policies/{policy}/remove", roles=OPERATORS)
async def remove(visit: Visit) -> Redirect:
    """Remove the policy."""
    found = await _policy(visit)
    await visit.call("/api/v1/instances/deletePasswordPolicy", [{"policyId": found["policyId"]}])
    return Redirect("/policies", f"The policy {found['policyName']} is removed.")


async def _policy(visit: Visit) -> Row:
    return one(await every(visit, LIST, "passwordPolicies", {}), "policyId", visit.at["policy"], "policy")


async def _shown(visit: Visit) -> dict[str, object]:
    """Return the template variables of the page about a policy."""
    found = await _policy(visit)
    names = dict[str, str]()
    for domain in visit.domains()[:MAX_DOMAINS] if _ids(found) else ():
        names |= {each: f"{name} ({domain.name})" for each, name in await instances(visit, domain)}
    own = [names.get(str(each), f"instance {each}") for each in _ids(found)]
    return {"title": f"Password policy {found['policyName']}", "policy": _row(found), "machines": own, **rights(visit)}


def _ids(policy: Row) -> list[int]:
    found = policy["instanceIds"]
    return [int(str(each)) for each in found] if isinstance(found, list) else []


def _form(policy: Row | None) -> dict[str, object]:
    return {
        "policy": policy,
        "characters": CHARACTERS,
        "library": LIBRARY,
        "flags": FLAGS,
        "firsts": FIRSTS,
        "yes_or_no": YES_OR_NO,
    }


def _body(visit: Visit) -> Row:
    return {"policyName": visit.fields.get("policyName", ""), **{name: visit.fields.get(name, "") for name in FIELDS}}


def _row(policy: Row) -> Row:
    """Return a policy with its rules in words."""
    rules = [f"{text.lower()}: {policy[name]}" for name, (text, _) in CHARACTERS.items() if policy[name]]
    rules += [f"first character: {policy['firstChar']}"] if policy["firstChar"] else []
    rules += [f"{text.lower()}: {policy[name]}" for name, text in FLAGS.items() if policy[name]]
    rules += [f"{name} {policy[name]}" for name in LIBRARY if policy[name]]
    rules += ["without the user name"] if policy["usercheck"] == "1" else []
    return {**policy, "rules": "; ".join(rules) or "none", "machines": len(_ids(policy))}
