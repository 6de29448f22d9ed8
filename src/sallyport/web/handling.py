"""The way of a request to its operation: the operation is found by its path, its checks are made, it runs, and its
answer is sent.

A dict finds the operation by its path, because testing 150 routes one after another takes 110 us. Starlette routes all
other paths. The label of a measurement is the template of the route, never the path in the request. Therefore a client
cannot create labels.

Each request is checked in this order: token (401), content type and size (415, 413), JSON and model (400), scope,
domain, role (403), and files that manage the object (409). The body is read after the check of the token. Models that
contain an API key (`claimed_key`) are an exception: up to 16 KiB of such a body are read without a token. An array
body, `list[Model]`, may also be a single object.
"""

import time
from collections import defaultdict
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import Annotated, Generic, TypeAlias, TypeVar, cast, get_origin

import structlog
import trio
from pydantic import BaseModel, Field, TypeAdapter, ValidationError
from pydantic_core import to_json
from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Match, Route
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sallyport.base import trace
from sallyport.base.errors import Refused, Unauthenticated
from sallyport.base.model import FieldCheck, Unknown
from sallyport.base.spelling import Spellings
from sallyport.base.validation import refusal
from sallyport.web import content, problem
from sallyport.web.bodies import TOTAL_HEADER, Body, Counted, Plain, given_fields
from sallyport.web.scope import Caller, Gate, Role

UNKNOWN_TENANT = 0
"""A placeholder for the tenant's id while the tenant is unknown, because the body with the API key is not read yet."""
BODY_LIMIT = 1 << 20
KEYED_LIMIT = 16 << 10
LARGE = 64 << 10
"""Size in octets from which a body is large. Large bodies are parsed in a thread, so that they do not delay logins."""
MAX_CONTAINERS = 50_000
"""Maximum number of objects and arrays in a large body. The parser holds the interpreter lock: 340,000 empty arrays
took 125 ms."""
MAX_ENTRIES = 1000
"""Maximum number of entries of an array body. Without this limit, the errors of 21,000 empty objects blocked the event
loop for 1 s."""
TOKEN_HEADER = "x-authorization"  # noqa: S105
MAX_PATH_LENGTH = 200
"""Maximum number of characters of an unknown path that is compared with the known paths."""
UNMATCHED = "unmatched"
OVERRIDE = "override"
"""The query parameter with which a caller changes objects although files manage them: `?override=true`."""
TEMPLATE = "sallyport.template"
"""The key in an ASGI scope under which the template of the route is stored."""
_UNCOUNTED = nullcontext()
_METHODS = frozenset({"DELETE", "GET", "HEAD", "OPTIONS", "PATCH", "POST", "PUT"})

log = structlog.get_logger()

BodyT = TypeVar("BodyT")
AnswerT = TypeVar("AnswerT")
Work: TypeAlias = Callable[[BodyT, Caller], Awaitable[AnswerT]]
Handler: TypeAlias = Callable[[Request], Coroutine[None, None, Response]]
Observe: TypeAlias = Callable[[str, str, int, float], None]
"""A function that records a request: observe(method, route template, status, seconds)."""


class Observed:
    """The outermost layer of an app, which measures requests. It sets the trace of each request, and names it in the
    answer (X-Request-Id). ASGI scopes other than HTTP requests are ignored."""

    def __init__(self, app: ASGIApp, observe: Observe) -> None:
        self._app = app
        self._observe = observe

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        started = time.perf_counter()
        status = 0
        of_request = trace.received(scope["headers"])
        request_id = (trace.REQUEST_ID, of_request.request_id.encode())

        async def noting(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), request_id]
            await send(message)

        try:
            with trace.following(of_request):
                await self._app(scope, receive, noting)
        except Exception as error:  # an error after the start of the answer was logged already
            if not status:
                await problem.response(error, scope["path"])(scope, receive, noting)
        finally:
            method = scope["method"] if scope["method"] in _METHODS else "other"
            self._observe(method, scope.get(TEMPLATE, UNMATCHED), status or 499, time.perf_counter() - started)


