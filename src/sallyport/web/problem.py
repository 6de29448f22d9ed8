"""Errors to bodies, once.

Radius and domain operations: `{"error": text, "code": status}`. All other operations: `{"code": status, "status":
"Failure", "message": text}`. An invalid body adds `errors: [{field, message}]` to both. Only the path decides, so that
an unknown path answers like its neighbours. No answer holds a submitted value or a stack trace.
"""

import traceback
from collections.abc import Mapping
from dataclasses import asdict
from http import HTTPStatus
from types import MappingProxyType

import structlog
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.responses import JSONResponse, Response

from sallyport.base.errors import Invalid, Refused, StoreError
from sallyport.base.model import Model
from sallyport.base.secret import new_error_id

RADIUS_PREFIXES = ("/network_device/", "/ad/")
NO_DETAILS: Mapping[str, object] = MappingProxyType({})

log = structlog.get_logger()


class FieldProblem(Model):
    """One wrong field."""

    field: str = Field(description="Path of the field, with dots; body: the whole body.")
    message: str = Field(description="Values that are accepted.")


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
    """A body over the operation's limit."""

    status = 413


class WrongContentType(Invalid):
    """A body that is not sent as the operation takes it."""

    status = 415


def model_for(path: str) -> type[BaseModel]:
    """The error body's shape, for the description of the API."""
    return RadiusProblem if path.startswith(RADIUS_PREFIXES) else Problem


def response(error: Exception, path: str) -> Response:
    """The answer to a request on `path` that ended in `error`; an unexpected one is logged with its id."""
    if isinstance(error, Refused):
        return body(path, error.status, str(error), {**error.details, **_errors(error)})
    if isinstance(error, HTTPException):
        return body(path, error.status_code, _phrase(error.status_code))
    if isinstance(error, StoreError):
        log.error("http_store_failed", path=path, error=str(error))
        return body(path, 503, "the store does not take requests")
    if isinstance(error, ClientDisconnect):
        return body(path, 400, "incomplete body")  # the client is gone
    error_id = new_error_id()
    # Formatted here and as text: a renderer that shows local variables would show bodies, and passwords in them.
    trace = "".join(traceback.format_exception(error))
    log.error("http_unexpected_error", error_id=error_id, path=path, trace=trace)
    return body(path, 500, f"unexpected error {error_id}")


def body(path: str, status: int, message: str, details: Mapping[str, object] = NO_DETAILS) -> Response:
    """Return an error body in the manner of `path`. details: additions to the fields that every error body has."""
    if path.startswith(RADIUS_PREFIXES):
        return JSONResponse({"error": message, "code": status, **details}, status)
    return JSONResponse({"code": status, "status": "Failure", "message": message, **details}, status)


def _errors(error: Refused) -> dict[str, object]:
    """Return the wrong fields of an invalid body."""
    return {"errors": [asdict(each) for each in error.errors]} if isinstance(error, Invalid) else {}


def _phrase(status: int) -> str:
    phrases = {404: "no such path", 405: "method not allowed"}
    return phrases.get(status) or HTTPStatus(status).phrase.lower()
