"""`sallyport completion`: the scripts work in the real shells. The list of commands is completed without imports."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.peers.programs import find, needs
from tests.running_service import PROGRAM

ENVIRON = {**os.environ, "PATH": f"{PROGRAM.parent}:{os.environ['PATH']}"}
ASK = {
    "bash": 'source "$1"; COMP_WORDS=($2 ""); COMP_CWORD=$3; _sallyport_completion sallyport; echo "${COMPREPLY[*]}"',
    "zsh": 'compdef() { }; _describe() { print $completions_with_descriptions }; compadd() { print $completions }; '
    'source "$1"; words=(${=2} ""); CURRENT=$(($3 + 1)); _sallyport_completion',
    "fish": 'source $argv[1]; complete -C "$argv[2] "',
}  # fmt: skip
"""For each shell a script with the arguments: the file of the completion, the words before the cursor, and their
number. It prints the possible words."""


@pytest.mark.peer
@pytest.mark.parametrize("shell", [pytest.param(each, marks=needs(each)) for each in ASK])
@pytest.mark.parametrize(
    ("before", "words"),
    [
        ("sallyport", {"client", "completion", "serve"}),
        ("sallyport agent key", {"create", "list", "revoke"}),
        ("sallyport log level", {"debug", "info", "warning", "error"}),
    ],
)
def test_a_shell_completes_commands(shell: str, before: str, words: set[str], tmp_path: Path) -> None:
    """The shell shows the commands of the program and of a group inside a group, and the values of an argument."""
    script = tmp_path / "script"
    script.write_bytes(subprocess.run([PROGRAM, "completion", shell], capture_output=True, check=True).stdout)
    ask = [find(shell), "-c", ASK[shell], *(["x"] if shell != "fish" else []), script, before, str(len(before.split()))]
    done = subprocess.run(ask, env=ENVIRON, capture_output=True, text=True, check=True)
    shown = {word.partition(":")[0] for word in done.stdout.split()}
    assert words <= shown, done


def test_the_list_of_commands_is_completed_without_importing_them() -> None:
    """The words, with their texts, come from the list of the help. Options are completed too."""
    code = (
        "import sys, click; from sallyport.cli.main import root; ask = root.shell_complete; "
        "context = click.Context(root); items = [*ask(context, 'cl'), *ask(context, '--c')]; "
        "print([each.value for each in items], [name for name in sys.modules if '.areas.' in name])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "['client', '--config'] []\n"
