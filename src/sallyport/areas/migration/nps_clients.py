"""The RADIUS clients of an export of NPS, and what its readers share."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final

from sallyport.areas.configuration.item import Item
from sallyport.areas.migration.devices import Devices
from sallyport.areas.migration.nps_policy import ClientOfFile
from sallyport.areas.migration.nps_profile import NO_GUID
from sallyport.areas.migration.translation import Finding, Options, Weight
from sallyport.areas.migration.xml import Element

MAX_TAG: Final = 128


@dataclass(slots=True)
class NpsImport:
    """The objects and findings of an export so far. source: the name of the file."""

    source: str
    options: Options
    items: list[Item] = field(default_factory=list)
    findings: list[Finding] = field(default_factory=list)

    def at(self, element: Element) -> str:
        return f"{self.source}:{element.line}"

    def find(self, weight: Weight, element: Element, text: str) -> None:
        self.findings.append(Finding(weight, element.name, self.at(element), text))


def below(element: Element, depth: int) -> Iterator[Element]:
    for each in element.children:
        yield each
        if depth > 1:
            yield from below(each, depth - 1)


def container(element: Element, *tags: str) -> Element | None:
    """Return the element `Children` below a path of tags, each in the `Children` of the one before."""
    at: Element | None = element
    for tag in tags:
        inner = at.child("Children") if at is not None else None
        at = inner.child(tag) if inner is not None else None
    return at.child("Children") if at is not None else None


def clients_of_file(
    found: NpsImport, root: Element, service: Element, domains: Sequence[str]
) -> tuple[list[Item], list[ClientOfFile]]:
    """Return the clients, which are below the protocol, or directly below the service, as objects, and as conditions
    name them."""
    places = (("Protocols", "Microsoft_Radius_Protocol", "Clients"), ("Clients",))
    elements = [each for place in places if (box := container(service, *place)) is not None for each in box.children]
    secrets, vendors = _template_secrets(root), _vendors(root)
    devices, of_file = Devices(domains), list[ClientOfFile]()
    for element in elements:
        vendor = _vendor(element)
        client = _client(found, devices, element, secrets, vendors.get(vendor, ""))
        if client is None:
            continue
        of_file.append(ClientOfFile(client.name, str(client.fields["address"]), vendor))
        if vendor != "0" and vendor not in vendors:
            found.find(Weight.NOTE, element, f"its vendor {vendor} (NAS_Manufacturer) has no name in the file")
    found.findings += devices.findings
    return devices.items, of_file


def _template_secrets(root: Element) -> dict[str, str]:
    """Return the secrets of templates by GUID."""
    found = dict[str, str]()
    for box in below(root, 5):
        if box.tag.casefold().endswith("shared_secrets_templates") and (inner := box.child("Children")) is not None:
            box.is_read = True
            for each in inner.children:
                each.is_read = True
                if (properties := each.child("Properties")) is not None:
                    guid = properties.value("Template_Guid")
                    secret = properties.value("RADIUS_Shared_Secret") or properties.value("Shared_Secret")
                    if guid and secret:
                        found[guid.upper()] = secret
    return found


def _vendors(root: Element) -> dict[str, str]:
    """Return the names of vendors by their IANA number."""
    found = dict[str, str]()
    for box in below(root, 8):
        if box.tag == "Vendors":
            box.mark()
            for each in below(box, 2):
                for properties in each.children:
                    if properties.tag == "Properties" and (number := properties.value("NAS_Vendor_Id")):
                        found[number] = each.name
    return found


def _vendor(element: Element) -> str:
    properties = element.child("Properties")
    return (properties.value("NAS_Manufacturer") if properties is not None else "") or "0"


def _client(found: NpsImport, devices: Devices, element: Element, secrets: dict[str, str], vendor: str) -> Item | None:
    properties = element.child("Properties")
    if properties is None:
        return None
    element.is_read = True
    address, secret = properties.value("IP_Address"), properties.value("Shared_Secret")
    enabled, signed = properties.value("Radius_Client_Enabled"), properties.value("Require_Signature")
    guids = [properties.value(tag).upper() for tag in ("Client_Secret_Template_Guid", "Template_Guid")]
    secret = secret or next((secrets[guid] for guid in guids if guid in secrets), "")
    for tag in ("Opaque_Data", "Quarantine_Compatible"):
        properties.value(tag)
    if enabled in ("0", "false"):
        found.find(Weight.LEFT_OUT, element, "the client is disabled on the old server")
        return None
    if not secret:
        is_template = any(guid not in ("", NO_GUID) for guid in guids)
        reason = "the template of its secret is not in the file" if is_template else "it has no secret in the file"
        found.find(Weight.LEFT_OUT, element, f"{reason}: export with exportPSK=YES")
        return None
    return devices.add(
        element.name, address, secret, found.at(element),
        requireMessageAuthenticator="yes" if signed in ("1", "true") else "auto",
        tags=[f"vendor={vendor}"[:MAX_TAG]] if vendor else [],
    )  # fmt: skip
