"""What kind of file some bytes are, told from the bytes alone. The name of a file is never asked.

Signatures are those of the format specifications: JPEG (ITU-T T.81 B.1.1.3), PNG (W3C PNG 5.2), GIF (GIF89a 17), WebP
and other RIFF (RFC 9649), TIFF 6.0 section 2 and BigTIFF, ISO base media files (ISO/IEC 14496-12 ``ftyp``; brands of
AVIF 1.1 and ISO/IEC 23008-12), JPEG 2000 (ISO/IEC 15444-1 Annex I), Netpbm, and so on.
"""

from __future__ import annotations

import codecs
import re

# (offset, signature, name). The first that fits wins; JPEG and PNG come first because nearly all files are one of them.
_SIGNATURES: tuple[tuple[int, bytes, str], ...] = (
    (0, b"\xff\xd8\xff", "jpeg"),
    (0, b"\x89PNG\r\n\x1a\n", "png"),
    (0, b"GIF87a", "gif"),
    (0, b"GIF89a", "gif"),
    (0, b"II*\0", "tiff"),
    (0, b"MM\0*", "tiff"),
    (0, b"II+\0", "tiff"),
    (0, b"MM\0+", "tiff"),
    (0, b"\0\0\0\x0cjP  \r\n\x87\n", "jpeg2000"),
    (0, b"\xff\x4f\xff\x51", "jpeg2000"),
    (0, b"\0\0\0\x0cJXL \r\n\x87\n", "jpegxl"),
    (0, b"\xff\x0a", "jpegxl"),
    (0, b"II\xbc\x01", "jpegxr"),
    (0, b"qoif", "qoi"),
    (0, b"8BPS\0\1", "psd"),
    (0, b"8BPS\0\2", "psb"),
    (0, b"icns", "icns"),
    (0, b"DDS ", "dds"),
    (0, b"\1\xda", "sgi"),
    (0, b"\x76\x2f\x31\1", "openexr"),
    (0, b"#?RADIANCE", "hdr"),
    (0, b"#?RGBE", "hdr"),
    (0, b"SIMPLE  =", "fits"),
    (0, b"gimp xcf ", "xcf"),
    (0, b"AT&TFORM", "djvu"),
    (0, b"%!PS", "eps"),
    (0, b"\xc5\xd0\xd3\xc6", "eps"),
    (0, b"\xd7\xcd\xc6\x9a", "wmf"),
    (0, b"FUJIFILMCCD-RAW", "raw"),
    (0, b"IIRO", "raw"),
    (0, b"IIRS", "raw"),
    (0, b"IIU\0", "raw"),
    (0, b"FOVb", "raw"),
    (0, b"\0MRM", "raw"),
    (4, b"ftypcrx ", "raw"),
    (0, b"BPG\xfb", "bpg"),
    (0, b"FLIF", "flif"),
    (40, b" EMF", "emf"),
    (128, b"DICM", "dicom"),
    (0, b"%PDF-", "pdf"),
    (0, b"PK\3\4", "zip"),
    (0, b"PK\5\6", "zip"),
    (0, b"\x1f\x8b", "gzip"),
    (0, b"BZh", "bzip2"),
    (0, b"\xfd7zXZ\0", "xz"),
    (0, b"7z\xbc\xaf\x27\x1c", "7z"),
    (0, b"Rar!\x1a\7", "rar"),
    (257, b"ustar", "tar"),
    (0, b"\x1aE\xdf\xa3", "video"),
    (0, b"\0\0\1\xba", "video"),
    (0, b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "office"),
    (0, b"\x7fELF", "program"),
    (0, b"version https://git-lfs.github.com/spec/", "git-lfs"),
)

# Major and compatible brands of ISO base media files that hold pictures.
_AVIF_BRANDS = frozenset({b"avif", b"avis"})
_HEIC_BRANDS = frozenset(
    {b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"hevm", b"hevs", b"mif1", b"msf1", b"heif"}
)

_NETPBM = re.compile(rb"P[1-6](?:\s|#[^\r\n]*[\r\n])+\d|Pf\s+\d")
# Relatives that Pillow does not decode: several channels with names, and colours in floating point.
_PAM = re.compile(rb"P7\s+(?:#|WIDTH|HEIGHT|DEPTH)")
_PFM = re.compile(rb"PF\s+\d")
_TEXT_BYTES = bytes(range(0x20, 0x7F)) + b"\t\n\r\f\b\x1b"

