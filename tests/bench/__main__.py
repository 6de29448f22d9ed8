"""The command line of the benchmarks: `python -m tests.bench --help`."""

import argparse
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from pathlib import Path

from sallyport.cli.benchmark import machine

from . import (
    accounting,
    agents,
    api,
    commits,
    console,
    did,
    directory,
    directory_file,
    eap,
    eap_tls,
    endpoints,
    herd,
    inventory,
    mschap,
    nodes,
    pages,
    person,
    proxy,
    quick,
    radius,
    second_factor,
    shadow,
    steady,
)
from .settings import BenchmarkError, Settings


@dataclass(frozen=True, slots=True)
class Benchmark:
    """A benchmark in the list. `run` returns the Markdown below its heading. is_default: whether the benchmark runs if
    none is named."""

    name: str
    summary: str
    run: Callable[[Settings], str]
    is_default: bool = True


BENCHMARKS = (
    Benchmark("radius", "logins over RADIUS, beside FreeRADIUS", radius.run),
    Benchmark(
        "directory-file", "100,000 people of an LDIF file, while logins go on: p99 under 20 ms", directory_file.run
    ),
    Benchmark(
        "shadow",
        "100,000 logins of another server decided again: at most 60 s, beside logins with p99 under 20 ms",
        shadow.run,
    ),
    Benchmark("commits", "what a commit adds to a login, beside a bare fdatasync", commits.run),
    Benchmark("mschap", "MS-CHAPv2 logins, beside FreeRADIUS with rlm_mschap", mschap.run),
    Benchmark("eap", "EAP handshakes, full and resumed, beside FreeRADIUS", eap.run),
    Benchmark("eap-tls", "EAP-TLS with cached OCSP responses beside none: CPU at most 1.05", eap_tls.run),
    Benchmark("accounting", "sessions by accounting, beside FreeRADIUS with radacct", accounting.run),
    Benchmark("inventory", "ListDevices at 1,000,000 devices: first page and a rare search under 10 ms", inventory.run),
    Benchmark(
        "endpoints",
        "lists of 1,000,000 users and 100,000 instances: a page under 20 ms, a search under 50 ms",
        endpoints.run,
    ),
    Benchmark(
        "console", "pages with 1,000,000 devices: under 100 ms; logins beside it: p99 as without it", console.run
    ),
    Benchmark("api", "logins beside 16 busy connections of the API: p99 under 10 ms", api.run),
    Benchmark("agents", "1,000 endpoint agents: under one core, a change there within 2 s", agents.run),
    Benchmark(
        "did",
        "issue and verify beside bare Ed25519: aim 0.5 of it; lists of 1,000,000 credentials: a page under 20 ms",
        did.run,
    ),
    Benchmark("directory", "100,000 people of OpenLDAP read and imported, beside ldapsearch", directory.run),
    Benchmark("nodes", "logins recorded by PostgreSQL, beside FreeRADIUS", nodes.run),
    Benchmark("proxy", "logins passed on, beside FreeRADIUS as a proxy and radsecproxy", proxy.run),
    Benchmark("second-factor", "logins that wait for their users, beside FreeRADIUS with rlm_rest", second_factor.run),
    Benchmark("pages", "1,000 people at the step-up page beside 1,000 logins a second: p99 under 20 ms", pages.run),
    Benchmark("person", "a login with a passkey at the pace of a person: under 15 s; enrolment: 60 s", person.run),
    Benchmark("herd", "10,000 logins within 5 s that wait for their users: aim all accepted within 60 s", herd.run),
    Benchmark("steady", "everything at once for ten minutes: neither memory nor open files nor p99 grow", steady.run),
    Benchmark("quick", "this checkout beside the commit before, in three minutes", quick.run, is_default=False),
)


def main() -> int:
    """Run the named benchmarks, or all. Return the exit status: 0 if they are done, 1 if one failed or is void, 2 for
    wrong usage.
    """
    parser = _parser()
    arguments = parser.parse_args()
    if unknown := set(arguments.names) - {benchmark.name for benchmark in BENCHMARKS}:
        parser.error(f"no benchmark {', '.join(sorted(unknown))}")
    settings = Settings(
        directory=arguments.directory,
        rounds=arguments.rounds,
        seconds=arguments.seconds,
        requests=arguments.requests,
        servers=tuple(arguments.server),
    )
    print(machine.describe(settings.directory), flush=True)
    for benchmark in BENCHMARKS:
        if benchmark.name not in arguments.names and not (benchmark.is_default and not arguments.names):
            continue
        try:
            report = benchmark.run(settings)
        except BenchmarkError as error:
            print(f"{benchmark.name}: {error}", file=sys.stderr)
            return 1
        print(f"\n## {benchmark.name}: {benchmark.summary}\n\n{report}", flush=True)
        if arguments.write is not None:
            text = page(benchmark, machine.describe(settings.directory), report)
            (arguments.write / f"{benchmark.name}.md").write_text(text, encoding="utf-8")
    return 0


def page(benchmark: Benchmark, described: str, report: str) -> str:
    """Return the page of the documentation with a benchmark's result. described: the lines about the machine."""
    summary = benchmark.summary[0].upper() + benchmark.summary[1:]
    when = f"- date: {date.today():%Y-%m-%d}"
    return f"# {summary}\n\n`make bench ARGS={benchmark.name}` wrote this page.\n\n{when}\n{described}\n\n{report}\n"


def _parser() -> argparse.ArgumentParser:
    listed = "\n".join(f"  {benchmark.name:15}{benchmark.summary}" for benchmark in BENCHMARKS)
    parser = argparse.ArgumentParser(
        prog="python -m tests.bench",
        description=f"Measure Sallyport on this machine; leave the machine alone meanwhile.\n\nbenchmarks:\n{listed}",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("names", nargs="*", metavar="name", help="benchmarks to run; all but quick when none is named")
    parser.add_argument("--rounds", type=int, default=3, help="turns of each server (3)")
    parser.add_argument("--seconds", type=float, default=8, help="longest single measurement (8)")
    parser.add_argument("--requests", type=int, default=500_000, help="most requests of a measurement (500000)")
    parser.add_argument("--server", action="append", default=[], help="measure only this server; may be repeated")
    parser.add_argument("--write", type=Path, help="a directory for a page of each result: docs/benchmarks")
    parser.add_argument(
        "--directory",
        type=Path,
        default=Path(tempfile.gettempdir()),
        help="where servers keep their databases meanwhile: on the disk that matters (the system's temporary one)",
    )
    return parser


if __name__ == "__main__":
    sys.exit(main())
