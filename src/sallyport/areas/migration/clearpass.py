"""Aruba ClearPass: the XML of Configuration > Network > Devices > Export All, with an element `NadClient` for each
device. Other elements of the file are findings."""

from collections.abc import Iterator
from pathlib import Path
from typing import Final

from sallyport.areas.migration.devices import Devices
from sallyport.areas.migration.translation import Options, Translation, Weight
from sallyport.areas.migration.xml import Element, read
from sallyport.base.errors import Invalid

_READ: Final = frozenset(
    {"name", "description", "ipAddress", "radiusSecret", "vendorName", "coaPort", "coaCapable", "nadGroups"}
)
_HEADER: Final = "TipsHeader"


def translate(path: Path, options: Options) -> Translation:
    """Read an export. Raises Invalid, OSError."""
    root, devices = read(path), Devices([options.domain])
    elements = list(_elements(root))
    if not any(each.tag == "NadClient" for each in elements):
        raise Invalid("the file has no element NadClient: export the network devices of ClearPass")
    for element in elements:
        if element.tag == "NadClient":
            _add(devices, element, f"{path.name}:{element.line}")
        elif element.tag != _HEADER:
            text = "the element has no place in Sallyport"
            devices.find(Weight.LEFT_OUT, element.name, f"{path.name}:{element.line}", text)
    return Translation(devices.items, devices.findings)


def _elements(root: Element) -> Iterator[Element]:
    """Yield the entries of all lists, and what is beside the lists."""
    for each in root.children:
        if each.tag.endswith("s") and each.children:
            yield from each.children
        elif each.tag != "NadClients":
            yield each


def _add(devices: Devices, element: Element, source: str) -> None:
    given, name = element.attributes, element.name
    tags = devices.tag("vendor", given.get("vendorName", ""), name, source)
    for group in filter(None, given.get("nadGroups", "").split(",")):
        tags += devices.tag("group", group, name, source)
    for each in element.children:
        key, value = each.attributes.get("tagName", ""), each.attributes.get("tagValue", "")
        if key and value:
            tags += devices.tag(key.replace(" ", "-"), value, name, source)
        else:
            devices.find(Weight.LEFT_OUT, name, source, f"the element {each.tag} is not imported")
    for attribute, value in given.items():
        if attribute not in _READ and value not in ("", "false"):
            devices.find(Weight.LEFT_OUT, name, source, f"the attribute {attribute} is not imported")
    port = given.get("coaPort", "")
    is_port = port.isascii() and port.isdecimal() and len(port) <= 5 and 0 < int(port) < 1 << 16
    coa = 0 if given.get("coaCapable") == "false" else int(port) if is_port else None
    if coa is None and port:
        devices.find(Weight.NOTE, name, source, f"coaPort {port[:20]!r} is no port, so the client has the default")
    devices.add(
        name, given.get("ipAddress", ""), given.get("radiusSecret", ""), source,
        tags=tags, note=given.get("description", ""), coaPort=coa,
    )  # fmt: skip
