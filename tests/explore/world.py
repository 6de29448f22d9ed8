"""The world of an exploration: nodes, device, user, clock and faults, and the steps that are possible."""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field, fields, is_dataclass
from functools import partial
from typing import Final

import trio
from trio.testing import MockClock, wait_all_tasks_blocked

from sallyport.areas.login.login import Verdict
from sallyport.areas.login.second import shared
from sallyport.areas.login.second.conversation import Conversation, SecondFactorResult
from sallyport.areas.login.second.repo import HELD_US
from sallyport.areas.login.second.shared import SharedCalls
from sallyport.areas.mfa.provider import Outcome
from sallyport.base.clock import SECOND
from tests.explore.node import CODE, TIMEOUT_S, Code, Node, Packet
from tests.explore.phone import CROSSING, LATE, Phone
from tests.explore.store import FAILS, LOST, Database

START_US: Final = 1_767_225_600 * SECOND
FAIR, SEND, END, FAULT = "fair", "send", "end", "fault"
"""The kinds of steps. FAIR: happens at some time. END: the time limit, which ends prompts; it happens at some time too.
SEND: the device sends, or the user answers. FAULT: need not happen."""
_ID: Final = re.compile(r"\b[0-9a-f]{32}(?:[0-9a-f]{32})?\b")
"""Challenge ids, which are random, and digests of keys with such an id."""
_FRESH_US: Final = 1 << 60
_COUNTED: Final = ("kills", "restarts", "lapses", "stops", "copies", "errors", "denials")
"""The fields of `Instance` that bound how often something happens."""


class Closed(BaseException):
    """Raised in all tasks at the end of a path. Most of them wait where they cannot be cancelled."""


@dataclass(frozen=True)
class Instance:
    """The bounds of an exploration.

    nodes: number of nodes. packets: number of different requests that the device may send. copies: number of
    retransmissions of the same packet. kills, restarts, lapses, stops: number of nodes that are killed, that start
    again, whose heartbeats pause, and that stop in order. errors: number of transactions and calls of the provider that
    fail: before they happen, or after it. denials: number of pages on which the user says "this is not me". outcomes:
    the answers that the user may give. shows_challenges: whether the device gets a challenge at once, and answers it.
    asks_for_code: whether the provider asks for a code. codes: the codes that the user may type. code: what the nodes
    run; a test gives a copy with an error.
    """

    nodes: int = 2
    packets: int = 2
    copies: int = 0
    kills: int = 0
    restarts: int = 0
    lapses: int = 0
    stops: int = 0
    errors: int = 0
    denials: int = 0
    outcomes: tuple[Outcome, ...] = (Outcome.APPROVED,)
    shows_challenges: bool = False
    asks_for_code: bool = False
    codes: tuple[str, ...] = ("",)
    code: Code = CODE


@dataclass(frozen=True, slots=True)
class Step:
    """A step that is possible. name: the same in each replay of the same path."""

    name: str
    kind: str


@dataclass(eq=False, slots=True)
class _Parked:
    """A task of a node that waits for its step. what: what identifies the step, beside its name."""

    node: Node
    name: str
    what: object
    event: trio.Event = field(default_factory=trio.Event)
    error: str = ""


