"""Objects that files manage (`sallyport apply`): the API changes them only with `?override=true`."""

from collections.abc import Mapping, Sequence
from typing import Any, get_args

import pytest

from sallyport.service.operations import gate_of, operations
from sallyport.web.description import document
from sallyport.web.scope import Role
from tests.api.world import Tenant, World
from tests.areas import Areas

UPDATE, DELETE = "/network_device/UpdateClient", "/network_device/DeleteClient"
INSIST = "?override=true"
TRAIL = "/api/v1/audit/list"
IMPORT = "/ad/ImportConfiguration"
EXCEPTIONS: Mapping[str, Sequence[str]] = {
    "it checks the steps of its plan": [IMPORT],
    "it only adds objects": [
        "/ad/AddAuthority",
        "/ad/AddDomain",
        "/ad/AddLoginRule",
        "/api/v1/endpointUsers/addEpmUserInfo",
        "/api/v1/instanceGroup/addInstanceGroup",
        "/api/v1/instances/addInstance",
        "/api/v1/instances/addPasswordPolicy",
        "/api/v1/machine/add-machine",
        "/network_device/AddClient",
    ],
    "it takes away access": ["/api/v1/endpointUsers/deleteEpmUser"],
    "no file has passwords, factors and lock-outs of people": [
        "/ad/EndPromptPause",
        "/ad/EnrolGroup",
        "/ad/EnrolUser",
        "/ad/MakeBypassCodes",
        "/ad/RemoveBypassCodes",
        "/ad/RemovePasskey",
        "/ad/RemoveRememberedStation",
        "/ad/Unlock",
        "/api/v1/endpointUsers/confirmTotp",
        "/api/v1/endpointUsers/enrolTotp",
    ],
    "no file has devices, sessions, logins and reauthorizations": [
        "/ad/DeleteShadowLogins",
        "/ad/RecordShadowLogins",
        "/ad/StartReauthorization",
        "/ad/StopReauthorization",
        "/network_device/ChangeSession",
        "/network_device/DeleteDevice",
        "/network_device/DisconnectSession",
        "/network_device/ResetDevice",
        "/network_device/UpdateDevice",
    ],
    "it only checks, or reads again": [
        "/ad/CheckEnrolments",
        "/ad/CheckFirstFactor",
        "/ad/CheckMFAProvider",
        "/ad/FetchRevocationLists",
        "/ad/MakeProfileLink",
        "/api/v1/directory/check",
    ],
    "no file has what was read from a directory": [
        "/api/v1/agent/directory/batch",
        "/api/v1/agent/directory/begin",
        "/api/v1/agent/directory/finish",
        "/api/v1/cancelImport",
        "/api/v1/confirmImport",
        "/api/v1/directory/sync",
        "/api/v1/importUsers",
        "/api/v1/integrations/directory/importLdif",
    ],
    "no file has keys, orders and reports of agents": [
        "/api/v1/agent/createKey",
        "/api/v1/agent/desiredState",
        "/api/v1/agent/exchangeKey",
        "/api/v1/agent/order",
        "/api/v1/agent/privilegeStatus",
        "/api/v1/agent/renewKey",
        "/api/v1/agent/report",
        "/api/v1/agent/revokeKey",
        "/api/v1/agent/rotateStateKey",
        "/api/v1/agent/rotation",
        "/api/v1/agent/takeOver",
    ],
    "no file has wallets and credentials": [
        "/api/v1/credential/createCredential",
        "/api/v1/credential/revokecredential",
        "/api/v1/did/createHolderDid",
        "/api/v1/did/createIssuerDid",
        "/api/v1/did/deleteDid",
        "/api/v1/did/rotateKey",
        "/api/v1/schema/createSchema",
        "/api/v1/verifierService/issuePR",
        "/api/v1/walletService/acknowledgeCredential",
        "/api/v1/walletService/assignWalletUser",
        "/api/v1/walletService/createPresentation",
        "/api/v1/walletService/pollCredentials",
        "/api/v1/walletService/pollPresentationRequest",
        "/api/v1/walletService/registerWalletUser",
        "/api/v1/walletService/resetWallet",
        "/api/v1/walletService/submitPresentation",
    ],
}
"""The operations that change something and are in `changed_by` of no kind, by the reason."""


