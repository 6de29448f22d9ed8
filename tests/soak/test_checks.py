"""Each check of the campaign finds a history that breaks its promise, and passes one that keeps it."""

from dataclasses import replace

import pytest

from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.soak import checks
from tests.soak.checks import Row, Size
from tests.soak.history import Answered, Bulk, Failure, History, Login, Packet, Readiness, Span
from tests.torture.probe import Answer

STATION = "02-50-00-00-00-01"
ACCEPT, REJECT = bytes([ACCESS_ACCEPT]), bytes([ACCESS_REJECT])
SENT = Packet(0, b"first", 0, 10.0, 10.0, 1, [ACCEPT])
ACCEPTED = Login("push", "ann", STATION, "default", 10.0, 11.0, ACCESS_ACCEPT, packets=[SENT], prompts=[10.2])
REFUSED = replace(ACCEPTED, code=ACCESS_REJECT)
ROW = Row(STATION, "accept", "ann")
BULK = Bulk("right", "accept", sent=1, answers={STATION: Answered("accept", "ann", 10.0, 0.7)})
SIZE = Size(7, memory_mib=80, descriptors=40, threads=9, files=12)
KILL = Span("kill", "process", 10.5, 10.6, frozenset({0}))


def history(*logins: Login, spans: tuple[Span, ...] = ()) -> History:
    """Return a history with logins and faults."""
    return History(logins=list(logins), spans=list(spans))


# --- 1: every answer is stored -------------------------------------------------------------------------------------


def test_an_answer_that_is_missing_from_the_store() -> None:
    """An answered login must have a record with its decision, user, domain and node."""
    assert checks.stored(history(ACCEPTED), [ROW]) == []
    assert checks.stored(history(replace(ACCEPTED, code=0)), []) == []
    assert checks.stored(history(ACCEPTED), [])
    for other in (
        replace(ROW, decision="reject"),
        replace(ROW, user="bob"),
        replace(ROW, domain="gate"),
        replace(ROW, node=1),
    ):
        assert checks.stored(history(ACCEPTED), [other])


def test_each_answer_of_a_station_has_its_own_record() -> None:
    """A station that logs in twice has two records."""
    assert checks.stored(history(ACCEPTED, REFUSED), [ROW, replace(ROW, decision="reject")]) == []
    assert checks.stored(history(ACCEPTED, ACCEPTED), [ROW])


def test_a_login_that_is_recorded_twice() -> None:
    """A request has one record of its node, also if the node was killed, unless the device repeats it for longer than
    the window. Only a lost commit of PostgreSQL may record it again."""
    assert checks.stored(history(ACCEPTED), [ROW, ROW])
    assert checks.stored(history(ACCEPTED, spans=(KILL,)), [ROW, ROW])
    late = replace(ACCEPTED, packets=[replace(SENT, last=25.0)])
    assert checks.stored(history(late), [ROW, ROW]) == []
    two = replace(ACCEPTED, packets=[SENT, replace(SENT, node=1)])
    assert checks.stored(history(two), [ROW, replace(ROW, node=1)]) == []
    assert checks.stored(history(two), [ROW, ROW])
    assert checks.stored(history(ACCEPTED, spans=(replace(KILL, place="database"),)), [ROW, ROW]) == []


def test_bulk_answers_in_the_store() -> None:
    """Each answer to the load generator is in the store once, with its user and node."""
    assert checks.bulk_stored(history(), BULK, [ROW]) == []
    for rows in ([], [replace(ROW, decision="reject")], [replace(ROW, user="bob")], [ROW, ROW]):
        assert checks.bulk_stored(history(spans=(KILL,)), BULK, rows)
    late = replace(BULK, answers={STATION: Answered("accept", "ann", 10.0, 15.0)})
    assert checks.bulk_stored(history(), late, [ROW, ROW]) == []
    assert checks.bulk_stored(history(spans=(replace(KILL, place="link"),)), BULK, [ROW, ROW]) == []


