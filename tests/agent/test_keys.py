"""The agent's own key. At each instant, and after a crash at any point, the file contains a valid key."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from sallyport.agent import file
from sallyport.agent.keys import EXCHANGE, RENEW, KeyRing
from sallyport.base.clock import SECOND, iso
from sallyport.base.errors import ConfigError, ServiceAway, ServiceRefused
from sallyport.base.secret import Secret, token_hash

DAY = 86_400 * SECOND
NOW = 1_767_225_600 * SECOND


class Crash(BaseException):
    """The crash of the process."""


@dataclass
class KeyService:
    """The part of the service: the hashes of the valid keys, and crashes before and after the registration of a key."""

    good: set[str] = field(default_factory=lambda: {token_hash("spk_enrolment")})
    asked: list[tuple[str, dict[str, object]]] = field(default_factory=list)
    before: Callable[[], None] = lambda: None
    after: Callable[[], None] = lambda: None
    answer: Mapping[str, object] = field(default_factory=lambda: {"renewAt": iso(NOW + 30 * DAY), "keyId": 1})

    def post(
        self, path: str, body: Mapping[str, object], *, key: Secret | None = None, timeout_s: float = 30.0
    ) -> dict[str, object]:
        self.asked.append((path, dict(body)))
        assert key is not None
        if token_hash(key.reveal().decode()) not in self.good:
            raise ServiceRefused("invalid token", 401)
        self.before()
        self.good.add(str(body["keyHash"]))
        self.after()
        return dict(self.answer)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """A new agent's file."""
    path = tmp_path / "agent.toml"
    path.write_text('service = "https://sallyport.example"\nenrolment_key = "spk_enrolment"\n\n[directory]\n')
    path.chmod(0o600)
    return path


def ring(path: Path, keeper: KeyService, now: int = NOW) -> KeyRing:
    """Return the key ring of a process that has just started."""
    return KeyRing(path, "directory", keeper, clock=lambda: now)


def raising(error: BaseException) -> Callable[[], None]:
    """Return a step that raises the error."""

    def step() -> None:
        raise error

    return step


def stored(path: Path) -> file.AgentCredentials:
    """Return the keys in the file."""
    return file.read(path, "directory").credentials


def test_an_enrolment(path: Path) -> None:
    """The agent makes a key, sends only its hash, and replaces the enrolment key in the file with it."""
    keeper = KeyService()
    keys = ring(path, keeper)
    with pytest.raises(ConfigError, match="no key"):
        keys.key  # noqa: B018  asked for too early
    assert keys.enrol({"instanceId": 7}) == keeper.answer
    key = keys.key.reveal().decode()
    assert keeper.asked == [(EXCHANGE, {"instanceId": 7, "keyHash": token_hash(key)})]
    assert key.startswith("spk_")
    assert stored(path) == file.AgentCredentials(None, keys.key, None, iso(NOW + 30 * DAY))
    assert keys.enrol() is None
    assert not keys.renew_when_due()
    assert len(keeper.asked) == 1


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("error", [ServiceAway("away"), Crash()], ids=["lost", "crash"])
def test_an_interrupted_enrolment(path: Path, where: str, error: BaseException) -> None:
    """An interrupted enrolment is repeated with the same key, by the same process or by the next one."""
    keeper = KeyService()
    setattr(keeper, where, raising(error))
    keys = ring(path, keeper)
    with pytest.raises(type(error)):
        keys.enrol()
    pending = stored(path).next_key
    setattr(keeper, where, lambda: None)
    again = keys if isinstance(error, ServiceAway) else ring(path, keeper)
    again.enrol()
    assert again.key == pending
    assert len(keeper.good) == 2


@pytest.mark.parametrize("where", ["before", "after"])
def test_an_interrupted_renewal(path: Path, where: str) -> None:
    """The former key stays in the file until the service knows its successor. Then the successor replaces it."""
    keeper = KeyService()
    ring(path, keeper).enrol()
    keys = ring(path, keeper, NOW + 30 * DAY)
    former = keys.key
    setattr(keeper, where, raising(Crash()))
    with pytest.raises(Crash):
        keys.renew_when_due()
    assert stored(path).key == former
    setattr(keeper, where, lambda: None)
    keeper.answer = {"renewAt": iso(NOW + 60 * DAY)}
    keys = ring(path, keeper, NOW + 30 * DAY)
    assert keys.key == former
    assert keys.renew_when_due()
    assert keys.key != former
    assert keeper.asked[-1] == (RENEW, {"keyHash": token_hash(keys.key.reveal().decode())})
    assert len(keeper.good) == 3
    assert not keys.renew_when_due()


