"""Attributes that contain secrets, and attributes that only have similar names."""

import pytest

from sallyport.areas.directory.entry.secret_attributes import holds_secret


@pytest.mark.parametrize(
    "name",
    [
        "userPassword", "2.5.4.35", "userPassword;lang-de", "2.5.4.35;binary", "unicodePwd", "1.2.840.113556.1.4.90",
        "dBCSPwd", "ntPwdHistory", "supplementalCredentials", "sambaNTPassword", "1.3.6.1.4.1.7165.2.1.25",
        "krbPrincipalKey", "2.16.840.1.113719.1.301.4.39.1", "krbExtraData", "ms-Mcs-AdmPwd", "msLAPS-Password",
        "1.2.840.113556.1.6.44.1.2", "msDS-ManagedPassword", "msFVE-RecoveryPassword", "ipaNTHash", "ipatokenOTPkey",
        "oathSecret", "radiusTunnelPassword", "userPrivateKey", "userPKCS12", "authPassword", "pwdHistory",
        "acme-password2", "acmeSecretKey",
    ],
)  # fmt: skip
def test_an_attribute_with_a_secret_is_recognized(name: str) -> None:
    """The attribute of a password, hash, key or seed is recognized by its name and by its OID, with and without
    options.
    """
    assert holds_secret(name.lower())


@pytest.mark.parametrize(
    "name",
    [
        "department", "department;lang-de", "memberOf", "passportNumber", "pwdLastSet", "badPasswordTime", "compassId",
        "tokenGroups", "privateMail", "msLAPS-PasswordExpirationTime", "sambaPwdLastSet", "krbPrincipalName", "2.5.4.3",
        "2.5.4.36", "publicKey", "hashtag", "passwordHint",
    ],
)  # fmt: skip
def test_an_attribute_with_a_similar_name_may_be_mapped(name: str) -> None:
    """An attribute that only has a similar name as one with a secret may be mapped."""
    assert not holds_secret(name.lower())
