"""Settings for Android: Open Network Configuration (ONC) for device management, and settings that a person types.

Android has no file for Wi-Fi networks with EAP that a person can open, and its QR codes know no EAP. The Android
Management API (`openNetworkConfiguration` of a policy) and ChromeOS take ONC. The Android Management API refuses a
network without DomainSuffixMatch. A network with EAP-TLS has no client certificate here: the device management adds it.
"""

import json
from base64 import b64encode
from typing import Final

from sallyport.areas.profiles.profile import Method, Profile, Security, Trust

OUTER: Final = {13: "EAP-TLS", 21: "EAP-TTLS", 25: "PEAP"}
INNER: Final = {Method.PEAP: "MSCHAPv2", Method.TTLS_PAP: "PAP", Method.TTLS_MSCHAPV2: "MSCHAPv2"}
_METHODS: Final = {13: "TLS", 21: "TTLS", 25: "PEAP"}


def network_configuration(profile: Profile, trust: Trust) -> bytes:
    """Return the Wi-Fi networks and the authorities as ONC. It has the type UnencryptedConfiguration."""
    anchors = [
        {
            "GUID": profile.part(f"onc.authority{number}"),
            "Type": "Authority",
            "X509": b64encode(each.der).decode(),
        }
        for number, each in enumerate(trust.anchors, 1)
    ]
    eap: dict[str, object] = {
        "Outer": OUTER[profile.method.eap_type],
        "ServerCARefs": [each["GUID"] for each in anchors],
        "DomainSuffixMatch": list(trust.server_names),
    }
    if profile.method in INNER:
        eap["Inner"] = INNER[profile.method]
    if profile.outer_identity and profile.method.has_password:
        eap["AnonymousIdentity"] = profile.outer_identity
    networks = [
        {
            "GUID": profile.part(f"onc.network{number}"),
            "Name": ssid,
            "Type": "WiFi",
            "WiFi": {
                "SSID": ssid,
                "HexSSID": ssid.encode().hex().upper(),
                "HiddenSSID": profile.hidden,
                "AutoConnect": True,
                "Security": "WPA-EAP",
                "EAP": eap,
            },
        }
        for number, ssid in enumerate(profile.ssids, 1)
    ]
    whole = {"Type": "UnencryptedConfiguration", "Certificates": anchors, "NetworkConfigurations": networks}
    return json.dumps(whole, indent=2, ensure_ascii=False).encode() + b"\n"


def typed_settings(profile: Profile, trust: Trust) -> list[tuple[str, str]]:
    """Return the settings of the Wi-Fi networks as a person types them on Android 11 and later: (title, value)."""
    found = [
        ("Network name", " or ".join(profile.ssids)),
        ("Hidden network", "Yes" if profile.hidden else "No"),
        ("Security", "WPA3-Enterprise" if profile.security is Security.WPA3 else "WPA/WPA2/WPA3-Enterprise"),
        ("EAP method", _METHODS[profile.method.eap_type]),
        ("Phase 2 authentication", {"MSCHAPv2": "MSCHAPV2"}.get(INNER.get(profile.method, ""), "PAP")),
        ("CA certificate", ", ".join(each.name for each in trust.anchors)),
        ("Online certificate status", "Do not verify"),
        ("Domain", ";".join(trust.server_names)),
        ("User certificate", "Your certificate"),
        ("Identity", "Your user name"),
        ("Anonymous identity", profile.outer_identity),
        ("Password", "Your password"),
    ]
    absent = {"User certificate"} if profile.method.has_password else {"Phase 2 authentication", "Password"}
    return [(title, value) for title, value in found if value and title not in absent]
