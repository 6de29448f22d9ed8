"""`sallyport user passkey`, `bypass-codes`, `remembered`, `enrol`, `not-enrolled`, `enrolments`: factors of users.
`sallyport prompt-pause`: users without prompts."""

from collections.abc import Iterator

import click

from sallyport.areas.factors.bypass_codes.bodies import MakeBypassCodes
from sallyport.areas.factors.bypass_codes.code import in_groups
from sallyport.areas.factors.enrolment.bodies import ListNotEnrolled
from sallyport.areas.factors.passkeys.bodies import ListPasskeys
from sallyport.areas.factors.pauses.operations import EndPromptPause
from sallyport.areas.factors.remembered.bodies import ListRememberedStations
from sallyport.areas.users.accounts.cli import user
from sallyport.base.wire import Row
from sallyport.shell.command import CommandLine, Form, domains, note_warnings
from sallyport.shell.fields import field_argument, option, options, pass_body
from sallyport.shell.options import NUMBER, Group, any_domain, in_domain, json_answer, json_form

__all__ = ["user"]
PAUSE_COLUMNS = ("domain", "userName", "reason", "unanswered", "since", "until")
MISSING = ("userName", "email", "link", "problem", "expiresAt")
PROGRESS = ("groupName", "total", "queued", "sent", "used", "failed", "requestedAt")
COLUMNS = ("passkeyId", "userName", "name", "rpId", "usable", "backedUp", "createdAt", "lastUsedAt")
CODE_COLUMNS = ("userName", "firstDigit", "state", "used", "uses", "createdAt", "expiresAt", "lastUsedAt")
REMEMBERED_COLUMNS = (
    "rememberedId", "userName", "kind", "station", "clientName", "provider", "since", "until", "lastUsedAt",
)  # fmt: skip


@user.group(cls=Group, first=("list", "remove"))
def passkey() -> None:
    """Passkeys of users."""


@passkey.command("list")
@in_domain
@option(ListPasskeys, "userName", "--user")
@json_form
@pass_body
def list_(line: CommandLine, body: Row, *, domain: str, form: Form | None) -> None:
    """List the passkeys of a domain's users. A passkey is usable if its host is that of public_url."""
    line.print_rows(line.listed("/ad/ListPasskeys", "passkeys", body, domain=domain), COLUMNS, form)


@passkey.command()
@field_argument("userName", "name")
@field_argument("passkeyId", "id", type=NUMBER)
@in_domain
@pass_body
def remove(line: CommandLine, body: Row, *, domain: str) -> None:
    """Remove a passkey of a user, such as that of a lost phone."""
    line.note(str(line.run("/ad/RemovePasskey", body, domain=domain)["message"]))


@user.command()
@click.argument("name", required=False)
@in_domain
@click.option("--group", metavar="GROUP", help="Group whose people without a second factor get a link, with --mail.")
@click.option("--link", "by_link", is_flag=True, help="Print the link, to hand it over.")
@click.option("--mail", "by_mail", is_flag=True, help="Send the link to the mail address in the directory.")
@json_answer
@click.pass_obj
def enrol(line: CommandLine, *, name: str | None, domain: str, group: str | None, by_link: bool, by_mail: bool) -> None:
    """Make a link with which a user adds a passkey or an authenticator app, after typing the password."""
    if (name is None) == (group is None):
        raise click.UsageError("give the name of a user, or --group")
    if by_link == by_mail:
        raise click.UsageError("give either --link or --mail")
    if group is not None and by_link:
        raise click.UsageError("--group needs --mail")
    if group is not None:
        done = line.run("/ad/EnrolGroup", {"groupName": group}, domain=domain)
        line.print_answer(done, "")
        left = f"; without a mail address: {done['withoutAddress']}" if done["withoutAddress"] else ""
        line.note(f"{done['message']}{left}; see: sallyport user enrolments --domain {domain}")
        return
    made = line.run("/ad/EnrolUser", {"userName": name, "by": "mail" if by_mail else "link"}, domain=domain)
    line.print_answer(made, str(made["link"]) if by_link else "")
    if by_link:
        line.note(f"{made['message']}; it works once, until {made['expiresAt']}")
    else:
        line.note(str(made["message"]))


