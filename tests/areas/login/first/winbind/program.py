"""A small ntlm_auth. It speaks ntlm-server-1, and the name of the user determines how it behaves.

It uses these files in its own directory:

right     one line for each right answer: user, challenge, response, key
started   the id of each process that was started
asked     each question, as a Python literal
"""

import base64
import os
import sys
import time
from pathlib import Path

HERE = Path(sys.argv[0]).parent


def note(name: str, line: str) -> None:
    with (HERE / name).open("a") as file:
        file.write(line + "\n")


def say(*lines: str) -> None:
    for line in lines:
        sys.stdout.write(line + "\n")
    sys.stdout.flush()


def answer(asked: dict[str, str]) -> None:
    user = asked["Username"]
    if user == "hangs":
        time.sleep(3600)
    elif user == "dies":
        sys.exit(1)
    elif user == "lies":
        say("Hello", ".")
    elif user == "endless":
        say("Authenticated: Yes", "User-Session-Key: " + "0" * 200_000)
    elif user == "keyless":
        say("Authenticated: Yes", ".")
    elif user == "slow":
        time.sleep(0.1)
        say("Authenticated: Yes", "User-Session-Key: " + "AB" * 16, ".")
    elif user.startswith("says "):
        say("Authenticated: No", "Authentication-Error: " + user[5:], ".", ".")
    else:
        judge(user, asked["LANMAN-Challenge"], asked["NT-Response"])


def judge(user: str, challenge: str, response: str) -> None:
    for line in (HERE / "right").read_text().splitlines():
        if line.split()[:3] == [user, challenge, response]:
            say("Authenticated: Yes", "User-Session-Key: " + line.split()[3].upper(), ".")
            return
    say("Authenticated: No", "Authentication-Error: The attempted logon is invalid.", ".", ".")


def main() -> None:
    note("started", str(os.getpid()))
    asked: dict[str, str] = {}
    for line in sys.stdin:
        if line != ".\n":
            name, _, value = line.rstrip("\n").partition(": ")
            asked[name.rstrip(":")] = base64.b64decode(value).decode() if name.endswith(":") else value
            continue
        note("asked", repr(asked))
        answer(asked)
        asked = {}


main()
