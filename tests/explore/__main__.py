"""Explore the instances to the end, and print the results."""

import argparse
import logging
import sys

import structlog

from sallyport.areas.mfa.provider import Outcome
from tests.explore.node import EMBEDDED
from tests.explore.phone import RIGHT_CODE
from tests.explore.search import Explored, Search
from tests.explore.world import Instance

INSTANCES = {
    "embedded": Instance(nodes=1, packets=2, copies=1, code=EMBEDDED),
    "embedded-denial": Instance(nodes=1, packets=2, copies=1, denials=1, code=EMBEDDED),
    "alone": Instance(nodes=1, packets=1, copies=1),
    "crossing": Instance(nodes=1, packets=2),
    "alone-errors": Instance(nodes=1, packets=1, copies=1, errors=1),
    "retransmission": Instance(copies=1, packets=1),
    "two-requests": Instance(packets=2),
    "two-copies": Instance(packets=1, copies=2),
    "kill": Instance(packets=1, copies=1, kills=1),
    "restart": Instance(packets=1, copies=1, kills=1, restarts=1),
    "pause": Instance(packets=1, copies=1, lapses=1),
    "stop": Instance(packets=1, copies=1, stops=1),
    "errors": Instance(packets=1, copies=1, errors=1),
    "kill-pause": Instance(packets=1, copies=1, kills=1, lapses=1),
    "stop-kill": Instance(packets=1, copies=1, stops=1, kills=1),
    "denial": Instance(packets=2, outcomes=(Outcome.APPROVED, Outcome.NOT_ME)),
    "denial-page": Instance(packets=1, copies=1, denials=1),
    "challenge": Instance(packets=3, shows_challenges=True),
    "code": Instance(packets=3, asks_for_code=True, codes=("000000", RIGHT_CODE)),
    "three-nodes": Instance(nodes=3, packets=1, copies=2, kills=1),
    "two-kills": Instance(nodes=3, packets=1, copies=2, kills=2),
}
"""The explored instances, smaller ones first."""
_SO_FAR = "no promise is broken so far. The two promises about the end need a whole exploration"


def main() -> int:
    """Explore the named instances, or all. Return 1 if a promise is broken."""
    parser = argparse.ArgumentParser(prog="python -m tests.explore", description=__doc__)
    parser.add_argument("instance", nargs="*", choices=[*INSTANCES, []], help="an instance; default: all")
    parser.add_argument("--states", type=int, default=0, help="most states of each instance; default: no limit")
    parser.add_argument("--seed", type=int, default=1, help="selects the states, if their number is limited")
    given = parser.parse_args()
    structlog.configure(wrapper_class=structlog.make_filtering_bound_logger(logging.CRITICAL))
    is_broken = False
    for name in given.instance or INSTANCES:
        found = Search(INSTANCES[name], most=given.states, seed=given.seed if given.states else 0).run(_show)
        print(f"\r{name}: {_summary(found)}", flush=True)
        for text, path in found.broken:
            is_broken = True
            print(f"  {text}:", *(f"    {step.name}" for step in path), sep="\n")
    return int(is_broken)


def _summary(found: Explored) -> str:
    """Return the result in a line. Whether a request waits for ever or an approval is lost is known only after a whole
    exploration."""
    extent, result = ("all", "every promise holds") if found.is_complete else ("a part:", _SO_FAR)
    result = "BROKEN" if found.broken else result
    return f"{extent} {len(found.paths)} states, {len(found.edges)} steps, {found.seconds:.0f} s: {result}"


def _show(states: int, left: int) -> None:
    if sys.stdout.isatty():
        print(f"\r{states} states, {left} steps left ", end="", flush=True)


if __name__ == "__main__":
    sys.exit(main())
