"""JPEG files seen as markers (ITU-T T.81 Annex B): the header, and whether the scans decode.

Only bytes are looked at here, and the entropy-coded data goes through libjpeg-turbo (simplejpeg), which releases the
GIL.
"""

from __future__ import annotations

import functools
from typing import NamedTuple

import simplejpeg

from beam_tfrecord.images.orientation import ExifDamagedError, exif_orientation, xmp_orientation
from beam_tfrecord.images.safety import DamagedFileError

END = b"\xff\xd9"

_EXIF = b"Exif\0\0"
_XMP = b"http://ns.adobe.com/xap/1.0/\0"
_MPF = b"MPF\0"
_ICC = b"ICC_PROFILE\0"

# Start-of-frame markers: 0xC0 to 0xCF without DHT (C4), JPG (C8) and DAC (CC).
_FRAMES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
# Baseline, extended and progressive DCT with Huffman codes: what every decoder reads.
COMMON_FRAMES = frozenset({0xC0, 0xC1, 0xC2})
ARITHMETIC = frozenset({0xC9, 0xCA, 0xCB, 0xCD, 0xCE, 0xCF})
PROGRESSIVE = frozenset({0xC2, 0xC6, 0xCA, 0xCE})
# Not complaints of the decoder about the data, but of simplejpeg about what it can do.
_LIMITS = ("subsampling level", "Unsupported", "colorspace")


class JpegHeader(NamedTuple):
    """What the markers before the first scan say.

    frame: the start-of-frame marker's second byte. precision: bits per sample. orientation: of EXIF, or of
    XMP where EXIF says nothing; 1 when nothing is said. exif_damaged: why EXIF cannot be read, or ''. is_mpo: a
    multi-picture index is there. scan: offset of the first scan's marker. is_subsampled: the colour has half the
    resolution of the brightness, both ways (4:2:0). component_ids: the names that scans use for the components.
    samplings: of each component, how many samples a unit has across (upper four bits) and down (lower ones).
    restart_interval: units between two restart markers of the first scan; 0 when there are none.
    """

    height: int
    width: int
    components: int
    frame: int
    precision: int
    orientation: int
    exif_damaged: str
    is_mpo: bool
    scan: int
    is_subsampled: bool
    component_ids: bytes
    samplings: bytes
    restart_interval: int

    @property
    def is_evenly_sampled(self) -> bool:
        """Whether every component has a whole fraction of the resolution: libjpeg decodes no other ones."""
        return _are_even(self.samplings)

    @property
    def is_common(self) -> bool:
        """Whether every decoder reads this kind: Huffman codes, 8 bits, baseline or progressive."""
        return self.frame in COMMON_FRAMES and self.precision == 8


class JpegError(DamagedFileError):
    """The markers before the first scan are not those of a JPEG."""


