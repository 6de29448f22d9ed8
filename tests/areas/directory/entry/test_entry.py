"""How the entries of any LDAP directory are read as people, groups and units."""

from collections.abc import Mapping
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.areas.directory.entry.entry import (
    MAX_ATTRIBUTES,
    MAX_VALUE_LENGTH,
    MAX_VALUES,
    Group,
    Person,
    Problem,
    Raw,
    Unit,
    understand,
    understood,
    with_primary_group,
)
from sallyport.areas.directory.entry.status import Status
from sallyport.areas.directory.mappings.mapping import DEFAULTS
from sallyport.base.clock import SECOND
from sallyport.base.errors import Invalid

NOW = 1_767_225_600 * SECOND  # 2026-01-01
BEFORE, AFTER = (
    "134116991990000000",
    "134116992010000000",
)  # one second before and after NOW, in units of 100 ns since 1601
ID = "8b3f5d2e-5d0c-4b57-9f1a-0d6b1c2e3f40"
AD_USER = ("top", "person", "organizationalPerson", "user")
ANN = "CN=Ann Lee,OU=Staff,DC=corp,DC=example"
Values = str | bytes | tuple[str | bytes, ...]


def raw(dn: str, *kinds: str, **values: Values) -> Raw:
    """Return an entry with the given object classes. An underscore in the name of an attribute becomes a hyphen."""
    given_values: Mapping[str, Values] = {"objectclass": kinds, **values}
    return Raw(
        dn,
        {
            name.replace("_", "-").lower(): tuple(
                each.encode() if isinstance(each, str) else each
                for each in (value if isinstance(value, tuple) else (value,))
            )
            for name, value in given_values.items()
        },
    )


def person(dn: str, *kinds: str, **values: Values) -> Person:
    """Return an entry that is read as a person."""
    found = understand(raw(dn, *kinds, **values), now=NOW)
    assert isinstance(found, Person)
    return found


def group(dn: str, *kinds: str, **values: Values) -> Group:
    """Return an entry that is read as a group."""
    found = understand(raw(dn, *kinds, **values), now=NOW)
    assert isinstance(found, Group)
    return found


def sid(*parts: int) -> bytes:
    """Return the octets of a security identifier."""
    return bytes((1, len(parts), 0, 0, 0, 0, 0, 5)) + b"".join(part.to_bytes(4, "little") for part in parts)


def test_an_inet_org_person_is_understood() -> None:
    """In an OpenLDAP account, uid is the name and entryUUID is the permanent identifier."""
    found = person(
        "uid=ann,ou=people,dc=example", "inetOrgPerson",
        uid=("ann.lee", "ann"), cn="Ann Lee", mail="ann@example.com", entryUUID=ID.upper(),
        memberOf="cn=vpn,dc=example",
    )  # fmt: skip
    assert found == Person(
        external_id=ID,
        dn="uid=ann,ou=people,dc=example",
        name="ann",
        aliases=("ann.lee",),
        status=Status.ACTIVE,
        member_of=("cn=vpn,dc=example",),
        attributes={
            "cn": ("Ann Lee",),
            "entryuuid": (ID.upper(),),
            "mail": ("ann@example.com",),
            "uid": ("ann.lee", "ann"),
        },
    )


def test_an_active_directory_user_is_understood() -> None:
    """In an Active Directory account, sAMAccountName is the name, the UPN is an alias, and objectGUID is the permanent
    identifier.
    """
    found = person(
        ANN, *AD_USER,
        sAMAccountName="ann", userPrincipalName="ann.lee@corp.example", cn="Ann Lee", objectGUID=UUID(ID).bytes_le,
        objectSid=sid(21, 1, 2, 3, 1104), primaryGroupID="513", userAccountControl="512",
    )  # fmt: skip
    assert (found.external_id, found.name, found.aliases) == (ID, "ann", ("ann.lee@corp.example",))
    assert found.primary_group == "S-1-5-21-1-2-3-513"
    assert with_primary_group(found, {"S-1-5-21-1-2-3-513": "CN=Domain Users"}).member_of == ("CN=Domain Users",)
    assert with_primary_group(found, {"S-1-5-21-9-2-3-513": "CN=Others"}) is found


