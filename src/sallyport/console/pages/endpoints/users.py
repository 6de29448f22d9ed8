"""Endpoint users, with their credentials and their removal."""

from typing import Final

from sallyport.areas.domains.domain import Domain
from sallyport.areas.users.accounts.account import Account
from sallyport.base.wire import JSON, Row
from sallyport.console.columns import Column, row_columns
from sallyport.console.pages.credentials.credentials import CREDENTIALS as ISSUED
from sallyport.console.pages.credentials.finding import WALLETS, owner_of
from sallyport.console.pages.endpoints.access import GROUPS, INSTANCES, USERS, is_yes, rows_of
from sallyport.console.pages.reading import find, ids, joined, number, of, rights
from sallyport.console.table import Filter, listed
from sallyport.console.visit import Pages, Visit
from sallyport.web.console_pages import Context, Redirect
from sallyport.web.scope import OPERATORS, READERS

pages = Pages()
CREDENTIALS: Final = (("", "as the user has"), ("Password", "Password"), ("SSH", "SSH key"), ("DID", "DID"))
USER_COLUMNS: Final = row_columns(
    Account,
    *("userName", "source", "credType", "hasPassword", "hasTotp"),
    Column("isPrivileged", "Root", "flag"),
    "groups",
    Column("machines", "Instances"),
    links={"userName": lambda row: str(row["address"])},
)
USER_FILTERS: Final = (
    Filter("userName", "Name"),
    Filter("source", "Source", (("Local", "local"), ("discovered", "discovered"))),
    Filter("assign", "Assigned", (("true", "to an instance"), ("false", "to none"))),
)
NO_USER: Final = "No user yet. Add users, or let an agent discover the accounts of its machine."


@pages.show("/endpoint-users", "Endpoint users", roles=READERS, template="endpoint_users.html", menu="Endpoints")
async def users(visit: Visit) -> Context:
    """List the endpoint users of a domain. The list operation accepts only one filter at a time."""
    domain = visit.domain()
    chosen = next((each.name for each in USER_FILTERS if visit.query.get(each.name)), "")
    body: Row = {"filter": {"filterBy": chosen, "value": visit.query.get(chosen, "")}}
    table = await listed(
        visit, USER_COLUMNS, USERS, "epmUsers", body, domain=domain.id, filters=USER_FILTERS, empty=NO_USER, most=1000
    )
    table.rows = [user_row(each, domain) for each in table.rows]
    return {"domain": domain, "table": table, **rights(visit)}


@pages.show("/endpoint-users/add", "Add an endpoint user", roles=OPERATORS, template="endpoint_user_form.html")
async def newuser_row(visit: Visit) -> Context:
    """Show the form of a new user."""
    return {"domain": visit.domain(), "user": None, "credentials": CREDENTIALS}


@pages.submit("/endpoint-users/add", roles=OPERATORS)
async def adduser_row(visit: Visit) -> Redirect:
    """Add a user."""
    domain = visit.domain()
    await visit.call("/api/v1/endpointUsers/addEpmUserInfo", _user_body(visit), domain=domain.id)
    return Redirect(of("/endpoint-users", domain), f"The user {visit.fields.get('userName', '')} is added.")


@pages.show("/endpoint-users/{user}", "Endpoint user", roles=OPERATORS, template="endpoint_user_form.html")
async def user(visit: Visit) -> Context:
    """Show the form of a user, with the stored values. It does not contain the stored secrets."""
    domain = visit.domain()
    found = await _user(visit, domain)
    return {
        "title": f"Endpoint user {found['userName']}",
        "domain": domain,
        "user": user_row(found, domain),
        "credentials": CREDENTIALS,
    }


@pages.submit("/endpoint-users/{user}", roles=OPERATORS)
async def changeuser_row(visit: Visit) -> Redirect:
    """Change a user. If the password or a field for keys is empty, the stored value stays."""
    domain = visit.domain()
    body: Row = {**_user_body(visit), "userId": number(visit.at["user"], "user")}
    await visit.call("/api/v1/endpointUsers/updateEpmUserInfo", body, domain=domain.id)
    return Redirect(of("/endpoint-users", domain), f"The user {visit.fields.get('userName', '')} is changed.")


