"""One body for each operation that the description of the API shows: a story in which everything works.

The first token of a new installation tells it, from the top to the end: `client add`, a user, groups, rules, and what
takes them away again. A test sends each of them as it is written here, in this order.
"""

from typing import Final

from sallyport.base.command import JSON

_OF_TENANT: Final[dict[str, JSON]] = {"orgId": 1, "tenantId": 1}
_OF_DOMAIN: Final[dict[str, JSON]] = {**_OF_TENANT, "domainId": 1}
_PAGE: Final[dict[str, JSON]] = {"pageId": 1, "pageSize": 10}


def _tenant(**fields: JSON) -> dict[str, JSON]:
    return {**_OF_TENANT, **fields}


def _domain(**fields: JSON) -> dict[str, JSON]:
    return {**_OF_DOMAIN, **fields}


def _in(**fields: JSON) -> dict[str, JSON]:
    return {"domainId": 1, **fields}


STORY: Final[tuple[tuple[str, str, dict[str, JSON]], ...]] = (
    ("POST", "/ad/GetAllDomains", _tenant(**_PAGE)),
    ("POST", "/ad/AddDomain", _tenant(domainName="branch", realms=["branch.example.com"], enforcementMode="monitor")),
    (
        "POST",
        "/network_device/AddClient",
        _domain(name="vpn", address="192.0.2.10", product="Fortinet FortiGate", requireMessageAuthenticator="auto"),
    ),
    ("POST", "/network_device/ListClients", _tenant()),
    ("POST", "/network_device/UpdateClient", _domain(clientId=1, name="vpn-1")),
    ("POST", "/network_device/ListDevices", _domain(**_PAGE, filter={"filterBy": "", "value": ""}, search="")),
    ("POST", "/network_device/ListStations", _domain(**_PAGE)),
    ("POST", "/network_device/DeviceHistory", _domain(**_PAGE)),
    ("POST", "/network_device/ListSessions", _domain(**_PAGE)),
    ("POST", "/ad/SetFirstFactor", _domain(firstFactor="local")),
    ("POST", "/ad/GetFirstFactor", _domain()),
    (
        "POST",
        "/api/v1/endpointUsers/addEpmUserInfo",
        _in(userName="ann", password="Correct-Horse-7-Battery", email="ann@example.com"),  # noqa: S106
    ),
    ("POST", "/ad/CheckFirstFactor", _domain(userName="ann", password="Correct-Horse-7-Battery")),  # noqa: S106
    ("POST", "/api/v1/endpointUsers/listAllEpmUsers", _in(pageNumber=1, pageSize=10)),
    ("POST", "/api/v1/endpointUsers/getEpmUserDetail", _in(userId=1)),
    ("POST", "/api/v1/endpointUsers/epmUserDetail", _in(userId=1)),
    ("PUT", "/api/v1/endpointUsers/updateEpmUserInfo", _in(userId=1, email="ann@branch.example.com")),
    ("POST", "/api/v1/endpointUsers/enrolTotp", _in(userName="ann")),
    ("POST", "/ad/SetMFAProvider", _domain(provider="totp", timeoutSeconds=60)),
    ("POST", "/ad/GetMFAProvider", _domain()),
    ("POST", "/ad/AddLoginRule", _domain(name="printers", action="allow", users=["printer-1"], priority=10)),
    ("POST", "/ad/ListLoginRules", _domain()),
    ("POST", "/ad/UpdateLoginRule", _domain(ruleId=1, action="block")),
    ("POST", "/ad/DeleteLoginRule", _domain(ruleId=1)),
    ("POST", "/ad/AddBypassStation", _domain(station="02:00:00:00:00:01")),
    ("POST", "/ad/ListBypassStations", _domain()),
    ("POST", "/ad/DeleteBypassStation", _domain(station="02:00:00:00:00:01")),
    ("POST", "/ad/PreviewEnforcement", _domain()),
    ("POST", "/ad/updateDomainEnforcement", _domain(enforcementMode="enforce", fallbackAction="deny")),
    ("POST", "/ad/GetAuthLog", _domain(**_PAGE)),
    ("POST", "/ad/ListLockouts", _domain()),
    ("POST", "/ad/GetAllGroupsByDomain", _domain(**_PAGE, search="")),
    ("POST", "/ad/GetAllAdUsers", _domain(**_PAGE)),
    ("POST", "/ad/GetCloudUsers", _domain(**_PAGE)),
    ("POST", "/ad/DeleteMFAProvider", _domain()),
    ("POST", "/api/v1/audit/list", {"pageId": 1, "pageSize": 10}),
    (
        "POST",
        "/api/v1/instances/addInstance",
        _in(instanceName="build-1", osId=1, hostName="build-1.example.com", privateIp="10.0.0.7"),
    ),
    ("POST", "/api/v1/instances/list", _in(pageNumber=1, pageSize=10)),
    ("PUT", "/api/v1/instances/updateAuthType", _in(instanceId=1, authType="SSH")),
    ("POST", "/api/v1/instances/assignUsersToMachines", _in(instanceIds=[1], userIds=[1], action="add")),
    ("POST", "/api/v1/instanceGroup/addInstanceGroup", _in(groupName="builders")),
    ("POST", "/api/v1/instanceGroup/listEndpointGroup", _in(pageNumber=1, pageSize=10)),
    ("PUT", "/api/v1/instances/assignGroupToMachines", _in(instanceId=1, groupId=1, actions="add")),
    ("PUT", "/api/v1/epmGroupManagement/editEPMGroupStatus", _in(groupId=1, status="Active")),
    ("PUT", "/api/v1/instanceGroup/editInstanceGroup", _in(groupId=1, groupName="builders-2")),
    ("POST", "/api/v1/instanceGroup/assignUsersToEndpointGroup", _in(groupId=1, userIds=[1], action="add")),
    ("POST", "/api/v1/instances/assignUsersToEndpointGroup", _in(groupId=1, userIds=[1], action="remove")),
    ("POST", "/api/v1/instanceGroup/addAuthFlowToInstanceGroup", _in(groupId=1, authFlow="SSH")),
    ("PUT", "/api/v1/instanceGroup/updateInstanceGroupStatus", _in(groupId=1, status="Enabled")),
    ("POST", "/api/v1/instanceGroup/fetchInstanceGroupDetail", _in(groupId=1)),
    ("PUT", "/api/v1/instances/updateCredentialPolicyToEndpointGroup", _in(groupId=1, ttlUser="8h")),
    ("DELETE", "/api/v1/instances/deleteCredentialPolicyToEndpointGroup", _in(groupId=1)),
    ("POST", "/api/v1/instances/addPasswordPolicy", {"policyName": "twelve", "minLen": 12}),
    ("POST", "/api/v1/instances/listAllPasswordPolicy", {}),
    ("POST", "/api/v1/instances/assignPolicyToMachine", {"policyId": 1, "instanceId": 1}),
    ("POST", "/api/v1/instances/listPasswordPolicy", {"instanceId": 1}),
    ("POST", "/api/v1/instances/validatePolicy", {"machineId": "1", "password": "Correct-Horse-7-Battery"}),
    ("POST", "/api/v1/instances/validatePassword", {"machineId": "1", "password": "Correct-Horse-7-Battery"}),
    ("POST", "/api/v1/instances/updatePasswordPolicy", {"policyId": 1, "minLen": 14}),
    ("PUT", "/api/v1/instances/updatePasswordPolicy", {"policyId": 1, "minLen": 16}),
    ("DELETE", "/api/v1/instances/deletePasswordPolicy", {"policyId": 1}),
    ("POST", "/api/v1/agent/createKey", _in(name="build-1")),
    ("POST", "/api/v1/agent/listKeys", _in()),
    ("POST", "/api/v1/agent/revokeKey", _in(keyId=1)),
    ("POST", "/api/v1/agent/listAgents", _in()),
    ("POST", "/api/v1/agent/listDrift", _in()),
    ("POST", "/api/v1/agent/getSettings", _in()),
    ("POST", "/api/v1/saveDirectoryConfig", _in(directoryName="head office")),
    ("POST", "/api/v1/directory/setSchedule", _in(directoryName="head office", everyMinutes=60)),
    ("POST", "/api/v1/directory/listSchedules", _in()),
    ("POST", "/api/v1/mapping/list", _in()),
    ("POST", "/api/v1/did/createIssuerDid", _in(method="key")),
    ("POST", "/api/v1/did/DIDList", _in()),
    ("POST", "/api/v1/did/SearchDID", {}),
    ("POST", "/api/v1/credential/credentialSchemaList", _in()),
    ("POST", "/api/v1/credential/credentialList", _in()),
    ("POST", "/api/v1/walletService/registerWalletUser", _in(username="ann", emailAddress="ann@example.com")),
    ("POST", "/api/v1/walletService/walletUserList", _in()),
    ("POST", "/api/v1/wallet/users", _in()),
    ("DELETE", "/api/v1/endpointUsers/deleteEpmUser", _in(epmUsers=[{"epmUserId": 1}])),
    ("DELETE", "/api/v1/instanceGroup/deleteEndpointGroup", _in(id=1)),
    ("POST", "/network_device/DeleteClient", _tenant(clientId=1)),
)

EXAMPLES: Final = {(method, path): body for method, path, body in STORY}
"""By method and path. What acts on a thing that others make up (an agent's message, a device that has been seen, a
holder's keys) has none."""