@pytest.mark.parametrize(
    ("values", "status"),
    [
        ({}, Status.ACTIVE),
        ({"userAccountControl": "512"}, Status.ACTIVE),
        ({"userAccountControl": "514"}, Status.DISABLED),
        ({"accountExpires": BEFORE}, Status.EXPIRED),
        ({"accountExpires": AFTER}, Status.ACTIVE),
        ({"accountExpires": "0"}, Status.ACTIVE),
        ({"accountExpires": "9223372036854775807"}, Status.ACTIVE),
        ({"accountExpires": "rubbish"}, Status.ACTIVE),
        ({"lockoutTime": BEFORE}, Status.LOCKED),
        ({"lockoutTime": "0"}, Status.ACTIVE),
        ({"lockoutTime": BEFORE, "msDS_User_Account_Control_Computed": "0"}, Status.ACTIVE),
        ({"lockoutTime": BEFORE, "msDS_User_Account_Control_Computed": "16"}, Status.LOCKED),
        ({"pwdAccountLockedTime": "20251231235959Z"}, Status.LOCKED),
        ({"pwdAccountLockedTime": "000001010000Z"}, Status.DISABLED),
        ({"nsAccountLock": "TRUE"}, Status.DISABLED),
        ({"nsAccountLock": "false"}, Status.ACTIVE),
        ({"shadowExpire": "1"}, Status.EXPIRED),
        ({"shadowExpire": "-1"}, Status.ACTIVE),
        ({"shadowExpire": "99999"}, Status.ACTIVE),
        ({"userAccountControl": "514", "lockoutTime": BEFORE, "accountExpires": BEFORE}, Status.DISABLED),
    ],
)
def test_the_status_of_an_account(values: Mapping[str, str], status: Status) -> None:
    """If several attributes block an account, its status is the one that lasts longest."""
    assert person(ANN, "user", sAMAccountName="ann", **values).status is status


@pytest.mark.parametrize(
    ("kinds", "values"),
    [
        ((*AD_USER, "computer"), {"sAMAccountName": "PC1$"}),
        (("top", "person", "contact"), {"cn": "A contact"}),
        (AD_USER, {"sAMAccountName": "OTHER$", "userAccountControl": "2080"}),
        (("organizationalRole", "simpleSecurityObject"), {"cn": "service"}),
        (("domain",), {"dc": "example"}),
        (("container",), {"cn": "Users"}),
        ((), {"uid": "ann"}),
    ],
)
def test_other_entries_are_ignored(kinds: tuple[str, ...], values: Mapping[str, str]) -> None:
    """Computers, contacts, trusts and containers are not read as people."""
    assert understand(raw("cn=a,dc=b", *kinds, **values), now=NOW) is None


def test_groups_are_understood() -> None:
    """The members of a group are read in each of the three notations, without duplicates."""
    names = group("cn=vpn,dc=b", "groupOfNames", cn="vpn", member=("uid=a,dc=b", "uid=a,dc=b", ""), entryUUID=ID)
    assert (names.external_id, names.name, names.members) == (ID, "vpn", ("uid=a,dc=b",))
    unique = group("cn=vpn,dc=b", "groupOfUniqueNames", cn="vpn", uniqueMember=("uid=a,dc=b#'0101'B", "uid=c,dc=b"))
    assert unique.members == ("uid=a,dc=b", "uid=c,dc=b")
    posix = group("cn=vpn,dc=b", "posixGroup", cn="vpn", memberUid=("ann", "bob"), gidNumber="100")
    assert (posix.members, posix.key) == (("uid:ann", "uid:bob"), "gid:100")
    assert person("uid=a,dc=b", "posixAccount", uid="a", gidNumber="100").primary_group == posix.key
    active = group("CN=Staff,DC=b", "top", "group", sAMAccountName="staff", cn="Staff", objectSid=sid(21, 1, 2, 3, 513))
    assert (active.name, active.key) == ("staff", "S-1-5-21-1-2-3-513")


