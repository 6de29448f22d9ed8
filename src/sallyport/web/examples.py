"""An example body for each operation in the API description. If a caller sends the examples in this order, all succeed.

The caller needs the first token of a new installation. The requests add a client, a user, groups and rules, and remove
them. A test sends each body as written here. The caller must replace a text in angle brackets. For example, `<apiKey of
createKey>` stands for the field `apiKey` in the answer of createKey.
"""

from typing import Final

from sallyport.base.wire import JSON

_OF_TENANT: Final[dict[str, JSON]] = {"orgId": 1, "tenantId": 1}
_OF_DOMAIN: Final[dict[str, JSON]] = {**_OF_TENANT, "domainId": 1}
_PAGE: Final[dict[str, JSON]] = {"pageId": 1, "pageSize": 10}


def _tenant(**fields: JSON) -> dict[str, JSON]:
    return {**_OF_TENANT, **fields}


def _domain(**fields: JSON) -> dict[str, JSON]:
    return {**_OF_DOMAIN, **fields}


def _in(**fields: JSON) -> dict[str, JSON]:
    return {"domainId": 1, **fields}


_ISSUER: Final = "<id of createIssuerDid>"
_HOLDER: Final = "<id of createHolderDid>"
_WALLET_KEY: Final = "<walletKey of resetWallet>"
_HASH: Final = "$6$example$yogJ/yOi2VZobWSbxvPt7fnN1H6x8z2XcvUSrZKdIdoTNyokpi8OBJzgfbUEjbI/bmkOcOX2Z2EU5I7Dn4rTo1"
"""A crypt(5) hash of a password, for the example of a password rotation."""
_CERTIFICATE: Final = (
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBYTCCAQegAwIBAgIBATAKBggqhkjOPQQDAjAdMRswGQYDVQQDDBJyYWRpdXMu\n"
    "ZXhhbXBsZS5jb20wIBcNMjYwMTAxMDAwMDAwWhgPMjEyNjAxMDEwMDAwMDBaMB0x\n"
    "GzAZBgNVBAMMEnJhZGl1cy5leGFtcGxlLmNvbTBZMBMGByqGSM49AgEGCCqGSM49\n"
    "AwEHA0IABHTkrEMQAzi/4f2noyBhwSyeuEpNjgjHrrpFMkvWkFlFkR078fjyG6eH\n"
    "izTnXl3mwCuMJI32CW3mMPnV0cV4tFOjNjA0MB0GA1UdEQQWMBSCEnJhZGl1cy5l\n"
    "eGFtcGxlLmNvbTATBgNVHSUEDDAKBggrBgEFBQcDATAKBggqhkjOPQQDAgNIADBF\n"
    "AiEAreHN9Au0b+rBLfY4VeX6Pc/XjwbCEnDGOxrkJtFW4zgCIC6qP4Nee0Nj/0n2\n"
    "AEYFBML8nG4jtiFYaESI72/5vCgr\n"
    "-----END CERTIFICATE-----\n"
)
"""A certificate for examples, which has signed itself."""
_KEY: Final = (
    "-----BEGIN PRIVATE KEY-----\n"
    "MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQgvKFahYFl1BXN+2pg\n"
    "kIpxefa55ViD3UCMIF174K/dxQqhRANCAAR05KxDEAM4v+H9p6MgYcEsnrhKTY4I\n"
    "x666RTJL1pBZRZEdO/H48hunh4s0515d5sArjCSN9glt5jD51dHFeLRT\n"
    "-----END PRIVATE KEY-----\n"
)
"""The key of this certificate. No service uses it."""
EXAMPLE_AUTHORITY: Final = (
    "-----BEGIN CERTIFICATE-----\n"
    "MIIBQDCB56ADAgECAgEBMAoGCCqGSM49BAMCMB0xGzAZBgNVBAMMEkV4YW1wbGUg\n"
    "SXNzdWluZyBDQTAgFw0yNjAxMDEwMDAwMDBaGA8yMTI2MDEwMTAwMDAwMFowHTEb\n"
    "MBkGA1UEAwwSRXhhbXBsZSBJc3N1aW5nIENBMFkwEwYHKoZIzj0CAQYIKoZIzj0D\n"
    "AQcDQgAEzcPf5EB1GTOMO2SjpxNG850q4dsH46Tls8zlBRhzvlX8nCH0nVWuNT8n\n"
    "NVwAgWmp4fl3CQNIyBh+b8lXnbhEcKMWMBQwEgYDVR0TAQH/BAgwBgEB/wIBADAK\n"
    "BggqhkjOPQQDAgNIADBFAiEAk451P5Jt4rmSehiG6pNKNwMTmsDqII5If27wCJYM\n"
    "cisCIAu0XEltL3jMF7jxFSO39/hv1VaAxqB2L9HXk/omQNzW\n"
    "-----END CERTIFICATE-----\n"
)
"""A certificate of an authority, for the example of AddAuthority."""
_BADGE: Final[dict[str, JSON]] = {
    "type": "object",
    "properties": {"epmUsername": {"type": "string"}},
    "required": ["epmUsername"],
}


