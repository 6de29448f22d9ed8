"""The example playbook of Ansible is valid, its places are those of the package, and its plan is that of the files.
tests/deploy/test_package.py runs it with a package on a clean Debian.
"""

import json
import os
import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from sallyport.host.systemd import CONFIG_FILE, CREDENTIALS_DIR, UNIT
from tests.deploy.test_container import ROOT
from tests.peers.programs import needs
from tests.running_service import PROGRAM, RunningService, running_service

Ran = subprocess.CompletedProcess[str]
FILE = ROOT / "src" / "sallyport" / "deploy" / "ansible" / "playbook.yml"
PLAYS: list[dict[str, Any]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))
FIRST = str(PLAYS[1]["tasks"][0]["name"])
"""The name of the first task of the play of the configuration."""


@pytest.mark.peer
@needs("ansible-playbook")
def test_ansible_accepts_the_playbook() -> None:
    """Each module exists and has these parameters."""
    inventory = ("--inventory", "host.invalid,", "--extra-vars", "ansible_connection=local")
    command = ("ansible-playbook", *inventory, "--syntax-check", FILE)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def play(directory: Path, environ: Mapping[str, str], variables: Mapping[str, object], *options: str) -> Ran:
    """Run the playbook with these variables at a host with the name `node`, without sudo.

    directory: where the inventory and the files of Ansible are. environ: further variables of the environment.
    """
    inventory = directory / "hosts.ini"
    inventory.write_text("[sallyport]\nnode\n", encoding="utf-8")
    own = {"ansible_become": False, "ansible_python_interpreter": "/usr/bin/python3", **variables}
    command = ("ansible-playbook", "--inventory", inventory, "--extra-vars", json.dumps(own), *options, FILE)
    of_ansible = {"ANSIBLE_HOME": str(directory / "ansible"), "ANSIBLE_NOCOLOR": "1"}
    return subprocess.run(
        command, env={**os.environ, **of_ansible, **environ}, capture_output=True, text=True, check=False
    )


def apply(service: RunningService, folder: Path, *options: str) -> Ran:
    """Run the play of the configuration beside a service, with a folder of files. No copy of the folder stays."""
    copied = folder.with_name("copied")
    variables = {"configuration": str(folder), "copied": str(copied), "ansible_connection": "local"}
    environ = {"PATH": f"{PROGRAM.parent}:{os.environ['PATH']}", "SALLYPORT_DATA_DIR": str(service.data_dir)}
    done = play(folder.parent, environ, variables, "--start-at-task", FIRST, *options)
    assert not copied.exists()
    return done


def changed(done: Ran) -> int:
    """Return the number of changed tasks of a run that has succeeded."""
    assert done.returncode == 0, done.stdout + done.stderr
    (count,) = re.findall(r"(?m)^node .*changed=(\d+)", done.stdout)
    return int(count)


@pytest.mark.peer
@pytest.mark.system
@needs("ansible-playbook")
def test_a_check_shows_the_plan_of_the_files(tmp_path: Path) -> None:
    """`--check` shows what the files of now would change, and changes nothing. A second run changes nothing. An object
    that has gone from the files is removed.
    """
    folder = tmp_path / "office"
    folder.mkdir()
    names = ("first", "second", "third", "fourth")
    clients = {each: f'[[client]]\nname = "{each}"\naddress = "192.0.2.{at}"\n' for at, each in enumerate(names, 1)}
    secret = 'secret = "file:word"\ndomains = ["default"]\n'
    (folder / "word").write_text("a long secret of the clients\n")
    with running_service(tmp_path, {}) as service:
        (folder / "client.toml").write_text("".join(text + secret for text in clients.values()))
        planned = apply(service, folder, "--check")
        assert "+ client first" in planned.stdout and "4 to add, 0 to change, 0 to remove" in planned.stdout
        assert changed(planned) == 1
        assert service.clients() == {}
        assert changed(apply(service, folder)) == 2
        assert changed(apply(service, folder)) == 0
        (folder / "client.toml").write_text("".join(clients[each] + secret for each in names[1:]))
        pruned = apply(service, folder)
        assert changed(pruned) == 2 and "- client first" in pruned.stdout
        assert service.clients().keys() == {*names[1:]}


def test_the_places_are_those_of_the_package() -> None:
    """The settings, the credential and the unit are where the package has them."""
    text = FILE.read_text(encoding="utf-8")
    assert f"dest: {CONFIG_FILE}\n" in text and f"dest: {CREDENTIALS_DIR}/master.key\n" in text
    units = [task["ansible.builtin.systemd_service"] for play in PLAYS for task in _tasks(play) if _is_unit(task)]
    assert {each["name"] for each in units} == {UNIT.removesuffix(".service")}
    assert {each["state"] for each in units} == {"started", "restarted", "reloaded"}


def _tasks(play: dict[str, Any]) -> list[dict[str, Any]]:
    return [*play["tasks"], *play.get("handlers", [])]


def _is_unit(task: dict[str, Any]) -> bool:
    return "ansible.builtin.systemd_service" in task
