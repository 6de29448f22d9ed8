"""A form with one file (multipart/form-data), and the checks before an operation that receives it. The fields become a
body model, and a keeper stores the file.

The file is passed on in parts and is never whole in memory. Fields may come after the file. Therefore the form is
validated at the end, and the file of an invalid form is deleted. python-multipart parses the form (RFC 7578). A
preamble is an error: RFC 2046 allows it, but no HTTP client sends one.
"""

import logging
from collections.abc import Awaitable, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final, Generic, Protocol, TypeAlias, TypeVar

from pydantic import ValidationError
from python_multipart.exceptions import MultipartParseError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.requests import Request
from starlette.responses import Response

from sallyport.base.actor import acting_as
from sallyport.base.errors import FieldError, Invalid, invalid_field
from sallyport.base.model import FieldCheck, Unknown
from sallyport.base.validation import refusal
from sallyport.web import content, problem
from sallyport.web.bodies import Body
from sallyport.web.handling import AnswerShape, overrides, source_of, token_of
from sallyport.web.problem import TooLarge
from sallyport.web.scope import Caller, Gate, Role

MAX_PARTS: Final = 32
MAX_BOUNDARY_LENGTH: Final = 70  # RFC 2046 section 5.1.1
_MALFORMED: Final = "the body is not multipart/form-data"

# python-multipart logs a warning for each malformed body, which the answer reports already.
logging.getLogger("python_multipart").setLevel(logging.CRITICAL)


@dataclass(frozen=True, slots=True)
class Begin:
    """The start of a part of the form. file_name: the file's name at the client, or None for a plain field."""

    name: str
    file_name: str | None


@dataclass(frozen=True, slots=True)
class End:
    """The end of a part of the form."""


Event: TypeAlias = Begin | bytes | End


class FormParser:
    """A parser for one form. Raises Invalid if the content type has no boundary.

    complete: whether the last boundary was parsed. python-multipart limits the headers of a part to 8 headers of 4 KiB.
    """

    def __init__(self, content_type: str) -> None:
        boundary = parse_options_header(content_type)[1].get(b"boundary", b"")
        if not 0 < len(boundary) <= MAX_BOUNDARY_LENGTH:
            raise Invalid("the content type names no boundary")
        self._parser = MultipartParser(
            boundary,
            {
                "on_part_begin": self._begin_part,
                "on_header_field": self._header_name,
                "on_header_value": self._header_value,
                "on_header_end": self._end_header,
                "on_headers_finished": self._end_headers,
                "on_part_data": lambda data, start, end: self._events.append(data[start:end]),
                "on_part_end": lambda: self._events.append(End()),
                "on_end": self._end,
            },
        )
        self._events: list[Event] = []
        self._parts = 0
        self._name = b""
        self._value = b""
        self._disposition = b""
        self.complete = False

    def feed(self, octets: bytes) -> list[Event]:
        """Parse octets, and return the events that they contain: the start, the content and the end of form parts.
        Raises Invalid."""
        if self.complete:
            return []  # RFC 2046 section 5.1.1: text after the last boundary is ignored
        try:
            self._parser.write(octets)
        except MultipartParseError:
            raise Invalid(_MALFORMED) from None
        events, self._events = self._events, []
        return events

    def _begin_part(self) -> None:
        self._parts += 1
        if self._parts > MAX_PARTS:
            raise Invalid(f"the form has more than {MAX_PARTS} parts")
        self._disposition = b""

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _end_header(self) -> None:
        if self._name.lower() == b"content-disposition":
            self._disposition = self._value
        self._name = self._value = b""

    def _end_headers(self) -> None:
        try:
            kind, parameters = parse_options_header(self._disposition)
            named = {key.decode(): value.decode() for key, value in parameters.items()}
        except UnicodeError:
            raise Invalid(_MALFORMED) from None
        if kind != b"form-data" or "name" not in named:
            raise Invalid(_MALFORMED)
        self._events.append(Begin(named["name"], named.get("filename")))

    def _end(self) -> None:
        self.complete = True


KIND: Final = "multipart/form-data"
FILE: Final = "file"
MAX_FIELD_LENGTH: Final = 65_536
AROUND_FILE: Final = 1 << 17
"""Maximum size in octets of a form, not counting its file."""

AnswerT = TypeVar("AnswerT")
FormT = TypeVar("FormT", bound=Body)
BeforeFile: TypeAlias = Callable[[dict[str, str]], bool]
"""A function that gets the fields before the file, and may remove some of them. It returns whether the operation may
change objects that files manage. If it raises an error, no file is stored."""


class Keeper(Protocol):
    """A storage for uploaded files. The keeper chooses the name of each file."""

    async def open(self, octets: int, tenant_id: int) -> str:
        """Create a file of a tenant for at most `octets` octets, and return its name. Raises StoreFull, TooMany."""

    async def write(self, name: str, octets: bytes) -> None:
        """Append octets to a file. Raises OSError."""

    async def close(self, name: str) -> None:
        """Finish a file, and wait until it is on disk. Raises OSError."""

    async def discard(self, name: str) -> None:
        """Delete a file."""


class Upload(Generic[FormT]):
    """A form and its file.

    kept: the keeper's name of the file. file_name: the file's name at the client. override: whether the operation may
    change objects that files manage.
    """

    def __init__(self, form: FormT, kept: str, file_name: str, *, override: bool) -> None:
        self.form = form
        self.kept = kept
        self.file_name = file_name
        self.override = override


