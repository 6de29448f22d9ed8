"""The documentation builds without warnings. It names only commands, variables and API paths that exist."""

import json
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import click
import pytest
from sphinx.application import Sphinx

from docs import reference
from sallyport import __version__
from sallyport.areas.did.public import RESOLVE
from sallyport.areas.events.outlets.transport import targets_of
from sallyport.cli.main import root
from sallyport.console.pages import ALL
from sallyport.settings.settings import Settings, load
from sallyport.settings.values import MASTER_KEY, MASTER_KEY_FILE, PREFIX, environment_name
from sallyport.settings.values import SECRET_PREFIX as SECRETS

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CONTRIBUTING.md", "SECURITY.md", "docs/reference_intros.yml")),
    *(page for page in (ROOT / "docs").rglob("*.md") if "reference" not in page.parts),
]
COMMAND = re.compile(r"^ *\$ (?:sudo )?(?:\S*bin/)?(sallyport .*)|`(sallyport [^`]*)`", re.MULTILINE)
VARIABLES = {MASTER_KEY, MASTER_KEY_FILE, *(environment_name(name) for name in Settings.model_fields)}
API = {*reference.api()["paths"], RESOLVE}
CONSOLE = {re.sub(r"\{(\w+)\}", lambda found: found[1].upper(), page.path) for area in ALL for page in area.pages}


def shown_commands() -> list[tuple[str, str]]:
    """Return each command that a page shows, with the name of the page."""
    found = []
    for page in PAGES:
        text = page.read_text(encoding="utf-8").replace("\\\n", " ")  # a command may have several lines
        for block, inline in COMMAND.findall(text):
            found.append((page.relative_to(ROOT).as_posix(), block or inline))
    return found


def test_the_documentation_builds_without_warnings(tmp_path: Path) -> None:
    """A broken link, a page that is missing in the table of contents, and a log event without text are errors. The
    description of the API is beside the pages. The theme is a plain one: that of `make docs` takes half of the time."""
    plain = ("-D", "html_theme=basic")
    done = subprocess.run(
        [sys.executable, "-m", "sphinx", "-W", "--keep-going", "-q", "-b", "html", *plain, "docs", str(tmp_path)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (tmp_path / "reference" / "commands.html").exists()
    described = json.loads((tmp_path / "openapi.json").read_text(encoding="utf-8"))
    assert described["info"]["version"] == __version__ and "/ad/GetAllDomains" in described["paths"]


@pytest.mark.parametrize(
    ("form", "error", "names"),
    [("html", None, ["openapi.json"]), ("html", ValueError("no page"), []), ("latex", None, [])],
)
def test_only_a_complete_build_has_the_description(
    tmp_path: Path, form: str, error: Exception | None, names: list[str]
) -> None:
    """A build that has failed, and one that writes no pages of HTML, write no openapi.json."""
    sphinx = cast(Sphinx, SimpleNamespace(builder=SimpleNamespace(format=form), outdir=tmp_path))
    reference.release_description(sphinx, error)
    assert [each.name for each in tmp_path.iterdir()] == names


@pytest.mark.parametrize(("page", "line"), shown_commands(), ids=str)
def test_a_shown_command_exists(page: str, line: str) -> None:
    """Each command that a page shows exists in the program, with the shown options."""
    words = [word for word in shlex.split(line)[1:] if word != "--override"]  # an option of the program
    command: click.Command = root
    while isinstance(command, click.Group) and words and not words[0].startswith("-"):
        found = command.get_command(click.Context(command), words.pop(0))
        assert found is not None, f"{page}: {line}"
        command = found
    known = {option for parameter in command.params for option in parameter.opts + parameter.secondary_opts}
    assert {word.partition("=")[0] for word in words if word.startswith("--")} <= known, f"{page}: {line}"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_variables_and_paths_exist(page: Path) -> None:
    """Each SALLYPORT_ variable on a page belongs to a setting, each API path to an operation, and each address such as
    `/logins/EVENT?domain=DOMAIN` to a page of the console."""
    text = page.read_text(encoding="utf-8")
    assert set(re.findall(rf"\b{PREFIX}[A-Z_]+", text)) <= VARIABLES | {SECRETS}
    assert set(re.findall(r"(?<![\w./-])/(?:network_device|ad|api/v1)/[A-Za-z0-9/-]+", text)) <= API
    assert set(re.findall(r"`(/[A-Za-z/]+)\?domain=DOMAIN`", text)) <= CONSOLE


def shown_settings() -> list[tuple[str, str]]:
    """Return each block of TOML that a page shows, except of a Python package, with the name of the page."""
    found = []
    for page in PAGES:
        for block in re.finditer(
            r"^( *)```toml\n(.*?)^\1```$", page.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE
        ):
            text = "\n".join(line.removeprefix(block[1]) for line in block[2].splitlines())
            if "build-system" not in text:
                found.append((page.relative_to(ROOT).as_posix(), text))
    return found


@pytest.mark.parametrize(("page", "text"), shown_settings(), ids=str)
def test_shown_settings_are_accepted(page: str, text: str, tmp_path: Path) -> None:
    """Each block of settings that a page shows is one that the service takes."""
    (tmp_path / "sallyport.toml").write_text(text, encoding="utf-8")
    settings = load(tmp_path / "sallyport.toml", {})
    assert targets_of(settings) is not None


def test_the_readme_is_short_and_its_links_are_valid() -> None:
    """README.md has at most 200 lines, and every file that it links to exists."""
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 200
    links = re.findall(r"\]\(([^)#:]+)\)", text)
    assert links
    assert not [link for link in links if not (ROOT / link).exists()]


def test_the_map_of_the_code_is_complete() -> None:
    """The map of the code names every package of the program and every dependency."""
    text = (ROOT / "docs" / "architecture" / "code.md").read_text(encoding="utf-8")
    packages = {each.parent.name for each in (ROOT / "src" / "sallyport").glob("*/__init__.py")}
    assert packages <= set(re.findall(r"^\| `(\w+)` \|", text, re.MULTILINE))
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert not [each for each in project["dependencies"] if re.split("[><=]", each)[0] not in text]
