"""`sallyport grafana export`: the dashboards of Grafana and the rules of Prometheus that belong to this version."""

from pathlib import Path
from typing import Final

import click

from sallyport.base.shipped import shipped
from sallyport.host import disk
from sallyport.shell.command import CommandLine
from sallyport.shell.options import Group

FOLDERS: Final = ("dashboards", "prometheus/rules", "provisioning")
READABLE: Final = 0o644


@click.group(cls=Group)
def grafana() -> None:
    """Dashboards of Grafana, and rules of Prometheus."""


@grafana.command()
@click.argument("folder", type=click.Path(file_okay=False, path_type=Path))
@click.pass_obj
def export(line: CommandLine, folder: Path) -> None:
    """Write the dashboards, the rules and the files that provision them into a folder. Files of the same names are
    replaced."""
    source = shipped("grafana", FOLDERS[0], "the dashboards")
    found = sorted(path for name in FOLDERS for path in (source / name).rglob("*.*") if path.is_file())
    for path in found:
        place = folder / path.relative_to(source)
        disk.make_folder(place.parent)
        disk.write(place, path.read_bytes(), mode=READABLE)
    line.note(f"{folder}: {len(found)} files written")