class ByPath:
    """The operations by path. Their paths have no parameters. Requests with other paths go to `rest`.

    handlers: the method, the path and the handler of each operation. Raises ValueError if two operations have the same
    method and path.
    """

    def __init__(self, handlers: Iterable[tuple[str, str, Handler]], rest: ASGIApp) -> None:
        self._rest = rest
        self._handlers: dict[str, dict[str, Handler]] = {}  # by path, and then by method
        self._near: NearPaths | None = None
        for method, path, handler in handlers:
            methods = self._handlers.setdefault(path, {})
            if method in methods:
                raise ValueError(f"two operations have the method and path {method} {path}")
            methods[method] = handler

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        path = scope["path"]
        methods = self._handlers.get(path)
        if methods is None and (near := self._nearest(path)) is not None:
            await problem.body(path, 404, f"no such path; did you mean {near}?")(scope, receive, send)
            return
        if methods is None:
            await self._rest(scope, receive, send)
            return
        scope[TEMPLATE] = path
        handler = methods.get(scope["method"])
        if handler is None:
            response = problem.response(HTTPException(405), path)
            response.headers["allow"] = ", ".join(sorted(methods))
        else:
            response = await handler(Request(scope, receive))
        await response(scope, receive, send)

    def _nearest(self, path: str) -> str | None:
        """Return the path of an operation that a client has probably meant, or None. Only paths below the prefixes of
        operations are compared."""
        if not path.startswith((*problem.RADIUS_PREFIXES, problem.BEARER_PREFIX)):
            return None
        self._near = self._near or NearPaths(self._handlers)
        return self._near.find(path)


class NearPaths:
    """The paths of the operations by their last parts. A path in another case, with a misspelled last part, or with the
    prefix of another operation is found at the cost of a few comparisons, because anybody may send such paths."""

    def __init__(self, paths: Iterable[str]) -> None:
        self._by_end = defaultdict[str, list[str]](list)
        for path in paths:
            self._by_end[path.rpartition("/")[2].casefold()].append(path)
        self._ends = Spellings(self._by_end)

    def find(self, path: str) -> str | None:
        """Return the known path that is most similar to a path, or None."""
        if len(path) > MAX_PATH_LENGTH:
            return None
        start, _, end = path.rstrip("/").rpartition("/")
        ends = [end.casefold()] if end.casefold() in self._by_end else self._ends.near(end)
        found = [known for each in ends for known in self._by_end[each]]
        same = [known for known in found if known.casefold().startswith(f"{start.casefold()}/")]
        likely = same or Spellings(found).near(path) or found
        return likely[0] if same or len(likely) == 1 else None


class TemplateRoute(Route):
    """A Starlette route that stores its path template in the ASGI scope. This template is the label when a request is
    measured."""

    def matches(self, scope: Scope) -> tuple[Match, Scope]:
        match, child = super().matches(scope)
        if match is not Match.NONE:
            child[TEMPLATE] = self.path_format
        return match, child


class BodyShape(Generic[BodyT]):
    """The type of a request body.

    kind: `model`, or a list of it. unknown: what happens to fields that the model does not have.
    """

    def __init__(self, kind: type[BodyT], model: type[Body], unknown: Unknown) -> None:
        self._kind = kind
        self._unknown = unknown
        self._is_list = get_origin(kind) is list
        self._model = model
        self.carries_key = model.claimed_key is not Body.claimed_key

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
        return TypeAdapter(cast(type[BodyT], Annotated[self._kind, Field(max_length=MAX_ENTRIES)]))


class AnswerShape(Generic[AnswerT]):
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


