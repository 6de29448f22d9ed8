"""One pass of the agent: fetch the newest state, apply the state to the host, rotate passwords, and report to the
service.

If the service cannot be reached, a pass uses the last state, which is stored on disk and remains valid. So accounts
expire on time, and changes that the agent did not make are undone.
"""

import secrets
import socket
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Final, TypeVar

from sallyport import __version__
from sallyport.agent.endpoint.accounts import Accounts, read
from sallyport.agent.endpoint.discovery import discover, privileges, remember_privileged
from sallyport.agent.endpoint.executor import Executor
from sallyport.agent.endpoint.identity import Identity
from sallyport.agent.endpoint.keys import printable
from sallyport.agent.endpoint.memory import ServiceClock
from sallyport.agent.endpoint.plan import Plan, PlanStep, plan
from sallyport.agent.endpoint.rotation import KIND, Rotator
from sallyport.agent.endpoint.service import Service
from sallyport.agentwire.envelope import Position, believe, content, follow, open_envelope
from sallyport.agentwire.fields import MAX_FOUND, MAX_REPORT, MAX_STATE
from sallyport.agentwire.report import (
    Action,
    Discovery,
    Drift,
    DriftKind,
    Managed,
    Outcome,
    Poll,
    Privilege,
    PrivilegeStatus,
    Report,
)
from sallyport.agentwire.state import State, Trigger, TriggerKind
from sallyport.base.clock import SECOND
from sallyport.base.errors import ConfigError, HostError, ServiceAway, ServiceRefused, WireError
from sallyport.base.text import counted
from sallyport.base.wire import dumps, loads
from sallyport.host import disk

_WRONG_CLOCK_US: Final = 300 * SECOND
"""Difference between the clocks of host and service above which the agent reports drift, in microseconds. A larger
difference causes failures of Kerberos and one-time passwords."""


MessageT = TypeVar("MessageT", Report, PrivilegeStatus)


class StateFile:
    """The file with the last accepted state and the service's signature."""

    def __init__(self, path: Path, write: Callable[[Path, bytes], None] = disk.write) -> None:
        self._path = path
        self._write = write

    def read(self) -> object:
        """Return the signed envelope of the state. Raises WireError if the file is missing or invalid."""
        try:
            return loads(self._path.read_bytes(), most=MAX_STATE)
        except OSError as error:
            raise WireError(str(error.strerror)) from None

    def put(self, answer: object) -> None:
        """Store the signed envelope of a state. When this method returns, the envelope is on disk. Raises
        ConfigError."""
        self._write(self._path, dumps(answer))


