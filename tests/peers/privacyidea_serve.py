"""Sets up and runs a privacyIDEA server: its documented commands in one process, since each start of pi-manage takes
two seconds. Run with the Python of .venv-privacyidea: privacyidea_serve.py PORT PASSWORD, PRIVACYIDEA_CONFIGFILE set.

`python -P`, because privacyidea.py lies beside this file.
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
