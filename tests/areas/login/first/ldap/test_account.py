"""Tests of the state of an account, which is read from its entry and from a refused bind."""

import pytest

from sallyport.areas.directory.reading.answers import Policy, TooLarge
from sallyport.areas.directory.reading.connection import Entry, Refusal
from sallyport.areas.login.first.ldap.account import ended, found, must_change, why_refused
from sallyport.areas.login.login import Reason
from sallyport.base.clock import SECOND

NOW = 1_767_225_600 * SECOND  # 2026-01-01
BEFORE, AFTER = "134116991990000000", "134116992010000000"  # one second around `NOW`, in units of 100 ns since 1601


def entry(dn: str = "CN=Ann,DC=example", **values: str) -> Entry:
    """Return an entry with one value for each attribute."""
    return Entry(dn, {name.lower(): (value,) for name, value in values.items()})


def refusal(text: str = "Invalid credentials.", code: int = 49, policy: Policy | None = None) -> Refusal:
    """Return a refused bind."""
    return Refusal(code, text, policy)


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        ("525", Reason.UNKNOWN_USER),
        ("52e", Reason.WRONG_PASSWORD),
        ("52f", Reason.LOGON_RESTRICTED),
        ("530", Reason.LOGON_RESTRICTED),
        ("531", Reason.LOGON_RESTRICTED),
        ("532", Reason.PASSWORD_EXPIRED),
        ("533", Reason.ACCOUNT_DISABLED),
        ("701", Reason.ACCOUNT_EXPIRED),
        ("773", Reason.PASSWORD_MUST_CHANGE),
        ("775", Reason.ACCOUNT_LOCKED),
        ("57", Reason.WRONG_PASSWORD),
        ("999", Reason.WRONG_PASSWORD),
    ],
)
def test_active_directory_says_why(data: str, reason: Reason) -> None:
    """The text of Active Directory's refusal contains the reason. An unknown number is reported as a wrong password."""
    text = f"Invalid credentials. 80090308: LdapErr: DSID-0C090439, comment: AcceptSecurityContext error, data {data}, v4563 (0x0031 [49])"  # noqa: E501
    assert why_refused(refusal(text), entry(), NOW) is reason


@pytest.mark.parametrize(
    ("policy", "reason"),
    [
        (Policy.LOCKED, Reason.ACCOUNT_LOCKED),
        (Policy.EXPIRED, Reason.PASSWORD_EXPIRED),
        (Policy.MUST_CHANGE, Reason.PASSWORD_MUST_CHANGE),
    ],
)
def test_the_password_policy_says_why(policy: Policy, reason: Reason) -> None:
    """The password policy control contains the reason."""
    assert why_refused(refusal(policy=policy), entry(), NOW) is reason


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({}, Reason.WRONG_PASSWORD),
        ({"pwdAccountLockedTime": "20260101000000Z"}, Reason.ACCOUNT_LOCKED),
        ({"lockoutTime": AFTER}, Reason.ACCOUNT_LOCKED),
        ({"lockoutTime": "0"}, Reason.WRONG_PASSWORD),
        ({"userAccountControl": "514"}, Reason.ACCOUNT_DISABLED),
        ({"userAccountControl": "512"}, Reason.WRONG_PASSWORD),
        ({"accountExpires": BEFORE}, Reason.ACCOUNT_EXPIRED),
        ({"accountExpires": AFTER}, Reason.WRONG_PASSWORD),
        ({"accountExpires": "0"}, Reason.WRONG_PASSWORD),
        ({"accountExpires": "9223372036854775807"}, Reason.WRONG_PASSWORD),
        ({"krbPrincipalExpiration": "20010101000000Z"}, Reason.ACCOUNT_EXPIRED),
        ({"pwdEndTime": "20010101000000Z"}, Reason.ACCOUNT_EXPIRED),
        ({"nsAccountLock": "TRUE"}, Reason.ACCOUNT_DISABLED),
        ({"lockoutTime": AFTER, "msDS-User-Account-Control-Computed": "0"}, Reason.WRONG_PASSWORD),
        ({"accountExpires": "never", "userAccountControl": "-", "lockoutTime": "٣"}, Reason.WRONG_PASSWORD),
    ],
)
def test_attributes_say_why(values: dict[str, str], reason: Reason) -> None:
    """If the refusal gives no reason, the attributes of the entry give it. Values that are not numbers are ignored."""
    assert why_refused(refusal(), entry(**values), NOW) is reason


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({}, Reason.NONE),
        ({"shadowExpire": "1"}, Reason.ACCOUNT_EXPIRED),
        ({"shadowExpire": "99999"}, Reason.NONE),
        ({"sambaAcctFlags": "[DU         ]"}, Reason.ACCOUNT_DISABLED),
        ({"lockoutTime": BEFORE}, Reason.NONE),
        ({"pwdAccountLockedTime": "20260101000000Z"}, Reason.NONE),
    ],
)
def test_attributes_end_an_account(values: dict[str, str], reason: Reason) -> None:
    """After a right password, attributes of another system can refuse the login. A lock has ended then."""
    assert ended(entry(**values), NOW) is reason


def test_a_refusal_of_the_directory_is_no_wrong_password() -> None:
    """If the directory refuses a bind for a reason of its own, the password is not reported as wrong."""
    for code in (8, 13, 51, 52, 53, 80):
        assert why_refused(refusal("no", code), entry(), NOW) is Reason.NONE


def test_a_password_set_by_an_admin_must_be_changed() -> None:
    """The attribute pwdReset shows that the user must change a password that an admin has set."""
    assert must_change(entry(pwdReset="TRUE"))
    assert not must_change(entry(pwdReset="FALSE")) and not must_change(entry())


def test_groups_and_units() -> None:
    """Groups are read from memberOf, and units from the name of the entry, whatever characters the names contain."""
    member = Entry(
        "CN=Ann,OU=R\\26D\\, West,OU=Z\\C3\\BCrich, DC=example",
        {
            "memberof": (
                "CN=VPN users,OU=Groups,DC=example",
                "cn=a\\,b\\+c\\\\d,dc=example",
                'CN="quoted, name",DC=example',
                "CN=two+UID=names,DC=example",
                "",
            )
        },
    )
    result = found(member)
    assert result.groups == {"vpn users", "a,b+c\\d", "quoted, name", "two"}
    assert result.ous == {"r&d, west", "zürich"}


def test_the_length_of_all_groups_is_limited() -> None:
    """If the names of a user's groups exceed the memory limit, the login is refused. No group is left out."""
    groups = tuple(f"CN={number:0250},DC=example" for number in range(300))
    with pytest.raises(TooLarge, match="65,536 characters"):
        found(Entry("CN=Ann,DC=example", {"memberof": groups}))


def test_when_the_password_was_changed() -> None:
    """The time is that of the directory, as text. A text that is no time is left out, and several times are joined."""
    assert found(entry(pwdLastSet="133450000000000000")).password_at == "133450000000000000"
    assert found(entry(pwdChangedTime="20260101000000Z", krbLastPwdChange="2")).password_at == "20260101000000Z 2"
    assert found(entry(pwdLastSet="1" * 33)).password_at == found(entry()).password_at == ""