def test_a_backup_without_a_login() -> None:
    """A restored backup has the logins that were answered before it."""
    assert checks.restored({STATION: "accept"}, [ROW]) == []
    assert checks.restored({STATION: "accept"}, [])
    assert checks.restored({STATION: "reject"}, [ROW])


# --- answers -------------------------------------------------------------------------------------------------------


def test_a_wrong_password_that_is_accepted() -> None:
    """All answers to a run of wrong passwords are Rejects, and all are authentic."""
    assert checks.right_answers(BULK) == []
    assert checks.right_answers(replace(BULK, right="reject"))
    assert checks.right_answers(replace(BULK, forged=1))


def test_an_answer_that_fits_no_request() -> None:
    """Each answer that a NAS gets is authentic."""
    assert checks.authentic(History()) == []
    assert checks.authentic(History(forged=1))


def test_a_request_without_an_answer() -> None:
    """Every request is answered in the end, also a retransmission, unless a fault disturbs the last ten seconds."""
    assert checks.answered(BULK) == []
    assert checks.answered(replace(BULK, lost=1))
    silent = replace(ACCEPTED, code=0, ended=50.0)
    assert checks.unanswered(history(ACCEPTED)) == []
    assert checks.unanswered(history(silent))
    assert checks.unanswered(history(silent, spans=(KILL,)))
    assert checks.unanswered(history(silent, spans=(replace(KILL, began=39, ended=41),))) == []
    assert checks.unanswered(history(silent, spans=(replace(KILL, began=39, ended=41, nodes=frozenset({1})),)))
    assert checks.unanswered(history(replace(ACCEPTED, silent=10.9)))


def test_two_answers_to_the_same_octets() -> None:
    """A retransmission gets the same answer, within the window."""
    twice = replace(SENT, replies=[ACCEPT, ACCEPT + b"other"])
    assert checks.one_answer([ACCEPTED]) == []
    assert checks.one_answer([replace(ACCEPTED, packets=[twice])])
    assert checks.one_answer([replace(ACCEPTED, packets=[replace(twice, last=30.0)])]) == []


# --- 2: one prompt, one Accept -------------------------------------------------------------------------------------


def test_two_accepts() -> None:
    """A login with a push has one Accept, at all ports of the NAS and in the store."""
    assert checks.one_accept(history(ACCEPTED), [ROW]) == []
    assert checks.one_accept(history(ACCEPTED), [ROW, ROW])
    late = replace(SENT, node=1, replies=[ACCEPT + b"of another node"])
    assert checks.one_accept(history(replace(ACCEPTED, packets=[SENT, late])), [ROW])
    assert checks.one_accept(history(replace(ACCEPTED, packets=[SENT, late], prompts=[10.2, 15.0])), [ROW, ROW]) == []


def prompted_twice(*, spans: tuple[Span, ...] = (), is_shared: bool = True, **fields: object) -> list[str]:
    """Return the findings about a login with two prompts."""
    login = replace(ACCEPTED, **{"approval": "approved", "approval_s": 1.0, "prompts": [10.0, 12.0], **fields})
    return checks.one_prompt(history(login, spans=spans), timeout_s=15, is_shared=is_shared)


def test_two_prompts() -> None:
    """Another prompt needs the end of the prompt before, and after an Accept some seconds."""
    assert checks.one_prompt(history(ACCEPTED), timeout_s=15, is_shared=True) == []
    assert prompted_twice()
    assert prompted_twice(prompts=[10.0, 14.5]) == []
    assert prompted_twice(approval="denied", prompts=[10.0, 10.5])
    assert prompted_twice(approval="denied") == []
    assert prompted_twice(approval="waiting")
    assert prompted_twice(approval="waiting", prompts=[10.0, 25.0]) == []


