"""A field of a device is written in its class and in its SQL. Everything else follows."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from tests.areas import only_sqlite

REPOSITORY = Path(__file__).parents[3]
CLASS = ("areas/devices/rows.py", "    nas_identifier: NasIdentifier\n    device_type_certainty")
FIELD = '    floor: Annotated[str, Wire("Floor of the building.", title="Storey")]\n    device_type_certainty'
SQL = ("store/schema/inventory.sql", "evidence text not null\n")
COLUMN = "evidence text not null, floor text not null default 'ground'\n"
PROGRAM = """
import json, tempfile
from pathlib import Path
import trio
from sallyport.areas.devices.cli import CSV_COLUMNS
from sallyport.console.pages.devices import device_columns
from sallyport.service.operations import operations
from sallyport.web.description import document
from sallyport.web.scope import Caller, Gate, Role
from tests.areas import SetClock, running_areas
from tests.areas.devices.conftest import Seen

async def main():
    async with running_areas(Path(tempfile.mkdtemp()), SetClock()) as areas:
        seen = Seen(areas, await areas.client("192.0.2.0/24"))
        await seen.device("core")
        declared = [each for group in operations(areas.app, Gate(areas.app.tenancy.authentication, areas.domains))
                    for each in group.all]
        list_devices = next(each for each in declared if "/network_device/ListDevices" in each.paths)
        body = json.dumps({"orgId": 1, "tenantId": 1, "domainId": areas.domain}).encode()
        answer = json.loads(await list_devices.run(body, Caller(1, 1, 1, areas.tenant, Role.ADMIN, "test")))
        models = document(declared, "")["components"]["schemas"]
        console = {each.key: each.title for each in device_columns(areas.domain)}
    print(json.dumps([
        answer["network_devices"][0].get("floor"),
        models["DeviceEntry"]["properties"].get("floor"),
        models["DeviceDetail"]["properties"].get("floor"),
        "floor" in CSV_COLUMNS,
        console.get("floor"),
    ]))

trio.run(main)
"""


def _insert(root: Path, place: tuple[str, str], text: str) -> None:
    file, before = place
    old = (root / file).read_text()
    assert old.count(before) == 1
    end = "    device_type_certainty" if before.endswith("certainty") else before
    (root / file).write_text(old.replace(before, before.removesuffix(end) + text))


@only_sqlite
def test_a_field_of_a_device_is_written_in_its_class_and_in_its_sql(tmp_path: Path) -> None:
    """The answers, their description, and the columns of CSV files and of the console then have the field."""
    package = tmp_path / "src" / "sallyport"
    shutil.copytree(REPOSITORY / "src" / "sallyport", package, ignore=shutil.ignore_patterns("__pycache__"))
    shutil.copytree(REPOSITORY / "dictionaries", tmp_path / "dictionaries")
    _insert(package, CLASS, FIELD)
    _insert(package, SQL, COLUMN)
    environ = {**os.environ, "PYTHONPATH": f"{package.parent}{os.pathsep}{REPOSITORY}"}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environ, cwd=REPOSITORY, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    described = {"description": "Floor of the building.", "type": "string"}
    assert json.loads(done.stdout.splitlines()[-1]) == ["ground", described, described, True, "Storey"]
