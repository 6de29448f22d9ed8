"""A client's certificate and key for a user's device: PKCS#12 (RFC 7292), and a configuration profile for Apple
devices. This module does no input or output.

PKCS#12 is encrypted with AES-256-CBC by PBES2, PBKDF2 with HMAC-SHA-256, and has an HMAC-SHA-256 over all of it.
OpenSSL 3 writes the same form. macOS 13, iOS 16, Android 13, Windows 10 and Windows Server 2019 read this form. Older
systems read only 3DES and SHA-1. If such a system gets the newer form, it reports a correct password as wrong. The
option `legacy` is for these systems. The password has 99 random bits. So even 3DES is not weaker than the password. The
salt of the MAC has 8 octets, because macOS cannot read a salt of 16 octets.

The profile follows Apple's device management reference. It contains com.apple.security.pkcs12 (one identity; the device
asks for the password), com.apple.security.root, com.apple.wifi.managed with EAP-TLS, and com.apple.vpn.managed with
IKEv2 and EAP-TLS.
"""

import plistlib
import secrets
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final
from uuid import uuid4

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.serialization import Encoding, PrivateFormat, pkcs12

from sallyport.certs.authority import SigningKey, common_name, fingerprint

EAP_TLS: Final = 13  # RFC 5216
ROUNDS: Final = 20_000
MAX_SSID: Final = 32
_LETTERS: Final = "abcdefghjkmnpqrstuvwxyz23456789"
"""The characters of a password. Letters and digits that look alike are omitted, because users type it on a phone."""


@dataclass(frozen=True, slots=True)
class Identity:
    """A client's certificate and its key. authority: the certificate of the authority that has signed the client's
    certificate."""

    certificate: x509.Certificate
    key: SigningKey
    authority: x509.Certificate

    @property
    def name(self) -> str:
        """The client's name."""
        return common_name(self.certificate)

    @property
    def login(self) -> str:
        """The EAP identity of the device. It is a user's name, or a host's name in the form that Windows uses,
        `host/NAME`."""
        names = self.certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
        return f"host/{self.name}" if names.get_values_for_type(x509.DNSName) else self.name


@dataclass(frozen=True, slots=True)
class Network:
    """The networks of a configuration profile.

    ssid: the SSID of the Wi-Fi; if empty, the profile has no Wi-Fi. vpn: the host name or address of the IKEv2 gateway;
    if empty, the profile has no VPN. vpn_id: the gateway's IKE identity; if empty, the identity is `vpn`. server_names:
    the names in the RADIUS server's certificate. authorities: the authorities that sign the RADIUS server's
    certificate.
    """

    ssid: str = ""
    vpn: str = ""
    vpn_id: str = ""
    server_names: Sequence[str] = ()
    authorities: Sequence[x509.Certificate] = ()


def new_password() -> str:
    """Return a random password of 20 letters and digits in groups of five."""
    return "-".join("".join(secrets.choice(_LETTERS) for _ in range(5)) for _ in range(4))


def as_pkcs12(identity: Identity, password: str, *, legacy: bool = False, with_authority: bool = True) -> bytes:
    """Return an identity as PKCS#12.

    legacy: whether to use 3DES and SHA-1. with_authority: whether to include the authority's certificate.
    """
    builder = PrivateFormat.PKCS12.encryption_builder().kdf_rounds(ROUNDS)
    if legacy:
        builder = builder.key_cert_algorithm(pkcs12.PBES.PBESv1SHA1And3KeyTripleDESCBC).hmac_hash(hashes.SHA1())  # noqa: S303
    else:
        builder = builder.key_cert_algorithm(pkcs12.PBES.PBESv2SHA256AndAES256CBC).hmac_hash(hashes.SHA256())
    return pkcs12.serialize_key_and_certificates(
        identity.name.encode(),
        identity.key,
        identity.certificate,
        [identity.authority] if with_authority else None,
        builder.build(password.encode()),
    )


def as_profile(identity: Identity, password: str, network: Network, *, legacy: bool = False) -> bytes:
    """Return a configuration profile as a property list in XML.

    password: the password of the PKCS#12 in the profile. The device asks the person who uses it for this password.
    """
    base = f"org.sallyport.{fingerprint(identity.authority)[:16]}.{identity.name.replace(' ', '-')}"
    own = _payload(
        "com.apple.security.pkcs12",
        f"{base}.identity",
        f"Certificate of {identity.name}",
        PayloadContent=as_pkcs12(identity, password, legacy=legacy, with_authority=False),
        PayloadCertificateFileName=f"{identity.name}.p12",
    )
    anchors = [
        _payload(
            "com.apple.security.root",
            f"{base}.authority{number}",
            common_name(each) or "Authority",
            PayloadContent=each.public_bytes(Encoding.DER),
            PayloadCertificateFileName="ca.cer",
        )
        for number, each in enumerate(network.authorities, 1)
    ]
    content = [own, *anchors]
    if network.ssid:
        content.append(_wifi(base, identity, network, own, anchors))
    if network.vpn:
        content.append(_vpn(base, identity, network, own))
    profile = _payload(
        "Configuration",
        base,
        f"Network access of {identity.name}",
        PayloadContent=content,
        PayloadDescription="A client certificate, and the networks that accept this certificate.",
        PayloadScope="User",
    )
    return plistlib.dumps(profile, fmt=plistlib.FMT_XML)


def _wifi(
    base: str, identity: Identity, network: Network, own: dict[str, object], anchors: Sequence[dict[str, object]]
) -> dict[str, object]:
    """Return the payload of a Wi-Fi network with EAP-TLS. Since iOS 16 and macOS 13, `WPA2` includes WPA3 networks."""
    eap: dict[str, object] = {
        "AcceptEAPTypes": [EAP_TLS],
        "TLSMinimumVersion": "1.2",
        "TLSTrustedServerNames": list(network.server_names),
        "UserName": identity.login,
    }
    if anchors:
        eap["PayloadCertificateAnchorUUID"] = [each["PayloadUUID"] for each in anchors]
    return _payload(
        "com.apple.wifi.managed",
        f"{base}.wifi",
        f"Wi-Fi {network.ssid}",
        SSID_STR=network.ssid,
        AutoJoin=True,
        HIDDEN_NETWORK=False,
        EncryptionType="WPA2",
        PayloadCertificateUUID=own["PayloadUUID"],
        EAPClientConfiguration=eap,
    )


def _vpn(base: str, identity: Identity, network: Network, own: dict[str, object]) -> dict[str, object]:
    """Return the payload of an IKEv2 VPN. The gateway authenticates with a certificate. The client authenticates with
    EAP-TLS."""
    return _payload(
        "com.apple.vpn.managed",
        f"{base}.vpn",
        f"VPN {network.vpn}",
        UserDefinedName=network.vpn,
        VPNType="IKEv2",
        IKEv2={
            "RemoteAddress": network.vpn,
            "RemoteIdentifier": network.vpn_id or network.vpn,
            "LocalIdentifier": identity.name,
            "AuthenticationMethod": "Certificate",
            "ExtendedAuthEnabled": 1,
            "AuthName": identity.login,
            "PayloadCertificateUUID": own["PayloadUUID"],
            "TLSMinimumVersion": "1.2",
        },
    )


def _payload(kind: str, identifier: str, name: str, **fields: object) -> dict[str, object]:
    return {
        "PayloadType": kind,
        "PayloadVersion": 1,
        "PayloadIdentifier": identifier,
        "PayloadUUID": str(uuid4()).upper(),
        "PayloadDisplayName": name,
        **fields,
    }
