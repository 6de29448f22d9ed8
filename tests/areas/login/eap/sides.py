"""The supplicants of the EAP tests, and a function that changes the user's password."""

from sallyport.areas.login.login import Reason
from sallyport.areas.users.accounts.account import UserChange
from sallyport.radius.eap import packet as eap
from tests.areas import Areas
from tests.radius.eap.supplicant import (
    GtcSide,
    Inside,
    MsChapSide,
    TlsSide,
    in_peap,
    in_ttls_chap,
    in_ttls_mschap,
    in_ttls_pap,
)

ANN = b"ann"
NO_PROVIDER = Reason.NO_PROVIDER.value  # the first factor is right; the domain monitors and has no MFA provider


def peap(password: bytes, name: bytes = ANN) -> TlsSide:
    """Return a supplicant that uses PEAP-MSCHAPv2."""
    return TlsSide(eap.PEAP, in_peap(name, MsChapSide(name, password)))


def ttls(inside: Inside) -> TlsSide:
    """Return a supplicant that uses EAP-TTLS."""
    return TlsSide(eap.TTLS, inside, begins=True)


SIDES = {
    "eap-peap-mschapv2": peap,
    "eap-peap-gtc": lambda password: TlsSide(eap.PEAP, in_peap(ANN, GtcSide(password))),
    "eap-ttls-pap": lambda password: ttls(in_ttls_pap(ANN, password)),
    "eap-ttls-chap": lambda password: ttls(in_ttls_chap(ANN, password)),
    "eap-ttls-mschapv2": lambda password: ttls(in_ttls_mschap(ANN, password)),
}


async def new_password(areas: Areas) -> None:
    """Give ann another password."""
    user = await areas.users.load(areas.domain, "ann")
    assert user is not None
    await areas.accounts.update(areas.domain, user.id, UserChange(password=b"another"))
