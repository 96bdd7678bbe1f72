"""A JPEG file to what is stored.

Kept byte for byte when TensorFlow decodes it as it stands and no option asks for a change. That path is the one most
images take: little Python in it, and libjpeg-turbo does the rest without the GIL.
"""

from __future__ import annotations

import math

from beam_tfrecord.core.geometry import PixelFrame
from beam_tfrecord.errors import ImageError
from beam_tfrecord.images import jpeg, jpeg_scans
from beam_tfrecord.images.decode import decode_jpeg, refuse_cut
from beam_tfrecord.images.render import CHANNELS, Origin, render
from beam_tfrecord.images.resize import is_resized, is_unchanged, plan_frame
from beam_tfrecord.images.safety import check_pixels, check_storable
from beam_tfrecord.images.small import look_at_jpeg
from beam_tfrecord.images.sniff import what_follows
from beam_tfrecord.images.stored import Notes, SmallPicture, StoredImage, seen_image
from beam_tfrecord.options.config import ImagePolicy

# Shorter sides are decoded in full: at eighths of them the size of the result would not tell which eighth it is.
_REDUCIBLE = 64


def convert_jpeg(data: bytes, policy: ImagePolicy) -> StoredImage:
    """What is stored for a JPEG. Raises ImageError."""
    try:
        header = jpeg.read_header(data)
    except jpeg.JpegError as error:
        raise error.told("a damaged JPEG") from None
    height, width, components = header.height, header.width, header.components
    is_header_only = policy.validate == "header"
    is_common = header.is_common
    check_pixels(width, height, policy.max_pixels)
    frame = plan_frame(width, height, header.orientation, policy)
    notes: Notes | None = None
    # Of missing restart intervals libjpeg-turbo complains, where it looks at the scans and codes are Huffman's.
    are_restarts_counted = header.restart_interval > 0 and (is_header_only or not is_common)
    is_plain = jpeg_scans.is_one_whole_scan(data, header) and not header.is_mpo and not header.exif_damaged
    if are_restarts_counted or not is_plain:
        notes = Notes()
        data = _settled(data, header, notes)
    is_kept = (
        policy.image_format in ("keep", "jpeg")
        and (components == 3 or components == 1)
        and components in CHANNELS[policy.color]
        and is_common
        and is_unchanged(frame)
    )
    if not is_kept:
        return _changed(data, header, frame, policy, notes or Notes())
    check_storable("jpeg", width, height, components)
    small: SmallPicture | None = None
    if is_header_only:
        complaint = jpeg.header_complaint(data)
    else:
        complaint, small = look_at_jpeg(data, height, width)
    if complaint is not None:
        notes = notes or Notes()
        if complaint or not is_header_only:
            refuse_cut(data, header, complaint)
        _judge(complaint, policy, notes)
    told = (tuple(notes.changes), tuple(notes.warnings)) if notes is not None else ()
    return seen_image(StoredImage(data, "jpeg", height, width, components, "uint8", frame, "jpeg", *told), small)


def _changed(data: bytes, header: jpeg.JpegHeader, frame: PixelFrame, policy: ImagePolicy, notes: Notes) -> StoredImage:
    is_large = min(header.width, header.height) >= _REDUCIBLE
    least = _least_size(frame) if is_large and is_resized(frame) else None
    picture, complaint = decode_jpeg(data, header, notes, least)
    _judge(complaint, policy, notes)
    if not header.is_common:
        notes.change("transcoded")  # a kind that many decoders do not read
    return render(picture, frame, policy, notes, Origin("jpeg", is_lossy=True, is_subsampled=header.is_subsampled))


def _judge(complaint: str | None, policy: ImagePolicy, notes: Notes) -> None:
    """What becomes of an image that decodes, but not without a remark of the decoder."""
    if not complaint:
        return
    if policy.validate == "strict":
        raise ImageError("corrupt_image", f"a damaged JPEG: {complaint}; --validate full would keep it")
    notes.warn("decoder_warning", f"the JPEG decoder complained: {complaint}")


def _settled(data: bytes, header: jpeg.JpegHeader, notes: Notes) -> bytes:
    """The bytes of the first picture, ended as it must be; what was odd is noted."""
    if header.exif_damaged:
        notes.warn(
            "exif_damaged", f"the EXIF data cannot be read ({header.exif_damaged}); the image is taken as upright"
        )
    found = jpeg_scans.read_scans(data, header)
    scans = jpeg_scans.too_many_scans(found, header)
    if scans:
        raise ImageError("corrupt_image", f"a progressive JPEG of {scans} scans, made to keep decoders busy")
    missing = jpeg_scans.missing_scans(found, header) or jpeg_scans.missing_restarts(data, found, header)
    if missing:
        raise ImageError("truncated_image", f"a JPEG that was cut: {missing}; fetch or export the file again")
    end = found.end
    if end is None:
        repaired = data + jpeg.END
        if jpeg.complaint(repaired) is not None:
            told = "a JPEG that ends before its last pixel; fetch or export the file again"
            raise ImageError("truncated_image", told)
        notes.change("repaired")
        return repaired
    if header.is_mpo and data.find(b"\xff\xd8\xff", end) >= 0:
        notes.change("first_frame")
        return jpeg.without_picture_index(data[:end], header.scan)
    if end < len(data):
        notes.warn("trailing_data", what_follows(data, end))
    return data


def _least_size(frame: PixelFrame) -> tuple[int, int]:
    """(width, height) of the raster from which Lanczos gives the same as from all of it, to 44 dB or better: twice the
    size that is needed."""
    width, height = frame.upright_size
    least = math.ceil(width * frame.scale_x * 2), math.ceil(height * frame.scale_y * 2)
    return least if frame.orientation < 5 else (least[1], least[0])
