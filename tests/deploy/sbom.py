"""The program of `make sbom`. It lists what the wheel, the Debian package and the image contain, as CycloneDX files.

python -m tests.deploy.sbom DIRECTORY CYCLONEDX    # DIRECTORY: dist/; CYCLONEDX: the path of cyclonedx-py

The wheel is installed into an empty environment with the versions of its lock, and this environment is listed. The
Debian package and the image have the packages of PostgreSQL as well, and packages of Debian beside the environment.
"""

import json
import re
import sys
import tempfile
from pathlib import Path

from tests.deploy.distribution import ROOT, build, install, run, version_of

BUILDERS = ("hatchling", "packaging", "pathspec", "setuptools", "trove-classifiers")
"""The packages of the lock that only build the wheel: the Debian package and the image do not have them."""


def of_environment(environment: Path, version: str, cyclonedx: Path) -> dict[str, object]:
    """Return what an environment contains, as a CycloneDX document whose subject is this project.

    The document has no time and no random number, so that two of one commit are equal.
    """
    subject = ("--pyproject", ROOT / "pyproject.toml", "--mc-type", "application")
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


def of_debian_package() -> list[str]:
    """Return the packages that the Debian package needs."""
    control = (ROOT / "src/sallyport/deploy/debian/control").read_text(encoding="utf-8")
    (needed,) = re.findall(r"^Depends: (.*)$", control, re.MULTILINE)
    return ["python3", *(name for name in re.findall(r"[\w.+-]+", re.sub(r"\$\{.*?\}", "", needed)))]


def of_image() -> tuple[list[str], str]:
    """Return the packages of Debian in the image, and the base image."""
    text = (ROOT / "src/sallyport/deploy/Containerfile").read_text(encoding="utf-8").replace("\\\n", " ")
    (base,) = re.findall(r"^ARG BASE=(\S+)$", text, re.MULTILINE)
    installed = re.findall(r"--no-install-recommends ([^&\n]*)", text.rpartition("\nFROM ")[2])
    return " ".join(installed).split(), base


def write(directory: Path, cyclonedx: Path) -> list[Path]:
    """Write the three documents, and return their paths."""
    written = []
    with tempfile.TemporaryDirectory() as name:
        wheel = build(Path(name))
        version = version_of(wheel)
        environment = Path(name, "environment")
        program = install(wheel, Path(sys.executable), environment)
        pip = (program.with_name("python"), "-m", "pip", "--disable-pip-version-check")
        run(*pip, "uninstall", "--quiet", "--yes", *BUILDERS, cwd=environment)
        alone = of_environment(environment, version, cyclonedx)
        lock = ROOT / "requirements-postgres.lock"
        run(*pip, "install", "--quiet", "--require-hashes", "--no-deps", "-r", lock, cwd=environment)
        whole = of_environment(environment, version, cyclonedx)
    documents = {
        "wheel": alone,
        "deb": with_debian(whole, of_debian_package()),
        "image": with_debian(whole, *of_image()),
    }
    directory.mkdir(exist_ok=True)
    for kind, document in documents.items():
        path = directory / f"sallyport-radius-{version}.{kind}.cdx.json"
        path.write_text(json.dumps(document, indent=2) + "\n", encoding="utf-8")
        written.append(path)
    return written


if __name__ == "__main__":
    for path in write(Path(sys.argv[1]).absolute(), Path(sys.argv[2]).absolute()):
        print(path)
