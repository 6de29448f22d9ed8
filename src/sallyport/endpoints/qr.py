"""QR codes of otpauth URIs: for a page, and for a terminal."""

import io

import trio

BORDER = 4
"""Modules of quiet zone (ISO/IEC 18004 section 9.1)."""


class QrImages:
    """Draws one image at a time, in a worker thread: it takes 10 to 60 ms, and no login waits for it."""

    def __init__(self) -> None:
        self._one_at_a_time = trio.CapacityLimiter(1)

    async def data_uri(self, text: str) -> str:
        """An SVG image as a data URI, black on white whatever is around it."""
        return await trio.to_thread.run_sync(_data_uri, text, limiter=self._one_at_a_time)


def _data_uri(text: str) -> str:
    import segno

    return segno.make_qr(text, error="m").svg_data_uri(scale=4, border=BORDER, dark="#000", light="#fff")


def blocks(text: str) -> str:
    """Lines of half blocks for a terminal; light is what is drawn, as suits a dark one, and scanners read both."""
    import segno

    out = io.StringIO()
    segno.make_qr(text, error="l").terminal(out, border=BORDER, compact=True)
    return out.getvalue().rstrip("\n")
