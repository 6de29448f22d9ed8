"""The promises, as functions of a history and of the rows of the store. Each returns the findings as texts. They read
no clock and no process: test_checks.py feeds each one a history that breaks its promise."""

from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Final

from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.soak.history import Bulk, Failure, History, Login, Packet
from tests.torture.probe import Answer

WINDOW_S: Final = 10.0
"""A request that is repeated for longer may be decided and stored again. The setting duplicate_window_s is 15; the rest
is for datagrams that wait in a socket."""
RECOVERY_S: Final = 10.0
"""Within this time after a fault that disturbs all, requests may still fail."""
CIRCUIT_S: Final = 60.0
"""For this time after a fault, the service may not ask a provider or a directory that has failed."""
UNREACHABLE: Final = "provider unreachable"
"""The begin of the reason of a Reject because a provider is not asked: its circuit is open at the node that has
answered, or at the node for which the login has waited."""
HELD_S: Final = 2.5
"""For this time after an Accept, no further request of the same login prompts. The service holds it for three seconds
of the database's clock."""
MAX_S: Final = 0.25
"""The longest delay of another tenant, on a machine as fast as that of the limit."""
MAX_SHARED_S: Final = 1.0
"""The same with PostgreSQL, whose two servers need the same processors as two nodes and the load."""
READY_S: Final = 2.0
"""Within this time, /readyz answers 503 if the store accepts no write."""
LATE_S: Final = 0.3
"""If a commit takes so long on the machine itself, /readyz may answer 503 within the next seconds."""
KNOWN_S: Final = 2.0
"""The time after which all nodes know a change. The service promises one second."""
STORE: Final = ("database", "link")
"""The places whose faults can lose the result of a commit."""
SHOWN: Final = 5
OFTEN: Final = 8
"""A kind of fault that came so often in an installation must have had an effect."""
MORE_FILES, MORE_DESCRIPTORS, MORE_THREADS, MORE_MIB = 24, 40, 24, 64.0
MAX_STATIONS: Final = 131_072
"""The number of stations that a service keeps in memory (`sightings.MAX_STATIONS`)."""
STATION_KIB: Final = 1.0
"""The memory of a station, with its names."""


@dataclass(frozen=True, slots=True)
class Row:
    """A stored login or accounting record. key: the station, or the session and status. node: the number of the node;
    0 for accounting. would: what enforcing would have decided, in monitor mode. reason: of the decision."""

    key: str
    decision: str
    user: str
    domain: str = "default"
    node: int = 0
    would: str = field(default="", compare=False)
    reason: str = field(default="", compare=False)


# --- 1: every answer is stored -------------------------------------------------------------------------------------


def stored(history: History, rows: Iterable[Row]) -> list[str]:
    """Each answer that a client received is in the store, with its user, domain and node. A request is recorded once
    within the window of retransmissions.

    A request may have two records if the result of a commit was lost with the connection to PostgreSQL, or with its
    server. A supplicant may begin an EAP login again.
    """
    found, logins, findings = _by_key(rows), defaultdict[str, list[Login]](list), list[str]()
    for login in history.logins:
        logins[login.station].append(login)
    for station, each in logins.items():
        answers = Counter(Row(station, one.decision, one.user, one.domain, one.node) for one in each if one.decision)
        if missing := answers - Counter(found[station]):
            findings.append(f"{station}: answered {list(missing)}, stored {found[station]}")
        packets = [packet for one in each for packet in one.packets if packet.sent]
        if each[0].kind != "eap" and not history.has_fault(each[0].began, each[-1].ended, STORE, RECOVERY_S):
            findings += [
                f"{each[0]}: {number} records of node {node}, {_decisions(packets, node)} requests, sent "
                f"{[(packet.sent, round(packet.last - packet.first, 2), len(packet.replies)) for packet in packets]}"
                for node, number in Counter(row.node for row in found[station]).items()
                if number > _decisions(packets, node)
            ]
    return findings


