"""Errors to bodies, once.

Radius and domain operations: `{"error": text, "code": status}`. Everything else: `{"code": status, "status":
"Failure", "message": text}`, with `errors: [{field, message}]` for an invalid body. The path alone decides, so that an
unknown path answers like its neighbours. No answer holds a submitted value or a stack trace.
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

from sallyport.base.errors import Invalid, Refused, StoreError
from sallyport.base.ids import new_error_id
from sallyport.base.model import Model

RADIUS_PREFIXES = ("/network_device/", "/ad/")
NO_DETAILS: Mapping[str, object] = MappingProxyType({})

log = structlog.get_logger()


class RadiusProblem(Model):
    """The error body of radius and domain operations."""

    error: str
    code: int


class FieldProblem(Model):
    """One wrong field: its path with dots, and what it takes."""

    field: str
    message: str


class Problem(Model):
    """The error body of all other operations."""

    code: int
    status: str = "Failure"
    message: str
    errors: list[FieldProblem] = Field(default=[])


class TooLarge(Refused):
    """A body over the operation's limit."""

    status = 413


class WrongContentType(Refused):
    """A body that is not sent as the operation takes it."""

    status = 415


def model_for(path: str) -> type[BaseModel]:
    """The error body's shape, for the description of the API."""
    return RadiusProblem if path.startswith(RADIUS_PREFIXES) else Problem


def response(error: Exception, path: str) -> Response:
    """The answer to a request on `path` that ended in `error`; an unexpected one is logged with its id."""
    if isinstance(error, Refused):
        return body(path, error.status, str(error), error if isinstance(error, Invalid) else None, error.details)
    if isinstance(error, HTTPException):
        return body(path, error.status_code, _phrase(error.status_code))
    if isinstance(error, StoreError):
        log.error("a request failed in the store", path=path, error=str(error))
        return body(path, 503, "the store does not take requests")
    if isinstance(error, ClientDisconnect):
        return body(path, 400, "incomplete body")  # nobody is there to read it
    error_id = new_error_id()
    # Formatted here and as text: a renderer that shows local variables would show bodies, and passwords in them.
    trace = "".join(traceback.format_exception(error))
    log.error("unexpected error", error_id=error_id, path=path, trace=trace)
    return body(path, 500, f"unexpected error {error_id}")


def body(
    path: str, status: int, message: str, invalid: Invalid | None = None, details: Mapping[str, object] = NO_DETAILS
) -> Response:
    """An error body in the manner of `path`. details: stand beside what every error body has."""
    if path.startswith(RADIUS_PREFIXES):
        return JSONResponse({**details, "error": message, "code": status}, status)
    content: dict[str, object] = {**details, "code": status, "status": "Failure", "message": message}
    if invalid is not None and invalid.fields:
        content["errors"] = [{"field": each.field, "message": each.message} for each in invalid.fields]
    return JSONResponse(content, status)


def _phrase(status: int) -> str:
    told = {404: "no such path", 405: "method not allowed"}
    return told.get(status) or HTTPStatus(status).phrase.lower()
