"""The checks of a round and of an installation, with the rows of the store."""

import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

from tests.running_service import RunningService
from tests.soak import checks
from tests.soak.checks import Row
from tests.soak.faults import make_backup
from tests.soak.history import History
from tests.soak.nas import station_prefix
from tests.soak.report import Figures
from tests.soak.schedule import Round
from tests.soak.site import MONITORED, PROVIDER_TIMEOUT_S, Site
from tests.torture.probe import Answer

STALLED_S: Final = 2.0
"""A machine that stands still for longer makes the checks of times meaningless."""
KINDS: Final = ("again", "monitor", "push", "gate", "mab", "eap", "ldap", "radsec")
"""The kinds of clients that must get both decisions in an installation of at least ENOUGH rounds."""
ENOUGH: Final = 4
RARE: Final = frozenset({"failing-disk", "removal"})
"""With PostgreSQL, a node writes to its own disk only while the database is away, so that its disk may fail in vain. A
device cannot be deleted while more stations register behind it than the deletion removes: thousands a second."""
SAMPLE: Final = 500
"""Number of logins of a round that are looked for in a restored backup."""
_STATION: Final = re.compile("02(-[0-9A-F]{2}){5}")


# --- a round ------------------------------------------------------------------------------------------------------


def check(site: Site, plan: Round, figures: Figures, answers: Sequence[Answer]) -> list[str]:
    """Hold the promises against the history of a round."""
    site.settle()
    _count_prompts(site)
    history, is_starved = site.history, site.history.stalled_s > STALLED_S
    figures.starved += is_starved
    figures.outcomes += history.outcomes()
    figures.requests += history.requests
    figures.states += history.states
    figures.delays += [] if is_starved else [each.delay_s for each in answers]
    late = checks.undelayed(history, answers, most_s=checks.MAX_SHARED_S if site.is_shared else checks.MAX_S)
    figures.late += 0 if is_starved else len(late)
    prefix, domains, numbers = station_prefix(plan.number), _domains(site), _node_numbers(site)
    rows = _logins(site, prefix, f"{prefix[:-1]}.", domains, numbers)
    of_logins = [
        *checks.stored(history, rows),
        *checks.one_answer(history.logins),
        *checks.one_accept(history, rows),
        *checks.permitted(history),
        *checks.monitored(history, rows, MONITORED),
    ]
    of_times = [
        *checks.admitted(history, rows),
        *checks.unanswered(history),
        *checks.one_prompt(history, timeout_s=PROVIDER_TIMEOUT_S[site.is_shared], is_shared=site.is_shared),
    ]
    of_service = [
        *checks.served(history),
        *checks.ready(history),
        *checks.informed(history),
        *late,
    ]
    return [
        *(f"{text}; {_records_of(site, text)}" for text in (of_logins + ([] if is_starved else of_times))),
        *checks.authentic(history),
        *([] if is_starved else of_service),
        *_check_bulks(site, plan, history, domains, numbers, is_starved=is_starved),
    ]


def _count_prompts(site: Site) -> None:
    """Give each login its prompts. A user has one login with a push in a round."""
    prompts = defaultdict[str, dict[str, float]](dict)
    for each in site.hook.prompts:
        prompts[each["user"]][each["challenge_id"]] = site.hook.prompted_at[each["challenge_id"]]
    for login in site.history.logins:
        login.prompts = list(prompts[login.user].values()) if login.kind in {"push", "monitor"} else []
    site.hook.prompts.clear()


def _records_of(site: Site, text: str) -> str:
    """Return the records of the station that a finding names."""
    found = _STATION.search(text)
    sql = "select at, node_id, factor, applied_decision, reason, latency_us from events where station = ? order by at"
    return f"records: {site.nodes[0].rows(sql, found[0])}" if found else ""


def _check_bulks(
    site: Site,
    plan: Round,
    history: History,
    domains: Mapping[int, str],
    numbers: Mapping[int, int],
    *,
    is_starved: bool,
) -> list[str]:
    findings = list[str]()
    records = _records(site, plan.number, domains)
    for bulk in history.bulks:
        first, last = (min(bulk.answers), max(bulk.answers)) if bulk.answers else ("", "")
        rows = records if bulk.right == "stored" else _logins(site, first, f"{last}.", domains, numbers)
        found = checks.bulk_stored(history, bulk, [row for row in rows if row.key in bulk.answers])
        findings += [f"{text}; {_records_of(site, text)}" for text in found]
        findings += checks.right_answers(bulk) + ([] if is_starved else checks.answered(bulk))
    return findings


