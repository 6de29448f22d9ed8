"""A second factor by SMS: a webhook that sends a code through the HTTP API of an SMS gateway, and checks it.

usage: python3 sms_hook_example.py PORT SECRET_FILE GATEWAY_URL

Replace `send_sms` by the request that your gateway expects, and `PHONES` by a look-up of your own.
"""

import hmac
import json
import secrets
import sys
import threading
import time
import urllib.request
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

PHONES = {"alice": "+49301234567"}  # the users that this hook knows
LIFE_S, TRIES, A_MINUTE = 120, 3, 3
challenges = {}  # challenge_id: [user, code, time of its end, tries left]
sent = {}  # user: times of the last messages
lock = threading.Lock()


def send_sms(phone, text):
    body = json.dumps({"to": phone, "text": text}).encode()
    request = urllib.request.Request(sys.argv[3], body, {"Content-Type": "application/json"})
    urllib.request.urlopen(request, timeout=8).close()


def start(challenge_id, user):
    """Send a code, once for each challenge."""
    if user not in PHONES:
        return {"status": "unknown_user"}
    with lock:
        now = time.time()
        for each in [name for name, known in challenges.items() if known[2] < now]:
            del challenges[each]
        is_new = challenge_id not in challenges
        if is_new:
            lately = sent[user] = [at for at in sent.get(user, []) if at > now - 60]
            if len(lately) >= A_MINUTE:
                return {"status": "denied"}
            lately.append(now)
            challenges[challenge_id] = [user, f"{secrets.randbelow(10**6):06}", now + LIFE_S, TRIES]
        code = challenges[challenge_id][1]
    if is_new:  # Sallyport may send a challenge again
        try:
            send_sms(PHONES[user], f"{code} is your code for the login. Nobody of the help desk asks for it.")
        except OSError:
            challenges.pop(challenge_id, None)
            raise
    return {"status": "code", "text": f"Type the code of the SMS to ...{PHONES[user][-3:]}"}


def check(challenge_id, user, code):
    """Compare a typed code. A right code is used up."""
    with lock:
        known = challenges.get(challenge_id)
        if known is None or known[0] != user or known[2] < time.time() or known[3] == 0:
            return {"status": "denied"}
        known[3] -= 1
        if hmac.compare_digest(known[1].encode(), code.encode()):
            known[3] = 0
            return {"status": "approved"}
        return {"status": "wrong_code"} if known[3] else {"status": "denied"}


class Hook(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not self.is_signed(body):
            return self.answer(401, {})
        request = json.loads(body)
        if request["type"] == "challenge":
            return self.answer(200, start(request["challenge_id"], request["user"]))
        if request["type"] == "code":
            return self.answer(200, check(request["challenge_id"], request["user"], request["code"]))
        if request["type"] == "enrolment":
            return self.answer(200, {"status": "enrolled" if request["user"] in PHONES else "unknown_user"})
        return self.answer(204, {})

    def log_message(self, format, *args):
        """Write no access log."""

    def is_signed(self, body):
        timestamp = self.headers.get("X-Sallyport-Timestamp", "")
        if not timestamp.isdecimal() or abs(time.time() - int(timestamp)) >= 60:
            return False
        expected = hmac.digest(secret, timestamp.encode() + b"." + body, "sha256").hex()
        return hmac.compare_digest(expected.encode(), self.headers.get("X-Sallyport-Signature", "").encode())

    def answer(self, status, content):
        octets = b"" if status == 204 else json.dumps(content).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(octets)))
        self.end_headers()
        self.wfile.write(octets)


if __name__ == "__main__":
    secret = Path(sys.argv[2]).read_text().strip().encode()
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Hook).serve_forever()
