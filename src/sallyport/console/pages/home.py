"""The first page after the sign-in: what needs attention."""

from sallyport.console.declare import Context, Pages
from sallyport.console.visit import Visit
from sallyport.web.scope import READERS

pages = Pages()


@pages.show("/", "Home", roles=READERS, template="home.html", menu="")
async def home(visit: Visit) -> Context:
    """Show the domains of the tenant."""
    return {"domains": visit.domains()}
