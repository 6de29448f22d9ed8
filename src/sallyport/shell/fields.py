"""Options that fill the fields of a request body.

The type, the accepted values, the default and the help of an option come from the field of the body, so that a field is
described once. A command gets the fields that the user has given as one object:

    @station.command("list")
    @in_domain
    @options(ListStations, "search", "newest")
    @json_form
    @pass_body
    def list_(line: CommandLine, body: Row, *, domain: str, form: Form | None) -> None:
        line.print_rows(line.listed("/network_device/ListStations", "stations", body, domain=domain), COLUMNS, form)

The name of an option is the name of its field: `--device-id` for deviceId. An option of a list is repeatable, and its
name is the singular. A field that is absent from the command line is absent from the body.

If the service refuses a field, the message names the option that fills the field (`parameter_of`). An option whose
value is not a field of the body, such as the name of an object whose id is sent, declares the fields by itself:
`field_option("userId", "--user")`.
"""

import re
import sys
from collections.abc import Callable, Iterable, Mapping
from enum import Enum
from functools import update_wrapper
from types import NoneType, UnionType
from typing import (
    Annotated,
    Concatenate,
    Final,
    Literal,
    ParamSpec,
    Protocol,
    TypeVar,
    Union,
    cast,
    get_args,
    get_origin,
)

import click
from pydantic import BaseModel, SecretBytes, SecretStr
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined

from sallyport.base.validation import Between
from sallyport.base.wire import JSON, Row
from sallyport.shell.command import CommandLine
from sallyport.shell.options import HIDDEN, NUMBER, Minutes, option_name

_BODY: Final = "sallyport.body"
_YES_NO: Final = click.Choice(["yes", "no"])

P = ParamSpec("P")
ResultT = TypeVar("ResultT")
CommandT = TypeVar("CommandT", bound=Callable[..., object])


class Decorator(Protocol):
    """A function that adds parameters to a command."""

    def __call__(self, command: CommandT, /) -> CommandT: ...


class BodyOption(click.Option):
    """An option that fills a field.

    field: the path of the field in the body, such as `filter.value`. is_secret: whether messages must not repeat the
    value. is_described: whether the help is the description of the field. is_cleared: whether an empty text is no entry
    of the list, so that `--user ''` is the empty list. expose_value: whether the command gets the value as an argument,
    to fill the field by itself.
    """

    def __init__(
        self,
        *args: object,
        field: str,
        is_secret: bool = False,
        is_described: bool = False,
        is_cleared: bool = False,
        **settings: object,
    ) -> None:
        super().__init__(*args, **settings)  # type: ignore[arg-type]
        self.field = field
        self.is_secret = is_secret
        self._is_described = is_described
        self._is_cleared = is_cleared

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, object], args: list[str]
    ) -> tuple[object, list[str]]:
        """Convert the value, and put it into the body."""
        value, rest = super().handle_parse_result(ctx, opts, args)
        entries = [each for each in value if each != ""] if self._is_cleared and isinstance(value, tuple) else value
        _fill(ctx, self, self.field, entries)
        return value, rest

    def get_help_record(self, ctx: click.Context) -> tuple[str, str] | None:
        """Return the option and its help. Where the description names a field, the help names the field's option."""
        record = super().get_help_record(ctx)
        if record is None or not self._is_described:
            return record
        return record[0], by_options(record[1], ctx.command.params)


class BodyArgument(click.Argument):
    """An argument that fills a field; see `BodyOption`."""

    is_secret: Final = False

    def __init__(self, *args: object, field: str, **settings: object) -> None:
        super().__init__(*args, **settings)  # type: ignore[arg-type]
        self.field = field

    def handle_parse_result(
        self, ctx: click.Context, opts: Mapping[str, object], args: list[str]
    ) -> tuple[object, list[str]]:
        """Convert the value, and put it into the body."""
        value, rest = super().handle_parse_result(ctx, opts, args)
        _fill(ctx, self, self.field, value)
        return value, rest


