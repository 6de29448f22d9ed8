"""Every command that prints data has `--json`. docs/json_fields.yml describes for the reference what it prints."""

import ast
import inspect
import json
import sys
import textwrap
from collections.abc import Callable, Mapping
from typing import Any

import click
import pytest

from docs import reference
from tests.cli import TENANT, Service, add_client, add_domain, add_user
from tests.docs.test_reference import COMMANDS

DOMAIN = ("--domain", "default")
FIELDS = reference.json_fields()
WITH_JSON = {words for words, each in COMMANDS.items() if any("--json" in option.opts for option in each.params)}
PRINTS = {"line.print", "line.print_rows", "line.rows_printer", "line.print_answer", "line.print_json", "click.echo"}
WITHOUT = {
    "check mail": "it prints that the mail was accepted",
    "event export": "its formats are those of --format: CSV or JSON lines",
    "agent install": "it changes the host, and prints the files that it has made",
    "agent uninstall": "it changes the host, and prints what was done",
    "agent endpoint": "a service; --dry-run prints a plan for people",
    "agent directory": "a service; --dry-run prints JSON lines",
    "agent authorized-keys": "sshd reads its output",
    "server install": "it changes the host, and prints what was done",
    "completion": "a shell reads its output",
}
"""The commands that print something and have no --json, with the reason."""


def prints(command: click.Command) -> bool:
    """Return whether a command, or a function of its module that it calls, prints to standard output."""
    assert command.callback is not None
    todo, seen = [inspect.unwrap(command.callback)], set[Callable[..., object]]()
    while todo:
        function = todo.pop()
        seen.add(function)
        for node in ast.walk(ast.parse(textwrap.dedent(inspect.getsource(function)))):
            if not isinstance(node, ast.Call):
                continue
            to_another = any(ast.unparse(each) in ("to=sys.stderr", "err=True") for each in node.keywords)
            if ast.unparse(node.func) in PRINTS and not to_another:
                return True
            called = vars(sys.modules[function.__module__]).get(ast.unparse(node.func))
            if inspect.isfunction(called) and called.__module__ == function.__module__ and called not in seen:
                todo.append(called)
    return False


def test_every_command_that_prints_data_has_json() -> None:
    """A command without --json prints nothing to standard output, or has a reason. No reason is outdated."""
    printing = {words for words, each in COMMANDS.items() if prints(each)}
    assert {"client list", "token create", "check radius"} <= printing
    assert printing - WITH_JSON == WITHOUT.keys()


def test_every_json_is_described() -> None:
    """Each command with --json has an entry, and no entry is outdated. The reference shows its fields."""
    assert FIELDS.keys() == WITH_JSON
    page = reference.commands()
    for words, entry in FIELDS.items():
        text = page.partition(f"\n### {words}\n")[2] or page.partition(f"\n## {words}\n")[2]
        section = text.partition("\n## ")[0].partition("\n### ")[0]
        assert "With `--json`: " in section, words
        assert not [name for name in entry.get("plus", {}) if f"| `{name}` |" not in section], words


@pytest.mark.parametrize("words", [words for words, entry in FIELDS.items() if "operation" in entry])
def test_a_described_operation_has_the_list(words: str) -> None:
    """The operation exists, and its answer has the list that the command prints."""
    assert documented(FIELDS[words])


