"""The HTTP operations of endpoint users and their one-time-password seeds: /api/v1/endpointUsers/*."""

from typing import Final
from urllib.parse import urlsplit

from sallyport.areas.users.accounts.account import (
    COLUMNS,
    Removal,
    UserQuery,
    WalletAssignment,
    WalletChange,
)
from sallyport.areas.users.accounts.bodies import (
    AddUser,
    ConfirmTotp,
    DeleteUsers,
    EnrolTotp,
    Filter,
    ListUsers,
    OneUser,
    TotpEnrolled,
    UpdateUser,
    UpdateWallet,
    UserDetail,
    UserList,
    UserSaved,
)
from sallyport.areas.users.accounts.service import Users
from sallyport.areas.users.administrators import Administrators
from sallyport.areas.users.bodies import StatusAnswer
from sallyport.areas.users.totp import LinkTo, OneTimeSeeds
from sallyport.base.addresses import is_loopback
from sallyport.base.answer import answer, answers
from sallyport.base.clock import iso
from sallyport.base.errors import FieldError, Invalid
from sallyport.base.model import Done
from sallyport.base.text import counted
from sallyport.web.bodies import Plain, totals
from sallyport.web.operation import Operations
from sallyport.web.scope import OPERATORS, READERS, Caller, Gate

DELETE = "delete"
ONLY_HERE: Final = (
    "the link works only on this machine, because HTTP listens on a loopback address: set public_url to the address at "
    "which users reach the service"
)
_NUMBERS = {"id", "instance", "group"}
_FLAGS = {"true": "1", "yes": "1", "1": "1", "false": "0", "no": "0", "0": "0"}


def operations(
    service: Users, seeds: OneTimeSeeds, administrators: Administrators, link_to: LinkTo, gate: Gate
) -> Operations:
    """Return the operations of endpoint users and their one-time-password seeds."""
    users = Operations("Endpoint users", gate)
    _declare_reading(users, service)
    _declare_changing(users, service, administrators)
    _declare_seeds(users, seeds, administrators, link_to)
    return users


def _declare_reading(users: Operations, service: Users) -> None:
    @users.post("/api/v1/endpointUsers/listAllEpmUsers", roles=READERS)
    async def list_users(body: ListUsers, caller: Caller) -> Plain[UserList]:
        """List the endpoint users of a domain, ordered by id.

        filterBy is one of userName (matches a part of the name), userId, userType, credType, source, assign,
        instanceIds, hostNames, groupId and credentialId. It is case-insensitive.
        """
        listed, total = await service.page(_query(body))
        return Plain({**totals(total), "epmUsers": answers(listed)})

    @users.post("/api/v1/endpointUsers/getEpmUserDetail", "/api/v1/endpointUsers/epmUserDetail", roles=READERS)
    async def user_detail(body: OneUser, caller: Caller) -> UserDetail:
        """Return a user with the password and the one-time-password seed. An auditor gets ******** instead of these
        secrets. The audit trail records each call."""
        detail = await service.detail(body.domainId, body.userId, reveal=caller.role in OPERATORS)
        values = {
            **answer(detail.account, detail=True),
            "userType": detail.account.user_type,
            "password": detail.password,
            "motp": detail.motp,
            "credentialType": detail.credential_kind,
        }
        return UserDetail.model_validate(values)


def _declare_changing(users: Operations, service: Users, administrators: Administrators) -> None:
    @users.post("/api/v1/endpointUsers/addEpmUserInfo", roles=OPERATORS)
    async def add_user(body: AddUser, caller: Caller) -> UserSaved:
        """Add a user. The user can log in at once. The password must meet the password policies of the user's
        instances."""
        user_id = await service.add(body.domainId, body.change, body.instanceIds)
        return UserSaved(message="user added", userId=str(user_id))

    @users.put("/api/v1/endpointUsers/updateEpmUserInfo", roles=OPERATORS)
    async def update_user(body: UpdateUser, caller: Caller) -> UserSaved:
        """Change a user. The next login uses the new values. An absent field keeps its value. An empty field clears the
        value, but an empty password keeps the old password. Only the role admin changes the password or the seed of an
        administrator."""
        if body.change.secrets():
            await administrators.check(body.domainId, body.userId, caller)
        await service.update(body.domainId, body.userId, body.change)
        return UserSaved(message="user updated", userId=str(body.userId))

    @users.put("/api/v1/endpointUsers/updateUserWallet", roles=OPERATORS)
    async def update_wallet(body: UpdateWallet, caller: Caller) -> StatusAnswer:
        """Assign users to groups, instances, wallet users and credentials. If one assignment fails, nothing is changed.

        With assignMultiple, the wallet users and credentials are added to those that the endpoint users already have.
        Without assignMultiple, the request may name at most one wallet user and one credential. These replace the ones
        that the endpoint users already have.
        """
        await service.update_wallet(body.domainId, _wallet(body))
        return StatusAnswer(message="wallet updated")

    @users.delete("/api/v1/endpointUsers/deleteEpmUser", roles=OPERATORS)
    async def delete_users(body: DeleteUsers, caller: Caller) -> StatusAnswer:
        """Delete users, or remove users from an instance. If this fails for one user, nothing is changed. If an entry
        of the request has an instanceId, the user is only removed from this instance. If `key` is `delete`, all users
        are deleted, even those with an instanceId."""
        wanted = [Removal(each.epmUserId, each.userName, each.instanceId) for each in body.epmUsers]
        wholly = body.key.strip().lower() == DELETE
        deleted = await service.remove(body.domainId, wanted, wholly=wholly)
        return StatusAnswer(
            message=f"{counted(deleted, 'user')} deleted" if deleted else "users were removed from their instances"
        )


