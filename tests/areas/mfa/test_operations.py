"""Tests of the answers of /ad/...MFAProvider(s), as a caller gets them."""

import json
from typing import Any

import pytest

from sallyport.areas.mfa.operations import CHECKS_PER_MINUTE, operations
from sallyport.areas.policy.rules.bodies import RuleFields
from sallyport.base.clock import iso
from sallyport.base.errors import Conflict, NotFound, TooMany
from sallyport.service.operations import gate_of
from sallyport.web.operation import Operation
from sallyport.web.scope import Caller, Role
from tests.areas import Areas, areas, clock

__all__ = ["areas", "clock"]

HOOK = {"provider": "webhook", "url": "http://127.0.0.1:9/hook", "secret": "a secret of the hook"}
OK = {"code": 200, "status": "Success"}


class Api:
    """The operations of MFA providers, for an admin of the tenant or, with `is_installation`, for the host's admin."""

    def __init__(self, areas: Areas, *, is_installation: bool = False) -> None:
        self._areas = areas
        (declared,) = areas.app.mfa.operations(gate_of(areas.app))
        self._operations = {each.paths[0]: each for each in declared.all}
        self._caller = Caller(
            1, 1, 1, tenant_id=areas.tenant, role=Role.ADMIN, name="ann", is_installation=is_installation
        )

    async def __call__(self, path: str, **fields: object) -> Any:
        """Call an operation of the domain."""
        return await self.call(self._operations[f"/ad/{path}"], **fields)

    async def call(self, operation: Operation, **fields: object) -> Any:
        """Call an operation of the domain."""
        assert operation.run is not None
        body = {"orgId": 1, "tenantId": 1, "domainId": self._areas.domain, **fields}
        return json.loads(await operation.run(json.dumps(body).encode(), self._caller))


async def test_a_provider_is_set_and_shown(areas: Areas) -> None:
    """The answer has the fields without secrets, and the last known state."""
    api = Api(areas)
    state = {"workedAt": "", "failsSince": "", "lastError": ""}
    assert await api("SetMFAProvider", **HOOK) == {**OK, "message": "webhook is the MFA provider"}
    shown = {"provider": "webhook", "timeoutSeconds": 60, "url": HOOK["url"]}
    assert await api("GetMFAProvider") == {**OK, **shown, **state}
    checked = await api("CheckMFAProvider")
    assert checked == {**OK, "provider": "webhook", "works": False, "message": checked["problem"]} | {
        "problem": checked["problem"]
    }
    assert "port 9 is closed" in checked["problem"]
    failed = {"workedAt": "", "failsSince": iso(areas.clock()), "lastError": checked["problem"]}
    assert await api("GetMFAProvider", provider="webhook") == {**OK, **shown, **failed}
    assert await api("DeleteMFAProvider") == {**OK, "message": "MFA provider removed"}
    with pytest.raises(NotFound):
        await api("GetMFAProvider")


async def test_providers_are_listed(areas: Areas) -> None:
    """The default provider comes first. Each one has its state and the rules that name it."""
    api = Api(areas)
    await api("SetMFAProvider", provider="totp", timeoutSeconds=30)
    added = await api("AddMFAProvider", **HOOK)
    assert added == {**OK, "message": "webhook is an MFA provider for login rules that name it"}
    given = {"name": "admins", "action": "mfa_required", "users": ["ann"], "provider": "webhook"}
    rule = await areas.rules.add(areas.domain, RuleFields.model_validate(given))
    await api("CheckMFAProvider", provider="totp")
    common = {"strongest": "any", "failsSince": "", "lastError": ""}
    totp = {"provider": "totp", "isDefault": True, "timeoutSeconds": 30, "usedBy": [], "workedAt": iso(areas.clock())}
    hook = {"provider": "webhook", "isDefault": False, "timeoutSeconds": 60, "workedAt": ""}
    listed = await api("ListMFAProviders")
    assert listed == {**OK, "providers": [{**common, **totp}, {**common, **hook, "usedBy": [f"rule {rule} admins"]}]}
    with pytest.raises(Conflict):
        await api("DeleteMFAProvider", provider="webhook")
    await areas.rules.delete(areas.domain, [rule])
    await api("DeleteMFAProvider", provider="webhook")
    assert [each["provider"] for each in (await api("ListMFAProviders"))["providers"]] == ["totp"]


async def test_only_the_hosts_admin_learns_how_to_allow_an_address(areas: Areas) -> None:
    """The hint names a setting of the installation, and the networks around it."""
    await Api(areas)("SetMFAProvider", **HOOK)
    areas.http.egress.use(())
    (problem,) = {(await Api(areas)("CheckMFAProvider"))["problem"]}
    assert "address not allowed" in problem and "SALLYPORT_EGRESS" not in problem
    told = (await Api(areas, is_installation=True)("CheckMFAProvider"))["problem"]
    assert told.startswith(f"{problem}; 127.0.0.1: ") and "127.0.0.1/32" in told


async def test_a_domain_has_few_checks_in_a_minute(areas: Areas) -> None:
    """A tenant cannot make the service call a server often. The host's admin may check as often as necessary."""
    (check,) = (
        each
        for each in operations(areas.providers, gate_of(areas.app), areas.clock).all
        if each.paths[0] == "/ad/CheckMFAProvider"
    )
    await Api(areas)("SetMFAProvider", provider="totp")
    works = {**OK, "provider": "totp", "works": True, "problem": ""}
    for _ in range(CHECKS_PER_MINUTE):
        answer = await Api(areas).call(check)
        assert answer == {**works, "message": "codes are checked by this service; no server is asked"}
    with pytest.raises(TooMany, match="5 checks in a minute"):
        await Api(areas).call(check)
    assert (await Api(areas, is_installation=True).call(check))["works"]
    other = await areas.domains.add(areas.tenant, "branch")
    await areas.providers.set(other, "totp", {}, 60)
    assert (await Api(areas).call(check, domainId=other))["works"]
    areas.clock.pass_by(60)
    assert (await Api(areas).call(check))["works"]
