"""`sallyport directory people` and `groups`: the people and groups that were read from the directories of a domain."""

from collections.abc import Iterator
from itertools import islice

import click

from sallyport.base.errors import NotFound, StartError
from sallyport.base.text import fold
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import CommandLine, Form
from sallyport.shell.options import in_domain, json_form

PEOPLE = ("userId", "userName", "displayName", "email", "status", "directoryName", "groups")
GROUPS = ("groupId", "groupName", "memberCount", "directoryName", "dn")

_search = click.option(
    "--search", default="", help="Part of the name. For people, it may also be part of the mail address."
)
_directory = click.option("--directory", metavar="NAME", help="Show only entries of this directory.")
_limit = click.option(
    "--limit", type=click.IntRange(min=1), default=1000, show_default=True, help="Maximum number of rows."
)


@click.command()
@in_domain
@_search
@_directory
@click.option("--group", metavar="NAME", help="Show only people in this group or its nested groups.")
@_limit
@json_form
@click.pass_obj
def people(
    line: CommandLine,
    *,
    domain: str,
    search: str,
    directory: str | None,
    group: str | None,
    limit: int,
    form: Form | None,
) -> None:
    """List the people that were read from directories."""
    path, body = "/ad/GetAllAdUsers", Row(search=search)
    if group is not None:
        path, body["groupId"] = "/ad/GetAllUsersByGroup", group_id(line, domain, group, directory)
    _print(line, _of(line.listed(path, "users", body, domain=domain), directory), PEOPLE, limit, form)


@click.command()
@in_domain
@_search
@_directory
@_limit
@json_form
@click.pass_obj
def groups(
    line: CommandLine, *, domain: str, search: str, directory: str | None, limit: int, form: Form | None
) -> None:
    """List the groups that were read from directories."""
    found = line.listed("/ad/GetAllGroupsByDomain", "groups", {"search": search}, domain=domain)
    _print(line, _of(found, directory), GROUPS, limit, form)


def group_id(line: CommandLine, domain: str, name: str, directory: str | None) -> JSON:
    """Return the id of a group. Raises NotFound if the group does not exist. Raises StartError if several groups have
    the name.

    directory: the name of the group's directory, or None to search all directories of the domain.
    """
    listed = line.listed("/ad/GetAllGroupsByDomain", "groups", {"search": name}, domain=domain)
    found = [each for each in _of(listed, directory) if fold(str(each["groupName"])) == fold(name)]
    if not found:
        raise NotFound(f"--group: no group {name}{f' in {directory}' if directory is not None else ''}")
    if len(found) > 1:
        names = ", ".join(sorted({str(each["directoryName"]) for each in found}))
        raise StartError(
            f"--group: {len(found)} groups have the name {name}, in {names}: select a directory with --directory"
        )
    return found[0]["groupId"]


def _of(rows: Iterator[Row], directory: str | None) -> Iterator[Row]:
    return (each for each in rows if directory is None or fold(str(each["directoryName"])) == fold(directory))


def _print(line: CommandLine, rows: Iterator[Row], columns: tuple[str, ...], limit: int, form: Form | None) -> None:
    line.print_rows(islice(rows, limit), columns, form)
    if next(rows, None) is not None:
        line.note(f"more than {limit} entries match: use --search, or a larger --limit")
