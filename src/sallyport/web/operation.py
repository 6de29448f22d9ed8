"""The declaration of operations by an area, and the checks before each operation.

    operations = Operations("Devices", gate)

    @operations.post("/network_device/ListDevices", roles=READERS)
    async def list_devices(body: ListDevices, caller: Caller) -> DeviceList:
        "List the devices of a domain."
        return await inventory.list(body.domainId, body.page())

The annotations give the types of body and answer. The API description is generated from the annotations and the
docstring. The module `interface` decides whether an operation ignores unknown fields.

Each request is checked in this order: token (401), content type and size (415, 413), JSON and model (400), scope,
domain, role (403). The body is read after the check of the token. Models that contain an API key (`claimed_key`) are an
exception: up to 16 KiB of such a body are read without a token. An array body, `list[Model]`, may also be a single
object.
"""

import inspect
from collections.abc import Awaitable, Callable, Coroutine, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Annotated, Generic, TypeAlias, TypeVar, cast, get_args, get_origin, get_type_hints

import structlog
import trio
from pydantic import Field, TypeAdapter, ValidationError
from pydantic_core import to_json
from starlette.requests import Request
from starlette.responses import Response

from sallyport.base.actor import acting_as
from sallyport.base.errors import Refused, Unauthenticated
from sallyport.base.model import FieldCheck, Unknown, accepts
from sallyport.base.validation import refusal
from sallyport.web import content, problem
from sallyport.web.bodies import TOTAL_HEADER, Body, Counted, Plain
from sallyport.web.interface import unknown_fields
from sallyport.web.scope import Caller, Gate, Role
from sallyport.web.upload import BeforeFile, Keeper, Reader, Upload

STRANGERS = 0
"""A placeholder for the tenant's id while the tenant is unknown, because the body with the API key is not read yet."""
BODY_LIMIT = 1 << 20
KEYED_LIMIT = 16 << 10
LARGE = 64 << 10
"""Size in octets from which a body is large. Large bodies are parsed in a thread, so that they do not delay logins."""
MOST_CONTAINERS = 50_000
"""Maximum number of objects and arrays in a large body. The parser holds the interpreter lock: 340,000 empty arrays
took 125 ms."""
MOST_ENTRIES = 1000
"""Maximum number of entries of an array body. Without this limit, the errors of 21,000 empty objects blocked the event
loop for 1 s."""
TOKEN_HEADER = "x-authorization"  # noqa: S105
BEARER_PREFIX = "/api/v1/"

log = structlog.get_logger()

BodyT = TypeVar("BodyT")
AnswerT = TypeVar("AnswerT")
FormT = TypeVar("FormT", bound=Body)
Work: TypeAlias = Callable[[BodyT, Caller], Awaitable[AnswerT]]
UploadWork: TypeAlias = Callable[[Upload[FormT], Caller], Awaitable[AnswerT]]
Handler: TypeAlias = Callable[[Request], Coroutine[None, None, Response]]
Run: TypeAlias = Callable[[bytes, Caller], Awaitable[bytes]]
"""A function that runs an operation for an authenticated caller. It makes all checks except the check of the token. Its
signature is (JSON body, caller) -> JSON answer. It raises Refused or another SallyportError."""
Take: TypeAlias = Callable[[Request, Caller, BeforeFile], Awaitable[bytes]]
"""A function that runs an operation with a file for an authenticated caller. As for Run, all checks are made except the
check of the token."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the API.

    handler: a function that checks and answers an HTTP request. run: a function that answers a request of the control
    socket; None if the request is a form with a file. take: a function that answers such a form; None if the request is
    JSON.
    """

    method: str
    paths: tuple[str, ...]
    gate: Gate
    roles: frozenset[Role]
    tag: str
    name: str
    description: str
    body: type[object]
    answer: type[object]
    handler: Handler
    run: Run | None = None
    take: Take | None = None

    @property
    def has_file(self) -> bool:
        """Whether the request is a form with a file instead of JSON."""
        return self.take is not None

    def takes(self, field: str) -> bool:
        """Return whether the body, or each entry of an array body, has a field with this name."""
        (model,) = get_args(self.body) or (self.body,)
        return accepts(cast(type[Body], model), field)


