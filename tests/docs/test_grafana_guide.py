"""The files and places of docs/operate/monitoring.md are those of the repository and of the provisioning files."""

import shlex
from pathlib import Path

import yaml

from tests.docs.commands import ROOT, blocks

PAGE = "docs/operate/monitoring.md"
PLACE = Path("/var/lib/grafana/dashboards/sallyport")


def relative(path: Path) -> str:
    """Return a path from the root of the repository."""
    return path.relative_to(ROOT).as_posix()


def installed() -> dict[str, Path]:
    """Return the directory into which the page installs each file."""
    found = {}
    for command in (each for block in blocks(PAGE) for each in block if each.text.startswith("sudo install -m")):
        *patterns, place = shlex.split(command.text)[4:]
        found |= {name: Path(place) for pattern in patterns for name in map(relative, ROOT.glob(pattern))}
    return found


def test_the_page_installs_every_dashboard() -> None:
    """Each dashboard is installed where the provisioning file looks for it."""
    dashboards = {str(each.relative_to(ROOT)) for each in (ROOT / "grafana" / "dashboards").iterdir()}
    found = installed()
    assert {name for name, place in found.items() if place == PLACE} == dashboards
    provider = "grafana/provisioning/dashboards/sallyport.yaml"
    assert found[provider] == Path("/etc/grafana/provisioning/dashboards")
    text = yaml.safe_load((ROOT / provider).read_text(encoding="utf-8"))
    assert Path(text["providers"][0]["options"]["path"]) == PLACE


def test_the_page_names_the_data_source_and_the_job() -> None:
    """The file of the data source exists, and the job has the name that the rules need."""
    text = (ROOT / PAGE).read_text(encoding="utf-8")
    assert "`grafana/provisioning/datasources/sallyport.yaml`" in text
    assert (ROOT / "grafana" / "provisioning" / "datasources" / "sallyport.yaml").exists()
    shown = yaml.safe_load(text.partition("```yaml\n")[2].partition("```")[0])
    assert [each["job_name"] for each in shown["scrape_configs"]] == ["sallyport"]
