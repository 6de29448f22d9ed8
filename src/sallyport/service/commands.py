"""Requests of the command line. The command line can run every operation of the API, and commands that the API does not
have.

    {"path": "/ad/PreviewEnforcement", "body": {"days": 7}, "domain": "corp"}
    {"command": "db.backup", "arguments": {"path": "/var/backups/sallyport.db"}}

The caller of an operation is the installation, which acts as an admin in each tenant. The tenant comes from orgId and
tenantId in the body, or from the domain. A domain is given by its name or id.
"""

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated, Literal

import trio
from pydantic import Field, ValidationError

from sallyport.areas.audit import commands as audit_commands
from sallyport.areas.clients import commands as client_commands
from sallyport.areas.devices import commands as device_commands
from sallyport.areas.directory import commands as directory_commands
from sallyport.areas.domains import commands as domain_commands
from sallyport.areas.domains.bodies import AddDomain
from sallyport.areas.domains.operations import added
from sallyport.areas.events import commands as event_commands
from sallyport.areas.login.listen import senders
from sallyport.areas.signin import commands as administrator_commands
from sallyport.areas.tenancy import commands as token_commands
from sallyport.areas.tenancy.tenants import Tenants
from sallyport.areas.users import commands as endpoint_commands
from sallyport.base import log
from sallyport.base.actor import Actor, acting_as
from sallyport.base.clock import now_us
from sallyport.base.errors import Invalid, NotFound
from sallyport.base.fair import in_parts
from sallyport.base.validation import refusal
from sallyport.base.wire import JSON
from sallyport.certs import commands as cert_commands
from sallyport.deploy import commands as setting_commands
from sallyport.metrics import render
from sallyport.nodes import commands as node_commands
from sallyport.service.app import App
from sallyport.settings.settings import Settings
from sallyport.shell.command import Arguments, Command, Commands, command
from sallyport.store import commands as store_commands
from sallyport.web.operation import MOST_ENTRIES, Operation, Operations
from sallyport.web.scope import Caller, Role, Whole


class AskedOperation(Arguments):
    """A request to run an operation.

    domain, domains: the names or ids of domains. They set domainId and domainIds in the body. orgId and tenantId are
    set, too. If the entries of a list belong to several tenants, the request is rejected.
    """

    path: str
    body: dict[str, object] | Annotated[list[dict[str, object]], Field(max_length=MOST_ENTRIES)] = Field(
        default_factory=dict
    )
    domain: str | None = None
    domains: list[str] | None = None


class AskedCommand(Arguments):
    """A request to run a command."""

    command: str
    arguments: dict[str, object] = Field(default_factory=dict)


class Scope(Arguments):
    """The tenant of a request, from the fields orgId and tenantId of the body."""

    orgId: Whole  # noqa: N815
    tenantId: Whole  # noqa: N815


class Level(Arguments):
    """Arguments of log.level. level: the lowest level to log. If None, the command only returns the current level."""

    level: Literal["debug", "info", "warning", "error"] | None = None


class Unanswered(Arguments):
    """Arguments of listen.senders. own: whether to leave out the senders of other machines."""

    own: bool = False


class DomainOf(Arguments):
    """Arguments of session.domain. session: the id of a session."""

    session: int


class Requests:
    """The service that runs the requests of the command line."""

    def __init__(self, app: App, operations: Iterable[Operations]) -> None:
        self._tenancy = app.tenancy
        self._domains = app.domains
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
        return await operation.run(octets, caller)

    async def _tenant(self, body: Mapping[str, object], domain: str | None) -> int:
        """Return the internal id of the tenant of a request."""
        if "orgId" in body or "tenantId" in body:
            scope = Scope.model_validate({name: body[name] for name in ("orgId", "tenantId") if name in body})
            return await self._tenancy.tenant_id(scope.orgId, scope.tenantId)
        if domain is None:
            raise Invalid("a domain, or orgId and tenantId, is required")
        return self._domains.anywhere(domain).tenant_id


