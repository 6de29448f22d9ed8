"""The program of `make sbom`. It lists what the wheel, the Debian packages and the image contain, as CycloneDX files.

python -m tests.deploy.sbom DIRECTORY CYCLONEDX    # DIRECTORY: dist/; CYCLONEDX: the path of cyclonedx-py

A wheel is installed into an empty environment with the versions of its lock, and this environment is listed. The Debian
package and the image have the packages of PostgreSQL as well, and packages of Debian beside the environment. The
package of the agents alone has a lock and a document of its own.
"""

import json
import re
import sys
import tempfile
from pathlib import Path

from tests.deploy.distribution import ROOT, build, build_agent, install, run, version_of

DEBIAN = ROOT / "src" / "sallyport" / "deploy" / "debian"
AGENT = DEBIAN / "agent"


def builders(folder: Path = DEBIAN) -> list[str]:
    """Return the packages of the lock that only build the wheel: a Debian package and the image do not have them.
    folder: that of the rules of the Debian package."""
    (names,) = re.findall(r"^BUILDERS := (.*)$", (folder / "rules").read_text(encoding="utf-8"), re.MULTILINE)
    return names.split()


def of_environment(
    environment: Path, version: str, cyclonedx: Path, project: str = "pyproject.toml"
) -> dict[str, object]:
    """Return what an environment contains, as a CycloneDX document. project: the file of its subject.

    The document has no time and no random number, so that two of one commit are equal.
    """
    subject = ("--pyproject", ROOT / project, "--mc-type", "application")
    form = ("--output-reproducible", "--of", "JSON")
    output = run(cyclonedx, "environment", *subject, *form, environment / "bin" / "python", cwd=ROOT)
    found: dict[str, object] = json.loads(output)
    metadata = found["metadata"]
    assert isinstance(metadata, dict)
    metadata["component"]["version"] = version
    return found


def with_debian(found: dict[str, object], names: list[str], base: str = "") -> dict[str, object]:
    """Return a document with packages of Debian. Debian chooses their versions. base: the image below them, with its
    digest."""
    components: list[dict[str, str]] = [
        {"type": "library", "bom-ref": f"debian:{name}", "name": name, "purl": f"pkg:deb/debian/{name}"}
        for name in names
    ]
    if base:
        name, _, digest = base.partition("@")
        repository, _, tag = name.rpartition(":")
        purl = f"pkg:docker/{repository.rpartition('/')[2]}@{digest.replace(':', '%3A')}?tag={tag}"
        components.append({"type": "container", "bom-ref": "base", "name": repository, "version": tag, "purl": purl})
    return {**found, "components": [*_components(found), *components]}


def _components(found: dict[str, object]) -> list[dict[str, object]]:
    components = found["components"]
    assert isinstance(components, list)
    return components


def of_debian_package(folder: Path = DEBIAN) -> list[str]:
    """Return the packages that a Debian package needs."""
    control = (folder / "control").read_text(encoding="utf-8")
    (needed,) = re.findall(r"^Depends: (.*)$", control, re.MULTILINE)
    return ["python3", *(name for name in re.findall(r"[\w.+-]+", re.sub(r"\$\{.*?\}", "", needed)))]


def of_image() -> tuple[list[str], str]:
    """Return the packages of Debian in the image, and the base image."""
    text = (ROOT / "src/sallyport/deploy/Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    (base,) = re.findall(r"^ARG BASE=(\S+)$", text, re.MULTILINE)
    installed = re.findall(r"--no-install-recommends ([^&\n]*)", text.rpartition("\nFROM ")[2])
    return " ".join(installed).split(), base


def write(directory: Path, cyclonedx: Path) -> list[Path]:
    """Write the four documents, and return their paths."""
    with tempfile.TemporaryDirectory() as name:
        wheel = build(Path(name))
        version = version_of(wheel)
        environment = Path(name, "environment")
        install(wheel, Path(sys.executable), environment)
        remove(environment, builders())
        alone = of_environment(environment, version, cyclonedx)
        for extra in ("postgres", "otel"):
            add(environment, f"requirements-{extra}.lock")
        whole = of_environment(environment, version, cyclonedx)
        agent = of_agent(Path(name), version, cyclonedx)
    documents = {
        "sallyport-radius-{}.wheel": alone,
        "sallyport-radius-{}.deb": with_debian(whole, of_debian_package()),
        "sallyport-radius-{}.image": with_debian(whole, *of_image()),
        "sallyport-agent-{}.deb": with_debian(agent, of_debian_package(AGENT)),
    }
    directory.mkdir(exist_ok=True)
    written = []
    for kind, document in documents.items():
        path = directory / f"{kind.format(version)}.cdx.json"
        path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        written.append(path)
    return written


def of_agent(directory: Path, version: str, cyclonedx: Path) -> dict[str, object]:
    """Return what the Debian package of the agents alone contains, without the packages of Debian."""
    environment = directory / "agent"
    run(sys.executable, "-m", "venv", environment, cwd=directory)
    add(environment, "requirements-agent.lock")
    run(*pip(environment), "install", "--quiet", "--no-deps", build_agent(directory, version), cwd=directory)
    remove(environment, builders(AGENT))
    return of_environment(environment, version, cyclonedx, "pyproject-agent.toml")


def pip(environment: Path) -> tuple[str | Path, ...]:
    """Return the command of the pip of an environment."""
    return environment / "bin" / "python", "-m", "pip", "--disable-pip-version-check"


def add(environment: Path, lock: str) -> None:
    """Install the packages of a lock."""
    locked = ("--require-hashes", "--no-deps", "-r", ROOT / lock)
    run(*pip(environment), "install", "--quiet", *locked, cwd=environment)


def remove(environment: Path, names: list[str]) -> None:
    """Remove packages that the environment may have."""
    run(*pip(environment), "uninstall", "--quiet", "--yes", *names, cwd=environment)


if __name__ == "__main__":
    for path in write(Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute()):
        print(path)