def files(tenant: Tenant, *objects: tuple[str, dict[str, Any]], prune: str = "nothing") -> None:
    """Apply the objects of files."""
    items = [{"kind": kind, "name": kind, "fields": fields, "source": f"{kind}.toml:1"} for kind, fields in objects]
    tenant.world.service.call(
        "configuration.apply", org=tenant.org, tenant=tenant.number, items=items, apply=True, prune=prune
    )


def client_of_files(tenant: Tenant) -> int:
    """Let files manage a RADIUS client of the name VPN, and return its id."""
    fields = {"name": "VPN", "address": tenant.world.address(), "secret": "correct horse", "domains": ["corp"]}
    files(tenant, ("client", fields))
    return client_id(tenant)


def client_id(tenant: Tenant) -> int:
    """Return the id of the tenant's only RADIUS client."""
    (client,) = tenant.ask("/network_device/ListClients")["clients"]
    return int(client["clientId"])


def user_of_files(tenant: Tenant) -> int:
    """Let files manage the user bea and the group staff without her, and return the user's id."""
    files(
        tenant,
        ("group", {"domain": "corp", "groupName": "staff"}),
        ("user", {"domain": "corp", "userName": "bea"}),
    )
    users = tenant.ask("/api/v1/endpointUsers/listAllEpmUsers", domainId=tenant.domain, pageSize=100)["epmUsers"]
    return next(int(each["userId"]) for each in users if each["userName"] == "bea")


def entries(tenant: Tenant, action: str) -> list[str]:
    """Return the targets of the entries of the audit trail with an action."""
    found = tenant.ask(TRAIL, pageSize=1000)["entries"]
    return [each["target"] for each in found if each["action"] == action]


def test_a_change_is_refused_unless_the_caller_insists(tenant: Tenant) -> None:
    """The error names the file and the object. With `override`, the change is made, and the trail has the object beside
    the change."""
    client = client_of_files(tenant)
    status, text = tenant.refused(UPDATE, clientId=client, note="new")
    assert status == 409 and text.startswith("client.toml manages the client vpn: change it there, and run sallyport")
    assert tenant.refused(UPDATE + "?override=no", clientId=client, note="new")[0] == 409
    assert tenant.refused(DELETE, clientId=client)[0] == 409
    assert entries(tenant, "configuration.override") == []
    tenant.ask(UPDATE + INSIST, clientId=client, note="new")
    assert entries(tenant, "configuration.override") == ["client vpn"]
    assert len(entries(tenant, "client.update")) == 1
    tenant.ask(DELETE + INSIST, clientId=client)
    assert tenant.ask("/network_device/ListClients")["clients"] == []


def test_objects_without_files_are_changed_as_before(world: World, tenant: Tenant) -> None:
    """Neither another object, nor one of the same name of another tenant is refused. `override` then leaves nothing in
    the trail. The id of another tenant's client tells nothing about its name."""
    managed, other = client_of_files(tenant), world.tenant()
    other.ask("/network_device/AddClient", name="VPN", address=world.address(), secret="another horse")
    own = client_id(other)
    other.ask(UPDATE + INSIST, clientId=own, note="new")
    assert entries(other, "configuration.override") == []
    assert other.refused(UPDATE, clientId=managed, note="new")[0] == 404
    assert tenant.refused(UPDATE, clientId=own, note="new")[0] == 404