async def _encoded(result: JSON) -> bytes:
    """Return a result in JSON. A list is encoded in parts, because a list of tokens may have a million entries."""
    if isinstance(result, list):
        return b"[" + b", ".join(await in_parts(_octets, result)) + b"]"
    return _octets(result)


def _octets(result: JSON) -> bytes:
    return json.dumps(result).encode()


def commands(app: App) -> Commands:
    """Return every command of the control socket, by name."""

    def find_domain(name: str) -> int:
        return app.domains.anywhere(name).id

    return Commands(
        [
            token_commands.commands(app.tenancy, Tenants(app.store, app.tenancy, now_us), now_us),
            administrator_commands.commands(
                app.administrators, app.identities, app.console_sessions, app.tenancy, app.administrator_uri
            ),
            cert_commands.commands(
                app.certificate_files,
                app.issued,
                app.tenancy,
                app.note,
                app.revocations.revoke_certified,
                _certificates(app.settings),
            ),
            audit_commands.commands(app.audit, app.tenancy, find_domain),
            domain_commands.commands(app.domains, app.removal),
            client_commands.commands(
                app.clients, app.tenancy, lambda tenant_id, name: app.domains.named(tenant_id, name).id
            ),
            device_commands.commands(app.devices),
            endpoint_commands.commands(app.store, app.instances, app.accounts, app.seeds, find_domain),
            directory_commands.commands(app.directory.directories, find_domain),
            event_commands.commands(app.events, app.domains.anywhere),
            node_commands.commands(app.cluster),
            setting_commands.commands(app.settings),
            store_commands.commands(app.copies, app.rotation),
            _single_commands(app),
        ]
    )


def _certificates(settings: Settings) -> dict[str, Path]:
    """Return the files of certificates that the settings name, by the names of the settings."""
    named = {"tls_certificate": settings.tls_certificate, "eap_certificate": settings.eap_certificate}
    found = {name: path for name, path in {**named, "eap_ca": settings.eap_ca}.items() if path is not None}
    return dict(found)


def _single_commands(app: App) -> dict[str, Command]:
    """Return the commands of areas that have only one command, and the commands that workers send to each other."""

    async def add(wanted: AddDomain) -> JSON:
        """Add a domain in one transaction. If its tenant does not exist yet, add the tenant too."""
        before = await app.tenancy.numbers()
        made = await added(app.domains, app.tenancy.tenant_maker(wanted.orgId, wanted.tenantId), wanted)
        return {**made.model_dump(), "new": token_commands.new(before, wanted.orgId, wanted.tenantId)}

    async def own_senders(_: Arguments) -> JSON:
        return list[JSON](senders.listed(app.senders, app.clients.table.find, app.cluster.name))

    async def unanswered(wanted: Unanswered) -> JSON:
        elsewhere = [] if wanted.own else await app.node_senders.elsewhere()
        lists = [
            await own_senders(wanted),
            *(await app.siblings.ask("worker.senders")).values(),
            list[JSON](senders.still_unknown(elsewhere, app.clients.table.find)),
        ]
        return list[JSON](
            senders.merged([row for each in lists if isinstance(each, list) for row in each if isinstance(row, dict)])
        )

    async def own_level(wanted: Level) -> JSON:
        if wanted.level is not None:
            log.set_level(wanted.level)
        return log.level()

    async def level(wanted: Level) -> JSON:
        await app.siblings.ask("worker.level", level=wanted.level)
        return await own_level(wanted)

    async def own_metrics(_: Arguments) -> JSON:
        return (await trio.to_thread.run_sync(render, app.registry)).decode()

    async def domain(wanted: DomainOf) -> JSON:
        """Return the domain of a session. The command line has only the id of the session, but operations need the
        domain."""
        return await app.sessions.domain_of(wanted.session)

    return {
        "domain.add": command(AddDomain, add),
        "listen.senders": command(Unanswered, unanswered),
        "log.level": command(Level, level),
        "session.domain": command(DomainOf, domain),
        "worker.level": command(Level, own_level),
        "worker.metrics": command(Arguments, own_metrics),
        "worker.senders": command(Arguments, own_senders),
    }
