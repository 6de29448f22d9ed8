"""The steps before `domain mode NAME enforce --require-clean`: look up enrolments, and show which users would be
denied."""

import sys

import click

from sallyport.base.errors import Conflict, NotFound
from sallyport.base.wire import Row
from sallyport.shell.command import CommandLine, entries

USERS = ("user", "outcome", "reason", "logins", "lastSeen")
DEVICES = ("device_id", "device_name", "outcome", "reason")
NEXT = (
    "next: enrol the users with `reject` at the MFA provider, or exempt them by a login rule; --accept-unknown ignores "
    "users with `unknown`"
)

BEGINS = "checking the MFA provider and the enrolments"


def survey(line: CommandLine, domain: str) -> None:
    """Check the MFA provider, then look up the enrolments of all users. On a terminal, show a progress bar.

    Raises Conflict if the provider does not work.
    """
    if sys.stderr.isatty():
        line.note(BEGINS)
    try:
        checked = line.run("/ad/CheckMFAProvider", domain=domain)
    except NotFound:  # if there is no provider, the switch reports it
        return
    if not checked["works"]:
        raise Conflict(f"the MFA provider does not work: {checked['problem']}; the mode of {domain} is not changed")
    users, left = _ask(line, domain, again=True)
    if not users:
        return
    with click.progressbar(
        length=users, label="enrolments", file=sys.stderr, hidden=not sys.stderr.isatty(), show_pos=True
    ) as bar:
        bar.update(users - left)
        while left:
            users, still = _ask(line, domain, again=False)
            if still >= left:  # the provider no longer answers
                break
            bar.update(left - still)
            left = still
    line.note(f"looked up {users - left} of {users} enrolments")


def tell_refusal(line: CommandLine, domain: str) -> None:
    """Print the users and devices that enforcing would deny. Also print what the admin can do. The texts go to standard
    error."""
    impact = line.run("/ad/PreviewEnforcement", domain=domain)
    users = [each for each in entries(impact["users"]) if each["outcome"] in ("reject", "unknown")]
    devices = [each for each in entries(impact["devices"]) if each["outcome"] == "reject"]
    for rows, columns in ((users, USERS), (devices, DEVICES)):
        if rows:
            line.print_rows(rows, columns, to=sys.stderr)
    if users or devices:
        line.note(NEXT)


def _ask(line: CommandLine, domain: str, *, again: bool) -> tuple[int, int]:
    """Continue to ask whether users are enrolled. Return the number of users, and the number of users whose enrolment
    is still unknown.

    again: whether to ask about all users again.
    """
    told: Row = line.run("/ad/CheckEnrolments", {"again": again}, domain=domain)
    return int(str(told["users"])), int(str(told["left"]))
