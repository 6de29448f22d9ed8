"""The pages and forms of the console itself, which use all of `Visit`. See the package for an example."""

from typing import TypeAlias

from sallyport.console.visit import Visit
from sallyport.web import pages
from sallyport.web.pages import Context, Redirect

__all__ = ["Context", "Form", "Page", "Pages", "Redirect"]

Page: TypeAlias = pages.Page[Visit]
Form: TypeAlias = pages.Form[Visit]


class Pages(pages.Pages[Visit]):
    """The pages and forms of a module of the console."""