@pages.show("/endpoint-users/{user}/assign", "Assign a user", roles=OPERATORS, template="endpoint_assign.html")
async def ask_assignment(visit: Visit) -> Context:
    """Show the groups, the instances, the wallets and the credentials that can be assigned to a user."""
    domain = visit.domain()
    found = user_row(await _user(visit, domain), domain)
    groups = await rows_of(visit, domain, GROUPS, "groups")
    instances = await rows_of(visit, domain, INSTANCES, "instances")
    wallets = await rows_of(visit, domain, WALLETS, "users")
    credentials = await rows_of(visit, domain, ISSUED, "credentials")
    return {
        "title": f"Assign {found['userName']}",
        "domain": domain,
        "user": found,
        "groups": [(str(each["groupId"]), str(each["groupName"])) for each in groups],
        "instances": [(str(each["instanceId"]), str(each["instanceName"])) for each in instances],
        "wallets": [("", "none"), *((str(each["walletId"]), owner_of(each)) for each in wallets)],
        "credentials": [("", "none"), *((str(each["id"]), f"{each['name']} ({each['id']})") for each in credentials)],
    }


@pages.submit("/endpoint-users/{user}/assign", roles=OPERATORS)
async def assign(visit: Visit) -> Redirect:
    """Assign a user to the chosen groups and instances, and assign a wallet and a credential to the user."""
    domain, fields = visit.domain(), visit.fields
    body: Row = {
        "epmUserId": [number(visit.at["user"], "user")],
        "groupId": ids(fields.getlist("groups"), "group"),
        "instanceId": ids(fields.getlist("instances"), "instance"),
        "platformUserNames": ids(filter(None, fields.getlist("wallet")), "wallet"),
        "credentialId": ids(filter(None, fields.getlist("credential")), "credential"),
        "assignMultiple": "no" if fields.get("replace") else "yes",
    }
    await visit.call("/api/v1/endpointUsers/updateUserWallet", body, domain=domain.id)
    return Redirect(of(f"/endpoint-users/{visit.at['user']}", domain), "The user is assigned.")


@pages.show("/endpoint-users/{user}/remove", "Delete an endpoint user", roles=OPERATORS, template="confirm.html")
async def confirm_user(visit: Visit) -> Context:
    """Show what would be deleted with a user."""
    domain = visit.domain()
    found = user_row(await _user(visit, domain), domain)
    secrets = [name for name, has in (("password", found["hasPassword"]), ("one-time codes", found["hasTotp"])) if has]
    return {
        "text": "The user is deleted. Agents remove the account from the machines, as their settings say.",
        "facts": [
            ("User", found["userName"]),
            ("Domain", domain.name),
            ("Secrets that are deleted", ", ".join(secrets)),
            ("Instances", found["machines"]),
            ("Groups", joined(found["groups"], 20)),
            ("DID", found["did"]),
        ],
        "button": "Delete the user",
        "back": of(f"/endpoint-users/{found['userId']}", domain),
    }


@pages.submit("/endpoint-users/{user}/remove", roles=OPERATORS)
async def remove_user(visit: Visit) -> Redirect:
    """Delete a user."""
    domain = visit.domain()
    body: Row = {"key": "delete", "epmUsers": [{"epmUserId": number(visit.at["user"], "user")}]}
    answer = await visit.call("/api/v1/endpointUsers/deleteEpmUser", body, domain=domain.id)
    return Redirect(of("/endpoint-users", domain), f"{answer['message']}.")


async def _user(visit: Visit, domain: Domain) -> Row:
    wanted = number(visit.at["user"], "user")
    body: Row = {"filter": {"filterBy": "userId", "value": str(wanted)}}
    return await find(visit, USERS, "epmUsers", "userId", wanted, "user", domain=domain.id, body=body)


def user_row(user: Row, domain: Domain) -> Row:
    """Return an endpoint user with its instances, its rights and the address of its page."""
    machines = user["instanceIds"] if isinstance(user["instanceIds"], list) else []
    names = user["hostNames"] if isinstance(user["hostNames"], list) else []
    shown = [str(name or f"instance {each}") for each, name in zip(machines, names, strict=False)]
    return {
        **user,
        "isPrivileged": is_yes(user["privilegedUser"]),
        "machines": joined(list[JSON](shown)) or None,
        "groups": user["groups"] or None,
        "address": of(f"/endpoint-users/{user['userId']}", domain),
    }


def _user_body(visit: Visit) -> Row:
    fields = visit.fields
    body: Row = {
        "userName": fields.get("userName", ""),
        "password": fields.get("password", ""),
        "privilegedUser": "yes" if fields.get("privileged") else "no",
        "did": fields.get("did", ""),
    }
    if fields.get("credType"):
        body["credType"] = fields["credType"]
    if fields.get("sshKey") or fields.get("no_keys"):
        body["sshKey"] = fields.get("sshKey", "")
    return body
