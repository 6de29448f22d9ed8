"""The conversion of errors to error bodies, for all operations.

Radius and domain operations answer `{"error": text, "code": status}`. All other operations answer `{"code": status,
"status": "Failure", "message": text}`. If the request body is invalid, both forms also have `errors: [{field,
message}]`. The form depends only on the path. Therefore an unknown path has the form of similar paths. No answer
contains a submitted value or a stack trace.
"""

import traceback
from collections.abc import Mapping
from http import HTTPStatus
from types import MappingProxyType

import structlog
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

from sallyport.base.errors import Invalid, Refused, StoreError, TookTooLong, TooMany, Unauthenticated
from sallyport.base.model import Model
from sallyport.base.secret import new_error_id

RADIUS_PREFIXES = ("/network_device/", "/ad/")
FIXED = frozenset({"invalid filterBy", "missing token", "domain not in tenant", "scope mismatch"})
"""Texts of errors that the interface fixes for radius and domain operations. Their bodies have no further fields."""
NO_DETAILS: Mapping[str, object] = MappingProxyType({})

RETRY_AFTER = "retry-after"
BEARER_PREFIX = "/api/v1/"
"""The beginning of the paths on which a token may also be in `Authorization: Bearer`."""
KEY_CHALLENGE = 'ApiKey realm="sallyport", header="X-Authorization"'
BEARER_CHALLENGE = f'Bearer realm="sallyport", {KEY_CHALLENGE}'
STORE_PAUSE_S = 5

log = structlog.get_logger()


class FieldProblem(Model):
    """A wrong field of a body."""

    field: str = Field(description="Path of the field, with dots between its parts. `body` stands for the whole body.")
    message: str = Field(
        description="A predicate of the field, such as `must be an IP address`, or a sentence about the error."
    )


class RadiusProblem(Model):
    """The error body of radius and domain operations."""

    error: str = Field(description="Reason of the refusal.")
    code: int = Field(description="HTTP status of the answer.")
    errors: list[FieldProblem] = Field(default=[], description="Wrong fields of an invalid body, at most 100.")


class Problem(Model):
    """The error body of all other operations."""

    code: int = Field(description="HTTP status of the answer.")
    status: str = Field(default="Failure", description="Always Failure.")
    message: str = Field(description="Reason of the refusal.")
    errors: list[FieldProblem] = Field(default=[], description="Wrong fields of an invalid body, at most 100.")


class TooLarge(Invalid):
    """The body is larger than the operation's limit."""

    status = 413


class WrongContentType(Invalid):
    """The operation does not accept the content type of the body."""

    status = 415


def model_for(path: str) -> type[BaseModel]:
    """Return the model of the error bodies on a path, for the API description."""
    return RadiusProblem if path.startswith(RADIUS_PREFIXES) else Problem


def response(error: Exception, path: str) -> Response:
    """Return the error answer to a request on `path` that raised `error`. An unexpected error is logged with an id."""
    if isinstance(error, Refused):
        refused = body(path, error.status, str(error), {**error.details, **_errors(error)})
        if isinstance(error, TooMany):
            refused.headers[RETRY_AFTER] = str(error.pause_s)
        if isinstance(error, Unauthenticated):
            refused.headers["www-authenticate"] = challenge(path)
        return refused
    if isinstance(error, HTTPException):
        return body(path, error.status_code, _phrase(error.status_code))
    if isinstance(error, TookTooLong):
        log.warning("http_search_stopped", path=path, error=str(error))
        return _unavailable(path, str(error))
    if isinstance(error, StoreError):
        log.error("http_store_failed", path=path, error=str(error))
        return _unavailable(path, "the store does not take requests")
    if isinstance(error, ClientDisconnect):
        return body(path, 400, "incomplete body")  # the client has disconnected, so no one reads this answer
    error_id = new_error_id()
    # The traceback is formatted here as text: a log renderer with local variables would show bodies and passwords.
    trace = "".join(traceback.format_exception(error))
    log.error("http_unexpected_error", error_id=error_id, path=path, trace=trace)
    return body(path, 500, f"unexpected error {error_id}")


def challenge(path: str) -> str:
    """Return the header WWW-Authenticate of an answer with status 401 (RFC 9110 section 11.6.1). No registered scheme
    has its token in X-Authorization, so `ApiKey` names the header. `Bearer` is there where it is read (RFC 6750)."""
    return BEARER_CHALLENGE if path.startswith(BEARER_PREFIX) else KEY_CHALLENGE


def _unavailable(path: str, message: str) -> Response:
    answer = body(path, 503, message)
    answer.headers[RETRY_AFTER] = str(STORE_PAUSE_S)
    return answer


def body(path: str, status: int, message: str, details: Mapping[str, object] = NO_DETAILS) -> Response:
    """Return an error answer in the form for `path`. details: additional fields of the body."""
    if path.startswith(RADIUS_PREFIXES):
        further = NO_DETAILS if message in FIXED else details
        return JSONResponse({"error": message, "code": status, **further}, status)
    return JSONResponse({"code": status, "status": "Failure", "message": message, **details}, status)


def _errors(error: Refused) -> dict[str, object]:
    """Return the field `errors` with the wrong fields of an invalid body. Return an empty dict if no field is wrong."""
    wrong = error.errors if isinstance(error, Invalid) else ()
    return {"errors": [{"field": each.field, "message": each.message} for each in wrong]} if wrong else {}


def _phrase(status: int) -> str:
    phrases = {404: "no such path", 405: "method not allowed"}
    return phrases.get(status) or HTTPStatus(status).phrase.lower()