def resolved(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a schema without references, with the properties of all its parts."""
    while "$ref" in schema:
        schema = reference.api()["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    for choice in schema.get("anyOf", ()):
        if "$ref" in choice:
            return resolved(choice)
    return schema


def documented(entry: Mapping[str, Any]) -> set[str]:
    """Return the names of the documented fields of the objects that a command prints."""
    names = set(entry.get("plus", {}))
    if "operation" in entry:
        (operation,) = reference.api()["paths"][entry["operation"]].values()
        schema = resolved(operation["responses"]["200"]["content"]["application/json"]["schema"])
        if entry.get("list") == "-":
            schema = resolved(schema["items"])
        elif "list" in entry:
            schema = resolved(resolved(schema["properties"][entry["list"]])["items"])
        names |= schema["properties"].keys()
    return names


@pytest.fixture(scope="module")
def filled(service: Service) -> Service:
    """Return the service with an object of each kind that the commands below print."""
    add_domain(service, "json")
    add_user(service, "default", "ann")
    add_client(service, "nas", "192.0.2.9")
    service.ok("cert", "init", "--host", "radius.example.org")
    service.ok("rule", "add", "everyone", "--action", "mfa_required", "--everyone", *DOMAIN)
    service.ok("bypass", "add", "02-00-00-00-00-01", *DOMAIN)
    service.ok("provider", "set", "default", "totp")
    service.ok("directory", "add", "people", "--kind", "ldif", *DOMAIN)
    service.cli("admin", "add", "json", "--password", "-", input="correct horse battery staple\n")
    return service


RUN: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(("client list", "client unknown", "device list", "ssid list", "session list", "station list"), ()),
    **dict.fromkeys(("token list", "tenant list", "node list", "admin list", "admin sessions", "admin identities"), ()),
    **dict.fromkeys(("domain list", "directory list", "audit list", "cert show", "doctor", "log level"), ()),
    **dict.fromkeys(("lockout list", "prompt-pause list", "authority list", "wallet list", "db rotate-key"), ()),
    **dict.fromkeys(("rule list", "role list", "profile list", "bypass list", "bypass unknown"), DOMAIN),
    **dict.fromkeys(
        ("bypass export", "event list", "cert list", "user list", "user export", "user not-enrolled", "did list"),
        DOMAIN,
    ),
    **dict.fromkeys(("directory people", "directory groups", "directory jobs", "directory schedule"), DOMAIN),
    **dict.fromkeys(("instance list", "instance export", "group list", "agent list", "agent key list"), DOMAIN),
    **dict.fromkeys(("agent settings", "schema list", "credential list", "user enrolments"), DOMAIN),
    **dict.fromkeys(("provider check", "provider list", "provider show", "domain preview"), ("default",)),
    "domain first-factor": ("default",),
    "client add": ("one", "--address", "192.0.2.10", *TENANT),
    "client set": ("nas", "--new-secret"),
    "cert issue": ("ann", *TENANT, "--p12", "ann.p12"),
    "cert renew": (),
    "cert check": (),
    "domain add": ("one", *TENANT),
    "domain remove": ("json", "--dry-run"),
    "rule add": ("two", "--action", "mfa_required", "--everyone", *DOMAIN),
    "rule test": ("--user", "ann", *DOMAIN),
    "bypass add": ("02-00-00-00-00-02", "--psk", "generate", *DOMAIN),
    "user totp": ("ann", *DOMAIN),
    "user passkey list": ("--user", "ann", *DOMAIN),
    "user remembered list": DOMAIN,
    "directory show": ("people", *DOMAIN),
    "directory mapping": ("people", *DOMAIN),
    "instance add": ("host", *DOMAIN),
    "group add": ("staff", *DOMAIN),
    "policy add": ("long", "--min-length", "12", *TENANT),
    "policy list": TENANT,
    "agent key create": ("--service", "https://sallyport.example.org", *TENANT, *DOMAIN),
    "did create": ("issuer", *DOMAIN),
    "admin totp": ("json",),
    "token create": TENANT,
    "db backup": ("one.db",),
}
"""Commands with their arguments. Those after a dash of the same group may need the objects of those before."""


@pytest.mark.parametrize("words", RUN)
def test_a_command_prints_the_described_fields(filled: Service, words: str) -> None:
    """Each printed field is described. Where the command line makes the object, each described field is printed."""
    entry = FIELDS[words]
    done = filled.cli(*words.split(), *RUN[words], "--json")
    assert done.returncode == (1 if words in ("doctor", "provider check", "cert check") and done.returncode else 0), (
        done
    )
    printed = json.loads(done.stdout)
    is_list = bool(entry.get("is_array") or "list" in entry) and not entry.get("is_one")
    assert isinstance(printed, list) is is_list
    for each in printed if is_list else [printed]:
        assert each.keys() <= documented(entry)
        assert entry.get("plus", {}).keys() <= each.keys()