def test_help_and_revocation_are_never_refused(tenant: Tenant) -> None:
    """Files stop neither unlatching, nor a new password, nor that a user loses a group, a machine or the account."""
    client = client_of_files(tenant)
    files(
        tenant,
        ("instance", {"domain": "corp", "instanceName": "srv1"}),
        ("group", {"domain": "corp", "groupName": "staff"}),
        ("user", {"domain": "corp", "userName": "bea", "groups": ["staff"], "instances": ["srv1"]}),
    )
    tenant.ask(UPDATE, clientId=client, unlatch=True)
    at = {"domainId": tenant.domain}
    users = tenant.ask("/api/v1/endpointUsers/listAllEpmUsers", **at, pageSize=100)["epmUsers"]
    user = next(int(each["userId"]) for each in users if each["userName"] == "bea")
    update, assign = "/api/v1/endpointUsers/updateEpmUserInfo", "/api/v1/instanceGroup/assignUsersToEndpointGroup"
    (group,) = [int(each["groupId"]) for each in tenant.ask("/api/v1/instanceGroup/listEndpointGroup", **at)["groups"]]
    tenant.ask(update, method="PUT", **at, userId=user, password="a new password")
    assert tenant.refused(update, method="PUT", **at, userId=user, privilegedUser="yes")[0] == 409
    tenant.ask(assign, **at, groupId=group, userIds=[user], action="remove")
    status, text = tenant.refused(assign, **at, groupId=group, userIds=[user], action="add")
    assert (status, text.partition(":")[0]) == (409, "user.toml manages the user corp/bea")
    tenant.ask("/api/v1/endpointUsers/deleteEpmUser", method="DELETE", **at, epmUsers=[{"epmUserId": user}])


def test_each_object_of_an_array_is_checked(tenant: Tenant) -> None:
    """If files manage one policy of an array, the whole request is refused."""
    files(tenant, ("password_policy", {"policyName": "Twelve", "minLen": 12}))
    add, remove = "/api/v1/instances/addPasswordPolicy", "/api/v1/instances/deletePasswordPolicy"
    tenant.ask(add, policyName="Ten", minLen=10)
    listed = tenant.ask("/api/v1/instances/listPasswordPolicy")
    ids = [int(each["policyId"]) for each in listed["passwordPolicies"]]
    body = [tenant.scoped(policyId=each) for each in sorted(ids, reverse=True)]
    for path, status in ((remove, 409), (remove + INSIST, 200)):
        answer = tenant.world.send("DELETE", path, tenant.token, json=body)
        assert answer.status_code == status, answer.text
    assert entries(tenant, "configuration.override") == ["password policy twelve"] * 2


def test_a_list_names_what_files_manage(world: World, tenant: Tenant) -> None:
    """Each listed object of files has `managedBy`. Others, and those of another tenant, do not have it."""
    client_of_files(tenant)
    rule = {"domain": "corp", "name": "Codes", "action": "mfa_required"}
    files(
        tenant,
        ("provider", {"domain": "corp", "provider": "totp"}),
        ("rule", rule),
        ("bypass", {"domain": "corp", "station": "02-00-00-00-00-01"}),
    )
    at = {"domainId": tenant.domain}
    tenant.ask("/ad/AddLoginRule", **at, name="own", action="mfa_required")
    for path, field, key, found in (
        ("/ad/ListLoginRules", "rules", "name", {"Codes": "file", "own": None}),
        ("/ad/ListMFAProviders", "providers", "provider", {"totp": "file"}),
        ("/ad/ListBypassStations", "stations", "station", {"02:00:00:00:00:01": "file"}),
        ("/ad/GetAllDomains", "domains", "domainName", {"corp": None}),
        ("/network_device/ListClients", "clients", "name", {"VPN": "file"}),
    ):
        rows = tenant.ask(path, **({} if field in {"domains", "clients"} else at))[field]
        assert {each[key].replace("-", ":"): each.get("managedBy") for each in rows} == found
    other = world.tenant()
    other.ask("/network_device/AddClient", name="VPN", address=world.address(), secret="another horse")
    assert "managedBy" not in other.ask("/network_device/ListClients")["clients"][0]


