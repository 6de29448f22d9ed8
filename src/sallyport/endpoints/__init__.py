"""Endpoints: the machines of a domain (instances), their users and groups, the assignments, and the agents.

The password of a user is verified by the domain's first factor `local`. The one-time-password seed is used by the
second-factor provider `totp`.

user        a user as a login uses it; service: the cache of users; repo: their passwords and seeds
totp        one-time-password seeds and their enrolment; page: the page behind the link of an enrolment
users       users as admins manage them: fields, secrets, lists, wallets
groups      groups of users, their instances, and the credential policy of their sessions
instances   machines and their authentication methods
membership  assignments between users, groups and instances, with their stored totals
agents      endpoint agents: desired states, reports, orders, rotated passwords
targets     instances and groups that a presentation requests access to
imports     import of users and instances from a file; files: code for the command line; commands: commands without API

A login calls `EndpointUsers.cached`, which never waits. `load` reads a user that is not in memory, and also caches that
a user does not exist. Each change of a user drops the user from memory before it returns; a change of a group drops the
group's users. The cache contains the password, the active groups, and whether the user has a confirmed seed, but never
the seed itself. `totp.OneTimeSeeds` reads the seed to check a code, stores the time step of an accepted code, and
manages pending enrolments.

Password policies, wallets and credentials belong to other packages. `users.service` defines the interfaces to them.
"""
