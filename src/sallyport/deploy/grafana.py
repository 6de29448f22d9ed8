"""`sallyport grafana export`: the dashboards of Grafana and the rules of Prometheus that belong to this version."""

from importlib.resources import files
from pathlib import Path
from typing import Final

import click

from sallyport.base.errors import StartError
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
    source = packaged()
    found = sorted(path for name in FOLDERS for path in (source / name).rglob("*.*") if path.is_file())
    for path in found:
        place = folder / path.relative_to(source)
        disk.make_folder(place.parent)
        disk.write(place, path.read_bytes(), mode=READABLE)
    line.note(f"{folder}: {len(found)} files written")


def packaged() -> Path:
    """Return the folder of the files that come with Sallyport: in the package, or else beside the source. Raises
    StartError if it does not exist."""
    inside, beside = Path(str(files("sallyport"))) / "grafana", Path(__file__).resolve().parents[3] / "grafana"
    for folder in (inside, beside):
        if (folder / FOLDERS[0]).is_dir():
            return folder
    raise StartError(f"{inside}: the dashboards of Sallyport are missing: install the package again")
