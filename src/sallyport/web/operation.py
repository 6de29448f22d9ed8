"""The declaration of operations by an area. The module `handling` makes their checks and runs them.

    operations = Operations("Devices", gate)

    @operations.post("/network_device/ListDevices", roles=READERS)
    async def list_devices(body: ListDevices, caller: Caller) -> DeviceList:
        "List the devices of a domain."
        return await inventory.list(body.domainId, body.page())

The annotations give the types of body and answer. The API description is generated from the annotations and the
docstring. The module `interface` decides whether an operation ignores unknown fields.
"""

import inspect
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Protocol, TypeAlias, TypeVar, cast, get_args, get_origin, get_type_hints

from starlette.requests import Request

from sallyport.base.model import accepts
from sallyport.web.bodies import Body, Plain
from sallyport.web.handling import AnswerShape, BodyShape, CheckedOperation, Handler, Work
from sallyport.web.interface import unknown_fields
from sallyport.web.scope import Caller, Gate, Role
from sallyport.web.upload import BeforeFile, CheckedUpload, Keeper, Reader, UploadWork

BodyT = TypeVar("BodyT")
AnswerT = TypeVar("AnswerT")
FormT = TypeVar("FormT", bound=Body)
Take: TypeAlias = Callable[[Request, Caller, BeforeFile], Awaitable[bytes]]
"""A function that runs an operation with a file for an authenticated caller. As for Run, all checks are made except the
check of the token."""


class Run(Protocol):
    """A function that runs an operation for an authenticated caller. It makes all checks except that of the token."""

    async def __call__(self, octets: bytes, caller: Caller, *, override: bool = False) -> bytes:
        """Return the answer in JSON. octets: the body in JSON. override: whether the operation may change objects that
        files manage. Raises Refused or another SallyportError."""


@dataclass(frozen=True, slots=True)
class Operation:
    """One operation of the API.

    handler: a function that checks and answers an HTTP request. run: a function that answers a request of the control
    socket; None if the request is a form with a file. take: a function that answers such a form; None if the request is
    JSON. overrides: whether the operation itself checks objects that files manage.
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
    overrides: bool = False

    @property
    def can_override(self) -> bool:
        """Whether the operation changes objects that files may manage, so that a caller may send `override`."""
        return self.overrides or self.gate.managed.concerns(self.paths[0])

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
        self,
        path: str,
        *,
        roles: frozenset[Role],
        form: type[FormT],
        keeper: Keeper,
        limit: int,
        can_override: bool = False,
    ) -> Callable[[UploadWork[FormT, AnswerT]], UploadWork[FormT, AnswerT]]:
        """Declare a POST operation that receives a form with one file.

        limit: the maximum size of the file in octets. keeper: the storage for the file. If the operation raises an
        error, the service deletes the file. Otherwise the operation is responsible for the file. can_override: whether
        it changes objects that files manage if `Upload.override` is set.
        """

        def declare(work: UploadWork[FormT, AnswerT]) -> UploadWork[FormT, AnswerT]:
            answer = get_type_hints(work)["return"]
            reader = Reader(cast(type[FormT], _claiming(form)), keeper, limit, unknown_fields((path,)))
            checked = CheckedUpload(self._gate, roles, work, reader, AnswerShape(answer))
            self._add(
                "POST", (path,), roles, work, form, answer, checked.handle, take=checked.take, overrides=can_override
            )
            return work

        return declare

    def _declare(
        self, method: str, paths: tuple[str, ...], roles: frozenset[Role]
    ) -> Callable[[Work[BodyT, AnswerT]], Work[BodyT, AnswerT]]:
        def declare(work: Work[BodyT, AnswerT]) -> Work[BodyT, AnswerT]:
            body, answer = _types(work)
            model = _claiming(get_args(body)[0] if get_origin(body) is list else body)
            shape = BodyShape(cast(type[BodyT], body), model, unknown_fields(paths))
            checked = CheckedOperation(self._gate, paths[0], roles, work, shape, AnswerShape(answer))
            self._add(method, paths, roles, work, body, _model_of(answer), checked.handle, run=checked.run)
            return work

        return declare

    def _add(
        self,
        method: str,
        paths: tuple[str, ...],
        roles: frozenset[Role],
        work: Callable[..., object],
        body: type[object],
        answer: type[object],
        handler: Handler,
        *,
        run: Run | None = None,
        take: Take | None = None,
        overrides: bool = False,
    ) -> None:
        name, description = getattr(work, "__name__", "operation"), inspect.getdoc(work) or ""
        common = (method, paths, self._gate, roles, self._tag, name, description, body, answer, handler)
        self.all.append(Operation(*common, run=run, take=take, overrides=overrides))


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
