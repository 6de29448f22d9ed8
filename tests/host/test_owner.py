"""The change from root to the owner of a directory."""

import grp
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from sallyport.host.owner import user_name

SCRIPT = """
import json, os, sys
from pathlib import Path
from sallyport.host.owner import become_owner

directory = Path(sys.argv[1])
name = become_owner(directory)
try:
    os.setresuid(0, 0, 0)
except PermissionError:
    pass
print(json.dumps([name, os.getresuid(), os.getresgid(), os.getgroups(), become_owner(directory)]))
"""
"""A script that gives up root, tries to become root again, and gives up root a second time. It prints its identity and
the result of the second call.
"""

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give itself up")


def identity(directory: Path) -> list[object]:
    """Run SCRIPT in a child process as root and return its output."""
    done = subprocess.run([sys.executable, "-c", SCRIPT, directory], capture_output=True, text=True, check=True)
    found: list[object] = json.loads(done.stdout)
    return found


@pytest.mark.parametrize(
    ("user", "group", "groups"),
    [
        pytest.param("nobody", "nogroup", ["nogroup"], id="a user of the system, with its own groups"),
        pytest.param(54_321, 54_322, [54_322], id="a user without a name, with the group of the directory"),
    ],
)
def test_root_is_given_up_for_the_owner(
    tmp_path: Path, user: str | int, group: str | int, groups: list[str | int]
) -> None:
    """The real, effective and saved IDs are those of the owner. The process has no group of root and cannot become root
    again.
    """
    shutil.chown(tmp_path, user, group)
    status = tmp_path.stat()
    name, users, primary, others, again = identity(tmp_path)
    assert (name, again) == (user_name(status.st_uid), "")
    assert (users, primary) == ([status.st_uid] * 3, [status.st_gid] * 3)
    assert others == [grp.getgrnam(each).gr_gid if isinstance(each, str) else each for each in groups]


def test_root_stays_root_in_its_own_directory(tmp_path: Path) -> None:
    name, users, *_ = identity(tmp_path)
    assert (name, users) == ("", [0, 0, 0])
