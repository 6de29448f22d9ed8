"""Pages about login rules: their order, changes of rules, tests, and the effect of rules on recorded logins."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Final

from sallyport.areas.domains.domain import Domain, RuleOrder
from sallyport.areas.policy.rules.conditions import CONDITIONS
from sallyport.areas.policy.rules.rule import IDENTITIES
from sallyport.areas.policy.rules.window import DAYS
from sallyport.base.errors import Refused
from sallyport.base.text import counted
from sallyport.base.wire import JSON, Row
from sallyport.console.columns import Column
from sallyport.console.labels import PROVIDERS
from sallyport.console.pages.choosing import ChoiceSource, chosen, offer
from sallyport.console.pages.domains import providers_of
from sallyport.console.pages.enforcement import decided
from sallyport.console.pages.reading import choices, every, joined, lines, number, of, one, replies, rights
from sallyport.console.table import SIZE, Filter, Table, is_export, page_of
from sallyport.console.visit import FormProblem, Pages, Visit
from sallyport.shell.command import entries
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import ADMINS, READERS

pages = Pages()
LIST: Final = "/ad/ListLoginRules"
RULES: Final = ChoiceSource(
    "rule",
    LIST,
    "rules",
    lambda rule: str(rule["name"]),
    id="ruleId",
    value="ruleId",
    names=("name",),
    search="search",
)
LISTED: Final = 1000
"""Users in an answer of PreviewEnforcement."""
ACTIONS: Final = (
    ("mfa_required", "Require a second factor"),
    ("allow", "Allow without a second factor"),
    ("block", "Block"),
)
STRENGTHS: Final = (
    ("any", "Any"),
    ("two_channels", "Two channels: digits typed back at the device"),
    ("phishing_resistant", "Phishing-resistant: a passkey from the address of the station"),
)
OVER_LIMITS: Final = (
    ("reject", "Reject the login"),
    ("end_oldest", "Ask the devices to end the oldest sessions"),
)
COLUMNS: Final = (
    Column("position", "Order", "number"),
    Column("name", "Rule", link=lambda row: f"/rules/{row['ruleId']}/edit?domain={row['domainId']}"),
    Column("actionText", "Action"),
    Column("scope", "Logins"),
    Column("reply", "Reply"),
    Column("priority", "Priority", "number", is_chosen=False),
    Column("enabled", "Enabled", "flag"),
    Column("ruleId", "Id", "number", is_chosen=False),
)
DECIDED: Final = (
    Column("shownName", "Rule", link=lambda row: str(row["address"])),
    Column("actionText", "Action"),
    Column("logins", "Logins", "number"),
    Column("users", "Users", "number"),
    Column("lastSeen", "Last login", "age"),
    Column("claimed", "Not exempt: only claims", "number"),
    Column("limit", "Limit of sessions"),
    Column("sets", "Role by product", "changes"),
)
SETS: Final = {"tag": "set for its tag", "product": "own set", "default": "default set", "none": "no set"}
CHANGED: Final = (
    Column("user", "User", "code"),
    Column("logins", "Logins", "number"),
    Column("was", "Now", "outcome"),
    Column("outcome", "With the rule", "outcome"),
    Column("reason", "Reason"),
)
READ: Final = (
    Column("position", "Order", "number"),
    Column("name", "Rule"),
    Column("actionText", "Action"),
    Column("result", "Result"),
    Column("scope", "Condition"),
    Column("has", "The login has", "code"),
)
FILTERS: Final = (Filter("search", "Name"),)
EMPTY: Final = (
    "No rule yet. Without a rule, each login needs a second factor if the domain has an MFA provider. Add a rule to "
    "exempt or block logins, or to set a VLAN."
)
_MEDIA: Final = next(each for each in CONDITIONS if each.field == "media")
ASKED: Final = [each for each in CONDITIONS if each.asked]
FACTS: Final = ("user", "client", "station", "nas", "nasIdentifier", "medium", "serviceType", "at")


@pages.show("/rules", "Login rules", roles=READERS, template="rules.html", menu="Sign-in policy")
async def rules(visit: Visit) -> Context:
    """List the rules in the order in which they are read."""
    domain = visit.domain()
    own = await _in_order(visit, domain)
    names = {int(str(rule["ruleId"])): index for index, rule in enumerate(own)}
    search = visit.query.get("search", "").casefold()
    found = [rule for rule in own if search in str(rule["name"]).casefold()]
    page = page_of(visit)
    shown = found if is_export(visit) else found[(page - 1) * SIZE : page * SIZE]
    table = Table(visit, COLUMNS, [_row(each) for each in shown], len(found), page, SIZE, FILTERS, EMPTY)
    moves = {}
    for rule in shown:
        index = names[int(str(rule["ruleId"]))]
        moves[rule["ruleId"]] = {"up": _neighbour(own, index, -1, domain), "down": _neighbour(own, index, 1, domain)}
    return {"domain": domain, "table": table, "moves": moves, **rights(visit)}


@pages.show("/rules/{rule}/move", "Move a login rule", roles=ADMINS, template="rule_move.html")
async def where(visit: Visit) -> Context:
    """Show the rules before which the person can move a rule. They have the same kind of identity."""
    domain = visit.domain()
    rule, others = await _rule(visit, domain), await offer(visit, domain, RULES)
    if not others.is_long:
        same = [each for each in await _in_order(visit, domain) if _kind(each, domain) == _kind(rule, domain)]
        named = [(str(each["ruleId"]), str(each["name"])) for each in same if each["ruleId"] != rule["ruleId"]]
        others = replace(others, choices=named)
    return {"domain": domain, "rule": rule, "others": others}


@pages.submit("/rules/{rule}/move", roles=ADMINS)
async def move(visit: Visit) -> Redirect:
    """Move a rule directly before another rule in the order in which the rules are read."""
    domain = visit.domain()
    before = await chosen(visit, domain, RULES, "before")
    body: Row = {"ruleId": number(visit.at["rule"], "rule"), "before": number(before, "rule")}
    await visit.call("/ad/UpdateLoginRule", body, domain=domain.id)
    return Redirect(of("/rules", domain), "The order of the rules is changed.")


@pages.show("/rules/add", "Add a login rule", roles=ADMINS, template="rule.html")
async def new(visit: Visit) -> Context:
    """Show the form of a new rule."""
    domain = visit.domain()
    return await _form(visit, domain, None)


@pages.submit("/rules/add", roles=ADMINS, is_slow=True)
async def add(visit: Visit) -> Redirect | Context:
    """Add a rule, or show its effect."""
    domain, body = visit.domain(), _body(visit)
    if visit.fields.get("do") == "effect":
        return {**await _form(visit, domain, None), **await _effect(visit, domain, body)}
    made = await visit.call("/ad/AddLoginRule", body, domain=domain.id)
    return Redirect(of("/rules", domain), _notice("The rule is added.", made))


@pages.show("/rules/{rule}/edit", "Login rule", roles=READERS, template="rule.html")
async def edit(visit: Visit) -> Context:
    """Show the form of a rule."""
    domain = visit.domain()
    rule = await _rule(visit, domain)
    form = await _form(visit, domain, rule)
    return {**form, "title": f"Login rule {rule['name']}", **rights(visit)}


@pages.submit("/rules/{rule}/edit", roles=ADMINS, is_slow=True)
async def change(visit: Visit) -> Redirect | Context:
    """Change a rule, or show the effect of the change."""
    domain = visit.domain()
    rule = await _rule(visit, domain)
    body: Row = {**_body(visit), "ruleId": rule["ruleId"]}
    if visit.fields.get("do") == "effect":
        form = await _form(visit, domain, rule)
        shown = {**form, "title": f"Login rule {rule['name']}", **rights(visit)}
        return {**shown, **await _effect(visit, domain, body)}
    made = await visit.call("/ad/UpdateLoginRule", body, domain=domain.id)
    return Redirect(of("/rules", domain), _notice("The rule is changed.", made))


@pages.show("/rules/{rule}/remove", "Remove a login rule", roles=ADMINS, template="rule_remove.html", is_slow=True)
async def confirm(visit: Visit) -> Context:
    """Show the rule that would be removed, and the logins that it decided."""
    domain = visit.domain()
    rule = await _rule(visit, domain)
    effect = await _effect(visit, domain, {"ruleId": rule["ruleId"], "enabled": False})
    return {"domain": domain, "rule": _row(rule), **effect}


@pages.submit("/rules/{rule}/remove", roles=ADMINS)
async def remove(visit: Visit) -> Redirect:
    """Remove a rule."""
    domain = visit.domain()
    rule = await _rule(visit, domain)
    await visit.call("/ad/DeleteLoginRule", {"ruleId": rule["ruleId"]}, domain=domain.id)
    return Redirect(of("/rules", domain), f"The rule {rule['name']} is removed.")


@pages.show("/rules/effect", "Rules of last week's logins", roles=READERS, template="rules_effect.html", is_slow=True)
async def effect(visit: Visit) -> Context:
    """Show which rules decide the logins of the last week."""
    domain = visit.domain()
    impact = await decided(visit, domain, {"days": 7})
    used = {each["ruleId"] for each in entries(impact["rules"])}
    unused = [_row(rule) for rule in await _in_order(visit, domain) if rule["ruleId"] not in used and rule["enabled"]]
    columns = [column for column in COLUMNS if column.is_chosen and column.key != "enabled"]
    return {
        "domain": domain, "impact": impact, "decided": _decided(impact, domain), "decided_columns": DECIDED,
        "unused": unused, "unused_columns": columns,
    }  # fmt: skip


@pages.show("/rules/test", "Test the login rules", roles=READERS, template="rules_test.html", is_slow=True)
async def test(visit: Visit) -> Context:
    """Show which rule would decide a login with a correct password. The facts of the login are in the address."""
    domain, query = visit.domain(), visit.query
    context: dict[str, object] = {
        "domain": domain,
        "tested": None,
        "media": [*_MEDIA.choices],
        "columns": READ,
        "asked": ASKED,
        "sets": SETS,
    }
    if not query.get("user"):
        return context
    body: Row = {name: query.get(name, "") for name in FACTS}
    body["unsigned"] = query.get("unsigned") == "true"
    body["groups"] = lines(query.get("groups", "").replace(",", "\n"))
    for each in ASKED:
        text = query.get(each.fact, "")
        body[each.fact] = lines(text.replace(",", "\n")) if each.asks_several else text
    try:
        tested = await visit.call("/ad/TestLoginRules", body, domain=domain.id)
    except Refused as error:
        return {**context, "problem": FormProblem.of(error)}
    return {**context, "tested": tested, "read": rules_read(tested), "action": dict(ACTIONS)[str(tested["action"])]}


def rules_read(tested: Row) -> list[Row]:
    """Return the rules that a test has read, as rows of the columns READ. tested: the answer of TestLoginRules."""
    return [{**each, "actionText": dict(ACTIONS)[str(each["action"])]} for each in entries(tested["rules"])]


# --- rows -------------------------------------------------------------------------------------------------------------


async def _in_order(visit: Visit, domain: Domain) -> list[Row]:
    found = await every(visit, LIST, "rules", {}, domain=domain.id)
    return sorted(found, key=lambda rule: int(str(rule["position"])))


async def _rule(visit: Visit, domain: Domain) -> Row:
    found = await visit.call(LIST, {"ruleId": number(visit.at["rule"], "rule")}, domain=domain.id)
    return one(entries(found["rules"]), "ruleId", visit.at["rule"], "rule")


def _kind(rule: Row, domain: Domain) -> int:
    """Return the rank of the kind of identity in a rule (users, groups, organizational units, none). Rules with a lower
    rank are read first. If the domain reads its rules as listed, all have the same rank."""
    if domain.rule_order is RuleOrder.LISTED:
        return 0
    return next((index for index, key in enumerate(IDENTITIES) if rule[key]), len(IDENTITIES))


def _neighbour(own: list[Row], index: int, step: int, domain: Domain) -> JSON:
    """Return the id of the rule that is `step` places after a rule in the order. Return None if there is no such rule,
    or if it has another kind of identity.

    own: the rules in order. index: the index of the rule.
    """
    beside = index + step
    if not 0 <= beside < len(own) or _kind(own[beside], domain) != _kind(own[index], domain):
        return None
    return own[beside]["ruleId"]


def _row(rule: Row) -> Row:
    """Return a rule with its conditions and its reply as texts."""
    parts = [f"{each.word} {joined(rule[each.field])}" for each in CONDITIONS if rule[each.field]]
    window = rule["time"]
    if isinstance(window, dict):
        days = _days(window["days"])
        parts.append(f"{days} {window['from']}-{window['until']} {window['timezone']}".strip())
    replies = [f"{each['name']}={each['value']}" for each in entries(rule["replyAttributes"])]
    reply = [f"{word} {rule[key]}" for key, word in (("role", "role"), ("vlan", "VLAN")) if rule[key]]
    limit = [f"at most {counted(rule['maxSessions'], 'session')} of a user"] if rule["maxSessions"] else []
    return {
        **rule,
        "actionText": ": ".join(filter(None, (dict(ACTIONS)[str(rule["action"])], _demand(rule)))),
        "scope": "; ".join(parts) or "all logins",
        "reply": ", ".join([*reply, *replies, *limit]),
    }


def _demand(rule: Row) -> str:
    """Return what a rule demands of the second factor; empty if it demands nothing special."""
    name = str(rule["provider"])
    strength = "" if rule["strength"] == STRENGTHS[0][0] else str(rule["strength"]).replace("_", " ")
    return ", ".join(filter(None, (PROVIDERS.get(name, name), strength)))


def _days(value: JSON) -> str:
    """Return the days of a rule as text. Consecutive days become a range such as `mon-fri`."""
    places = sorted(DAYS.index(str(day)) for day in value) if isinstance(value, list) else []
    runs = list[list[int]]()
    for index in places:
        if runs and index == runs[-1][-1] + 1:
            runs[-1].append(index)
        else:
            runs.append([index])
    return ",".join(DAYS[run[0]] if len(run) == 1 else f"{DAYS[run[0]]}-{DAYS[run[-1]]}" for run in runs)


def _decided(impact: Row, domain: Domain, unsaved: JSON = None) -> list[Row]:
    """Return the rules that decided logins. unsaved: the name of a rule that is not stored, so that it has no page."""
    return [
        {
            **each,
            "shownName": each["name"] or "no rule matches",
            "address": of("/rules" if each["name"] in ("", unsaved) else f"/rules/{each['ruleId']}/edit", domain),
            "actionText": dict(ACTIONS)[str(each["action"])],
            "limit": _limit(each),
            "sets": [
                f"{found['product']}: {SETS[str(found['source'])]}, {counted(found['logins'], 'login')}"
                for found in entries(each["roleSets"])
            ],
        }
        for each in entries(impact["rules"])
    ]


def _limit(decided: Row) -> str:
    """Return the limit of parallel sessions of a rule as text, with the devices at which it is not applied."""
    devices = joined(decided["unlimitedDevices"])
    limit = str(decided["maxSessions"] or "")
    return f"{limit}; not applied without interim updates: {devices}" if devices else limit


# --- the form ---------------------------------------------------------------------------------------------------------


async def _roles(visit: Visit, domain: Domain) -> list[tuple[str, str]]:
    """Return the roles of a domain as choices of a rule."""
    names = [str(each["role"]) for each in await every(visit, "/ad/ListRoles", "roles", {}, domain=domain.id)]
    return [("", "none"), *choices(names)]


async def _form(visit: Visit, domain: Domain, rule: Row | None) -> dict[str, object]:
    """Return the variables of the form. rule: the stored rule; None for a new one."""
    names = [str(each["provider"]) for each in await providers_of(visit, domain)]
    named = [(name, PROVIDERS.get(name, name)) for name in names]
    replies = [f"{each['name']}={each['value']}" for each in entries(rule["replyAttributes"])] if rule else []
    return {
        "domain": domain,
        "rule": rule,
        "actions": ACTIONS,
        "over_limits": OVER_LIMITS,
        "conditions": CONDITIONS,
        "days": choices(DAYS),
        "replies": "\n".join(replies),
        "roles": await _roles(visit, domain),
        "mfa_providers": [("", "the default provider of the domain"), *named],
        "strengths": STRENGTHS,
        "effect": None,
        "is_admin": True,
    }


def _body(visit: Visit) -> Row:
    """Return the submitted form as the fields of a rule. Raises Invalid."""
    fields = visit.fields
    body: Row = {
        "name": fields.get("name", ""),
        "action": fields.get("action", ""),
        "enabled": bool(fields.get("enabled")),
        "everyone": bool(fields.get("everyone")),
        "vlan": fields.get("vlan", ""),
        "role": fields.get("role", ""),
        "replyAttributes": replies(fields.get("replyAttributes", "")),
        "time": "",
        "maxSessions": fields.get("maxSessions") or "0",
        "overLimit": fields.get("overLimit") or "reject",
        "provider": fields.get("provider", ""),
        "strength": fields.get("strength") or "any",
    }
    for each in CONDITIONS:
        body[each.field] = list[JSON](fields.getlist(each.field)) if each.choices else lines(fields.get(each.field, ""))
    if fields.get("priority"):
        body["priority"] = fields["priority"]
    if fields.getlist("days") or fields.get("from") or fields.get("until"):
        body["time"] = {
            "days": list[JSON](fields.getlist("days")),
            "from": fields.get("from") or "00:00",
            "until": fields.get("until") or "24:00",
            "timezone": fields.get("timezone") or "UTC",
        }
    return body


def _notice(text: str, made: Row) -> str:
    warnings = made["warnings"]
    return " ".join([text, *(f"Note: {each}." for each in warnings)]) if isinstance(warnings, list) else text


async def _effect(visit: Visit, domain: Domain, body: Mapping[str, JSON]) -> dict[str, object]:
    """Return template variables with the effect of a rule on the logins of the last week: the users whose outcome would
    change, and the rules that would decide the logins."""
    now = await decided(visit, domain, {"days": 7})
    then = await decided(visit, domain, {"days": 7, "rule": dict(body)})
    before = {str(each["user"]): each for each in entries(now["users"])}
    changed = [
        {**each, "was": before[str(each["user"])]["outcome"]}
        for each in entries(then["users"])
        if str(each["user"]) in before and before[str(each["user"])]["outcome"] != each["outcome"]
    ]
    return {
        "effect": then,
        "present": now,
        "changed": changed,
        "changed_columns": CHANGED,
        "decided": _decided(then, domain, None if body.get("ruleId") else body.get("name")),
        "decided_columns": DECIDED,
        "is_partial": len(before) == LISTED,
    }
