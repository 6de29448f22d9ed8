"""One request of a signed-in person, the operations that its page may run, and the declaration of such pages."""

import json
from collections.abc import Awaitable, Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from types import MappingProxyType
from typing import Final, TypeAlias, cast
from urllib.parse import urlencode

import trio
from starlette.datastructures import QueryParams
from starlette.requests import Request
from starlette.responses import Response

from sallyport.areas.configuration.managed import ManagedByFiles, ManagedObjects
from sallyport.areas.domains.domain import Domain
from sallyport.areas.domains.service import Domains
from sallyport.areas.events.service import Events
from sallyport.areas.signin.openid import OpenId
from sallyport.areas.signin.person import Person
from sallyport.areas.signin.sessions import Sessions
from sallyport.areas.signin.sign_ins import SignIns
from sallyport.areas.tenancy.service import Tenancy
from sallyport.base.actor import acting_as
from sallyport.base.clock import SECOND, Clock, iso
from sallyport.base.errors import Invalid, NotFound, Refused, StoreError
from sallyport.base.wire import JSON, Row
from sallyport.console.assets import Assets
from sallyport.console.guard import TOKEN, check_token
from sallyport.console.live import Feed, Rows, Streams, Viewer
from sallyport.settings.settings import Settings
from sallyport.shell.command import Commands
from sallyport.web import console_pages
from sallyport.web.operation import Operation, Operations
from sallyport.web.scope import ADMINS, INSTALLATIONS, Caller, Gate, Role, not_allowed
from sallyport.web.upload import BeforeFile

_NOTHING: Mapping[str, JSON] = MappingProxyType({})


KEPT_US: Final = 60 * SECOND
"""Time for which the time of the last backup is cached, in microseconds."""
INSISTS: Final = "insists"
"""The field of a form with which a person changes an object although files manage it."""
LastBackup = Callable[[], Awaitable[int | None]]


@dataclass(frozen=True, slots=True)
class Status:
    """The status line below each page. now: the time of the service. backup: the time of the last backup; an empty text
    if there is none, and None if the store cannot be read."""

    version: str
    node: str
    now: str
    backup: str | None


class StatusLine:
    """The reader of the status line. last_backup: returns the time of the last backup in microseconds, or None without
    a backup. Each process reads it at most once a minute."""

    def __init__(self, version: str, node: str, last_backup: LastBackup, clock: Clock) -> None:
        self._version = version
        self._node = node
        self._last_backup = last_backup
        self._clock = clock
        self._backup: str | None = None
        self._read_at: int | None = None
        self._reading = trio.Lock()

    async def read(self) -> Status:
        """Return the present status."""
        async with self._reading:
            now = self._clock()
            if self._read_at is None or not 0 <= now - self._read_at < KEPT_US:
                self._backup, self._read_at = await self._found(), now
        return Status(self._version, self._node, iso(now), self._backup)

    async def _found(self) -> str | None:
        try:
            at = await self._last_backup()
        except StoreError:
            return None
        return iso(at) if at else ""


class Services:
    """The objects that pages may use: the operations of the API, the commands of the control socket, the sessions, the
    stream of new logins, the status line, and the settings for display. stopping: an event that is set when the
    service begins to stop. open_id: the identity providers. managed: the objects that files manage. templates: the
    folders of the templates of areas.
    """

    def __init__(
        self,
        operations: Sequence[Operations],
        commands: Commands,
        gate: Gate,
        domains: Domains,
        tenancy: Tenancy,
        sessions: Sessions,
        sign_ins: SignIns,
        events: Events,
        settings: Settings,
        stopping: trio.Event,
        open_id: OpenId,
        managed: ManagedObjects,
        status: StatusLine,
        clock: Clock,
        templates: Iterable[Path] = (),
    ) -> None:
        self.commands = commands
        self.gate = gate
        self.domains = domains
        self.tenancy = tenancy
        self.sessions = sessions
        self.sign_ins = sign_ins
        self.open_id = open_id
        self.managed = managed
        self.status = status
        self.clock = clock
        self.settings = settings
        self.assets = Assets(templates)
        self.events = events
        self.streams = Streams(Feed(events), stopping)
        self._operations: dict[str, Operation] = {}
        for each in (operation for several in operations for operation in several.all):
            for path in each.paths:
                self._operations.setdefault(path, each)

    def takes(self, path: str, field: str) -> bool:
        """Return whether the body of an operation has a field."""
        return self._operations[path].takes(field)

    async def run(self, path: str, body: object, caller: Caller, *, override: bool) -> JSON:
        """Run an operation after all checks of the API. override: whether it may change objects that files manage.
        Raises Refused, StoreError."""
        operation = self._operations[path]
        if operation.run is None:
            raise LookupError(f"{path} takes a file")
        octets = json.dumps(body, ensure_ascii=False).encode(errors="replace")
        with self.gate.running(caller):
            answer = await operation.run(octets, caller, override=override)
        await trio.lowlevel.checkpoint()
        return cast(JSON, json.loads(answer))

    async def upload(self, path: str, request: Request, caller: Caller, before_file: BeforeFile) -> JSON:
        """Run an operation with a file after all checks of the API. Raises Refused, StoreError, OSError."""
        operation = self._operations[path]
        if operation.take is None:
            raise LookupError(f"{path} takes no file")
        return cast(JSON, json.loads(await operation.take(request, caller, before_file)))


