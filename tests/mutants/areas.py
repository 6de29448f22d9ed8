"""The areas whose mutants are made, and the tests that should notice them."""

from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

SKIPPED = ("cli.py", "examples.py", "contract.py")
"""Names of files that only programs in processes of their own run, that contain examples, or that are code of tests
(the contract for MFA providers)."""


@dataclass(frozen=True, slots=True)
class Area:
    """Files or folders of sources and of tests, relative to the root.

    sample: the number of mutants; 0 for all. functions: names of the functions and constants that are changed; empty
    for all. has_roles: whether only the roles of operations are changed. has_postgres: whether tests use the shared
    PostgreSQL server, which then starts before the processes fork.
    """

    name: str
    sources: Sequence[str]
    tests: Sequence[str]
    sample: int = 300
    has_postgres: bool = False
    functions: Sequence[str] = ()
    has_roles: bool = False

    def files(self, root: Path) -> dict[str, Path]:
        """Return the path relative to the root, and the absolute path, of each source."""
        found = (file for each in self.sources for file in _python(root / each, "*.py"))
        return {str(file.relative_to(root)): file for file in found if file.name not in SKIPPED}

    def test_files(self, root: Path) -> list[Path]:
        """Return the files of tests."""
        return [file for each in self.tests for file in _python(root / each, "test_*.py")]


def _python(path: Path, pattern: str) -> list[Path]:
    return sorted(path.rglob(pattern)) if path.is_dir() else [path]


def digest(files: Sequence[Path]) -> str:
    """Return a short text that changes if one of the files does."""
    total = sha256()
    for file in files:
        total.update(file.read_bytes())
    return total.hexdigest()[:12]


def _area(
    name: str, sources: str, tests: str, *, sample: int = 300, has_postgres: bool = False, functions: str = ""
) -> Area:
    """Return an area. Words are separated by spaces. sources: paths inside the package. tests: paths inside `tests`."""
    files = [f"src/sallyport/{each}" for each in sources.split()]
    return Area(name, files, [f"tests/{each}" for each in tests.split()], sample, has_postgres, functions.split())


AREAS = {
    area.name: area
    for area in (
        # every mutant
        _area("scope", "web/scope.py", "web/test_scope.py web/test_operation.py web/test_large_bodies.py", sample=0),
        _area("decode", "radius/packet.py radius/attributes.py", "radius", sample=0),
        _area(
            "decision",
            "areas/login/decision.py",
            "areas/login/test_decision.py areas/login/first/test_mschap.py areas/login/listen/test_session_limit.py "
            "areas/login/listen/test_exchange.py",
            sample=0,
        ),
        _area(
            "state",
            "areas/login/second/session.py areas/login/second/challenges.py",
            "areas/login/second areas/login/listen/test_challenge.py",
            sample=0,
        ),
        _area(
            "consumption",
            "areas/login/second/shared.py areas/login/second/repo.py",
            "nodes/test_prompts.py nodes/test_challenges.py nodes/test_eap.py nodes/test_guesses.py "
            "nodes/test_prompt_rows.py nodes/test_shared_calls.py",
            functions="claim is_same move return_here once consume _use holds keep send sent take_over _take_over "
            "answered give_up deny outcome _ROW _PENDING",
            sample=0,
            has_postgres=True,
        ),
        # a sample
        Area("roles", ["src/sallyport/areas"], ["tests/api/test_refusals.py"], has_roles=True),
        _area("radius", "radius", "radius"),
        _area("login", "areas/login", "areas/login areas/preview"),
        _area(
            "policy",
            "areas/policy",
            "areas/policy areas/preview areas/configuration/test_apply.py areas/configuration/test_round_trip.py "
            "areas/login/test_facts.py areas/login/eap/test_bypass.py areas/login/listen/test_lockout.py "
            "areas/login/listen/test_not_me.py areas/login/second/test_rule_demands.py console/test_roles.py "
            "console/test_rules.py console/test_people.py",
        ),
        _area(
            "mfa",
            "areas/mfa",
            "areas/mfa areas/configuration/test_apply.py areas/configuration/test_web.py console/test_domains.py",
        ),
        _area(
            "store",
            "store",
            "store nodes/test_announcements.py nodes/test_connections.py nodes/test_migration.py "
            "nodes/test_searches.py nodes/test_server.py nodes/test_settled.py areas/audit/test_changes.py "
            "areas/audit/test_large_entries.py",
            has_postgres=True,
        ),
        _area(
            "signin",
            "areas/signin",
            "areas/signin areas/tenancy/test_passwords.py console/test_sign_in.py console/test_guard.py "
            "console/test_identity_provider.py console/test_sessions.py",
        ),
    )
}
