"""Local operations of administrators, identities and sessions: admin.add, admin.list, admin.remove, admin.password,
admin.totp, admin.sessions, admin.revoke, admin.identities, admin.forget.

There is no operation of the API for administrators. Only a user of the service's host can make one.
"""

from typing import Annotated, Literal

from pydantic import Field

from sallyport.areas.signin.administrators import Administrators, Identities
from sallyport.areas.signin.person import Administrator, Identity, Session
from sallyport.areas.signin.sessions import Sessions
from sallyport.areas.tenancy.service import Tenancy
from sallyport.base.clock import iso
from sallyport.base.fair import in_parts
from sallyport.base.totp import otpauth
from sallyport.base.wire import JSON
from sallyport.shell.command import Arguments, LocalOperations
from sallyport.web.scope import Role

Number = Annotated[int, Field(ge=1, le=2**63 - 1)]


class AddAdministrator(Arguments):
    """Arguments of admin.add. org, tenant: the tenant; None for an installation administrator. role: the role in the
    tenant."""

    name: str
    password: str = Field(repr=False)
    org: Number | None = None
    tenant: Number | None = None
    role: Literal["admin", "operator", "auditor"] = "admin"


class Named(Arguments):
    """Arguments with the name of an administrator."""

    name: str


class SetPassword(Named):
    """Arguments of admin.password."""

    password: str = Field(repr=False)


class RevokeSession(Arguments):
    """Arguments of admin.revoke. session: the id of a session, as admin.sessions lists it."""

    session: int


class ForgetIdentity(Arguments):
    """Arguments of admin.forget. identity: the id of an identity, as admin.identities lists it."""

    identity: Number


def local_operations(
    service: Administrators, identities: Identities, sessions: Sessions, tenancy: Tenancy
) -> LocalOperations:
    """Return the local operations by name."""
    local = LocalOperations()

    @local("admin.add")
    async def add(wanted: AddAdministrator) -> JSON:
        role, tenant_id = Role.INSTALLATION, None
        if wanted.org is not None or wanted.tenant is not None:
            role, tenant_id = Role(wanted.role), await tenancy.tenant_id(wanted.org or 0, wanted.tenant or 0)
        made, seed = await service.add(wanted.name, wanted.password, role, tenant_id)
        return {**_row(made), "otpauth": _otpauth(seed, made)}

    @local("admin.list")
    async def listing() -> JSON:
        return [_row(each) for each in await service.list()]

    @local("admin.remove")
    async def remove(wanted: Named) -> JSON:
        return _row(await service.remove(wanted.name))

    @local("admin.password")
    async def password(wanted: SetPassword) -> JSON:
        return _row(await service.set_password(wanted.name, wanted.password))

    @local("admin.totp")
    async def totp(wanted: Named) -> JSON:
        renewed, seed = await service.renew_seed(wanted.name)
        return {**_row(renewed), "otpauth": _otpauth(seed, renewed)}

    @local("admin.sessions")
    async def live() -> JSON:
        return list[JSON](await in_parts(_session, await sessions.everything()))

    @local("admin.revoke")
    async def revoke(wanted: RevokeSession) -> JSON:
        return _session(await sessions.end(wanted.session))

    @local("admin.identities")
    async def people() -> JSON:
        return list[JSON](await in_parts(_identity, await identities.list()))

    @local("admin.forget")
    async def forget(wanted: ForgetIdentity) -> JSON:
        return _identity(await identities.forget(wanted.identity))

    return local


def _row(each: Administrator) -> dict[str, JSON]:
    return {
        "id": each.id,
        "name": each.name,
        "role": each.role,
        "org": each.organization or None,
        "tenant": each.tenant_number or None,
        "created": iso(each.created_at),
    }


def _identity(each: Identity) -> dict[str, JSON]:
    return {
        "id": each.id,
        "name": each.name,
        "role": each.role,
        "org": each.organization or None,
        "tenant": each.tenant_number or None,
        "issuer": each.issuer,
        "subject": each.subject,
        "created": iso(each.created_at),
        "signed_in": iso(each.signed_in_at),
    }


def _session(each: Session) -> dict[str, JSON]:
    return {
        "id": each.id,
        "kind": each.kind,
        "name": each.name,
        "role": each.role,
        "org": each.organization or None,
        "tenant": each.tenant_number or None,
        "from": each.source,
        "browser": each.agent,
        "began": iso(each.created_at),
        "seen": iso(each.seen_at),
        "ends": iso(each.ends_at),
    }


def _otpauth(seed: str, administrator: Administrator) -> str:
    return otpauth(seed, issuer="Sallyport", account=administrator.name)
