"""Run one target with atheris, until its time has passed or it has a finding.

    python -m tests.fuzz.child NAME ...

The other arguments are those of libFuzzer.
"""

import sys

import atheris

GUIDING = ["sallyport", "h11", "joserfc"]
"""The packages whose code guides the fuzzer."""


def main() -> None:
    """Import the target with instrumented code, and fuzz it."""
    name, *given = sys.argv[1:]
    with atheris.instrument_imports(include=GUIDING):
        from tests.fuzz.targets import TARGETS, check

        TARGETS[name].run(b"")  # it may import more
    atheris.Setup([sys.argv[0], *given], lambda octets: check(TARGETS[name], octets))
    atheris.Fuzz()


if __name__ == "__main__":
    main()
