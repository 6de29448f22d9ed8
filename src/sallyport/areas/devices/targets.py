"""The devices of a domain as targets of Prometheus (`http_sd_config`), with their tags as labels.

Prometheus requests the targets with GET, and sends the token as `Authorization: Bearer`. So this is a route, and not an
operation of the API. The target is the address of the device without a port. The labels `tag_KEY` are the tags of the
device. The other labels begin with `__meta_sallyport_`: Prometheus drops them unless a relabelling keeps them.
"""

import re
from collections.abc import Sequence
from typing import Final

import trio
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from sallyport.areas.devices.device import DeviceQuery, DeviceRow
from sallyport.areas.devices.service import Devices
from sallyport.base.actor import acting_as
from sallyport.base.errors import Invalid, NotFound
from sallyport.base.tags import MAX_TAG, canonical_tag, effective_tags, key_of, of_store, value_of
from sallyport.base.wire import JSON, Row
from sallyport.web import problem
from sallyport.web.bodies import OfDomain
from sallyport.web.handling import TemplateRoute, source_of, token_of
from sallyport.web.scope import READERS, Gate

PATH: Final = "/api/v1/network_device/targets/"
MOST: Final = 20_000
"""Maximum number of targets of a domain."""
PAGE: Final = 1000
_NO_LETTER: Final = re.compile(r"[^a-z0-9_]")


def routes(service: Devices, gate: Gate) -> Sequence[BaseRoute]:
    """Return the route that lists the targets of a domain."""

    async def targets(request: Request) -> Response:
        try:
            caller = await gate.caller(token_of(request), source_of(request))
            domain_id, tag = _domain_id(request), _tag(request)
            gate.admit(caller, [OfDomain(domainId=domain_id)], READERS)
            with gate.running(caller), acting_as(caller.actor):
                rows = await _rows(service, domain_id, tag)
                answer = await trio.to_thread.run_sync(_answer, rows, service)  # 20,000 targets take 0.2 s
            return gate.answers.counted(answer, caller.tenant_id)
        except Exception as error:
            return problem.response(error, request.scope["path"])

    return [TemplateRoute(f"{PATH}{{domain}}", targets)]


def _domain_id(request: Request) -> int:
    text = str(request.path_params["domain"])
    if not (text.isascii() and text.isdecimal() and len(text) < 19):
        raise NotFound("domain not found")
    return int(text)


def _tag(request: Request) -> str:
    text = request.query_params.get("tag", "")
    if len(text) > MAX_TAG:
        raise Invalid("invalid tag")
    return canonical_tag(text, "tag") if text else ""


async def _rows(service: Devices, domain_id: int, tag: str) -> list[DeviceRow]:
    """Return the devices of a domain that a tag selects, at most MOST."""
    found = list[DeviceRow]()
    while len(found) < MOST:
        query = DeviceQuery(domain_id, tag=tag, offset=len(found), limit=PAGE)
        rows, _ = await service.page(query)
        found += rows
        if len(rows) < PAGE:
            break
    return found


def _answer(rows: Sequence[DeviceRow], service: Devices) -> Response:
    return JSONResponse([_target(row, service) for row in rows], headers={"cache-control": "no-store"})


def _target(row: DeviceRow, service: Devices) -> JSON:
    tags = effective_tags(of_store(row.own_tags), service.tags.clients.tags_of(row.client_id))
    labels: Row = {f"tag_{_NO_LETTER.sub('_', key_of(tag))}": value_of(tag) for tag in tags}
    labels |= {
        "__meta_sallyport_device_id": str(row.id),
        "__meta_sallyport_device": row.device_name,
        "__meta_sallyport_product": row.device_type,
        "__meta_sallyport_source": row.ip_address,
        "__meta_sallyport_medium": row.nas_port_type,
        "__meta_sallyport_last_seen": str(row.last_seen // 1_000_000),
    }
    return {"targets": [row.client_ip], "labels": labels}
