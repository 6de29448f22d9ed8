"""Attributes of directories that hold secrets: passwords, their hashes, keys and seeds. No field mapping may use them.

The attributes are listed by name and by OID. They are from RFC 4519, MS-ADSC and MS-ADTS, and the schemas of Samba,
MIT and Heimdal Kerberos, FreeIPA and OATH."""

import re
from functools import lru_cache
from typing import Final

_AD: Final = "1.2.840.113556.1"
_SAMBA: Final = "1.3.6.1.4.1.7165.2.1"
_KERBEROS: Final = "2.16.840.1.113719.1.301.4"
_OIDS: Final = {
    "userpassword": "2.5.4.35",
    "userpkcs12": "2.16.840.1.113730.3.1.216",
    "authpassword": "1.3.6.1.4.1.4203.1.3.4",
    "pwdhistory": "1.3.6.1.4.1.42.2.27.8.1.20",
    "currentvalue": f"{_AD}.4.27",
    "dbcspwd": f"{_AD}.4.55",
    "unicodepwd": f"{_AD}.4.90",
    "ntpwdhistory": f"{_AD}.4.94",
    "priorvalue": f"{_AD}.4.100",
    "privatekey": f"{_AD}.4.101",
    "supplementalcredentials": f"{_AD}.4.125",
    "trustauthincoming": f"{_AD}.4.129",
    "trustauthoutgoing": f"{_AD}.4.135",
    "lmpwdhistory": f"{_AD}.4.160",
    "linktracksecret": f"{_AD}.4.269",
    "initialauthincoming": f"{_AD}.4.539",
    "initialauthoutgoing": f"{_AD}.4.540",
    "peklist": f"{_AD}.4.865",
    "msds-executescriptpassword": f"{_AD}.4.1783",
    "mspkidpapimasterkeys": f"{_AD}.4.1893",
    "mspkiaccountcredentials": f"{_AD}.4.1894",
    "unixuserpassword": f"{_AD}.4.1910",
    "msfve-recoverypassword": f"{_AD}.4.1964",
    "mstpm-ownerinformation": f"{_AD}.4.1966",
    "msfve-keypackage": f"{_AD}.4.1999",
    "msds-managedpassword": f"{_AD}.4.2196",
    "mslaps-password": f"{_AD}.6.44.1.2",
    "mslaps-encryptedpassword": f"{_AD}.6.44.1.3",
    "mslaps-encryptedpasswordhistory": f"{_AD}.6.44.1.4",
    "mslaps-encrypteddsrmpassword": f"{_AD}.6.44.1.5",
    "mslaps-encrypteddsrmpasswordhistory": f"{_AD}.6.44.1.6",
    "ms-mcs-admpwd": f"{_AD}.8000.2554.50051.45980.28112.18903.35903.6685103.1224907.2.1",
    "lmpassword": f"{_SAMBA}.1",
    "ntpassword": f"{_SAMBA}.2",
    "sambalmpassword": f"{_SAMBA}.24",
    "sambantpassword": f"{_SAMBA}.25",
    "sambapasswordhistory": f"{_SAMBA}.54",
    "sambacleartextpassword": f"{_SAMBA}.68",
    "sambapreviouscleartextpassword": f"{_SAMBA}.69",
    "krbprincipalkey": f"{_KERBEROS}.39.1",
    "krbpwdhistory": f"{_KERBEROS}.44.1",
    "krbmkey": f"{_KERBEROS}.46.1",
    "krb5key": "1.3.6.1.4.1.5322.10.1.10",
    "ipatokenotpkey": "2.16.840.1.113730.3.8.16.1.8",
    "oathsecret": "1.3.6.1.4.1.5427.1.389.4226.4.1",
}
_HOLDERS: Final = frozenset({*_OIDS, *_OIDS.values(), "krbextradata"})
# Attributes of other products: their names end with a word for a secret.
_ENDS: Final = re.compile(
    r"(?:password|passwd|passphrase|pwd|secret|credentials?|(?:private|secret|api|otp|recovery|master)-?keys?|otpseed"
    r"|(?:password|passwd|pwd|nt|lm)-?(?:hash|history)|api-?token|access-?token)[0-9]*$"
)


@lru_cache(4096)
def holds_secret(name: str) -> bool:
    """Return whether an attribute holds a secret. name: the name of the attribute in lower case, with or without
    options."""
    base = name.partition(";")[0]
    return base in _HOLDERS or _ENDS.search(base) is not None