def read_header(data: bytes) -> JpegHeader:
    """The header of a JPEG, from its markers up to the first scan. Raises JpegError."""
    position = 2
    frame = exif = xmp = None
    is_mpo = False
    restart_interval = 0
    try:
        while True:
            if data[position] != 0xFF:
                # Bytes between segments: decoders skip them with a warning.
                position = data.index(0xFF, position)
            marker = data[position + 1]
            if marker == 0xDA:
                break
            if marker == 0xFF or marker <= 0x01 or 0xD0 <= marker <= 0xD8:
                position += 1 if marker == 0xFF else 2
                continue
            if marker == 0xD9:
                raise JpegError("it ends before its first scan", cut=True)
            length = data[position + 2] << 8 | data[position + 3]
            if length < 2:
                raise JpegError("a marker segment has no length")
            if marker in _FRAMES:
                if frame is not None:
                    raise JpegError("it has two frame headers")
                frame = position + 4
                data[frame + 5 + 3 * data[frame + 5]]  # the description of every component must be there
            elif marker == 0xE1:
                if exif is None and data.startswith(_EXIF, position + 4):
                    exif = data[position + 10 : position + 2 + length]
                elif xmp is None and data.startswith(_XMP, position + 4):
                    xmp = data[position + 4 : position + 2 + length]
            elif marker == 0xE2:
                is_mpo = is_mpo or data.startswith(_MPF, position + 4)
            elif marker == 0xDD:
                restart_interval = data[position + 4] << 8 | data[position + 5]
            position += 2 + length
    except (IndexError, ValueError) as error:
        if isinstance(error, JpegError):
            raise
        raise JpegError("it ends inside of its header", cut=True) from None
    if frame is None:
        raise JpegError("no frame header comes before its first scan")
    orientation = None
    exif_damaged = ""
    if exif is not None:
        try:
            orientation = exif_orientation(exif)
        except ExifDamagedError as error:
            exif_damaged = str(error)
    if orientation is None and xmp is not None:
        orientation = xmp_orientation(xmp)
    return JpegHeader(
        data[frame + 1] << 8 | data[frame + 2],
        data[frame + 3] << 8 | data[frame + 4],
        data[frame + 5],
        data[frame - 3],
        data[frame],
        orientation or 1,
        exif_damaged,
        is_mpo,
        position,
        data[frame + 5] == 3 and (data[frame + 7], data[frame + 10], data[frame + 13]) == (0x22, 0x11, 0x11),
        data[frame + 6 : frame + 6 + 3 * data[frame + 5] : 3],
        data[frame + 7 : frame + 6 + 3 * data[frame + 5] : 3],
        restart_interval,
    )


@functools.lru_cache(maxsize=256)
def _are_even(samplings: bytes) -> bool:
    across, down = [sampling >> 4 for sampling in samplings], [sampling & 15 for sampling in samplings]
    return all(sides and min(sides) and not any(max(sides) % side for side in sides) for sides in (across, down))


def without_picture_index(data: bytes, scan: int) -> bytes:
    """The JPEG without its multi-picture index (CIPA DC-007: an APP2 segment), which tells of pictures behind its
    end."""
    position = data.find(_MPF, 0, scan)
    while position >= 4:
        if data[position - 4 : position - 2] == b"\xff\xe2":
            length = int.from_bytes(data[position - 2 : position], "big")
            return data[: position - 4] + data[position - 2 + length :]
        position = data.find(_MPF, position + 1, scan)
    return data


def complaint(data: bytes, colorspace: str = "GRAY") -> str | None:
    """What libjpeg-turbo has against the scans, or None when they decode to the last bit without a remark.

    Every scan is entropy-decoded in full; only the pixels are made at an eighth of the size, in grey, which is cheap.
    colorspace: ``CMYK`` for four components, which have no grey.
    An empty string says that this quick look is not possible for such a file, not that something is wrong with it.
    """
    try:
        simplejpeg.decode_jpeg(data, colorspace, min_height=1, min_width=1)
    except ValueError as error:
        message = str(error)
        return "" if is_limit(message) else message
    return None


def header_complaint(data: bytes) -> str | None:
    """The same for the header alone: its tables, and that a scan follows."""
    try:
        simplejpeg.decode_jpeg_header(data)
    except KeyError:  # its name for a way of subsampling (4:4:1) that it has none for; the header was read by then
        return None
    except ValueError as error:
        message = str(error)
        return "" if is_limit(message) else message
    return None


def is_limit(message: str) -> bool:
    """Whether simplejpeg's message is about what it cannot do, not about the data."""
    return any(limit in message for limit in _LIMITS)


def icc_profile(data: bytes, scan: int) -> bytes | None:
    """The ICC profile in the APP2 segments before the first scan (ICC.1:2010 Annex B.4), or None.

    Its parts are put in the order of their numbers; missing parts show when the profile is read.
    """
    parts = {}
    position = data.find(_ICC, 0, scan)
    while position >= 0:
        length = int.from_bytes(data[position - 2 : position], "big")
        parts[data[position + 12]] = data[position + 14 : position - 2 + length]
        position = data.find(_ICC, position + max(length - 2, 12), scan)
    return b"".join(parts[number] for number in sorted(parts)) or None
