"""The program of the child process: `python -I -m ... FORMAT PATH CPU_S OCTETS FOLDER`, with the options on standard
input. FOLDER: an empty folder for the files of an archive; empty if PATH is no archive.

It prints the translation as JSON, or `{"error": text}`.
"""

import json
import os
import resource
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from sallyport.areas.migration import clearpass, freeradius, nps, tables
from sallyport.areas.migration.checking import checked
from sallyport.areas.migration.roles import with_roles
from sallyport.areas.migration.translation import Options, Translation
from sallyport.areas.policy.rules.translation import Translation as Names
from sallyport.base.errors import SallyportError
from sallyport.radius.dictionary import load as load_dictionary

READERS: Final[Mapping[str, Callable[[Path, Options], Translation]]] = {
    "nps": nps.translate,
    "ise": tables.translate_ise,
    "csv": tables.translate,
    "clearpass": clearpass.translate,
    "freeradius": freeradius.translate,
}


def main() -> None:
    """Run the child process."""
    form, path, cpu_s, octets, folder = sys.argv[1:]
    os.umask(0o077)
    os.nice(10)  # logins come first
    resource.setrlimit(resource.RLIMIT_CPU, (int(cpu_s), int(cpu_s) + 5))
    resource.setrlimit(resource.RLIMIT_AS, (int(octets), int(octets)))
    try:
        options = Options.parse(json.load(sys.stdin))
        if folder:
            found = freeradius.translate_archive(Path(path), Path(folder), options)
        else:
            found = READERS[form](Path(path), options)
        names = Names(load_dictionary())
        result = with_roles(checked(found, names, options.decisions), names).as_json()
    except SallyportError as error:
        result = {"error": str(error)}
    except OSError as error:
        result = {"error": f"the file cannot be read: {error.strerror}"}
    except (MemoryError, RecursionError):
        result = {"error": "the file needs too much memory: export it in parts"}
    print(json.dumps(result))


if __name__ == "__main__":
    main()
