"""The forms for users and methods, which instances and endpoint groups have in common."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from sallyport.areas.domains.domain import Domain
from sallyport.base.wire import JSON, Row
from sallyport.console.pages.reading import changes
from sallyport.console.table import Filter
from sallyport.console.visit import Visit
from sallyport.shell.command import entries
from sallyport.web.console_pages import Context, Redirect

GROUPS: Final = "/api/v1/instanceGroup/listEndpointGroup"
INSTANCES: Final = "/api/v1/instances/list"
USERS: Final = "/api/v1/endpointUsers/listAllEpmUsers"
METHODS: Final = (("SSH", "SSH key"), ("DID", "wallet (DID)"), ("Password", "password"))
MAX_CHOICES: Final = 1000
"""Maximum number of checkboxes on a page."""
MAX_USERS: Final = 200
"""Maximum number of users on a page about an instance or a group. A row of a user costs more than one of an
instance."""
SEARCH: Final = (Filter("filter", "Text"),)


@dataclass(frozen=True, slots=True)
class Owner:
    """An instance or an endpoint group. address: the address of its page. methods: its authentication methods,
    separated by commas. has: a function that returns whether a user is assigned to it. of_users: fields of
    a request for a list of users, which select its users."""

    name: JSON
    address: str
    methods: JSON
    has: Callable[[Row], bool]
    of_users: Row


async def users_form(visit: Visit, domain: Domain, owner: Owner, text: str) -> Context:
    """Return the variables of the form for the users of an instance or a group. text: the effect of an assignment."""
    users = await _choices(visit, domain, owner)
    return {
        "title": f"Users of {owner.name}",
        "text": text,
        "label": "Users",
        "choices": [(str(each["userId"]), str(each["userName"])) for each in users],
        "chosen": [str(each["userId"]) for each in users if owner.has(each)],
        "back": owner.address,
        "most": MAX_USERS,
        "is_searchable": True,
    }


async def set_users(visit: Visit, domain: Domain, owner: Owner, path: str, body: Mapping[str, JSON]) -> Redirect:
    """Assign the chosen users of the form, and remove the assignments of all other users that the form has listed.

    path: the operation that adds or removes users. body: the fields of its body that name the instance or the group.
    """
    users = await _choices(visit, domain, owner)
    known, present = [each["userId"] for each in users], [each["userId"] for each in users if owner.has(each)]
    for action, changed in changes(known, present, visit.fields.getlist("chosen"), "user"):
        await visit.call(path, {**body, "userIds": changed, "action": action}, domain=domain.id)
    return Redirect(owner.address, "The users are assigned.")


async def _choices(visit: Visit, domain: Domain, owner: Owner) -> list[Row]:
    """Return the users that the form lists, at most MAX_USERS: the users whose name contains a text (`filter` in the
    address), the present users of the owner (`present`), or the first users of the domain."""
    body: Row = {"pageSize": MAX_USERS}
    if text := visit.query.get("filter", ""):
        body["filter"] = {"filterBy": "userName", "value": text}
    elif visit.query.get("present"):
        body |= owner.of_users
    return entries((await visit.call(USERS, body, domain=domain.id))["epmUsers"])


def methods_form(owner: Owner, whose: str) -> Context:
    """Return the variables of the form for authentication methods. whose: the end of the sentence "Ways in which users
    may log in"."""
    return {
        "title": f"Methods of {owner.name}",
        "text": f"Ways in which users {whose}. Without a choice, all are allowed.",
        "label": "Methods",
        "choices": METHODS,
        "chosen": str(owner.methods).split(","),
        "back": owner.address,
        "is_searchable": False,
    }


def chosen_methods(visit: Visit) -> str:
    """Return the methods that are chosen in the form, separated by commas."""
    return ",".join(visit.fields.getlist("chosen"))


async def rows_of(visit: Visit, domain: Domain, path: str, rows: str, **body: JSON) -> list[Row]:
    """Return the first rows of a list operation, as many as a form can show. body: further fields of the request."""
    return entries((await visit.call(path, {**body, "pageSize": MAX_CHOICES}, domain=domain.id))[rows])


def contains(values: JSON, value: JSON) -> bool:
    """Return whether a field of a row is a list that contains a value."""
    return isinstance(values, list) and value in values


def is_yes(value: JSON) -> bool:
    """Return whether a flag that the API stores as text is set."""
    return str(value).lower() in ("true", "yes", "1")