def _declare_seeds(users: Operations, seeds: OneTimeSeeds, administrators: Administrators, link_to: LinkTo) -> None:
    @users.post("/api/v1/endpointUsers/enrolTotp", roles=OPERATORS)
    async def enrol_totp(body: EnrolTotp, caller: Caller) -> TotpEnrolled:
        """Generate a one-time-password seed for a user. The seed becomes valid with its first correct code. Until then,
        the old seed remains valid.

        The answer contains a link to a page on which the user types the first code. No other answer contains this link.
        Only the role admin makes seeds for administrators.
        """
        await administrators.check(body.domainId, body.user, caller)
        made, secret = await seeds.enrol(body.domainId, body.user)
        link = link_to(secret)
        return TotpEnrolled(
            message="the seed becomes valid with its first correct code",
            userId=made.user.id,
            otpauth=made.otpauth,
            seed=made.seed,
            qrCode=await seeds.image(made),
            link=link,
            expiresAt=iso(made.expires_at),
            warnings=[ONLY_HERE] if is_loopback(urlsplit(link).hostname or "") else [],
        )

    @users.post("/api/v1/endpointUsers/confirmTotp", roles=OPERATORS)
    async def confirm_totp(body: ConfirmTotp, caller: Caller) -> Done:
        """Confirm a user's new seed with its first code. After five wrong codes, the enrolment ends. Only the role
        admin confirms seeds of administrators."""
        await administrators.check(body.domainId, body.user, caller)
        checked = await seeds.confirm(body.domainId, body.user, body.code)
        if not checked.right:
            left = f"tries left: {checked.tries_left}" if checked.tries_left else "the enrolment has ended"
            raise Invalid.about(f"wrong code{checked.hint}; {left}", "code")
        return Done(message="the seed is valid now")


def _query(body: ListUsers) -> UserQuery:
    """Return the query of a request. Raises Invalid if filterBy or value is wrong."""
    page, chosen = body.page(), body.filter or Filter()
    column, value = filter_column(chosen.filterBy), chosen.value.strip()
    if column == "assigned" and value:
        value = _FLAGS.get(value.lower(), "")
        if not value:
            raise _wrong_value("must be true or false")
    if column in _NUMBERS and value and not (value.isascii() and value.isdecimal() and len(value) < 19):
        raise _wrong_value("must be a whole number")
    return UserQuery(
        domain_id=body.domainId,
        column=column if value else "",
        value=value,
        instance_ids=body.instanceIds or None,
        offset=page.offset,
        limit=page.size,
    )


def filter_column(filter_by: str) -> str:
    """Return the column to which a value of filterBy belongs. Upper and lower case in the value do not matter, and
    underscores are ignored. If the value is empty, return an empty text. Raises Invalid if the value belongs to no
    column."""
    if not filter_by:
        return ""
    wanted = filter_by.lower().replace("_", "")
    column = next((column for name, column in COLUMNS.items() if name.lower() == wanted), None)
    if column is None:
        message = f"must be one of {', '.join(COLUMNS)}, or empty"
        raise Invalid("invalid filterBy", (FieldError("filter.filterBy", message),))
    return column


def _wrong_value(message: str) -> Invalid:
    return Invalid("invalid value", (FieldError("filter.value", message),))


def _wallet(body: UpdateWallet) -> WalletChange:
    return WalletChange(
        WalletAssignment(
            domain_id=body.domainId,
            user_ids=body.epmUserId,
            wallet_user_ids=body.platformUserNames,
            credential_ids=body.credentialId,
            credential_type=body.credentialType,
            issuer_id=body.issuerId,
            several=body.assignMultiple,
        ),
        group_ids=body.groupId,
        instance_ids=body.instanceId,
        user_type=body.userType,
        privileged_user=body.privilegedUser,
    )