def test_an_answer_about_one_object_says_whether_files_manage_it(tenant: Tenant) -> None:
    """Each operation that answers one object has `managedBy`, if files manage this object and not only another one."""
    at, user = {"domainId": tenant.domain}, user_of_files(tenant)
    role = {"product": "", "tag": "", "vlan": "10", "replyAttributes": []}
    files(
        tenant,
        ("first_factor", {"domain": "corp", "firstFactor": "none"}),
        ("provider", {"domain": "corp", "provider": "totp"}),
        ("role", {"domain": "corp", "role": "Staff", "sets": [role]}),
        ("profile", {"domain": "corp", "name": "Office", "ssids": ["office"]}),
        ("agent_settings", {"domain": "corp", "sudoWithoutPassword": True}),
    )
    tenant.ask("/ad/SetRole", **at, role="own", vlan="20")
    own = int(tenant.ask("/api/v1/endpointUsers/addEpmUserInfo", **at, userName="own")["userId"])
    (group,) = [int(each["groupId"]) for each in tenant.ask("/api/v1/instanceGroup/listEndpointGroup", **at)["groups"]]
    detail = "/api/v1/endpointUsers/getEpmUserDetail"
    for path, body, managed in (
        ("/ad/GetFirstFactor", {}, True),
        ("/ad/GetMFAProvider", {}, True),
        ("/ad/GetMFAProvider", {"provider": "totp"}, True),
        ("/ad/ShowRole", {"role": "staff"}, True),
        ("/ad/ShowRole", {"role": "own"}, False),
        ("/ad/ShowProfile", {"name": "Office"}, True),
        (detail, {"userId": user}, True),
        (detail, {"userId": own}, False),
        ("/api/v1/instanceGroup/fetchInstanceGroupDetail", {"groupId": group}, True),
        ("/api/v1/agent/getSettings", {}, True),
    ):
        answer = tenant.ask(path, **at, **body)
        assert answer.get("managedBy") == ("file" if managed else None), (path, body)


def test_a_renamed_object_stays_managed(tenant: Tenant) -> None:
    """Files manage a client that an operation has renamed, under its new name, so that the next apply with `--prune`
    removes it and adds that of the files. The name before is free."""
    client = client_of_files(tenant)
    for name in ("Branch", "BRANCH", "Office"):
        tenant.ask(UPDATE + INSIST, clientId=client, name=name)
        (shown,) = tenant.ask("/network_device/ListClients")["clients"]
        assert (shown["name"], shown["managedBy"]) == (name, "file")
        assert tenant.refused(UPDATE, clientId=client, note="x")[1].startswith("client.toml manages the client")
    assert set(entries(tenant, "configuration.override")) == {"client vpn", "client branch"}
    address = str(shown["address"])
    fields = {"name": "VPN", "address": address, "secret": "correct horse", "domains": ["corp"]}
    files(tenant, ("client", fields), prune="all")
    (again,) = tenant.ask("/network_device/ListClients")["clients"]
    assert (again["name"], again["managedBy"]) == ("VPN", "file")


def test_imports_of_the_command_line_ask_too(tenant: Tenant) -> None:
    """`sallyport client import`, `user import` and `instance import` refuse to change what files manage, and change
    nothing. With `--override` they do."""
    client_of_files(tenant)
    user_of_files(tenant)
    files(tenant, ("instance", {"domain": "corp", "instanceName": "srv1"}))
    (client,) = tenant.ask("/network_device/ListClients")["clients"]
    secret = {"hex": b"another horse".hex()}
    signatures = {"require_message_authenticator": "auto", "limit_proxy_state": "auto"}
    rows = [{"name": "VPN", "address": client["address"], "secret": secret, "product": "Cisco ASA", **signatures}]
    run = tenant.world.service.call
    own = {"org": tenant.org, "tenant": tenant.number, "clients": rows, "apply": True}
    with pytest.raises(AssertionError, match=r"client\.toml manages the client vpn"):
        run("client.import", **own)
    run("client.import", **own, override=True)
    domain = str(tenant.domain)
    for command, row, shown in (
        ("user.import", {"userName": "bea", "privilegedUser": "yes"}, "user corp/bea"),
        ("instance.import", {"instanceName": "srv1", "hostName": "srv1.example"}, "instance corp/srv1"),
    ):
        with pytest.raises(AssertionError, match=f"manages the {shown}"):
            run(command, domain=domain, rows=[row], apply=True)
        run(command, domain=domain, rows=[row], apply=True, override=True)
        assert shown in entries(tenant, "configuration.override")
    run("user.import", domain=domain, rows=[{"userName": "bea", "password": "a new password 1"}], apply=True)
    assert "client vpn" in entries(tenant, "configuration.override")


