"""`sallyport prompt-pause`: list and end."""

import json
import time

from tests.cli import Service, add_domain

MINUTE = 60_000_000


def test_a_pause_is_listed_and_ended(service: Service) -> None:
    """The list has the domain, the reason and the end. `end` tells that the prompts are resumed, or were not paused."""
    domain, now = add_domain(service, "with pauses"), time.time_ns() // 1000
    row = (domain, "ann", "Ann", 2, "unanswered", now, now + 10 * MINUTE)
    service.execute(
        "insert into prompt_pauses (domain_id, user_key, user_name, unanswered, reason, at, until) "
        "values (?, ?, ?, ?, ?, ?, ?)",
        *row,
    )
    (found,) = json.loads(service.ok("prompt-pause", "list", "--json"))
    assert (found["domain"], found["userName"], found["reason"]) == ("with pauses", "Ann", "unanswered")
    assert "Ann" in service.ok("prompt-pause", "list", "--domain", domain)
    for said in ("prompts of Ann resumed\n", "the user's prompts were not paused\n"):
        done = service.cli("prompt-pause", "end", "--domain", domain, "--user", "ann")
        assert (done.returncode, done.stdout, done.stderr) == (0, "", said)
    assert json.loads(service.ok("prompt-pause", "list", "--domain", domain, "--json")) == []
