"""`sallyport rule`: login rules, which allow logins, block them, or require a second factor."""

import re
from collections.abc import Callable, Mapping
from typing import Final, TypeVar

import click

from sallyport.areas.mfa.provider import Strength
from sallyport.areas.policy.rules.bodies import AddLoginRule, RuleFields, UpdateLoginRule
from sallyport.areas.policy.rules.conditions import CONDITIONS
from sallyport.areas.policy.rules.rule import MAX_SESSIONS
from sallyport.areas.policy.rules.window import DAYS
from sallyport.base.errors import Invalid, NotFound
from sallyport.base.text import counted, fold
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import CommandLine, Form, domains, entries, named, note_warnings
from sallyport.shell.fields import field_argument, option, options, pass_body
from sallyport.shell.options import NUMBER, Group, Pair, in_domain, json_answer, json_form

COLUMNS = ("ruleId", "name", "action", "priority", "enabled", "scope", "factor", "reply")
READ = ("position", "ruleId", "name", "action", "result", "scope", "has")
_OWN: Final[Mapping[str, Mapping[str, object]]] = {  # an empty text clears the kinds, so they are no choice of click
    "kinds": {
        "type": str,
        "help": "user, machine (the login of a computer itself), station (admitted by its MAC address) or unknown (a "
        "station that is on no list).",
    }
}
_ENTRY = re.compile(r"(?P<field>[a-z]+): entry (?P<number>[0-9]+): no such (?P<kind>user|group|RADIUS client)")
_STATION = re.compile(r"^stations: entry (?P<number>[0-9]+)")
_SPAN = re.compile(r"([0-9:]+)-([0-9:]+)")

CommandT = TypeVar("CommandT", bound=Callable[..., object])


class TimeType(click.ParamType):  # type: ignore[type-arg]  # not generic before click 8.4
    """An option type for a time such as `mon-fri 22:00-06:00 Europe/Berlin`. The parts may be in any order. A word that
    is neither days nor times is the time zone."""

    name = "text"

    def convert(self, value: object, param: click.Parameter | None, ctx: click.Context | None) -> Row:
        """Return the time as the field `time` of a rule. Raises BadParameter."""
        time: Row = {}
        for word in str(value).split():
            span, days = _SPAN.fullmatch(word), _days(word)
            if span is not None:
                time["from"], time["until"] = span[1], span[2]
            elif days:
                time["days"] = days
            elif "timezone" not in time:
                time["timezone"] = word
            else:
                self.fail(
                    f'"{word}" is not understood; give days, FROM-UNTIL and a time zone: '
                    "mon-fri 22:00-06:00 Europe/Berlin",
                    param,
                    ctx,
                )
        return time


def settings(command: CommandT) -> CommandT:
    """Add options to a command: those that the commands `add` and `update` have in common."""
    for decorate in reversed(
        [
            in_domain,
            option(RuleFields, "priority"),
            option(RuleFields, "enabled", "--enabled/--disabled", default=None),
            *(option(RuleFields, each.field, f"--{each.option}", **_OWN.get(each.field, {})) for each in CONDITIONS),
            option(
                RuleFields,
                "time",
                type=TimeType(),
                help="Time when the rule applies, such as `mon-fri 22:00-06:00 Europe/Berlin`. The default zone is "
                "UTC.",
            ),
            option(RuleFields, "vlan"),
            option(RuleFields, "replyAttributes", "--reply", type=Pair(allows_empty=True), metavar="NAME=VALUE"),
            option(RuleFields, "everyone"),
            option(RuleFields, "role"),
            option(
                RuleFields,
                "maxSessions",
                help=f"Maximum number of parallel sessions of each user, up to {MAX_SESSIONS}. 0 sets no limit.",
            ),
            option(RuleFields, "overLimit", help="What happens above the limit of sessions."),
            option(RuleFields, "provider", help="MFA provider of the domain to ask. Default: the default provider."),
            option(
                RuleFields,
                "strength",
                help="Minimum strength of the second factor. Users without such a factor are refused.",
            ),
        ]
    ):
        command = decorate(command)
    return command


