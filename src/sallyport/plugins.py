"""The names that a plug-in may import: those of an MFA provider, and the contract that tests it.

These names are public. A release that changes or removes one of them, or what it means, is a new major version, and its
changelog says what to write instead. Every other module of Sallyport is private: any release may change it.
"""

from sallyport.areas.mfa.contract import HTTP_FAILURES, Behaviour, Bench, ProviderContract
from sallyport.areas.mfa.host import ConfiguredProvider, Fields, Host
from sallyport.areas.mfa.provider import (
    Answer,
    Code,
    Enrolled,
    Enrolment,
    Outcome,
    Provider,
    ProviderError,
    Question,
    Strength,
)
from sallyport.base.errors import Conflict, Invalid
from sallyport.outgoing.fields import SecretKey, ServerUrl, SharedKey
from sallyport.outgoing.http import REPEATABLE, json_object, link_of, text_at

__all__ = [
    "HTTP_FAILURES",
    "REPEATABLE",
    "Answer",
    "Behaviour",
    "Bench",
    "Code",
    "ConfiguredProvider",
    "Conflict",
    "Enrolled",
    "Enrolment",
    "Fields",
    "Host",
    "Invalid",
    "Outcome",
    "Provider",
    "ProviderContract",
    "ProviderError",
    "Question",
    "SecretKey",
    "ServerUrl",
    "SharedKey",
    "Strength",
    "json_object",
    "link_of",
    "text_at",
]
