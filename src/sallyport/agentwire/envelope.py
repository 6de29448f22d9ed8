"""The signed envelope of a state: the signature, the version, and the checks that an agent makes."""

import base64
import binascii
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Final

from sallyport.agentwire.fields import MAX_STATE
from sallyport.agentwire.state import State, Trigger
from sallyport.base.errors import WireError
from sallyport.base.wire import Text, decode, dumps, loads

_CONTEXT: Final = b"sallyport endpoint state 1\0"
UNCHANGED: Final[dict[str, object]] = {"unchanged": True}


@dataclass(frozen=True, slots=True)
class Signed:
    """A received state, before its signature is verified. payload: the encoded state."""

    payload: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class _Envelope:
    payload: Annotated[str, Text(MAX_STATE)]
    signature: Annotated[str, Text(128)]


@dataclass(frozen=True, slots=True)
class Position:
    """The version and the content digest of the last state that an agent accepted."""

    version: int = 0
    content: str = ""


def content(state: State) -> str:
    """Return a digest of a state's content: everything except the version and the time."""
    return hashlib.sha256(dumps(replace(state, version=0, issued=0))).hexdigest()


def signed_octets(payload: bytes) -> bytes:
    """Return the octets that the Ed25519 signature covers."""
    return _CONTEXT + payload


def envelope(sign: Callable[[bytes], bytes], state: State) -> dict[str, str]:
    """Return the signed envelope of a state, in JSON's types, as the answer to a poll.

    sign: returns the Ed25519 signature (64 octets) of the given octets.
    """
    payload = dumps(state)
    return {"payload": _to_base64(payload), "signature": _to_base64(sign(signed_octets(payload)))}


def open_envelope(value: object) -> Signed | None:
    """Parse the answer to a poll, in JSON's types. Return None if the answer is UNCHANGED. Raises WireError if the
    answer is malformed."""
    if isinstance(value, dict) and value.get("unchanged") is True:
        return None
    sealed = decode(_Envelope, value)
    return Signed(_from_base64(sealed.payload, "payload"), _from_base64(sealed.signature, "signature"))


def believe(signed: Signed, verify: Callable[[bytes, bytes], bool]) -> State:
    """Verify the signature of a received state, and return the state. Raises WireError if the signature is wrong or the
    state is malformed.

    verify: a function with two parameters, the signature and the signed octets; it returns whether the signature is
    valid.
    """
    if not verify(signed.signature, signed_octets(signed.payload)):
        raise WireError("signature: does not belong to the content")
    state = decode(State, _with_readable_triggers(loads(signed.payload, most=MAX_STATE)))
    _once((user.name for user in state.users), "users")
    _once((group.name for group in state.groups), "groups")
    _once((trigger.id for trigger in state.triggers), "triggers")
    return state


def follow(position: Position, state: State, *, instance: int) -> Position:
    """Check that an agent may accept a state. Return the new position of the agent. instance: the agent's own instance.

    Raises WireError if the state is for another instance. Raises WireError if the state is older than the last state
    that the agent accepted, or if it has the same version but another content.
    """
    if state.instance != instance:
        raise WireError("instance: the state is for another instance")
    digest = content(state)
    if state.version < position.version:
        raise WireError("version: is lower than the version of the agent's state")
    if state.version == position.version and digest != position.content:
        raise WireError("version: is the version of the agent's state, but the content differs")
    return Position(state.version, digest)


def _with_readable_triggers(value: object) -> object:
    """Remove the triggers that this agent cannot decode from a state, and return the state. These are triggers of a
    kind that the agent does not know.

    An unknown trigger must not prevent the agent from applying the other parts of the state, such as a locked account.
    The agent reports no outcome for an unknown trigger, so the service abandons the trigger.
    """
    if isinstance(value, dict) and isinstance(triggers := value.get("triggers"), list):
        return {**value, "triggers": [each for each in triggers if _is_trigger(each)]}
    return value


def _is_trigger(value: object) -> bool:
    try:
        decode(Trigger, value)
    except WireError:
        return False
    return True


def _once(names: Iterable[object], path: str) -> None:
    seen: set[object] = set()
    for name in names:
        if name in seen:
            raise WireError(f"{path}: is a duplicate entry")
        seen.add(name)


def _to_base64(octets: bytes) -> str:
    return base64.b64encode(octets).decode("ascii")


def _from_base64(text: str, path: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise WireError(f"{path}: must be base64") from None
