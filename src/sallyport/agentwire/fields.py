"""Types of message fields with their bounds, and the paths of the messages."""

from typing import Annotated, Final

from sallyport.base.wire import LATEST, Text, Whole

STATE: Final = "/api/v1/agent/desiredState"
REPORT: Final = "/api/v1/agent/report"
ROTATION: Final = "/api/v1/agent/rotation"
PRIVILEGES: Final = "/api/v1/agent/privilegeStatus"

MAX_STATE: Final = 4 * 1024 * 1024
"""Maximum length of an envelope, in octets."""
MAX_PAYLOAD: Final = MAX_STATE // 4 * 3 - 1024
"""Maximum length of the state in an envelope, in octets, before it is encoded in base64."""
MAX_REPORT: Final = 900_000
"""Maximum length of a message from an agent, in octets. It is below the service's limit for HTTP bodies."""
MAX_USERS: Final = 1000
MAX_FOUND: Final = 2000
"""Maximum number of accounts, and maximum number of groups, in one discovery."""
MAX_WAIT_S: Final = 60

NAME: Final = r"[a-z_][a-z0-9_-]{0,31}"
"""Pattern of the names of users and groups that an agent creates. useradd(8) accepts more names, even ../x."""
PATH: Final = r"(?!.*/\.\.?(?:/|$))(?:/[A-Za-z0-9._-]+)+"
"""Pattern of an absolute path without `.`, `..`, blanks and colons."""
MAX_PATH: Final = 512
HASH: Final = r"\$(?:y|gy|7|6|5|2[aby])\$[./A-Za-z0-9$=,+-]{8,500}"
"""Pattern of a crypt(5) hash: yescrypt, gost-yescrypt, scrypt, SHA-512, SHA-256 or bcrypt."""
NO_PASSWORD: Final = "*"  # noqa: S105  what shadow(5) has where no password opens the account
MIN_ID, MAX_ID = 1, 2**31 - 2

Name = Annotated[str, Text(32, NAME, "a name of lowercase letters, digits, _ and -")]
HostName = Annotated[str, Text(64)]
"""A name of an existing user or group on a host. The name need not match NAME."""
Path = Annotated[str, Text(MAX_PATH, f"(?:{PATH})?", "an absolute path")]
StateKey = Annotated[str, Text(44, "(?:[A-Za-z0-9+/]{43}=)?", "an Ed25519 key in base64")]
"""The Ed25519 public key for the signatures of states, in base64, or empty text."""
Moment = Annotated[int, Whole(0, LATEST)]
"""A time in microseconds UTC."""
Id = Annotated[int, Whole(MIN_ID, MAX_ID)]
AnyId = Annotated[int, Whole(0, 2**32 - 1)]
Number = Annotated[int, Whole(0, 2**63 - 1)]
Line = Annotated[str, Text(500)]
