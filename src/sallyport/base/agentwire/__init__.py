"""Messages between the service and the endpoint agents; both sides read and write them.

    agent                                                service
      | POST STATE     Poll ------------------------------> |  answers when it has a newer state, or after wait_s:
      | <------------------------- envelope, or UNCHANGED   |  `envelope(sign, state)`
      | POST REPORT    Report ----------------------------> |  changes, findings, and results of triggers
      | POST ROTATION  Rotation (escrow, confirm, abandon)> |  before and after each change of a password
      | POST PRIVILEGES PrivilegeStatus ------------------> |  users with root privileges, and drift

An agent acts only on one signed document, `State`. It contains the desired accounts and files, and triggers, which are
orders to act now.

**Signature.** Ed25519 over `signed_octets(payload)`. The payload is the exact octets of the state as sent, so the JSON
needs no canonical form. The agent gets the public key when it enrols. To replace the key, the service sends a state
that is signed with the old key and contains the new key. From then on the agent trusts only the new key, and sends its
key in each poll. The service signs with the key in the poll, and keeps an old key until the next replacement.

**Versions and replay.** An agent accepts a state if it is for the agent's own instance, its signature is valid, and its
version is the agent's version or newer (`follow`). The service makes a new version only if `content` changes.
The version is the current time in microseconds, and at least the last version + 1. A store that is restored from a
backup therefore has newer versions than its agents. Clocks are not compared: a host with a wrong clock is still served.

**Rotation.** The agent generates a candidate password. It becomes valid only after the service has acknowledged
`escrow`. The service keeps the former password and every candidate until a candidate is confirmed or abandoned:

    escrow   id, user, password, password_hash: a candidate. The service acknowledges it once it is stored (sealed). The
             password on the host is not changed yet.
    confirm  id: the candidate is valid; it replaces the former password, and the state has its password_hash from now.
    abandon  id: the candidate was never valid and never will be.

Every message may arrive twice. confirm and abandon may arrive after a restart of either side; abandon of an unknown id
succeeds. A candidate that is neither confirmed nor abandoned may be valid: the service shows it and the former one.

    fields    types of the messages' fields, with their bounds
    state     State: the wanted accounts and files
    envelope  signature, versions and replay
    report    messages of an agent: Report, PrivilegeStatus, Rotation; the polls
"""
