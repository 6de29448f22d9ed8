"""`sallyport rule`: login rules, which allow logins, block them, or require a second factor."""

import re
from collections.abc import Callable, Sequence
from typing import TypeVar

import click

from sallyport.areas.policy.rules.conditions import CONDITIONS, DAYS
from sallyport.areas.policy.rules.trial_cli import test
from sallyport.base.errors import Invalid
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import CommandLine, Form
from sallyport.shell.options import Group

COLUMNS = ("ruleId", "name", "action", "priority", "enabled", "scope", "reply")
ACTIONS = click.Choice(["allow", "block", "mfa_required"])
NUMBER = click.IntRange(min=1)
_ENTRY = re.compile(r"(?P<field>[a-z]+): entry (?P<number>[0-9]+): no such (?P<kind>user|group|RADIUS client)")
_STATION = re.compile(r"^stations: entry (?P<number>[0-9]+)")
_SPAN = re.compile(r"([0-9:]+)-([0-9:]+)")

CommandT = TypeVar("CommandT", bound=Callable[..., object])


def described(work: CommandT) -> CommandT:
    """Add options to a command: those that the commands `add` and `update` have in common."""
    options = [
        click.option("--domain", required=True, help="The domain's name or domainId."),
        click.option(
            "--priority", type=click.IntRange(min=0), help="Rules with smaller priorities are read first. Default: 100."
        ),
        click.option("--disabled/--enabled", default=None, help="A disabled rule is stored but not used."),
        *(click.option(f"--{each.option}", each.field, multiple=True, help=each.help) for each in CONDITIONS),
        click.option(
            "--time",
            help="Time when the rule applies, such as `mon-fri 22:00-06:00 Europe/Berlin`. The default zone is UTC.",
        ),
        click.option("--vlan", help="Number or name of the VLAN in the Access-Accept."),
        click.option(
            "--reply",
            "replies",
            multiple=True,
            metavar="NAME=VALUE",
            help="An attribute for the Access-Accept; repeatable.",
        ),
        click.option(
            "--everyone",
            is_flag=True,
            help="Confirm that a rule without a scope allows or blocks every login of the domain.",
        ),
    ]
    for option in reversed(options):
        work = option(work)
    return work


@click.group(cls=Group, first=("add", "list"))
def rule() -> None:
    """Login rules of a domain: allow, block, or require a second factor."""


@rule.command()
@click.argument("name")
@click.option("--action", type=ACTIONS, required=True, help="Action for a login that matches the rule.")
@described
@click.pass_obj
def add(line: CommandLine, /, *, name: str, action: str, domain: str, **given: object) -> None:
    """Add a rule and print its ruleId. The rule matches if the login fits one value of each scope that is given.

    Rules with users are read first, then rules with groups, then rules with OUs, then all others. Within these kinds,
    smaller priorities are read first. The first rule that matches decides.
    """
    body: Row = {"name": name, "action": action, **_fields(given)}
    made = _run(line, "/ad/AddLoginRule", body, domain)
    line.print(str(made["ruleId"]))
    _warn(line, made, body)


@rule.command()
@click.argument("rule_id", type=NUMBER)
@click.option("--name", help="New name.")
@click.option("--action", type=ACTIONS, help="New action for a login that matches the rule.")
@click.option("--before", type=NUMBER, help="Id of the rule before which this rule is read from now on.")
@described
@click.pass_obj
def update(
    line: CommandLine,
    /,
    *,
    rule_id: int,
    name: str | None,
    action: str | None,
    before: int | None,
    domain: str,
    **given: object,
) -> None:
    """Change a rule. A setting without an option keeps its value. An empty value clears the setting, as in --user
    ''."""
    body: Row = {"ruleId": rule_id, "name": name, "action": action, "before": before, **_fields(given)}
    made = _run(line, "/ad/UpdateLoginRule", body, domain)
    line.note(f"rule {rule_id} is changed")
    _warn(line, made, body)


@rule.command("list")
@click.option("--domain", required=True, help="The domain's name or domainId.")
@click.option("--json", "form", flag_value="json", help="Print JSON.")
@click.pass_obj
def list_(line: CommandLine, *, domain: str, form: Form | None) -> None:
    """List the rules of a domain in the order in which they are read."""
    rows = sorted(line.listed("/ad/ListLoginRules", "rules", domain=domain), key=lambda row: int(str(row["position"])))
    if form != "json":
        rows = [{**row, "scope": _scope(row), "reply": _reply(row)} for row in rows]
    line.print_rows(rows, COLUMNS, form)


@rule.command()
@click.argument("rule_ids", type=NUMBER, nargs=-1, required=True)
@click.option("--domain", required=True, help="The domain's name or domainId.")
@click.pass_obj
def remove(line: CommandLine, *, rule_ids: tuple[int, ...], domain: str) -> None:
    """Remove rules. If one of them does not exist, none is removed."""
    done = line.run("/ad/DeleteLoginRule", {"ruleId": list[JSON](rule_ids)}, domain=domain)
    line.note(str(done["message"]))


rule.add_command(test)


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


def _fields(given: dict[str, object]) -> dict[str, JSON]:
    """Convert options to fields of a request body."""
    fields: dict[str, JSON] = {}
    for name, value in given.items():
        if isinstance(value, tuple):
            texts = [str(each) for each in value]
            if texts and name == "replies":
                fields["replyAttributes"] = [_pair(text) for text in texts if text]
            elif texts:
                fields[name] = [text for text in texts if text]
        elif name == "disabled" and value is not None:
            fields["enabled"] = not value
        elif name == "time" and isinstance(value, str):
            fields[name] = _time(value.split())
        elif isinstance(value, bool | int | str):
            fields[name] = value
    return fields


def _pair(text: str) -> JSON:
    name, sign, value = text.partition("=")
    if not sign:
        raise click.BadParameter(f'"{text}" is not understood; give NAME=VALUE', param_hint="--reply")
    return {"name": name.strip(), "value": value.strip()}


def _time(words: Sequence[str]) -> JSON:
    """Parse a time such as `mon-fri 22:00-06:00 Europe/Berlin`. The parts may be in any order. A word that is neither
    days nor times is the time zone."""
    time: dict[str, JSON] = {}
    for word in words:
        span, days = _SPAN.fullmatch(word), _days(word)
        if span is not None:
            time["from"], time["until"] = span[1], span[2]
        elif days:
            time["days"] = days
        elif "timezone" not in time:
            time["timezone"] = word
        else:
            raise click.BadParameter(
                f'"{word}" is not understood; give days, FROM-UNTIL and a time zone: mon-fri 22:00-06:00 Europe/Berlin',
                param_hint="--time",
            )
    return time


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
        named = ",".join(map(str, days)) + " " if isinstance(days, list) and days else ""
        parts.append(f"{named}{window['from']}-{window['until']} {window['timezone']}")
    return "; ".join(parts) or "everybody"


def _reply(row: Row) -> str:
    replies = row["replyAttributes"]
    named = (
        [f"{each['name']}={each['value']}" for each in replies if isinstance(each, dict)]
        if isinstance(replies, list)
        else []
    )
    return ", ".join(([f"vlan {row['vlan']}"] if row["vlan"] else []) + named)