def test_a_harmless_field_permits_no_other_change(tenant: Tenant) -> None:
    """A request that unlatches a client, or sets a password, and also clears a field is refused."""
    client = client_of_files(tenant)
    for other in ({"shadow": False}, {"tags": []}, {"note": ""}, {"coaPort": 0}):
        assert tenant.refused(UPDATE, clientId=client, unlatch=True, **other)[0] == 409
    user = user_of_files(tenant)
    update, at = "/api/v1/endpointUsers/updateEpmUserInfo", {"domainId": tenant.domain, "userId": user}
    assert tenant.refused(update, method="PUT", **at, password="a new password", sshKey="")[0] == 409
    tenant.ask(update, method="PUT", **at, password="a new password", motp="")
    tenant.ask(UPDATE, clientId=client, unlatch=True)


def test_the_groups_of_a_wallet_request_are_checked(tenant: Tenant) -> None:
    """updateUserWallet changes groups, instances and types as other operations do."""
    user, at = user_of_files(tenant), {"domainId": tenant.domain}
    (group,) = [int(each["groupId"]) for each in tenant.ask("/api/v1/instanceGroup/listEndpointGroup", **at)["groups"]]
    update = "/api/v1/endpointUsers/updateUserWallet"
    for fields in ({"groupId": [group]}, {"privilegedUser": "yes"}, {"userType": ""}):
        status, text = tenant.refused(update, method="PUT", **at, epmUserId=[user], **fields)
        assert (status, text.partition(":")[0]) == (409, "user.toml manages the user corp/bea")
    tenant.ask(update, method="PUT", **at, epmUserId=[user], groupId=[], instanceId=[])
    tenant.ask(update + INSIST, method="PUT", **at, epmUserId=[user], groupId=[group])
    assert "user corp/bea" in entries(tenant, "configuration.override")


def test_the_objects_of_a_renamed_domain_stay_managed(tenant: Tenant) -> None:
    """The files do not have the domain itself. Its objects are refused under both names."""
    files(tenant, ("rule", {"domain": "corp", "name": "Codes", "action": "mfa_required"}))
    at = {"domainId": tenant.domain}
    for name in ("corp2", "CORP"):
        tenant.ask("/ad/UpdateDomain", **at, domainName=name)
        (rule,) = tenant.ask("/ad/ListLoginRules", **at)["rules"]
        assert rule["managedBy"] == "file"
        assert tenant.refused("/ad/UpdateLoginRule", **at, ruleId=rule["ruleId"], action="allow")[0] == 409
    files(tenant, ("domain", {"domainName": "Corp"}))
    assert tenant.refused("/ad/UpdateDomain", **at, domainName="corp2")[0] == 409
    tenant.ask("/ad/UpdateDomain" + INSIST, **at, domainName="corp2")
    assert tenant.refused("/ad/UpdateDomain", **at, rememberHours=8)[0] == 409


def test_a_domain_with_objects_of_files_is_not_removed(tenant: Tenant) -> None:
    """The files do not have the domain itself. A dry run is never refused."""
    files(tenant, ("rule", {"domain": "corp", "name": "Codes", "action": "mfa_required"}))
    remove, at = "/ad/RemoveDomain", {"domainId": tenant.domain}
    tenant.ask(remove, **at, dryRun=True)
    status, text = tenant.refused(remove, **at)
    assert (status, text.partition(":")[0]) == (409, "rule.toml manages the rule corp/codes")
    tenant.ask(remove + INSIST, **at)
    assert entries(tenant, "configuration.override") == ["rule corp/codes"]


