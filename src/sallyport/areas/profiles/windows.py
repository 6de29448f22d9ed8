"""Profiles of the wireless and wired AutoConfig services of Windows, after Microsoft's schemas: WLAN_profile,
LAN_profile, OneX, EapHostConfig, EapTlsConnectionPropertiesV1 and V2, MsPeapConnectionPropertiesV1 and V2, and
EapTtlsConnectionPropertiesV1.

Windows takes the SSID from `hex` and shows `name`. A trusted root is named by the SHA-1 of its certificate, which must
also be in the store of trusted roots. The user is not asked about another server. Several server names are separated
by semicolons. A name must be exactly as in the subject field of the server's certificate. It is a regular expression
only if it contains an asterisk.

For TTLS, the element names are those that Windows exports and imports, EapTtls and TrustedRootCAHash. The published
schema has eapTtls and TrustedRootCAHashes.
"""

import xml.etree.ElementTree as ET
from typing import Final

from sallyport.areas.profiles.profile import LoginBy, Method, Profile, Security, Trust

_NETWORKING: Final = "http://www.microsoft.com/networking/"
_PROVISIONING: Final = "http://www.microsoft.com/provisioning/"
WLAN: Final = f"{_NETWORKING}WLAN/profile/v1"
LAN: Final = f"{_NETWORKING}LAN/profile/v1"
ONE_X: Final = f"{_NETWORKING}OneX/v1"
HOST: Final = f"{_PROVISIONING}EapHostConfig"
COMMON: Final = f"{_PROVISIONING}EapCommon"
BASE: Final = f"{_PROVISIONING}BaseEapConnectionPropertiesV1"
TLS: Final = f"{_PROVISIONING}EapTlsConnectionPropertiesV1"
TLS2: Final = f"{_PROVISIONING}EapTlsConnectionPropertiesV2"
PEAP: Final = f"{_PROVISIONING}MsPeapConnectionPropertiesV1"
PEAP2: Final = f"{_PROVISIONING}MsPeapConnectionPropertiesV2"
MSCHAPV2: Final = f"{_PROVISIONING}MsChapV2ConnectionPropertiesV1"
TTLS: Final = f"{_PROVISIONING}EapTtlsConnectionPropertiesV1"

MICROSOFT: Final = 311
"""Author of Microsoft's TTLS method: the private enterprise number. The other methods have the author 0."""
EAP_MSCHAPV2: Final = 26
_AUTHENTICATION: Final = {Security.WPA2: "WPA2", Security.WPA3: "WPA3ENT"}
_MODES: Final = {LoginBy.PERSON: "user", LoginBy.MACHINE: "machine", LoginBy.BOTH: "machineOrUser"}


class _Element:
    """An XML element with children. All children of an element with a namespace inherit it as the default namespace, as
    Windows writes its own files."""

    def __init__(self, element: ET.Element) -> None:
        self._element = element

    def add(self, name: str, text: object = None, *, space: str = "") -> "_Element":
        """Add a child. text: its content. A truth value is written in lower case. space: its namespace, if it is not
        that of its parent."""
        child = ET.SubElement(self._element, name, {"xmlns": space} if space else {})
        if text is not None:
            child.text = str(text).lower() if isinstance(text, bool) else str(text)
        return _Element(child)


def wireless(profile: Profile, trust: Trust, ssid: str) -> bytes:
    """Return the profile of a Wi-Fi network, for `netsh wlan add profile`."""
    root = ET.Element("WLANProfile", {"xmlns": WLAN})
    whole = _Element(root)
    whole.add("name", ssid)
    config = whole.add("SSIDConfig")
    name = config.add("SSID")
    name.add("hex", ssid.encode().hex().upper())
    name.add("name", ssid)
    config.add("nonBroadcast", profile.hidden)
    whole.add("connectionType", "ESS")
    whole.add("connectionMode", "auto")
    whole.add("autoSwitch", False)
    security = whole.add("MSM").add("security")
    encryption = security.add("authEncryption")
    encryption.add("authentication", _AUTHENTICATION[profile.security])
    encryption.add("encryption", "AES")
    encryption.add("useOneX", True)
    _add_one_x(security, profile, trust)
    return _document(root)


