"""Messages about values that click or the service does not accept. A message names the option or argument that contains
the value.

An operation names a wrong field by its path in the body, such as `time.from`. Most commands copy the values of their
options into the body unchanged. So this module finds the option by two things: the value at the path, and the name of
the field. No command has to list the fields that its options set. The values of options with a secret are never
repeated.
"""

import ast
import json
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Final

import click

from sallyport.base.errors import about
from sallyport.base.text import nearest
from sallyport.shell.options import Time, option_name, scope_of

if TYPE_CHECKING:
    from sallyport.base.errors import FieldError, Invalid, NotFound
    from sallyport.base.wire import JSON

_SECRET: Final = frozenset({"secret", "password", "token", "code", "key", "pin", "passphrase", "skey", "seed", "motp"})
_NOT_SECRET: Final = frozenset({"key_type", "keyType", "token_id", "code_digits", "password_verified"})
_LONGEST: Final = 80
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
    value = _text_of(_at(sent, path))
    names = [part for part in path if not part.isdecimal()]
    found = None if context is None else _source(names, value, context)
    name = option_name(found) if found is not None else (names or path)[-1]
    is_shown = found is not None and isinstance(value, str | int | float) and not _is_secret(found, names)
    if not is_shown:
        return _by_options(wrong.about(name), context)
    message = _by_options(wrong.message, context)
    return not_accepted(name, value, message)


def _by_options(message: str, context: click.Context | None) -> str:
    """In a message, replace the names of fields by the names of options. A field name that is also an ordinary word is
    not replaced."""
    for each in context.command.params if context is not None else ():
        if isinstance(each, click.Option) and each.name and not each.name.islower():
            message = re.sub(rf"\b{each.name}\b", option_name(each), message)
    return message


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


def _source(names: Sequence[str], value: "JSON", context: click.Context) -> click.Parameter | None:
    """Return the option or argument that has set a field. Return None if no parameter matches.

    The values are compared first. Among the parameters with the value of the field, the parameter with the most similar
    name is returned. If no parameter has this value, only the names are compared.
    """
    by_value = {id(each): _value_score(each, value, context) for each in context.command.params}
    best, most = None, 0
    for each in context.command.params:
        if any(by_value.values()) and not by_value[id(each)]:
            continue
        score = by_value[id(each)] + _name_score(each, names)
        if score > most:
            best, most = each, score
    return best


def _value_score(parameter: click.Parameter, value: "JSON", context: click.Context) -> int:
    given = context.params.get(parameter.name or "")
    source = context.get_parameter_source(parameter.name or "")
    if value is None or isinstance(value, bool) or source is not click.core.ParameterSource.COMMANDLINE:
        return 0
    texts = [str(each) for each in (given if isinstance(given, tuple) else (given,))]
    if str(value) in texts:
        return 6
    return 4 if str(value) and any(str(value) in text for text in texts) else 0


def _name_score(parameter: click.Parameter, names: Sequence[str]) -> int:
    """Return how similar the name of an option is to the names of a path. The last name of the path counts most."""
    own = {_plain(each) for each in (parameter.name or "", *parameter.opts)}
    scores = [0]
    for distance, name in enumerate(reversed(names)):
        plain = _plain(name)
        far = min(distance, 1)
        if plain in own:
            scores.append(5 - 2 * far)
        elif any(_resemble(plain, each) for each in own):
            scores.append(4 - 3 * far)
    return max(scores)


def _resemble(one: str, other: str) -> bool:
    """Return whether one name begins or ends with the other: userName and user, secret and radius-secret."""
    short, long = sorted((one, other), key=len)
    return len(short) > 2 and (long.startswith(short) or long.endswith(short))


def _plain(name: str) -> str:
    return re.sub(r"[-_]", "", name).casefold()


def _is_secret(parameter: click.Parameter, names: Sequence[str]) -> bool:
    """Return whether an option or a field contains a secret. The words in its name decide."""
    own = [parameter.name or "", *(each.lstrip("-") for each in parameter.opts), *names]
    words = {
        word.casefold()
        for name in own
        if name.replace("-", "_") not in _NOT_SECRET
        for word in re.findall(r"[A-Z]?[a-z]+|[A-Z]+", name)
    }
    return not words.isdisjoint(_SECRET)


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

    The names are in the parameter whose name resembles the kind. In the command group of the kind, they can be in the
    argument NAME.
    """
    group = context.parent.info_name if context.parent is not None else None
    own = {each.name or "": each for each in context.command.params}
    found = [name for name in own if _resemble(_plain(kind), _plain(name))]
    if not found and group is not None and _resemble(_plain(kind), _plain(group)):
        found = [name for name in own if name in ("name", "identifier")]
    if not found or _is_secret(own[found[0]], ()):
        return ()
    value = context.params.get(found[0])
    return value if isinstance(value, tuple) else (value,) if value else ()


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
    return json.dumps(text if len(text) <= _LONGEST else f"{text[:_LONGEST]}...", ensure_ascii=False)


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
    if _is_secret(error.param, ()):
        return f"{name} must be {_accepted(error.param.type)}"
    accepted, value = _accepted(error.param.type), _CLICK_VALUE.match(error.message)
    if not accepted or value is None:
        return f"{name}: {_KIND_OF_PATH.sub('', error.message)}"
    return not_accepted(name, _literal(value[1]), f"must be {accepted}")


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
    if isinstance(kind, click.IntRange | click.FloatRange):
        number = "a whole number" if isinstance(kind, click.IntRange) else "a number"
        if kind.max is None:
            return f"{number} of at least {kind.min}"
        return f"{number} from {kind.min} to {kind.max}"
    plain: Mapping[object, str] = {click.INT: "a whole number", click.FLOAT: "a number", click.BOOL: "yes or no"}
    return plain.get(kind, "")
