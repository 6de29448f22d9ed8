"""A small host for the endpoint agent: a directory with etc/{passwd,shadow,group,gshadow}, which the real programs of
the package shadow change with `--prefix`. The service is a fake in this process: it signs states and stores the
candidates of rotations. Example: `host = bare_host(tmp_path); service = Service(); service.want(DesiredUser("ann"));
agent(host, service).pass_(); assert "ann" in host.users()`.
"""

import os
import shutil
from base64 import b64encode
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sallyport.agent.endpoint.accounts import Account, read
from sallyport.agent.endpoint.agent import Endpoint, StateFile
from sallyport.agent.endpoint.executor import Executor, Options, Tools
from sallyport.agent.endpoint.files import Files, Mode
from sallyport.agent.endpoint.identity import FILE, Identity, StoredIdentity
from sallyport.agent.endpoint.memory import MemoryFile, ServiceClock
from sallyport.agent.endpoint.plan import plan
from sallyport.agent.endpoint.processes import NO_PROCESSES, Processes
from sallyport.agent.endpoint.rotation import Journal, Rotator
from sallyport.agentwire.envelope import UNCHANGED, envelope
from sallyport.agentwire.report import Action, Phase, Poll, PrivilegeStatus, Report, Rotation, rotation
from sallyport.agentwire.state import DesiredUser, Settings, State, Trigger, TriggerKind
from sallyport.base.clock import SECOND
from sallyport.base.errors import ServiceAway, ServiceRefused
from sallyport.base.wire import decode, dumps, loads
from sallyport.host import disk

INSTANCE = 7
NOW = 1_900_000_000 * SECOND
KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8g ann@laptop"
OTHER_KEY = "ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIAIDBAUGBwgJCgsMDQ4PEBESExQVFhcYGRobHB0eHyAh bob@laptop"
HASH = "$6$saltsaltsaltsalt$" + "a" * 86
OTHER_HASH = "$6$saltsaltsaltsalt$" + "b" * 86

needs_shadow = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("useradd") is None, reason="needs root and shadow's programs (passwd)"
)


class Crash(BaseException):
    """The crash of the process."""


@dataclass
class Fault:
    """A counter of the changes that the process makes. It crashes the process after `at` of them; if `at` is None, it
    never does.
    """

    at: int | None = None
    passed: int = 0

    def __call__(self) -> None:
        self.passed += 1
        if self.at is not None and self.passed > self.at:
            raise Crash


class FaultyFiles(Files):
    """Files that may crash the process before or after each change."""

    fault: Fault = Fault()

    def put(self, directory: int, name: str, octets: bytes, mode: Mode) -> None:
        self.fault()
        super().put(directory, name, octets, mode)
        self.fault()

    def remove(self, path: str) -> None:
        self.fault()
        super().remove(path)

    def hand_over(self, path: str, *, of: int, to: Mode) -> None:
        self.fault()
        super().hand_over(path, of=of, to=to)
        self.fault()


class FaultyTools(Tools):
    """Programs that may crash the process before or after each run."""

    fault: Fault = Fault()

    def account(self, program: str, *arguments: str) -> None:
        self.fault()
        super().account(program, *arguments)
        self.fault()

    def set_password(self, name: str, password_hash: str) -> None:
        self.fault()
        super().set_password(name, password_hash)
        self.fault()

    def check_sudoers(self, content: bytes) -> None:
        assert content.endswith(b"\n")  # the test host may have no visudo; test_isolated runs it


