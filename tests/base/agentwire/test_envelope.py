"""A state's signature, versions and replay: `sallyport.base.agentwire.envelope`."""

from dataclasses import replace

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sallyport.base.agentwire.envelope import (
    UNCHANGED,
    Position,
    Signed,
    believe,
    content,
    envelope,
    follow,
    open_envelope,
    signed_octets,
)
from sallyport.base.agentwire.state import DesiredUser, State, Trigger, TriggerKind
from sallyport.base.errors import WireError
from sallyport.base.wire import dumps, loads

KEY = Ed25519PrivateKey.generate()
ANN = DesiredUser("ann", groups=("staff",), privileged=True, expires=1_700_000_000_000_000)
WANTED = State(instance=7, version=5, issued=100, users=(ANN,), triggers=(Trigger(1, TriggerKind.SYNC),))


def verify(signature: bytes, octets: bytes) -> bool:
    try:
        KEY.public_key().verify(signature, octets)
    except InvalidSignature:
        return False
    return True


def sent(state: State, key: Ed25519PrivateKey = KEY) -> dict[str, str]:
    return envelope(key.sign, state)


def received(answer: object) -> State:
    signed = open_envelope(answer)
    assert signed is not None
    return believe(signed, verify)


def test_a_signed_state_is_read_unchanged() -> None:
    """The agent accepts and reads the state that the service signed."""
    assert received(sent(WANTED)) == WANTED


def test_a_poll_without_news() -> None:
    """UNCHANGED is neither a state nor an error."""
    assert open_envelope(UNCHANGED | {"code": 200}) is None


def test_another_key_or_payload_is_refused() -> None:
    """A signature is valid for its key and its octets alone."""
    ours, theirs = sent(WANTED), sent(replace(WANTED, version=6))
    for answer in (sent(WANTED, Ed25519PrivateKey.generate()), ours | {"payload": theirs["payload"]}):
        with pytest.raises(WireError, match="signature: wrong"):
            received(answer)


@pytest.mark.parametrize(
    "answer", [[], {}, {"unchanged": False}, {"payload": "!", "signature": ""}, "<html>", {"payload": 1}, None]
)
def test_a_malformed_answer_is_refused(answer: object) -> None:
    """An answer that is neither a state nor UNCHANGED is a WireError."""
    with pytest.raises(WireError):
        received(answer)


def test_a_newer_state_is_followed() -> None:
    """A newer state and the same state are followed."""
    at = follow(Position(), WANTED, instance=7)
    assert at == Position(5, content(WANTED))
    assert follow(at, replace(WANTED, issued=200), instance=7) == at
    assert follow(at, replace(WANTED, version=9, users=()), instance=7).version == 9


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        pytest.param(replace(WANTED, version=4), "older", id="older"),
        pytest.param(replace(WANTED, users=()), "another content", id="changed"),
        pytest.param(replace(WANTED, instance=8, version=9), "another's", id="of another instance"),
    ],
)
def test_a_state_is_refused(state: State, reason: str) -> None:
    """An older state, a changed one of the same version, and one of another instance are refused."""
    at = follow(Position(), WANTED, instance=7)
    with pytest.raises(WireError, match=reason):
        follow(at, state, instance=7)


def test_the_digest_of_a_state() -> None:
    """A digest changes with the content of a state, and with nothing else."""
    assert content(WANTED) == content(replace(WANTED, version=6, issued=9))
    assert content(WANTED) != content(replace(WANTED, triggers=()))


def test_names_are_unique() -> None:
    """A state with two users of one name is refused."""
    with pytest.raises(WireError, match="users: one of them twice"):
        received(sent(replace(WANTED, users=(ANN, ANN))))


def test_an_order_that_the_agent_does_not_know() -> None:
    """An order of an unknown kind is skipped. The users and the other orders of the state are read."""
    payload = loads(dumps(WANTED), most=10_000)
    assert isinstance(payload, dict)
    odd: list[object] = [{"id": 2, "kind": "rotate", "users": ["Alice Smith"]}, {"id": 3, "kind": "dance"}, None, 7]
    octets = dumps({**payload, "triggers": (*odd, *payload["triggers"])})
    assert believe(Signed(octets, KEY.sign(signed_octets(octets))), verify) == WANTED