def fact_options(command: CommandT) -> CommandT:
    """Add options to a command: those of the facts that are derived from conditions."""
    for each in reversed([each for each in CONDITIONS if each.asked]):
        declared = f"--{each.option}", each.fact
        if each.asks_several:
            command = click.option(*declared, multiple=True, help=f"{each.asked} Repeatable.")(command)
        else:
            command = click.option(*declared, default="", help=each.asked)(command)
    return click.option("--unsigned", is_flag=True, help="The request has no Message-Authenticator.")(command)


@click.group(cls=Group, first=("add", "list"))
def rule() -> None:
    """Login rules of a domain: allow, block, or require a second factor."""


@rule.command()
@field_argument("name", "name")
@options(AddLoginRule, "action")
@settings
@json_answer
@pass_body
def add(line: CommandLine, body: Row, *, domain: str) -> None:
    """Add a rule and print its ruleId. The rule matches if the login fits one value of each scope that is given.

    Rules with users are read first, then rules with groups, then rules with OUs, then all others. Within these kinds,
    smaller priorities are read first. The first rule that matches decides. A domain with --rule-order listed reads by
    priority alone.
    """
    made = _run(line, "/ad/AddLoginRule", body, domain)
    line.print_answer(made, str(made["ruleId"]))
    _warn(line, made, body)


@rule.command()
@field_argument("ruleId", "rule_id", type=NUMBER)
@option(UpdateLoginRule, "name", help="New name.")
@options(UpdateLoginRule, "action")
@option(UpdateLoginRule, "before", type=NUMBER)
@settings
@pass_body
def update(line: CommandLine, body: Row, *, domain: str) -> None:
    """Change a rule. A setting without an option keeps its value. An empty value clears the setting, as in --user
    ''."""
    made = _run(line, "/ad/UpdateLoginRule", body, domain)
    line.note(f"rule {body['ruleId']} is changed")
    _warn(line, made, body)


@rule.command("list")
@in_domain
@json_form
@click.pass_obj
def list_(line: CommandLine, *, domain: str, form: Form | None) -> None:
    """List the rules of a domain in the order in which they are read."""
    rows = sorted(line.listed("/ad/ListLoginRules", "rules", domain=domain), key=lambda row: int(str(row["position"])))
    if form != "json":
        rows = [{**row, "scope": _scope(row), "factor": _factor(row), "reply": _reply(row)} for row in rows]
    line.print_rows(rows, COLUMNS, form)


@rule.command()
@field_argument("ruleId", "rule_ids", type=NUMBER, nargs=-1, required=True)
@in_domain
@pass_body
def remove(line: CommandLine, body: Row, *, domain: str) -> None:
    """Remove rules. If one of them does not exist, none is removed."""
    line.note(str(line.run("/ad/DeleteLoginRule", body, domain=domain)["message"]))


