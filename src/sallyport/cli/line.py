"""What every command gets as click's context object: the way to the service and the two outputs."""

import sys
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, TextIO

import click

from sallyport.base.errors import StartError
from sallyport.cli import output

if TYPE_CHECKING:
    from sallyport.base.command import Form
    from sallyport.base.config import Settings
    from sallyport.base.wire import JSON, Row
    from sallyport.cli.connection import Connection


class Line:
    """Satisfies base.command.CommandLine. connect: the way to the service; a command that needs none, such as an
    agent, does not wait for it."""

    def __init__(self, connect: "Callable[[], Connection]") -> None:
        self._connect = connect

    @cached_property
    def connection(self) -> "Connection":
        """The way to the service."""
        return self._connect()

    def settings(self) -> "Settings":
        return self.connection.settings()

    def call(self, command: str, /, **arguments: "JSON") -> "JSON":
        return self.connection.call(command, arguments)

    def row(self, command: str, /, **arguments: "JSON") -> "Row":
        result = self.call(command, **arguments)
        if not isinstance(result, dict):
            raise StartError(f"the running service answers {command} as another version does")
        return result

    def rows(self, command: str, /, **arguments: "JSON") -> "list[Row]":
        from sallyport.base.command import entries

        result = self.call(command, **arguments)
        if not isinstance(result, list):
            raise StartError(f"the running service answers {command} as another version does")
        return entries(result)

    def read_secret(self, prompt: str, *, confirm: bool = True) -> bytes:
        if sys.stdin.isatty():
            typed: str = click.prompt(prompt, hide_input=True, confirmation_prompt=confirm, err=True)
            return typed.encode(errors="surrogateescape")
        octets = sys.stdin.buffer.readline()
        return octets.removesuffix(b"\n").removesuffix(b"\r") if octets.endswith(b"\n") else octets

    def print(self, text: str) -> None:
        click.echo(output.safe(text))

    def print_rows(
        self, rows: "Iterable[Row]", columns: Sequence[str], form: "Form | None" = None, *, to: TextIO | None = None
    ) -> None:
        output.print_rows(rows, columns, form, to=to)

    def print_json(self, value: "JSON") -> None:
        output.print_json(value)

    def note(self, text: str) -> None:
        click.echo(output.safe(text), err=True)
