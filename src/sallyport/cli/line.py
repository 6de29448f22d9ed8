"""The context object of every click command: the connection to the service, and the outputs."""

import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import count
from types import MappingProxyType
from typing import TYPE_CHECKING, TextIO

import click

from sallyport.base.errors import Invalid, NotFound, StartError
from sallyport.base.text import is_coloured, printable
from sallyport.cli import output
from sallyport.shell.options import chosen_columns, wants_json

if TYPE_CHECKING:
    from sallyport.base.wire import JSON, Row
    from sallyport.cli.connection import Connection
    from sallyport.settings.settings import Settings
    from sallyport.shell.command import Form


class Line:
    """The implementation of `shell.command.CommandLine`. connect: opens the connection on first use. override: whether
    operations change objects that files manage."""

    def __init__(self, connect: "Callable[[], Connection]", *, override: bool = False) -> None:
        self._connect = connect
        self.override = override

    @cached_property
    def connection(self) -> "Connection":
        """Return the connection to the service, which is opened on first use."""
        return self._connect()

    def settings(self) -> "Settings":
        return self.connection.settings()

    def run(
        self,
        path: str,
        body: "Mapping[str, JSON] | Sequence[Mapping[str, JSON]]" = MappingProxyType({}),
        /,
        *,
        domain: str | None = None,
        domains: Sequence[str] | None = None,
    ) -> "Row":
        answer = self._answer(path, body, domain, domains)
        if isinstance(answer, str | list):
            return {"message": answer}
        if not isinstance(answer, dict):
            raise _other_version(path)
        return answer

    def listed(
        self,
        path: str,
        field: str | None,
        body: "Mapping[str, JSON]" = MappingProxyType({}),
        /,
        *,
        domain: str | None = None,
        size: int = 1000,
    ) -> "Iterator[Row]":
        for page in count(1):
            asked = {**body, "pageId": page, "pageSize": size}
            found = _entries(path, self._answer(path, asked, domain), field)
            yield from found
            if len(found) < size:
                return

    def listed_everywhere(
        self, path: str, field: str | None, body: "Mapping[str, JSON]" = MappingProxyType({}), /, *, size: int = 1000
    ) -> "Iterator[Row]":
        for each in self.rows("tenant.list"):
            scope: Row = {"orgId": each["org"], "tenantId": each["tenant"]}
            for entry in self.listed(path, field, {**body, **scope}, size=size):
                yield {**entry, **each}

    def _answer(
        self,
        path: str,
        body: "Mapping[str, JSON] | Sequence[Mapping[str, JSON]]",
        domain: str | None,
        domains: Sequence[str] | None = None,
    ) -> "JSON":
        whole: JSON = dict(body) if isinstance(body, Mapping) else [dict(each) for each in body]
        named: Row = {"domain": domain} if domain is not None else {}
        if domains is not None:
            named["domains"] = list(domains)
        if self.override:
            named["override"] = True
        return self._ask({"path": path, "body": whole, **named}, whole)

    def call(self, command: str, /, **arguments: "JSON") -> "JSON":
        return self._ask({"command": command, "arguments": arguments}, arguments)

    def _ask(self, asked: "Row", sent: "JSON") -> "JSON":
        """Send a request. In the message of an Invalid, replace the names of fields by the options that set the
        fields."""
        try:
            return self.connection.call(asked)
        except Invalid as error:
            from sallyport.cli import messages

            raise Invalid(messages.refused(error, sent), error.fields) from error
        except NotFound as error:
            from sallyport.cli import messages

            raise NotFound(messages.not_found(error)) from error

    def row(self, command: str, /, **arguments: "JSON") -> "Row":
        result = self.call(command, **arguments)
        if not isinstance(result, dict):
            raise _other_version(command)
        return result

    def rows(self, command: str, /, **arguments: "JSON") -> "list[Row]":
        return _entries(command, self.call(command, **arguments))

    def read_secret(self, prompt: str, *, confirm: bool = True) -> bytes:
        if sys.stdin.isatty():
            typed: str = click.prompt(prompt, hide_input=True, confirmation_prompt=confirm, err=True)
            return typed.encode(errors="surrogateescape")
        octets = sys.stdin.buffer.readline()
        return octets.removesuffix(b"\n").removesuffix(b"\r") if octets.endswith(b"\n") else octets

    def print(self, text: str, *, colour: str = "") -> None:
        shown = printable(text)
        click.echo(click.style(shown, fg=colour) if colour and is_coloured(sys.stdout) else shown)

    def print_rows(
        self,
        rows: "Iterable[Row]",
        columns: Sequence[str],
        form: "Form | None" = None,
        *,
        to: TextIO | None = None,
        spare: Sequence[str] = (),
    ) -> None:
        chosen = chosen_columns()
        if chosen:
            (rows, columns), spare = output.only(rows, chosen), ()
        output.print_rows(rows, columns, form, to=to, fits=chosen is not None, spare=spare)

    def rows_printer(
        self, columns: Sequence[str], form: "Form | None", *, spare: Sequence[str] = ()
    ) -> "Callable[[Sequence[Row]], None]":
        chosen = chosen_columns() or ()
        table: output.Table | None = None

        def show(rows: "Sequence[Row]") -> None:
            nonlocal table
            if not rows:  # the first rows decide the widths of the table
                return
            shown, names = output.only(rows, chosen) if chosen else (rows, columns)
            if form == "json":
                output.print_rows(shown, names, "jsonl")
                return
            if table is None:
                table = output.Table(names, output.terminal_width(sys.stdout), () if chosen else spare)
            click.echo("\n".join(table.lines(shown)))

        return show

    def print_answer(self, answer: "Row", text: str) -> None:
        if wants_json():
            output.print_json(answer)
        elif text:
            self.print(text)

    def print_json(self, value: "JSON") -> None:
        output.print_json(value)

    def note(self, text: str) -> None:
        click.echo(printable(text), err=True)


def _entries(name: str, result: "JSON", field: str | None = None) -> "list[Row]":
    """Return the objects in a list. field: the field of the result that contains the list; None if the result itself is
    the list."""
    if field is not None and isinstance(result, dict):
        result = result.get(field)
    if not isinstance(result, list):
        raise _other_version(name)
    return [each for each in result if isinstance(each, dict)]


def _other_version(name: str) -> StartError:
    return StartError(f"the running service has another version: its answer to {name} has an unknown form")
