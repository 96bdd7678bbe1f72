"""Whether a JPEG holds all that its header promises, told from its markers in one pass (ITU-T T.81 Annexes A, B and G).

Decoders forgive a file that was cut and ended by an end marker: they fill up with grey, or show a blurred picture. What
the markers tell of it is told here; what only the entropy-coded data tell, libjpeg-turbo says (:mod:`.jpeg`).
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from beam_tfrecord.images.jpeg import END, PROGRESSIVE, JpegHeader

# Scans that a progressive image may have. Each costs a pass over all coefficients: without a limit a small file keeps
# a decoder busy for hours. Common encoders write 10; one per coefficient and component would be 192.
MAX_SCANS = 500
MAX_SCAN_PIXELS = 10**10

# The end of entropy-coded data: a marker that is neither a stuffed zero, nor a restart, nor a fill byte.
_MARKER = re.compile(rb"\xff[\x01-\xcf\xd8-\xfe]")
_END = re.compile(END)  # three times as fast as bytes.find
_END_PAIR = int.from_bytes(END, "little")
_LONG = 1 << 15  # bytes, from which on numpy looks for the marker in a fifth of that time
_ANY_MARKER = re.compile(rb"\xff+[\x01-\xfe]")
_RESTART = re.compile(rb"\xff[\xd0-\xd7]")
_NO_DCT = frozenset({0xC3, 0xC7, 0xCB, 0xCF})  # lossless frames, whose units are samples


class Scan(NamedTuple):
    """A scan. components: their names. first, last: the coefficients (Ss, Se). high_bit, low_bit: the bit down to which
    they came before, 0 for a first scan, and come now (Ah, Al). start, stop: offsets of its entropy-coded data.
    restart_interval: in units, or 0."""

    components: bytes
    first: int
    last: int
    high_bit: int
    low_bit: int
    start: int
    stop: int
    restart_interval: int


class Scans(NamedTuple):
    """The scans of the first picture of a file, and the offset behind its end marker; None without one."""

    scans: tuple[Scan, ...]
    end: int | None


def is_one_whole_scan(data: bytes, header: JpegHeader) -> bool:
    """Whether the first scan has everything, and the first end marker is the end of the file: nearly all files.

    The two bytes of an end marker cannot be entropy-coded data, but they can be a part of a later table.
    """
    scan = header.scan
    if header.frame in PROGRESSIVE or scan + 4 >= len(data) or data[scan + 4] != header.components:
        return False
    last = len(data) - len(END)
    if last - scan < _LONG:
        end = _END.search(data, scan)
        return end is not None and end.start() == last
    pairs = (np.frombuffer(data, "<u2", (last + 1 - start) // 2, start) for start in (scan, scan + 1))
    return data.endswith(END) and not any((own == _END_PAIR).any() for own in pairs)


def read_scans(data: bytes, header: JpegHeader) -> Scans:
    """All scans up to the end marker, entropy-coded data and contents of segments passed over."""
    scans: list[Scan] = []
    interval = header.restart_interval
    position = header.scan
    while position + 1 < len(data):
        marker = data[position + 1]
        if marker == 0xD9:
            return Scans(tuple(scans), position + 2)
        start = position + 2
        if marker not in (0x01, 0xD8):
            start += data[position + 2] << 8 | data[position + 3] if position + 3 < len(data) else 2
        if marker == 0xDD:
            interval = int.from_bytes(data[position + 4 : position + 6], "big")
        match = _MARKER.search(data, start)
        stop = match.start() if match else len(data)
        if marker == 0xDA and position + 4 < len(data):
            count = data[position + 4]
            spectrum = data[position + 5 + 2 * count : position + 8 + 2 * count]
            if len(spectrum) == 3:
                components = data[position + 5 : position + 5 + 2 * count : 2]
                bits = spectrum[2] >> 4, spectrum[2] & 15
                scans.append(Scan(components, spectrum[0], spectrum[1], *bits, start, stop, interval))
        position = stop
    return Scans(tuple(scans), None)


def too_many_scans(found: Scans, header: JpegHeader) -> int:
    """How many scans a progressive JPEG has that would keep a decoder busy for too long; 0 for all others."""
    if header.frame not in PROGRESSIVE:
        return 0
    count = len(found.scans)
    return count if count > MAX_SCANS or count * header.width * header.height > MAX_SCAN_PIXELS else 0


def missing_scans(found: Scans, header: JpegHeader) -> str:
    """What of the components no scan holds, in words; nothing when every coefficient is there to its last bit.

    T.81 G.1.1.1 divides the coefficients of a progressive image into bands (Ss to Se) and bits (down to Al), and does
    not forbid to leave some out. All encoders known here send all of them, and a file that was cut between two scans
    decodes without a remark, to a blurred picture: so what lacks some counts as cut.
    """
    lacking = []
    for number, component in enumerate(header.component_ids, start=1):
        scans = [scan for scan in found.scans if component in scan.components]
        if header.frame not in PROGRESSIVE:
            is_whole = bool(scans)
        else:
            bits: list[int | None] = [None] * 64  # the bit down to which each coefficient is there
            for scan in scans:
                for place in range(scan.first, min(scan.last, 63) + 1):
                    if scan.high_bit in (0, bits[place]):
                        bits[place] = scan.low_bit
            is_whole = not any(bits) and None not in bits
        if not is_whole:
            lacking.append(number)
    if not lacking:
        return ""
    what = "its last bits or frequencies" if header.frame in PROGRESSIVE else "any scan"
    numbers = " and ".join(str(number) for number in lacking)
    return f"component{'s' if len(lacking) > 1 else ''} {numbers} lack{'s' if len(lacking) == 1 else ''} {what}"


def missing_restarts(data: bytes, found: Scans, header: JpegHeader) -> str:
    """Which scan has fewer restart markers than its size needs (T.81 E.1.4), in words; nothing when none has.

    Only files with restart intervals tell; nothing is decoded.
    """
    for number, scan in enumerate(found.scans, start=1):
        units = _units(scan, header) if scan.restart_interval else 0
        needed = -(-units // scan.restart_interval) - 1 if units else 0
        there = len(_RESTART.findall(data, scan.start, scan.stop)) if needed else 0
        if there < needed:
            return f"{needed - there} of {needed + 1} restart intervals are missing in scan {number}"
    return ""


def _units(scan: Scan, header: JpegHeader) -> int:
    """How many units (MCU) a scan has (T.81 A.2); 0 when nobody can tell."""
    samplings = dict(zip(header.component_ids, header.samplings, strict=False))
    sampling = samplings.get(scan.components[0]) if scan.components else None
    across, down = max(each >> 4 for each in header.samplings), max(each & 15 for each in header.samplings)
    if header.frame in _NO_DCT or not (sampling and across and down):
        return 0
    width, height = header.width, header.height
    if len(scan.components) == 1:  # a unit is one block, and those that only fill up are left out
        width, height = -(-width * (sampling >> 4) // across), -(-height * (sampling & 15) // down)
        across = down = 1
    return -(-width // (8 * across)) * -(-height // (8 * down))


def with_more_data(data: bytes, found: Scans, more: bytes) -> bytes:
    """The JPEG with further bytes before every marker that ends coded data.

    A decoder that has all pixels by then skips them; one that ran out of data makes pixels of them.
    """
    parts: list[bytes] = []
    position = 0
    for scan in found.scans:
        parts.append(data[position : scan.start])
        start = scan.start
        for match in _ANY_MARKER.finditer(data, scan.start, scan.stop):
            parts += (data[start : match.start()], more)
            start = match.start()
        parts += (data[start : scan.stop], more)
        position = scan.stop
    return b"".join((*parts, data[position:]))
