"""Messages of the command line. Each names the option, the value that was given, and the accepted values."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from sallyport.cli import checks
from sallyport.cli.main import root
from sallyport.shell.options import Time
from tests.cli import TENANT, Service

TYPED = (click.Choice, click.IntRange, click.FloatRange, Time, click.types.IntParamType, click.types.FloatParamType)
SECRETS = re.compile(r"--.*(password|secret)$")
SECRET_OPTION = re.compile(r"--(.*-)?(secret|password|token|key|code|pin|seed)$")
WRONG = "wr0ng v@lue"
DOTTED = re.compile(r"[A-Za-z]\.(\d+|[a-z]+[A-Z]\w*)\b")
DOMAIN = ("--domain", "default")
REMEDY = re.compile(
    r"sallyport [a-z]|chmod|chown|\b(set|unset|install|restart|restore|free some|raise|renew|issue it|append|"
    r"fetch|decrypt|give it|register it|have it signed|check the|switch the|enable|put the|enough|make it one|remove)\b"
)
THEIR_OWN = re.compile(r"\{(remedy|text|each\['weakness'\]|missing|how|LOCKED)\}")
"""Values for the placeholders of texts that contain a remedy."""


def all_options(
    group: click.Group = root, before: tuple[str, ...] = ()
) -> Iterator[tuple[tuple[str, ...], click.Command, click.Option]]:
    """Yield every option of the tree that takes a value, with its command and the words that call the command."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from all_options(command, (*before, name))
            continue
        for each in command.params:
            if isinstance(each, click.Option) and not each.is_flag:
                yield (*before, name), command, each


def options() -> Iterator[tuple[tuple[str, ...], click.Option]]:
    """Yield every option that has a choice or a converter, with the words that call its command."""
    for words, _, each in all_options():
        if isinstance(each.type, TYPED) or (isinstance(each.type, click.Path) and each.type.exists):
            yield words, each


