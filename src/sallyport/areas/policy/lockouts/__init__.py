"""Lock-out: after too many failures, a user or a station cannot log in for some minutes.

    failures   counts failures by name within a window, and contains the locks; no I/O, time is passed in
    stations   finds the station of a request, and the stations that many users share
    service    `Lockouts`, for the login path (check, count) and for admins (list, unlock)
    repo       stores the locks

A locked login is refused before its password is checked, in both modes. A user is identified by domain and name, a
station by domain and Calling-Station-Id. Wrong passwords, unknown users and wrong codes count as failures.

- A wrong password counts only in an authentic request. A wrong code counts in every request, because a code is checked
  only after a correct password or with a valid State. A spoofer has neither.
- Each guess counts once. So a replayed packet does not lock a user out. Neither does a device that repeats one wrong
  password with new authenticators.
- A successful login resets the count of its user and its station. Wrong codes stay counted if no second factor was
  approved. Otherwise an attacker with the password could reset the count by logins that need no code, and then guess
  any number of codes.

When a failure reaches the limit, its event has the usual reason. The lock and an audit entry are stored in the
transaction of this event. From then on every login is refused with a reason that neither counts nor prolongs the lock.
Logins that are already in progress are refused too, so parallel guesses have no advantage.

The outer identity of EAP is not counted, locked or reset. It may be `anonymous` for every user, and an attacker may
change it for each guess. The inner name counts as soon as it is known. If EAP is forwarded to another server, the name
is known only from its Access-Accept. Until then only the station counts.

A NAS is never locked as a station. A station is not locked in three cases: its name is one of the NAS's own names,
several users have logged in from it within an hour, or the NAS has no other station. For example, a VPN gateway may
send the same value for all users.

A user can also be locked until an operator unlocks the user (`Lockouts.hold`), after the user has said that a login is
not theirs. These locks apply without failures, and even if lock-outs are disabled.

Counts are in memory. Nodes notify each other of each failure, lock and reset (`nodes.notices`). So counts and locks
apply on all nodes within a third of a second, and survive the restart of a node. With several nodes, codes also count
in the store before they are checked (`login.second.repo.claim`). So the limit of wrong codes is exact over all nodes:
the next code is not checked, and its login locks the user (`Failure.NO_CODE_LEFT`). With the embedded database, a
restart loses at most nine failures of a name, and only an admin can restart the service. Unknown users have their own
table, so that many unknown names do not evict known users. If no failure has happened for an hour, the lock-outs cost a
login nothing but a look at `Lockouts.has_failures`.
"""
