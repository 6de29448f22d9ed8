"""Explore the instances to the end, and print the results."""

import argparse
import logging
import sys

import structlog

from sallyport.areas.mfa.provider import Outcome
from tests.explore.phone import RIGHT_CODE
from tests.explore.search import Explored, Search
from tests.explore.world import Instance

INSTANCES = {
    "alone": Instance(nodes=1, packets=1, copies=1),
    "retransmission": Instance(copies=1, packets=1),
    "two-requests": Instance(packets=2),
    "late": Instance(packets=1, copies=2),
    "kill": Instance(packets=1, copies=1, kills=1),
    "restart": Instance(packets=1, copies=1, kills=1, restarts=1),
    "pause": Instance(packets=1, copies=1, lapses=1),
    "stop": Instance(packets=1, copies=1, stops=1),
    "denial": Instance(packets=2, outcomes=(Outcome.APPROVED, Outcome.NOT_ME)),
    "challenge": Instance(packets=3, shows_challenges=True),
    "code": Instance(packets=3, asks_for_code=True, codes=("000000", RIGHT_CODE)),
    "three-nodes": Instance(nodes=3, packets=1, copies=2, kills=1),
}
"""The explored instances, smaller ones first."""


def main() -> int:
    """Explore the named instances, or all. Return 1 if a promise is broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.explore", description=__doc__)
    parser.add_argument("instance", nargs="*", choices=[*INSTANCES, []], help="an instance; default: all")
    parser.add_argument("--states", type=int, default=0, help="most states of each instance; default: no limit")
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    is_broken = False
    for name in given.instance or INSTANCES:
        found = Search(INSTANCES[name], most=given.states).run(_show)
        print(f"\r{name}: {_summary(found)}", flush=True)
        for text, path in found.broken:
            is_broken = True
            print(f"  {text}:", *(f"    {step.name}" for step in path), sep="\n")
    return int(is_broken)


def _summary(found: Explored) -> str:
    extent = "all" if found.is_complete else "the first"
    result = "BROKEN" if found.broken else "every promise holds"
    return f"{extent} {len(found.paths)} states, {len(found.edges)} steps, {found.seconds:.0f} s: {result}"


def _show(states: int, left: int) -> None:
    if sys.stdout.isatty():
        print(f"\r{states} states, {left} steps left ", end="", flush=True)


if __name__ == "__main__":
    sys.exit(main())
