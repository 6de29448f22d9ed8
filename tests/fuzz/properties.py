"""Properties of the tests as targets: hypothesis builds the arguments of a property from the octets of the input.

The properties are those of parsers of hostile octets, without fixtures and parameters.
"""

from collections.abc import Callable
from functools import cache, partial
from importlib import import_module
from typing import Final, cast

_NAMES: Final = {
    "dynamic": ("radius", "tests.radius.test_dynamic:test_any_attributes_of_a_nas_are_read_or_refused"),
    "mschap": ("radius", "tests.radius.test_mschap:test_any_attributes_are_recognised_or_refused"),
    "salted": ("radius", "tests.radius.test_salted:test_any_attributes_are_encrypted_again_or_refused"),
    "vendors": (
        "radius",
        "tests.radius.vendors.test_hostile:test_a_known_packet_with_hostile_attributes_gives_a_result",
    ),
    "values": ("radius", "tests.radius.test_values:test_any_attribute_is_shown"),
    "upload": ("web.upload", "tests.web.test_upload:test_any_octets_are_read_or_refused"),
    "passkey": (
        "areas.factors fido2",
        "tests.areas.factors.test_webauthn:test_any_authenticator_data_is_accepted_or_refused",
    ),
    "certificate": ("radius", "tests.radius.eap.test_certificate_facts:test_any_octets_in_an_extension_give_texts"),
    "crl": ("areas.authorities", "tests.areas.authorities.revocation.test_lists:test_any_octets_are_a_list_or_refused"),
    "ocsp": (
        "areas.authorities",
        "tests.areas.authorities.revocation.test_ocsp:test_a_response_with_any_changed_octet_is_refused_or_the_same",
    ),
    "winbind": (
        "areas.login.first.winbind",
        "tests.areas.login.first.winbind.test_protocol:test_any_octets_are_an_answer_or_none",
    ),
    "wire": ("base.wire", "tests.base.test_wire:test_any_octets_are_a_message_or_a_wire_error"),
    "entry": (
        "areas.directory.entry",
        "tests.areas.directory.entry.test_entry:test_any_entry_is_understood_or_refused",
    ),
    "passwd": ("agent", "tests.agent.endpoint.test_parts:test_any_passwd_is_read"),
}
"""For each target: the packages whose code guides the fuzzer, and the module and function of the property."""


@cache
def _property(place: str) -> Callable[[bytes], bytes | None]:
    module, _, name = place.partition(":")
    handle = getattr(import_module(module), name).hypothesis
    return cast("Callable[[bytes], bytes | None]", handle.fuzz_one_input)


def _run(place: str, octets: bytes) -> None:
    _property(place)(octets)


PROPERTIES: Final[dict[str, tuple[Callable[[bytes], None], str]]] = {
    name: (partial(_run, place), packages) for name, (packages, place) in _NAMES.items()
}
"""The function of each target, and the packages whose code guides the fuzzer."""
