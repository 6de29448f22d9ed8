"""The first factor `web`: no password is checked, and the company's identity provider checks both factors on a page.

The password that a device sends is not read. So every sender of a name can start such a login, and only the sign-in at
the identity provider admits it. The login needs an active account of a cloud directory: its object id says which user
of the identity provider the login is for. The request must be signed, since otherwise not even the RADIUS client is
sure. Only PAP can show a challenge without proving a password first.

EAP is refused, also with GTC in a tunnel. GTC can carry a second prompt, but supplicants do not show its text:
wpa_supplicant answers it with the stored password. The conversation would not survive a restart, and each sender of a
name would cost a TLS handshake.

Nothing counts against the user, since the user may know nothing of the login. `second.web_limits` counts the pages
instead: of a user at one station, of a station, and of a sender.
"""

from typing import Final

from sallyport.areas.directory.principals import Membership, Principals
from sallyport.areas.domains.domain import Domain
from sallyport.areas.login.first import cloud
from sallyport.areas.login.login import Login, Reason
from sallyport.radius.password import Method

ONLY_PAP: Final = "with the first factor web, the device must use PAP: the user signs in on a page"
NO_EAP: Final = (
    "with the first factor web, the device must use PAP: supplicants of EAP show no address of a page, also with GTC"
)
UNCLEAR: Final = "several people of the directories have this name"


def check(login: Login, domain: Domain, principals: Principals) -> Reason:
    """Return PASSED if the user of a login may try to sign in on a page, or the reason for a refusal. `login.imported`
    must be current."""
    if login.method != Method.PAP:
        login.detail = NO_EAP if login.method == Method.EAP else ONLY_PAP
        return Reason.METHOD_UNFIT
    if not login.arrival.request.signed:
        return Reason.UNCHECKED_UNSIGNED
    return check_account(login, domain, principals)


def check_account(login: Login, domain: Domain, principals: Principals, stamp: str | None = None) -> Reason:
    """Return PASSED if the user of a login has an account of a cloud directory that may log in, or the reason for a
    refusal. `login.imported` must be current. stamp: if given, the account must have this stamp."""
    imported = login.imported
    if imported is None or imported.cloud is None or (stamp is not None and stamp_of(imported) != stamp):
        login.detail = UNCLEAR if imported is not None and imported.groups is None else login.detail
        return Reason.UNKNOWN_USER
    state = principals.current(imported.cloud)
    login.detail = cloud.note_of(state, domain, login.arrival.at) or login.detail
    return cloud.reason_of(state, domain, login.arrival.at)


def stamp_of(imported: Membership | None) -> str:
    """Return the stamp of a user's account, or an empty text without an account."""
    return "" if imported is None or imported.cloud is None else cloud.stamp_of(imported.cloud)
