"""Messages of the command line: each names the option that was given, its value and the accepted values."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from sallyport.base.options import Time
from sallyport.cli import checks
from sallyport.cli.main import root
from tests.cli import TENANT, Service

TYPED = (click.Choice, click.IntRange, click.FloatRange, Time, click.types.IntParamType, click.types.FloatParamType)
SECRETS = re.compile(r"--.*(password|secret)$")
WRONG = "wr0ng v@lue"
DOTTED = re.compile(r"[A-Za-z]\.(\d+|[a-z]+[A-Z]\w*)\b")
DOMAIN = ("--domain", "default")
REMEDY = re.compile(
    r"sallyport [a-z]|chmod|chown|\b(set|unset|install|restart|restore|free some|raise|renew|issue it|append|"
    r"fetch|decrypt|give it|register it|have it signed|check the|switch the|enough|make it one|remove)\b"
)
THEIR_OWN = re.compile(r"\{(remedy|text|each\['weakness'\]|missing|how|LOCKED)\}")
"""Texts that come with a remedy of their own."""


def options(group: click.Group = root, before: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], click.Option]]:
    """Every option of the tree that has a choice or a converter, with the words of its command."""
    context = click.Context(group)
    for name in group.list_commands(context):
        command = group.get_command(context, name)
        assert command is not None
        if isinstance(command, click.Group):
            yield from options(command, (*before, name))
            continue
        for each in command.params:
            is_typed = isinstance(each.type, TYPED) or (isinstance(each.type, click.Path) and each.type.exists)
            if isinstance(each, click.Option) and is_typed and not each.is_flag:
                yield (*before, name), each


@pytest.mark.parametrize(("words", "option"), [pytest.param(w, o, id=" ".join((*w, o.opts[0]))) for w, o in options()])
def test_a_wrong_value_is_named(service: Service, words: tuple[str, ...], option: click.Option) -> None:
    """The message has the option as it was typed and the value, and no path of a body. A secret is not repeated."""
    done = service.cli(*words, option.opts[0], WRONG)
    first = done.stderr.splitlines()[0]
    assert (done.returncode, done.stdout) == (2, "")
    assert first.startswith("sallyport: --") and option.opts[0] in first
    assert (WRONG in done.stderr) is not bool(SECRETS.match(option.opts[0]))
    assert not DOTTED.search(first)
    assert done.stderr.splitlines()[1] == f"Try: sallyport {' '.join(words)} --help"


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (
            ("client", "add", "x", *TENANT, "--address", "10.0.0.300"),
            '--address: "10.0.0.300" is not understood',
        ),
        (
            ("client", "add", "x", *TENANT, "--address", "10.9.9.9", "--tls-fingerprint", "zz"),
            '--tls-fingerprint: "zz"',
        ),
        (
            ("client", "add", "", *TENANT, "--address", "10.9.9.9"),
            'NAME: "" is not understood; give at',
        ),
        (("domain", "add", "x", *TENANT, "--realm", "@@"), '--realm: "@@" is not understood; give a realm'),
        (
            ("audit", "list", "--since", "yesterdy"),
            '--since: "yesterdy" is not understood; give 2026-11-23,',
        ),
        (("event", "list", *DOMAIN, "--from", "yesterdy"), '--from: "yesterdy" is not understood; give 2026-11-23'),
        (("token", "create", *TENANT, "--expires", "soon"), '--expires: "soon" is not understood; give 90d, 12h'),
        (
            ("rule", "add", "r", "--action", "block", *DOMAIN, "--kind", "robot"),
            '--kind: "robot" is not understood',
        ),
        (
            ("rule", "add", "r", "--action", "block", *DOMAIN, "--time", "25:00-26:00"),
            '--time: "25:00" is not',
        ),
        (("rule", "add", "r", "--action", "block", *DOMAIN, "--reply", "Foo=1"), '--reply: "Foo": no RADIUS attribute'),
        (("bypass", "add", "zz", *DOMAIN), 'STATIONS: "zz" is not understood; give a MAC address'),
        (("instance", "add", "x", *DOMAIN, "--public-ip", "1.2.3.300"), '--public-ip: "1.2.3.300" is not understood'),
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
            '--at: "25:00" is not understood; give times',
        ),
        (("domain", "mode", "default", "montor"), 'MODE: "montor" is not understood; give monitor or enforce'),
        (("session", "change", "1", "--set", "x"), '--set: "x" is not understood; give NAME=VALUE'),
        (("rule", "add", "r", "--action", "block", *DOMAIN, "--reply", "x"), '--reply: "x" is not understood'),
        (("check", "radius", "h:x", "--secret", "s", "--status"), 'HOST[:PORT]: "h:x" is not understood; give a host'),
        (
            ("policy", "add", "x", *TENANT, "--min-length", "8", "--max-length", "3"),
            '--max-length: "3" is not understood; give a whole number that is not below --min-length',
        ),
        (
            ("instance", "add", "x", *DOMAIN, "--os", "9"),
            '--os: "9" is not understood; give a whole number from 0 to 4',
        ),
        (("did", "create", "", *DOMAIN), 'NAME: "" is not understood; give a name'),
        (
            ("agent", "key", "create", *TENANT, *DOMAIN, "--service", "foo"),
            '--service: "foo" is not understood; give a URL such as https://',
        ),
        (
            ("rule", "add", "odd", "--action", "block", *DOMAIN, "--station", "zz"),
            'warning: --station "zz": neither a MAC',
        ),
        (("db", "backup", "/no/such/file"), "/no/such/file: No such file or directory"),
        (("client", "add", "x"), "--org is missing: orgId of the client."),
        (("rule", "add", "x", *DOMAIN), "--action is missing; give allow, block or mfa_required"),
        (("db", "restore", "/no/such/file"), "FILE: '/no/such/file' does not exist."),
    ],
)
def test_a_refused_value_names_its_option(service: Service, words: tuple[str, ...], told: str) -> None:
    """What the service refuses is told by the option or argument that it came from, with the accepted values."""
    done = service.cli(*words)
    assert told in done.stderr
    assert not DOTTED.search(done.stderr)


@pytest.mark.parametrize(
    ("words", "told"),
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
def test_what_does_not_exist_is_named_with_its_list(service: Service, words: tuple[str, ...], told: str) -> None:
    """The message has the name that was given and the command that shows those that exist; a token is not repeated."""
    done = service.cli(*words)
    assert (done.returncode, done.stdout) == (1, "")
    assert done.stderr == f"sallyport: {told}\n"


def test_a_secret_is_never_repeated(service: Service) -> None:
    """A password that the service refuses is told by its option alone."""
    done = service.cli("user", "add", "x", *DOMAIN, "--password", "-", input="hunter2" * 100 + "\n")
    assert done.returncode == 1
    assert "--password" in done.stderr and "hunter2" not in done.stderr
    done = service.cli("client", "add", "x", *TENANT, "--address", "10.9.9.9", "--secret", "hunter2" * 100)
    assert done.returncode == 1
    assert "--secret" in done.stderr and "hunter2" not in done.stderr
    done = service.cli("provider", "set", "default", "webhook", "--field", "hunter2")
    assert done.returncode == 2
    assert "--field" in done.stderr and "hunter2" not in done.stderr


@pytest.mark.parametrize("kind", ["instance", "group"])
def test_the_names_that_exist_are_given(service: Service, kind: str) -> None:
    """A wrong name is answered with the names of the same domain that are most like it."""
    service.ok(kind, "add", "server-1", *DOMAIN)
    service.ok(kind, "add", "other", *DOMAIN)
    done = service.cli(kind, "assign", "servr-1", *DOMAIN, "--user", "x")
    hint = f"see: sallyport {kind} list --domain default"
    assert done.stderr == f'sallyport: {kind} "servr-1" not found; existing: server-1, and 1 more; {hint}\n'


def test_each_finding_has_a_remedy() -> None:
    """The text of each warning and problem of the doctor contains a command, a setting or an action."""
    bare: list[str] = []
    for file in sorted(Path(checks.__file__).parent.glob("*.py")):
        for node in ast.walk(ast.parse(file.read_text())):
            is_finding = isinstance(node, ast.Call) and getattr(node.func, "id", "") in ("warning", "problem")
            if is_finding and (isinstance(node.args[0], ast.JoinedStr | ast.Constant)):
                text = ast.unparse(node.args[0])
                if not (REMEDY.search(text) or THEIR_OWN.search(text)):
                    bare.append(f"{file.name}:{node.lineno}: {text}")
    assert bare == []
