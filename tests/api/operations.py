"""A list of all operations: the roles that may call each one, and the smallest body that passes its checks. A new
operation must be added to this list and needs a test of its own in this folder; `test_refusals.py` checks both.
"""

from dataclasses import dataclass, field
from typing import Any

from sallyport.web.examples import EXAMPLE_AUTHORITY, EXAMPLES

NOBODY = frozenset[str]()
"""The roles of an operation that only agents call, with their keys."""
ADMIN = frozenset({"admin"})
OPERATOR = ADMIN | {"operator"}
READER = OPERATOR | {"auditor"}
WALLET = frozenset({"wallet"})
HOLDER = READER | {"wallet"}
SERVER_CERTIFICATE = {
    name: EXAMPLES["POST", "/ad/SetServerCertificate"][name] for name in ("certificate", "privateKey")
}


@dataclass(frozen=True)
class Operation:
    """An operation: its path, the allowed roles, and the body without orgId and tenantId. in_domain: whether it takes a
    domainId. by_key: whether an agent may call it with its API key. strict: whether it refuses numbers that are sent as
    strings. passes: the possible statuses of a request that passes the common checks.
    """

    path: str
    roles: frozenset[str]
    body: dict[str, Any] = field(default_factory=dict)
    in_domain: bool = True
    method: str = "POST"
    by_key: bool = False
    strict: bool = False
    passes: frozenset[int] = frozenset({200, 404, 409})

    def __str__(self) -> str:
        return f"{self.method} {self.path}"

    @property
    def scoped(self) -> bool:
        """Return whether the body must contain orgId and tenantId."""
        return not self.path.startswith("/api/")

    def fields(self, domain: int) -> dict[str, Any]:
        """Return a body for this domain that passes the checks."""
        return {**self.body, "domainId": domain} if self.in_domain else self.body


