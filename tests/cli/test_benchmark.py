"""The parts of `sallyport bench`: the station, the sums of the load generator, and the formula of the capacity."""

import os
import socket
import subprocess
import threading
from array import array
from pathlib import Path

import pytest

from sallyport.cli.benchmark.capacity import HOUR_S, USABLE, Supply, login_ms, records
from sallyport.cli.benchmark.measure import FEW, summed
from sallyport.cli.benchmark.processes import _quotas, memory_mib, parent_process, process_tree
from sallyport.cli.benchmark.supplicant import PeapLogins
from sallyport.cli.benchmark.traffic import HOST, PapLogins, Traffic, drive
from sallyport.radius.eap.methods import Terms
from sallyport.radius.packet import ACCESS_ACCEPT, SharedSecret, decode, encode_reply, open_reply
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
    phase = summed(found, used_s=[1.0], busy_s=4.9)
    assert (phase.rate, phase.cpu_ms, phase.database_ms, phase.repeated) == (100, 5, 0, 3)
    assert (phase.p50_ms, phase.p99_ms) == (51, 100)
    assert phase.others == pytest.approx(0.5)


def test_a_database_of_this_machine_is_not_another_program() -> None:
    """The processor time of a database server is shown beside that of the service."""
    phase = summed([Traffic(100, 2.0, 1.0, 0, array("d", [0.001] * 100))], used_s=[1.0, 0.5], busy_s=2.5)
    assert (phase.cpu_ms, phase.database_ms, phase.others) == (10, 5, 0)


@pytest.mark.parametrize("count", [FEW - 1, FEW])
def test_a_handful_of_logins_has_no_percentile(count: int) -> None:
    """The slowest of a few logins is not p99."""
    phase = summed([Traffic(count, 1.0, 0.1, 0, array("d", [0.001] * count))], [0], 0)
    assert (phase.p99_ms is None) is (count < FEW)


@pytest.mark.parametrize(("cpu_s", "is_at_least"), [(0.5, False), (0.9, True)])
def test_a_busy_generator_makes_a_rate_a_lower_limit(cpu_s: float, is_at_least: bool) -> None:
    """The rate is a lower limit if a process of the generator used its core nearly all the time."""
    assert summed([Traffic(1, 1.0, cpu_s, 0, array("d", [1]))], [0], 0).is_at_least is is_at_least


def test_a_load_without_an_answer_has_no_rate() -> None:
    """A load that ended before its first answer is shown with zeros."""
    assert summed([Traffic(0, 1.0, 0.1)], [0], 0).rate == 0


def test_the_formula() -> None:
    """A login takes its own processor time and that of its accounting records. The stations of a core are the
    inverse of the cores of stations."""
    assert (records(), records(interim_s=600), records(HOUR_S / 2)) == (2, 7, 1.5)
    assert login_ms(CPU_MS) == 2.5
    assert login_ms(CPU_MS, login="peap_resumed") == 1.5
    one = Supply(2.5)
    assert one.stations == USABLE * HOUR_S * 1000 / 2.5 == 720_000
    assert one.cores_for(one.stations) == pytest.approx(1)
    assert one.herd_s(100_000) == pytest.approx(350)


@pytest.mark.parametrize(
    ("workers", "cores", "database_ms", "share"),
    [(4, 4, 0, 4), (64, 2, 0, 2), (1, 8, 0, 1), (4, 0.5, 0, 0.5), (2, 2, 2.5, 1), (1, 2, 2.5, 1), (1, 1, 2.5, 0.5)],
    ids=[
        "workers",
        "more-workers-than-cores",
        "one-worker",
        "quota",
        "database",
        "database-on-other-core",
        "shared-core",
    ],
)
def test_stations_are_limited_by_workers_and_by_cores(
    workers: int, cores: float, database_ms: float, share: float
) -> None:
    """Each worker uses at most one core, and all workers share the cores of the machine with its database."""
    supply = Supply(2.5, database_ms, workers, cores)
    assert supply.stations == share * Supply(2.5).stations
    assert supply.herd_s() == pytest.approx(Supply(2.5).herd_s() / share)


def test_a_process_that_has_ended_is_not_counted() -> None:
    """The sums leave out a process that ends meanwhile."""
    ended = subprocess.Popen(["true"])
    ended.wait()
    assert process_tree(ended.pid) == [ended.pid]
    assert (memory_mib(ended.pid), parent_process(ended.pid, "true")) == (0, None)


def test_the_parent_of_a_process() -> None:
    """The parent is known if the process has the expected name."""
    with subprocess.Popen(["sleep", "60"]) as sleeping:
        assert parent_process(sleeping.pid, "sleep") == os.getpid()
        assert parent_process(sleeping.pid, "postgres") is None
        sleeping.kill()


def test_the_quota_of_a_container_is_read(tmp_path: Path) -> None:
    """The control group and the groups around it limit the processor time. `max` is no limit."""
    for group, quota in (("outer", "150000 100000"), ("outer/inner", "max 100000")):
        (tmp_path / group).mkdir()
        (tmp_path / group / "cpu.max").write_text(f"{quota}\n")
    (tmp_path / "own").write_text("1:cpu:/\n0::/outer/inner\n")
    assert list(_quotas(tmp_path, tmp_path / "own")) == [1.5]
    assert list(_quotas(tmp_path, tmp_path / "missing")) == []


def test_a_lost_datagram_is_sent_again_while_others_are_answered() -> None:
    """A request without an answer is retransmitted after its own timeout. The other requests go on meanwhile."""
    secret, lost = SharedSecret(SECRET), list[bytes]()
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((HOST, 0))

        def answer() -> None:
            while True:
                request, sender = server.recvfrom(4096)
                if not lost:
                    lost.append(request)
                    continue
                server.sendto(encode_reply(ACCESS_ACCEPT, decode(request, secret), secret), sender)
                if request in lost:
                    return

        thread = threading.Thread(target=answer, daemon=True)
        thread.start()
        clients = [PapLogins(number, SECRET, [(b"ann", b"secret")]) for number in range(2)]
        found = drive(server.getsockname()[1], SECRET, clients, 0.1)
        thread.join()
    assert found.repeated == 1
