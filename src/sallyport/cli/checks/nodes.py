"""Checks of the nodes that share the database."""

from collections.abc import Iterator

from sallyport.base.text import counted
from sallyport.cli.checks.model import Examination, Finding, ok, problem, warning


def check_nodes(examination: Examination) -> Iterator[Finding]:
    """Check that each node is alive, that all nodes have the same version, and that one node holds the lease for the
    periodic tasks."""
    nodes = examination.rows("node.list")
    alive = [each for each in nodes if each["alive"]]
    leaders = [str(each["name"]) for each in alive if each["leads"]]
    yield ok(f"{counted(len(alive), 'node')} alive{f', {leaders[0]} does the periodic work' if leaders else ''}")
    for each in nodes:
        if not each["alive"]:
            yield warning(
                f"{each['name']} is {each['state']}: start it, or remove it from the list: "
                f"sallyport node forget {each['name']}"
            )
    versions = {str(each["version"]) for each in alive}
    if len(versions) > 1:
        each_version = ", ".join(f"{each['name']} has {each['version']}" for each in alive)
        yield warning(
            f"the nodes have different versions: {each_version}; set all to one version: see sallyport node list"
        )
    if alive and not leaders:
        yield problem(
            "no node holds the lease of the periodic work: no schedule, outlet or retention runs; look for "
            "heartbeat_failed in the log of each node, and restart one"
        )