STORY: Final[tuple[tuple[str, str, dict[str, JSON]], ...]] = (
    ("POST", "/ad/GetAllDomains", _tenant(**_PAGE)),
    ("POST", "/ad/AddDomain", _tenant(domainName="branch", realms=["branch.example.com"], enforcementMode="monitor")),
    ("POST", "/ad/UpdateDomain", _domain(addRealms=["corp.example.com"], issuerName="Example VPN")),
    (
        "POST",
        "/network_device/AddClient",
        _domain(name="vpn", address="192.0.2.10", product="Fortinet FortiGate", requireMessageAuthenticator="auto"),
    ),
    ("POST", "/network_device/ListClients", _tenant()),
    ("POST", "/network_device/ClientActivity", _tenant()),
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
    ("POST", "/network_device/GetDevice", _domain(deviceId=1)),
    (
        "POST",
        "/network_device/CompareDevices",
        _domain(file="name,primary_ip4\ncore-7,192.0.2.7/24\n", silentDays=30),
    ),
    ("POST", "/network_device/ListSsids", _domain(search="corp")),
    ("POST", "/network_device/ResetDevice", _domain(deviceId=1)),
    ("POST", "/network_device/UpdateDevice", _domain(deviceId=1, tags=["site=Berlin/Floor 2"], note="Cabinet 4")),
    ("POST", "/network_device/DeleteDevice", _domain(deviceId=1)),
    (
        "POST",
        "/network_device/ChangeSession",
        _domain(sessionId=1, replyAttributes=[{"name": "Filter-Id", "value": "guests"}]),
    ),
    ("POST", "/network_device/DisconnectSession", _domain(userName="ann")),
    ("POST", "/api/v1/endpointUsers/listAllEpmUsers", _in(pageNumber=1, pageSize=10)),
    ("POST", "/api/v1/endpointUsers/getEpmUserDetail", _in(userId=1)),
    ("POST", "/api/v1/endpointUsers/epmUserDetail", _in(userId=1)),
    ("PUT", "/api/v1/endpointUsers/updateEpmUserInfo", _in(userId=1, email="ann@branch.example.com")),
    ("POST", "/api/v1/endpointUsers/enrolTotp", _in(userName="ann")),
    ("POST", "/api/v1/endpointUsers/confirmTotp", _in(userName="ann", code="<the code that the app shows>")),
    ("POST", "/ad/MakeBypassCodes", _domain(userName="ann", hours=24)),
    ("POST", "/ad/ListBypassCodes", _domain(userName="ann")),
    ("POST", "/ad/RemoveBypassCodes", _domain(userName="ann")),
    ("POST", "/ad/SetMFAProvider", _domain(provider="totp", timeoutSeconds=60)),
    ("POST", "/ad/CheckMFAProvider", _domain()),
    ("POST", "/ad/GetMFAProvider", _domain()),
    ("POST", "/ad/AddMFAProvider", _domain(provider="privacyidea", url="https://mfa.example.com")),
    ("POST", "/ad/ListMFAProviders", _domain()),
    ("POST", "/ad/AddLoginRule", _domain(name="printers", action="allow", users=["printer-1"], priority=10)),
    ("POST", "/ad/ListLoginRules", _domain()),
    ("POST", "/ad/TestLoginRules", _domain(user="bob", medium="Virtual", at="2026-01-05T23:00:00+01:00")),
    ("POST", "/ad/UpdateLoginRule", _domain(ruleId=1, action="block")),
    ("POST", "/ad/DeleteLoginRule", _domain(ruleId=1)),
    (
        "POST",
        "/ad/RecordShadowLogins",
        _domain(
            logins=[
                {
                    "at": "2026-11-23T08:00:00Z",
                    "user": "bob",
                    "answer": "accept",
                    "client": "192.0.2.1",
                    "attributes": ["NAS-IP-Address=192.0.2.1", "Calling-Station-Id=02-00-00-00-00-01"],
                    "method": "mschapv2",
                    "policy": "Staff VPN",
                    "place": "IN2611.log:12",
                }
            ]
        ),
    ),
    ("POST", "/ad/CompareShadowLogins", _domain()),
    ("POST", "/ad/DeleteShadowLogins", _domain()),
    (
        "POST",
        "/ad/ImportConfiguration",
        _domain(
            file="Name,Address,Secret\nswitch-1,192.0.2.77,correct horse battery\n",
            fileName="devices.csv",
            format="csv",
            columns="name=Name\naddress=Address\nsecret=Secret",
        ),
    ),
    ("POST", "/ad/PreviewReauthorization", _domain()),
    ("POST", "/ad/StartReauthorization", _domain()),
    ("POST", "/ad/ListReauthorizations", _domain()),
    ("POST", "/ad/ListReauthorizedSessions", _domain(reauthorizationId=1)),
    ("POST", "/ad/StopReauthorization", _domain(reauthorizationId=1)),
    (
        "POST",
        "/ad/AddAuthority",
        _domain(name="Intune", certificates=EXAMPLE_AUTHORITY),
    ),
    ("POST", "/ad/ListAuthorities", _domain()),
    ("POST", "/ad/GetAuthority", _tenant(authorityId=1)),
    ("POST", "/ad/UpdateAuthority", _tenant(authorityId=1, realms=["corp.example"], strongOnly=True)),
    ("POST", "/ad/ListRevocationLists", _tenant(authorityId=1)),
    ("POST", "/ad/FetchRevocationLists", _tenant(authorityId=1)),
    ("POST", "/ad/DeleteAuthority", _tenant(authorityId=1)),
    ("POST", "/ad/SetRole", _domain(role="staff", product="Aruba Wireless", vlan="20", template=True)),
    ("POST", "/ad/ListRoles", _domain()),
    ("POST", "/ad/ShowRole", _domain(role="staff")),
    ("POST", "/ad/RemoveRole", _domain(role="staff")),
    ("POST", "/ad/ListRememberedStations", _domain(userName="ann")),
    ("POST", "/ad/RemoveRememberedStation", _domain(userName="ann", rememberedId=1)),
    ("POST", "/ad/ListPasskeys", _domain(userName="ann")),
    ("POST", "/ad/EnrolUser", _domain(userName="ann", by="link")),
    ("POST", "/ad/EnrolGroup", _domain(groupName="staff")),
    ("POST", "/ad/ListNotEnrolled", _domain(groupName="staff")),
    ("POST", "/ad/GetEnrolmentProgress", _domain()),
    ("POST", "/ad/RemovePasskey", _domain(userName="ann", passkeyId=1)),
    ("POST", "/ad/ListPromptPauses", _domain(search="ann")),
    ("POST", "/ad/EndPromptPause", _domain(userName="ann")),
    ("POST", "/ad/SetProfile", _domain(name="office", ssids=["Office"], method="peap")),
    ("POST", "/ad/ListProfiles", _domain()),
    ("POST", "/ad/ShowProfile", _domain(name="office")),
    ("POST", "/ad/GetProfileFile", _domain(name="office", file="office.mobileconfig")),
    ("POST", "/ad/MakeProfileLink", _domain(name="office", days=30)),
    ("POST", "/ad/RemoveProfile", _domain(name="office")),
    ("POST", "/ad/SetServerCertificate", _domain(certificate=_CERTIFICATE, privateKey=_KEY)),
    ("POST", "/ad/ListServerCertificates", _domain()),
    ("POST", "/ad/CheckServerCertificate", _domain(serverName="radius.example.com")),
    ("POST", "/ad/RemoveServerCertificate", _domain()),
    ("POST", "/ad/AddBypassStation", _domain(station="02:00:00:00:00:01")),
    (
        "POST",
        "/ad/ImportBypassStations",
        _domain(stations=[{"station": "02:00:00:00:00:01", "vlan": "30", "until": "2027-03-01"}]),
    ),
    ("POST", "/ad/ListBypassStations", _domain()),
    ("POST", "/ad/ListUnknownStations", _domain()),
    ("POST", "/ad/DeleteBypassStation", _domain(station="02:00:00:00:00:01")),
    ("POST", "/ad/CheckEnrolments", _domain(days=30)),
    ("POST", "/ad/PreviewEnforcement", _domain()),
    ("POST", "/ad/updateDomainEnforcement", _domain(enforcementMode="enforce", fallbackAction="deny")),
    ("POST", "/ad/GetAuthLog", _domain(**_PAGE)),
    ("POST", "/ad/ListLockouts", _domain()),
    ("POST", "/ad/Unlock", _domain(userName="bob")),
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
    ("PUT", "/api/v1/instances/updateAuthType", _in(instanceId=1, authType="DID")),
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
    (
        "POST",
        "/api/v1/machine/add-machine",
        {"machineKey": "<apiKey of createKey>", "instanceName": "build-2", "osId": 1, "privateIpAddress": "10.0.0.8"},
    ),
    ("POST", "/api/v1/instances/add-instance", _in(instanceName="build-3", osId=1, privateIp="10.0.0.9")),
    ("POST", "/api/v1/agent/exchangeKey", {"keyHash": "<SHA-256 of the agent key>", "instanceId": 2}),
    ("POST", "/api/v1/agent/desiredState", {"version": 0, "waitS": 0}),
    (
        "POST",
        "/api/v1/agent/report",
        {
            "id": "report-1",
            "at": 1767225600000000,
            "version": 1,
            "discovery": {
                "at": 1767225600000000,
                "accounts": [{"name": "ann", "uid": 1001, "gid": 1001, "home": "/home/ann", "shell": "/bin/bash"}],
            },
        },
    ),
    ("POST", "/api/v1/agent/privilegeStatus", {"at": 1767225600000000, "version": 1}),
    ("POST", "/api/v1/agent/agentStatus", _in(instanceId=2)),
    ("POST", "/api/v1/agent/listReports", _in(instanceId=2)),
    ("POST", "/api/v1/agent/listDiscovered", _in(instanceId=2)),
    ("POST", "/api/v1/agent/takeOver", _in(instanceId=2, userNames=["ann"], action="add")),
    ("POST", "/api/v1/agent/order", _in(instanceId=2, kind="rotate", userNames=["ann"])),
    ("POST", "/api/v1/agent/rotateStateKey", _in()),
    (
        "POST",
        "/api/v1/agent/rotation",
        {
            "id": "rotation-1",
            "user": "ann",
            "phase": "escrow",
            "password": "Correct-Horse-8-Battery",
            "passwordHash": _HASH,
        },
    ),
    ("POST", "/api/v1/agent/getPassword", _in(instanceId=2, userName="ann")),
    ("POST", "/api/v1/agent/setSettings", _in(rotateDays=30)),
    ("POST", "/api/v1/agent/renewKey", {"keyHash": "<SHA-256 of the next agent key>"}),
    ("POST", "/api/v1/agent/revokeKey", _in(keyId=1)),
    ("DELETE", "/api/v1/instances/deleteInstance", _in(instanceId=3)),
    ("POST", "/api/v1/agent/listAgents", _in()),
    ("POST", "/api/v1/agent/listDrift", _in()),
    ("POST", "/api/v1/agent/getSettings", _in()),
    (
        "POST",
        "/api/v1/saveDirectoryConfig",
        _in(
            directoryName="head office",
            appUrl="ldaps://dc1.example.com",
            baseDN="dc=example,dc=com",
            bindDN="sallyport@example.com",
            bindPassword="Correct-Horse-9-Battery",
        ),
    ),
    ("POST", "/api/v1/directory/list", _in()),
    ("POST", "/api/v1/directory/check", _in(directoryName="head office")),
    ("POST", "/api/v1/directory/setSchedule", _in(directoryName="head office", everyMinutes=60)),
    ("POST", "/api/v1/directory/listSchedules", _in()),
    ("POST", "/api/v1/directory/sync", _in(directoryName="head office")),
    (
        "POST",
        "/api/v1/importUsers",
        _in(ldapHost="dc1.example.com", ldapPort=636, baseDN="dc=example,dc=com", directoryName="head office"),
    ),
    ("POST", "/api/v1/getImportStatus", {"DirectoryName": "head office"}),
    ("POST", "/api/v1/cancelImport", _in(jobId=2)),
    ("POST", "/api/v1/confirmImport", _in(jobId=2)),
    (
        "POST",
        "/api/v1/integrations/directory/importLdif",
        _in(file="dn: cn=staff,dc=example,dc=com\nobjectClass: groupOfNames\ncn: staff\n", fileName="people.ldif"),
    ),
    ("POST", "/ad/GetAllUsersByGroup", _domain(**_PAGE, groupId=1)),
    ("POST", "/api/v1/agent/directory/begin", _in(directoryName="branch")),
    (
        "POST",
        "/api/v1/agent/directory/batch",
        _in(
            runId=1,
            sequence=1,
            entries=[
                {
                    "kind": "person",
                    "externalId": "b6a5",
                    "dn": "uid=ann,dc=branch,dc=example",
                    "name": "ann",
                    "attributes": {"mail": ["ann@branch.example.com"]},
                }
            ],
        ),
    ),
    ("POST", "/api/v1/agent/directory/finish", _in(runId=1, sequence=2, complete=True)),
    ("POST", "/api/v1/reConfigure", _in(directoryName="branch", fieldMappings={"email": "mail"})),
    ("POST", "/api/v1/mapping/preview", _in(directoryName="branch", fieldMappings={"username": "mail"})),
    ("POST", "/api/v1/mapping/list", _in()),
    ("POST", "/api/v1/deleteDirectoryConfig", _in(directoryName="branch")),
    ("POST", "/api/v1/did/createIssuerDid", _in(method="web", name="head office")),
    ("POST", "/api/v1/did/DIDList", _in()),
    ("POST", "/api/v1/did/SearchDID", {}),
    ("POST", "/api/v1/walletService/registerWalletUser", _in(username="ann", emailAddress="ann@example.com")),
    ("POST", "/api/v1/walletService/walletUserList", _in()),
    ("POST", "/api/v1/wallet/users", _in()),
    ("POST", "/api/v1/walletService/resetWallet", _in(walletId=1)),
    ("POST", "/api/v1/did/createHolderDid", _in(method="key", walletUserId=1, name="ann")),
    ("POST", "/api/v1/schema/createSchema", {"author": _ISSUER, "name": "badge", "schema": _BADGE, "sign": True}),
    ("POST", "/api/v1/credential/credentialSchemaList", _in()),
    (
        "POST",
        "/api/v1/credential/createCredential",
        _in(
            issuerDid=_ISSUER,
            holderDid=_HOLDER,
            schemaId=1,
            credentialName="badge of ann",
            metadata={"epmUsername": "ann"},
        ),
    ),
    (
        "POST",
        "/api/v1/issueVerifiableCredential",
        _in(
            issuerDid=_ISSUER,
            holderDid=_HOLDER,
            schemaId=1,
            credentialName="second badge",
            metadata={"epmUsername": "ann"},
            expiry="2099-12-31T00:00:00Z",
        ),
    ),
    ("POST", "/api/v1/credential/credentialList", _in()),
    ("POST", "/api/v1/credential/GetCredential", {"credentialId": "1"}),
    ("POST", "/api/v1/walletService/assignWalletUser", {"walletId": 1, "userId": 1, "credentialId": [1, 2]}),
    ("POST", "/api/v1/credential/GetAssignedCredential", {"walletId": 1}),
    (
        "POST",
        "/api/v1/walletService/pollCredentials",
        {"email": "ann@example.com", "walletKey": _WALLET_KEY},
    ),
    (
        "POST",
        "/api/v1/walletService/acknowledgeCredential",
        {"walletId": 1, "userId": 1, "credentialId": 1, "accept": True},
    ),
    ("POST", "/api/v1/credential/GetAcceptedCredential", {"walletId": 1}),
    ("POST", "/api/v1/credential/GetIgnoredCredential", {"walletId": 1}),
    ("PUT", "/api/v1/endpointUsers/updateUserWallet", _in(epmUserId=1, credentialId=1, platformUserNames=1)),
    (
        "POST",
        "/api/v1/verifierService/issuePR",
        {"issuerDid": _ISSUER, "holderDid": _HOLDER, "endpoint": "build-1", "username": "ann"},
    ),
    ("POST", "/api/v1/verifierService/presentationStatus", {"presentationRequestId": 1}),
    ("POST", "/api/v1/verifierService/listPresentations", _in()),
    (
        "POST",
        "/api/v1/walletService/pollPresentationRequest",
        {"walletId": 1, "walletKey": _WALLET_KEY, "holderDid": _HOLDER},
    ),
    (
        "POST",
        "/api/v1/walletService/createPresentation",
        {"walletId": 1, "walletKey": _WALLET_KEY, "holderDid": _HOLDER, "presentationRequestId": 1},
    ),
    (
        "POST",
        "/api/v1/walletService/submitPresentation",
        {
            "walletId": 1,
            "holderDid": _HOLDER,
            "presentationRequestId": 1,
            "presentation": "<presentation of createPresentation>",
        },
    ),
    ("POST", "/api/v1/credential/revokecredential", _in(vcid=1, issuerDid=_ISSUER, holderDid=_HOLDER)),
    ("POST", "/api/v1/did/rotateKey", _in(did=_ISSUER)),
    ("DELETE", "/api/v1/did/deleteDid", _in(dids=[{"type": "User", "did": _HOLDER}])),
    ("DELETE", "/api/v1/endpointUsers/deleteEpmUser", _in(epmUsers=[{"epmUserId": 1}])),
    ("DELETE", "/api/v1/instanceGroup/deleteEndpointGroup", _in(id=1)),
    ("POST", "/network_device/DeleteClient", _tenant(clientId=1)),
    ("POST", "/ad/RemoveDomain", _tenant(domainId="<domainId of AddDomain>")),
)

EXAMPLES: Final = {(method, path): body for method, path, body in STORY}
"""The example body of each operation, by method and path."""

TOKENS: Final = {
    "/api/v1/agent/exchangeKey": "<apiKey of createKey>",
    "/api/v1/agent/desiredState": "<the agent key>",
    "/api/v1/agent/report": "<the agent key>",
    "/api/v1/agent/privilegeStatus": "<the agent key>",
    "/api/v1/agent/rotation": "<the agent key>",
    "/api/v1/agent/renewKey": "<the agent key>",
    "/api/v1/walletService/pollCredentials": "<token of resetWallet>",
    "/api/v1/walletService/acknowledgeCredential": "<token of resetWallet>",
    "/api/v1/walletService/pollPresentationRequest": "<token of resetWallet>",
    "/api/v1/walletService/createPresentation": "<token of resetWallet>",
    "/api/v1/walletService/submitPresentation": "<token of resetWallet>",
}
"""The token for each example that does not use an admin's token."""
