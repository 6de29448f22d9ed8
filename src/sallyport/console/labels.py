"""Words for the names of the API: labels of settings, providers and first factors, for pages that list them."""

import re
from collections.abc import Mapping
from typing import Final

LABELS: Final[Mapping[str, str]] = {
    # first factors
    "servers": "Servers",
    "baseDN": "Base DN",
    "bindDN": "DN of the service account",
    "userFilter": "Filter that finds a user",
    "startTls": "StartTLS",
    "caCertificate": "Trusted certificates",
    "timeoutSeconds": "Time limit in seconds",
    "cacheSeconds": "Right password cached, seconds",
    "codeDigits": "Digits of a code",
    "winbind": "MS-CHAP through winbind",
    "winbindDomain": "Domain for winbind",
    "loadBalance": "Logins shared among the servers",
    "statusCheck": "Status-Server",
    "requireMessageAuthenticator": "Answers must be signed",
    "stripRealm": "Realm removed from the name",
    "namesInnerUser": "Servers name the user inside EAP",
    "responseWindowSeconds": "Server dead after, seconds",
    # second factors
    "ikey": "Integration key",
    "skey": "Secret key",
    "host": "Host",
    "port": "Port",
    "secret": "Shared secret",
    "url": "URL",
    "apiToken": "API token",
    "adminToken": "Admin token",
    "issuerDid": "DID of the issuer",
    "schemaId": "Id of the credential schema",
    # directories
    "filter": "Filter for accounts",
    "tenant": "Entra ID tenant",
    "clientId": "Client id",
    "readDevices": "Devices read",
}
"""Labels of the fields whose name in words would not be clear."""
PROVIDERS: Final[Mapping[str, str]] = {
    "totp": "authenticator app (TOTP)",
    "duo": "Duo",
    "okta": "Okta",
    "privacyidea": "privacyIDEA",
    "webhook": "webhook",
    "radius": "RADIUS server",
    "wallet": "wallet",
    "own": "passkeys and other factors of this service",
}
"""The names of the providers of second factors. A provider of another package keeps its name."""
FIRST_FACTORS: Final[Mapping[str, str]] = {
    "local": "local users",
    "ldap": "LDAP directory",
    "radius": "RADIUS servers",
    "none": "the RADIUS client",
    "web": "the company's identity provider",
}
_PARTS: Final = re.compile(r"(?<=[a-z0-9])(?=[A-Z])|_")


def label(name: str) -> str:
    """Return the label of a field of the API: its entry in LABELS, or its name as words."""
    return LABELS.get(name) or " ".join(_PARTS.split(name)).capitalize()