class World:
    """Everything that exists in one path of an exploration."""

    def __init__(self, instance: Instance, clock: MockClock, nursery: trio.Nursery) -> None:
        self._instance = instance
        self._clock = clock
        self._nursery = nursery
        self._database = Database(self.now)
        self.broken: list[str] = []
        self.phone = Phone(instance.asks_for_code, self.broken)
        self._is_closed = False
        self.nodes: list[Node] = []
        self._parked: list[_Parked] = []
        self._left = {name: getattr(instance, name) for name in _COUNTED}
        self._packets: list[Packet] = []
        self._seen: dict[int, set[str]] = {}  # the nodes, by name, that each packet has reached
        self._answered: set[int] = set()  # the packets whose answer the device has got
        self._is_over = False  # a final answer was stored
        self._accepted_at: int | None = None  # the time when an Accept was stored
        self._denied: set[str] = set()  # the prompts that the user has denied on a page
        self._challenges: list[tuple[str, int]] = []  # the challenges that the device has got and not answered
        self._is_late = False
        self.accepts: list[str] = []
        self.used: set[str] = set()  # the names of all transactions and calls

    async def begin(self) -> None:
        """Start the nodes."""
        for number in range(self._instance.nodes):
            await self._start_node(chr(ord("A") + number), 0)

    async def _start_node(self, name: str, number: int) -> None:
        session, made = f"{name}{number}", list[Node]()

        async def park(step: str, what: object) -> str:
            if step == "purge":  # this concerns only rows that have expired long ago
                return ""
            parked = _Parked(made[0], step, what)
            self._parked.append(parked)
            try:
                if not self._is_closed:
                    await parked.event.wait()
            finally:
                self._parked.remove(parked)
            if self._is_closed:
                raise Closed
            return parked.error

        node = Node(
            session,
            self._database,
            self.phone,
            park,
            self.now,
            self._instance.code,
            self._stored,
            self._sent,
            can_show_challenges=self._instance.shows_challenges,
        )
        made.append(node)
        self.nodes.append(node)
        insert = "insert into nodes values (:session, :at)"
        self._database.run(lambda tx: tx.execute(insert, session=session, at=_FRESH_US))
        for packet, code in self._database.rows("select packet, code from answers where node = :name", name=name):
            node.answers[int(packet or 0)] = str(code)
        await self._nursery.start(node.run)

    def now(self) -> int:
        """Return the time in microseconds, by the clocks of the nodes and of the database."""
        return START_US + int(trio.current_time() * SECOND)

    # --- promises -------------------------------------------------------------------------------------------------

    def _stored(self, packet: Packet, verdict: Verdict, result: SecondFactorResult) -> None:
        """Check an answer, in its transaction."""
        self._is_over = self._is_over or verdict is not Verdict.CHALLENGE
        if verdict is not Verdict.ACCEPT:
            return
        used = self._approved() if result.prompt is None else result.prompt.id
        if self.phone.answers.get(used) is not Outcome.APPROVED:
            self.broken.append("an Accept that the user has not approved")
        if used in self.accepts:
            self.broken.append("a second Accept for one approval")
        if used in self._denied:
            self.broken.append("an Accept after a denial")
        self._accepted_at = self.now()
        self.accepts.append(used)
        self.phone.open.discard(used)

    def _approved(self) -> str:
        """Return an approved prompt whose approval is not used, if possible one that is not denied. With the embedded
        store, an answer does not name its prompt."""
        approved = [each for each, outcome in self.phone.answers.items() if outcome is Outcome.APPROVED]
        approved.sort(key=self._denied.__contains__)
        return next((each for each in approved if each not in self.accepts), (*self.accepts, "")[0])

    def _sent(self, packet: Packet, verdict: Verdict, result: SecondFactorResult) -> None:
        self._answered.add(packet.number)
        if verdict is Verdict.CHALLENGE:
            assert result.session is not None
            self._challenges.append((result.session.id, result.session.step))

    @property
    def waits(self) -> bool:
        """Whether a request waits at a node that runs."""
        return any("pending" in each.answers.values() for each in self._alive)

    @property
    def is_owed(self) -> bool:
        """Whether the user has approved a prompt in time, the request that gets the answer waits or may still come, and
        no Accept was stored. An older request waits for a moment after a newer one has reached another node. If that
        node is lost, only a further retransmission leads to the Accept."""
        approved = any(self.phone.answers.get(each) is Outcome.APPROVED for each in self.phone.open - self._denied)
        waiters = self._database.rows("select waiter from prompts where consumed_by is null")
        waits = (
            self.waits
            if not waiters
            else any("pending" in each.answers.values() for each in self._alive if (each.name,) in waiters)
        )
        may_come = waits or any(step.kind is SEND for step in self._device_steps())
        return approved and not self._is_late and not self.accepts and bool(self._alive) and may_come

    @property
    def _alive(self) -> list[Node]:
        return [each for each in self.nodes if each.is_alive]

    # --- steps ----------------------------------------------------------------------------------------------------

    def steps(self) -> list[Step]:
        """Return the steps that are possible now."""
        return [*self._own_steps(), *self._device_steps(), *self._faults(), *self._clock_steps()]

    def _own_steps(self) -> Iterator[Step]:
        count: dict[str, int] = {}
        for parked in self._parked:
            name = f"{parked.node.name} {parked.name}"
            count[name] = count.get(name, 0) + 1
            if parked.node.is_alive and not (parked.name == "provider.poll" and parked.what not in self.phone.answers):
                yield Step(f"{name} {count[name]}", FAIR)
                if self._left["errors"] and parked.name != "Exchange.committed":
                    yield from (Step(f"{name} {count[name]} {error}", FAULT) for error in (FAILS, LOST))

    def _device_steps(self) -> Iterator[Step]:
        instance, alive = self._instance, [each.name for each in self._alive]
        may_begin = not self._is_late and (self.is_crossing or not self._is_over)
        if may_begin and len(self._packets) < instance.packets and not self._challenges:
            yield from (Step(f"{name} packet", SEND) for name in alive)
        if may_begin and len(self._packets) < instance.packets:
            for number in range(len(self._challenges)):
                yield from (Step(f"{name} answer {number} {code}", SEND) for name in alive for code in instance.codes)
        if self._left["copies"] and not self._is_late:
            for packet in self._packets:
                if packet.number not in self._answered:
                    yield from (Step(f"{name} copy {packet.number}", SEND) for name in alive)
                else:  # it was sent before the answer, and is late
                    seen = [each.name for each in self._alive if each.name[0] in self._seen[packet.number]]
                    yield from (Step(f"{name} copy {packet.number}", SEND) for name in seen)
        if self._left["denials"]:
            yield from (Step(f"{name} denial", SEND) for name in alive if self.phone.open)
        if not instance.asks_for_code:
            for number, challenge_id in enumerate(self.phone.asked):
                if challenge_id not in self.phone.answers and challenge_id in self.phone.open:
                    yield from (Step(f"user {number} {outcome.value}", SEND) for outcome in instance.outcomes)

    def _faults(self) -> Iterator[Step]:
        alive = self._alive
        for node in alive:
            if self._left["kills"]:
                yield Step(f"{node.name} kill", FAULT)
            if self._left["stops"] and not node.second._stopping:
                yield Step(f"{node.name} stop", FAULT)
            if self._left["lapses"] and self._is_fresh(node):
                yield Step(f"{node.name} lapse", FAULT)
        if self._left["restarts"]:
            names = {each.name[0] for each in alive}
            yield from (Step(f"{each.name} restart", FAULT) for each in self.nodes if each.name[0] not in names)

    def _clock_steps(self) -> Iterator[Step]:
        for node in self.nodes:
            is_fresh = self._is_fresh(node)
            if is_fresh and not node.is_alive:
                yield Step(f"{node.name} lapse", FAIR)
            if not is_fresh and node.is_alive:
                yield Step(f"{node.name} beat", FAIR)
        if any(not each.owns for node in self._alive for each in _watched(node)) or self._pauses:
            yield Step("second", FAIR)
        if self.waits:
            yield Step("limit", END)

    def _is_fresh(self, node: Node) -> bool:
        sql = "select seen_at from nodes where session = :name"
        return self._database.rows(sql, name=node.name) == [(_FRESH_US,)]

    async def do(self, step: Step) -> None:
        """Run a step, and wait until all nodes wait."""
        who, _, what = step.name.partition(" ")
        if who == "second":
            self._clock.jump(shared.FOLLOW_S)
        elif who == "limit":
            self._is_late = True
            self.phone.over.update(self.phone.asked)
            self._clock.jump(TIMEOUT_S + 1)
        elif who == "user":
            number, _, outcome = what.partition(" ")
            self.phone.answer(list(self.phone.asked)[int(number)], Outcome(outcome))
        else:
            await self._do_at(next(each for each in self.nodes if each.name == who), what)
        await wait_all_tasks_blocked()

    async def _do_at(self, node: Node, what: str) -> None:
        verb, *rest = what.split(" ")
        match verb:
            case "packet":
                self._deliver(node, self._new(Packet(len(self._packets))))
            case "answer":
                challenge_id, step = self._challenges.pop(int(rest[0]))
                self._deliver(node, self._new(Packet(len(self._packets), challenge_id, step, rest[1])))
            case "copy":
                self._left["copies"] -= 1
                self._deliver(node, self._packets[int(rest[0])])
            case "kill":
                self._left["kills"] -= 1
                node.is_alive = False
            case "denial":
                self._left["denials"] -= 1
                node.deny(self._deny_open)
            case "stop":
                self._left["stops"] -= 1
                node.stop()
            case "restart":
                self._left["restarts"] -= 1
                await self._start_node(node.name[0], int(node.name[1:]) + 1)
            case "lapse":
                self._left["lapses"] -= node.is_alive
                self._set_seen(node, 0)
            case "beat":
                self._set_seen(node, _FRESH_US)
            case _:
                same = [each for each in self._parked if each.node is node and each.name == verb]
                self.used.add(verb)
                parked = same[int(rest[0]) - 1]
                if len(rest) > 1:
                    parked.error = rest[1]
                    self._left["errors"] -= 1
                parked.event.set()

    def _deny_open(self) -> None:
        self._denied.update(self.phone.open)
        self.phone.over.update(self.phone.open)

    def _set_seen(self, node: Node, at: int) -> None:
        sql = "update nodes set seen_at = :at where session = :name"
        self._database.run(lambda tx: tx.execute(sql, at=at, name=node.name))

    def _new(self, packet: Packet) -> Packet:
        self._packets.append(packet)
        self._seen[packet.number] = set()
        return packet

    def _deliver(self, node: Node, packet: Packet) -> None:
        self._seen[packet.number].add(node.name[0])
        if packet.number not in node.answers:  # else it is a duplicate: dropped, or answered with the same octets
            crosses = self.is_crossing and not packet.challenge
            node.receive(packet, LATE if packet.number in self._answered else CROSSING if crosses else "")

    @property
    def is_crossing(self) -> bool:
        """Whether an Accept was stored so short a time ago that a request can still be on its way, which the device has
        sent before it got the Accept. When such a request was sent makes no difference to the nodes."""
        return self._accepted_at is not None and self.now() < self._accepted_at + HELD_US

    @property
    def _pauses(self) -> bool:
        """Whether a node waits before it polls: after a failed poll, or because another poll has just begun."""
        return self.waits and not self._parked

    # --- what distinguishes states --------------------------------------------------------------------------------

    def fingerprint(self) -> str:
        """Return a text that is equal in two states only if they have the same future."""
        now, phone = self.now(), self.phone
        prompts = self._database.rows(
            "select id, step, is_signed, key, user_key, owner, waiter, outcome, answer, expires_at > :now, consumed_by "
            "from prompts order by id, step",
            now=now,
        )
        stored = self._database.rows("select * from answers order by packet, node")
        stored += self._database.rows("select id, expires_at > :now, session from challenges order by id", now=now)
        stored += self._database.rows("select * from nodes order by session")
        parts = [
            *(_of_node(each, self._packets) for each in self.nodes),
            [(p.node.name, p.name, plain(p.what, now)) for p in self._parked if p.node.is_alive],
            [plain(each, now) for each in self._packets],
            [sorted(each) for each in self._seen.values()],
            [prompts, stored, self._left, sorted(self._answered), self._challenges, self._is_late, self.accepts],
            [phone.asked, phone.answers, sorted(phone.open), sorted(phone.over), sorted(phone.spent)],
            [self._is_over, self.is_crossing, sorted(self._denied)],
        ]
        text = re.sub(r'"expires_at": (\d+)', lambda found: f'"expires_at": {int(found[1]) > now}', repr(parts))
        ids: dict[str, str] = {}
        return _ID.sub(lambda found: ids.setdefault(found[0], f"id{len(ids)}"), text)

    def close(self) -> None:
        """End the tasks that wait, and free the database."""
        self._is_closed = True
        for parked in self._parked:
            parked.event.set()
        self._database.close()


