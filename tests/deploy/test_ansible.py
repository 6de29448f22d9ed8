"""The example playbook of Ansible is valid, and its places are those of the package."""

import subprocess
from typing import Any

import pytest
import yaml

from sallyport.host.systemd import CONFIG_FILE, CREDENTIALS_DIR, UNIT
from tests.deploy.test_container import ROOT
from tests.peers.programs import needs

FILE = ROOT / "src" / "sallyport" / "deploy" / "ansible" / "playbook.yml"
PLAYS: list[dict[str, Any]] = yaml.safe_load(FILE.read_text(encoding="utf-8"))


@pytest.mark.peer
@needs("ansible-playbook")
def test_ansible_accepts_the_playbook() -> None:
    """Each module exists and has these parameters."""
    inventory = ("--inventory", "host.invalid,", "--extra-vars", "ansible_connection=local")
    command = ("ansible-playbook", *inventory, "--syntax-check", FILE)
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


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
