"""Fuzz one target with atheris, until its time has passed or it has a finding.

Only the functions of the packages that read the input guide the fuzzer: atheris needs minutes to instrument the whole
service.
"""

import gc
import os
import sys
from collections.abc import Sequence
from types import FunctionType

import atheris

from tests.fuzz.targets import TARGETS, check


def fuzz(name: str, arguments: Sequence[str]) -> None:
    """Instrument the functions that guide the fuzzer, and fuzz the target until libFuzzer ends the process."""
    target = TARGETS[name]
    target.run(b"")  # it may import more
    for each in gc.get_objects():
        if type(each) is FunctionType and is_of(each.__module__ or "", target.guides):
            atheris.instrument_func(each)
    atheris.Setup([sys.argv[0], *arguments], lambda octets: check(target, octets))
    atheris.Fuzz()
    os._exit(0)


def is_of(module: str, packages: tuple[str, ...]) -> bool:
    """Return whether a module is one of the packages, or in one of them."""
    return any(module == each or module.startswith(f"{each}.") for each in packages)
