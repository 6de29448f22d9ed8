"""Lock-out: after too many failures, the logins of a user or a station are refused for some minutes.

They are refused before a password is checked, in both enforcement modes.

    failures   counts by name within the window, and the locks; no I/O, time is passed in
    stations   the station of a request, and stations that many users share
    service    `Lockouts` for the login path and for admins: check, count, list, unlock, expire
    repo       the locks in the store

A user is identified by domain and name, a station by domain and Calling-Station-Id. Wrong passwords, unknown users and
wrong codes count.

- Wrong passwords count in authentic requests only. Wrong codes count in all requests, because a code is checked only
after a correct password or with a valid State, and a spoofer has neither.
- Each guess counts once. A replayed packet does not lock a user out, nor does a device that repeats one wrong password
  with new authenticators.
- A success of the user, or of any user at the station, resets the count. Wrong codes still count if no second factor
  was approved: otherwise logins that need no code would let an attacker with the password guess any number of codes.

The failure that reaches the limit is an event with its usual reason. The lock and an entry of the audit trail are
stored in the same transaction. After it every login is refused at once, with a reason that neither counts nor prolongs
the lock. A login whose decision is pending at that moment is refused too, so that parallel guesses have no advantage.

The outer identity of EAP is not counted, locked or reset: it may be `anonymous` for every user, and an attacker may
change it for each guess. The inner name is used once it is known. If another server has the EAP conversation, its
Access-Accept contains the user's name; until then only the station counts.

A NAS is never locked as a station. A station is not locked in three cases: its name is one of the NAS's own names,
several users have logged in from it within an hour, or the NAS has no other station. For example, a VPN gateway may
send one fixed value for all users.

Counts are in memory. Several nodes tell each other each failure, lock and reset (`nodes.notices`), so that a count and
a lock hold on all of them within a third of a second, and after a restart. On the embedded database, a restart resets
at most nine failures of a name, and only an admin can restart the service. Unknown users have separate tables, so that
many unknown names do not evict users from the bounded tables. If there was no failure for an hour, a login only reads
`Lockouts.some`.
"""
