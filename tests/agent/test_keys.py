"""The agent's own key: at every instant, and after a crash at any, the file holds one that is good."""

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
    """The process ends here."""


@dataclass
class Keeper:
    """The service's part: which hashes are good, and what crashes. before, after: of the registration."""

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


def ring(path: Path, keeper: Keeper, now: int = NOW) -> KeyRing:
    """The key ring of a process that has just begun."""
    return KeyRing(path, "directory", keeper, clock=lambda: now)


def raising(error: BaseException) -> Callable[[], None]:
    """A step that ends so."""

    def step() -> None:
        raise error

    return step


def kept(path: Path) -> file.Credentials:
    """What the file holds."""
    return file.read(path, "directory").credentials


def test_an_enrolment(path: Path) -> None:
    """The agent makes a key, tells its hash alone, and has it in the file in the enrolment key's place."""
    keeper = Keeper()
    keys = ring(path, keeper)
    with pytest.raises(ConfigError, match="no key"):
        keys.key  # noqa: B018  asked for too early
    assert keys.enrol({"instanceId": 7}) == keeper.answer
    key = keys.key.reveal().decode()
    assert keeper.asked == [(EXCHANGE, {"instanceId": 7, "keyHash": token_hash(key)})]
    assert key.startswith("spk_")
    assert kept(path) == file.Credentials(None, keys.key, None, iso(NOW + 30 * DAY))
    assert keys.enrol() is None
    assert not keys.renew_when_due()
    assert len(keeper.asked) == 1


@pytest.mark.parametrize("where", ["before", "after"])
@pytest.mark.parametrize("error", [ServiceAway("away"), Crash()], ids=["lost", "crash"])
def test_an_enrolment_that_is_cut_off(path: Path, where: str, error: BaseException) -> None:
    """Done again with the same key, by the same process or the next."""
    keeper = Keeper()
    setattr(keeper, where, raising(error))
    keys = ring(path, keeper)
    with pytest.raises(type(error)):
        keys.enrol()
    pending = kept(path).next_key
    setattr(keeper, where, lambda: None)
    again = keys if isinstance(error, ServiceAway) else ring(path, keeper)
    again.enrol()
    assert again.key == pending
    assert len(keeper.good) == 2


@pytest.mark.parametrize("where", ["before", "after"])
def test_a_renewal_that_is_cut_off(path: Path, where: str) -> None:
    """The former key is in the file until its successor is known to the service; then the successor."""
    keeper = Keeper()
    ring(path, keeper).enrol()
    keys = ring(path, keeper, NOW + 30 * DAY)
    former = keys.key
    setattr(keeper, where, raising(Crash()))
    with pytest.raises(Crash):
        keys.renew_when_due()
    assert kept(path).key == former
    setattr(keeper, where, lambda: None)
    keeper.answer = {"renewAt": iso(NOW + 60 * DAY)}
    keys = ring(path, keeper, NOW + 30 * DAY)
    assert keys.key == former
    assert keys.renew_when_due()
    assert keys.key != former
    assert keeper.asked[-1] == (RENEW, {"keyHash": token_hash(keys.key.reveal().decode())})
    assert len(keeper.good) == 3
    assert not keys.renew_when_due()


def test_a_key_whose_time_nobody_knows_is_renewed(path: Path) -> None:
    """An admin may have put the key into the file."""
    path.write_text('service = "https://s.example"\nkey = "spk_enrolment"\nrenew_at = "soon"\n')
    assert ring(path, Keeper()).renew_when_due()
    assert kept(path).renew_at == iso(NOW + 30 * DAY)


def test_a_key_that_is_anothers_is_not_tried_again(path: Path) -> None:
    """After a conflict the next try is with another key."""
    keeper = Keeper(before=raising(ServiceRefused("known already", 409)))
    keys = ring(path, keeper)
    for _ in range(2):
        with pytest.raises(ServiceRefused):
            keys.enrol()
    assert kept(path).next_key is None
    assert len({str(body["keyHash"]) for _, body in keeper.asked}) == 2


def test_a_refusal_keeps_everything(path: Path) -> None:
    """A revoked key leaves the file as it is; a new enrolment key in it is seen without a restart."""
    keeper = Keeper(good=set())
    keys = ring(path, keeper)
    with pytest.raises(ServiceRefused):
        keys.enrol()
    assert kept(path).enrolment_key == Secret(b"spk_enrolment")
    file.rewrite(path, {"enrolment_key": "spk_another"})
    keeper.good.add(token_hash("spk_another"))
    keys.reload()
    assert keys.enrolment_key == Secret(b"spk_another")
    assert keys.enrol() is not None


@pytest.mark.parametrize("answer", [{}, {"renewAt": None}, {"renewAt": "hello"}, {"renewAt": "9" * 50}], ids=str)
def test_an_answer_of_something_else(path: Path, answer: dict[str, object]) -> None:
    """An answer without a valid renewAt is not from the service: the enrolment key stays."""
    with pytest.raises(ServiceAway, match="not from the service"):
        ring(path, Keeper(answer=answer)).enrol()
    assert kept(path).enrolment_key == Secret(b"spk_enrolment")
    assert kept(path).key is None


def test_a_full_disk_costs_no_key(path: Path) -> None:
    """A key that cannot be written is not told to the service."""
    keeper = Keeper()
    keys = ring(path, keeper)
    path.unlink()
    with pytest.raises(ConfigError):
        keys.enrol()
    assert keeper.asked == []


def renewed(path: Path, keeper: Keeper) -> KeyRing:
    """An agent that has renewed its key."""
    ring(path, keeper).enrol()
    keys = ring(path, keeper, NOW + 30 * DAY)
    assert keys.renew_when_due()
    return keys


def test_a_service_that_was_restored(path: Path) -> None:
    """A service that knows only the former key learns the present one from the agent, which continues with it."""
    keeper = Keeper()
    keys = renewed(path, keeper)
    former, present = kept(path).former_key, keys.key
    assert former is not None and former != present
    keeper.good = {token_hash(former.reveal().decode())}
    keys.refused(ServiceRefused("invalid token", 401))
    assert keys.key == present
    assert keeper.good == {token_hash(each.reveal().decode()) for each in (former, present)}
    assert kept(path).former_key == former


def test_a_key_that_was_revoked(path: Path) -> None:
    """Where the former key does not help either, or the refusal is another, nothing changes."""
    keeper = Keeper()
    keys = renewed(path, keeper)
    before = path.read_text()
    keeper.good = set()
    keys.refused(ServiceRefused("invalid token", 401))
    asked = len(keeper.asked)
    keys.refused(ServiceRefused("role not allowed", 403))
    assert len(keeper.asked) == asked
    assert path.read_text() == before


def test_an_enrolment_forgets_the_former_key(path: Path) -> None:
    """It belongs to another identity."""
    keeper = Keeper()
    renewed(path, keeper)
    file.rewrite(path, {"enrolment_key": "spk_enrolment"})
    ring(path, keeper).enrol()
    assert kept(path).former_key is None