def _of_node(node: Node, packets: list[Packet]) -> object:
    if not node.is_alive:
        return node.name
    second, now = node.second, node._clock()
    known: list[Conversation] = []
    for each in (*second._running._by_login.values(), *second._running._by_challenge.values(), *_watched(node)):
        if each not in known:
            known.append(each)
    memory = second.challenges
    return (
        node.name,
        node.answers,
        [node.left(each) for each in packets],
        [_of_conversation(each, now) for each in known],
        [known.index(each) for each in second._running._by_login.values()],
        [(key, known.index(each)) for key, each in second._running._by_challenge.items()],
        _of_calls(node.calls, known) if isinstance(node.calls, SharedCalls) else (),
        second._stopping,
        [plain(each, now) for each in memory._sessions.values()],
        [each.challenge in memory._over for each in packets],
        [each.count for each in second._prompts._open.values()],
    )


def _watched(node: Node) -> list[Conversation]:
    """Return the conversations whose prompt is in the store."""
    watched = node.calls._watched.values() if isinstance(node.calls, SharedCalls) else ()
    return [each for conversations in watched for each in conversations]


def _of_calls(calls: SharedCalls, known: list[Conversation]) -> object:
    return (
        [(key, [known.index(each) for each in watched]) for key, watched in calls._watched.items()],
        sorted(calls._owned),
        sorted(calls._failed),
        sorted(calls._read),
        sorted(calls._due),
        calls._hands_over,
    )


