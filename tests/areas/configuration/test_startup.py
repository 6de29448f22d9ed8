"""The folder of the setting `apply`."""

from collections.abc import Mapping
from pathlib import Path

from sallyport.areas.configuration.startup import Startup
from sallyport.areas.domains.domain import SETTINGS
from sallyport.areas.domains.repo import Update
from tests.areas import Areas

NAME = "sallyport_configuration_not_applied"


def startup_of(areas: Areas, folder: Path, environ: Mapping[str, str]) -> Startup:
    """Return the task with a folder of the test."""
    configured = areas.app.configured
    return Startup(folder, configured.engine, areas.tenancy, configured.metrics, areas.clock, environ)


async def test_a_folder_is_applied_at_the_start_and_after_changes(areas: Areas, tmp_path: Path) -> None:
    """The folder is applied once, and again after a change of a file. Objects that left the files are removed."""
    folder = tmp_path / "folder"
    folder.mkdir()
    entry = '[[client]]\nname = "{}"\naddress = "192.0.2.{}"\nsecret = "env:SALLYPORT_SECRET_A"\n'
    (folder / "client.toml").write_text("".join(entry.format(f"c{n}", n) for n in range(1, 6)))
    startup = startup_of(areas, folder, {"SALLYPORT_SECRET_A": "of the environment"})
    await startup.look()
    assert len(areas.clients.of_tenant(areas.tenant)) == 5
    version = areas.configuration.version
    await startup.look()
    assert areas.configuration.version == version
    (folder / "client.toml").write_text("".join(entry.format(f"c{n}", n) for n in range(2, 6)))
    await startup.look()
    assert [each.name for each in areas.clients.of_tenant(areas.tenant)] == ["c2", "c3", "c4", "c5"]


async def test_only_the_node_with_the_lease_applies_the_folder(areas: Areas) -> None:
    """Several nodes with the same folder do not apply it at once."""
    startup = areas.app.configured.startup
    assert startup.run in areas.app.areas.leader_tasks and startup.run not in areas.app.areas.node_tasks


async def test_a_config_map_is_applied_and_followed(areas: Areas, tmp_path: Path) -> None:
    """Kubernetes shows a ConfigMap as links through `..data`, a link that it replaces at each change."""
    entry = '[[client]]\nname = "a"\naddress = "192.0.2.{}"\nsecret = "env:SALLYPORT_SECRET_A"\n'
    for version in ("1", "2"):
        (tmp_path / f"..{version}").mkdir()
        (tmp_path / f"..{version}" / "client.toml").write_text(entry.format(version))
    data = tmp_path / "..data"
    data.symlink_to("..1")
    (tmp_path / "client.toml").symlink_to("..data/client.toml")
    startup = startup_of(areas, tmp_path, {"SALLYPORT_SECRET_A": "of the environment"})
    await startup.look()
    assert [each.address for each in areas.clients.of_tenant(areas.tenant)] == ["192.0.2.1"]
    (tmp_path / "..next").symlink_to("..2")
    (tmp_path / "..next").rename(data)
    await startup.look()
    assert [each.address for each in areas.clients.of_tenant(areas.tenant)] == ["192.0.2.2"], startup.state


async def test_a_change_beside_the_files_is_named(areas: Areas, tmp_path: Path) -> None:
    """`doctor` gets the objects that were changed after the folder was applied, until it is applied again."""
    file = tmp_path / "domain.toml"
    file.write_text('[[domain]]\ndomainName = "lab"\n')
    startup = startup_of(areas, tmp_path, {})
    await startup.look()
    assert (await startup.shown())["differs"] == []  # type: ignore[index,call-overload]
    lab = areas.domains.named(areas.tenant, "lab")
    await areas.domains.update(lab.id, Update(settings={SETTINGS["rememberHours"]: 8}))
    assert (await startup.shown())["differs"] == ["domain lab"]  # type: ignore[index,call-overload]
    file.write_text('[[domain]]\ndomainName = "lab"\nrememberHours = 8\n')
    await startup.look()
    assert (await startup.shown())["differs"] == []  # type: ignore[index,call-overload]


async def test_a_wrong_folder_changes_nothing(areas: Areas, tmp_path: Path) -> None:
    """What was applied stays, the metric is 1, and `doctor` gets the problem without a secret, until the folder is
    right again."""
    folder = tmp_path / "folder"
    folder.mkdir()
    file = folder / "client.toml"
    file.write_text('[[client]]\nname = "a"\naddress = "192.0.2.1"\nsecret = "env:SALLYPORT_SECRET_A"\n')
    startup = startup_of(areas, folder, {"SALLYPORT_SECRET_A": "s3cret"})
    await startup.look()
    right = file.read_text()
    for wrong in ("[[client]\n", right.replace("192.0.2.1", "here"), right.replace("env:", "file:"), ""):
        file.write_text(wrong)
        await startup.look()
        assert startup.state.problem and "s3cret" not in startup.state.problem
        assert areas.registry.get_sample_value(NAME) == 1
        assert [each.address for each in areas.clients.of_tenant(areas.tenant)] == ["192.0.2.1"]
    file.write_text(right)
    await startup.look()
    assert startup.state.problem == "" and areas.registry.get_sample_value(NAME) == 0


async def test_wrong_files_add_no_tenant(areas: Areas, tmp_path: Path) -> None:
    """The files of a tenant that does not exist add it only if they are right."""
    file = tmp_path / "7-1.client.toml"
    file.write_text('[[client]]\nname = "a"\naddress = "here"\nsecret = "env:SALLYPORT_SECRET_A"\n')
    startup = startup_of(areas, tmp_path, {"SALLYPORT_SECRET_A": "of the environment"})
    await startup.look()
    assert "client.toml" in startup.state.problem and (7, 1) not in (await areas.tenancy.numbers()).values()
    file.write_text(file.read_text().replace("here", "192.0.2.1"))
    await startup.look()
    assert startup.state.problem == "" and (7, 1) in (await areas.tenancy.numbers()).values()