class Service:
    """A fake of the service, which signs one state and stores the candidates of rotations and the password in force.
    away: whether the service is unreachable. loses_of: the users whose acknowledged candidates it refuses to confirm.
    garbled: an answer that it sends instead of a state.
    """

    def __init__(self) -> None:
        self.key = self.former = Ed25519PrivateKey.generate()
        self.state_now = State(INSTANCE, 1, NOW)
        self.reports: list[Report] = []
        self.statuses: list[PrivilegeStatus] = []
        self.known: dict[str, set[str]] = {}
        self.current: dict[str, tuple[str, str]] = {}
        self.candidates: dict[str, Rotation] = {}
        self.away = False
        self.declines = False
        self.loses_of: set[str] = set()
        self.garbled: object = None
        self.fault = Fault()

    def want(self, *users: DesiredUser, **changes: object) -> None:
        """Set the users of the next state. changes: the other fields of that state."""
        version = self.state_now.version + 1
        self.state_now = replace(self.state_now, version=version, users=users, **changes)  # type: ignore[arg-type]

    def order(self, kind: TriggerKind, *users: str) -> None:
        """Add a trigger to the state."""
        number = max((each.id for each in self.state_now.triggers), default=0) + 1
        triggers = (*self.state_now.triggers, Trigger(number, kind, users))
        self.state_now = replace(self.state_now, version=self.state_now.version + 1, triggers=triggers)

    @property
    def public(self) -> str:
        """Return the public key that verifies the states, in base64."""
        return b64encode(self.key.public_key().public_bytes_raw()).decode()

    def rotate_key(self) -> None:
        """Sign with another key from now on. A state that is signed with the old key announces the new one."""
        self.former, self.key = self.key, Ed25519PrivateKey.generate()
        self.want(*self.state_now.users, key=self.public)

    # --- Service of the agent ---------------------------------------------------------------------------------

    def state(self, poll: Poll) -> object:
        self._reached()
        if self.garbled is not None:
            return self.garbled
        key = self.key if poll.key == self.public else self.former
        return UNCHANGED if poll.version == self.state_now.version else envelope(key.sign, self.state_now)

    def report(self, report: Report) -> None:
        self._reached()
        self.reports.append(decode(Report, loads(dumps(report), most=10**6)))

    def privileges(self, status: PrivilegeStatus) -> None:
        self._reached()
        self.statuses.append(decode(PrivilegeStatus, loads(dumps(status), most=10**6)))

    def rotation(self, message: Rotation) -> None:
        self.fault()
        self._reached()
        message = rotation(dumps(message))
        if self.declines:
            raise ServiceRefused("not now", 403)
        if message.user in self.loses_of and message.phase is Phase.CONFIRM:
            raise ServiceRefused("rotation not found", 404)
        if message.phase is Phase.ESCROW:
            self.candidates[message.id] = message
            self.known.setdefault(message.user, set()).add(message.password_hash)
        elif message.phase is Phase.CONFIRM and message.id in self.candidates:
            confirmed = self.candidates.pop(message.id)
            self.current[message.user] = (confirmed.password, confirmed.password_hash)
            users = (
                replace(user, password_hash=confirmed.password_hash) if user.name == message.user else user
                for user in self.state_now.users
            )
            self.want(*users)
        elif message.phase is Phase.ABANDON:
            self.candidates.pop(message.id, None)
        self.fault()

    def _reached(self) -> None:
        if self.away:
            raise ServiceAway("no route to host")


@dataclass
class Host:
    """A host in a directory. wall: the wall clock of the host, in microseconds."""

    prefix: Path
    state_dir: Path
    options: Options = field(default_factory=Options)
    fault: Fault = field(default_factory=Fault)
    wall: int = NOW
    since_boot: int = 0
    files_type: type[FaultyFiles] = FaultyFiles

    @property
    def files(self) -> FaultyFiles:
        files = self.files_type(self.prefix, owner=os.geteuid())
        files.fault = self.fault
        return files

    def users(self) -> dict[str, Account]:
        return dict(read(self.files).users)

    def groups_of(self, name: str) -> set[str]:
        return set(self.users()[name].groups)

    def path(self, path: str) -> Path:
        return self.prefix / path.lstrip("/")

    def write(self, path: Path, octets: bytes) -> None:
        """Write one of the agent's own files."""
        self.fault()
        disk.write(path, octets)
        self.fault()


