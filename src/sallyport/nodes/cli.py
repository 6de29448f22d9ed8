"""`sallyport node`: the services that share one PostgreSQL database."""

import click

from sallyport.shell.command import CommandLine, Form
from sallyport.shell.options import Group, json_form

COLUMNS = ("name", "id", "state", "version", "address", "started", "leads")


@click.group(cls=Group)
def node() -> None:
    """Nodes: the services that use the same PostgreSQL database."""


@node.command("list")
@json_form
@click.pass_obj
def list_(line: CommandLine, *, form: Form | None) -> None:
    """List the nodes. One node leads: it does the periodic work for all nodes."""
    line.print_rows(line.rows("node.list"), COLUMNS, form)


@node.command()
@click.argument("name")
@click.pass_obj
def forget(line: CommandLine, *, name: str) -> None:
    """Remove a silent node from the list. If the node starts again, the list contains it again."""
    line.call("node.forget", name=name)
    line.note(f"the node {name} is removed from the list")