@rule.command()
@click.option("--user", required=True, help="User name, with or without a realm.")
@click.option("--client", default="", help="RADIUS client that sends the login: a name or an address.")
@click.option(
    "--domain", help="Name or domainId of the domain. Default: the domain that the client and the realm select."
)
@click.option("--at", default="", help="Time of the login in ISO 8601; UTC if it has no time zone. Default: now.")
@click.option("--station", default="", help="Calling-Station-Id; a MAC address may be in any notation.")
@click.option("--nas", default="", help="Address of the NAS behind the client (NAS-IP-Address).")
@click.option("--nas-identifier", "nasIdentifier", default="", help="Name that the NAS sends (NAS-Identifier).")
@click.option(
    "--medium", default="", help="Medium of the NAS port, such as Ethernet. Default: the medium in the inventory."
)
@click.option(
    "--service-type", "serviceType", default="", help="Service-Type: a number, or a name such as Login or Framed."
)
@click.option(
    "--group", "groups", multiple=True, help="A group of the user, as an LDAP server would return it; repeatable."
)
@click.option("--ou", "ous", multiple=True, help="An organizational unit of the user; repeatable.")
@fact_options
@json_form
@click.pass_obj
def test(line: CommandLine, /, *, user: str, client: str, domain: str | None, form: Form | None, **facts: JSON) -> None:
    """Show which rule decides a login with a correct password, and why each rule before it does not decide.

    Nothing is stored, and the user is not asked for a second factor.
    """
    if domain is None:
        if not client:
            raise click.UsageError("give --domain or --client, to select the domain whose rules are tested")
        domain = str(_domain_of(line, user, client)["domainId"])
    body: Row = {"user": user, "client": client}
    for name, value in facts.items():
        body[name] = list(value) if isinstance(value, tuple) else value
    tested = line.run("/ad/TestLoginRules", body, domain=domain)
    if form == "json":
        line.print_json(tested)
        return
    if tested["rules"]:
        line.print_rows(entries(tested["rules"]), READ)
    for text in _outcome(tested):
        line.print(text)
    note_warnings(line, tested["warnings"])


def _run(line: CommandLine, path: str, body: Row, domain: str) -> Row:
    """Send a request that adds or changes a rule. If the service asks for a confirmation because the rule has no scope,
    raise Invalid. The message then names the options to use."""
    try:
        return line.run(path, body, domain=domain)
    except Invalid as error:
        if [each.field for each in error.fields] != ["everyone"]:
            raise
        if body.get("everyone"):
            raise Invalid("--everyone: the rule has a scope; leave out --everyone, or clear the scope") from None
        effect = error.fields[0].message.partition(":")[0]
        raise Invalid(
            f"{effect}: give a scope such as --user, --group or --client, or confirm it with --everyone"
        ) from None


def _warn(line: CommandLine, answer: Row, body: Row) -> None:
    """Print the warnings of an answer. In the warnings, entry numbers are replaced by the names that the user typed."""
    warnings = answer["warnings"]
    for warning in warnings if isinstance(warnings, list) else ():
        text = _ENTRY.sub(lambda found: _named(found, body), str(warning))
        line.note(f"warning: {_STATION.sub(lambda found: _station(found, body), text)}")


def _station(found: re.Match[str], body: Row) -> str:
    entries = body.get("stations")
    return f'--station "{entries[int(found["number"]) - 1]}"' if isinstance(entries, list) else found[0]


def _named(found: re.Match[str], body: Row) -> str:
    entries = body.get(found["field"])
    return f"no {found['kind']} {entries[int(found['number']) - 1]!r}" if isinstance(entries, list) else found[0]


def _days(word: str) -> list[JSON]:
    """Parse a list of days such as `mon,wed-fri`. Return an empty list if a part is not a day."""
    days: list[JSON] = []
    for part in word.casefold().split(","):
        first, _, last = part.partition("-")
        last = last or first
        if first not in DAYS or last not in DAYS:
            return []
        begin, end = DAYS.index(first), DAYS.index(last)
        days += (DAYS[begin:] + DAYS[: end + 1]) if end < begin else DAYS[begin : end + 1]
    return list(dict.fromkeys(days))


def _scope(row: Row) -> str:
    parts = []
    for each in CONDITIONS:
        entries = row[each.field]
        if isinstance(entries, list) and entries:
            more = f" and {len(entries) - 3} more" if len(entries) > 3 else ""
            parts.append(f"{each.option} {', '.join(map(str, entries[:3]))}{more}")
    window = row["time"]
    if isinstance(window, dict):
        days = window["days"]
        shown = ",".join(map(str, days)) + " " if isinstance(days, list) and days else ""
        parts.append(f"{shown}{window['from']}-{window['until']} {window['timezone']}")
    return "; ".join(parts) or "everybody"


