"""The endpoint agent: accounts, groups, sudo, SSH keys and passwords of a Linux host, as the service's state says.

    poll > believe > plan > do, one step after the other > rotate > report

Each pass looks at what is on the host and plans what is between that and the state, so that nothing depends on where
the last one ended: a crash, a full disk or a lock leaves something that the next pass goes on from. What is remembered
is only what a host cannot tell: which accounts are the agent's, what it dealt with, the rotation that has not ended.

It is root among files of others. Programs get argument lists and a fixed environment, passwords go over standard input,
names are checked before they are names, and files are written through directories that nobody else can have changed.

    cli         the commands, each of which imports what it needs; wiring: the parts put together
    daemon      the loop; agent: one pass; service: what is asked of the service; enrolment: who the agent is
    plan        from state and host to steps; change: for one account; executor: does the steps
    accounts    what is on the host; files, tools, processes: by what it is changed
    sudoers     rights; keys: SSH keys; discovery: everything, for the service
    rotation    passwords; generate, hashing: their making
    memory      what is remembered; trueclock: the service's time
    removal     when the agent goes
"""