def test_two_prompts_during_a_fault() -> None:
    """Only SQLite forgets a prompt with its process. A provider that is away ends a prompt."""
    assert prompted_twice(spans=(KILL,))
    assert prompted_twice(spans=(KILL,), is_shared=False) == []
    assert prompted_twice(spans=(replace(KILL, fault="pause"),), is_shared=False)
    assert prompted_twice(spans=(replace(KILL, fault="keys"),)) == []
    assert prompted_twice(spans=(replace(KILL, fault="master-key"),))
    assert prompted_twice(spans=(replace(KILL, place="provider"),)) == []


# --- 3 and 5: decisions --------------------------------------------------------------------------------------------


def test_a_change_at_another_node_may_be_late_on_a_late_machine() -> None:
    """An Accept after a change of the asked node itself is always a finding."""
    late, own = [(ACCEPTED.began - 1, 0.4, 0.4)], replace(ACCEPTED, forbidden="a rule blocks the user")
    assert checks.permitted(History(logins=[own], controls=late))
    elsewhere = replace(own, is_elsewhere=True)
    assert checks.permitted(History(logins=[elsewhere]))
    assert checks.permitted(History(logins=[elsewhere], controls=late)) == []


def test_an_accept_that_the_policy_forbade() -> None:
    """A forbidden login must not be accepted, and a permitted one must not be rejected, except during a fault of what
    it depends on."""
    assert checks.permitted(history(replace(ACCEPTED, forbidden="the password is wrong")))
    assert checks.permitted(history(replace(REFUSED, forbidden="the password is wrong"), ACCEPTED)) == []
    right = replace(REFUSED, expected=True)
    assert checks.admitted(history(right))
    assert checks.admitted(history(right, spans=(KILL,)))
    assert checks.admitted(history(replace(right, fragile=("process",)), spans=(KILL,))) == []
    assert checks.admitted(history(replace(ACCEPTED, expected=True), REFUSED)) == []


def test_a_provider_that_is_not_asked() -> None:
    """A push may be rejected for a minute after a fault of its provider, but only because the provider is not asked. A
    node that waits for the owner of the prompt does not know that the circuit is open."""
    right = replace(REFUSED, expected=True, fragile=("provider",))
    away = (Span("dead-provider", "provider", -25.0, -20.0, disturbs_all=False),)
    unasked = replace(ROW, decision="reject", reason="provider unreachable, circuit open")
    for reason in (unasked.reason, "provider unreachable"):
        assert checks.admitted(history(right, spans=away), [replace(unasked, reason=reason)]) == []
    assert checks.admitted(history(right, spans=away), [replace(unasked, reason="second factor denied")])
    assert checks.admitted(history(right), [unasked])


def test_monitor_mode() -> None:
    """Monitor mode records the decision of enforcing mode, and sends no prompt."""
    login = replace(ACCEPTED, kind="monitor", expected=True, prompts=[])
    row = replace(ROW, would="reject")
    assert checks.monitored(history(login), [row], {"ann": ["reject"]}) == []
    assert checks.monitored(history(login), [replace(row, would="accept")], {"ann": ["reject"]})
    assert checks.monitored(history(replace(login, prompts=[10.2])), [row], {"ann": ["reject"]})


# --- the service as a whole ----------------------------------------------------------------------------------------


def test_a_request_of_the_api_that_fails() -> None:
    """A request may fail during and shortly after a fault of its node that disturbs all, but never with an internal
    error."""
    refused = Failure("POST /ad/GetAuthLog: 503 busy", 20.0, 20.1)
    disturbed = History(failures=[refused], spans=[replace(KILL, ended=16.0)])
    assert checks.served(disturbed) == []
    assert checks.served(replace(disturbed, failures=[replace(refused, began=27.0, ended=27.1)]))
    assert checks.served(replace(disturbed, failures=[replace(refused, node=1)]))
    assert checks.served(replace(disturbed, spans=[replace(KILL, disturbs_all=False)]))
    assert checks.served(replace(disturbed, failures=[replace(refused, what="GET /: 500 error")]))


