"""Endpoints: the machines of a domain (instances), their users and groups, the assignments, and the agents.

The password of a user is the domain's `local` first factor, the one-time-password seed the second factor of the
provider `totp`.

user        a user as logins see it; service: the users in memory; repo: their passwords and seeds
totp        one-time-password seeds and their enrolment; page: the page of an enrolment's link
users       users as admins manage them: fields, secrets, lists, wallets
groups      groups of users, their instances, and the credential policy of their sessions
instances   machines and their authentication methods
membership  assignments between users, groups and instances, with their stored totals
agents      endpoint agents: desired states, reports, orders, rotated passwords
targets     instances and groups that a presentation requests access to
imports     import of users and instances from a file; files: the command line's side; commands: those without an API

A login asks `EndpointUsers.cached`, which never waits. `load` reads a user that is not in memory, and also caches that
a user is missing. A change of a user drops it from memory before the change returns; a change of a group drops the
group's users. The cache has the password, the active groups, and whether the user has a confirmed seed, never the seed
itself. `totp.OneTimeSeeds` reads the seed for each code, stores the code's time step, and holds the pending enrolments.

Password policies, wallets and credentials belong to other areas: `users.service` has their interfaces.
"""
