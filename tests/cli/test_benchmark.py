"""The parts of `sallyport bench`: the station, the sums of the load generator, and the formula of the capacity."""

from array import array
from pathlib import Path

import pytest

from sallyport.cli.benchmark.capacity import HOUR_S, USABLE, cores, herd_s, login_ms, people
from sallyport.cli.benchmark.measure import summed
from sallyport.cli.benchmark.supplicant import PeapLogins
from sallyport.cli.benchmark.traffic import Traffic
from sallyport.radius.eap.methods import Terms
from sallyport.radius.packet import SharedSecret, open_reply
from tests.radius.eap.conftest import PASSWORD, USER, Site
from tests.radius.eap.nas import SECRET, EapServer
from tests.radius.eap.users import EVERYTHING

CPU_MS = {"pap": 0.05, "peap": 2.0, "peap_resumed": 1.0, "accounting": 0.25, "lists": 0.5}


def log_in(station: PeapLogins, server: EapServer) -> int:
    """Let a station log in, and return the number of its requests."""
    secret, identifier = SharedSecret(SECRET), 0
    while True:
        request = station.request(identifier & 0xFF)
        identifier += 1
        if station.receive(open_reply(server.answer(request), request, secret)):
            return identifier


@pytest.mark.parametrize(
    ("resumes", "requests", "second"), [(False, 8, "eap-peap-mschapv2"), (True, 4, "eap-peap-resumed")]
)
def test_a_station_logs_in_again(tmp_path: Path, resumes: bool, requests: int, second: str) -> None:
    """The second login is as long as the first one, or it resumes the session of the first one."""
    site = Site(tmp_path)
    server = EapServer(Terms(site.server, EVERYTHING), site.users)
    station = PeapLogins(1, SECRET, USER, PASSWORD, resumes=resumes)
    assert (log_in(station, server), log_in(station, server)) == (8, requests)
    assert [each.success for each in server.done] == [True, True]
    assert [each.method for each in server.done] == ["eap-peap-mschapv2", second]


def test_the_results_of_several_processes_are_added() -> None:
    """Rates are added. The times of all logins together give the percentiles. The processor time of the service is
    divided by all logins, and what is left of the machine's is that of other programs."""
    latencies = array("d", [each / 1000 for each in range(1, 101)])
    found = [Traffic(100, 2.0, 1.0, 1, latencies), Traffic(100, 2.0, 1.9, 2, latencies)]
    phase = summed(found, used_s=1.0, busy_s=4.9)
    assert (phase.rate, phase.cpu_ms, phase.repeated) == (100, 5, 3)
    assert (phase.p50_ms, phase.p99_ms) == (51, 100)
    assert phase.others == pytest.approx(0.5)


@pytest.mark.parametrize(("cpu_s", "is_at_least"), [(0.5, False), (0.9, True)])
def test_a_busy_generator_makes_a_rate_a_lower_limit(cpu_s: float, is_at_least: bool) -> None:
    """The rate is a lower limit if a process of the generator used its core nearly all the time."""
    assert summed([Traffic(1, 1.0, cpu_s, 0, array("d", [1]))], 0, 0).is_at_least is is_at_least


def test_a_load_without_an_answer_has_no_rate() -> None:
    """A load that ended before its first answer is shown with zeros."""
    assert summed([Traffic(0, 1.0, 0.1)], 0, 0).rate == 0


def test_the_formula() -> None:
    """A login takes its own processor time and that of two accounting records. The people of a core are the inverse of
    the cores of people."""
    assert login_ms(CPU_MS) == 2.5
    assert login_ms(CPU_MS, login="peap_resumed") == 1.5
    assert people(CPU_MS) == USABLE * HOUR_S * 1000 / 2.5 == 720_000
    assert people(CPU_MS, workers=4) == 4 * people(CPU_MS)
    assert cores(CPU_MS, people(CPU_MS)) == pytest.approx(1)
    assert cores(CPU_MS, 1000, interval_s=HOUR_S / 2) == 2 * cores(CPU_MS, 1000)
    assert herd_s(CPU_MS, 100_000) == pytest.approx(350)
    assert herd_s(CPU_MS, 100_000, workers=2) == pytest.approx(175)