@pytest.mark.parametrize(("words", "option"), [pytest.param(w, o, id=" ".join((*w, o.opts[0]))) for w, o in options()])
def test_a_message_names_the_option_and_the_wrong_value(
    service: Service, words: tuple[str, ...], option: click.Option
) -> None:
    """The message names the option as it was typed, and no path in a request body. It does not repeat a secret."""
    done = service.cli(*words, option.opts[0], WRONG)
    first = done.stderr.splitlines()[0]
    assert (done.returncode, done.stdout) == (2, "")
    assert first.startswith("sallyport: --") and option.opts[0] in first
    assert (WRONG in done.stderr) is not bool(SECRETS.match(option.opts[0]))
    assert not DOTTED.search(first)
    assert done.stderr.splitlines()[1] == f"Try: sallyport {' '.join(words)} --help"


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (
            ("client", "add", "x", *TENANT, "--address", "10.0.0.300"),
            '--address: "10.0.0.300" is not accepted',
        ),
        (
            ("client", "add", "x", *TENANT, "--address", "10.9.9.9", "--tls-fingerprint", "zz"),
            '--tls-fingerprint: "zz"',
        ),
        (
            ("client", "add", "", *TENANT, "--address", "10.9.9.9"),
            'NAME: "" is not accepted: must have at',
        ),
        (("domain", "add", "x", *TENANT, "--realm", "@@"), '--realm: "@@" is not accepted: must be a realm'),
        (
            ("audit", "list", "--since", "yesterdy"),
            '--since: "yesterdy" is not accepted: must be a time such as 2026-11-23,',
        ),
        (
            ("event", "list", *DOMAIN, "--from", "yesterdy"),
            '--from: "yesterdy" is not accepted: must be a time such as 2026-11-23',
        ),
        (
            ("token", "create", *TENANT, "--expires", "soon"),
            '--expires: "soon" is not accepted: must be a time such as 90d, 12h',
        ),
        (
            ("rule", "add", "r", "--action", "block", *DOMAIN, "--kind", "robot"),
            '--kind: "robot" is not accepted',
        ),
        (
            ("rule", "add", "r", "--action", "block", *DOMAIN, "--time", "25:00-26:00"),
            '--time: "25:00" is not',
        ),
        (
            ("rule", "add", "r", "--action", "block", *DOMAIN, "--reply", "Foo=1"),
            '--reply: "Foo" is not accepted: no RADIUS attribute',
        ),
        (
            ("rule", "remove", "guests", *DOMAIN),
            'RULE_IDS: "guests" is not accepted: must be a whole number of at least 1; see: sallyport rule list '
            "--domain default",
        ),
        (("session", "disconnect", "x"), "at least 1; see: sallyport session list"),
        (("bypass", "add", "zz", *DOMAIN), 'STATIONS: "zz" is not accepted: must be a MAC address'),
        (("instance", "add", "x", *DOMAIN, "--public-ip", "1.2.3.300"), '--public-ip: "1.2.3.300" is not accepted'),
        (
            ("policy", "add", "x", *TENANT, "--pwq-minlen", "many"),
            '--pwq-minlen: "many" is not',
        ),
        (
            ("policy", "add", "x", *TENANT, "--min-length", "many"),
            '--min-length: "many" is not',
        ),
        (
            ("domain", "first-factor", "default", "ldap", "--ldap-server", "x"),
            '--ldap-server: "x" is not',
        ),
        (("domain", "first-factor", "default", "ldap", "--ldap-server", "x"), "--base-dn is missing"),
        (("domain", "first-factor", "default", "radius", "--radius-server", "x"), "--radius-secret is missing"),
        (
            ("directory", "schedule", "x", *DOMAIN, "--at", "25:00"),
            '--at: "25:00" is not accepted: must be times',
        ),
        (("domain", "mode", "default", "montor"), 'MODE: "montor" is not understood; give monitor or enforce'),
        (("session", "change", "1", "--set", "x"), '--set: "x" is not understood; give NAME=VALUE'),
        (("rule", "add", "r", "--action", "block", *DOMAIN, "--reply", "x"), '--reply: "x" is not understood'),
        (
            ("rule", "add", "r", "--action", "block", *DOMAIN, "--reply", "Nope=1"),
            '--reply: "Nope" is not accepted: no RADIUS attribute of this name',
        ),
        (("check", "radius", "h:x", "--secret", "s", "--status"), 'HOST[:PORT]: "h:x" is not understood; give a host'),
        (
            ("policy", "add", "x", *TENANT, "--min-length", "8", "--max-length", "3"),
            '--max-length: "3" is not accepted: must be a whole number not below --min-length',
        ),
        (
            ("instance", "add", "x", *DOMAIN, "--os", "9"),
            '--os: "9" is not accepted: must be a whole number from 0 to 4',
        ),
        (("did", "create", "", *DOMAIN), 'NAME: "" is not understood; give a name'),
        (
            ("agent", "key", "create", *TENANT, *DOMAIN, "--service", "foo"),
            '--service: "foo" is not accepted: must be a URL such as https://',
        ),
        (
            ("rule", "add", "odd", "--action", "block", *DOMAIN, "--station", "zz"),
            'warning: --station "zz": neither a MAC',
        ),
        (("db", "backup", "/no/such/file"), "the directory /no/such does not exist: make it first"),
        (("db", "backup", "missing"), "there is no directory missing: make it first, or name a file"),
        (("client", "add", "x"), "--org is missing: orgId of the client."),
        (("rule", "add", "x", *DOMAIN), "--action is missing; give allow, block or mfa_required"),
        (("event", "list", *DOMAIN, "--since", "24h"), "no option --since. Options: --domain, --search, --from"),
        (("event", "list", *DOMAIN, "--serch", "x"), 'There is no option --serch. Did you mean "--search"?'),
        (("serve", "--prot", "5"), "There is no option --prot. The command has no options."),
        (("db", "backup", "missing", "--keep", "2"), "the directory missing does not exist: make it first"),
        (("db", "restore", "/no/such/file"), "FILE: '/no/such/file' does not exist."),
    ],
)
def test_a_refused_value_names_its_option(service: Service, words: tuple[str, ...], message: str) -> None:
    """If the service refuses a value, the message names the option or argument that the value came from, and the
    accepted values.
    """
    done = service.cli(*words)
    assert message in done.stderr
    assert not DOTTED.search(done.stderr)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("rule", "remove", "99", *DOMAIN), 'rule "99" not found; see: sallyport rule list --domain default'),
        (("user", "remove", "nope", *DOMAIN), 'user "nope" not found; see: sallyport user list --domain default'),
        (("client", "remove", "nope"), 'RADIUS client "nope" not found; see: sallyport client list'),
        (("group", "remove", "nope", *DOMAIN), 'group "nope" not found; see: sallyport group list --domain default'),
        (("policy", "remove", "99", *TENANT), 'policy "99" not found; see: sallyport policy list --org 1 --tenant 1'),
        (
            ("event", "list", "--domain", "nope"),
            'domain "nope" not found; existing: default; see: sallyport domain list',
        ),
        (("token", "revoke", "spt_pasted"), "token not found; see: sallyport token list"),
    ],
)
def test_a_missing_object_is_named_with_its_list(service: Service, words: tuple[str, ...], message: str) -> None:
    """The message has the name that was given, and the command that lists the existing objects. It does not repeat a
    token.
    """
    done = service.cli(*words)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"sallyport: {message}\n"