@user.command("not-enrolled")
@in_domain
@option(ListNotEnrolled, "groupName", "--group")
@json_form
@pass_body
def not_enrolled(line: CommandLine, body: Row, *, domain: str, form: Form | None) -> None:
    """List the users without a second factor, and the states of their enrolment links."""
    line.print_rows(line.listed("/ad/ListNotEnrolled", "users", body, domain=domain), MISSING, form)


@user.command()
@in_domain
@json_form
@click.pass_obj
def enrolments(line: CommandLine, *, domain: str, form: Form | None) -> None:
    """Show the progress of the mails with enrolment links to groups."""
    found = line.run("/ad/GetEnrolmentProgress", domain=domain)["groups"]
    rows = found if isinstance(found, list) else []
    line.print_rows((each for each in rows if isinstance(each, dict)), PROGRESS, form)


@user.command("bypass-codes")
@field_argument("userName", "name", expose_value=True)
@in_domain
@options(MakeBypassCodes, "codes", "uses", "hours")
@click.option("--list", "listing", is_flag=True, help="List the codes of the user, without their digits.")
@click.option("--remove", "removal", is_flag=True, help="Remove all codes of the user.")
@json_form
@pass_body
def bypass_codes(
    line: CommandLine, body: Row, *, name: str, domain: str, listing: bool, removal: bool, form: Form | None
) -> None:
    """Make bypass codes for a user without another second factor, such as after the loss of a phone.

    The codes replace all former codes of the user. They are shown once.
    """
    if listing + removal > 1 or ((listing or removal) and body):
        raise click.UsageError("--list and --remove exclude each other, and the options of new codes")
    body = {**body, "userName": name}
    if listing:
        line.print_rows(line.listed("/ad/ListBypassCodes", "bypassCodes", body, domain=domain), CODE_COLUMNS, form)
    elif removal:
        line.note(str(line.run("/ad/RemoveBypassCodes", body, domain=domain)["message"]))
    else:
        _make(line, body, domain, form)


def _make(line: CommandLine, body: Row, domain: str, form: Form | None) -> None:
    made = line.run("/ad/MakeBypassCodes", body, domain=domain)
    if form is not None:
        line.print_json(made)
        return
    codes = made["codes"]
    for each in codes if isinstance(codes, list) else ():
        line.print(in_groups(str(each)))
    uses = "once" if made["uses"] == 1 else f"{made['uses']} times"
    line.note(f"{made['message']}; each can be used {uses}, until {made['expiresAt']}")
    note_warnings(line, made["warnings"])


@user.group(cls=Group, first=("list", "remove"))
def remembered() -> None:
    """Stations at which users are not asked for the second factor for a time."""


@remembered.command("list")
@in_domain
@option(ListRememberedStations, "userName", "--user")
@json_form
@pass_body
def list_remembered(line: CommandLine, body: Row, *, domain: str, form: Form | None) -> None:
    """List the remembered stations of a domain's users."""
    rows = line.listed("/ad/ListRememberedStations", "rememberedStations", body, domain=domain)
    line.print_rows(rows, REMEMBERED_COLUMNS, form)


@remembered.command("remove")
@field_argument("userName", "name")
@field_argument("rememberedId", "id", type=NUMBER, required=False)
@in_domain
@pass_body
def remove_remembered(line: CommandLine, body: Row, *, domain: str) -> None:
    """Forget a remembered station of a user. Without an id, forget all of them."""
    line.note(str(line.run("/ad/RemoveRememberedStation", body, domain=domain)["message"]))


@click.group("prompt-pause", cls=Group, first=("list", "end"))
def prompt_pause() -> None:
    """Users who get no prompt at present: after "not me", or after two prompts without an answer."""


@prompt_pause.command("list")
@any_domain
@json_form
@click.pass_obj
def list_pauses(line: CommandLine, *, domain: str | None, form: Form | None) -> None:
    """List the users who get no prompt now."""
    line.print_rows((row for each in domains(line, domain) for row in _pauses(line, each)), PAUSE_COLUMNS, form)


@prompt_pause.command()
@in_domain
@option(EndPromptPause, "userName", "--user")
@pass_body
def end(line: CommandLine, body: Row, *, domain: str) -> None:
    """Let a user get prompts again. First make sure that no other person knows the password."""
    line.note(str(line.run("/ad/EndPromptPause", body, domain=domain)["message"]))


def _pauses(line: CommandLine, domain: Row) -> Iterator[Row]:
    for each in line.listed("/ad/ListPromptPauses", "pauses", domain=str(domain["domainId"])):
        yield {"domain": domain["domainName"], **each}
