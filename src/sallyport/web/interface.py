"""The operations of the interface document, by their paths. All other operations are additions.

Clients of the interface may send fields that the document does not have, so the operations of the interface ignore
unknown fields, except for near misses of a known field. Additions refuse every unknown field.
"""

from typing import Final

from sallyport.base.model import Unknown

LISTED: Final = frozenset(
    {
        "/ad/AddDomain",
        "/ad/DeleteMFAProvider",
        "/ad/GetAllAdUsers",
        "/ad/GetAllDomains",
        "/ad/GetAllGroupsByDomain",
        "/ad/GetAllUsersByGroup",
        "/ad/GetCloudUsers",
        "/ad/GetMFAProvider",
        "/ad/SetMFAProvider",
        "/ad/updateDomainEnforcement",
        "/api/v1/credential/GetAcceptedCredential",
        "/api/v1/credential/GetAssignedCredential",
        "/api/v1/credential/GetCredential",
        "/api/v1/credential/GetIgnoredCredential",
        "/api/v1/credential/createCredential",
        "/api/v1/credential/credentialList",
        "/api/v1/credential/credentialSchemaList",
        "/api/v1/credential/revokecredential",
        "/api/v1/did/DIDList",
        "/api/v1/did/SearchDID",
        "/api/v1/did/createHolderDid",
        "/api/v1/did/createIssuerDid",
        "/api/v1/did/deleteDid",
        "/api/v1/endpointUsers/addEpmUserInfo",
        "/api/v1/endpointUsers/deleteEpmUser",
        "/api/v1/endpointUsers/epmUserDetail",
        "/api/v1/endpointUsers/getEpmUserDetail",
        "/api/v1/endpointUsers/listAllEpmUsers",
        "/api/v1/endpointUsers/updateEpmUserInfo",
        "/api/v1/endpointUsers/updateUserWallet",
        "/api/v1/epmGroupManagement/editEPMGroupStatus",
        "/api/v1/getImportStatus",
        "/api/v1/importUsers",
        "/api/v1/instanceGroup/addAuthFlowToInstanceGroup",
        "/api/v1/instanceGroup/addInstanceGroup",
        "/api/v1/instanceGroup/assignUsersToEndpointGroup",
        "/api/v1/instanceGroup/deleteEndpointGroup",
        "/api/v1/instanceGroup/editInstanceGroup",
        "/api/v1/instanceGroup/fetchInstanceGroupDetail",
        "/api/v1/instanceGroup/listEndpointGroup",
        "/api/v1/instanceGroup/updateInstanceGroupStatus",
        "/api/v1/instances/add-instance",
        "/api/v1/instances/addInstance",
        "/api/v1/instances/addPasswordPolicy",
        "/api/v1/instances/assignGroupToMachines",
        "/api/v1/instances/assignPolicyToMachine",
        "/api/v1/instances/assignUsersToEndpointGroup",
        "/api/v1/instances/assignUsersToMachines",
        "/api/v1/instances/deleteCredentialPolicyToEndpointGroup",
        "/api/v1/instances/deletePasswordPolicy",
        "/api/v1/instances/list",
        "/api/v1/instances/listAllPasswordPolicy",
        "/api/v1/instances/listPasswordPolicy",
        "/api/v1/instances/updateAuthType",
        "/api/v1/instances/updateCredentialPolicyToEndpointGroup",
        "/api/v1/instances/updatePasswordPolicy",
        "/api/v1/instances/validatePassword",
        "/api/v1/instances/validatePolicy",
        "/api/v1/integrations/directory/importLdif",
        "/api/v1/issueVerifiableCredential",
        "/api/v1/machine/add-machine",
        "/api/v1/reConfigure",
        "/api/v1/saveDirectoryConfig",
        "/api/v1/schema/createSchema",
        "/api/v1/verifierService/issuePR",
        "/api/v1/wallet/users",
        "/api/v1/walletService/acknowledgeCredential",
        "/api/v1/walletService/assignWalletUser",
        "/api/v1/walletService/pollCredentials",
        "/api/v1/walletService/pollPresentationRequest",
        "/api/v1/walletService/submitPresentation",
        "/api/v1/walletService/walletUserList",
        "/network_device/DeleteDevice",
        "/network_device/ListDevices",
    }
)
"""Every path that the interface document lists, including the alternative paths."""


def unknown_fields(paths: tuple[str, ...]) -> Unknown:
    """Return what the operation with these paths does with unknown fields."""
    return Unknown.REFUSED if LISTED.isdisjoint(paths) else Unknown.NEAR_MISSES_REFUSED