class Operations:
    """The operations of an area. tag: the heading of the operations in the API description."""

    def __init__(self, tag: str, gate: Gate) -> None:
        self._tag = tag
        self._gate = gate
        self.all: list[Operation] = []

    def post(
        self, path: str, *alternatives: str, roles: frozenset[Role]
    ) -> Callable[[Work[BodyT, AnswerT]], Work[BodyT, AnswerT]]:
        """Declare a POST operation. The operation is served at each of the paths. Paths are case-sensitive."""
        return self._declare("POST", (path, *alternatives), roles)

    def put(
        self, path: str, *alternatives: str, roles: frozenset[Role]
    ) -> Callable[[Work[BodyT, AnswerT]], Work[BodyT, AnswerT]]:
        """Declare a PUT operation. See `post`."""
        return self._declare("PUT", (path, *alternatives), roles)

    def delete(
        self, path: str, *alternatives: str, roles: frozenset[Role]
    ) -> Callable[[Work[BodyT, AnswerT]], Work[BodyT, AnswerT]]:
        """Declare a DELETE operation. See `post`. The request has a body."""
        return self._declare("DELETE", (path, *alternatives), roles)

    def upload(
        self, path: str, *, roles: frozenset[Role], form: type[FormT], keeper: Keeper, limit: int
    ) -> Callable[[UploadWork[FormT, AnswerT]], UploadWork[FormT, AnswerT]]:
        """Declare a POST operation that receives a form with one file.

        limit: the maximum size of the file in octets. keeper: the storage for the file. If the operation raises an
        error, the service deletes the file. Otherwise the operation is responsible for the file.
        """

        def declare(work: UploadWork[FormT, AnswerT]) -> UploadWork[FormT, AnswerT]:
            answer = get_type_hints(work)["return"]
            reader = Reader(cast(type[FormT], _claiming(form)), keeper, limit, unknown_fields((path,)))
            checked = _CheckedUpload(self._gate, roles, work, reader, _Answer(answer))
            name, description = getattr(work, "__name__", "operation"), inspect.getdoc(work) or ""
            self.all.append(
                Operation(
                    *("POST", (path,), self._gate, roles, self._tag, name, description, form, answer, checked.handle),
                    take=checked.take,
                )
            )
            return work

        return declare

    def _declare(
        self, method: str, paths: tuple[str, ...], roles: frozenset[Role]
    ) -> Callable[[Work[BodyT, AnswerT]], Work[BodyT, AnswerT]]:
        def declare(work: Work[BodyT, AnswerT]) -> Work[BodyT, AnswerT]:
            body, answer = _types(work)
            shape = _Shape(cast(type[BodyT], body), unknown_fields(paths))
            checked = _Checked(self._gate, roles, work, shape, _Answer(answer))
            name = getattr(work, "__name__", "operation")
            description = inspect.getdoc(work) or ""
            self.all.append(
                Operation(
                    *(
                        method,
                        paths,
                        self._gate,
                        roles,
                        self._tag,
                        name,
                        description,
                        body,
                        _model_of(answer),
                        checked.handle,
                    ),
                    run=checked.run,
                )
            )
            return work

        return declare


class _Shape(Generic[BodyT]):
    """The type of a request body: a model, or a list of a model. unknown: what happens to fields that the model does
    not have."""

    def __init__(self, kind: type[BodyT], unknown: Unknown) -> None:
        self._kind = kind
        self._unknown = unknown
        self._is_list = get_origin(kind) is list
        self._model = _claiming(get_args(kind)[0] if self._is_list else kind)
        self.carries_key = self._model.claimed_key is not Body.claimed_key

    def parse(self, octets: bytes) -> tuple[BodyT, Sequence[Body]]:
        """Return the body, and the models in the body that contain ids for the gate to check. Raises Invalid."""
        try:
            if self._is_list and octets.lstrip()[:1] != b"{":
                several = self._adapter.validate_json(octets, context=FieldCheck(self._unknown))
                return several, cast(Sequence[Body], several)
            one = self._model.model_validate_json(octets, context=FieldCheck(self._unknown))
        except ValidationError as error:
            raise refusal(error) from None
        return cast(BodyT, [one] if self._is_list else one), [one]

    @cached_property
    def _adapter(self) -> TypeAdapter[BodyT]:
        return TypeAdapter(cast(type[BodyT], Annotated[self._kind, Field(max_length=MOST_ENTRIES)]))


