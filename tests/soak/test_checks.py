"""Each check of the campaign finds a history that breaks its promise, and passes one that keeps it."""

from dataclasses import replace

from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.soak import checks
from tests.soak.checks import Size
from tests.soak.history import Bulk, Failure, History, Login
from tests.torture.probe import Answer

STATION = "02-50-00-00-00-01"
ACCEPTED = Login("push", "ann", STATION, 10.0, 11.0, ACCESS_ACCEPT, answers=1, accepts=1, prompts=1)
REFUSED = replace(ACCEPTED, code=ACCESS_REJECT, accepts=0)
BULK = Bulk("right", "accept", sent=1, answers={STATION: "accept"})
SIZE = Size(7, memory_mib=80, descriptors=40, threads=9, files=12)


def test_an_answer_that_is_missing_from_the_store() -> None:
    """An answered login must have a record with its decision."""
    assert checks.stored([ACCEPTED], [(STATION, "accept", 1.0)], may_repeat=False) == []
    assert checks.stored([ACCEPTED], [], may_repeat=False)
    assert checks.stored([ACCEPTED], [(STATION, "reject", 1.0)], may_repeat=False)
    assert checks.stored([replace(ACCEPTED, code=0)], [], may_repeat=False) == []


def test_each_answer_of_a_station_has_its_own_record() -> None:
    """A station that logs in twice has two records."""
    assert (
        checks.stored([ACCEPTED, REFUSED], [(STATION, "accept", 1.0), (STATION, "reject", 1.0)], may_repeat=False) == []
    )
    assert checks.stored([ACCEPTED, ACCEPTED], [(STATION, "accept", 1.0)], may_repeat=False)


def test_a_login_that_is_recorded_twice() -> None:
    """Only PostgreSQL may record a login again, after a commit whose result was lost. A login that is repeated after
    the window is another one."""
    rows = [(STATION, "accept", 1.0), (STATION, "accept", 1.0)]
    assert checks.stored([ACCEPTED], rows, may_repeat=False)
    assert checks.stored([ACCEPTED], [(STATION, "accept", 1.0), (STATION, "accept", 17.0)], may_repeat=False) == []
    assert checks.stored([ACCEPTED], rows, may_repeat=True) == []
    assert checks.bulk_stored(BULK, rows, may_repeat=False)


def test_a_bulk_answer_that_is_missing_from_the_store() -> None:
    """Each answer to the load generator is in the store too."""
    assert checks.bulk_stored(BULK, [(STATION, "accept", 1.0)], may_repeat=False) == []
    assert checks.bulk_stored(BULK, [], may_repeat=False)
    assert checks.bulk_stored(BULK, [(STATION, "reject", 1.0)], may_repeat=False)


def test_a_wrong_password_that_is_accepted() -> None:
    """All answers to a run of wrong passwords are Rejects, and all are authentic."""
    assert checks.right_answers(BULK) == []
    assert checks.right_answers(replace(BULK, right="reject"))
    assert checks.right_answers(replace(BULK, forged=1))


def test_a_request_without_an_answer() -> None:
    """Every request is answered in the end."""
    assert checks.answered(BULK) == []
    assert checks.answered(replace(BULK, lost=1))


def test_another_answer_to_a_retransmission() -> None:
    """The same octets get the same octets."""
    assert checks.one_answer([ACCEPTED]) == []
    assert checks.one_answer([replace(ACCEPTED, answers=2)])


def test_two_accepts() -> None:
    """A login with a push has one Accept, at the clients and in the store. On PostgreSQL each has its prompt."""
    once, twice = [(STATION, "accept", 1.0)], [(STATION, "accept", 1.0), (STATION, "accept", 6.0)]
    for is_shared in (False, True):
        assert checks.one_accept([ACCEPTED], once, is_shared=is_shared) == []
        assert checks.one_accept([ACCEPTED], twice, is_shared=is_shared)
        assert checks.one_accept([replace(ACCEPTED, accepts=2)], once, is_shared=is_shared)
    assert checks.one_accept([replace(ACCEPTED, prompts=2)], twice, is_shared=True) == []


def test_two_prompts() -> None:
    """On SQLite a second prompt is permitted if the process was disturbed meanwhile, on PostgreSQL after an answer."""
    once, twice = [(STATION, "accept", 1.0)], [(STATION, "accept", 1.0), (STATION, "accept", 6.0)]
    again = replace(ACCEPTED, prompts=2)
    assert checks.one_prompt(History(logins=[ACCEPTED]), once, is_shared=False) == []
    assert checks.one_prompt(History(logins=[again]), once, is_shared=False)
    assert checks.one_prompt(History(logins=[replace(again, ended=40.0)]), once, is_shared=False) == []
    killed = History(logins=[again], disturbed=[(10.5, 10.6)])
    assert checks.one_prompt(killed, once, is_shared=False) == []
    assert checks.one_prompt(killed, once, is_shared=True)
    assert checks.one_prompt(killed, twice, is_shared=True) == []


def test_an_accept_that_the_policy_forbade() -> None:
    """A forbidden login must not be accepted, and a permitted one must not be rejected."""
    assert checks.permitted([replace(ACCEPTED, forbidden="the password is wrong")])
    assert checks.permitted([replace(REFUSED, forbidden="the password is wrong"), ACCEPTED]) == []
    assert checks.admitted([replace(REFUSED, expected=True)])
    assert checks.admitted([replace(ACCEPTED, expected=True), REFUSED]) == []


def test_a_request_of_the_api_that_fails() -> None:
    """A request may fail during and shortly after a fault that disturbs all, but never with an internal error."""
    refused = Failure("POST /ad/GetAuthLog: 503 busy", 20.0, 20.1)
    history = History(failures=[refused], disturbed=[(15.0, 16.0)])
    assert checks.served(history, grace_s=5.0) == []
    assert checks.served(history, grace_s=1.0)
    assert checks.served(replace(history, failures=[replace(refused, what="GET /: 500 error")]), grace_s=5.0)


def test_a_delay_of_another_tenant() -> None:
    """A delay of more than 250 ms is a finding, unless the service waited for a processor or the machine is slow."""
    late = Answer("login", 0.0, 0.4, 0.3)
    assert checks.undelayed([replace(late, delay_s=0.2)]) == []
    assert checks.undelayed([late])
    assert checks.undelayed([replace(late, waited_s=0.2)]) == []
    assert checks.undelayed([replace(late, slowness=2.0)]) == []


def test_a_service_that_grows() -> None:
    """Growth within the life of one process is a finding. Another process may take more than the one before."""
    assert checks.bounded([SIZE, SIZE]) == []
    for grown in (
        replace(SIZE, memory_mib=200),
        replace(SIZE, descriptors=100),
        replace(SIZE, threads=50),
        replace(SIZE, files=50),
    ):
        assert checks.bounded([SIZE, grown])
        assert checks.bounded([SIZE, replace(grown, process=8)]) == []
