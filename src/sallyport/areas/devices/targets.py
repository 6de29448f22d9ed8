"""The devices of a domain as targets of Prometheus (`http_sd_config`), with their tags as labels.

Prometheus requests the targets with GET, and sends the token as `Authorization: Bearer`. So this is a route, and not an
operation of the API. The target is the address of the device without a port, with brackets around an IPv6 address. The
labels `tag_KEY` are the tags of the device. The other labels begin with `__meta_sallyport_`: Prometheus drops them
unless a relabelling keeps them.
"""

import re
from collections.abc import Sequence
from typing import Final

import trio
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import BaseRoute

from sallyport.areas.devices.rows import ClientTags, DeviceQuery, DeviceRow
from sallyport.areas.devices.service import Devices
from sallyport.base.actor import acting_as
from sallyport.base.errors import Conflict, Invalid, NotFound
from sallyport.base.fair import FairLimiter
from sallyport.base.tags import MAX_TAG, Tags, canonical_tag, effective_tags, key_of, of_store, value_of
from sallyport.base.wire import JSON
from sallyport.web import problem
from sallyport.web.bodies import OfDomain
from sallyport.web.handling import TemplateRoute, source_of, token_of
from sallyport.web.scope import READERS, Gate

PATH: Final = "/api/v1/network_device/targets/"
MAX_TARGETS: Final = 20_000
"""Maximum number of targets of a domain."""
MAX_CHARACTERS: Final = 16_000_000
"""Maximum number of characters of the labels of these targets. A device may take over 32 tags of its client, so without
this limit an answer could have 100 MB."""
BUILDING: Final = 1
"""Maximum number of answers that are built at the same time, because they are large, and 20,000 targets hold the
interpreter lock for 0.2 s."""
PAGE: Final = 1000
_NO_LETTER: Final = re.compile(r"[^a-z0-9_]")


def routes(service: Devices, gate: Gate) -> Sequence[BaseRoute]:
    """Return the route that lists the targets of a domain."""
    building = FairLimiter[int](BUILDING)

    async def targets(request: Request) -> Response:
        try:
            caller = await gate.caller(token_of(request), source_of(request))
            domain_id, tag = _domain_id(request), _tag(request)
            gate.admit(caller, [OfDomain(domainId=domain_id)], READERS)
            with gate.running(caller), acting_as(caller.actor):
                async with building.slot(caller.tenant_id):
                    rows = await _rows(service, domain_id, tag)
                    answer = await trio.to_thread.run_sync(answer_of, rows, service.tags.clients.tags_of)
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
    """Return the devices of a domain that a tag selects, at most MAX_TARGETS."""
    found = list[DeviceRow]()
    while len(found) < MAX_TARGETS:
        query = DeviceQuery(domain_id, tag=tag, offset=len(found), limit=PAGE)
        rows, *_ = await service.page(query)
        found += rows
        if len(rows) < PAGE:
            break
    return found


def answer_of(rows: Sequence[DeviceRow], client_tags: ClientTags) -> Response:
    """Return the devices as targets. Raises Conflict if their labels are too long. client_tags: returns the tags of a
    RADIUS client."""
    found, size = list[JSON](), 0
    for row in rows:
        labels = _labels(row, client_tags)
        size += sum(map(len, labels.values()))
        if size > MAX_CHARACTERS:
            raise Conflict(f"the labels have over {MAX_CHARACTERS} characters: select fewer devices with the tag")
        found.append({"targets": [_host(row.client_ip)], "labels": dict[str, JSON](labels)})
    return JSONResponse(found, headers={"cache-control": "no-store"})


def _host(address: str) -> str:
    """Return an address as the host of a URL, because Prometheus appends a port to it."""
    return f"[{address}]" if ":" in address else address


def _tag_labels(tags: Tags) -> dict[str, str]:
    """Return a label for each tag. If two keys give one label, such as `a-b` and `a_b`, the key without `-` and `.`
    keeps it, and the other ones get a number: `tag_a_b_2`."""
    labels = dict[str, str]()
    for tag in sorted(tags, key=lambda each: _NO_LETTER.search(key_of(each)) is not None):
        name = same = f"tag_{_NO_LETTER.sub('_', key_of(tag))}"
        number = 1
        while name in labels:
            number += 1
            name = f"{same}_{number}"
        labels[name] = value_of(tag)
    return labels


def _labels(row: DeviceRow, client_tags: ClientTags) -> dict[str, str]:
    tags = effective_tags(of_store(row.own_tags), client_tags(row.client_id))
    return _tag_labels(tags) | {
        "__meta_sallyport_device_id": str(row.id),
        "__meta_sallyport_device": row.device_name,
        "__meta_sallyport_product": row.device_type,
        "__meta_sallyport_model": row.model,
        "__meta_sallyport_firmware": row.firmware,
        "__meta_sallyport_address": row.client_ip,
        "__meta_sallyport_source": row.ip_address,
        "__meta_sallyport_medium": row.nas_port_type,
        "__meta_sallyport_last_seen": str(row.last_seen // 1_000_000),
    }
