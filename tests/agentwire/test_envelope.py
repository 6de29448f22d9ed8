"""Signature, version and replay of a state: `sallyport.agentwire.envelope`."""

from dataclasses import replace

import pytest
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from sallyport.agentwire.envelope import (
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
from sallyport.agentwire.state import DesiredUser, State, Trigger, TriggerKind
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
    assert received(sent(WANTED)) == WANTED


def test_an_unchanged_answer_is_not_a_state() -> None:
    """UNCHANGED is decoded as None without an error."""
    assert open_envelope(UNCHANGED | {"code": 200}) is None


def test_another_key_or_payload_is_refused() -> None:
    """A signature is valid only for its own key and its own octets."""
    ours, theirs = sent(WANTED), sent(replace(WANTED, version=6))
    for answer in (sent(WANTED, Ed25519PrivateKey.generate()), ours | {"payload": theirs["payload"]}):
        with pytest.raises(WireError, match="signature: does not belong to the content"):
            received(answer)


@pytest.mark.parametrize(
    "answer", [[], {}, {"unchanged": False}, {"payload": "!", "signature": ""}, "<html>", {"payload": 1}, None]
)
def test_a_malformed_answer_is_refused(answer: object) -> None:
    """An answer that is neither a state nor UNCHANGED raises WireError."""
    with pytest.raises(WireError):
        received(answer)


def test_a_newer_or_equal_state_is_accepted() -> None:
    at = follow(Position(), WANTED, instance=7)
    assert at == Position(5, content(WANTED))
    assert follow(at, replace(WANTED, issued=200), instance=7) == at
    assert follow(at, replace(WANTED, version=9, users=()), instance=7).version == 9


@pytest.mark.parametrize(
    ("state", "reason"),
    [
        pytest.param(replace(WANTED, version=4), "is lower", id="older"),
        pytest.param(replace(WANTED, users=()), "the content differs", id="changed"),
        pytest.param(replace(WANTED, instance=8, version=9), "another instance", id="of another instance"),
    ],
)
def test_an_older_changed_or_foreign_state_is_refused(state: State, reason: str) -> None:
    """A state is altered if it has the same version but different content, and foreign if it is for another
    instance.
    """
    at = follow(Position(), WANTED, instance=7)
    with pytest.raises(WireError, match=reason):
        follow(at, state, instance=7)


def test_the_digest_depends_only_on_the_content_of_a_state() -> None:
    assert content(WANTED) == content(replace(WANTED, version=6, issued=9))
    assert content(WANTED) != content(replace(WANTED, triggers=()))


def test_duplicate_user_names_are_refused() -> None:
    with pytest.raises(WireError, match="users: is a duplicate entry"):
        received(sent(replace(WANTED, users=(ANN, ANN))))


def test_an_unknown_order_is_skipped() -> None:
    """The users and the other orders of a state are decoded."""
    payload = loads(dumps(WANTED), most=10_000)
    assert isinstance(payload, dict)
    odd: list[object] = [{"id": 2, "kind": "rotate", "users": ["Alice Smith"]}, {"id": 3, "kind": "dance"}, None, 7]
    octets = dumps({**payload, "triggers": (*odd, *payload["triggers"])})
    assert believe(Signed(octets, KEY.sign(signed_octets(octets))), verify) == WANTED
