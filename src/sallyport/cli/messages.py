"""Messages about values that click or the service does not accept. A message names the option or argument that contains
the value.

An operation names a wrong field by its path in the body, such as `time.from`. The parameter that fills the field is
known from its declaration (`shell.fields`). The values of options with a secret are never repeated.
"""

import ast
import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click

from sallyport.base.errors import about
from sallyport.base.text import nearest
from sallyport.shell.fields import by_options, parameter_of
from sallyport.shell.options import InputFile, Minutes, Time, option_name, scope_of, value_of

if TYPE_CHECKING:
    from sallyport.base.errors import FieldError, Invalid, NotFound
    from sallyport.base.wire import JSON

_SECRET: Final = re.compile("(^|[-_])(secret|password|token|code|i?key|pin|passphrase|seed|motp)$", re.IGNORECASE)
_MAX_LENGTH: Final = 80
"""Maximum number of characters that a message repeats of a value."""
_NOT_FOUND: Final = re.compile(
    r"^(?:no (?P<kind>domain) (?P<name>\S.*?)(?P<existing>; existing: .*)?|(?P<other>[A-Za-z ]+) not found)$"
)
_LISTS: Final[Mapping[str, tuple[str, ...]]] = {
    "API key": ("agent", "key", "list"),
    "import": ("directory", "jobs"),
    "issuer": ("did", "list"),
    "DID": ("did", "list"),
    "holder": ("did", "list"),
}
"""The commands that list the objects of a kind, for kinds without a command `KIND list`."""
_KIND_OF_PATH: Final = re.compile("^(File|Directory|Path) ")
_CLICK_VALUE: Final = re.compile(r"^(.*) is not (?:a valid|in the range|one of)\b", re.DOTALL)


def not_accepted(name: str, value: object, message: str) -> str:
    """Return the message about a value that is not accepted. name: the option or argument. message: the message of a
    FieldError."""
    return f"{name}: {_quoted(value)} is not accepted: {message}"


def refused(error: "Invalid", sent: "JSON") -> str:
    """Return the message about the fields that an operation does not accept, with one line for each field.

    error: the error of the operation. sent: the body of the request.
    """
    context = click.get_current_context(silent=True)
    lines: dict[str, None] = {}
    wrong: list[str] = []
    for each in error.fields:
        # the object that contains a wrong field is reported too
        if not any(field.startswith(f"{each.field}.") for field in wrong):
            wrong.append(each.field)
            lines[_field_line(each, sent, context)] = None
    return "\n".join(lines) or str(error)


def _field_line(wrong: "FieldError", sent: "JSON", context: click.Context | None) -> str:
    path = wrong.field.split(".")
    names = [part for part in path if not part.isdecimal()]
    parameters = () if context is None else context.command.params
    found, value = parameter_of(names, parameters), _text_of(_at(sent, path))
    name = option_name(found) if found is not None else (names or path)[-1]
    is_secret = found is None or _is_secret(found) or any(_SECRET.search(_with_hyphens(each)) for each in names)
    is_file = found is not None and isinstance(found.type, InputFile)  # then the value is the text of the file
    if is_secret or is_file or not isinstance(value, str | int | float) or "\n" in str(value):
        return by_options(wrong.about(name), parameters)
    return not_accepted(name, value, by_options(wrong.message, parameters))


def _with_hyphens(field: str) -> str:
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "-", field)


def _at(sent: "JSON", path: Sequence[str]) -> "JSON":
    """Return the value at a path of a body. Return None if there is no value."""
    for part in path:
        if isinstance(sent, list) and part.isdecimal() and int(part) < len(sent):
            sent = sent[int(part)]
        elif isinstance(sent, list) and len(sent) == 1 and isinstance(sent[0], dict):
            sent = sent[0].get(part)
        elif isinstance(sent, dict):
            sent = sent.get(part)
        else:
            return None
    return sent


def _text_of(value: "JSON") -> "JSON":
    """Join a list of texts with commas, as the user has typed them. Return any other value unchanged."""
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return ", ".join(map(str, value))
    return value


def _is_secret(parameter: click.Parameter) -> bool:
    """Return whether messages must not repeat the value of an option or argument. Besides the parameters that declare
    it, these are all whose name ends like that of a secret."""
    names = (parameter.name or "", *parameter.opts)
    return getattr(parameter, "is_secret", False) or any(_SECRET.search(each) for each in names)


def not_found(error: "NotFound") -> str:
    """Return the message about an object that does not exist. The message contains the name as the user typed it, and
    the command that lists the objects of this kind."""
    context = click.get_current_context(silent=True)
    found = _NOT_FOUND.match(str(error))
    if context is None or found is None:
        return str(error)
    kind = found["kind"] or found["other"]
    message = f"{kind} {_quoted(found['name'])} not found{found['existing'] or ''}" if found["name"] else str(error)
    given = None if found["name"] else _names(kind, context)
    if given:
        message = f"{kind} {' or '.join(map(_quoted, given))} not found"
    words = _list_of(kind, context)
    return f"{message}; see: {words}" if words else message