def test_a_readiness_that_is_wrong() -> None:
    """/readyz answers 200 without a fault, and 503 while the store accepts no write."""
    blocked = Span("failing-disk", "disk", 20.0, 25.0, frozenset({0}), blocks=True)
    there, away = Readiness(0, 24.0, 24.1, 200), Readiness(0, 24.0, 24.1, 503)
    assert checks.ready(History(readiness=[there])) == []
    assert checks.ready(History(readiness=[away]))
    assert checks.ready(History(readiness=[there, away], spans=[blocked])) == []
    assert checks.ready(History(readiness=[Readiness(0, 19.0, 21.0, 0)], spans=[blocked])) == []
    assert checks.ready(History(readiness=[Readiness(0, 18.0, 19.0, 0)], spans=[blocked]))
    assert checks.ready(History(readiness=[there], spans=[blocked]))
    assert checks.ready(History(readiness=[replace(there, at=21.0)], spans=[blocked])) == []
    assert checks.ready(History(readiness=[away], controls=[(23.0, 0.1, 0.0)]))
    assert checks.ready(History(readiness=[away], controls=[(23.0, 0.7, 0.0)])) == []


def test_an_agent_without_its_state() -> None:
    """Each agent has the last state at the end of a round."""
    assert checks.informed(History()) == []
    assert checks.informed(History(outdated_agents=1))


def test_a_delay_of_another_tenant() -> None:
    """A delay of more than 250 ms is a finding, unless the service waited for a processor, the machine is slow, or the
    control was late at the same time."""
    late = Answer("login", 0.0, 0.4, 0.3, began=20.0)
    assert checks.undelayed(History(), [replace(late, delay_s=0.2)]) == []
    assert checks.undelayed(History(), [late])
    assert checks.undelayed(History(), [replace(late, waited_s=0.2)]) == []
    assert checks.undelayed(History(), [replace(late, slowness=2.0)]) == []
    assert checks.undelayed(History(controls=[(20.1, 0.2, 0.2)]), [late]) == []
    assert checks.undelayed(History(controls=[(20.1, 0.1, 0.1), (20.5, 0.3, 0.3)]), [late])


@pytest.mark.parametrize(("name", "value"), [("memory_mib", 200), ("descriptors", 100), ("threads", 50), ("files", 50)])
def test_a_service_that_grows(name: str, value: float) -> None:
    """Growth within the life of one process is a finding. Another process may take more than the one before."""
    grown = replace(SIZE, **{name: value})
    assert checks.bounded([SIZE, SIZE]) == []
    assert checks.bounded([SIZE, grown])
    assert checks.bounded([SIZE, replace(grown, process=8)]) == []


def test_memory_for_stations() -> None:
    """The memory may grow by what new stations take, but not beyond the limit of stations."""
    grown = replace(SIZE, memory_mib=SIZE.memory_mib + 90)
    assert checks.bounded([SIZE, grown])
    assert checks.bounded([SIZE, replace(grown, stations=80_000)]) == []
    assert checks.bounded([SIZE, replace(grown, memory_mib=300, stations=1_000_000)])


# --- the campaign itself -------------------------------------------------------------------------------------------


def test_a_campaign_without_an_effect() -> None:
    """A fault that came several times must have had an effect, and each kind of client got both decisions."""
    outcomes = {("push", "accept"): 3, ("push", "reject"): 1}
    assert checks.effective({"kill": 9}, {"kill": 1}, outcomes, ["push"]) == []
    assert checks.effective({"kill": 1}, {}, outcomes, ["push"]) == []
    assert checks.effective({"kill": 9}, {}, outcomes, ["push"])
    assert checks.effective({}, {}, outcomes, ["push", "eap"])
    assert checks.effective({}, {}, {("push", "accept"): 3}, ["push"])
