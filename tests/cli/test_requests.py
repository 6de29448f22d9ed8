"""Operations over the control socket: how the tenant is found, and the rights of the installation."""

import json
import os
import pwd
import re
import socket
from pathlib import Path
from typing import Any

import pytest

import sallyport
from sallyport.base.errors import Refused
from sallyport.cli.connection import Connection
from sallyport.settings.settings import load
from tests.cli import Service, add_domain

LIST = "/ad/GetAllDomains"
MODE = "/ad/updateDomainEnforcement"
WIDE = {"name": "campus", "address": "198.18.0.0/15"}


SOURCE = Path(sallyport.__file__).parent
WORDS = "\n".join(path.read_text() for path in [*SOURCE.rglob("*cli.py"), *SOURCE.rglob("cli/**/*.py")])
PATHS = sorted(set(re.findall(r'"(/(?:ad|api/v1|network_device)/\w[^"]*)"', WORDS)))
COMMANDS = sorted(set(re.findall(r'\.(?:call|row|rows)\(\s*"([a-z_]+\.[a-z_.-]+)"', WORDS)))


def ask(service: Service, **asked: Any) -> Any:
    """Send a request, and return its result or raise its refusal."""
    connection = Connection(settings=load(None, service.environ))
    return connection.call(asked)


def tenants(service: Service) -> list[tuple[int, int]]:
    """Return the tenants of the installation."""
    return [(each["org"], each["tenant"]) for each in service.call("tenant.list")]


def test_an_operation_on_a_domain_needs_no_tenant(service: Service) -> None:
    """An operation on a domain needs only the domain's name or ID, in any tenant. The audit trail has the local
    user.
    """
    domain = add_domain(service, "far", org=9, tenant=4)
    for name in ("FAR", domain):
        changed = ask(service, path=MODE, body={"enforcementMode": "monitor", "fallbackAction": "allow"}, domain=name)
        assert (changed["domainId"], changed["fallbackAction"]) == (int(domain), "allow")
    trail = ask(service, path="/api/v1/audit/list", body={"orgId": 9, "tenantId": 4, "action": "domain.mode"})
    me = pwd.getpwuid(os.geteuid()).pw_name
    assert {(each["actorKind"], each["actor"], each["tokenId"]) for each in trail["entries"]} == {
        ("command line", me, None)
    }


def test_a_domain_name_is_looked_up_in_the_given_tenant(service: Service) -> None:
    """If two tenants have a domain of the same name, the tenant must be given."""
    add_domain(service, "twice")
    theirs = add_domain(service, "twice", org=9, tenant=4)
    body = {"orgId": 9, "tenantId": 4, "fallbackAction": "allow", "enforcementMode": "monitor"}
    assert ask(service, path=MODE, body=body, domain="twice")["domainId"] == int(theirs)
    with pytest.raises(Refused, match="give the id of the domain instead"):
        ask(service, path=MODE, body={"enforcementMode": "monitor"}, domain="twice")


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        pytest.param({"path": "/ad/Nothing"}, "no such operation", id="unknown operation"),
        pytest.param({"path": LIST, "more": 1}, "invalid body", id="unknown field"),
        pytest.param({"path": LIST}, "a domain, or orgId and tenantId", id="no tenant"),
        pytest.param({"path": LIST, "body": {"orgId": 1}}, "missing tenantId", id="half a tenant"),
        pytest.param({"path": LIST, "body": {"orgId": 77, "tenantId": 1}}, "has no tenant 1", id="unknown tenant"),
        pytest.param({"path": LIST, "domain": "nowhere"}, "no domain nowhere", id="unknown domain"),
        pytest.param({"path": MODE, "domain": "default", "body": {"enforcementMode": "hunter2"}}, "enforcementMode",
                     id="wrong value"),
        pytest.param({"path": MODE, "domain": "default", "body": {"orgId": 9, "tenantId": 4}}, "no domain default",
                     id="domain of another tenant"),
        pytest.param({"path": "/api/v1/agent/renewKey", "domain": "default", "body": {"keyHash": "0" * 64}},
                     "role not allowed", id="operation of agents"),
        pytest.param({"path": "/api/v1/uploadLdif", "domain": "default"}, "no such operation", id="upload"),
        pytest.param({"path": LIST, "domain": "default", "body": {"pageId": "hunter2\udcff"}}, "not valid UTF-8",
                     id="octets"),
        pytest.param({"command": "hunter2"}, "does not know this command", id="unknown command"),
    ],
)  # fmt: skip
def test_an_invalid_request_is_refused(service: Service, asked: dict[str, Any], message: str) -> None:
    """The message has the cause and repeats no value of the body. No tenant is created."""
    service.call("tenant.add", org=9, tenant=4)
    before = tenants(service)
    with pytest.raises(Refused, match=message) as refused:
        ask(service, **asked)
    assert "hunter2" not in str(refused.value)
    assert tenants(service) == before


@pytest.mark.parametrize("path", PATHS)
def test_every_operation_of_the_command_line_exists(service: Service, path: str) -> None:
    """Each path in the code of the command line is an operation. A request for it without a tenant is refused."""
    with pytest.raises(Refused, match="a domain, or orgId and tenantId, is required"):
        ask(service, path=path)


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_of_the_command_line_exists(service: Service, command: str) -> None:
    """Each command name in the code of the command line is known. A request with an unknown argument is refused."""
    with pytest.raises(Refused, match=r"invalid body|missing"):
        ask(service, command=command, arguments={"no such argument": 1})


