"""Tests of the preferred method: the service first offers the EAP method that a station used last."""

from sallyport.areas.login.eap.login import PreferredMethods
from sallyport.radius.eap.methods import ORDER
from sallyport.radius.eap.packet import MD5, PEAP, TLS, TTLS
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.packets import attributes
from tests.radius.eap.supplicant import TlsSide, in_ttls_pap

from .conftest import Nas
from .sides import ANN, peap, ttls

STATION, OTHER, THIRD = (attributes(CALLING_STATION_ID=b"02-00-00-00-00-%02x" % number) for number in range(3))


def ttls_pap() -> TlsSide:
    """Return a supplicant that uses TTLS-PAP and the right password."""
    return ttls(in_ttls_pap(ANN, b"hello"))


async def test_the_method_of_last_time_is_offered_first(nas: Nas) -> None:
    """If the service first offers the method of the station's last login, the login needs one round less.

    Other stations get the default, and a wrong password changes nothing.
    """
    first = await nas.log_in(ttls_pap(), body=STATION)
    again = await nas.log_in(ttls_pap(), body=STATION)
    other = await nas.log_in(ttls_pap(), body=OTHER)
    assert {each.code for each in (first, again, other)} == {ACCESS_ACCEPT}
    assert (again.rounds, other.rounds) == (first.rounds - 1, first.rounds)

    usual = await nas.log_in(peap(b"hello"), body=THIRD)
    assert (await nas.log_in(peap(b"wrong"), body=STATION)).code == ACCESS_REJECT
    assert (await nas.log_in(ttls_pap(), body=STATION)).rounds == again.rounds
    rounds = [(await nas.log_in(peap(b"hello"), body=STATION)).rounds for _ in range(2)]
    assert rounds == [usual.rounds + 1, usual.rounds]  # in the first login the client had to ask for its method


async def test_a_station_without_an_address_has_no_preferred_method(nas: Nas) -> None:
    """Without Calling-Station-Id no method is remembered.

    In each login the client needs a round to ask for its method.
    """
    rounds = [(await nas.log_in(ttls_pap(), body=b"")).rounds for _ in range(2)]
    assert rounds[0] == rounds[1]


def test_weak_methods_are_never_offered_first() -> None:
    """A login by a weak method does not change the first offer, because an attacker may have made it."""
    preferred = PreferredMethods()
    preferred.note("1/local", b"station", TTLS, 1)
    assert preferred.order("1/local", b"station") == (TTLS, PEAP, *ORDER[2:])
    preferred.note("1/local", b"station", MD5, 1)
    assert preferred.order("1/local", b"station") == ORDER
    assert len(preferred) == 0


def test_preferred_methods_are_of_a_scope_and_bounded() -> None:
    """Methods are remembered for each scope. At the limit the method with the oldest login is forgotten."""
    preferred = PreferredMethods(most=2)
    for station in (b"a", b"b", b"a", b"c"):
        preferred.note("1/local", station, TLS, 1)
    orders = [preferred.order("1/local", station)[0] for station in (b"a", b"b", b"c")]
    assert orders == [TLS, PEAP, TLS]
    assert preferred.order("2/local", b"a") == ORDER


def test_each_tenant_has_a_share_of_the_preferred_methods() -> None:
    """The method of a station stays remembered, however many stations of another tenant log in."""
    preferred = PreferredMethods(most=10)
    preferred.note("1/local", b"ours", TLS, 1)
    for number in range(100):
        preferred.note("2/local", b"%d" % number, TLS, 2)
    assert preferred.order("1/local", b"ours")[0] == TLS
