"""The search index of devices. What is SQLite's alone stands here: another engine has a search of its own.

Each text of a device is cut at each of its letters into a piece of five letters, or fewer at its end, and each piece
begins with the number of its domain. FTS5 keeps for each piece the devices that have it, and where. A text of five
letters or more is then a phrase of its pieces, a shorter one the beginning of a piece: any text is found without a
look at the devices, and nothing is read but what the domain itself has. FTS5's own pieces of three letters are too
common for what people look for most, an address: each of its pieces stands in every tenth device.

The tokenizer takes ASCII letters and digits and everything beyond ASCII for parts of a word. The other characters of
ASCII are written as capitals, which folded text has none of.
"""

from sallyport.store.model import Tx, Value

PIECE = 5
_CAPITALS = (*range(0x400, 0x430), *range(0x531, 0x556))  # Cyrillic, Armenian: two octets each
_WRITTEN = dict(zip((code for code in range(128) if not chr(code).isalnum()), _CAPITALS, strict=False))
_DOMAIN_ENDS = "\u0556"  # the last capital of Armenian, which stands for nothing else

FOUND = "select rowid as id from devices_search where devices_search match :match"
"""The ids of the devices that a search finds; `match` is what `matching` gives."""


def fold(text: str) -> str:
    """Text as it is compared: without case."""
    return text.casefold()


def matching(domain_id: int, folded: str) -> str:
    """What to ask the index for, so that it finds a domain's devices which have this text, not empty, in one of
    theirs."""
    letters = folded.translate(_WRITTEN)
    if len(letters) < PIECE:
        return f'"{domain_id}{_DOMAIN_ENDS}{letters}" *'
    return f'"{_pieces(domain_id, letters, len(letters) - PIECE + 1)}"'


def add(tx: Tx, domain_id: int, device_id: int, texts: tuple[str, ...]) -> None:
    """Make a device known by these folded texts."""
    sql = "insert into devices_search (rowid, pieces) values (:id, :pieces)"
    tx.execute(sql, id=device_id, pieces=_all_pieces(domain_id, texts))


def remove(tx: Tx, domain_id: int, device_id: int, texts: tuple[str, ...]) -> None:
    """Take a device out of the index. texts: those it was added by.

    The pieces must be those that `add` made: a change of how they are cut comes with a migration that makes all anew.
    """
    sql = "insert into devices_search (devices_search, rowid, pieces) values ('delete', :id, :pieces)"
    tx.execute(sql, id=device_id, pieces=_all_pieces(domain_id, texts))


def _all_pieces(domain_id: int, texts: tuple[str, ...]) -> Value:
    each = (text.translate(_WRITTEN) for text in dict.fromkeys(texts) if text)
    return " ".join(_pieces(domain_id, letters, len(letters)) for letters in each)


def _pieces(domain_id: int, letters: str, count: int) -> str:
    start = f"{domain_id}{_DOMAIN_ENDS}"
    return start + f" {start}".join([letters[at : at + PIECE] for at in range(count)])