@dataclass(frozen=True, slots=True)
class FormProblem:
    """The reason why a form was refused. fields: the reason for each wrong field, by the name that the field has in the
    operation. can_insist: whether files manage the object, so that the form shows the field INSISTS."""

    message: str
    fields: Mapping[str, str]
    can_insist: bool = False

    @classmethod
    def of(cls, error: Refused) -> "FormProblem":
        """Return the problem of an error."""
        wrong = error.errors if isinstance(error, Invalid) else ()
        message = error.reason if isinstance(error, ManagedByFiles) else str(error)
        return cls(message, {each.field: each.message for each in wrong}, isinstance(error, ManagedByFiles))


@dataclass(frozen=True)
class Visit:
    """One request. at: the parameters of the path. query: the parameters of the address. fields: the fields of the
    submitted form; empty if a page is shown. main: the domain that a page shows if the address names none, which is the
    first one with a login; 0 for the first domain of the tenant. problem: the reason why the form was refused, if the
    page is shown again for this reason. key: the key of the form token; empty if the token is checked already."""

    request: Request
    services: Services
    person: Person
    at: Mapping[str, str]
    query: QueryParams
    main: int = 0
    fields: QueryParams = field(default_factory=QueryParams)
    problem: FormProblem | None = None
    key: str = ""

    @property
    def caller(self) -> Caller:
        """The caller of operations."""
        return self.person.caller

    def may(self, roles: frozenset[Role]) -> bool:
        """Return whether the person has one of these roles."""
        return bool(self.person.roles & roles)

    async def call(
        self,
        path: str,
        body: Mapping[str, JSON] | Sequence[Mapping[str, JSON]] = _NOTHING,
        *,
        domain: int | None = None,
    ) -> Row:
        """Run an operation of the API, and return its answer. If the answer is not an object, the result is an object
        that has the answer in the field `message`.

        The method adds orgId and tenantId to the body. If `domain` is given and the operation has a
        domainId, it adds domainId. Raises the same Refused or StoreError as the API. Raises ManagedByFiles if the
        operation changes an object that files manage, unless the form has the field INSISTS.
        """
        caller = self.caller
        filled: dict[str, JSON] = {"orgId": caller.organization, "tenantId": caller.tenant_number}
        if domain is not None and self.services.takes(path, "domainId"):
            filled["domainId"] = domain
        several = [{**filled, **each} for each in ([body] if isinstance(body, Mapping) else body)]
        whole = several[0] if isinstance(body, Mapping) else several
        return _object(await self.services.run(path, whole, caller, override=INSISTS in self.fields))

    async def managed_here(self) -> list[str]:
        """Return the objects of this page that files manage. Raises StoreError."""
        domain_id = self.query.get("domain") or self.main or next((each.id for each in self.domains()), 0)
        return await self.services.managed.named(self.caller.tenant_id, domain_id, self.at, self.query)

    async def managed(self) -> list[Row]:
        """Return the kind, the domain and the name of each object of the tenant that files manage. Raises
        StoreError."""
        found = await self.services.managed.listed(self.caller.tenant_id)
        return [{"kind": each.kind, "domain": each.domain, "name": each.name} for each in found]

    async def upload(self, path: str, sent: dict[str, str] | None = None) -> Row:
        """Run an operation of the API that takes a file, with the form of this request, and return its answer as `call`
        does. The form token and INSISTS must be before the file. sent: gets the fields before the file. Raises Refused,
        StoreError, OSError."""

        def check(fields: dict[str, str]) -> bool:
            check_token(fields.pop(TOKEN, ""), self.key)
            insists = fields.pop(INSISTS, None) is not None
            if sent is not None:
                sent.update(fields)
            return insists

        return _object(await self.services.upload(path, self.request, self.caller, check))

    async def command(self, name: str, /, **arguments: JSON) -> JSON:
        """Run a command of the control socket. It is used for data that belongs to no tenant. Only an installation
        administrator may do this. Raises Refused, StoreError."""
        if not self.person.is_installation:
            raise not_allowed(self.caller.role, INSTALLATIONS)
        ready = self.services.commands.ready(name, arguments)
        with acting_as(self.caller.actor):
            return await ready()

    async def tenant_command(self, name: str, /, **arguments: JSON) -> JSON:
        """Run a command of the control socket in the tenant of the person. The method sets the arguments `org` and
        `tenant`, whatever the caller gives. Only an admin may do this. Raises Refused, StoreError."""
        caller = self.caller
        if not self.may(ADMINS):
            raise not_allowed(caller.role, ADMINS)
        scope: dict[str, JSON] = {"org": caller.organization, "tenant": caller.tenant_number}
        ready = self.services.commands.ready(name, {**arguments, **scope})
        with acting_as(caller.actor), self.services.gate.running(caller):
            return await ready()

    async def stream(self, rows: Rows, still: Callable[[Person], bool], view: Hashable) -> Response:
        """Return a stream of new rows for this page. view: everything that the rows depend on, except the events, the
        tenant and the address. still: a function that returns whether the person may still see
        the rows. At each check, it gets the current person of the session. Raises TooMany, StoreError."""
        session = self.person.session

        async def is_valid() -> bool:
            person = await self.services.sessions.again(session.id)
            return person is not None and still(person)

        whole = (self.caller.tenant_id, self.request.scope["path"], str(self.query), view)
        viewer = Viewer(session.target, self.caller.tenant_id)
        return await self.services.streams.response(viewer, is_valid, whole, rows)

    def in_tenant(self, tenant_id: int, organization: int, number: int) -> "Visit":
        """Return a copy of this visit in another tenant. An installation administrator can run one operation with it.
        Raises Forbidden if the person is not an installation administrator."""
        if not self.person.is_installation:
            raise not_allowed(self.caller.role, INSTALLATIONS)
        session = replace(self.person.session, tenant_id=tenant_id, organization=organization, tenant_number=number)
        return replace(self, person=Person(session))

    def domains(self) -> list[Domain]:
        """Return the domains of the tenant, ordered by id."""
        return sorted(self.services.domains.of_tenant(self.caller.tenant_id), key=lambda domain: domain.id)

    def domain_choices(self) -> list[tuple[str, str]]:
        """Return the domains of the tenant as choices of a form: (id, name) for each domain."""
        return [(str(domain.id), domain.name) for domain in self.domains()]

    def domain(self) -> Domain:
        """Return the domain whose id is in the parameter `domain` of the address. Without this parameter, return the
        main domain. Raises NotFound if there is no such domain."""
        wanted, domains = self.query.get("domain", ""), self.domains()
        found = [each for each in domains if str(each.id) == (wanted or str(self.main))]
        if wanted and not found:
            raise NotFound("domain not found")
        if not domains:
            raise NotFound("the tenant has no domain yet")
        return found[0] if found else domains[0]

    def url(self, **changes: object) -> str:
        """Return the address of this page with changed parameters. A parameter is left out if its new value is empty or
        None."""
        kept = [(name, value) for name, value in self.query.multi_items() if name not in changes]
        added = [(name, str(value)) for name, value in changes.items() if value not in (None, "")]
        return address(self.request.scope["path"], [*kept, *added])


def _object(answer: JSON) -> Row:
    return answer if isinstance(answer, dict) else {"message": answer}


def address(path: str, parameters: Sequence[tuple[str, str]]) -> str:
    """Return a path with parameters."""
    filled = [(name, value) for name, value in parameters if value]
    return f"{path}?{urlencode(filled)}" if filled else path


Page: TypeAlias = console_pages.ConsolePage[Visit]
Form: TypeAlias = console_pages.Form[Visit]


class Pages(console_pages.Pages[Visit]):
    """The pages and forms of a module of the console, which use all of `Visit`. See the package for an example."""
