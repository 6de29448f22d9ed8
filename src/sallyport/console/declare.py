"""The declaration of pages and forms. See the package for an example."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from starlette.responses import Response

from sallyport.console.visit import Visit
from sallyport.web.scope import Role

Context: TypeAlias = Mapping[str, object]
"""The variables of a template. `title` replaces the title of the page. If `table` is a `Table`, the page can be
exported as CSV."""


@dataclass(frozen=True, slots=True)
class Redirect:
    """The answer of a form that was accepted. to: the path of the next page. notice: a sentence about the change, which
    the next page shows."""

    to: str
    notice: str = ""


Show: TypeAlias = Callable[[Visit], Awaitable[Context | Response]]
Submit: TypeAlias = Callable[[Visit], Awaitable[Redirect | Context]]


@dataclass(frozen=True, slots=True)
class Page:
    """A page. path: the path of the page, which may contain parameters, such as `/devices/{device}`. menu: the heading
    of the menu under which the page is listed; None if the menu does not contain the page. is_quiet: True if a request
    for the page does not count as use of the session. is_slow: whether the page may take longer than a second (see
    `running`)."""

    path: str
    title: str
    roles: frozenset[Role]
    template: str
    show: Show
    menu: str | None = None
    is_quiet: bool = False
    is_slow: bool = False


@dataclass(frozen=True, slots=True)
class Form:
    """A form, which is sent to the path of its page. template: the template for an answer that is not a redirect; None
    for the template of the page. has_file: whether the form contains a file (multipart/form-data). is_slow: whether the
    answer may take longer than a second."""

    path: str
    roles: frozenset[Role]
    submit: Submit
    template: str | None = None
    has_file: bool = False
    is_slow: bool = False


class Pages:
    """The pages and forms of a module."""

    def __init__(self) -> None:
        self.pages: list[Page] = []
        self.forms: list[Form] = []

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
    ) -> Callable[[Show], Show]:
        """Declare a page. The function returns the variables of the template, or a complete response. It changes
        nothing. It raises Refused if the person asks for something that does not exist or is not allowed."""

        def declare(work: Show) -> Show:
            self.pages.append(Page(path, title, roles, template, work, menu, is_quiet, is_slow))
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
    ) -> Callable[[Submit], Submit]:
        """Declare a form. There must be a page with the same path. If the function raises Refused, that page is shown
        again, with `visit.problem` and the submitted `visit.fields`.

        The function usually returns a Redirect. If the answer contains something that is shown only once, the function
        returns the variables of a template instead.

        With `has_file`, the function receives no fields: it passes the form to an operation by `visit.upload`.
        """

        def declare(work: Submit) -> Submit:
            self.forms.append(Form(path, roles, work, template, has_file, is_slow))
            return work

        return declare