def _of_conversation(conversation: Conversation, now: int) -> object:
    newest = conversation._newest
    return (
        plain(conversation.session, now),
        conversation.key is None,
        conversation.handle,
        conversation.text,
        plain(conversation.result, now),
        type(conversation.error).__name__,
        conversation.taken,
        plain(conversation.prompt, now),
        (conversation.owns, conversation.asked, conversation.elsewhere, conversation.only_joins),
        (conversation.is_denied, conversation.scope is None, conversation.deadline > trio.current_time()),
        None if newest is None else (newest.login.arrival.request.identifier, newest.superseded, newest.elsewhere),
    )


def plain(value: object, now: int) -> object:
    """Return a value with its times replaced by whether they have passed."""
    if is_dataclass(value) and not isinstance(value, type):
        return {each.name: _timeless(each.name, getattr(value, each.name), now) for each in fields(value)}
    if isinstance(value, tuple | list):
        return [plain(each, now) for each in value]
    if isinstance(value, str | int | bool | None):
        return value
    if isinstance(value, partial):
        return [value.func.__qualname__, plain(value.args, now), plain(list(value.keywords.values()), now)]
    cells = getattr(value, "__closure__", None) or ()
    return [plain(each.cell_contents, now) for each in cells if is_dataclass(each.cell_contents)]


def _timeless(name: str, value: object, now: int) -> object:
    if name == "expires_at":
        return int(value) > now  # type: ignore[call-overload]
    if name == "left_us":
        return int(value) > 0  # type: ignore[call-overload]
    return plain(value, now)
