"""The files and names that the descriptions of the code mention exist."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCE = ROOT / "src" / "sallyport"
PAGES = [ROOT / "CONTRIBUTING.md", ROOT / "docs" / "architecture" / "code.md"]
WRITTEN = re.compile(r"`([^`\n]+)`")
PLACE = re.compile(r"(?:[\w.-]+/)+[\w.-]+|\w+\.py")
NAME = re.compile(r"[A-Za-z_]\w*")
MADE_UP = {"schema/NNNN_topic.sql"}


def places(text: str, beside: Path) -> Iterator[tuple[Path | None, list[str]]]:
    """Yield each file of a line, or None for one that does not exist, with the names that follow it up to the next
    file. beside: the folder of files without a path; the files that are mentioned change it."""
    path: Path | None = None
    names: list[str] = []
    for each in WRITTEN.findall(text):
        if PLACE.fullmatch(each) and each not in MADE_UP:
            if path is not None:
                yield path, names
            candidates = (ROOT / each, SOURCE / each, beside / each)
            path, names = next((file for file in candidates if file.exists()), None), []
            if path is None:
                yield None, [each]
            elif path.is_file():
                beside = path.parent
        elif NAME.fullmatch(each):
            names.append(each)
    if path is not None:
        yield path, names


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_the_files_of_a_page_exist(page: Path) -> None:
    """Each path in a table exists, and so does each module that is named without a path: in the folder of the file
    before it, or in every area."""
    in_areas = {file.name for file in (SOURCE / "areas").rglob("*.py")}
    missing = [
        name
        for line in page.read_text(encoding="utf-8").splitlines()
        for path, names in places(line, SOURCE)
        if path is None
        for name in names
        if name not in in_areas
    ]
    assert not missing


@pytest.mark.parametrize("line", [line for line in PAGES[1].read_text().splitlines() if ".py`: `" in line])
def test_the_names_of_a_question_are_in_its_file(line: str) -> None:
    """Each name that follows a file and a colon is in this file."""
    found = re.findall(r"`([\w/]+\.py)`: `(\w+)`", line)
    assert found
    for place, name in found:
        assert re.search(rf"\b(?:def|class) {name}\b", (SOURCE / place).read_text()), (place, name)


def listed() -> list[list[Path]]:
    """Return the modules that the docstring of each package lists, without suffix. An entry has four blanks, the name,
    and at least two blanks before the text."""
    found = []
    for package in SOURCE.rglob("__init__.py"):
        docstring = package.read_text(encoding="utf-8").partition('\n"""\n')[0]
        for paragraph in docstring.split("\n\n"):
            entries = re.findall(r"^    ([a-z_0-9]+(?:, [a-z_0-9]+)*)  +\S", paragraph, re.MULTILINE)
            found.append([package.parent / name for names in entries for name in names.split(", ")])
    return found


def test_the_modules_of_a_package_exist() -> None:
    """Each module that a package lists is in its folder. A list in which most names are no modules is one of values."""
    lists = [(modules, [each for each in modules if not _exists(each)]) for modules in listed()]
    of_modules = [(modules, missing) for modules, missing in lists if 2 * len(missing) < len(modules)]
    assert sum(len(modules) for modules, _ in of_modules) > 100
    assert not [each for _, missing in of_modules for each in missing]


def _exists(module: Path) -> bool:
    return module.is_dir() or module.with_suffix(".py").exists()