class Reader(Generic[FormT]):
    """A reader of forms. The fields of the form must match `model`.

    limit: the maximum size of the file in octets. unknown: what happens to fields that the model does not have.
    """

    def __init__(self, model: type[FormT], keeper: Keeper, limit: int, unknown: Unknown) -> None:
        self._model = model
        self._keeper = keeper
        self._limit = limit
        self._unknown = unknown

    async def read(
        self, request: Request, *, keeps_for: int | None, before_file: BeforeFile | None = None
    ) -> Upload[FormT]:
        """Return the form and its file. keeps_for: id of the tenant whose file is stored. If it is None, the form is
        only validated. before_file: is called when the file begins.

        Raises WrongContentType, TooLarge, Invalid, TooMany, StoreFull, OSError. After an error the file is deleted.
        """
        receiver = _Receiver(self._keeper, self._limit, before_file, keeps_for)
        try:
            await receiver.receive(request)
            try:
                form = self._model.model_validate(receiver.fields, context=FieldCheck(self._unknown))
            except ValidationError as error:
                raise refusal(error) from None
            if receiver.file_name is None:
                raise Invalid(f"missing {FILE}", (FieldError(FILE, "is missing: add a file to the form"),))
        except BaseException:
            await self.discard(receiver.kept)
            raise
        return Upload(form, receiver.kept, receiver.file_name, override=receiver.override)

    async def discard(self, kept: str) -> None:
        """Delete a stored file."""
        if kept:
            await self._keeper.discard(kept)


class _Receiver:
    """The state of one form while it is received."""

    def __init__(self, keeper: Keeper, limit: int, before_file: BeforeFile | None, keeps_for: int | None) -> None:
        self._keeper = keeper
        self._limit = limit
        self._before_file = before_file
        self.override = False
        self._keeps_for = keeps_for
        self._size = 0
        self._field: tuple[str, bytearray] | None = None
        self.fields: dict[str, str] = {}
        self.file_name: str | None = None
        self.kept = ""

    async def receive(self, request: Request) -> None:
        """Receive the whole form. Raises Refused, StoreFull, OSError."""
        pieces = content.pieces(request, kind=KIND, limit=self._limit + AROUND_FILE)
        async with aclosing(pieces):
            parser: FormParser | None = None
            async for piece in pieces:
                parser = parser or FormParser(request.headers["content-type"])
                await self._take(parser, piece)
        if parser is None or not parser.complete:
            raise Invalid("incomplete body")
        if self.kept:
            await self._keeper.close(self.kept)

    async def _take(self, parser: FormParser, piece: bytes) -> None:
        for event in parser.feed(piece):
            match event:
                case Begin():
                    await self._begin(event)
                case End():
                    self._end()
                case octets:
                    await self._data(octets)

    async def _begin(self, part: Begin) -> None:
        if part.name != FILE:
            self._field = (part.name, bytearray())
            return
        if self.file_name is not None:
            raise invalid_field(FILE, "must be one file, but the form has several")
        if self._before_file is not None:
            self.override = self._before_file(self.fields)
        self.file_name = part.file_name or ""
        if self._keeps_for is not None:
            self.kept = await self._keeper.open(self._limit, self._keeps_for)

    async def _data(self, octets: bytes) -> None:
        if self._field is not None:
            held = self._field[1]
            held += octets
            if len(held) > MAX_FIELD_LENGTH:
                raise Invalid("a field of the form is longer than 64 KiB")
            return
        self._size += len(octets)
        if self._size > self._limit:
            raise TooLarge(f"the file is larger than {self._limit >> 20} MiB")
        if self.kept:
            await self._keeper.write(self.kept, octets)

    def _end(self) -> None:
        if self._field is not None:
            name, held = self._field
            try:
                self.fields[name] = held.decode()
            except UnicodeDecodeError:
                raise Invalid("the fields of the form must be text in UTF-8") from None
        self._field = None


UploadWork: TypeAlias = Callable[[Upload[FormT], Caller], Awaitable[AnswerT]]


class CheckedUpload(Generic[FormT, AnswerT]):
    """An operation that receives a file, together with the checks before it."""

    def __init__(
        self,
        gate: Gate,
        roles: frozenset[Role],
        work: UploadWork[FormT, AnswerT],
        reader: Reader[FormT],
        answer: AnswerShape[AnswerT],
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
            return self._answer.response(await self._run(request, caller, lambda _: overrides(request)))
        except Exception as error:
            return problem.response(error, request.scope["path"])

    async def take(self, request: Request, caller: Caller, before_file: BeforeFile) -> bytes:
        return self._answer.content(await self._run(request, caller, before_file))

    async def _run(self, request: Request, caller: Caller, before_file: BeforeFile) -> AnswerT:
        keeps_for = caller.tenant_id if caller.role in self._roles else None
        upload = await self._reader.read(request, keeps_for=keeps_for, before_file=before_file)
        try:
            self._gate.admit(caller, [upload.form], self._roles)
            with self._gate.running(caller), acting_as(caller.actor):
                return await self._work(upload, caller)
        except BaseException:
            await self._reader.discard(upload.kept)
            raise