class CheckedOperation(Generic[BodyT, AnswerT]):
    """An operation together with the checks before it. path: its first path."""

    def __init__(
        self,
        gate: Gate,
        path: str,
        roles: frozenset[Role],
        work: Work[BodyT, AnswerT],
        shape: BodyShape[BodyT],
        answer: AnswerShape[AnswerT],
    ) -> None:
        self._gate = gate
        self._path = path
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
            override = overrides(request)
            with (
                self._gate.running(caller),
                await self._gate.acting(caller, self._path, claims, override=override),
            ):
                answer = await self._answered(body, claims, caller)
            return self._gate.answers.counted(self._answer.response(answer), caller.tenant_id)
        except Exception as error:
            return problem.response(error, request.scope["path"])

    async def run(self, octets: bytes, caller: Caller, *, override: bool = False) -> bytes:
        body, claims = await self._parse(octets, caller)
        self._gate.admit(caller, claims, self._roles)
        with await self._gate.acting(caller, self._path, claims, override=override):
            return self._answer.content(await self._answered(body, claims, caller))

    async def _answered(self, body: BodyT, claims: Sequence[Body], caller: Caller) -> AnswerT:
        answer, managed = await self._work(body, caller), self._gate.managed
        content = answer.content if isinstance(answer, Plain) else answer
        if managed.shown_in(self._path) is None or not isinstance(content, Mapping | BaseModel):
            return answer
        plain = content.model_dump(mode="json", by_alias=True) if isinstance(content, BaseModel) else content
        return cast(AnswerT, Plain(await managed.marked(caller.tenant_id, self._path, given_fields(claims[0]), plain)))

    async def _read(self, request: Request) -> tuple[Caller, BodyT, Sequence[Body]]:
        """Return the caller, the body, and the models that contain ids for the gate to check. Raises Refused.

        The caller is the owner of the token, or of the API key in the body.
        """
        token, source = token_of(request), source_of(request)
        if token is None:
            self._note_bearer(request)
        if not self._shape.carries_key:
            caller = await self._gate.caller(token, source)
            return caller, *await self._read_body(request, caller)
        known = await self._gate.caller(token, source) if token else None
        try:
            body, claims = await self._read_body(request, known)
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

    async def _read_body(self, request: Request, caller: Caller | None) -> tuple[BodyT, Sequence[Body]]:
        is_large = content.declared_size(request) >= LARGE  # so is a chunked body, because its size is not known
        with self._gate.large_body(caller) if caller is not None and is_large else _UNCOUNTED:
            limit = KEYED_LIMIT if caller is None else BODY_LIMIT
            octets = await content.read(request, kind="application/json", limit=limit)
            return await self._parse(octets, caller)

    async def _parse(self, octets: bytes, caller: Caller | None) -> tuple[BodyT, Sequence[Body]]:
        if caller is None or len(octets) < LARGE:
            await self._gate.small_bodies[caller.tenant_id if caller else UNKNOWN_TENANT].take()
            return self._shape.parse(octets)
        if octets.count(b"[") + octets.count(b"{") > MAX_CONTAINERS:
            raise problem.TooLarge(f"the body has more than {MAX_CONTAINERS} objects and arrays")
        async with self._gate.large_bodies.slot(caller.tenant_id):
            began = trio.current_time()
            try:
                return await trio.to_thread.run_sync(self._shape.parse, octets)
            finally:  # pause after each body, so that logins get the interpreter lock
                await trio.sleep(trio.current_time() - began)


def token_of(request: Request) -> str | None:
    """Return the token of a request, or None.

    The token is in the header X-Authorization. Below /api/v1 it may also be in `Authorization: Bearer`.
    """
    token = content.headers_of(request).get(TOKEN_HEADER, "").strip()
    if token:
        return token
    return _bearer_of(request) if request.scope["path"].startswith(problem.BEARER_PREFIX) else None


def _bearer_of(request: Request) -> str | None:
    scheme, _, token = content.headers_of(request).get("authorization", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else None


def overrides(request: Request) -> bool:
    """Return whether a request may change objects that files manage."""
    return bool(request.scope["query_string"]) and request.query_params.get(OVERRIDE) in {"true", "1"}


def source_of(request: Request) -> str:
    """Return the address of a request's client, or an empty text if there is none."""
    return request.client.host if request.client else ""