class _JsonResponse(Response):
    """A JSON response with fixed headers. The base class would take 10 us to build the headers."""

    def __init__(self, content: bytes) -> None:
        self.status_code = 200
        self.background = None
        self.body = content
        self.raw_headers = [
            (b"content-length", b"%d" % len(content)),
            (b"content-type", b"application/json"),
            (b"cache-control", b"no-store"),
        ]


class _Answer(Generic[AnswerT]):
    """The type of an answer, with its conversion to JSON."""

    def __init__(self, kind: type[AnswerT]) -> None:
        self._kind = kind

    def response(self, answer: AnswerT) -> Response:
        response = _JsonResponse(self.content(answer))
        if isinstance(answer, Plain) and isinstance(answer.content, Counted):
            response.headers[TOTAL_HEADER] = str(answer.content.total)
        return response

    def content(self, answer: AnswerT) -> bytes:
        if isinstance(answer, Plain):
            return to_json(answer.content)
        return self._adapter.dump_json(answer, by_alias=True)

    @cached_property
    def _adapter(self) -> TypeAdapter[AnswerT]:
        return TypeAdapter(self._kind)


class _Checked(Generic[BodyT, AnswerT]):
    """An operation together with the checks before it."""

    def __init__(
        self,
        gate: Gate,
        roles: frozenset[Role],
        work: Work[BodyT, AnswerT],
        shape: _Shape[BodyT],
        answer: _Answer[AnswerT],
    ) -> None:
        self._gate = gate
        self._roles = roles
        self._work = work
        self._shape = shape
        self._answer = answer
        self._noted = False

    async def handle(self, request: Request) -> Response:
        """Answer one request. An error becomes an error answer."""
        try:
            caller, body, claims = await self._read(request)
            self._gate.admit(caller, claims, self._roles)
            with self._gate.running(caller), acting_as(caller.actor):
                answer = await self._work(body, caller)
            return self._gate.answers.counted(self._answer.response(answer), caller.tenant_id)
        except Exception as error:
            return problem.response(error, request.scope["path"])

    async def run(self, octets: bytes, caller: Caller) -> bytes:
        body, claims = await self._judge(octets, caller)
        self._gate.admit(caller, claims, self._roles)
        with acting_as(caller.actor):
            return self._answer.content(await self._work(body, caller))

    async def _read(self, request: Request) -> tuple[Caller, BodyT, Sequence[Body]]:
        """Return the caller, the body, and the models that contain ids for the gate to check. Raises Refused.

        The caller is the owner of the token, or of the API key in the body.
        """
        token, source = token_of(request), source_of(request)
        if token is None:
            self._note_bearer(request)
        if not self._shape.carries_key:
            caller = await self._gate.caller(token, source)
            return caller, *await self._parse(request, caller)
        known = await self._gate.caller(token, source) if token else None
        try:
            body, claims = await self._parse(request, known)
        except Refused:
            if known is None:
                raise Unauthenticated("missing token") from None
            raise
        key = next((key for each in claims if (key := each.claimed_key())), None)
        return known if known and not key else await self._gate.caller(key, source), body, claims

    def _note_bearer(self, request: Request) -> None:
        """Log the first request with a token in a header that this operation does not read. The answer cannot say so,
        because the interface fixes its text."""
        if not self._noted and _bearer_of(request):
            self._noted = True
            log.warning("http_token_in_wrong_header", path=request.scope["path"], use="X-Authorization")

    async def _parse(self, request: Request, caller: Caller | None) -> tuple[BodyT, Sequence[Body]]:
        if caller is None or content.declared_size(request) < LARGE:
            return await self._parse_body(request, caller)
        with self._gate.large_body(caller):  # this includes chunked bodies, because their size is not known
            return await self._parse_body(request, caller)

    async def _parse_body(self, request: Request, caller: Caller | None) -> tuple[BodyT, Sequence[Body]]:
        limit = KEYED_LIMIT if caller is None else BODY_LIMIT
        octets = await content.read(request, kind="application/json", limit=limit)
        return await self._judge(octets, caller)

    async def _judge(self, octets: bytes, caller: Caller | None) -> tuple[BodyT, Sequence[Body]]:
        if caller is None or len(octets) < LARGE:
            await self._gate.small_bodies[caller.tenant_id if caller else STRANGERS].take()
            return self._shape.parse(octets)
        if octets.count(b"[") + octets.count(b"{") > MOST_CONTAINERS:
            raise problem.TooLarge(f"the body has more than {MOST_CONTAINERS} objects and arrays")
        async with self._gate.large_bodies.slot(caller.tenant_id):
            began = trio.current_time()
            try:
                return await trio.to_thread.run_sync(self._shape.parse, octets)
            finally:  # pause after each body, so that logins get the interpreter lock
                await trio.sleep(trio.current_time() - began)