def _factor(row: Row) -> str:
    """Return what a rule demands of the second factor; empty if it demands nothing special."""
    strength = "" if row["strength"] == Strength.ANY else str(row["strength"])
    return ", ".join(filter(None, (str(row["provider"]), strength)))


def _reply(row: Row) -> str:
    replies = row["replyAttributes"]
    attributes = (
        [f"{each['name']}={each['value']}" for each in replies if isinstance(each, dict)]
        if isinstance(replies, list)
        else []
    )
    own = [f"{key} {row[key]}" for key in ("role", "vlan") if row[key]]
    limit = [f"at most {counted(row['maxSessions'], 'session')} ({row['overLimit']})"] if row["maxSessions"] else []
    return ", ".join([*own, *attributes, *limit])


def _outcome(tested: Row) -> list[str]:
    """Return the result of a test as lines, one for each step."""
    password = tested["firstFactorReason"]
    second, provider = tested["secondFactorReason"], tested["secondFactor"] or "no MFA provider"
    steps = [f"{tested['message']}"]
    if tested["bypass"]:
        steps.append("first factor: none; the station is admitted by its MAC address")
    else:
        steps.append(f"first factor: {tested['firstFactor']}, {password or 'taken as passed'}")
        demanded = "" if tested["strength"] == Strength.ANY else f", at least {tested['strength']}"
        steps.append(f"second factor: {provider}{demanded}, {second or 'not asked'}")
    if tested["maxSessions"]:
        steps.append(f"limit of {tested['maxSessions']} parallel sessions: {tested['sessionLimit'] or 'not reached'}")
    if tested["lockedOut"]:
        steps.append("locked out; `sallyport lockout remove` ends the lock-out")
    reason = f" ({tested['reason']})" if tested["reason"] else ""
    mode = f"{tested['enforcementMode']}, fallback {tested['fallbackAction']}"
    decided = f"decision: {tested['decision']}{reason}"
    if tested["decision"] != tested["appliedDecision"]:
        decided += f"; sent: {tested['appliedDecision']}"
    return [*steps, f"domain {tested['domainName']}: {mode}", decided, *_sent(tested)]


def _sent(tested: Row) -> list[str]:
    """Return the role of a test and the attributes that it sends, as lines."""
    role = f"role: {tested['role']}, set by {tested['roleSource']}" if tested["role"] else ""
    attributes = tested["attributes"]
    sent = f"reply: {', '.join(map(str, attributes))}" if isinstance(attributes, list) and attributes else ""
    return [each for each in (role, sent) if each]


def _domain_of(line: CommandLine, user: str, client: str) -> Row:
    """Return the domain to which a user's logins through a RADIUS client belong. Raises NotFound."""
    path = "/network_device/ListClients"
    own = list(line.listed_everywhere(path, "clients"))
    same = [each for each in own if each["address"] == client or fold(str(each["name"])) == fold(client)]
    if len({(each["org"], each["tenant"]) for each in same}) > 1:
        raise NotFound(f'several tenants have a RADIUS client "{client}": name a domain with --domain')
    found = same[0] if len(same) == 1 else named(own, "name", client, "RADIUS client")
    ids = found["domainIds"]
    every = [each for each in domains(line, None) if (each["org"], each["tenant"]) == (found["org"], found["tenant"])]
    if isinstance(ids, list) and ids:
        every = [each for number in ids for each in every if each["domainId"] == number]
    realm = user.partition("\\")[0] if "\\" in user else user.rpartition("@")[2] if "@" in user else ""
    fit = [each for each in every if not realm or fold(realm) in _realms(each)]
    if not fit:
        what = "no domain has this realm" if every else "its tenant has no domain"
        raise NotFound(f"RADIUS client {found['name']}: {what}; name a domain with --domain")
    return fit[0]


def _realms(domain: Row) -> set[str]:
    realms = domain["realms"]
    return {fold(str(each)) for each in (domain["domainName"], *(realms if isinstance(realms, list) else ()))}
