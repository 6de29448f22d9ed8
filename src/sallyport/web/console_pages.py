"""The declaration of the console's pages and forms. `console` has an example.

An area may declare pages beside its operations. Its templates are in a folder of the area. They extend `base.html` of
the console.
"""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, Protocol, TypeAlias, TypeVar

from starlette.responses import Response

from sallyport.base.wire import JSON, Row
from sallyport.web.scope import Caller, Role

Context: TypeAlias = Mapping[str, object]
"""The variables of a template. `title` replaces the title of the page. If `table` is a `Table`, the page can be
exported as CSV."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """The answer of a form that was accepted. to: the path of the next page. notice: a sentence about the change, which
    the next page shows."""

    to: str
    notice: str = ""


class Visit(Protocol):
    """One request of a signed-in person, as the pages of an area see it. `console.visit` has more."""

    @property
    def at(self) -> Mapping[str, str]:
        """The parameters of the path."""

    @property
    def query(self) -> Mapping[str, str]:
        """The parameters of the address."""

    @property
    def fields(self) -> Mapping[str, str]:
        """The fields of the submitted form; empty if a page is shown."""

    @property
    def caller(self) -> Caller:
        """The caller of operations."""

    def may(self, roles: frozenset[Role]) -> bool:
        """Return whether the person has one of these roles."""

    async def call(
        self, path: str, body: Mapping[str, JSON] | Sequence[Mapping[str, JSON]] = ..., *, domain: int | None = None
    ) -> Row:
        """Run an operation of the API, and return its answer. orgId and tenantId are added to the body. Raises the same
        Refused or StoreError as the API."""


VisitT = TypeVar("VisitT", bound=Visit)
Show: TypeAlias = Callable[[VisitT], Awaitable[Context | Response]]
Submit: TypeAlias = Callable[[VisitT], Awaitable[Redirect | Context]]


@dataclass(frozen=True, slots=True)
class ConsolePage(Generic[VisitT]):
    """A page. path: the path of the page, which may contain parameters, such as `/devices/{device}`. menu: the heading
    of the menu under which the page is listed; None if the menu does not contain the page. is_quiet: True if a request
    for the page does not count as use of the session. is_slow: whether the page may take longer than a second (see
    `running`)."""

    path: str
    title: str
    roles: frozenset[Role]
    template: str
    show: Show[VisitT]
    menu: str | None = None
    is_quiet: bool = False
    is_slow: bool = False


@dataclass(frozen=True, slots=True)
class Form(Generic[VisitT]):
    """A form, which is sent to the path of its page. template: the template for an answer that is not a redirect; None
    for the template of the page. has_file: whether the form contains a file (multipart/form-data). is_slow: whether the
    answer may take longer than a second."""

    path: str
    roles: frozenset[Role]
    submit: Submit[VisitT]
    template: str | None = None
    has_file: bool = False
    is_slow: bool = False


class Pages(Generic[VisitT]):
    """The pages and forms of a module. templates: the folder of the templates, if it is not that of the console."""

    def __init__(self, templates: Path | None = None) -> None:
        self.templates = templates
        self.pages: list[ConsolePage[VisitT]] = []
        self.forms: list[Form[VisitT]] = []

    def show(
        self,
        path: str,
        title: str,
        *,
        roles: frozenset[Role],
        template: str = "",
        menu: str | None = None,
        is_quiet: bool = False,
        is_slow: bool = False,
    ) -> Callable[[Show[VisitT]], Show[VisitT]]:
        """Declare a page. The function returns the variables of the template, or a complete response. It changes
        nothing. It raises Refused if the person asks for something that does not exist or is not allowed."""

        def declare(work: Show[VisitT]) -> Show[VisitT]:
            self.pages.append(ConsolePage(path, title, roles, template, work, menu, is_quiet, is_slow))
            return work

        return declare

    def submit(
        self,
        path: str,
        *,
        roles: frozenset[Role],
        template: str | None = None,
        has_file: bool = False,
        is_slow: bool = False,
    ) -> Callable[[Submit[VisitT]], Submit[VisitT]]:
        """Declare a form. There must be a page with the same path. If the function raises Refused, that page is shown
        again, with `visit.problem` and the submitted `visit.fields`.

        The function usually returns a Redirect. If the answer contains something that is shown only once, the function
        returns the variables of a template instead.

        With `has_file`, the function receives no fields: it passes the form to an operation by `visit.upload`.
        """

        def declare(work: Submit[VisitT]) -> Submit[VisitT]:
            self.forms.append(Form(path, roles, work, template, has_file, is_slow))
            return work

        return declare