def test_a_domain_that_a_client_of_files_lists_is_not_removed(tenant: Tenant) -> None:
    """With `override` it is. Then the next apply names the domain that does not exist, until the files lack it."""
    lab = int(tenant.ask("/ad/AddDomain", domainName="lab")["domainId"])
    fields = {"name": "VPN", "address": tenant.world.address(), "secret": "correct horse", "domains": ["corp", "lab"]}
    files(tenant, ("client", fields))
    remove = "/ad/RemoveDomain"
    status, text = tenant.refused(remove, domainId=lab)
    assert (status, text.partition(":")[0]) == (409, "client.toml manages the client vpn")
    tenant.ask(remove + INSIST, domainId=lab)
    with pytest.raises(AssertionError, match=r"client\.toml:1: client client: domains: no domain named lab"):
        files(tenant, ("client", fields), prune="managed")
    files(tenant, ("client", {**fields, "domains": ["corp"]}), prune="managed")
    (client,) = tenant.ask("/network_device/ListClients")["clients"]
    assert client["domainIds"] == [tenant.domain]


def test_settings_of_the_domain_are_no_settings_of_an_instance(tenant: Tenant) -> None:
    """Files that have the settings of one instance do not stop a change of those of the domain, and vice versa."""
    files(
        tenant,
        ("instance", {"domain": "corp", "instanceName": "srv1"}),
        ("agent_settings", {"domain": "corp", "instance": "srv1", "sudoWithoutPassword": True}),
    )
    at, path = {"domainId": tenant.domain}, "/api/v1/agent/setSettings"
    (instance,) = [int(each["instanceId"]) for each in tenant.ask("/api/v1/instances/list", **at)["instances"]]
    tenant.ask(path, **at, sudoWithoutPassword=False)
    tenant.ask(path, **at, instanceId=0, sudoWithoutPassword=False)
    assert tenant.refused(path, **at, instanceId=instance, sudoWithoutPassword=False)[0] == 409
    files(tenant, ("agent_settings", {"domain": "corp", "sudoWithoutPassword": True}))
    status, text = tenant.refused(path, **at, sudoWithoutPassword=False)
    assert (status, text.partition(":")[0]) == (409, "agent_settings.toml manages the agent settings corp")


async def test_the_operations_of_each_kind_are_declared_and_described(areas: Areas) -> None:
    """Each operation that a kind names exists, by its first path, and its body has the field that selects objects. The
    description has the parameter `override` for these operations, and for no others."""
    declared = [each for group in operations(areas.app, gate_of(areas.app)) for each in group.all]
    by_path = {each.paths[0]: each for each in declared}
    kinds = areas.app.configured.engine.kinds()
    for path, field in (item for kind in kinds for item in kind.changed_by.items()):
        body = by_path[path].body
        (model,) = get_args(body) or (body,)
        assert field in model.model_fields, path
    for path, field in (item for kind in kinds for item in kind.shown_by.items()):
        assert field in by_path[path].body.model_fields, path
    for path, field in (kind.listed_by for kind in kinds if kind.listed_by[0]):
        assert field in by_path[path].answer.model_fields, path  # type: ignore[attr-defined]
    changing = {IMPORT, *(path for kind in kinds for path in kind.changed_by)}
    described = {
        path
        for path, methods in document(declared, "1")["paths"].items()  # type: ignore[attr-defined]
        if any("parameters" in each for each in methods.values())
    }
    assert described == {path for each in declared if each.paths[0] in changing for path in each.paths}
    assert all(kind.changed_by for kind in kinds)


async def test_each_operation_that_changes_something_is_checked_or_has_a_reason(areas: Areas) -> None:
    """An operation that readers may not call is in `changed_by` of a kind, or in EXCEPTIONS."""
    declared = [each for group in operations(areas.app, gate_of(areas.app)) for each in group.all]
    changing = {each.paths[0] for each in declared if not each.roles & {Role.AUDITOR}}
    checked = {path for kind in areas.app.configured.engine.kinds() for path in kind.changed_by}
    excepted = {path for several in EXCEPTIONS.values() for path in several}
    assert changing - checked - excepted == set()
    assert excepted - (changing - checked) == set()