class _CheckedUpload(Generic[FormT, AnswerT]):
    """An operation that receives a file, together with the checks before it."""

    def __init__(
        self,
        gate: Gate,
        roles: frozenset[Role],
        work: UploadWork[FormT, AnswerT],
        reader: Reader[FormT],
        answer: _Answer[AnswerT],
    ) -> None:
        self._gate = gate
        self._roles = roles
        self._work = work
        self._reader = reader
        self._answer = answer

    async def handle(self, request: Request) -> Response:
        """Answer one request. An error becomes an error answer."""
        try:
            caller = await self._gate.caller(token_of(request), source_of(request))
            return self._answer.response(await self._run(request, caller, None))
        except Exception as error:
            return problem.response(error, request.scope["path"])

    async def take(self, request: Request, caller: Caller, before_file: BeforeFile) -> bytes:
        return self._answer.content(await self._run(request, caller, before_file))

    async def _run(self, request: Request, caller: Caller, before_file: BeforeFile | None) -> AnswerT:
        upload = await self._reader.read(request, keeps=caller.role in self._roles, before_file=before_file)
        try:
            self._gate.admit(caller, [upload.form], self._roles)
            with self._gate.running(caller), acting_as(caller.actor):
                return await self._work(upload, caller)
        except BaseException:
            await self._reader.discard(upload.kept)
            raise


def token_of(request: Request) -> str | None:
    """Return the token of a request, or None.

    The token is in the header X-Authorization. Below /api/v1 it may also be in `Authorization: Bearer`.
    """
    token = content.headers_of(request).get(TOKEN_HEADER, "").strip()
    if token:
        return token
    return _bearer_of(request) if request.scope["path"].startswith(BEARER_PREFIX) else None


def _bearer_of(request: Request) -> str | None:
    scheme, _, token = content.headers_of(request).get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def source_of(request: Request) -> str:
    """Return the address of a request's client, or an empty text if there is none."""
    return request.client.host if request.client else ""


def _types(work: Work[BodyT, AnswerT]) -> tuple[type[object], type[object]]:
    """Return the types of body and answer from an operation's annotations. Raises TypeError if an annotation is
    missing."""
    hints = get_type_hints(work, include_extras=True)
    names = [name for name in inspect.signature(work).parameters if name != "self"]
    if len(names) != 2 or names[0] not in hints or hints.get(names[1]) is not Caller or "return" not in hints:
        raise TypeError(f"{work!r} must have the signature (body: Model, caller: Caller) -> Answer")
    return hints[names[0]], hints["return"]


def _model_of(answer: type[object]) -> type[object]:
    """Return the type that the API description shows for an answer."""
    model: type[object] = get_args(answer)[0] if get_origin(answer) is Plain else answer
    return model


def _claiming(model: object) -> type[Body]:
    """Return the model of a body. The gate checks the ids of organization, tenant and domain in a body.

    Raises TypeError if the model has such an id, but does not define the method that returns the id to the gate.
    """
    if not (isinstance(model, type) and issubclass(model, Body)):
        raise TypeError(f"{model!r} must be a subclass of web.bodies.Body, or a list of one")
    names = {name.lower().replace("_", "") for name in model.model_fields}
    if names & {"domainid", "domainids", "adid"} and model.claimed_domains is Body.claimed_domains:
        raise TypeError(f"{model.__name__} has the id of a domain, but does not define claimed_domains()")
    if names & {"orgid", "tenantid"} and model.claimed_scope is Body.claimed_scope:
        raise TypeError(f"{model.__name__} has orgId or tenantId, but does not define claimed_scope()")
    return model
