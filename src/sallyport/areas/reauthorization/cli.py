"""`sallyport session reauthorize` and `sallyport session reauthorizations`: decide live sessions again."""

import click

from sallyport.areas.reauthorization.bodies import StartReauthorization
from sallyport.areas.reauthorization.reauthorization import Reauthorization, SessionChange
from sallyport.areas.sessions.cli import session
from sallyport.base.answer import wire_names
from sallyport.base.text import counted
from sallyport.base.wire import Row
from sallyport.shell.command import CommandLine, Form, entries
from sallyport.shell.fields import option, pass_body
from sallyport.shell.options import NUMBER, in_domain, json_form

__all__ = ["session"]
RUNS = wire_names(Reauthorization)
CHANGES = ("sessionId", "userName", "deviceName", "station", "effect", "reason")
RESULTS = (*CHANGES, "outcome", "errorText")
ALL_CHANGES = wire_names(SessionChange)


@session.command()
@in_domain
@option(StartReauthorization, "disconnect", is_flag=True, help="End sessions with other attributes. Default: use CoA.")
@click.option("--dry-run", is_flag=True, help="Only list the sessions that would change.")
@click.option("--stop", type=NUMBER, metavar="ID", help="Stop this re-authorization.")
@json_form
@pass_body
def reauthorize(
    line: CommandLine, body: Row, *, domain: str, dry_run: bool, stop: int | None, form: Form | None
) -> None:
    """Decide the live sessions of a domain's users again, and ask the devices to end or change those that differ.

    The requests are sent in the background. The command prints the id of the re-authorization.
    """
    if stop is not None:
        line.note(str(line.run("/ad/StopReauthorization", {"reauthorizationId": stop}, domain=domain)["message"]))
    elif dry_run:
        found = line.run("/ad/PreviewReauthorization", body, domain=domain)
        line.print_rows(entries(found["sessions"]), ALL_CHANGES if form == "json" else CHANGES, form)
        line.note(
            f"{counted(found['disconnects'], 'session')} would end, {found['changes']} would get other attributes, "
            f"{found['undecided']} cannot be decided, of {found['examined']} live sessions"
        )
    else:
        started = line.run("/ad/StartReauthorization", body, domain=domain)
        line.print_answer(started, str(started["reauthorizationId"]))


@session.command()
@in_domain
@click.option("--id", "run_id", type=NUMBER, help="List the sessions of this re-authorization, with the answers.")
@json_form
@click.pass_obj
def reauthorizations(line: CommandLine, *, domain: str, run_id: int | None, form: Form | None) -> None:
    """List the last re-authorizations of a domain, newest first."""
    if run_id is None:
        found = entries(line.run("/ad/ListReauthorizations", {}, domain=domain)["reauthorizations"])
        line.print_rows(found, RUNS, form)
        return
    body: Row = {"reauthorizationId": run_id}
    rows = line.listed("/ad/ListReauthorizedSessions", "sessions", body, domain=domain)
    line.print_rows(rows, ALL_CHANGES if form == "json" else RESULTS, form)
