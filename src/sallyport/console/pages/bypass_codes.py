"""The bypass codes of a person: make them, list them without digits, remove them."""

from typing import Final

from sallyport.areas.factors.bypass_codes.code import BypassCode, in_groups
from sallyport.base.wire import JSON, Row
from sallyport.console.columns import row_columns
from sallyport.console.pages.enforcement import person_url
from sallyport.console.pages.people import person_in_address, person_page
from sallyport.console.visit import Pages, Visit
from sallyport.shell.command import entries
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import OPERATORS

pages = Pages()
PATH: Final = "bypass-codes"
COLUMNS: Final = tuple(each for each in row_columns(BypassCode) if each.key != "userName")
DEFAULTS: Final = {"codes": 1, "uses": 1, "hours": 24}


@pages.show("/people/person/bypass-codes", "Bypass codes", roles=OPERATORS, template="bypass_codes.html")
async def bypass_codes(visit: Visit) -> Context:
    """Show the present codes of a user, and the form that makes new ones."""
    domain, user = person_in_address(visit)
    return {
        "title": f"Bypass codes of {user}",
        "user": user,
        "codes": await codes_of(visit, domain.id, user),
        "columns": COLUMNS,
        "defaults": DEFAULTS,
        "removal": person_page(domain, user, f"{PATH}/remove"),
        "back": person_url(domain.id, user),
    }


@pages.submit("/people/person/bypass-codes", roles=OPERATORS, template="bypass_codes_made.html")
async def make(visit: Visit) -> Context:
    """Make codes, and show them once."""
    domain, user = person_in_address(visit)
    numbers: dict[str, JSON] = {name: visit.fields.get(name, "") for name in DEFAULTS}
    made = await visit.call("/ad/MakeBypassCodes", {"userName": user, **numbers}, domain=domain.id)
    codes = made["codes"]
    return {
        "title": f"Bypass codes of {user}",
        "made": made,
        "codes": [in_groups(str(each)) for each in codes] if isinstance(codes, list) else [],
        "back": person_url(domain.id, user),
    }


@pages.show("/people/person/bypass-codes/remove", "Remove", roles=OPERATORS, template="bypass_codes_remove.html")
async def removal(visit: Visit) -> Context:
    """Show the codes that the form removes."""
    domain, user = person_in_address(visit)
    return {
        "title": f"Remove the bypass codes of {user}",
        "codes": await codes_of(visit, domain.id, user),
        "columns": COLUMNS,
        "back": person_url(domain.id, user),
    }


@pages.submit("/people/person/bypass-codes/remove", roles=OPERATORS)
async def remove(visit: Visit) -> Redirect:
    """Remove all codes of the user."""
    domain, user = person_in_address(visit)
    answer = await visit.call("/ad/RemoveBypassCodes", {"userName": user}, domain=domain.id)
    return Redirect(person_url(domain.id, user), f"{answer['message']}.")


async def codes_of(visit: Visit, domain_id: int, user: str) -> list[Row]:
    """Return the codes of a user, without their digits."""
    answer = await visit.call("/ad/ListBypassCodes", {"userName": user}, domain=domain_id)
    return entries(answer["bypassCodes"])