def test_units_are_understood() -> None:
    """The name of an organizational unit is its ou."""
    assert understand(raw("OU=Staff,DC=b", "organizationalUnit", ou="Staff"), now=NOW) == Unit(
        "dn:ou=staff,dc=b", "OU=Staff,DC=b", "Staff"
    )


@pytest.mark.parametrize("octets", [b"", b"\x01", b"short", b"\xff" * 17, b"\x01\x05" + b"\0" * 6])
def test_a_malformed_identifier_is_ignored(octets: bytes) -> None:
    """If the GUID, UUID or SID of an entry has a wrong size, the entry is identified by its DN."""
    found = person(ANN, "user", sAMAccountName="ann", objectGUID=octets, entryUUID=octets, objectSid=octets)
    assert (found.external_id, found.primary_group) == ("dn:cn=ann lee,ou=staff,dc=corp,dc=example", "")


@pytest.mark.parametrize(
    "secret",
    [
        "userPassword", "unicodePwd", "ntPwdHistory", "sambaNTPassword", "krbPrincipalKey", "ms-Mcs-AdmPwd",
        "userPKCS12", "msLAPS-Password", "supplementalCredentials", "dBCSPwd", "msDS-ManagedPassword", "authPassword",
        "ipaNTHash", "msFVE-RecoveryPassword", "ipatokenOTPkey", "radiusTunnelPassword", "pwdHistory", "userPrivateKey",
    ],
)  # fmt: skip
def test_no_secret_is_kept(secret: str) -> None:
    """Passwords, their hashes, and keys are never kept as attributes."""
    found = person("uid=ann,dc=b", "person", uid="ann", **{secret: "s3cret"})
    assert "s3cret" not in repr(found)


def test_attributes_are_bounded() -> None:
    """Only text is kept, and its amount is limited, because a directory may have a hundred thousand people."""
    many = {f"a{number}": "x" for number in range(2 * MAX_ATTRIBUTES)}
    assert len(person("uid=ann,dc=b", "person", uid="ann", **many).attributes) == MAX_ATTRIBUTES
    found = person(
        "uid=ann,dc=b", "person", uid="ann", photo=b"\xff\xd8\xff", odd="a\0b", postal="Main St\r\n1",
        long="x" * (MAX_VALUE_LENGTH + 1), numbers=tuple(map(str, range(2 * MAX_VALUES))),
    )  # fmt: skip
    assert set(found.attributes) == {"uid", "postal", "numbers"}
    assert len(found.attributes["numbers"]) == MAX_VALUES


@pytest.mark.parametrize(
    "entry",
    [
        raw("rubbish", "person", uid="ann"),
        raw("", "person", uid="ann"),
        raw("uid=ann,dc=b", "person"),
        raw("uid=ann,dc=b", "person", uid=("", " ", "a\nb", "x" * 256, b"\xff")),
        raw("cn=g,dc=b", "groupOfNames"),
        raw("ou=u,dc=b", "organizationalUnit"),
    ],
)
def test_an_unusable_entry_raises_invalid(entry: Raw) -> None:
    """A person, group or unit without a name raises Invalid. The message does not contain values of the entry."""
    with pytest.raises(Invalid) as error:
        understand(entry, now=NOW)
    assert "rubbish" not in str(error.value)


KINDS = st.sampled_from(["person", "user", "group", "posixGroup", "groupOfUniqueNames", "organizationalUnit", "x"])
NAMES = st.sampled_from(
    ["uid", "cn", "ou", "member", "uniquemember", "memberuid", "memberof", "objectguid", "objectsid", "entryuuid",
     "useraccountcontrol", "accountexpires", "lockouttime", "primarygroupid", "gidnumber", "shadowexpire", "mail"]
)  # fmt: skip