def _fill(context: click.Context, parameter: click.Parameter, field: str, value: object) -> None:
    """Put the value of a parameter into the body, if the user has given it."""
    source = context.get_parameter_source(parameter.name or "")
    if parameter.expose_value or source is not click.core.ParameterSource.COMMANDLINE:
        return
    context.meta.setdefault(HIDDEN, {})[parameter.name] = value
    body: Row = context.meta.setdefault(_BODY, {})
    *outer, name = field.split(".")
    for each in outer:
        body = cast(Row, body.setdefault(each, {}))
    body[name] = list(value) if isinstance(value, tuple) else cast(JSON, value)


def pass_body(command: Callable[Concatenate[CommandLine, Row, P], ResultT]) -> Callable[P, ResultT]:
    """Call a command with the command line, and with the body that its options have filled."""

    def run(*args: P.args, **given: P.kwargs) -> ResultT:
        context = click.get_current_context()
        return command(context.obj, context.meta.pop(_BODY, {}), *args, **given)

    return update_wrapper(run, command)


def options(model: type[BaseModel], *fields: str) -> Decorator:
    """Add an option to a command for each of these fields of a body."""

    def decorate(command: CommandT) -> CommandT:
        for each in reversed(fields):
            command = option(model, each)(command)
        return command

    return decorate


def option(model: type[BaseModel], field: str, *names: str, **settings: object) -> Decorator:
    """Add an option to a command for a field of a body.

    field: the path of the field in the body, such as `ldap.baseDN`; the model has its last part. names: the names of
    the option; without them, the name of the field. settings: what the option has instead of what the field says, in
    the terms of `click.option`.
    """
    own = field.rpartition(".")[2]
    derived = {**_derived(model.model_fields[own]), "is_described": "help" not in settings, **settings}
    if own.endswith("Minutes") and isinstance(given := derived["type"], click.IntRange):
        derived |= {"type": Minutes(given.min, given.max), "metavar": Minutes.metavar}
    if not names:
        names = (f"--{_option_name(own, several=bool(derived.get('multiple')))}",)
    if any("/" in each for each in names) or settings.get("is_flag"):
        derived |= {"type": None, "callback": None}
    return field_option(field, *names, **derived)


def field_option(field: str, *names: str, **settings: object) -> Decorator:
    """Add an option to a command that fills a field. `settings` are those of `click.option`."""
    own_name = [] if any(each.isidentifier() for each in names) else [f"body_{field.replace('.', '_')}"]
    declared = [*names, *own_name]  # an argument of the command may have the name of the field
    return click.option(*declared, cls=BodyOption, **{"field": field, "expose_value": False, **settings})


def of_tenant(kind: str) -> Decorator:
    """Add the required options --org and --tenant to a command. kind: the kind of object in the tenant, for the
    help."""

    def decorate(command: CommandT) -> CommandT:
        for field, name in (("tenantId", "--tenant"), ("orgId", "--org")):
            command = field_option(field, name, type=NUMBER, required=True, help=f"{field} of the {kind}.")(command)
        return command

    return decorate


def field_argument(field: str, name: str, **settings: object) -> Decorator:
    """Add an argument to a command that fills a field. `settings` are those of `click.argument`."""
    given = {"field": field, "expose_value": False, **settings}
    return click.argument(name, cls=BodyArgument, **given)


password_option = click.option(
    "--password",
    metavar="-",
    help="Password of the user. Give - to read the password from standard input. Default: the command asks for the "
    "password.",
)


def read_password(line: CommandLine, given: str | None, *, confirm: bool = True) -> bytes:
    """Read a password from standard input, or ask for it at a terminal. given: the value of `password_option`. confirm:
    whether to ask twice. Raises UsageError."""
    check_is_dash(given, "--password")
    if given is None and not sys.stdin.isatty():
        raise click.UsageError("standard input is no terminal: add --password - to read the password from it")
    return line.read_secret("Password", confirm=confirm)


def check_is_dash(given: str | None, *options: str) -> None:
    """Raise UsageError if a secret is on the command line. The only value of its options is `-`, for standard input."""
    if given not in (None, "-"):
        names = " and ".join(filter(None, (", ".join(options[:-1]), options[-1])))
        accept = "accept" if len(options) > 1 else "accepts"
        raise click.UsageError(
            f"{names} {accept} only - (read it from standard input), because all users of a machine can see its "
            "command lines"
        )


