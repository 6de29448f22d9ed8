"""By which method a station logged in last."""

from sallyport.login.eap.preferred import PreferredMethods
from sallyport.radius.eap.methods import ORDER
from sallyport.radius.eap.packet import MD5, PEAP, TLS, TTLS
from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.packets import attributes
from tests.radius.eap.supplicant import TlsSide, in_ttls_pap

from .conftest import Nas
from .sides import ANN, peap, ttls

STATION, OTHER, THIRD = (attributes(CALLING_STATION_ID=b"02-00-00-00-00-%02x" % number) for number in range(3))


def ttls_pap() -> TlsSide:
    """TTLS-PAP with the right password."""
    return ttls(in_ttls_pap(ANN, b"hello"))


async def test_the_method_of_last_time_is_offered_first(nas: Nas) -> None:
    """A round less for that station, and for no other; a wrong password changes nothing."""
    first = await nas.log_in(ttls_pap(), body=STATION)
    again = await nas.log_in(ttls_pap(), body=STATION)
    other = await nas.log_in(ttls_pap(), body=OTHER)
    assert {each.code for each in (first, again, other)} == {ACCESS_ACCEPT}
    assert (again.rounds, other.rounds) == (first.rounds - 1, first.rounds)

    usual = await nas.log_in(peap(b"hello"), body=THIRD)
    assert (await nas.log_in(peap(b"wrong"), body=STATION)).code == ACCESS_REJECT
    assert (await nas.log_in(ttls_pap(), body=STATION)).rounds == again.rounds
    rounds = [(await nas.log_in(peap(b"hello"), body=STATION)).rounds for _ in range(2)]
    assert rounds == [usual.rounds + 1, usual.rounds]  # the first had to ask for it


async def test_who_tells_no_address_has_no_habit(nas: Nas) -> None:
    """Each login has the round in which the client asks for its method."""
    rounds = [(await nas.log_in(ttls_pap(), body=b"")).rounds for _ in range(2)]
    assert rounds[0] == rounds[1]


def test_weak_methods_are_never_offered_first() -> None:
    """An impostor's login by one does not make the station's own password go that way."""
    preferred = PreferredMethods()
    preferred.note("1/local", b"station", TTLS, 1)
    assert preferred.order("1/local", b"station") == (TTLS, PEAP, *ORDER[2:])
    preferred.note("1/local", b"station", MD5, 1)
    assert preferred.order("1/local", b"station") == ORDER
    assert len(preferred) == 0


def test_habits_are_of_a_scope_and_bounded() -> None:
    """Of the stations that are kept, who logged in longest ago makes room."""
    preferred = PreferredMethods(most=2)
    for station in (b"a", b"b", b"a", b"c"):
        preferred.note("1/local", station, TLS, 1)
    orders = [preferred.order("1/local", station)[0] for station in (b"a", b"b", b"c")]
    assert orders == [TLS, PEAP, TLS]
    assert preferred.order("2/local", b"a") == ORDER


def test_each_tenant_has_a_share_of_the_habits() -> None:
    """A station's habit stays, however many stations of another tenant log in."""
    preferred = PreferredMethods(most=10)
    preferred.note("1/local", b"ours", TLS, 1)
    for number in range(100):
        preferred.note("2/local", b"%d" % number, TLS, 2)
    assert preferred.order("1/local", b"ours")[0] == TLS
