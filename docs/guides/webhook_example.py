"""A second factor of your own: a webhook that asks for approval in a terminal.

usage: python3 webhook_example.py PORT SECRET_FILE [--approve]

With --approve it approves every login after a second, for a first try. Without it, type y or n for each login.
"""

import hmac
import json
import sys
import threading
import time
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

USERS = {"alice"}  # the users that this hook knows
decisions = {}  # challenge_id: waiting, approved or denied


class Hook(BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not self.is_signed(body):
            return self.answer(401, {})
        request = json.loads(body)
        if request["type"] == "enrolment":
            return self.answer(200, {"status": "enrolled" if request["user"] in USERS else "unknown_user"})
        if request["type"] != "challenge":
            return self.answer(204, {})
        if request["user"] not in USERS:
            return self.answer(200, {"status": "unknown_user"})
        name = request["challenge_id"]
        if name not in decisions:  # Sallyport may send a challenge again
            decisions[name] = "waiting"
            threading.Thread(target=ask, args=(name, request), daemon=True).start()
        return self.answer(202, {"poll_url": f"/poll/{name}"})

    def do_GET(self):
        if not self.is_signed(b""):
            return self.answer(401, {})
        return self.answer(200, {"status": decisions.get(self.path.removeprefix("/poll/"), "denied")})

    def log_message(self, format, *args):
        """Write no access log, since it would mix with the question in the terminal."""

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


def ask(name, request):
    if "--approve" in sys.argv:
        time.sleep(1)
        decisions[name] = "approved"
        return
    print(f"{request['user']} logs in at {request['device']}: approve? [y/n] ", end="", flush=True)
    decisions[name] = "approved" if input().strip() == "y" else "denied"


if __name__ == "__main__":
    secret = Path(sys.argv[2]).read_text().strip().encode()
    ThreadingHTTPServer(("127.0.0.1", int(sys.argv[1])), Hook).serve_forever()
