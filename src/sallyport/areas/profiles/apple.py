"""Configuration profiles for iOS, iPadOS and macOS, after Apple's device management reference: com.apple.wifi.managed,
com.apple.firstactiveethernet.managed (wired 802.1X, macOS only) and com.apple.security.root.

Since iOS 16 and macOS 13, the encryption type `WPA2` includes WPA3 networks. With an anchor and server names, the
device does not ask the user whether to trust another certificate. A network with EAP-TLS has no identity: the device
management adds its payload (SCEP, ACME or PKCS#12), or the user chooses an installed identity.
"""

import plistlib
from typing import Final

from sallyport.areas.profiles.profile import LoginBy, Method, Profile, Security, Trust

INNER: Final = {Method.TTLS_PAP: "PAP", Method.TTLS_MSCHAPV2: "MSCHAPv2"}
ENCRYPTION: Final = {Security.WPA2: "WPA2", Security.WPA3: "WPA3"}


def wireless(profile: Profile, trust: Trust, user: str = "") -> bytes:
    """Return the profile of the Wi-Fi networks as a property list in XML. user: the user name, or empty if the device
    asks for it."""
    anchors = _anchors(profile, trust, "wifi")
    networks = [
        _payload(
            profile,
            f"wifi.network{number}",
            "com.apple.wifi.managed",
            f"Wi-Fi {ssid}",
            SSID_STR=ssid,
            AutoJoin=True,
            HIDDEN_NETWORK=profile.hidden,
            EncryptionType=ENCRYPTION[profile.security],
            **_login(profile, trust, anchors, user),
        )
        for number, ssid in enumerate(profile.ssids, 1)
    ]
    return _document(profile, "wifi", [*anchors, *networks])


def wired(profile: Profile, trust: Trust, user: str = "") -> bytes:
    """Return the profile of the wired network as a property list in XML. Only macOS has such a payload."""
    anchors = _anchors(profile, trust, "lan")
    network = _payload(
        profile,
        "lan.network",
        "com.apple.firstactiveethernet.managed",
        "Wired network",
        Interface="FirstActiveEthernet",
        **_login(profile, trust, anchors, user),
    )
    return _document(profile, "lan", [*anchors, network])


def _document(profile: Profile, part: str, content: list[dict[str, object]]) -> bytes:
    whole = _payload(
        profile,
        part,
        "Configuration",
        profile.name,
        PayloadContent=content,
        PayloadDescription="Network settings, and the authority of the server that checks the login.",
        PayloadScope="User" if profile.login_by is LoginBy.PERSON else "System",
    )
    return plistlib.dumps(whole, fmt=plistlib.FMT_XML)


def _login(profile: Profile, trust: Trust, anchors: list[dict[str, object]], user: str) -> dict[str, object]:
    """Return the keys about EAP of a network."""
    eap: dict[str, object] = {
        "AcceptEAPTypes": [profile.method.eap_type],
        "TLSMinimumVersion": "1.2",
        "TLSTrustedServerNames": list(trust.server_names),
        "PayloadCertificateAnchorUUID": [each["PayloadUUID"] for each in anchors],
    }
    if profile.method in INNER:
        eap["TTLSInnerAuthentication"] = INNER[profile.method]
    if profile.outer_identity and profile.method.has_password:
        eap["OuterIdentity"] = profile.outer_identity
    if user:
        eap["UserName"] = user
    if profile.method is Method.PEAP and profile.login_by is not LoginBy.PERSON:
        eap["SystemModeCredentialsSource"] = "ActiveDirectory"
    modes = {} if profile.login_by is LoginBy.PERSON else {"SetupModes": ["System"]}
    return {"EAPClientConfiguration": eap, **modes}


def _anchors(profile: Profile, trust: Trust, part: str) -> list[dict[str, object]]:
    return [
        _payload(
            profile,
            f"{part}.authority{number}",
            "com.apple.security.root",
            each.name,
            PayloadContent=each.der,
            PayloadCertificateFileName=f"authority{number}.cer",
        )
        for number, each in enumerate(trust.anchors, 1)
    ]


def _payload(profile: Profile, part: str, kind: str, name: str, **keys: object) -> dict[str, object]:
    """Return a payload. part: the name of the payload within all files of the profile."""
    return {
        "PayloadType": kind,
        "PayloadVersion": 1,
        "PayloadIdentifier": f"org.sallyport.profile.{profile.uuid}.{part}",
        "PayloadUUID": profile.part(f"apple.{part}"),
        "PayloadDisplayName": name,
        **keys,
    }
