"""Tests of the helper protocol of ntlm_auth."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sallyport.areas.login.first.winbind.protocol import Nonsense, NtlmAnswer, Question, pull_answer, push_question

RIGHT = b"Authenticated: Yes\nUser-Session-Key: 00112233445566778899aAbBcCdDeEfF\n.\n"
KEY = bytes.fromhex("00112233445566778899aabbccddeeff")


def test_a_question_has_its_names_in_base64() -> None:
    """Names are sent in base64, so that a line end or a dot in a name does no harm.

    Octets are sent in hex. A domain is sent only if it is given.
    """
    asked = push_question(Question("jörg\n.\n", "CORP", bytes(8), bytes(range(24)))).decode().splitlines()
    assert asked == [
        "Username:: asO2cmcKLgo=",
        "NT-Domain:: Q09SUA==",
        "LANMAN-Challenge: 0000000000000000",
        "NT-Response: 000102030405060708090a0b0c0d0e0f1011121314151617",
        "Request-User-Session-Key: Yes",
        ".",
    ]
    assert b"NT-Domain" not in push_question(Question("ann", "", bytes(8), bytes(24)))


def test_an_answer_is_read_when_it_is_whole() -> None:
    """An answer is read when it is complete, however it is split. Dots before it belong to the previous answer."""
    for before in (b"", b".\n", b".\n.\n"):
        whole = before + RIGHT
        assert [pull_answer(whole[:end]) for end in range(len(whole))] == [None] * len(whole)
        assert pull_answer(whole) == NtlmAnswer(KEY)


def test_a_refusal_has_its_text() -> None:
    """The text of a refusal is plain, in base64, or missing. A CR at its end is removed."""
    refused = b"Authenticated: No\nAuthentication-Error"
    assert pull_answer(refused + b": Wrong Password\n.\n") == NtlmAnswer(None, "Wrong Password")
    assert pull_answer(refused + b":: V3Jvbmc=\n.\n.\n") == NtlmAnswer(None, "Wrong")
    assert pull_answer(b"Authenticated: No\n.\n") == NtlmAnswer(None, "winbind gave no reason")


@pytest.mark.parametrize(
    "said",
    [
        b"Error: No username supplied!\n.\n",
        b"Hello\n",
        b"Authenticated: Maybe\n.\n",
        b"Authenticated: Yes\n.\n",
        b"Authenticated: Yes\nUser-Session-Key: 0011\n.\n",
        b"User-Session-Key: 00112233445566778899AABBCCDDEEFF\n.\n",
        b"Authenticated:: ???\n.\n",
        b"\xff\xfe\n",
    ],
)
def test_nonsense_is_no_answer(said: bytes) -> None:
    """An answer without a verdict or without a key raises Nonsense, and so does any other text."""
    with pytest.raises(Nonsense):
        pull_answer(said)


@pytest.mark.torture
@given(st.binary(max_size=200))
def test_any_octets_are_an_answer_or_none(said: bytes) -> None:
    """Any octets are parsed as a complete answer or an incomplete one, or raise Nonsense."""
    try:
        answer = pull_answer(said)
    except Nonsense:
        return
    assert answer is None or answer.key is None or len(answer.key) == 16
