"""Messages between the service and the endpoint agents; both sides read and write them.

    agent                                                service
      | POST STATE     Poll ------------------------------> |  answers when there is a newer state, or after wait_s:
      | <------------------------- envelope, or UNCHANGED   |  `envelope(sign, state)`
      | POST REPORT    Report ----------------------------> |  changes, findings, and results of triggers
      | POST ROTATION  Rotation (escrow, confirm, abandon)> |  before and after each change of a password
      | POST PRIVILEGES PrivilegeStatus ------------------> |  users with root privileges, and drift

An agent acts only on one signed document, the `State`. The state contains the desired accounts and files, and triggers.
A trigger is an order to act now.

**Signature.** Ed25519 over `signed_octets(payload)`. The payload is the exact octets of the state as sent, so the JSON
needs no canonical form. The agent gets the public key when it enrols. To replace the key, the service sends a state
that is signed with the old key and contains the new public key. From then on the agent trusts only the new key. Each
poll contains the public key that the agent trusts, and the service signs with this key. The service keeps an old key
until the next replacement.

**Versions and replay.** An agent accepts a state if it is for the agent's own instance, its signature is valid, and its
version is the agent's version or newer (`follow`). The service makes a new version only if `content` changes.
The version is the current time in microseconds, and at least the last version + 1. So even after a restore
from a backup, the service makes newer versions than its agents have. An agent does not compare a version with its own
clock, so a wrong clock on the host does no harm.

**Rotation.** The agent generates a candidate for the new password. The agent sets the candidate only after the service
has acknowledged `escrow`. The service keeps the old password and all candidates until one is confirmed or abandoned:

    escrow   id, user, password, password_hash: a candidate. The service acknowledges a candidate after it has stored
             the candidate encrypted. The password on the host is not changed yet.
    confirm  id: the host has the candidate as password. From now on, the state contains the new password_hash.
    abandon  id: the candidate was never set on the host, and never will be.

Every message may arrive twice. confirm and abandon may arrive after a restart of the agent or the service. abandon of
an unknown id succeeds. If a candidate is neither confirmed nor abandoned, the host may have the old password or the
candidate, and the service shows both.

    fields    types of the messages' fields, with their bounds
    state     State: the desired accounts and files
    envelope  signature, versions and protection against replay
    report    messages of an agent: Report, PrivilegeStatus, Rotation; the polls
"""