def _decisions(packets: Iterable[Packet], node: int) -> int:
    """Return how often a node may decide these requests."""
    return sum(1 + int((each.last - each.first) // WINDOW_S) for each in packets if each.node == node)


def bulk_stored(history: History, bulk: Bulk, rows: Iterable[Row]) -> list[str]:
    """The same for the requests of a load generator, where each key is sent once."""
    found, missing, twice = _by_key(rows), list[str](), list[str]()
    for key, each in bulk.answers.items():
        if Row(key, each.decision, each.user, node=bulk.node) not in found[key]:
            missing.append(f"{bulk.kind} {key}: answered {each}, stored {found[key]}")
        is_repeated = len(found[key]) > 1 + int(each.latency_s // WINDOW_S)
        if is_repeated and not history.has_fault(each.began, each.began + each.latency_s, STORE, RECOVERY_S):
            twice.append(f"{bulk.kind} {key}: answered {each}, stored {found[key]}")
    return _cut(missing) + _cut(twice)


def _by_key(rows: Iterable[Row]) -> defaultdict[str, list[Row]]:
    found = defaultdict[str, list[Row]](list)
    for row in rows:
        found[row.key].append(row)
    return found


def restored(kept: Mapping[str, str], rows: Iterable[Row]) -> list[str]:
    """A backup has each login that was answered before it began. kept: their decisions by station."""
    found = defaultdict[str, set[str]](set)
    for row in rows:
        found[row.key].add(row.decision)
    return _cut(
        [
            f"{station}: answered {decision}, in the restored backup: {found[station] or 'nothing'}"
            for station, decision in kept.items()
            if decision not in found[station]
        ]
    )


# --- answers -------------------------------------------------------------------------------------------------------


def right_answers(bulk: Bulk) -> list[str]:
    """Each answer to a load generator is authentic, and fits the password."""
    wrong = [f"{bulk.kind} {key}: {each}" for key, each in bulk.answers.items() if each.decision != bulk.right]
    forged = [f"{bulk.kind}: {bulk.forged} answers are not authentic"] if bulk.forged else []
    return forged + _cut(wrong)


def authentic(history: History) -> list[str]:
    """Each answer that a NAS receives fits a request of its socket."""
    return [f"{history.forged} answers are not authentic"] if history.forged else []


def answered(bulk: Bulk) -> list[str]:
    """All requests get an answer once the faults are over: a load generator repeats a request for five minutes."""
    return [f"{bulk.kind}: {bulk.lost} of {bulk.sent} requests were not answered"] if bulk.lost else []


def unanswered(history: History) -> list[str]:
    """A login gets an answer unless a fault disturbs its last ten seconds, and a retransmission gets one again."""
    findings = []
    for each in history.logins:
        last = each.ended - RECOVERY_S
        if each.kind != "eap" and not each.code and _is_quiet(history, max(each.began, last), each.ended, each.nodes):
            findings.append(f"{each}: no answer")
        if each.silent and _is_quiet(history, each.silent, each.ended, {each.node}):
            findings.append(f"{each}: no answer to its retransmission for {each.ended - each.silent:.1f} s")
    return findings


def _is_quiet(history: History, began: float, ended: float, nodes: set[int]) -> bool:
    is_disturbed = history.is_disturbed(began, ended, nodes, RECOVERY_S)
    return not is_disturbed and not history.has_fault(began, ended, ("network",))


def one_answer(logins: Sequence[Login]) -> list[str]:
    """A retransmission gets the same octets again."""
    return [
        f"{each}: {len(packet.replies)} different answers of node {packet.node}"
        for each in logins
        for packet in each.packets
        if len(packet.replies) > 1 and packet.last - packet.first < WINDOW_S
    ]


# --- 2: one prompt, one Accept -------------------------------------------------------------------------------------


def one_accept(history: History, rows: Iterable[Row]) -> list[str]:
    """One approval admits one login: at the NAS, and in the store."""
    accepted = Counter(row.key for row in rows if row.decision == "accept")
    findings = []
    for each in history.logins:
        if each.kind != "push":
            continue
        most, number = max(len(each.prompts), 1), accepted[each.station]
        has_lost_commit = history.has_fault(each.began, each.ended, STORE, RECOVERY_S)
        if each.accepts > most or (number > most and not has_lost_commit):
            findings.append(f"{each}: {each.accepts} Accepts, {number} stored, {len(each.prompts)} prompts")
    return findings


def one_prompt(history: History, *, timeout_s: float, is_shared: bool) -> list[str]:
    """One login prompts its user once. Another prompt needs a reason: the prompt before is over, and not because of an
    Accept in the last seconds; or the only process that knew it has ended, as with SQLite (not is_shared)."""
    return [
        f"{each}: prompts after {[round(at - each.began, 1) for at in each.prompts]} s"
        for each in history.logins
        if any(
            not _is_over(each, before, after, timeout_s)
            and not history.has_fault(before - RECOVERY_S, after, ("provider",))
            and not any(_forgets(span.fault, is_shared) for span in history.during(before, after))
            for before, after in pairwise(sorted(each.prompts))
        )
    ]


def _is_over(login: Login, before: float, after: float, timeout_s: float) -> bool:
    """Return whether the prompt of one time had expired before another one, or was decided long enough before it."""
    if after >= before + timeout_s - 1:
        return True
    if login.approval == "approved":
        return after >= before + login.approval_s + HELD_S
    return login.approval == "denied" and after >= before + login.approval_s


def _forgets(fault: str, is_shared: bool) -> bool:
    """Return whether a fault lets the service forget prompts. A node with a new master key and a node without it do not
    join each other's prompts."""
    return fault == "keys" or (not is_shared and fault in {"kill", "storm", "restart", "start"})


# --- 3 and 5: decisions --------------------------------------------------------------------------------------------


def permitted(history: History) -> list[str]:
    """No Accept that the policy forbade from before the first request to after the answer. A change at another node may
    come later if the machine itself is late."""
    return [
        f"{each}: Accept although {each.forbidden}"
        for each in history.logins
        if each.forbidden and each.code == ACCESS_ACCEPT
        if not (each.is_elsewhere and history.lateness_s(each.began - KNOWN_S, each.ended) >= LATE_S)
    ]


def admitted(history: History, rows: Iterable[Row] = ()) -> list[str]:
    """A user that nothing forbids is not rejected, whatever fails. A push, a directory and an EAP conversation depend
    on their `fragile` places. A provider and a directory that have failed are not asked for a while."""
    unasked = {row.key for row in rows if row.reason.startswith(UNREACHABLE)}
    return [
        f"{each}: Reject"
        for each in history.logins
        if each.expected and each.code == ACCESS_REJECT
        if not history.has_fault(
            each.began,
            each.ended,
            each.fragile,
            CIRCUIT_S if each.kind == "ldap" or each.station in unasked else RECOVERY_S,
        )
    ]


def monitored(history: History, rows: Iterable[Row], would: Mapping[str, Container[str]]) -> list[str]:
    """Monitor mode sends no prompt, and records the decision of enforcing mode. would: this decision, by user."""
    logins = [each for each in history.logins if each.kind == "monitor"]
    stations = {each.station for each in logins if each.expected}
    wrong = [f"{row}" for row in rows if row.key in stations and row.would not in would[row.user]]
    return _cut(wrong) + [f"{each}: a prompt in monitor mode" for each in logins if each.prompts]


# --- the service as a whole ----------------------------------------------------------------------------------------


def served(history: History) -> list[str]:
    """Requests of the API, pages of the console and commands fail only during a fault of their node that disturbs all.
    An internal error is never right."""
    return [
        each.what
        for each in history.failures
        if _is_internal(each) or not history.is_disturbed(each.began, each.ended, {each.node}, RECOVERY_S)
    ]


def _is_internal(failure: Failure) -> bool:
    return " 500 " in f"{failure.what} "


def ready(history: History) -> list[str]:
    """/readyz answers 200 unless a fault disturbs all tenants of the node, and 503 while its store accepts no write. A
    commit that is late on the machine itself is not the service's."""
    wrong = [
        f"/readyz of node {each.node}: {each.status or 'no answer'}"
        for each in history.readiness
        if each.status != 200 and not history.is_disturbed(each.at, each.ended, {each.node}, RECOVERY_S)
        if history.lateness_s(each.at - READY_S, each.ended) < LATE_S
    ]
    missed = []
    for span in history.spans:
        for node in span.nodes if span.blocks else ():
            late = [each for each in history.readiness if each.node == node]
            late = [each for each in late if span.began + READY_S < each.at < span.ended]
            if late and all(each.status == 200 for each in late):
                missed.append(f"/readyz of node {node}: 200 during {span.fault}, {len(late)} times")
    return _cut(wrong) + missed


def informed(history: History) -> list[str]:
    """Each agent has the state of the last change once the faults are over."""
    return [f"{history.outdated_agents} agents have no new state"] if history.outdated_agents else []


def undelayed(history: History, answers: Sequence[Answer], *, most_s: float = MAX_S) -> list[str]:
    """No tenant delays another by more than `most_s`. The time for which the service waited for a processor is that of
    the machine, and so is the delay of the control at the same moments."""
    late = []
    for each in answers:
        own_s = history.lateness_s(each.began, each.began + each.delay_s)
        if each.delay_s - each.waited_s - own_s > most_s * each.slowness:
            late.append(
                f"{each.kind}: {each.delay_s:.3f} s, in which the service worked {each.worked_s:.3f} s and waited "
                f"{each.waited_s:.3f} s for a processor, on a machine that was {each.slowness:.1f} times slower, and "
                f"{own_s:.3f} s late"
            )
    return _cut(late)


@dataclass(frozen=True, slots=True)
class Size:
    """What a service takes at the end of a round. process: its id, which changes with each start. files: in its data
    directory. stations: the number of new stations in the round."""

    process: int
    memory_mib: float
    descriptors: int
    threads: int
    files: int
    stations: int = 0


def lives(sizes: Sequence[Size]) -> list[list[Size]]:
    """Return the sizes of each process that has more than one."""
    found = defaultdict[int, list[Size]](list)
    for size in sizes:
        found[size.process].append(size)
    return [each for each in found.values() if len(each) > 1]


def bounded(sizes: Sequence[Size]) -> list[str]:
    """A service that runs on takes no more memory, descriptors, threads and files. Its memory may grow by the new
    stations, up to its limit of stations. sizes: of one node, in order."""
    findings = []
    for first, *others in lives(sizes):
        stations = min(sum(each.stations for each in others), MAX_STATIONS)
        for name, more in (
            ("descriptors", MORE_DESCRIPTORS),
            ("threads", MORE_THREADS),
            ("files", MORE_FILES),
            ("memory_mib", MORE_MIB + stations * STATION_KIB / 1024),
        ):
            before, after = getattr(first, name), getattr(others[-1], name)
            if after > before + more:
                findings.append(f"{name} grew from {before:g} to {after:g} in {len(others)} rounds")
    return findings


# --- the campaign itself -------------------------------------------------------------------------------------------


def effective(
    faults: Mapping[str, int], effects: Mapping[str, int], outcomes: Mapping[tuple[str, str], int], kinds: Iterable[str]
) -> list[str]:
    """Each kind of fault had an effect, and each kind of client got an Accept and a Reject. Otherwise the campaign has
    not tested what it says.

    faults: the number of each. effects: the sum of their effects. outcomes: of `History.outcomes`. kinds: of clients.
    """
    without = [
        f"{number} times {name} had no effect"
        for name, number in faults.items()
        if number >= OFTEN and not effects.get(name)
    ]
    one_sided = [
        f"no {kind} login got the decision {decision}"
        for kind in kinds
        for decision in ("accept", "reject")
        if not outcomes.get((kind, decision))
    ]
    return without + one_sided


def _cut(findings: list[str]) -> list[str]:
    more = [f"and {len(findings) - SHOWN} more"] if len(findings) > SHOWN else []
    return findings[:SHOWN] + more