class Endpoint:
    """The agent of one host."""

    def __init__(
        self,
        executor: Executor,
        rotator: Rotator,
        service: Service,
        identity: Identity,
        states: StateFile,
        clock: ServiceClock | None = None,
        *,
        alive: Callable[[], None] = lambda: None,
    ) -> None:
        self._executor = executor
        self._memory = executor.memory
        self._rotator = rotator
        self._service = service
        self._identity = identity
        self._states = states
        self._clock = clock or ServiceClock()
        self._alive = alive
        self._passed_at = 0
        self.state: State | None = self._stored_state()

    # --- the state --------------------------------------------------------------------------------------------

    def poll(self, wait_s: int) -> bool:
        """Poll for a newer state. Return whether there is one.

        Raises ServiceAway, ServiceRefused. Raises WireError if the answer is not valid; the present state then remains
        valid.
        """
        answer = self._service.state(Poll(self.state.version if self.state else 0, wait_s, self._identity.key))
        signed = open_envelope(answer)
        if signed is None:
            return False
        state = believe(signed, self._identity.verify)
        position = follow(self._position(), state, instance=self._identity.instance)
        if self.state is not None and position.version == self.state.version:
            return False
        self._states.put(answer)
        self._identity.follow(state.key)
        anchor = self._clock.anchor(state.issued)
        followed = replace(self._memory.now, version=position.version, content=position.content, anchor=anchor)
        self._memory.change(followed)
        self.state = state
        return True

    def _position(self) -> Position:
        """Return the version and digest of the last accepted state, for the comparison with a new state. If a crash
        came before the memory was written, the state on disk is newer than the memory."""
        at = self._memory.now.position
        if self.state is not None and self.state.version > at.version:
            return Position(self.state.version, content(self.state))
        return at

    def preview(self) -> Plan | None:
        """Return the plan of a pass with the newest state, without changing anything. Return None if there is no state.

        Raises ServiceAway, ServiceRefused, WireError.
        """
        signed = open_envelope(self._service.state(Poll(key=self._identity.key)))
        state = self.state if signed is None else believe(signed, self._identity.verify)
        if state is None:
            return None
        if state.instance != self._identity.instance:
            raise WireError("instance: belongs to another agent")
        return plan(state, read(self._executor.files), self._executor, self.now(), rotating=self._rotator.unended)

    def _stored_state(self) -> State | None:
        """Return the state on disk. Return None if the file is missing, if the state is older than the memory, or if
        the signature is invalid."""
        try:
            signed = open_envelope(self._states.read())
            state = believe(signed, self._identity.remembers) if signed else None
            if state is not None:
                follow(self._memory.now.position, state, instance=self._identity.instance)
                self._identity.follow(state.key)  # not yet done if the agent crashed after it stored the state
        except WireError:
            return None
        return state

    def now(self) -> int:
        """Return the agent's estimate of the service's time, in microseconds."""
        return self._clock.now(self._memory.now.anchor)

    @property
    def is_unfinished(self) -> bool:
        """Whether a password rotation or an order of the service is not completed yet."""
        return bool(self._rotator.unended or (self.state is not None and any(self._open_triggers(self.state))))

    def next_expiry(self) -> int | None:
        """Return the next time at which an account expires, in microseconds, or None if no account expires.

        An account that had expired before the last pass does not count. If an account has expired since the last pass,
        the returned time is in the past.
        """
        expiries = (user.expires for user in self.state.users) if self.state else ()
        return min((at for at in expiries if at is not None and at > self._passed_at), default=None)

    # --- one pass ---------------------------------------------------------------------------------------------

    def run(self, *, look: bool = False) -> tuple[Report, PrivilegeStatus] | None:
        """Apply the state to the host. Return the messages for the service, or None if there is no state.

        look: whether to discover accounts even if the service has not ordered a discovery. Raises HostError if the
        files of the host cannot be read at all.
        """
        state = self.state
        if state is None:
            return None
        self._passed_at = self.now()
        actions: list[Action] = []
        rotating = self._reconcile(actions)
        planned = plan(state, read(self._executor.files), self._executor, self.now(), rotating=rotating)
        actions += [*planned.refused, *self._execute(planned.steps)]
        outcomes = [] if rotating else list(self._rotate_passwords(state, actions))
        accounts = read(self._executor.files)
        discovery = None
        if look or any(each.kind is TriggerKind.DISCOVER for each in self._open_triggers(state)):
            discovery = discover(accounts, self._executor, self.now())
        outcomes += self._own_outcomes(state, actions)
        found, drift = privileges(state, accounts, self._executor)
        self._remember(actions, outcomes, state, found)
        status = PrivilegeStatus(self.now(), state.version, found, drift)
        return _bounded(self._report(state, accounts, actions, planned.drift, discovery)), _bounded(status)

    def _report(
        self,
        state: State,
        accounts: Accounts,
        actions: list[Action],
        drift: tuple[Drift, ...],
        discovery: Discovery | None,
    ) -> Report:
        return Report(
            id=secrets.token_urlsafe(16),
            at=self.now(),
            version=state.version,
            agent=__version__,
            system=printable(_system(), 200),
            host=printable(socket.gethostname(), 253),
            clock_us=self._clock.ahead(self._memory.now.anchor),
            managed=self._managed(accounts),
            actions=tuple(actions[:MAX_FOUND]),
            drift=(*drift, *self._clock_drift())[:MAX_FOUND],
            outcomes=self._memory.now.outcomes,
            discovery=discovery,
        )

    def _execute(self, steps: tuple[PlanStep, ...]) -> Iterator[Action]:
        """Execute every step, even if an earlier step has failed. Yield an action with the result of each step."""
        for step in steps:
            self._alive()
            error = _try(step)
            detail = f"{step.sign} {step.detail}".strip()
            yield Action(step.kind, step.name, printable(detail, 500), printable(error, 500))

    def _reconcile(self, actions: list[Action]) -> str:
        """Complete or abandon an interrupted rotation. If the rotation still cannot be ended, return the name of its
        user. Otherwise return an empty text."""
        try:
            action = self._rotator.reconcile()
        except (ServiceAway, HostError, ConfigError) as error:
            actions.append(Action(KIND, self._rotator.unended, "not ended yet", printable(str(error), 500)))
            return self._rotator.unended
        if action is not None:
            actions.append(action)
        return ""

    def _open_triggers(self, state: State) -> Iterator[Trigger]:
        """Return the triggers (orders of the service) in a state that have no outcome yet."""
        ended = {outcome.trigger for outcome in self._memory.now.outcomes}
        return (trigger for trigger in state.triggers if trigger.id not in ended)

    def _rotate_passwords(self, state: State, actions: list[Action]) -> Iterator[Outcome]:
        """Carry out the triggers that order the rotation of passwords. Yield the outcome of each trigger that has
        ended.

        The journal has room for only one rotation. So if a rotation could not be ended, the remaining rotations are
        left to the next pass.
        """
        for trigger in list(self._open_triggers(state)):
            if trigger.kind is not TriggerKind.ROTATE:
                continue
            errors = [] if trigger.users else ["it names nobody"]
            later = False
            for user in trigger.users:
                self._alive()
                try:
                    self._rotator.rotate(user, trigger.id, state.policies)
                except ServiceAway as error:
                    actions.append(Action(KIND, user, "not ended yet", printable(str(error), 500)))
                    if self._rotator.unended:
                        return
                    later = True
                    break
                except (HostError, ServiceRefused, ConfigError) as error:
                    errors.append(f"{user}: {error}")
                    actions.append(Action(KIND, user, "", printable(str(error), 500)))
                    if self._rotator.unended:
                        return
                else:
                    actions.append(Action(KIND, user, "the password was changed"))
            if not later:
                yield Outcome(trigger.id, printable("; ".join(errors), 500))

    def _own_outcomes(self, state: State, actions: list[Action]) -> list[Outcome]:
        """Return the outcomes of the SYNC and DISCOVER triggers. Every pass carries out these triggers."""
        failed = sum(1 for action in actions if action.error)
        error = f"{failed} of {counted(len(actions), 'action')} failed" if failed else ""
        sync = [Outcome(each.id, error) for each in self._open_triggers(state) if each.kind is TriggerKind.SYNC]
        return sync + [Outcome(each.id) for each in self._open_triggers(state) if each.kind is TriggerKind.DISCOVER]

    def _remember(
        self, actions: list[Action], outcomes: list[Outcome], state: State, found: tuple[Privilege, ...]
    ) -> None:
        try:
            remember_privileged(found, self._executor)
            self._memory.ended(outcomes, listed=(trigger.id for trigger in state.triggers))
        except ConfigError as error:
            actions.append(Action("remember", "", "", str(error)[:500]))

    def _managed(self, accounts: Accounts) -> tuple[Managed, ...]:
        own = ((kept, accounts.users.get(kept.name)) for kept in self._memory.now.kept)
        return tuple(Managed(kept.name, at.uid, kept.made, at.locked) for kept, at in own if at is not None)

    def _clock_drift(self) -> Iterator[Drift]:
        ahead = self._clock.ahead(self._memory.now.anchor)
        if abs(ahead) > _WRONG_CLOCK_US:
            way = "ahead of" if ahead > 0 else "behind"
            yield Drift(DriftKind.CLOCK, "", f"{abs(ahead) // SECOND} s {way} the service")


def _try(step: PlanStep) -> str:
    try:
        step.do()
    except (HostError, ConfigError, OSError) as error:
        return str(error) or "failed"
    return ""


def _bounded(message: MessageT) -> MessageT:
    """Return a message that is at most MAX_REPORT octets long, because the service accepts no longer message. If the
    message is longer, its lists are truncated."""
    while len(dumps(message)) > MAX_REPORT:
        message = replace(message, drift=message.drift[: len(message.drift) // 2])
        if isinstance(message, Report):
            message = replace(message, actions=message.actions[: len(message.actions) // 2])
        else:
            message = replace(message, privileged=message.privileged[: len(message.privileged) // 2])
    return message


def _system() -> str:
    """Return the operating system and the kernel of the host as text for admins."""
    import platform  # imported here, to keep the start short

    try:
        name = platform.freedesktop_os_release().get("PRETTY_NAME", "Linux")
    except OSError:
        name = "Linux"
    return f"{name}, kernel {platform.release()}"
