"""Tests of sallyport.areas.migration. `export` writes an export of NPS with values of our own."""

from collections.abc import Iterable, Mapping, Sequence
from xml.sax.saxutils import escape, quoteattr

from sallyport.areas.configuration.item import Item
from sallyport.areas.migration.translation import Translation

DT = 'xmlns:dt="urn:schemas-microsoft-com:datatypes"'
NO_GUID = "{00000000-0000-0000-0000-000000000000}"
ALWAYS = 'TIMEOFDAY("' + "; ".join(f"{day} 00:00-24:00" for day in range(7)) + '")'
STAFF = "S-1-5-21-1004336348-1177238915-682003330-1107"
GUESTS = "S-1-5-21-1004336348-1177238915-682003330-1108"
Values = Mapping[str, str | int | Sequence[str | int]]


def tag(name: str) -> str:
    """Return the name of an element for a display name, as NPS makes it."""
    text = "".join(each if each.isalnum() else "_" for each in name)
    return text if text[:1].isalpha() or text[:1] == "_" else f"_{text[1:]}"


def properties(values: Values) -> str:
    """Return an element `Properties`."""
    parts = [
        f'<{name} {DT} dt:dt="string">{escape(str(each))}</{name}>'
        for name, given in values.items()
        for each in ([given] if isinstance(given, str | int) else given)
    ]
    return f"<Properties>{''.join(parts)}</Properties>"


def named(name: str, inner: str) -> str:
    """Return an element with a display name."""
    return f"<{tag(name)} name={quoteattr(name)}>{inner}</{tag(name)}>"


def box(name: str, children: Iterable[str]) -> str:
    """Return a container."""
    return f'<{name} name="{name}"><Children>{"".join(children)}</Children></{name}>'


def client(name: str, address: str, secret: str = "radius-secret-77", **other: str | int) -> str:  # noqa: S107
    """Return a RADIUS client."""
    return named(
        name,
        properties(
            {
                "Client_Secret_Template_Guid": NO_GUID, "IP_Address": address, "NAS_Manufacturer": 0, "Opaque_Data": "",
                "Radius_Client_Enabled": 1, "Require_Signature": 0, "Shared_Secret": secret, "Template_Guid": NO_GUID,
                **other,
            }
        ),
    )  # fmt: skip


def policy(name: str, sequence: int, constraints: Sequence[str], **other: str | int) -> str:
    """Return a network policy, or a connection request policy."""
    return named(
        name,
        properties(
            {
                "Opaque_Data": "", "Policy_Enabled": 1, "Policy_SourceTag": 0, "Template_Guid": NO_GUID,
                "msNPAction": name, "msNPConstraint": constraints, "msNPSequence": sequence, **other,
            }
        ),
    )  # fmt: skip


def profile(name: str, *, grants: bool = True, **other: str | int | Sequence[str | int]) -> str:
    """Return the profile of a policy. It ignores the dial-in permission of accounts."""
    values: Values = {
        "IP_Filter_Template_Guid": NO_GUID, "Opaque_Data": "", "Template_Guid": NO_GUID,
        "msIgnoreUserDialinProperties": 1, "msNPAllowDialin": int(grants), **other,
    }  # fmt: skip
    return named(name, properties(values))


def export(
    clients: Iterable[str] = (),
    policies: Iterable[str] = (),
    profiles: Iterable[str] = (),
    *,
    proxies: str = "",
    templates: str = "",
    flat: bool = False,
    head: str = '<?xml version="1.0"?>',
) -> str:
    """Return an export of NPS. flat: whether the clients are directly below the service."""
    vendors = box("Vendors", [named("Contoso", properties({"NAS_Vendor_Id": 9}))])
    own = box("Clients", clients)
    protocol = f'<Microsoft_Radius_Protocol name="Microsoft Radius Protocol">{properties({"Component_Id": 262144})}'
    protocol += f"<Children>{vendors}{'' if flat else own}</Children></Microsoft_Radius_Protocol>"
    inner = box("RadiusProfiles", profiles) + box("NetworkPolicy", policies) + proxies
    inner += box("Protocols", [protocol]) + (own if flat else "") + box("RequestHandlers", [named("Log", "")])
    service = "Microsoft_Internet_Authentication_Service"
    return (
        f'{head}<Root {DT}><Children><Version name="Version" dt:dt="int">257</Version>'
        f'<{service} name="{service}"><Properties><Description>NPS</Description></Properties>'
        f"<Children>{inner}</Children></{service}>{templates}{box('SDO_Schema', [])}</Children></Root>"
    )


def rules(found: Translation) -> list[Item]:
    """Return the rules in the order in which they are read."""
    return sorted(
        (each for each in found.items if each.kind == "rule"), key=lambda each: int(str(each.fields["priority"]))
    )


def texts(found: Translation) -> str:
    """Return all findings as one text."""
    return "\n".join(f"{each.weight}: {each.name} ({each.source}): {each.text}" for each in found.findings)
