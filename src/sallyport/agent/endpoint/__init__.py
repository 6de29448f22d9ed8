"""The endpoint agent: it manages accounts, groups, sudo, SSH keys and passwords of a Linux host by the service's state.

    poll > verify > plan > execute, one step after the other > rotate > report

Each pass compares the host with the state and plans the difference, so that it does not depend on the end of the last
pass: after a crash, a full disk or a lock the next pass continues. The memory has only facts that the host itself does
not show: the agent's own accounts, the handled orders, an unfinished rotation.

The agent runs as root and writes among files of other users. Programs get argument lists and a fixed environment.
Passwords are passed over standard input. Names are checked before use. Files are written through directories that no
other user can change.

    cli         the commands, each of which imports its own modules; wiring: builds the parts, and removes the accounts
    daemon      the loop; agent: one pass; service: the requests; identity: registration
    plan        the steps from host and state; change: those of one account; executor: the changes of the host
    accounts    the accounts of the host; files, processes: access to its files and processes
    sudoers     rights; keys: SSH keys; discovery: the accounts, as reported to the service
    rotation    rotation of passwords; passwords: new passwords and their hashes
    memory      the memory of the agent, and the service's time
"""