def wired(profile: Profile, trust: Trust) -> bytes:
    """Return the profile of the wired network, for `netsh lan add profile`."""
    root = ET.Element("LANProfile", {"xmlns": LAN})
    security = _Element(root).add("MSM").add("security")
    security.add("OneXEnforced", False)
    security.add("OneXEnabled", True)
    _add_one_x(security, profile, trust)
    return _document(root)


def _document(root: ET.Element) -> bytes:
    ET.indent(root, "\t")
    octets: bytes = ET.tostring(root, "utf-8", xml_declaration=True)
    return octets + b"\n"


def _add_one_x(security: _Element, profile: Profile, trust: Trust) -> None:
    one_x = security.add("OneX", space=ONE_X)
    one_x.add("cacheUserData", True)
    one_x.add("authMode", _MODES[profile.login_by])
    host = one_x.add("EAPConfig").add("EapHostConfig", space=HOST)
    method = host.add("EapMethod")
    author = MICROSOFT if profile.method.eap_type == Method.TTLS_PAP.eap_type else 0
    for name, number in (("Type", profile.method.eap_type), ("VendorId", 0), ("VendorType", 0), ("AuthorId", author)):
        method.add(name, number, space=COMMON)
    config = host.add("Config", space=HOST)
    if author:
        return _add_ttls(config, profile, trust)
    eap = config.add("Eap", space=BASE)
    eap.add("Type", profile.method.eap_type)
    if profile.method is Method.TLS:
        return _add_tls(eap, trust)
    return _add_peap(eap, profile, trust)


def _add_server(parent: _Element, trust: Trust) -> None:
    """Add the check of the server, in the form of EAP-TLS and PEAP."""
    server = parent.add("ServerValidation")
    server.add("DisableUserPromptForServerValidation", True)
    server.add("ServerNames", ";".join(trust.server_names))
    for each in trust.anchors:
        server.add("TrustedRootCA", each.sha1)


def _add_checks(parent: _Element, space: str) -> None:
    """Add that the server and its name are checked. The documentation does not give the defaults."""
    parent.add("PerformServerValidation", True, space=space)
    parent.add("AcceptServerName", True, space=space)


def _add_tls(eap: _Element, trust: Trust) -> None:
    tls = eap.add("EapType", space=TLS)
    tls.add("CredentialsSource").add("CertificateStore").add("SimpleCertSelection", True)
    _add_server(tls, trust)
    tls.add("DifferentUsername", False)
    _add_checks(tls, TLS2)


def _add_peap(eap: _Element, profile: Profile, trust: Trust) -> None:
    peap = eap.add("EapType", space=PEAP)
    _add_server(peap, trust)
    peap.add("FastReconnect", True)
    peap.add("InnerEapOptional", False)
    inner = peap.add("Eap", space=BASE)
    inner.add("Type", EAP_MSCHAPV2)
    inner.add("EapType", space=MSCHAPV2).add("UseWinLogonCredentials", False)
    peap.add("EnableQuarantineChecks", False)
    peap.add("RequireCryptoBinding", False)
    extensions = peap.add("PeapExtensions")
    _add_checks(extensions, PEAP2)
    # Windows appends the realm of the user name to the anonymous name, which may be empty.
    if profile.outer_identity:
        name, at, _ = profile.outer_identity.partition("@")
        hidden = name if at else name.rpartition("\\")[2]
        privacy = extensions.add("IdentityPrivacy", space=PEAP2)
        privacy.add("EnableIdentityPrivacy", True)
        privacy.add("AnonymousUserName", hidden)


def _add_ttls(config: _Element, profile: Profile, trust: Trust) -> None:
    ttls = config.add("EapTtls", space=TTLS)
    server = ttls.add("ServerValidation")
    server.add("ServerNames", ";".join(trust.server_names))
    for each in trust.anchors:
        server.add("TrustedRootCAHash", " ".join(each.sha1[at : at + 2] for at in range(0, len(each.sha1), 2)))
    server.add("DisablePrompt", True)
    inner = ttls.add("Phase2Authentication")
    if profile.method is Method.TTLS_PAP:
        inner.add("PAPAuthentication")
    else:
        inner.add("MSCHAPv2Authentication").add("UseWinlogonCredentials", False)
    identity = ttls.add("Phase1Identity")
    identity.add("IdentityPrivacy", bool(profile.outer_identity))
    if profile.outer_identity:
        identity.add("AnonymousIdentity", profile.outer_identity)
