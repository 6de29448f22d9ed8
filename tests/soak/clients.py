"""The clients of a round: each is a function that runs in a thread and sends one request after the other until the
round is over."""

import re
import time
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from itertools import count
from random import Random
from typing import Any, Final

import httpx

from sallyport.radius.packet import ACCESS_ACCEPT, ACCESS_REJECT
from tests.peers.eapol import SUCCESS, eapol_test
from tests.running_service import RunningService
from tests.soak.checks import KNOWN_S
from tests.soak.history import Failure, Login, Packet, Readiness
from tests.soak.nas import LATE_S, TRIES, Nas, Turn
from tests.soak.site import MONITORED, PASSWORD, PUSHED, SECRET
from tests.soak.streams import log_in_over_tls, run_agents

Client = Callable[[Turn], None]
PUSHERS: Final = 4
TENANT: Final = {"orgId": 1, "tenantId": 1}
LISTS: Final = ("/network_device/ListDevices", "/ad/GetAuthLog", "/api/v1/audit/list", "/network_device/ListSessions")
PAGES: Final = ("/", "/devices", "/logins", "/clients", "/rules", "/people", "/sessions", "/audit")
PERMITS: Final = 40
"""How often a user is permitted at the end of a round, until it is done."""
READY_S: Final = 0.25
REJECTED: Final = "code=3 (Access-Reject)"
"""What eapol_test prints for an Access-Reject."""
UNSURE: Final = ("process", "disk", "database", "link")
"""The places whose faults interrupt conversations, and delay them beyond their time limits."""
FRAGILE: Final = {
    "push": ("provider", *UNSURE), "ldap": ("directory", *UNSURE), "eap": ("upkeep", *UNSURE),
}  # fmt: skip
"""The places whose faults may let a right login of a kind be rejected."""
_FORM: Final = re.compile(r'name="csrf" value="([^"]+)"')


class UnknownChange(Exception):
    """A change was not answered in time. The service may still make it, after later changes."""


def log_in_again(turn: Turn) -> None:
    """Send logins by PAP, and each again after a while, often after a fault."""
    random = turn.random("again")
    with Nas(turn, "default") as nas:
        while not turn.over.is_set():
            login, password = _with_password(random, "again", "ann", turn.station())
            nas.log_in(login, password, first=random.randrange(2))
            turn.rest(random.uniform(0, 2.5))
            nas.repeat(login)


def _with_password(random: Random, kind: str, user: str, station: str) -> tuple[Login, str]:
    """Return a login with the right password, or with a wrong one, and the password."""
    is_right = random.random() < 0.8
    forbidden = "" if is_right else "the password is wrong"
    login = Login(kind, user, station, expected=is_right, forbidden=forbidden, fragile=FRAGILE.get(kind, ()))
    return login, PASSWORD if is_right else "not the password"


def log_in_in_monitor_mode(turn: Turn) -> None:
    """Log in as a user that enforcing would reject, and as one that it would prompt."""
    random = turn.random("monitor")
    with Nas(turn, "monitor") as nas:
        while not turn.over.is_set():
            login, password = _with_password(random, "monitor", random.choice(tuple(MONITORED)), turn.station())
            nas.log_in(login, password, first=random.randrange(2))
            turn.rest(random.uniform(0, 1))


