"""The promises, as functions of a history and of the rows of the store. Each returns the findings as texts. They read
no clock and no process: test_checks.py feeds each one a history that breaks its promise."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Final

from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.soak.history import Bulk, Failure, History, Login
from tests.torture.probe import Answer

Row = tuple[str, str, float]
"""The station, or the session and status, of a stored record, its decision, and its time in seconds."""
WINDOW_S: Final = 15.0
"""The default of the setting duplicate_window_s: a request that is repeated later may be decided and stored again."""
MAX_S: Final = 0.25
"""The longest delay of another tenant, on a machine as fast as that of the limit."""
SHOWN: Final = 5
MORE_FILES, MORE_DESCRIPTORS, MORE_THREADS, MORE_MIB = 24, 40, 24, 48.0


def stored(logins: Sequence[Login], rows: Iterable[Row], *, may_repeat: bool) -> list[str]:
    """Each answer that a client received is in the store, and no login is recorded twice within the window of
    retransmissions.

    may_repeat: whether a repeated request may have two records, because the service could not find out whether the
    first one was committed (PostgreSQL). Only the last round of an EAP login has a record, so that its clients may have
    more of them.
    """
    found = defaultdict[str, list[tuple[float, str]]](list)
    for station, decision, at in rows:
        found[station].append((at, decision))
    findings, answered, sent = [], defaultdict[str, Counter[str]](Counter), Counter[str]()
    for login in logins:
        sent[login.station] += login.kind != "eap"
        if login.decision:
            answered[login.station][login.decision] += 1
    for station, decisions in answered.items():
        if missing := decisions - Counter(decision for _, decision in found[station]):
            findings.append(f"{station}: answered {dict(missing)}, stored {sorted(found[station])}")
    if not may_repeat:
        findings += [
            f"{station}: {number} logins, stored {sorted(found[station])}"
            for station, number in sent.items()
            if number and repeats([at for at, _ in found[station]], number)
        ]
    return findings


def bulk_stored(bulk: Bulk, rows: Iterable[Row], *, may_repeat: bool) -> list[str]:
    """The same for the requests of a load generator, where each key is sent once."""
    found = defaultdict[str, list[tuple[float, str]]](list)
    for key, decision, at in rows:
        found[key].append((at, decision))
    missing = [
        f"{key}: answered {each}, stored {found[key]}"
        for key, each in bulk.answers.items()
        if each not in [decision for _, decision in found[key]]
    ]
    twice = [
        f"{key}: stored {sorted(each)}"
        for key, each in found.items()
        if not may_repeat and repeats([at for at, _ in each], 1)
    ]
    return _cut(missing) + _cut(twice)


def repeats(times: Iterable[float], requests: int) -> bool:
    """Return whether there are more records than requests, although none of the others is beyond the window."""
    ordered = sorted(times)
    late = sum(after - before >= WINDOW_S for before, after in pairwise(ordered))
    return len(ordered) - requests > late


def right_answers(bulk: Bulk) -> list[str]:
    """Each answer to a load generator is authentic, and the one that the password deserves."""
    wrong = [f"{bulk.kind} {key}: {each}" for key, each in bulk.answers.items() if each != bulk.right]
    forged = [f"{bulk.kind}: {bulk.forged} answers are not authentic"] if bulk.forged else []
    return forged + _cut(wrong)


def answered(bulk: Bulk) -> list[str]:
    """All requests get an answer once the faults are over: a load generator repeats a request for five minutes."""
    return [f"{bulk.kind}: {bulk.lost} of {bulk.sent} requests were not answered"] if bulk.lost else []


def one_answer(logins: Sequence[Login]) -> list[str]:
    """A retransmission gets the same octets again."""
    return [f"{each}: {each.answers} different answers" for each in logins if each.answers > 1]


def one_accept(logins: Sequence[Login], rows: Iterable[Row], *, is_shared: bool) -> list[str]:
    """One approval admits one login. On PostgreSQL (is_shared) a NAS may ask the next node in the moment in which the
    first one answers: then that node prompts again, and each Accept has a prompt of its own."""
    accepted = defaultdict[str, list[float]](list)
    for station, decision, at in rows:
        if decision == "accept":
            accepted[station].append(at)
    findings = []
    for each in logins:
        times = accepted[each.station]
        most = max(each.prompts, 1) if is_shared else 1
        if each.kind == "push" and (each.accepts > most or repeats(times, most)):
            findings.append(f"{each}: {each.accepts} Accepts, {len(times)} stored, {each.prompts} prompts")
    return findings


def one_prompt(history: History, rows: Iterable[Row], *, is_shared: bool) -> list[str]:
    """One login prompts its user once, within the window of retransmissions. A prompt of SQLite ends with its process,
    so that a login over a kill is not judged there. On PostgreSQL (is_shared) another node takes it over; a request
    that reaches the next node after the answer of the first one is another login, with a record of its own."""
    records = Counter(station for station, _, _ in rows)
    return [
        f"{each}: {each.prompts} prompts, {records[each.station]} records"
        for each in history.logins
        if each.prompts > (max(records[each.station], 1) if is_shared else 1)
        and each.ended - each.began < WINDOW_S
        and (is_shared or not history.is_disturbed(each.began, each.ended))
    ]


def permitted(logins: Sequence[Login]) -> list[str]:
    """No Accept that the policy forbade from before the first request to after the answer."""
    return [
        f"{each}: Accept although {each.forbidden}" for each in logins if each.forbidden and each.code == ACCESS_ACCEPT
    ]


def admitted(logins: Sequence[Login]) -> list[str]:
    """A user that nothing forbids is never rejected, whatever fails."""
    return [f"{each}: Reject" for each in logins if each.expected and each.code == ACCESS_REJECT]


def served(history: History, *, grace_s: float) -> list[str]:
    """Requests of the API, pages of the console and commands fail only during a fault that disturbs all. An internal
    error is never right."""
    return [
        each.what
        for each in history.failures
        if _is_internal(each) or not history.is_disturbed(each.began, each.ended, grace_s)
    ]


def _is_internal(failure: Failure) -> bool:
    return " 500 " in f"{failure.what} "


def undelayed(answers: Sequence[Answer]) -> list[str]:
    """No tenant delays another by more than 250 ms. The time for which the service waited for a processor is that of
    the machine."""
    return _cut(
        [
            f"{each.kind}: {each.delay_s:.3f} s, in which the service worked {each.worked_s:.3f} s and waited "
            f"{each.waited_s:.3f} s for a processor, on a machine that was {each.slowness:.1f} times slower"
            for each in answers
            if each.delay_s - each.waited_s > MAX_S * each.slowness
        ]
    )


@dataclass(frozen=True, slots=True)
class Size:
    """What a service takes at the end of a round. process: its id, which changes with each start. files: in its data
    directory."""

    process: int
    memory_mib: float
    descriptors: int
    threads: int
    files: int


def bounded(sizes: Sequence[Size]) -> list[str]:
    """A service that runs on takes no more memory, descriptors, threads and files. sizes: of one node, in order."""
    lives = defaultdict[int, list[Size]](list)
    for size in sizes:
        lives[size.process].append(size)
    findings = []
    for first, *others in lives.values():
        last = others[-1] if others else first
        for name, more in (
            ("descriptors", MORE_DESCRIPTORS),
            ("threads", MORE_THREADS),
            ("files", MORE_FILES),
            ("memory_mib", MORE_MIB),
        ):
            before, after = getattr(first, name), getattr(last, name)
            if after > before + more:
                findings.append(f"{name} grew from {before:g} to {after:g} in {len(others)} rounds")
    return findings


def _cut(findings: list[str]) -> list[str]:
    more = [f"and {len(findings) - SHOWN} more"] if len(findings) > SHOWN else []
    return findings[:SHOWN] + more