def _domains(site: Site) -> dict[int, str]:
    """Return the names of the domains by their ids."""
    return dict(site.nodes[0].rows("select id, name from domains"))


def _node_numbers(site: Site) -> dict[int, int]:
    """Return the numbers of the nodes by their ids in the store."""
    if not site.is_shared:
        return {0: 0}
    numbers = {node.directory.name: number for number, node in enumerate(site.nodes)}
    return {id: numbers[name] for id, name in site.nodes[0].rows("select id, name from nodes")}


def _logins(site: Site, first: str, end: str, domains: Mapping[int, str], numbers: Mapping[int, int]) -> list[Row]:
    """Return the logins from a station on to another one."""
    sql = (
        "select station, applied_decision, user_name, domain_id, node_id, would_have_been, reason from events "
        "where station >= ? and station < ?"
    )
    return [
        Row(station, decision, user, domains.get(domain, ""), numbers.get(node, -1), would, reason)
        for station, decision, user, domain, node, would, reason in site.nodes[0].rows(sql, first, end)
    ]


def _records(site: Site, number: int, domains: Mapping[int, str]) -> list[Row]:
    """Return the accounting records of a round by their sessions and statuses."""
    sql = (
        "select session_id, status_type, user_name, domain_id from accounting_records "
        "where session_id >= ? and session_id < ?"
    )
    found = site.nodes[0].rows(sql, f"{number}-".encode(), f"{number}.".encode())
    return [
        Row(f"{bytes(name).decode()}/{status}", "stored", user, domains.get(domain, ""))
        for name, status, user, domain in found
    ]


# --- an installation ----------------------------------------------------------------------------------------------


def check_installation(
    directory: Path,
    site: Site,
    figures: Figures,
    sizes: Sequence[Sequence[checks.Size]],
    kept: Sequence[tuple[float, dict[str, str]]],
) -> list[str]:
    """Hold the promises of a whole installation, and of the campaign itself.

    directory: for the copy that is restored. sizes: of the nodes, by calm round. kept: the end of each round with some
    of its decisions by station.
    """
    findings = []
    for of_node in zip(*sizes, strict=True):
        findings += checks.bounded(of_node)
        figures.judged += sum(len(each) - 1 for each in checks.lives(of_node))
    if figures.rounds >= ENOUGH:
        faults = {name: n for name, n in figures.faults.items() if not (site.is_shared and name in RARE)}
        findings += checks.effective(faults, figures.effects, figures.outcomes, KINDS)
        findings += [] if figures.states else ["no agent has received a state"]
    if site.hook.forged:
        findings.append(f"{site.hook.forged} requests to the provider had a wrong signature")
    if all(node.is_running for node in site.nodes):
        findings += _check_backup(directory, site, figures, kept)
    return findings


def _check_backup(
    directory: Path, site: Site, figures: Figures, kept: Sequence[tuple[float, dict[str, str]]]
) -> list[str]:
    """Restore the newest backup that was made under load, or one of now, and look for logins of earlier rounds."""
    if not site.backups and not make_backup(site, 0):
        return ["no backup can be made"]
    backup = site.backups[-1]
    known = {station: each for ended, some in kept if ended < backup.before for station, each in some.items()}
    place = directory / "restored"
    shutil.rmtree(place, ignore_errors=True)
    (place / "data").mkdir(parents=True)
    (place / "data").chmod(0o700)
    (place / "data" / "master.key").write_text(backup.key)
    (place / "data" / "master.key").chmod(0o600)
    copy = RunningService(place, {})
    done = copy.cli("db", "restore", str(backup.path), "--yes")
    if done.returncode:
        return [f"db restore: {done.returncode} {done.stderr[-500:]}"]
    rows = [Row(*row) for row in copy.rows("select station, applied_decision, user_name from events")]
    figures.restored += len(known)
    return checks.restored(known, rows)


def sample(history: History) -> dict[str, str]:
    """Return the decisions of some answered logins of a round by station. Stations with several logins are left out."""
    numbers = Counter(each.station for each in history.logins)
    found = {each.station: each.decision for each in history.logins if each.decision and numbers[each.station] == 1}
    for bulk in history.bulks:
        if bulk.right != "stored":
            found |= {key: each.decision for key, each in list(bulk.answers.items())[:SAMPLE]}
    return found
