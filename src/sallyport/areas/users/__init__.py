"""Endpoint users of a domain, their groups, the machines that they use (instances), and the assignments.

The first factor `local` of a domain verifies the password of an endpoint user. The second-factor provider `totp`
verifies the user's one-time passwords.

    user        a user as a login needs it. `service` caches the users. `repo` seals their passwords and seeds.
    totp        one-time-password seeds and their enrolment. `page` serves the page behind an enrolment link.
    accounts    users as admins manage them: fields, secrets, lists, wallets
    groups      groups of users, their instances, and the credential policy of their sessions
    instances   machines and their authentication methods
    membership  assignments between users, groups and instances, with their stored totals
    imports     import of users and instances from a file
    operations  local operations, which HTTP does not serve; `commands` has the commands

A login calls `EndpointUsers.cached`, which never waits. If the user is not in memory, the login calls `load`, which
reads the user from the store. If the user does not exist, `load` caches this fact too. A method that changes a user
drops the user from the cache before the method returns. A method that changes a group drops all users of the group. For
each user, the cache contains the password, the active groups, and whether the user has a confirmed seed. The cache
never contains the seed. `totp.OneTimeSeeds` reads the seed to check a code, stores the time step of an accepted code,
and manages pending enrolments.

Password policies, wallets and credentials belong to other packages. `accounts.service` defines the interfaces to them.
"""
