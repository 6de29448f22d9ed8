"""A form with one file (multipart/form-data): its fields as a body of ours, its file into a place that keeps it.

The file is handed on piece by piece as it comes and is never held. What comes of it is known once the whole form has
been read, since fields may stand behind the file: who may not send it has sent it in vain, and what was kept is
discarded.
"""

from contextlib import aclosing
from typing import Final, Generic, Protocol, TypeVar

from pydantic import ValidationError
from starlette.requests import Request

from sallyport.base.errors import FieldError, Invalid, invalid_field
from sallyport.base.validation import refusal
from sallyport.web import body as request_body
from sallyport.web.multipart import Begin, End, FormParser
from sallyport.web.problem import TooLarge
from sallyport.web.scope import Body

KIND: Final = "multipart/form-data"
FILE: Final = "file"
LONGEST_FIELD: Final = 65_536
AROUND_FILE: Final = 1 << 17
"""Octets of a form beside its file's."""

FormT = TypeVar("FormT", bound=Body)


class Keeper(Protocol):
    """Keeps what is uploaded, and calls it by a name of its own."""

    async def open(self, octets: int) -> str:
        """A new file, for at most so many octets. StoreFull."""

    async def write(self, name: str, octets: bytes) -> None:
        """Add to it. OSError."""

    async def close(self, name: str) -> None:
        """It is whole, and on disk when this returns. OSError."""

    async def discard(self, name: str) -> None:
        """Nobody needs it."""


class Upload(Generic[FormT]):
    """What was sent. kept: the keeper's name of the file; file_name: the client's."""

    def __init__(self, form: FormT, kept: str, file_name: str) -> None:
        self.form = form
        self.kept = kept
        self.file_name = file_name


class Reader(Generic[FormT]):
    """Reads forms of one model. limit: octets of the file."""

    def __init__(self, model: type[FormT], keeper: Keeper, limit: int) -> None:
        self._model = model
        self._keeper = keeper
        self._limit = limit

    async def read(self, request: Request, *, keeps: bool) -> Upload[FormT]:
        """The form. keeps: False: nothing of the file is kept, only the form is checked. WrongContentType, TooLarge,
        Invalid; StoreFull, OSError; whatever is raised, nothing is kept."""
        receiver = _Receiver(self._keeper, self._limit, keeps=keeps)
        try:
            await receiver.receive(request)
            try:
                form = self._model.model_validate(receiver.fields)
            except ValidationError as error:
                raise refusal(error) from None
            if receiver.file_name is None:
                raise Invalid(f"missing {FILE}", (FieldError(FILE, "a file"),))
        except BaseException:
            await self.discard(receiver.kept)
            raise
        return Upload(form, receiver.kept, receiver.file_name)

    async def discard(self, kept: str) -> None:
        """What was sent is not needed."""
        if kept:
            await self._keeper.discard(kept)


class _Receiver:
    """One form as it comes in."""

    def __init__(self, keeper: Keeper, limit: int, *, keeps: bool) -> None:
        self._keeper = keeper
        self._limit = limit
        self._keeps = keeps
        self._size = 0
        self._field: tuple[str, bytearray] | None = None
        self.fields: dict[str, str] = {}
        self.file_name: str | None = None
        self.kept = ""

    async def receive(self, request: Request) -> None:
        """All of it. Refused, StoreFull, OSError."""
        pieces = request_body.pieces(request, kind=KIND, limit=self._limit + AROUND_FILE)
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
            raise invalid_field(FILE, "one file")
        self.file_name = part.file_name or ""
        if self._keeps:
            self.kept = await self._keeper.open(self._limit)

    async def _data(self, octets: bytes) -> None:
        if self._field is not None:
            held = self._field[1]
            held += octets
            if len(held) > LONGEST_FIELD:
                raise Invalid("a field is longer than 64 KiB")
            return
        self._size += len(octets)
        if self._size > self._limit:
            raise TooLarge(f"the file is over {self._limit >> 20} MiB")
        if self.kept:
            await self._keeper.write(self.kept, octets)

    def _end(self) -> None:
        if self._field is not None:
            name, held = self._field
            try:
                self.fields[name] = held.decode()
            except UnicodeDecodeError:
                raise Invalid("the fields are text in UTF-8") from None
        self._field = None