def push(number: int, turn: Turn) -> None:
    """Log in with a push that the user approves, denies, or does not answer. An impatient NAS asks the next node each
    second, often while the first one answers."""
    random = turn.random(f"push{number}")
    hook = turn.site.hook
    with Nas(turn, "push") as nas:
        first = random.randrange(PUSHED)
        for place in range(first, first + PUSHED // PUSHERS):  # each user once, so that prompts are those of a login
            if turn.over.is_set():
                return
            user = f"push{(place * PUSHERS + number) % PUSHED + turn.round.number % 2 * PUSHED}"
            answer, after_s = random.choice(("approved", "approved", "approved", "denied", "waiting")), 0.0
            login = Login("push", user, turn.station(), approval=answer, fragile=FRAGILE["push"])
            if answer == "approved":
                login.expected = True
            else:
                login.forbidden = f"the user's answer is: {answer}"
            after_s = login.approval_s = random.choice((random.uniform(0, 3), 1.0, 2.0))
            hook.will(user, answer, after_s=after_s)
            nas.log_in(login, PASSWORD, first=random.randrange(2), tries=random.choice((1, 1, TRIES)), late_s=LATE_S)
            turn.rest(random.uniform(0.2, 1.5))


def pass_gate(number: int, turn: Turn) -> None:
    """Forbid a user in one of several ways, log in, permit it again, and log in. With several nodes, some logins go to
    another node than the change, after the time within which all nodes know it."""
    random = turn.random(f"gate{number}")
    user, site = f"gate{number}", turn.site
    with Nas(turn, "gate") as nas, suppress(UnknownChange):
        while not turn.over.is_set():
            node = random.randrange(len(site.nodes))
            other = random.randrange(len(site.nodes))
            forbid = random.choice((_by_rule, _by_password, _by_removal))
            is_known = forbid(site.nodes[node], user, True)
            began = time.monotonic()
            login = Login("gate", user, turn.station())
            if other != node:
                turn.rest(KNOWN_S)
            if is_known and (other == node or _was_quiet(turn, began, other)):
                login.is_elsewhere = other != node
                login.forbidden = f"it was forbidden{forbid.__name__.replace('_', ' ')} at node {node}"
            nas.log_in(login, PASSWORD, first=other, only=True)
            if not is_known:  # a change that the disk refused may come back after a kill, until another one is made
                _repeated(turn, partial(forbid, site.nodes[node], user, True))
            if _repeated(turn, partial(forbid, site.nodes[node], user, False)):
                login = Login("gate", user, turn.station(), expected=True)
                nas.log_in(login, PASSWORD, first=node, only=True)
            turn.rest(random.uniform(0, 0.3))
    _permit(turn, user)


def _was_quiet(turn: Turn, began: float, node: int) -> bool:
    """Return whether no fault has disturbed a node since a time, so that it knows the changes of other nodes."""
    return time.monotonic() - began >= KNOWN_S and not turn.site.was_disturbed(began - KNOWN_S, node)


def _repeated(turn: Turn, change: Callable[[], bool]) -> bool:
    """Make a change, and try again until it is done or the round is over."""
    while not (is_done := change()) and not turn.over.wait(0.5):
        pass
    return is_done


def _permit(turn: Turn, user: str) -> None:
    """Permit a user at the end of the round, whatever the round has left. The password always changes, so that no
    refused change before it can come back."""
    for number in range(PERMITS):
        node = turn.site.nodes[number % len(turn.site.nodes)]
        with suppress(UnknownChange):
            if _by_removal(node, user, False) and _by_password(node, user, False) and _by_rule(node, user, False):
                return
        time.sleep(0.5)


def _done(change: Callable[[], Any]) -> bool:
    """Make a change. Return whether it is known to be made. Raises UnknownChange if it may still be made later."""
    try:
        change()
    except TimeoutError as error:
        raise UnknownChange from error
    except (OSError, AssertionError, ValueError, KeyError):
        return False
    return True


def _by_rule(node: RunningService, user: str, is_forbidden: bool) -> bool:
    def change() -> None:
        if is_forbidden:
            node.add_rule("gate", name=f"no {user}", action="block", users=[user])
            return
        rules = node.run("/ad/ListLoginRules", {"pageSize": 100}, domain="gate")["rules"]
        for rule in rules:
            if rule["name"] == f"no {user}":
                node.run("/ad/DeleteLoginRule", {"ruleId": rule["ruleId"]}, domain="gate")

    return _done(change)


def _by_password(node: RunningService, user: str, is_forbidden: bool) -> bool:
    def change() -> None:
        (found,) = [each for each in node.users("gate") if each["userName"] == user]
        body = {"userId": found["userId"], "password": "another password" if is_forbidden else PASSWORD}
        node.run("/api/v1/endpointUsers/updateEpmUserInfo", body, domain="gate")

    return _done(change)


def _by_removal(node: RunningService, user: str, is_forbidden: bool) -> bool:
    def change() -> None:
        is_present = any(each["userName"] == user for each in node.users("gate"))
        if is_forbidden and is_present:
            node.remove_user(user, "gate")
        elif not is_forbidden and not is_present:
            node.add_user(user, PASSWORD, "gate")

    return _done(change)


def ask_for_stations(turn: Turn) -> None:
    """Ask for the admission of stations by their MAC address: before they are listed, while they are, and after."""
    random = turn.random("mab")
    with Nas(turn, "gate") as nas, suppress(UnknownChange):
        while not turn.over.is_set():
            node = random.randrange(len(turn.site.nodes))
            station = turn.station()
            name = station.replace("-", "").lower()
            for change in ("", "/ad/AddBypassStation", "/ad/DeleteBypassStation"):
                is_known = not change or _done(
                    partial(turn.site.nodes[node].run, change, {"station": station}, domain="gate")
                )
                login = Login("mab", name, station, expected=is_known and change.endswith("AddBypassStation"))
                login.forbidden = "it is not listed" if is_known and not login.expected else ""
                nas.log_in(login, name, first=node, only=True)
                if not is_known:
                    break
            turn.rest(random.uniform(0.1, 1.0))


def log_in_by_eap(turn: Turn) -> None:
    """Log in by PEAP and TTLS with eapol_test."""
    random = turn.random("eap")
    authority = turn.site.nodes[0].data_dir / "certs" / "ca.pem"
    for number in count():
        if turn.over.is_set():
            return
        method = random.choice((("eap=PEAP", 'phase2="auth=MSCHAPV2"'), ("eap=TTLS", 'phase2="auth=PAP"')))
        login, password = _with_password(random, "eap", "ann", turn.station())
        lines = [*method, f'ca_cert="{authority}"', 'identity="ann"', f'password="{password}"']
        place = turn.directory / f"eap-{number}"
        place.mkdir()
        login.node, login.began = random.randrange(len(turn.site.nodes)), time.monotonic()
        port = turn.site.relay.ports[login.node].auth
        output = eapol_test(place, port, SECRET, "\n".join(lines), "-t", "8", "-M", login.station.replace("-", ":"))
        login.code = ACCESS_ACCEPT if SUCCESS in output else ACCESS_REJECT if REJECTED in output else 0
        login.ended = time.monotonic()
        login.packets.append(Packet(login.node, first=login.began, last=login.ended, sent=1))
        turn.site.history.add(login)
        turn.rest(random.uniform(0.2, 2))


def log_in_at_directory(turn: Turn) -> None:
    """Log in with passwords that the directory checks."""
    random = turn.random("ldap")
    with Nas(turn, "ldap") as nas:
        while not turn.over.is_set():
            login, password = _with_password(random, "ldap", "ann", turn.station())
            login.user = "ann" if login.expected else "bob"  # the directory locks the account
            nas.log_in(login, "hello" if login.expected else password, first=random.randrange(2))
            turn.rest(random.uniform(0.1, 1.0))


def ask_readiness(turn: Turn) -> None:
    """Ask each node whether it is ready."""
    with httpx.Client(timeout=30, trust_env=False) as http:
        while not turn.over.is_set():
            for number, node in enumerate(turn.site.nodes):
                at, status = time.monotonic(), 0
                with suppress(httpx.HTTPError):
                    status = http.get(f"http://127.0.0.1:{node.ports.http}/readyz").status_code
                turn.site.history.add(Readiness(number, at, time.monotonic(), status))
            turn.rest(READY_S)


def call_api(turn: Turn) -> None:
    """Request lists and metrics, and add and remove a user."""
    random = turn.random("api")
    while not turn.over.is_set():
        node = random.randrange(len(turn.site.nodes))
        path = random.choice(LISTS)
        _request(turn, node, "POST", path, json={**TENANT, "domainId": 1, "pageSize": 50})
        _request(turn, node, "GET", "/metrics")
        turn.rest(random.uniform(0.1, 0.5))


def visit_console(turn: Turn) -> None:
    """Sign in with a token, and read pages."""
    random = turn.random("console")
    while not turn.over.is_set():
        node = random.randrange(len(turn.site.nodes))
        url = f"http://127.0.0.1:{turn.site.nodes[node].ports.http}"
        with httpx.Client(base_url=url, timeout=30, trust_env=False, follow_redirects=True) as http:
            shown = _visit(turn, node, http, "GET", "/sign-in")
            form = _FORM.search(shown.text) if shown else None
            if form is None:
                turn.rest(0.5)
                continue
            token = turn.site.nodes[0].token
            _visit(turn, node, http, "POST", "/sign-in", data={"csrf": form[1], "token": token})
            for _ in range(10):
                _visit(turn, node, http, "GET", random.choice(PAGES))
                turn.rest(random.uniform(0.1, 0.5))


def _visit(turn: Turn, node: int, http: httpx.Client, method: str, path: str, **options: Any) -> httpx.Response | None:
    return _checked(turn, node, f"{method} {path}", partial(http.request, method, path, **options))


def _request(turn: Turn, node: int, method: str, path: str, **options: Any) -> None:
    token, send = turn.site.nodes[0].token, turn.site.nodes[node].request
    _checked(turn, node, f"{method} {path}", partial(send, method, path, token=token, **options))


def _checked(turn: Turn, node: int, what: str, send: Callable[[], httpx.Response]) -> httpx.Response | None:
    """Send a request to a node, and record its failure."""
    began, answer = time.monotonic(), None
    turn.site.history.count(requests=1)
    try:
        answer = send()
        problem = "" if answer.status_code < 400 else f"{answer.status_code} {answer.text[:200]}"
    except httpx.HTTPError as error:
        problem = repr(error)
    if problem:
        turn.site.history.add(Failure(f"{what} at node {node}: {problem}", began, time.monotonic(), node))
    return answer if not problem else None


CLIENTS: Final[tuple[tuple[str, Client], ...]] = (
    ("again", log_in_again),
    ("monitor", log_in_in_monitor_mode),
    *((f"push{number}", partial(push, number)) for number in range(PUSHERS)),
    *((f"gate{number}", partial(pass_gate, number)) for number in range(2)),
    ("mab", ask_for_stations),
    ("eap", log_in_by_eap),
    ("ldap", log_in_at_directory),
    ("radsec", log_in_over_tls),
    ("agents", run_agents),
    ("ready", ask_readiness),
    ("api", call_api),
    ("console", visit_console),
)
"""The clients of a round, by their names."""
