"""`sallyport device`: the inventory."""

from collections.abc import Iterator

import click

from sallyport.base.command import CommandLine, Form, domains, entries
from sallyport.base.options import Group
from sallyport.base.wire import JSON, Row

LIST = "/network_device/ListDevices"
COLUMNS = (
    "device_id",
    "domain",
    "device_name",
    "device_type",
    "ip_address",
    "client_ip",
    "nas_device_type",
    "nas_port_type",
    "last_seen",
    "request_count",
    "registrations",
)
ALL_COLUMNS = (
    "device_id",
    "domain_id",
    "domain",
    "device_name",
    "device_type",
    "device_type_certainty",
    "ip_address",
    "client_ip",
    "nas_identifier",
    "nas_device_type",
    "nas_port_type",
    "first_seen",
    "last_seen",
    "request_count",
    "registrations",
)


@click.group(cls=Group)
def device() -> None:
    """Network devices, which register when they forward a login."""


@device.command("list")
@click.option("--domain", help="Only of this domain (name or domainId).")
@click.option("--search", default="", help="A part of name, product or address.")
@click.option("--json", "form", flag_value="json", help="As JSON.")
@click.option("--csv", "form", flag_value="csv", help="As CSV.")
@click.pass_obj
def list_(line: CommandLine, *, domain: str | None, search: str, form: Form | None) -> None:
    """List the inventory."""
    devices = (each for one in domains(line, domain) for each in _devices(line, one, search))
    line.print_rows(devices, ALL_COLUMNS if form == "csv" else COLUMNS, form)


@device.command()
@click.argument("device_id", metavar="ID", type=int)
@click.option("--domain", required=True, help="The domain's name or domainId.")
@click.option("--json", "as_json", is_flag=True, help="As JSON.")
@click.pass_obj
def show(line: CommandLine, *, device_id: int, domain: str, as_json: bool) -> None:
    """Show a device: the evidence for its product, its stations, and its history."""
    found = line.row("device.show", domain=domain, device_id=device_id)
    if as_json:
        line.print_json(found)
        return
    facts = {**found, "evidence": _evidence(found["evidence"])}
    lists = {"stations": ("station", "user", "last_seen"), "history": ("time", "event", "actor")}
    line.print_rows([{"device": name, "": value} for name, value in facts.items() if name not in lists], ("device", ""))
    for name, columns in lists.items():
        line.print(f"\n{name}:")
        line.print_rows(entries(found[name]), columns)


def _devices(line: CommandLine, domain: Row, search: str) -> Iterator[Row]:
    owner = {"domain_id": domain["domainId"], "domain": domain["domainName"]}
    body: Row = {"search": search}
    for each in line.listed(LIST, "network_devices", body, domain=str(domain["domainId"]), size=100):
        yield {**owner, **each}


def _evidence(value: JSON) -> str:
    """Return the evidence in one line."""
    if not isinstance(value, dict):
        return ""
    return "; ".join(
        f"{name}: {', '.join(map(str, each)) if isinstance(each, list) else each}" for name, each in value.items()
    )
