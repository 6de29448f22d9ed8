"""The signature of configuration profiles, verified by openssl."""

import subprocess
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import ed25519
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from sallyport.areas.profiles.signing import ProfileSigner
from sallyport.base.errors import Conflict
from tests.peers.authority import Authority
from tests.peers.programs import find, needs

CONTENT = b"<?xml version='1.0'?>\r\n<plist>a profile\n</plist>\n"


def signer(tmp_path: Path, authority: Authority) -> ProfileSigner:
    """Return a signer with a certificate of an authority."""
    pem = authority.key_for("profiles.example.org")
    (tmp_path / "own.pem").write_bytes(pem[pem.index(b"-----BEGIN CERT") :] + authority.pem.encode())
    (tmp_path / "own.key").write_bytes(pem[: pem.index(b"-----BEGIN CERT")])
    return ProfileSigner(tmp_path / "own.pem", tmp_path / "own.key")


@needs("openssl")
def test_openssl_verifies_the_signature(tmp_path: Path) -> None:
    """The signed file contains the profile unchanged, the signer's certificate and its chain. Another authority does
    not verify it.
    """
    authority = Authority("signers")
    octets = signer(tmp_path, authority).signed(CONTENT, 1)
    (tmp_path / "signed").write_bytes(octets)

    def verified(trusted: Authority) -> "subprocess.CompletedProcess[bytes]":
        (tmp_path / "ca.pem").write_text(trusted.pem)
        command = [find("openssl"), "cms", "-verify", "-inform", "DER", "-in", tmp_path / "signed", "-binary"]
        command += ["-CAfile", tmp_path / "ca.pem", "-purpose", "any"]
        return subprocess.run(command, capture_output=True, check=False, timeout=30)

    done = verified(authority)
    assert done.returncode == 0, done.stderr
    assert done.stdout == CONTENT
    assert verified(Authority("signers")).returncode != 0


def test_an_unchanged_profile_is_signed_once(tmp_path: Path) -> None:
    """A signature contains its time, so a repeated download gets the same octets. A new certificate signs again."""
    authority = Authority("signers")
    first = signer(tmp_path, authority)
    octets = first.signed(CONTENT, 1)
    assert first.signed(CONTENT, 1) == octets != first.signed(CONTENT + b" ", 1)
    signer(tmp_path, authority)
    assert first.signed(CONTENT, 1) != octets


def test_without_a_key_nothing_is_signed(tmp_path: Path) -> None:
    assert ProfileSigner(None, None).signed(CONTENT, 1) == CONTENT
    assert ProfileSigner(tmp_path, None).signed(CONTENT, 1) == CONTENT


def test_files_that_cannot_sign(tmp_path: Path) -> None:
    """A missing key, one of another certificate or of another kind gives an error that names the settings, and never an
    unsigned file.
    """
    authority = Authority("signers")
    one = signer(tmp_path, authority)
    own = (tmp_path / "own.key").read_bytes()
    signer(tmp_path, authority)
    edward = ed25519.Ed25519PrivateKey.generate()
    for key in (own, b"no key", edward.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())):
        (tmp_path / "own.key").write_bytes(key)
        with pytest.raises(Conflict, match="profile_certificate and profile_key"):
            one.signed(CONTENT, 1)
    (tmp_path / "own.key").unlink()
    with pytest.raises(Conflict, match="profile_key"):
        one.signed(CONTENT, 1)
