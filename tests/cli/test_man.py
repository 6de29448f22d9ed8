"""The man pages describe every command and option, and two readers of man pages find no fault in them."""

import os
import re
import subprocess
from pathlib import Path

import click
import pytest

from sallyport.cli import man
from sallyport.cli.main import root
from sallyport.shell.exits import ExitStatus
from tests.peers.programs import find, needs


def plain(text: str) -> str:
    """Return a page without escapes and requests for fonts."""
    return re.sub(r"\\f[BR]|\\&", "", text).replace("\\-", "-").replace("\\e", "\\")


PAGES = {name: plain(text) for name, text in man.pages(man.SERVICE)}


def test_every_command_has_its_page() -> None:
    """The page of the program lists each command, each exit status, and the files. Each command has a page."""
    names = root.list_commands(click.Context(root))
    assert PAGES.keys() == {"sallyport", *(f"sallyport-{name}" for name in names)}
    assert not [name for name in names if f"\n.TP\n{name}\n" not in PAGES["sallyport"]]
    assert not [each for each in ExitStatus if f"\n.TP\n{each.value}\n{each.meaning}\n" not in PAGES["sallyport"]]
    assert "/etc/sallyport/sallyport.toml" in PAGES["sallyport"]


@pytest.mark.parametrize("words", ["client add", "agent key create", "user passkey remove"])
def test_a_page_has_the_options_of_its_commands(words: str) -> None:
    """The section of a command has its usage and all its options, also in a group inside a group."""
    command, context = root, click.Context(root, info_name="sallyport")
    for word in words.split():
        assert isinstance(command, click.Group)
        found = command.get_command(context, word)
        assert found is not None
        command, context = found, click.Context(found, info_name=word, parent=context)
    section = PAGES[f"sallyport-{words.split(maxsplit=1)[0]}"].partition(f'.SS "{words}"\n')[2].partition("\n.SS")[0]
    assert section.startswith(f"sallyport {words} ")
    options = [each.opts[0] for each in command.params if isinstance(each, click.Option)]
    assert options and not [each for each in options if f"\n.TP\n{each}" not in section]


@pytest.mark.peer
@pytest.mark.parametrize(
    "check",
    [
        pytest.param(("man", "--warnings", "-E", "UTF-8", "-Tutf8", "-Z", "-l"), marks=needs("man"), id="man"),
        pytest.param(("mandoc", "-T", "lint", "-W", "warning"), marks=needs("mandoc"), id="mandoc"),
    ],
)
def test_readers_find_no_fault(check: tuple[str, ...], tmp_path: Path) -> None:
    """groff, behind man, and mandoc have no warning about any page."""
    environ = os.environ | {"LC_ALL": "C.UTF-8", "MANWIDTH": "80"}
    for page in (*man.write(tmp_path, man.SERVICE), *man.write(tmp_path, man.AGENT)):
        done = subprocess.run(
            [find(check[0]), *check[1:], page], env=environ, capture_output=True, text=True, check=False
        )
        assert (done.returncode, done.stderr) == (0, ""), page
        assert check[0] == "man" or done.stdout == "", page


def test_the_date_of_a_page_is_that_of_the_build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two builds of the same source give the same pages, because the build sets SOURCE_DATE_EPOCH."""
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "1700000000")
    assert '.TH SALLYPORT 1 "2023-11-14" "Sallyport ' in man.write(tmp_path, man.SERVICE)[0].read_text(encoding="utf-8")
