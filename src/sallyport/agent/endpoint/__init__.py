"""The endpoint agent: it manages the accounts, groups, sudo rights, SSH keys and passwords of a Linux host according to
the desired state that the service sends.

    poll > verify > plan > execute each step > rotate > report

Each pass compares the host with the state and plans the changes that are necessary. A pass does not depend on the
result of the previous pass. So if a crash, a full disk or a locked file ends a pass early, the next pass continues. The
memory of the agent contains only facts that cannot be read from the host itself: which accounts belong to the agent,
and which orders the agent has carried out.

The agent runs as root and writes files in directories of other users. Therefore programs get argument lists and a fixed
environment. Passwords are passed over standard input. Names are checked before use. Files are written only through
directories that no other user can change.

    cli         the commands, each of which imports its own modules
    wiring      builds the parts of the agent, and locks its accounts
    daemon      the loop that runs passes
    agent       one pass
    service     the requests to the service
    identity    registration
    plan        the steps that bring the host to the state
    change      the changes of one account
    executor    executes steps
    accounts    the accounts of the host
    files       access to the files of the host
    processes   access to the processes of the host
    sudoers     sudo rights
    keys        SSH keys
    discovery   the accounts, as reported to the service
    rotation    rotation of passwords
    passwords   new passwords and their hashes
    memory      the memory of the agent, and its estimate of the service's time
"""