def parameter_of(path: list[str], parameters: Iterable[click.Parameter]) -> click.Parameter | None:
    """Return the parameter that fills a field. Return None if no parameter does.

    path: the names of the path to the field. A parameter fills a field if its own field is a beginning of the path,
    or else the end of the path, or else a field within the refused object. A parameter that is not declared with a
    field fills the field of its own name, unless another parameter declares it.
    """
    best, most = None, (0, 0, False)
    for each in parameters:
        own = getattr(each, "field", _camel(each.name or "")).split(".")
        length, is_declared = len(own), hasattr(each, "field")
        fit = (0, 0, False)
        if path[:length] == own:
            fit = (3, length, is_declared)
        elif path[-length:] == own:
            fit = (2, length, is_declared)
        elif own[: len(path)] == path:
            fit = (1, 0, False)  # the first of the object's options
        if fit > most:
            best, most = each, fit
    return best


def by_options(message: str, parameters: Iterable[click.Parameter]) -> str:
    """Return a message with the names of options instead of the names of their fields. A field name that is also an
    ordinary word is not replaced."""
    for each in parameters:
        field = getattr(each, "field", each.name) or ""
        if isinstance(each, click.Option) and not field.islower():
            message = re.sub(rf"(?<![-\w]){re.escape(field)}\b", option_name(each), message)
    return message


def _derived(field: FieldInfo) -> dict[str, object]:
    """Return the settings of the option for a field."""
    description = _description(field)
    settings: dict[str, object] = {"help": description, "required": field.is_required()}
    kind, limits, is_optional, is_list = _unwrapped(field)
    default = None if field.default is PydanticUndefined or is_list else field.default
    if kind is bool:
        settings |= {"callback": _truth, "type": _YES_NO} if is_optional else {"is_flag": True}
    elif isinstance(kind, type) and issubclass(kind, SecretBytes | SecretStr):
        settings |= {"metavar": "-", "is_secret": True}
    else:
        settings["type"] = _type(kind, limits)
    if is_list:
        settings |= {"multiple": True, "is_cleared": is_optional, "help": f"{description} Repeatable."}
    if default not in (None, "", False) and kind is not bool:
        settings |= {"default": default.value if isinstance(default, Enum) else default, "show_default": True}
    return settings


def _description(field: FieldInfo) -> str | None:
    """Return the description of a field. If the field can be null, its type may have the description."""
    parts = (part for kind in get_args(field.annotation) for part in get_args(kind) if isinstance(part, FieldInfo))
    return field.description or next((part.description for part in parts if part.description), None)


def _unwrapped(field: FieldInfo) -> tuple[object, list[object], bool, bool]:
    """Return the plain type of a field, its limits, whether the field can be null, and whether it is a list."""
    kind, limits = field.annotation, list(field.metadata)
    is_optional = is_list = False
    while True:
        origin, arguments = get_origin(kind), get_args(kind)
        if origin is Annotated:
            kind, limits = arguments[0], [*limits, *arguments[1:]]
        elif origin in (Union, UnionType) and NoneType in arguments:
            (kind,), is_optional = [each for each in arguments if each is not NoneType], True
        elif origin in (list, tuple):
            kind, limits, is_list = arguments[0], [], True
        else:
            return kind, limits, is_optional, is_list


def _type(kind: object, limits: Iterable[object]) -> "click.ParamType[object] | None":
    if get_origin(kind) is Literal:
        return click.Choice([str(each) for each in get_args(kind)])
    if isinstance(kind, type) and issubclass(kind, Enum):
        return click.Choice([str(each.value) for each in kind])
    if kind is not int:
        return None
    for each in limits:
        if isinstance(each, Between):
            return click.IntRange(each.low, each.high)
    return click.INT


def _truth(_context: click.Context, _parameter: click.Parameter, value: str | None) -> bool | None:
    return None if value is None else value == "yes"


def _option_name(field: str, *, several: bool) -> str:
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", field).lower()
    return name.removesuffix("s") if several else name


def _camel(name: str) -> str:
    first, *others = name.split("_")
    return first + "".join(each.capitalize() for each in others)
