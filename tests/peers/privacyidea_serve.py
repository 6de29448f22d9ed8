"""A program that sets up and runs a privacyIDEA server.

It runs the documented commands in one process, because each start of pi-manage takes two seconds. Run it with the
Python of .venv-privacyidea, and set PRIVACYIDEA_CONFIGFILE: privacyidea_serve.py PORT PASSWORD

`python -P` is needed, because privacyidea.py is in the same directory.
"""

import sys

from privacyidea.cli.pimanage.main import cli

port, password = sys.argv[1:]
for command in (
    ["setup", "create_enckey"],
    ["setup", "create_audit_keys", "--keysize", "2048"],
    ["setup", "create_tables"],
    ["admin", "add", "-p", password, "admin"],
    ["run", "-h", "127.0.0.1", "-p", port],
):
    cli.main(command, standalone_mode=False)
