"""A small agent for tests of the service: it verifies each signed state and keeps its position."""

from base64 import b64decode
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PublicKey

from sallyport.agentwire.envelope import Position, Signed, believe, follow
from sallyport.agentwire.report import Phase, Report, Rotation
from sallyport.agentwire.state import DesiredUser, Rules, State
from sallyport.areas.agents.desired import PolicyRules
from sallyport.areas.agents.machines import Machine, Registered
from sallyport.areas.tenancy.keys.key import NewKey
from sallyport.areas.users.accounts.account import UserChange
from sallyport.areas.users.groups.group import Group
from sallyport.areas.users.membership import Action
from sallyport.base.errors import StoreError
from sallyport.base.sha512crypt import sha512_crypt
from sallyport.store.model import Tx
from sallyport.web.scope import Caller
from tests.areas import Areas


async def enrolment(areas: Areas, instance_id: int | None = None, uses: int | None = None) -> Caller:
    """Return a caller with an enrolment key that is valid for the domain, or for one instance of the domain."""
    _, key = await areas.keys.create(NewKey(areas.domain, instance_id=instance_id, uses=uses))
    return await areas.keys.authenticate(key)


def machine(name: str = "", **fields: str) -> Machine:
    """Return the description that the agent of a Linux machine sends."""
    described = Machine(id=f"id-{name or 'x'}", name=name, os_id=1, public_ip="", private_ip="")
    return replace(described, **fields)  # type: ignore[arg-type]


@dataclass
class Host:
    """A registered machine and the newest state of its agent."""

    areas: Areas
    made: Registered
    position: Position = field(default_factory=Position)
    state: State | None = None

    @classmethod
    async def register(cls, areas: Areas, name: str) -> "Host":
        """Register a new machine of the domain."""
        return cls(areas, await areas.agents.machines.register(await enrolment(areas), None, machine(name)))

    @property
    def id(self) -> int:
        """Return the machine's instance id."""
        return self.made.instance_id

    async def poll(self, wait_s: float = 0) -> State | None:
        """Poll for a newer state, verify it and keep it. Return None if there is no newer state."""
        answer = await self.areas.agents.states.poll(
            self.areas.tenant, self.made.domain_id, self.id, self.position.version, wait_s, key=self.made.state_key
        )
        if answer == {"unchanged": True}:
            return None
        signed = Signed(*(b64decode(str(answer[name])) for name in ("payload", "signature")))
        state = believe(signed, self.verify)
        self.position = follow(self.position, state, instance=self.id)
        self.state = state
        self.made = replace(self.made, state_key=b64decode(state.key))
        return state

    def verify(self, signature: bytes, octets: bytes) -> bool:
        """Return whether the signature is valid under the state key of the registration."""
        try:
            Ed25519PublicKey.from_public_bytes(self.made.state_key).verify(signature, octets)
        except InvalidSignature:
            return False
        return True

    async def fetch(self) -> State:
        """Return the current state."""
        await self.poll()
        assert self.state is not None
        return self.state

    async def user(self, name: str) -> DesiredUser:
        """Return the account that the state demands for a user."""
        found = (await self.fetch()).user(name)
        assert found is not None, f"the state has no user {name}"
        return found

    async def assign(self, name: str, action: Action = Action.ADD) -> None:
        """Assign a user of the domain to the machine, or remove the assignment."""
        user = await self.areas.users.load(self.areas.domain, name)
        assert user is not None
        await self.areas.instances.assign_users(self.areas.domain, [self.id], [user.id], action)

    async def report(self, number: str = "report-0001", **fields: object) -> bool:
        """Send a report. Return False if the service has already received it."""
        described = Report(number, at=self.areas.clock(), version=self.position.version)
        return await self.areas.agents.reports.take(self.id, replace(described, **fields))  # type: ignore[arg-type]

    async def rotate(self, phase: Phase, password: str, *, user: str = "ann", number: str = "rotation-1") -> None:
        """Send one step of a password rotation."""
        message = Rotation(number, user, phase)
        if phase is Phase.ESCROW:
            message = replace(message, password=password, password_hash=sha512_crypt(password.encode(), "salt"))
        await self.areas.agents.rotations.take(self.id, message)


async def user(areas: Areas, name: str, **fields: object) -> int:
    """Add a user to the domain and return its id."""
    return await areas.accounts.add(areas.domain, UserChange(name, **fields))  # type: ignore[arg-type]


class Failing:
    """Password policies that raise StoreError for one machine."""

    def __init__(self, policies: PolicyRules) -> None:
        self._policies = policies
        self.broken = 0

    def demands(self, tx: Tx, instance_id: int, policy_ids: Sequence[int]) -> tuple[Rules, ...]:
        if instance_id == self.broken:
            raise StoreError("the search took longer than 10 s")
        return self._policies.demands(tx, instance_id, policy_ids)


async def group(host: Host, name: str, *users: int, **policy: str) -> int:
    """Add a group that has this machine and these users."""
    areas = host.areas
    group_id = await areas.groups.add(areas.domain, Group(name), [host.id])
    await areas.groups.assign_users(areas.domain, group_id, users, Action.ADD)
    if policy:
        await areas.groups.set_credential_policy(areas.domain, group_id, dict(policy))
    return group_id
