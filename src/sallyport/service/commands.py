"""Requests of the command line. The command line can run every operation of the API, and commands that the API does not
have.

    {"path": "/ad/PreviewEnforcement", "body": {"days": 7}, "domain": "corp"}
    {"command": "db.backup", "arguments": {"path": "/var/backups/sallyport.db"}}

The caller of an operation is the installation, which acts as an admin in each tenant. The tenant comes from orgId and
tenantId in the body, or from the domain. A domain is given by its name or id.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Annotated

import trio
from pydantic import Field, ValidationError

from sallyport.base.actor import Actor, acting_as
from sallyport.base.errors import Invalid, NotFound
from sallyport.base.fair import in_parts
from sallyport.base.validation import refusal
from sallyport.base.wire import JSON
from sallyport.service.app import App
from sallyport.shell.command import Arguments, Commands
from sallyport.web.bodies import Whole
from sallyport.web.handling import MAX_ENTRIES
from sallyport.web.operation import Operation, Operations
from sallyport.web.scope import Caller, Role


class AskedOperation(Arguments):
    """A request to run an operation.

    domain, domains: the names or ids of domains. They set domainId and domainIds in the body. orgId and tenantId are
    set, too. If the entries of a list belong to several tenants, the request is rejected. override: whether to change
    objects that files manage.
    """

    path: str
    body: dict[str, object] | Annotated[list[dict[str, object]], Field(max_length=MAX_ENTRIES)] = Field(
        default_factory=dict
    )
    domain: str | None = None
    domains: list[str] | None = None
    override: bool = False


class AskedCommand(Arguments):
    """A request to run a command."""

    command: str
    arguments: dict[str, object] = Field(default_factory=dict)


class Scope(Arguments):
    """The tenant of a request, from the fields orgId and tenantId of the body."""

    orgId: Whole  # noqa: N815
    tenantId: Whole  # noqa: N815


class Requests:
    """The service that runs the requests of the command line."""

    def __init__(self, app: App, operations: Iterable[Operations]) -> None:
        self._tenancy = app.tenancy.service
        self._domains = app.domains.service
        self._commands = commands(app)
        self._operations: dict[str, Operation] = {}
        for each in (operation for several in operations for operation in several.all):
            for path in each.paths:
                self._operations.setdefault(path, each)

    async def run(self, asked: Mapping[str, object], user: str) -> bytes:
        """Run a request and return its result in JSON. user: the local user, for the audit trail.

        Raises Invalid or NotFound if the operation, command, domain or tenant does not exist. Also raises all errors of
        the operation.
        """
        try:
            if "path" in asked:
                return await self._operate(AskedOperation.model_validate(asked), user)
            wanted = AskedCommand.model_validate(asked)
        except ValidationError as error:
            raise refusal(error) from None
        # In a thread, because the arguments of an import may contain thousands of clients.
        ready = await trio.to_thread.run_sync(self._commands.ready, wanted.command, wanted.arguments)
        with acting_as(Actor("command line", user)):
            return await _encoded(await ready())

    async def _operate(self, asked: AskedOperation, user: str) -> bytes:
        operation = self._operations.get(asked.path)
        if operation is None or operation.run is None:
            raise NotFound("no such operation; the running service may have another version")
        bodies = asked.body if isinstance(asked.body, list) else [asked.body]
        tenant_id = await self._tenant(bodies[0] if bodies else {}, asked.domain)
        organization, number = (await self._tenancy.numbers())[tenant_id]
        filled: dict[str, object] = {"orgId": organization, "tenantId": number}
        if asked.domain is not None and operation.takes("domainId"):
            filled["domainId"] = self._domains.named(tenant_id, asked.domain).id
        if asked.domains is not None:
            filled["domainIds"] = [self._domains.named(tenant_id, name).id for name in asked.domains]
        whole = [{**filled, **body} for body in bodies]  # the gate compares the scope in each body with the caller
        caller = Caller(0, organization, number, tenant_id, Role.ADMIN, user, is_installation=True)
        try:
            octets = json.dumps(whole if isinstance(asked.body, list) else whole[0], ensure_ascii=False).encode()
        except UnicodeEncodeError:  # an option of the command line may contain text in any encoding
            raise Invalid("a value is not valid UTF-8") from None
        except RecursionError:
            raise Invalid("the body is nested too deeply") from None
        return await operation.run(octets, caller, override=asked.override)

    async def _tenant(self, body: Mapping[str, object], domain: str | None) -> int:
        """Return the internal id of the tenant of a request."""
        if "orgId" in body or "tenantId" in body:
            scope = Scope.model_validate({name: body[name] for name in ("orgId", "tenantId") if name in body})
            return await self._tenancy.tenant_id(scope.orgId, scope.tenantId)
        if domain is None:
            raise Invalid("a domain, or orgId and tenantId, is required")
        return self._domains.anywhere(domain).tenant_id


async def _encoded(result: JSON) -> bytes:
    """Return a result in JSON. A list is encoded in parts, because a list of tokens may have a million entries; so is
    a list in an object, such as the steps of a plan."""
    if isinstance(result, dict):
        pairs = [_octets(name) + b": " + await _encoded(each) for name, each in result.items()]
        return b"{" + b", ".join(pairs) + b"}"
    if isinstance(result, list):
        return b"[" + b", ".join(await in_parts(_octets, result)) + b"]"
    return _octets(result)


def _octets(result: JSON) -> bytes:
    return json.dumps(result).encode()


def commands(app: App) -> Commands:
    """Return every command of the control socket, by name."""
    return Commands([area.commands() for area in app.areas])