def send(service: Service, line: bytes) -> Any:
    """Send a line to the control socket and return the answer."""
    directory = os.open(service.data_dir, os.O_PATH | os.O_DIRECTORY)
    try:
        with socket.socket(socket.AF_UNIX) as sock:
            sock.settimeout(30)
            sock.connect(f"/proc/self/fd/{directory}/control.sock")
            sock.sendall(line + b"\n")
            return json.loads(sock.makefile("rb").readline())
    finally:
        os.close(directory)


@pytest.mark.parametrize(
    ("line", "message"),
    [
        pytest.param(b'"' + b"x" * (17 << 20) + b'"', "a message has at most 16 MiB", id="message"),
        pytest.param(b'{"command": "token.list", "arguments": {"org": [' + b"1," * 500_000 + b"1]}}",
                     "the message has over 500000 values", id="values"),
        pytest.param(b'{"path": "/ad/AddDomain", "body": {"orgId": "' + b"1" * (2 << 20) + b'"}}',
                     "an operation takes at most 2 MiB", id="operation"),
    ],
)  # fmt: skip
def test_a_too_large_message_is_refused(service: Service, line: bytes, message: str) -> None:
    """A message that is too large is refused because of its size, so that it does not block the event loop. It is read
    completely, so that its sender receives the answer.
    """
    assert send(service, line) == {"error": message, "status": 413, "fields": []}


def test_a_too_long_list_is_refused(service: Service) -> None:
    """The limit of a list is the same as over HTTP, because checking more entries would block the event loop."""
    refused = send(service, b'{"path": "/ad/AddDomain", "body": [' + b"1," * 100_000 + b"1]}")
    assert "at most 1000 entries" in refused["error"]


@pytest.mark.parametrize("padding", [0, 70_000], ids=["small", "parsed in a thread"])
def test_a_too_deeply_nested_body_is_refused(service: Service, padding: int) -> None:
    """For each depth beyond the limit the status is 400, even if the body can be parsed but not serialized."""
    body = b'"x": "%s", "deep": ' % (b"x" * padding)
    for depth in range(900, 1000):
        asked = b'{"path": "/ad/GetAllDomains", "domain": "default", "body": {%s%s%s}}'
        assert send(service, asked % (body, b"[" * depth, b"]" * depth))["status"] == 400


def test_a_list_with_two_tenants_is_refused(service: Service) -> None:
    """A list whose entries have different tenants is refused, so that no entry runs in the tenant of another entry."""
    service.call("tenant.add", org=9, tenant=4)
    entries = [{"orgId": org, "tenantId": tenant, "DirectoryName": "x"} for org, tenant in ((1, 1), (9, 4))]
    with pytest.raises(Refused, match="scope mismatch"):
        ask(service, path="/api/v1/getImportStatus", body=entries, domain="default")


def test_a_token_cannot_act_as_the_installation(service: Service) -> None:
    """A wide range that contains a range of another tenant is refused if an admin's token is used. It is accepted from
    the local user.
    """
    add_domain(service, "beside", org=9, tenant=4)
    body = {"orgId": 1, "tenantId": 1, **WIDE}
    service.post("/network_device/AddClient", body, status=403)
    for field in ("is_installation", "isInstallation"):
        service.post("/network_device/AddClient", {**body, field: True}, status=400)
    assert ask(service, path="/network_device/AddClient", body=body)["clientId"]


@pytest.mark.parametrize("role", ["installation", "command line", "agent", "wallet"])
def test_internal_roles_are_not_given_to_tokens(service: Service, role: str) -> None:
    """A token can only have the role admin, operator or auditor."""
    with pytest.raises(Refused, match="role"):
        ask(service, command="token.create", arguments={"org": 1, "tenant": 1, "role": role})


def test_an_operation_has_the_same_result_as_over_http(service: Service) -> None:
    body = {"orgId": 1, "tenantId": 1, "pageSize": 100}
    assert service.run(LIST, body) == service.post(LIST, body)


@pytest.mark.parametrize(("number", "words"), [(61, ("domain", "add", "new")), (62, ("token", "create"))])
def test_a_new_tenant_is_reported(service: Service, number: int, words: tuple[str, ...]) -> None:
    """`domain add` and `token create` create a missing tenant and report it once, on standard error."""
    scope = ("--org", str(number), "--tenant", "2")
    done = service.cli(*words, *scope)
    report = [f"organization {number} is new", f"tenant 2 of organization {number} is new"]
    assert (done.returncode, done.stderr.splitlines()[:2], len(done.stdout.splitlines())) == (0, report, 1)
    assert "tenant remove" in done.stderr.splitlines()[2]
    known = service.cli("domain", "add", "other", *scope)
    assert (known.returncode, known.stderr) == (0, "")


@pytest.mark.parametrize("words", [(" ",), ("x", "--realm", "")], ids=["name", "realm"])
def test_a_refused_domain_creates_no_tenant(service: Service, words: tuple[str, ...]) -> None:
    """A refused `domain add` creates no tenant, because a second tenant would restrict the first one."""
    refused = service.cli("domain", "add", *words, "--org", "64", "--tenant", "1")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "is new" not in refused.stderr
    assert (64, 1) not in tenants(service)


def test_other_commands_refuse_an_unknown_tenant(service: Service) -> None:
    """`client add` does not create a missing tenant."""
    refused = service.cli("client", "add", "x", "--address", "192.0.2.99", "--org", "63", "--tenant", "1")
    assert (refused.returncode, refused.stdout) == (1, "")
    assert "organization 63 has no tenant 1" in refused.stderr
    assert (63, 1) not in tenants(service)
