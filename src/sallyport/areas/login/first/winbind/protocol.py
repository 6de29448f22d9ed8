"""The helper protocol `ntlm-server-1` of Samba's ntlm_auth (see its manual page).

A message consists of lines `Name: value`, or `Name:: value` if the value is in base64. It ends with a line that
contains only a dot. The answer is `Authenticated: Yes` and the session key, or `Authenticated: No` and an error text.
An answer with an error text ends with two such lines. So, if an answer begins with a line that contains only a dot,
this line belongs to the previous answer.
"""

import re
from base64 import b64decode, b64encode
from binascii import Error as Base64Error
from dataclasses import dataclass
from typing import Final

ARGUMENTS: Final = ("--helper-protocol=ntlm-server-1", "--allow-mschapv2")
"""The arguments of ntlm_auth. The second declares the response as MS-CHAPv2, because some domain controllers refuse
NTLMv1 otherwise."""
_KEY: Final = re.compile(r"[0-9A-Fa-f]{32}")


class Nonsense(Exception):
    """A message from ntlm_auth that violates the protocol."""


@dataclass(frozen=True, slots=True)
class Question:
    """An MS-CHAP response to check.

    user: the account name. domain: the NetBIOS or DNS name of the Active Directory domain, or empty if it is the domain
    that the host has joined. challenge: 8 octets. response: the NT response, 24 octets.
    """

    user: str
    domain: str
    challenge: bytes
    response: bytes


@dataclass(frozen=True, slots=True)
class NtlmAnswer:
    """The answer of ntlm_auth. key: the MD4 hash of the password's NT hash, 16 octets, or None if the response was
    refused. error: the error text of a refusal."""

    key: bytes | None
    error: str = ""


def push_question(question: Question) -> bytes:
    """Encode a question. Names are encoded in base64, because a line end in a name would otherwise begin a new line."""
    lines = [f"Username:: {_base64(question.user)}"]
    if question.domain:
        lines.append(f"NT-Domain:: {_base64(question.domain)}")
    lines += [
        f"LANMAN-Challenge: {question.challenge.hex()}",
        f"NT-Response: {question.response.hex()}",
        "Request-User-Session-Key: Yes",
        ".",
    ]
    return "".join(f"{line}\n" for line in lines).encode()


def pull_answer(received: bytes) -> NtlmAnswer | None:
    """Decode the answer to a question. Return None if it is incomplete. Raises Nonsense if it violates the protocol.

    received: all octets that were received since the question.
    """
    whole = received[: received.rfind(b"\n") + 1]
    values: dict[str, str] = {}
    for line in whole.decode(errors="replace").splitlines():
        if line != ".":
            name, value = _parsed(line)
            values[name] = value
        elif values:
            return _answer(values)
    return None


def _parsed(line: str) -> tuple[str, str]:
    name, separator, value = line.partition(": ")
    if not separator or name == "Error":
        raise Nonsense(line[:200])
    if not name.endswith(":"):
        return name, value
    try:
        return name[:-1], b64decode(value, validate=True).decode(errors="replace")
    except Base64Error:
        raise Nonsense(line[:200]) from None


def _answer(values: dict[str, str]) -> NtlmAnswer:
    authenticated = values.get("Authenticated")
    if authenticated == "No":
        return NtlmAnswer(None, values.get("Authentication-Error", "winbind gave no reason"))
    key = values.get("User-Session-Key", "")
    if authenticated != "Yes" or not _KEY.fullmatch(key):
        raise Nonsense(f"{', '.join(values)}: the verdict or the key is missing")
    return NtlmAnswer(bytes.fromhex(key))


def _base64(text: str) -> str:
    return b64encode(text.encode()).decode()