def _names(kind: str, context: click.Context) -> tuple[object, ...]:
    """Return the names of the objects of a kind that the user has typed in the command line. Return an empty tuple if
    there are none, or if a name may be a secret.

    The names are in the parameter with the name of the kind. In the command group of the kind, they can be in the
    argument NAME.
    """
    group = context.parent.info_name if context.parent is not None else None
    last = kind.rsplit(maxsplit=1)[-1].casefold()
    wanted = {last, f"{last}s", f"{last}_id", f"{last}_ids", *(("name", "identifier") if group == last else ())}
    for each in context.command.params:
        value, name = value_of(each, context), option_name(each).lstrip("-").casefold().replace("-", "_")
        if name in wanted and value and not _is_secret(each):
            return value if isinstance(value, tuple) else (value,)
    return ()


def _list_of(kind: str, context: click.Context) -> str:
    """Return the command that lists the objects of a kind, with the required options of the called command. Return ""
    if there is no such command."""
    root = context.find_root()
    words = ("sallyport", *_LISTS.get(kind, (kind.rsplit(maxsplit=1)[-1], "list")))
    command: click.Command | None = root.command
    for word in words[1:]:
        command = command.get_command(root, word) if isinstance(command, click.Group) else None
    if command is None:
        return ""
    return " ".join((*words, *scope_of(command, context)))


def _quoted(value: object) -> str:
    text = str(value)
    return json.dumps(text if len(text) <= _MAX_LENGTH else f"{text[:_MAX_LENGTH]}...", ensure_ascii=False)


def usage(error: click.ClickException) -> str:
    """Return the message about a command line that click does not accept."""
    if isinstance(error, click.MissingParameter) and error.param is not None:
        return _missing(error.param)
    if isinstance(error, click.NoSuchOption):
        return _no_such_option(error)
    return _bad_parameter(error) if isinstance(error, click.BadParameter) else error.format_message()


def _bad_parameter(error: click.BadParameter) -> str:
    if error.param is None or error.param_hint is not None:
        hint = error.param_hint if isinstance(error.param_hint, str) else " ".join(error.param_hint or ())
        return about(hint, error.message) if hint else error.message
    name = option_name(error.param)
    if _is_secret(error.param):
        return f"{name} must be {_accepted(error.param.type)}"
    accepted, value = _accepted(error.param.type), _CLICK_VALUE.match(error.message)
    if not accepted or value is None:
        return f"{name}: {_KIND_OF_PATH.sub('', error.message)}"
    return not_accepted(name, _literal(value[1]), f"must be {accepted}{_list_of_ids(error.param, error.ctx)}")


def _list_of_ids(parameter: click.Parameter, context: click.Context | None) -> str:
    """Return a reference to the command that lists the ids, for an argument with ids of the objects of a command group.
    Return "" for any other parameter."""
    is_id = isinstance(parameter, click.Argument) and str(parameter.name).endswith(("_id", "_ids"))
    if not is_id or context is None or context.parent is None:
        return ""
    words = _list_of(str(context.parent.info_name), context)
    return f"; see: {words}" if words else ""


def _no_such_option(error: click.NoSuchOption) -> str:
    parameters = error.ctx.command.params if error.ctx is not None else []
    names = [option_name(each).lstrip("-") for each in parameters if isinstance(each, click.Option)]
    # the names are compared without the dashes
    wanted = nearest(error.option_name.lstrip("-"), names).replace('"', '"--', 1)
    known = ", ".join(f"--{name}" for name in names)
    options = f" Options: {known}." if known else " The command has no options."
    return f"There is no option {error.option_name}.{wanted or options}"


def _missing(parameter: click.Parameter) -> str:
    accepted = _accepted(parameter.type)
    text = getattr(parameter, "help", None)
    if isinstance(parameter.type, click.Choice):
        return f"{option_name(parameter)} is missing; give {accepted}"
    return f"{option_name(parameter)} is missing" + (f": {text}" if text else "")


def _literal(text: str) -> object:
    try:
        return ast.literal_eval(text)
    except (ValueError, SyntaxError):
        return text


def _accepted(kind: "click.ParamType[object]") -> str:
    """Return a phrase for the values that an option type accepts. Return "" if click's own message contains them."""
    if isinstance(kind, Time):
        return kind.accepted
    if isinstance(kind, click.Choice):
        names = [str(each) for each in kind.choices]
        return " or ".join(filter(None, (", ".join(names[:-1]), names[-1])))
    if isinstance(kind, Minutes):
        return f"minutes from {kind.min} to {kind.max}, or a time such as 90m, 12h or 2d"
    if isinstance(kind, click.IntRange | click.FloatRange):
        number = "a whole number" if isinstance(kind, click.IntRange) else "a number"
        if kind.max is None:
            return f"{number} of at least {kind.min}"
        return f"{number} from {kind.min} to {kind.max}"
    plain: Mapping[object, str] = {click.INT: "a whole number", click.FLOAT: "a number", click.BOOL: "yes or no"}
    return plain.get(kind, "")