def test_a_key_of_unknown_age_is_renewed(path: Path) -> None:
    """A key whose time is unknown is renewed, because an admin may have put it into the file."""
    path.write_text('service = "https://s.example"\nkey = "spk_enrolment"\nrenew_at = "soon"\n')
    assert ring(path, KeyService()).renew_when_due()
    assert stored(path).renew_at == iso(NOW + 30 * DAY)


def test_a_conflicting_key_is_replaced(path: Path) -> None:
    """After a conflict the next attempt uses another key."""
    keeper = KeyService(before=raising(ServiceRefused("known already", 409)))
    keys = ring(path, keeper)
    for _ in range(2):
        with pytest.raises(ServiceRefused):
            keys.enrol()
    assert stored(path).next_key is None
    assert len({str(body["keyHash"]) for _, body in keeper.asked}) == 2


def test_a_refusal_keeps_everything(path: Path) -> None:
    """If the key is revoked, the file stays unchanged. The agent reads a new enrolment key in the file without a
    restart.
    """
    keeper = KeyService(good=set())
    keys = ring(path, keeper)
    with pytest.raises(ServiceRefused):
        keys.enrol()
    assert stored(path).enrolment_key == Secret(b"spk_enrolment")
    file.rewrite(path, {"enrolment_key": "spk_another"})
    keeper.good.add(token_hash("spk_another"))
    keys.reload()
    assert keys.enrolment_key == Secret(b"spk_another")
    assert keys.enrol() is not None


@pytest.mark.parametrize("answer", [{}, {"renewAt": None}, {"renewAt": "hello"}, {"renewAt": "9" * 50}], ids=str)
def test_an_answer_of_another_server(path: Path, answer: dict[str, object]) -> None:
    """An answer without a valid renewAt does not come from the service, so the enrolment key stays."""
    with pytest.raises(ServiceAway, match="not from the service"):
        ring(path, KeyService(answer=answer)).enrol()
    assert stored(path).enrolment_key == Secret(b"spk_enrolment")
    assert stored(path).key is None


def test_a_full_disk_costs_no_key(path: Path) -> None:
    """A key that cannot be written to the file is not sent to the service."""
    keeper = KeyService()
    keys = ring(path, keeper)
    path.unlink()
    with pytest.raises(ConfigError):
        keys.enrol()
    assert keeper.asked == []


def renewed(path: Path, keeper: KeyService) -> KeyRing:
    """Return the key ring of an agent that has renewed its key."""
    ring(path, keeper).enrol()
    keys = ring(path, keeper, NOW + 30 * DAY)
    assert keys.renew_when_due()
    return keys


def test_a_service_that_was_restored(path: Path) -> None:
    """A restored service that knows only the former key receives the present key from the agent."""
    keeper = KeyService()
    keys = renewed(path, keeper)
    former, present = stored(path).former_key, keys.key
    assert former is not None and former != present
    keeper.good = {token_hash(former.reveal().decode())}
    keys.refused(ServiceRefused("invalid token", 401))
    assert keys.key == present
    assert keeper.good == {token_hash(each.reveal().decode()) for each in (former, present)}
    assert stored(path).former_key == former


def test_a_key_that_was_revoked(path: Path) -> None:
    """If the service also refuses the former key, or refuses for another reason, nothing changes."""
    keeper = KeyService()
    keys = renewed(path, keeper)
    before = path.read_text()
    keeper.good = set()
    keys.refused(ServiceRefused("invalid token", 401))
    asked = len(keeper.asked)
    keys.refused(ServiceRefused("role not allowed", 403))
    assert len(keeper.asked) == asked
    assert path.read_text() == before


def test_an_enrolment_forgets_the_former_key(path: Path) -> None:
    """An enrolment removes the former key from the file, because that key belongs to another identity."""
    keeper = KeyService()
    renewed(path, keeper)
    file.rewrite(path, {"enrolment_key": "spk_enrolment"})
    ring(path, keeper).enrol()
    assert stored(path).former_key is None
