"""Public documents: the service's own did:web, schemas and status lists. They need no token. Only the route that
resolves other DIDs needs a token.

These routes are not API operations, because the documents are requested with GET, by verifiers that do not know this
service.
"""

from collections.abc import Awaitable, Callable
from typing import Final
from urllib.parse import unquote

from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from sallyport.areas.did.credentials.schemas import PATH as SCHEMA_PATH
from sallyport.areas.did.credentials.schemas import Schemas
from sallyport.areas.did.credentials.status import PATH as STATUS_PATH
from sallyport.areas.did.credentials.status import StatusLists
from sallyport.areas.did.dids.resolver import Resolver
from sallyport.areas.did.dids.service import FOLDER, Dids
from sallyport.base.actor import Actor, acting_as
from sallyport.web import problem
from sallyport.web.handling import TemplateRoute, source_of, token_of
from sallyport.web.scope import Gate

DID_PATH: Final = f"/{FOLDER}/{{name}}/did.json"
RESOLVE: Final = "/api/v1/did/resolve/"
_ANY_ORIGIN: Final = {"access-control-allow-origin": "*", "x-content-type-options": "nosniff"}
_CACHEABLE: Final = {**_ANY_ORIGIN, "cache-control": "public, max-age=60"}
TOKEN_KIND: Final = "application/jwt"  # noqa: S105  a content type


def routes(dids: Dids, schemas: Schemas, lists: StatusLists, resolver: Resolver, gate: Gate) -> list[BaseRoute]:
    """Return the routes that serve the published documents, and the route that resolves DIDs."""

    async def document(request: Request) -> Response:
        content = await dids.published(str(request.path_params["name"]))
        return JSONResponse(content, headers=_CACHEABLE, media_type="application/did+json")

    async def schema(request: Request) -> Response:
        text = await schemas.published(str(request.path_params["name"]))
        return Response(text, headers=_CACHEABLE, media_type="application/schema+json")

    async def status(request: Request) -> Response:
        found = await lists.published(str(request.path_params["name"]))
        headers = {**_CACHEABLE, "vary": "accept"}
        if TOKEN_KIND in request.headers.get("accept", ""):
            return Response(found.token, headers=headers, media_type=TOKEN_KIND)
        return Response(found.document, headers=headers, media_type="application/json")

    async def resolution(request: Request) -> Response:
        caller = await gate.caller(token_of(request), source_of(request))
        with acting_as(caller.actor):
            found = await resolver.resolve(_did(request))
        return JSONResponse(
            {
                "@context": "https://w3id.org/did-resolution/v1",
                "didDocument": found.content,
                "didResolutionMetadata": {"contentType": "application/did+json"},
                "didDocumentMetadata": {},
            },
            headers={"cache-control": "no-store"},
        )

    return [
        TemplateRoute(DID_PATH, _with_error_responses(document)),
        TemplateRoute(f"{SCHEMA_PATH}{{name}}", _with_error_responses(schema)),
        TemplateRoute(f"{STATUS_PATH}{{name}}", _with_error_responses(status)),
        TemplateRoute(f"{RESOLVE}{{did:path}}", _with_error_responses(resolution)),
    ]


def _with_error_responses(
    work: Callable[[Request], Awaitable[Response]],
) -> Callable[[Request], Awaitable[Response]]:
    async def answer(request: Request) -> Response:
        try:
            with acting_as(Actor("public", source_of(request))):  # the store has a connection for these readers
                return await work(request)
        except Exception as error:
            return problem.response(error, request.scope["path"])

    return answer


def _did(request: Request) -> str:
    """Return the DID that a client has sent.

    In a did:web, the colon before a port is written `%3A`. Some clients send `%3A` unchanged, and others percent-encode
    it again (`%253A`). This function reads the raw path. In the decoded path, `%3A` and a plain colon would look the
    same.
    """
    raw = request.scope.get("raw_path", b"").decode("ascii", "replace").partition("?")[0]
    written = raw.partition(RESOLVE)[2]
    return written if written.startswith("did:") and "%25" not in written else unquote(written)
