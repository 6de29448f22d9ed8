"""Files for Linux: key files of NetworkManager (`nm-settings-keyfile`), and networks of wpa_supplicant.

Each file contains the authority's certificate, so that it needs no second file. Both programs accept only the exact
server names. If no user name is given, the file has the placeholder USERNAME. A network with EAP-TLS also needs the
paths of the client's certificate and key.

The SSID is written as numbers or hexadecimal digits, and so is each text with other characters than letters, digits and
some signs. So no value can end its line or its quotes.
"""

import re
from base64 import b64encode
from typing import Final

from sallyport.areas.profiles.profile import Method, Profile, Security, Trust

USER: Final = "USERNAME"
CERTIFICATE: Final = "/etc/ssl/certs/USERNAME.pem"
KEY: Final = "/etc/ssl/private/USERNAME.key"
_METHODS: Final = {13: "tls", 21: "ttls", 25: "peap"}
_INNER: Final = {Method.PEAP: "mschapv2", Method.TTLS_PAP: "pap", Method.TTLS_MSCHAPV2: "mschapv2"}
_SAFE: Final = re.compile(r"[A-Za-z0-9@._/-]+", re.ASCII)
_LINE: Final = 64


def key_file(profile: Profile, trust: Trust, ssid: str | None, user: str = "") -> bytes:
    """Return a key file of NetworkManager. ssid: the Wi-Fi network, or None for the wired network."""
    part = "lan" if ssid is None else f"wifi{profile.ssids.index(ssid) + 1}"
    lines = [
        "[connection]",
        f"id={_value(f'{profile.name} (wired)' if ssid is None else ssid)}",
        f"uuid={profile.part(f'linux.{part}').lower()}",
        f"type={'ethernet' if ssid is None else 'wifi'}",
    ]
    if ssid is not None:
        pmf = 3 if profile.security is Security.WPA3 else 2  # required, optional
        lines += [
            "",
            "[wifi]",
            "mode=infrastructure",
            f"ssid={''.join(f'{octet};' for octet in ssid.encode())}",
            f"hidden={str(profile.hidden).lower()}",
            "",
            "[wifi-security]",
            "key-mgmt=wpa-eap",
            f"pmf={pmf}",
        ]
    pem = "".join(each.pem for each in trust.anchors).encode()
    lines += [
        "",
        "[802-1x]",
        f"eap={_METHODS[profile.method.eap_type]};",
        f"identity={_value(user or USER)}",
        f"ca-cert=data:;base64,{b64encode(pem).decode()}",
        f"domain-match={';'.join(trust.server_names)}",
    ]
    if profile.method.has_password:
        lines += [f"phase2-auth={_INNER[profile.method]}", "password-flags=1"]
        lines += [f"anonymous-identity={_value(profile.outer_identity)}"] if profile.outer_identity else []
    else:
        lines += [f"client-cert={CERTIFICATE}", f"private-key={KEY}", "private-key-password-flags=4"]
    return "\n".join([*lines, ""]).encode()


def wpa_supplicant(profile: Profile, trust: Trust, user: str = "") -> bytes:
    """Return a configuration of wpa_supplicant with all networks of a profile."""
    blob = f"authority-{profile.uuid}"
    networks = [_network(profile, trust, ssid, blob, user) for ssid in profile.ssids]
    if profile.wired:
        networks.append(_network(profile, trust, None, blob, user))
    text = b64encode("".join(each.pem for each in trust.anchors).encode()).decode()
    lines = [text[at : at + _LINE] for at in range(0, len(text), _LINE)]
    return "\n".join([*networks, f"blob-base64-{blob}={{", *lines, "}", ""]).encode()


def _network(profile: Profile, trust: Trust, ssid: str | None, blob: str, user: str) -> str:
    is_wpa3 = profile.security is Security.WPA3
    if ssid is None:
        link = ["key_mgmt=IEEE8021X", "eapol_flags=0"]
    else:
        link = [
            f"ssid={ssid.encode().hex()}",
            f"scan_ssid={int(profile.hidden)}",
            "proto=RSN",
            "pairwise=CCMP",
            f"key_mgmt={'WPA-EAP-SHA256' if is_wpa3 else 'WPA-EAP WPA-EAP-SHA256'}",
            f"ieee80211w={2 if is_wpa3 else 1}",
        ]
    lines = [
        *link,
        f"eap={_METHODS[profile.method.eap_type].upper()}",
        f"identity={_text(user or USER)}",
        f'ca_cert="blob://{blob}"',
        f'domain_match="{";".join(trust.server_names)}"',
    ]
    if profile.method.has_password:
        lines.append(f'phase2="auth={_INNER[profile.method].upper()}"')
        lines += [f"anonymous_identity={_text(profile.outer_identity)}"] if profile.outer_identity else []
    else:
        lines += [f'client_cert="{CERTIFICATE}"', f'private_key="{KEY}"']
    return "\n".join(["network={", *(f"\t{line}" for line in lines), "}"])


def _text(value: str) -> str:
    """Return a text as wpa_supplicant reads it: in quotes, or in hexadecimal digits."""
    return f'"{value}"' if _SAFE.fullmatch(value) else value.encode().hex()


def _value(value: str) -> str:
    """Return a value of a key file. A backslash begins an escape, and white space at the ends is dropped unless it is
    escaped (GLib's key files)."""
    escaped = value.replace("\\", "\\\\")
    lead = len(escaped) - len(escaped.lstrip(" "))
    return "\\s" * lead + escaped[lead:]
