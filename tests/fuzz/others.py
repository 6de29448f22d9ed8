"""Parsers of octets that come from another organization: servers and DIDs of tenants, agents, and files."""

import contextlib
import json
from datetime import UTC
from typing import Final

from sallyport.agentwire.envelope import believe, open_envelope
from sallyport.agentwire.report import Poll, Report, rotation
from sallyport.areas.did.credentials.check import check_schema, check_subject
from sallyport.areas.did.crypto import documents, jws, proofs, vc
from sallyport.areas.did.crypto.encoding import canonical, read_json
from sallyport.areas.did.presentations import definition as definitions
from sallyport.areas.did.presentations import evidence
from sallyport.areas.directory.reading.answers import Answers, Limits, TooLarge
from sallyport.areas.migration import archives, clearpass
from sallyport.areas.migration import tables as device_tables
from sallyport.areas.migration.translation import Options
from sallyport.areas.shadow.logs.reading import READERS
from sallyport.areas.shadow.logs.record import Frame, Tally
from sallyport.base.errors import CredentialError, Invalid, WireError
from sallyport.base.wire import JSON, decode, dumps, loads
from tests.areas.did.crypto.signers import HOLDER, ISSUERS, NOW
from tests.areas.did.crypto.signers import did as did_of
from tests.areas.directory.reading.fake_directory import result_message
from tests.fuzz.folders import only_file
from tests.fuzz.inputs import as_text

BOUND: Final = result_message(0x61)
DID_WEB: Final = "did:web:issuer.example"
VERIFIER: Final = "did:web:verifier.test"
NONCE: Final = "nonce"
_LIMITS: Final = Limits(octets=1 << 16, message=3_000, values=30, entry_values=20, attributes=5, messages=9)


def ldap(octets: bytes) -> None:
    """Answers of a directory are read, TooLarge or ValueError. The size of the pieces in which they arrive makes no
    difference."""
    assert _answers(octets, max(len(octets), 1)) == _answers(octets, 7)
    with contextlib.suppress(TooLarge, ValueError):
        Answers(_LIMITS).feed(octets)


def _answers(octets: bytes, step: int) -> object:
    answers = Answers(_LIMITS)
    answers.feed(BOUND)
    answers.request(2)
    try:
        for at in range(0, len(octets), step):
            answers.feed(octets[at : at + step])
    except (TooLarge, ValueError) as error:
        return type(error), str(error)
    return answers.entries, answers.result


def schema(octets: bytes) -> None:
    """A schema and a subject are checked, or Invalid. The input is a list of both."""
    given = _json(octets)
    wanted, subject = given if isinstance(given, list) and len(given) == 2 else (given, {})
    with contextlib.suppress(Invalid):
        kept = check_schema(wanted)
        assert check_schema(kept) == kept
        check_subject(kept, subject)


def did(octets: bytes) -> None:
    """A DID, its document, a credential and a presentation are read, or CredentialError: as they are, and signed by
    their holder."""
    with contextlib.suppress(CredentialError):
        documents.resolve(as_text(octets))
    with contextlib.suppress(CredentialError):
        documents.parse(DID_WEB, octets)
    with contextlib.suppress(CredentialError):
        value = read_json(octets)
        assert read_json(canonical(value)) == value
        if isinstance(value, dict):
            _present(value)


def _present(document: dict[str, JSON]) -> None:
    holder, issuer = documents.resolve(did_of(HOLDER)), next(iter(ISSUERS.values()))
    binding = evidence.Binding(holder, VERIFIER, NONCE)
    with contextlib.suppress(CredentialError):
        evidence.read(document, binding, NOW)
    with contextlib.suppress(CredentialError):
        evidence.read(
            proofs.sign(document, HOLDER, purpose=documents.AUTHENTICATION, at=NOW, challenge=NONCE, domain=VERIFIER),
            binding,
            NOW,
        )
    with contextlib.suppress(CredentialError):
        evidence.read(jws.sign(document, HOLDER), binding, NOW)
    with contextlib.suppress(CredentialError):
        vc.verify(jws.parse(jws.sign(document, issuer)), documents.resolve(did_of(issuer)), NOW)


def definition(octets: bytes) -> None:
    """A presentation definition is read, or Invalid. Its written form is the same definition."""
    with contextlib.suppress(Invalid):
        once = definitions.read(octets.decode("utf-8", "replace"))
        assert definitions.read(once.text) == once


def envelope(octets: bytes) -> None:
    """A message between service and agent is read, or WireError. Each message that was read has the same meaning after
    it is written."""
    for kind in (Poll, Report):
        with contextlib.suppress(WireError):
            found = decode(kind, loads(octets, most=1 << 16))
            assert decode(kind, loads(dumps(found), most=1 << 17)) == found
    with contextlib.suppress(WireError):
        rotation(octets)
    with contextlib.suppress(WireError):
        signed = open_envelope(loads(octets, most=1 << 16))
        if signed is not None:
            believe(signed, lambda _octets, _signature: True)


def logs(octets: bytes) -> None:
    """Lines of each log format are read or counted. No text is an error."""
    for form in READERS:
        reader = READERS[form](Frame(UTC, Tally()))
        for number, line in enumerate(octets.decode("utf-8", "replace").splitlines()):
            assert all(each.user for each in reader.read(line, str(number)))
        list(reader.end())


def archive(octets: bytes) -> None:
    """An archive is unpacked into its folder, or Invalid. Nothing outside of the folder is written or linked."""
    with only_file(octets, "a.tar") as path, contextlib.suppress(Invalid):
        folder = path.with_name("unpacked")
        folder.mkdir()
        archives.unpack(path, folder)
        for each in folder.rglob("*"):
            assert each.resolve().is_relative_to(folder.resolve()), each


def tables(octets: bytes) -> None:
    """A table or an export of ISE or ClearPass is translated, or Invalid."""
    columns = {"name": "name", "address": "address", "secret": "secret"}
    for translate, name in _TRANSLATORS:
        with only_file(octets, name) as path, contextlib.suppress(Invalid):
            json.dumps(translate(path, Options("corp", columns=columns)).as_json())


_TRANSLATORS: Final = (
    (device_tables.translate, "a.csv"),
    (device_tables.translate_ise, "a.csv"),
    (clearpass.translate, "a.xml"),
)


def _json(octets: bytes) -> JSON:
    try:
        return read_json(octets)
    except CredentialError:
        return None
