"""What the service and the endpoint agents say to each other; both sides read and write these messages.

    agent                                                service
      | POST STATE     Poll ------------------------------> |  answers when it has a newer state, or after wait_s:
      | <------------------------- envelope, or UNCHANGED   |  `envelope(sign, state)`
      | POST REPORT    Report ----------------------------> |  what was done, found, and what became of triggers
      | POST ROTATION  Rotation (escrow, confirm, abandon)> |  before and after each change of a password
      | POST PRIVILEGES PrivilegeStatus ------------------> |  who may do what root may, and drift

All that makes an agent act is in one signed document, `State`: what should be there, and the triggers (act now).

**Signature.** Ed25519 over `signed_octets(payload)`, payload being the very octets of the state as they are sent, so
that nobody has to write JSON the same way twice. The agent got the public key when it enrolled. Another key takes its
place by a state that the old one has signed and that names the new one: from then on the agent believes the new one
alone, and says in its polls which one it has. The service signs by that one as long as it has it, which is until the
next change.

**Versions and replay.** An agent takes a state whose instance is its own, whose signature is right, and which is newer
than the one it has, or the same once more (`follow`). The service gives a new version exactly when `content` changes,
and makes it the larger of the last version + 1 and the present in microseconds: so a store that was restored from a
copy is ahead of its agents again. Clocks are not compared: a host whose clock is wrong is still served.

**Rotation.** The agent makes a password; it is in force only between the service's acknowledgement of `escrow` and
whatever comes after it. The service keeps the password it knew and every candidate until one is
confirmed or abandoned:

    escrow   id, user, password, password_hash: a candidate. Acknowledged: it is stored, sealed. Nothing is changed yet.
    confirm  id: the candidate is in force; it takes the place of the password before, and password_hash is from now on
             what the state says of the user.
    abandon  id: the candidate was never in force and never will be.

Every message may come twice, and confirm and abandon may come after a restart of either side: an unknown id of abandon
is a success. A candidate of which nothing more is heard may be in force: it is shown beside the old one, not dropped.

    fields    the types that the messages' fields have, and their bounds
    state     what should be there: State
    envelope  its signature, versions and replay
    report    what an agent tells: Report, PrivilegeStatus, Rotation; the polls
"""