def test_a_message_never_repeats_a_secret(service: Service) -> None:
    """If a password or secret is refused, the message names its option but not its value."""
    done = service.cli("user", "add", "x", *DOMAIN, "--password", "-", input="hunter2" * 100 + "\n")
    assert done.returncode == 1
    assert "--password" in done.stderr and "hunter2" not in done.stderr
    done = service.cli("client", "add", "x", *TENANT, "--address", "10.9.9.9", "--secret", "hunter2" * 100)
    assert done.returncode == 1
    assert "--secret" in done.stderr and "hunter2" not in done.stderr
    done = service.cli("provider", "set", "default", "webhook", "--field", "hunter2")
    assert done.returncode == 2
    assert "--field" in done.stderr and "hunter2" not in done.stderr


def secret_options() -> Iterator[tuple[tuple[str, ...], click.Option]]:
    """Yield every option that takes a secret, with a complete command line to put before it."""
    for words, command, option in all_options():
        is_secret = option.metavar != "FILE" and any(SECRET_OPTION.search(each) for each in option.opts)
        if is_secret and not isinstance(option.type, click.Path):
            others = [each for each in command.params if each.required and each is not option]
            yield (*words, *(word for each in others for word in filled(each))), option


def filled(parameter: click.Parameter) -> tuple[str, ...]:
    """Return the words of a required parameter, with a value of its type."""
    value = "127.0.0.1:1" if "HOST" in (parameter.metavar or "") else "1"
    if isinstance(parameter.type, click.Choice):
        value = str(parameter.type.choices[0])
    return (value,) if isinstance(parameter, click.Argument) else (parameter.opts[0], value)


@pytest.mark.parametrize("value", ["hunter2 ü", "hunter2" * 100], ids=["short", "long"])
@pytest.mark.parametrize(
    ("words", "option"), [pytest.param(w, o, id=" ".join((*w, o.opts[0]))) for w, o in secret_options()]
)
def test_no_command_repeats_a_secret(
    service: Service, words: tuple[str, ...], option: click.Option, value: str
) -> None:
    """No message repeats a secret that is given as an argument, whether or not the command accepts it there."""
    done = service.cli(*words, option.opts[0], value)
    assert "hunter2" not in done.stdout + done.stderr


@pytest.mark.parametrize("kind", ["instance", "group"])
def test_a_missing_object_is_answered_with_similar_names(service: Service, kind: str) -> None:
    """If an object is missing, the message has similar names. They are names of the same domain."""
    service.ok(kind, "add", "server-1", *DOMAIN)
    service.ok(kind, "add", "other", *DOMAIN)
    done = service.cli(kind, "assign", "servr-1", *DOMAIN, "--user", "x")
    hint = f"see: sallyport {kind} list --domain default"
    assert done.stderr == f'sallyport: {kind} "servr-1" not found; existing: server-1, and 1 more; {hint}\n'


def test_each_finding_has_a_remedy() -> None:
    """Each warning and each problem of the doctor has a command, a setting or an action in its text."""
    bare: list[str] = []
    for file in sorted(Path(checks.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            is_finding = isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("warning", "problem")
            if is_finding and (isinstance(node.args[0], ast.JoinedStr | ast.Constant)):
                text = ast.unparse(node.args[0])
                if not (REMEDY.search(text) or THEIR_OWN.search(text)):
                    bare.append(f"{file.name}:{node.lineno}: {text}")
    assert bare == []
