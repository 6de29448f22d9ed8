"""Users with passwords in a dictionary, which answer the questions of conversations."""

from sallyport.radius.eap.conversation import Conversation
from sallyport.radius.eap.model import Certificate, Chap, Check, MsChap, Outcome, Password, Question, Resumed, Verdict
from sallyport.radius.mschap import NtKey, nt_hash, nt_hash_hash, peer_names
from sallyport.radius.password import chap_holds

WRONG = Verdict(False, reason="wrong password")
EVERYTHING = frozenset({Password, Chap, MsChap})


class Users:
    """Names and passwords.

    disabled: the users that may not log in. codes: the code that the user must type after the password, if the method
    can ask for it. asked: the questions so far.
    """

    def __init__(self, passwords: dict[bytes, bytes], codes: dict[bytes, bytes] | None = None) -> None:
        self.passwords = passwords
        self.codes = codes or {}
        self.disabled: set[bytes] = set()
        self.asked: list[Question] = []

    def settle(self, conversation: Conversation, outcome: Outcome) -> Outcome:
        """Answer the questions of a conversation, and return its outcome."""
        while isinstance(outcome, Check):
            outcome = conversation.answer(self.verdict(outcome.question))
        return outcome

    def verdict(self, question: Question) -> Verdict:
        """Return the answer to one question."""
        self.asked.append(question)
        password = self.passwords.get(question.user)
        if password is None or question.user in self.disabled:
            return WRONG
        if isinstance(question, Password):
            return self._password(question, password)
        if isinstance(question, Chap):
            return Verdict(True) if chap_holds(question.value, password, question.challenge) else WRONG
        if isinstance(question, MsChap):
            return _mschap(question, password)
        assert isinstance(question, Certificate | Resumed)
        return Verdict(True)

    def _password(self, question: Password, password: bytes) -> Verdict:
        code = self.codes.get(question.user)
        if question.step:
            return Verdict(True) if question.password == code else WRONG
        if question.password != password:
            return WRONG
        return Verdict(False, prompt="Enter your code") if code and question.prompts else Verdict(True)


def _mschap(question: MsChap, password: bytes) -> Verdict:
    hashed = nt_hash(password)
    for name in peer_names(question.hashed):
        if NtKey(hashed).made(question.attempt, name):
            return Verdict(True, hash_hash=nt_hash_hash(hashed), hashed=name)
    return WRONG
