"""A state on its way: its signature, its version, and what an agent believes."""

import base64
import binascii
import hashlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, replace
from typing import Annotated, Final

from sallyport.base.agentwire.fields import MAX_STATE
from sallyport.base.agentwire.state import State, Trigger
from sallyport.base.errors import WireError
from sallyport.base.wire import Text, decode, dumps, loads

_CONTEXT: Final = b"sallyport endpoint state 1\0"
UNCHANGED: Final[dict[str, object]] = {"unchanged": True}


@dataclass(frozen=True, slots=True)
class Signed:
    """A state as it came, not yet believed. payload: its octets."""

    payload: bytes
    signature: bytes


@dataclass(frozen=True, slots=True)
class _Envelope:
    payload: Annotated[str, Text(MAX_STATE)]
    signature: Annotated[str, Text(128)]


@dataclass(frozen=True, slots=True)
class Position:
    """The state that an agent has: what a newer one is measured by."""

    version: int = 0
    content: str = ""


def content(state: State) -> str:
    """A digest of what a state says, whichever its version and time. Triggers are part of it."""
    return hashlib.sha256(dumps(replace(state, version=0, issued=0))).hexdigest()


def signed_octets(payload: bytes) -> bytes:
    """What the Ed25519 signature is over."""
    return _CONTEXT + payload


def envelope(sign: Callable[[bytes], bytes], state: State) -> dict[str, str]:
    """The answer to a poll, for JSON. sign: makes the signature (64 octets) of octets."""
    payload = dumps(state)
    return {"payload": _to_base64(payload), "signature": _to_base64(sign(signed_octets(payload)))}


def open_envelope(value: object) -> Signed | None:
    """The answer to a poll, in JSON's types; None is UNCHANGED. WireError: it is neither."""
    if isinstance(value, dict) and value.get("unchanged") is True:
        return None
    sealed = decode(_Envelope, value)
    return Signed(_from_base64(sealed.payload, "payload"), _from_base64(sealed.signature, "signature"))


def believe(signed: Signed, verify: Callable[[bytes, bytes], bool]) -> State:
    """The state in an envelope. verify: whether a signature is right for octets. WireError: it is not, or no state."""
    if not verify(signed.signature, signed_octets(signed.payload)):
        raise WireError("signature: wrong")
    state = decode(State, _with_readable_triggers(loads(signed.payload, most=MAX_STATE)))
    _once((user.name for user in state.users), "users")
    _once((group.name for group in state.groups), "groups")
    _once((trigger.id for trigger in state.triggers), "triggers")
    return state


def follow(position: Position, state: State, *, instance: int) -> Position:
    """Where an agent stands with that state. WireError: it is another instance's, older, or differs under one version.

    instance: the agent's own.
    """
    if state.instance != instance:
        raise WireError("instance: another's")
    digest = content(state)
    if state.version < position.version:
        raise WireError("version: older than the present one")
    if state.version == position.version and digest != position.content:
        raise WireError("version: the same as the present one, with another content")
    return Position(state.version, digest)


def _with_readable_triggers(value: object) -> object:
    """A state without the orders that this agent does not know: none of them keeps accounts from being as they should
    be, least of all from being locked. They stay without an outcome, and the service gives them up."""
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
            raise WireError(f"{path}: one of them twice")
        seen.add(name)


def _to_base64(octets: bytes) -> str:
    return base64.b64encode(octets).decode("ascii")


def _from_base64(text: str, path: str) -> bytes:
    try:
        return base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise WireError(f"{path}: not base64") from None