@given(
    st.one_of(st.text(max_size=30), st.just("uid=ann,dc=b")),
    st.sets(KINDS),
    st.dictionaries(NAMES, st.lists(st.one_of(st.binary(max_size=30), st.just(b"5"), st.just(b"ann"))).map(tuple)),
)
def test_any_entry_is_understood_or_refused(dn: str, kinds: set[str], values: dict[str, tuple[bytes, ...]]) -> None:
    """Any entry is read, or it raises Invalid and nothing else. Each result has a name and an identifier."""
    entry = Raw(dn, {**values, "objectclass": tuple(kind.encode() for kind in kinds)})
    try:
        found = understand(entry, now=NOW)
    except Invalid:
        return
    assert found is None or (found.name and found.external_id and found.dn)


def test_important_attributes_are_kept_first() -> None:
    """However many attributes an entry has, the attributes for its name, its status and the default mapping are
    kept.
    """
    many = {f"a{number}": "x" for number in range(2 * MAX_ATTRIBUTES)}
    shown = dict.fromkeys((*DEFAULTS.values(), "displayName", "mail", "userPrincipalName", "shadowExpire"), "zz")
    known = person("uid=ann,dc=b", "person", uid="ann", **many, **shown).attributes
    assert {"uid", *map(str.lower, shown)} <= set(known) and len(known) == MAX_ATTRIBUTES


def test_mapped_attributes_are_kept_first() -> None:
    """A mapped attribute is kept, unless it contains a secret."""
    many = {f"a{number}": "x" for number in range(2 * MAX_ATTRIBUTES)}
    entry = raw("uid=ann,dc=b", "person", uid="ann", zzz="7", userPassword="x", **many)
    found = understand(entry, now=NOW, mapped={"zzz", "userpassword"})
    assert isinstance(found, Person) and found.attributes["zzz"] == ("7",) and "userpassword" not in found.attributes
    found = understand(entry, now=NOW)
    assert isinstance(found, Person) and "zzz" not in found.attributes


BLANKS = pytest.mark.parametrize("blank", [" ", "\t", "\u00a0", "\u200b", "\ufeff", "\u2060 \t"], ids=ascii)


@BLANKS
def test_blanks_around_names_are_removed(blank: str) -> None:
    """Blanks and invisible characters around the names of people, groups and units do not belong to the names."""
    names = {"uid": f"{blank}ann{blank}", "cn": "Ann Lee", "krbPrincipalName": f"ann@X{blank}"}
    found = person("uid=ann,dc=b", "person ", **names)
    assert (found.name, found.aliases) == ("ann", ("ann@X",))
    ops = group("cn=g,dc=b", "posixGroup", cn=f"ops{blank}", memberUid=f"{blank}ann{blank}")
    assert (ops.name, ops.members) == ("ops", ("uid:ann",))
    unit = understand(raw("ou=u,dc=b", "organizationalUnit", ou=f"Staff{blank}"), now=NOW)
    assert isinstance(unit, Unit) and unit.name == "Staff"


@pytest.mark.parametrize("uid", [" ", "a\nb", "x" * 256, b"\xff", "a\u200bb"])
def test_a_name_that_is_not_valid_is_not_replaced(uid: str | bytes) -> None:
    """If the login name of an entry is not valid, the entry is refused. It does not get its common name as its login
    name.
    """
    with pytest.raises(Invalid, match="no valid name in uid"):
        understand(raw("uid=ann,dc=b", "person", uid=uid, cn="Ann Lee"), now=NOW)


def test_an_account_that_cannot_be_used_has_its_status() -> None:
    """A blank behind the object class of such an entry does not hide that the account is disabled."""
    found = understood(raw("cn=ann,dc=b", "person ", uid="a\nb", userAccountControl="514"), now=NOW)
    assert isinstance(found, Problem) and found.status is Status.DISABLED