# What each name means, for messages. Names that are not here are image formats and are spelled in capitals.
_DESCRIPTIONS = {
    "jpeg2000": "JPEG 2000",
    "jpegxl": "JPEG XL",
    "jpegxr": "JPEG XR",
    "webp": "WebP",
    "netpbm": "PPM",
    "openexr": "OpenEXR",
    "hdr": "Radiance HDR",
    "psd": "Photoshop",
    "psb": "large Photoshop (PSB)",
    "svg": "SVG, a drawing and not pixels",
    "djvu": "DjVu",
    "raw": "a camera raw file",
    "html": "an HTML page (often an error page saved under the name of an image)",
    "xml": "XML",
    "json": "JSON text",
    "text": "plain text",
    "zip": "a zip archive",
    "gzip": "gzip-compressed data",
    "bzip2": "bzip2-compressed data",
    "xz": "xz-compressed data",
    "7z": "a 7z archive",
    "rar": "a RAR archive",
    "tar": "a tar archive",
    "video": "a video",
    "pdf": "a PDF document: export its pages as images",
    "office": "an Office document",
    "program": "a program",
    "git-lfs": "a Git LFS pointer: the file itself was not fetched (git lfs pull fetches it)",
    "zeros": "nothing but zero bytes (an interrupted download or a damaged disk)",
    "unknown": "of no kind that is known here",
}

NOT_IMAGES = frozenset(
    {"html", "xml", "json", "text", "zip", "gzip", "bzip2", "xz", "7z", "rar", "tar", "video", "office", "program"}
    | {"pdf", "git-lfs", "zeros", "unknown"}
)


def sniff(data: bytes) -> str:
    """Name of the format of ``data``: ``jpeg``, ``png``, ``gif``, ``webp``, ``tiff``, ``heic``, ..., ``unknown``.

    Also names what is often found where an image should be (``html``, ``text``, ``zip``; :data:`NOT_IMAGES`). Empty
    data is ``unknown``. Cheap: looks at the first bytes only, and at the last 18 for TGA.
    """
    for offset, signature, name in _SIGNATURES:
        if data.startswith(signature, offset):
            return name
    if data[:4] == b"RIFF":
        return {b"WEBP": "webp", b"AVI ": "video"}.get(data[8:12], "unknown")
    if data[4:8] == b"ftyp":
        return _iso_media(data)
    if data[:2] == b"BM" and len(data) >= 26 and data[14:18] in _BMP_HEADER_SIZES:
        return "bmp"
    if data[:4] in (b"\0\0\1\0", b"\0\0\2\0") and len(data) >= 22 and data[4:6] != b"\0\0":
        return "ico" if data[2] == 1 else "cur"
    for pattern, name in ((_NETPBM, "netpbm"), (_PAM, "pam"), (_PFM, "pfm")):
        if pattern.match(data):
            return name
    if data[:1] == b"\x0a" and len(data) >= 128 and data[1] in (0, 2, 3, 4, 5) and data[2] == 1:
        return "pcx"
    if data[-18:] == b"TRUEVISION-XFILE.\0":
        return "tga"
    return _text(data)


_LOOKED_AT = 2**16  # bytes behind the end of a picture

# Sizes of the header that follows a BMP file header: OS/2 1.x, OS/2 2.x, and Windows versions 3 to 5.
_BMP_HEADER_SIZES = frozenset(size.to_bytes(4, "little") for size in (12, 16, 40, 52, 56, 64, 108, 124))


def describe(kind: str) -> str:
    """The kind in words, for messages: ``a zip archive``, ``WebP``, ``TIFF``."""
    return _DESCRIPTIONS.get(kind, kind.upper())


def what_follows(data: bytes, end: int) -> str:
    """In words, what lies behind the end of a picture; another picture is called one."""
    told = f"{len(data) - end:,} bytes follow the end of the image"
    rest = data[end : end + _LOOKED_AT]
    kind = next((kind for kind in (sniff(rest), sniff(rest.lstrip(b"\0\r\n "))) if kind not in NOT_IMAGES), "")
    if not kind:
        return told
    return f"{told}, and begin as another picture ({describe(kind)}), which is not used: give it a file of its own"


def _iso_media(data: bytes) -> str:
    size = min(int.from_bytes(data[:4], "big"), 256)
    brands = {data[8:12], *(data[i : i + 4] for i in range(16, max(size, 16), 4))}
    if brands & _AVIF_BRANDS:
        return "avif"
    if brands & _HEIC_BRANDS:
        return "heic"
    return "jpeg2000" if data[8:12] in (b"jp2 ", b"jpx ") else "jpegxl" if data[8:12] == b"jxl " else "video"


def _text(data: bytes) -> str:
    head = data[:1024]
    if not head.strip(b"\0"):
        return "zeros" if head else "unknown"
    if head[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return "text"
    start = head.removeprefix(b"\xef\xbb\xbf").lstrip().lower()
    if start.startswith((b"<!doctype html", b"<html", b"<head", b"<body")) or b"<html" in start:
        return "html"
    if start.startswith((b"<?xml", b"<svg", b"<!doctype svg")):
        return "svg" if b"<svg" in data[:4096].lower() else "xml"
    # Any byte above 0x7f may belong to a text in some encoding; control characters do not.
    if head.translate(None, _TEXT_BYTES + bytes(range(0x80, 0x100))):
        return "unknown"
    if sum(byte >= 0x80 for byte in head) * 3 > len(head) and not _is_utf8(head):
        return "unknown"
    return "json" if start.startswith((b"{", b"[")) else "text"


def _is_utf8(head: bytes) -> bool:
    try:
        codecs.getincrementaldecoder("utf-8")().decode(head)  # its last character may be cut
    except UnicodeDecodeError:
        return False
    return True