class Agent:
    """An agent that has just started and has read everything from disk."""

    def __init__(
        self,
        host: Host,
        service: Service,
        tools: FaultyTools | None = None,
        processes: Processes = NO_PROCESSES,
    ) -> None:
        tools = tools or FaultyTools(host.prefix)
        tools.fault = host.fault
        service.fault = host.fault
        memory = MemoryFile(host.state_dir / "memory.json", host.write)
        self.executor = Executor(host.files, tools, memory, host.options, processes)
        self.rotator = Rotator(self.executor, Journal(host.state_dir / "rotation.json", host.write), service)
        self.clock = ServiceClock(lambda: host.wall, lambda: host.since_boot, "boot")
        self.service = service
        states = StateFile(host.state_dir / "state.json", host.write)
        path = host.state_dir / FILE
        if not path.exists():
            Identity(path, StoredIdentity(INSTANCE, service.public)).save()
        enrolled = Identity.load(host.state_dir)
        assert enrolled is not None
        identity = Identity(path, enrolled.known, host.write)
        self.signs_of_life = 0
        self.endpoint = Endpoint(
            self.executor, self.rotator, service, identity, states, self.clock, alive=self._count_sign_of_life
        )

    def _count_sign_of_life(self) -> None:
        self.signs_of_life += 1

    def pass_(self, *, look: bool = False) -> Report:
        """Poll the service if it is reachable, apply the state, and report."""
        if not self.service.away:
            self.endpoint.poll(0)
        reported = self.endpoint.run(look=look)
        assert reported is not None
        if not self.service.away:
            self.service.report(reported[0])
            self.service.privileges(reported[1])
        return reported[0]

    def left(self) -> list[str]:
        """Return the steps that are still needed, each as one line."""
        assert self.endpoint.state is not None
        steps = plan(self.endpoint.state, read(self.executor.files), self.executor, self.endpoint.now()).steps
        return [f"{step.sign} {step.kind} {step.name} {step.detail}" for step in steps]


def errors(actions: Iterable[Action]) -> list[str]:
    """Return the failed actions."""
    return [f"{action.kind} {action.name}: {action.error}" for action in actions if action.error]


def bare_host(directory: Path, **options: object) -> Host:
    """Return a host with the accounts root, daemon, bob (1500) and eve (1501), and the group sudo."""
    prefix = directory / "root"
    etc = prefix / "etc"
    for each in ("etc/sudoers.d", "etc/skel", "home", "srv", "var/log", "var/lib"):
        (prefix / each).mkdir(parents=True)
    (etc / "passwd").write_text(
        "root:x:0:0:root:/root:/bin/bash\ndaemon:x:1:1:daemon:/usr/sbin:/usr/sbin/nologin\n"
        "bob:x:1500:1500:Bob,,,:/home/bob:/bin/bash\neve:x:1501:1501::/home/eve:/bin/sh\n"
    )
    (etc / "shadow").write_text(
        f"root:*:19000:0:99999:7:::\ndaemon:*:19000:0:99999:7:::\nbob:{HASH}:19000:0:99999:7:::\n"
        "eve:!:19000:0:99999:7:::\n"
    )
    (etc / "group").write_text("root:x:0:\ndaemon:x:1:\nsudo:x:27:eve\nstaff:x:50:\nbob:x:1500:\neve:x:1501:\n")
    (etc / "gshadow").write_text("root:*::\ndaemon:*::\nsudo:*::eve\nstaff:*::\nbob:!::\neve:!::\n")
    (etc / "login.defs").write_text(
        "UID_MIN 1000\nUID_MAX 60000\nGID_MIN 1000\nGID_MAX 60000\nENCRYPT_METHOD SHA512\n"
        "SYS_GID_MIN 101\nSYS_GID_MAX 999\nUSERGROUPS_ENAB yes\nCREATE_HOME yes\nUMASK 077\n"
    )
    (etc / "sudoers").write_text(
        "Defaults env_reset\nroot ALL=(ALL:ALL) ALL\n%sudo ALL=(ALL:ALL) ALL\n@includedir /etc/sudoers.d\n"
    )
    for name, number in (("bob", 1500), ("eve", 1501)):
        (prefix / "home" / name).mkdir()
        os.chown(prefix / "home" / name, number, number)
    for each in prefix.rglob("*"):
        if each.is_dir():
            each.chmod(0o755)
    prefix.chmod(0o755)
    state_dir = directory / "state"
    state_dir.mkdir()
    return Host(prefix, state_dir, Options(**options))  # type: ignore[arg-type]


MakeService = Callable[[], Service]
DEFAULTS = Settings()
