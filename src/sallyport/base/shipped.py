"""The folders of files that come with Sallyport and are no Python: in the package, or in a clone beside `src`."""

from importlib.resources import files
from pathlib import Path

from sallyport.base.errors import StartError


def shipped(folder: str, part: str, content: str) -> Path:
    """Return the path of a folder that has a part, such as a file. content: what the folder has, for the error. Raises
    StartError if there is no such folder."""
    package = Path(str(files("sallyport")))
    for parent in (package, package.parents[1]):
        if (parent / folder / part).exists():
            return parent / folder
    raise StartError(f"{package / folder}: {content} of Sallyport are missing: install the package again")
