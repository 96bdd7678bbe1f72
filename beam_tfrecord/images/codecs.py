"""What Pillow does not tell of JPEG 2000, AVIF and HEIC: whether detail was lost, and whether samples are deeper than 8
bits."""

from __future__ import annotations

_HEAD = 1 << 16


def is_lossy(data: bytes, kind: str) -> bool:
    """Whether the compression is one that loses detail. AVIF and HEIC count as lossy always, although they need not be.

    JPEG 2000 is lossy with the 9-7 wavelet (ISO/IEC 15444-1 Table A.20: transformation 0).
    """
    if kind == "jpeg2000":
        style = data.find(b"\xff\x52\x00", 0, _HEAD)
        return style >= 0 and data[style + 13 : style + 14] == b"\x00"
    return kind in ("avif", "heic")


def is_deep(data: bytes, kind: str) -> bool:
    """Whether samples have more than 8 bits, from the codestream header or the codec configuration box."""
    if kind == "jpeg2000":
        size = data.find(b"\xff\x51", 0, _HEAD)  # SIZ; Ssiz of the first component holds depth - 1 in its low 7 bits
        return size >= 0 and len(data) > size + 40 and (data[size + 40] & 0x7F) > 7
    if kind == "avif":
        box = data.find(b"av1C", 0, _HEAD)  # AV1-ISOBMFF 2.3.3: high_bitdepth is bit 6 of the third byte
        return box >= 0 and len(data) > box + 6 and bool(data[box + 6] & 0x40)
    if kind == "psd":
        return data[22:24] not in (b"\0\1", b"\0\x08")
    return kind == "sgi" and data[3:4] == b"\2"  # BPC: bytes of a sample