OPERATIONS = (
    Operation("/network_device/ListDevices", READER),
    Operation("/network_device/GetDevice", READER, {"deviceId": 1}),
    Operation("/network_device/DeleteDevice", OPERATOR, {"deviceId": 1}),
    Operation("/network_device/ResetDevice", OPERATOR, {"deviceId": 1}),
    Operation("/network_device/CompareDevices", READER, {"file": "name\nx\n"}),
    Operation("/network_device/ListSsids", READER, {}),
    Operation("/network_device/UpdateDevice", OPERATOR, {"deviceId": 1, "note": "x"}),
    Operation("/network_device/ListStations", READER),
    Operation("/network_device/DeviceHistory", READER),
    Operation("/network_device/ListSessions", READER),
    Operation("/network_device/DisconnectSession", OPERATOR, {"userName": "nobody"}),
    Operation(
        "/network_device/ChangeSession",
        OPERATOR,
        {"sessionId": 1, "replyAttributes": [{"name": "Filter-Id", "value": "f"}]},
    ),
    Operation("/network_device/AddClient", ADMIN, {"name": "n", "address": "203.0.113.77"}),
    Operation("/network_device/ListClients", READER, in_domain=False),
    Operation("/network_device/ClientActivity", READER, in_domain=False),
    Operation("/network_device/UpdateClient", OPERATOR, {"clientId": 1}),
    Operation("/network_device/DeleteClient", OPERATOR, {"clientId": 1}, in_domain=False),
    Operation("/ad/GetAllDomains", READER, in_domain=False),
    Operation("/ad/AddDomain", OPERATOR, {"domainName": "d"}, in_domain=False),
    Operation("/ad/UpdateDomain", OPERATOR, {}),
    Operation("/ad/RemoveDomain", ADMIN, {"dryRun": True}),
    Operation("/ad/updateDomainEnforcement", ADMIN, {"enforcementMode": "monitor"}),
    Operation("/ad/GetAuthLog", READER),
    Operation("/ad/ListLockouts", READER),
    Operation("/ad/Unlock", OPERATOR, {"userName": "ann"}),
    Operation("/api/v1/audit/list", READER, in_domain=False),
    Operation("/ad/GetMFAProvider", READER),
    Operation("/ad/SetMFAProvider", ADMIN, {"provider": "totp"}),
    Operation("/ad/AddMFAProvider", ADMIN, {"provider": "privacyidea", "url": "https://mfa.example.com"}),
    Operation("/ad/ListMFAProviders", READER),
    Operation("/ad/CheckMFAProvider", ADMIN),
    Operation("/ad/DeleteMFAProvider", ADMIN),
    Operation("/ad/PreviewEnforcement", READER),
    Operation("/ad/CheckEnrolments", OPERATOR),
    Operation("/ad/RecordShadowLogins", OPERATOR, {"logins": [{"at": "2026-11-23", "user": "a", "answer": "accept"}]}),
    Operation("/ad/CompareShadowLogins", READER),
    Operation("/ad/DeleteShadowLogins", OPERATOR),
    Operation("/ad/PreviewReauthorization", READER),
    Operation("/ad/StartReauthorization", ADMIN),
    Operation("/ad/StopReauthorization", ADMIN, {"reauthorizationId": 1}),
    Operation("/ad/ListReauthorizations", READER),
    Operation("/ad/ListReauthorizedSessions", READER, {"reauthorizationId": 1}),
    Operation("/ad/GetFirstFactor", READER),
    Operation("/ad/SetFirstFactor", ADMIN, {"firstFactor": "local"}),
    Operation("/ad/CheckFirstFactor", ADMIN, {"userName": "ann", "password": "hello"}),
    Operation("/api/v1/agent/createKey", ADMIN),
    Operation("/api/v1/agent/listKeys", READER),
    Operation("/api/v1/agent/revokeKey", ADMIN, {"keyId": 1}),
    Operation("/api/v1/agent/exchangeKey", NOBODY, {"keyHash": "0" * 64}, in_domain=False, by_key=True),
    Operation("/api/v1/agent/renewKey", NOBODY, {"keyHash": "0" * 64}, in_domain=False, by_key=True),
    Operation("/ad/GetAllGroupsByDomain", READER),
    Operation("/ad/GetAllUsersByGroup", READER, {"groupId": 1}),
    Operation("/ad/GetAllAdUsers", READER),
    Operation("/ad/GetCloudUsers", READER),
    Operation("/api/v1/saveDirectoryConfig", OPERATOR, {"directoryName": "d"}),
    Operation(
        "/api/v1/importUsers",
        OPERATOR,
        {"ldapHost": "127.0.0.1", "ldapPort": "1", "baseDN": "dc=example"},
    ),
    Operation("/api/v1/directory/list", READER),
    Operation("/api/v1/directory/check", OPERATOR, {"directoryName": "d", "appUrl": "ldaps://192.0.2.1"}),
    Operation("/api/v1/getImportStatus", READER, {"DirectoryName": "d"}, in_domain=False),
    Operation("/api/v1/directory/setSchedule", OPERATOR, {"directoryName": "d", "everyMinutes": 60}),
    Operation("/api/v1/directory/listSchedules", READER),
    Operation("/api/v1/directory/sync", OPERATOR, {"directoryName": "d"}),
    Operation("/api/v1/deleteDirectoryConfig", OPERATOR, {"directoryName": "d"}),
    Operation("/api/v1/cancelImport", OPERATOR, {"jobId": 1}),
    Operation("/api/v1/confirmImport", OPERATOR, {"jobId": 1}),
    Operation("/api/v1/reConfigure", OPERATOR, {"groupID": "1", "fieldMappings": {"email": "mail"}}, in_domain=False),
    Operation("/api/v1/mapping/list", READER),
    Operation("/api/v1/mapping/preview", READER, {"groupID": "1"}, in_domain=False),
    Operation("/api/v1/agent/directory/begin", OPERATOR, {"directoryName": "a"}, by_key=True),
    Operation(
        "/api/v1/agent/directory/batch",
        OPERATOR,
        {"runId": 1, "sequence": 1, "entries": [{"kind": "gone", "externalId": "x"}]},
        by_key=True,
    ),
    Operation("/api/v1/agent/directory/finish", OPERATOR, {"runId": 1, "sequence": 1}, by_key=True),
    Operation("/api/v1/machine/add-machine", OPERATOR, {"instanceName": "m"}, by_key=True),
    Operation("/api/v1/instances/add-instance", OPERATOR, {"instanceName": "m"}, by_key=True),
    Operation("/api/v1/agent/desiredState", NOBODY, in_domain=False, by_key=True),
    Operation(
        "/api/v1/agent/report",
        NOBODY,
        {"id": "report-1", "at": 1, "version": 1},
        in_domain=False,
        by_key=True,
        strict=True,
    ),
    Operation(
        "/api/v1/agent/rotation",
        NOBODY,
        {"id": "rotation-1", "user": "ann", "phase": "confirm"},
        in_domain=False,
        by_key=True,
    ),
    Operation(
        "/api/v1/agent/privilegeStatus", NOBODY, {"at": 1, "version": 1}, in_domain=False, by_key=True, strict=True
    ),
    Operation("/api/v1/agent/listAgents", READER),
    Operation("/api/v1/agent/agentStatus", READER, {"instanceId": 1}),
    Operation("/api/v1/agent/listReports", READER, {"instanceId": 1}),
    Operation("/api/v1/agent/listDrift", READER),
    Operation("/api/v1/agent/listDiscovered", READER, {"instanceId": 1}),
    Operation("/api/v1/agent/getSettings", READER),
    Operation("/api/v1/agent/setSettings", OPERATOR),
    Operation("/api/v1/agent/rotateStateKey", ADMIN),
    Operation("/api/v1/agent/getPassword", READER, {"instanceId": 1, "userName": "ann"}),
    Operation("/api/v1/agent/takeOver", OPERATOR, {"instanceId": 1, "userNames": "ann", "action": "add"}),
    Operation("/api/v1/agent/order", OPERATOR, {"instanceId": 1, "kind": "sync"}),
    Operation("/api/v1/instances/list", READER),
    Operation("/api/v1/instances/addInstance", OPERATOR, {"instanceName": "i"}),
    Operation("/api/v1/instances/deleteInstance", OPERATOR, {"instanceId": 1}, method="DELETE"),
    Operation("/api/v1/instances/updateAuthType", OPERATOR, {"instanceId": 1, "authType": "SSH"}, method="PUT"),
    Operation("/api/v1/instances/assignUsersToMachines", OPERATOR, {"instanceIds": 1, "userIds": 1, "action": "add"}),
    Operation(
        "/api/v1/instances/assignGroupToMachines",
        OPERATOR,
        {"instanceId": 1, "groupId": 1, "actions": "add"},
        method="PUT",
    ),
    Operation("/api/v1/instanceGroup/listEndpointGroup", READER),
    Operation("/api/v1/instanceGroup/addInstanceGroup", OPERATOR, {"groupName": "g"}),
    Operation("/api/v1/instanceGroup/deleteEndpointGroup", OPERATOR, {"id": 1}, method="DELETE"),
    *(
        Operation(path, OPERATOR, {"groupId": 1}, method="PUT")
        for path in (
            "/api/v1/epmGroupManagement/editEPMGroupStatus",
            "/api/v1/instanceGroup/editInstanceGroup",
        )
    ),
    *(
        Operation(path, OPERATOR, {"groupId": 1, "userIds": 1, "action": "add"})
        for path in (
            "/api/v1/instanceGroup/assignUsersToEndpointGroup",
            "/api/v1/instances/assignUsersToEndpointGroup",
        )
    ),
    Operation("/api/v1/instanceGroup/addAuthFlowToInstanceGroup", OPERATOR, {"groupId": 1, "authFlow": "SSH"}),
    Operation(
        "/api/v1/instanceGroup/updateInstanceGroupStatus", OPERATOR, {"groupId": 1, "status": "Active"}, method="PUT"
    ),
    Operation("/api/v1/instanceGroup/fetchInstanceGroupDetail", READER, {"groupId": 1}),
    Operation(
        "/api/v1/instances/updateCredentialPolicyToEndpointGroup",
        OPERATOR,
        {"groupId": 1, "ttlUser": "8h"},
        method="PUT",
    ),
    Operation("/api/v1/instances/deleteCredentialPolicyToEndpointGroup", OPERATOR, {"groupId": 1}, method="DELETE"),
    Operation("/api/v1/endpointUsers/listAllEpmUsers", READER),
    Operation("/api/v1/endpointUsers/addEpmUserInfo", OPERATOR, {"userName": "u"}),
    Operation("/api/v1/endpointUsers/getEpmUserDetail", READER, {"userId": 1}),
    Operation("/api/v1/endpointUsers/epmUserDetail", READER, {"userId": 1}),
    Operation("/api/v1/endpointUsers/updateEpmUserInfo", OPERATOR, {"userId": 1}, method="PUT"),
    Operation("/api/v1/endpointUsers/updateUserWallet", OPERATOR, {"epmUserId": 1}, method="PUT"),
    Operation("/api/v1/endpointUsers/deleteEpmUser", OPERATOR, {"epmUsers": [{"epmUserId": 1}]}, method="DELETE"),
    Operation("/api/v1/did/createIssuerDid", OPERATOR, {"method": "key"}),
    Operation("/api/v1/did/createHolderDid", OPERATOR, {"method": "key", "walletUserId": 1}),
    Operation("/api/v1/did/DIDList", READER),
    Operation("/api/v1/did/SearchDID", READER, in_domain=False),
    Operation("/api/v1/did/deleteDid", OPERATOR, {"dids": [{"type": "User", "did": "did:key:z"}]}, method="DELETE"),
    Operation("/api/v1/did/rotateKey", OPERATOR, {"did": "did:web:a"}),
    Operation(
        "/api/v1/schema/createSchema", OPERATOR, {"author": "did:key:z", "name": "n", "schema": {}}, in_domain=False
    ),
    Operation("/api/v1/credential/credentialSchemaList", READER),
    *(
        Operation(
            path,
            OPERATOR,
            {"issuerDid": "did:key:z", "holderDid": "did:key:z", "schemaId": 1, "credentialName": "n", "metadata": {}},
        )
        for path in ("/api/v1/credential/createCredential", "/api/v1/issueVerifiableCredential")
    ),
    Operation("/api/v1/credential/credentialList", READER),
    Operation("/api/v1/credential/GetCredential", HOLDER, {"credentialId": "urn:uuid:0"}, in_domain=False),
    *(
        Operation(f"/api/v1/credential/Get{status}Credential", HOLDER, {"walletId": 1}, in_domain=False)
        for status in ("Assigned", "Accepted", "Ignored")
    ),
    Operation(
        "/api/v1/credential/revokecredential", OPERATOR, {"vcid": 1, "issuerDid": "did:key:z", "holderDid": "did:key:z"}
    ),
    Operation("/api/v1/endpointUsers/enrolTotp", OPERATOR, {"userName": "ann"}),
    Operation("/api/v1/endpointUsers/confirmTotp", OPERATOR, {"userName": "ann", "code": "123456"}),
    Operation("/ad/ListLoginRules", READER),
    Operation("/ad/AddLoginRule", ADMIN, {"name": "r", "action": "mfa_required"}),
    Operation("/ad/TestLoginRules", READER, {"user": "bob"}),
    Operation("/ad/UpdateLoginRule", ADMIN, {"ruleId": 1}),
    Operation("/ad/DeleteLoginRule", ADMIN, {"ruleId": 1}),
    Operation("/ad/ListRoles", READER),
    Operation("/ad/ShowRole", READER, {"role": "staff"}),
    Operation("/ad/AddAuthority", ADMIN, {"name": "x", "certificates": EXAMPLE_AUTHORITY}),
    Operation("/ad/ListAuthorities", READER),
    Operation("/ad/GetAuthority", READER, {"authorityId": 1}, in_domain=False),
    Operation("/ad/UpdateAuthority", ADMIN, {"authorityId": 1}, in_domain=False),
    Operation("/ad/DeleteAuthority", ADMIN, {"authorityId": 1}, in_domain=False),
    Operation("/ad/ListRevocationLists", READER, in_domain=False),
    Operation("/ad/FetchRevocationLists", OPERATOR, {"authorityId": 1}, in_domain=False),
    Operation("/ad/SetRole", ADMIN, {"role": "staff"}),
    Operation("/ad/RemoveRole", ADMIN, {"role": "staff"}),
    Operation("/ad/ListPasskeys", READER),
    Operation("/ad/ListRememberedStations", READER),
    Operation("/ad/RemoveRememberedStation", OPERATOR, {"userName": "ann", "rememberedId": 1}),
    Operation("/ad/MakeBypassCodes", OPERATOR, {"userName": "ann"}),
    Operation("/ad/ListBypassCodes", READER),
    Operation("/ad/RemoveBypassCodes", OPERATOR, {"userName": "ann"}),
    Operation("/ad/EnrolUser", OPERATOR, {"userName": "ann"}),
    Operation("/ad/EnrolGroup", OPERATOR, {"groupName": "staff"}),
    Operation("/ad/ListNotEnrolled", READER),
    Operation("/ad/GetEnrolmentProgress", READER),
    Operation("/ad/RemovePasskey", OPERATOR, {"userName": "ann", "passkeyId": 1}),
    Operation("/ad/ListPromptPauses", READER),
    Operation("/ad/EndPromptPause", OPERATOR, {"userName": "ann"}),
    Operation("/ad/ListProfiles", READER),
    Operation("/ad/ShowProfile", READER, {"name": "office"}),
    Operation("/ad/SetProfile", ADMIN, {"name": "office", "ssids": ["Office"]}),
    Operation("/ad/RemoveProfile", ADMIN, {"name": "office"}),
    Operation("/ad/GetProfileFile", READER, {"name": "office", "file": "office.mobileconfig"}),
    Operation("/ad/MakeProfileLink", OPERATOR, {"name": "office"}),
    Operation("/ad/ListServerCertificates", READER),
    Operation("/ad/CheckServerCertificate", READER),
    Operation("/ad/SetServerCertificate", ADMIN, SERVER_CERTIFICATE),
    Operation("/ad/RemoveServerCertificate", ADMIN),
    Operation("/ad/ListBypassStations", READER),
    Operation("/ad/AddBypassStation", ADMIN, {"station": "02:00:00:00:00:01"}),
    Operation("/ad/ListUnknownStations", READER),
    Operation("/ad/ImportBypassStations", ADMIN, {"stations": [{"station": "02:00:00:00:00:01"}]}),
    Operation("/ad/DeleteBypassStation", ADMIN, {"station": "02:00:00:00:00:01"}),
    Operation("/api/v1/instances/addPasswordPolicy", OPERATOR, {"policyName": "p"}, in_domain=False),
    Operation("/api/v1/instances/listAllPasswordPolicy", READER, in_domain=False),
    Operation("/api/v1/instances/listPasswordPolicy", READER, in_domain=False),
    Operation("/api/v1/instances/updatePasswordPolicy", OPERATOR, {"policyId": 1}, in_domain=False),
    Operation("/api/v1/instances/updatePasswordPolicy", OPERATOR, {"policyId": 1}, in_domain=False, method="PUT"),
    Operation("/api/v1/instances/deletePasswordPolicy", OPERATOR, {"policyId": 1}, in_domain=False, method="DELETE"),
    Operation("/api/v1/instances/assignPolicyToMachine", OPERATOR, {"policyId": 1, "instanceId": 1}, in_domain=False),
    Operation("/api/v1/instances/validatePolicy", READER, {"machineId": "1", "password": "x"}, in_domain=False),
    Operation("/api/v1/instances/validatePassword", READER, {"machineId": "1", "password": "x"}, in_domain=False),
    Operation("/api/v1/walletService/registerWalletUser", OPERATOR, {"username": "u", "emailAddress": "u@x.example"}),
    Operation("/api/v1/walletService/resetWallet", OPERATOR, {"walletId": 1}),
    Operation("/api/v1/walletService/walletUserList", READER),
    Operation("/api/v1/wallet/users", READER),
    Operation(
        "/api/v1/walletService/pollCredentials",
        OPERATOR | WALLET,
        {"email": "ann@corp.example", "walletKey": "wk_"},
        in_domain=False,
        passes=frozenset({401}),
    ),
    Operation(
        "/api/v1/walletService/assignWalletUser",
        OPERATOR,
        {"walletId": 1, "userId": 1, "credentialId": 1},
        in_domain=False,
    ),
    Operation(
        "/api/v1/walletService/acknowledgeCredential",
        OPERATOR | WALLET,
        {"walletId": 1, "userId": 1, "credentialId": 1, "accept": True},
        in_domain=False,
    ),
    Operation(
        "/api/v1/verifierService/issuePR",
        OPERATOR,
        {"issuerDid": "did:key:z6Mk", "holderDid": "did:key:z6Mk", "endpoint": "e"},
        in_domain=False,
    ),
    Operation("/api/v1/verifierService/presentationStatus", READER, {"presentationRequestId": 1}, in_domain=False),
    Operation("/api/v1/verifierService/listPresentations", READER),
    *(
        Operation(
            f"/api/v1/walletService/{name}",
            OPERATOR | WALLET,
            {"walletId": 1, "walletKey": "wk_", "holderDid": "did:key:z6Mk", "presentationRequestId": 1},
            in_domain=False,
        )
        for name in ("pollPresentationRequest", "createPresentation")
    ),
    Operation(
        "/api/v1/walletService/submitPresentation",
        OPERATOR | WALLET,
        {"walletId": 1, "holderDid": "did:key:z6Mk", "presentationRequestId": 1, "presentation": "x.y.z"},
        in_domain=False,
    ),
)

FORMS = (
    Operation("/api/v1/integrations/directory/importLdif", OPERATOR),
    Operation("/ad/ImportConfiguration", ADMIN, {"format": "nps"}),
)
"""Operations that take a form with a file. Their refusals are tested in a test file of their own."""
