"""The way in: the bytes of an image file to what is stored.

The rule: a JPEG or PNG that TensorFlow decodes as it stands is kept byte for byte unless an option asks for a change.
Everything else is decoded, changed by named steps in a fixed order and encoded anew. ``docs/images.md`` has the table.
"""

from __future__ import annotations

import struct

from beam_tfrecord.errors import ImageError
from beam_tfrecord.images import headers, png
from beam_tfrecord.images.decode import decode_png
from beam_tfrecord.images.from_jpeg import convert_jpeg
from beam_tfrecord.images.from_png import convert_png
from beam_tfrecord.images.headers import end_of
from beam_tfrecord.images.opened import OpenedFile, open_file, open_frames
from beam_tfrecord.images.pixels import Picture
from beam_tfrecord.images.render import Origin, render
from beam_tfrecord.images.resize import plan_frame
from beam_tfrecord.images.safety import check_pixels
from beam_tfrecord.images.sniff import NOT_IMAGES, describe, sniff, what_follows
from beam_tfrecord.images.stored import Notes, StoredImage
from beam_tfrecord.options.config import ImagePolicy


def convert_other(data: bytes, policy: ImagePolicy) -> StoredImage:
    """What is stored for the first frame of a file that is neither JPEG nor PNG. Raises ImageError."""
    kind = image_kind(data)
    if kind in ("ico", "cur"):
        return _convert_icon(data, kind, policy)
    if kind == "netpbm" and (size := headers.deep_ppm_size(data)):
        check_pixels(*size, policy.max_pixels)
        picture = Picture(headers.deep_ppm_pixels(data))
        return render(picture, plan_frame(*size, 1, policy), policy, Notes(), Origin(kind))
    end = end_of(data, kind)
    notes = Notes()
    if end is not None and data[end:].strip(b"\0"):
        notes.warn("trailing_data", what_follows(data, end))
    try:
        return _convert_first(open_file(data, kind, policy.max_pixels), kind, policy, notes)
    except ImageError as error:
        if error.code == "corrupt_image" and end is not None and end > len(data):
            told = f"{describe(kind)} that ends {end - len(data):,} bytes too early; fetch or export the file again"
            raise ImageError("truncated_image", told) from error
        raise


def _convert_first(file: OpenedFile, kind: str, policy: ImagePolicy, notes: Notes) -> StoredImage:
    if file.frames > 1:
        if policy.animated == "reject":
            raise ImageError("animated_image", f"{describe(kind)} of several frames, and --animated is reject")
        notes.change("first_frame")
    return convert_frame(file, 0, policy, notes)


def convert_frame(file: OpenedFile, number: int, policy: ImagePolicy, notes: Notes) -> StoredImage:
    """What is stored for one frame of an opened file. Raises ImageError."""
    width, height = file.size(number)
    check_pixels(width, height, policy.max_pixels)
    # What cannot be read of an orientation that is ignored is nobody's concern.
    orientation = file.orientation(notes if policy.orientation == "upright" else Notes())
    frame = plan_frame(width, height, orientation, policy)
    picture = file.picture(number, notes)
    if picture.pixels.shape[:2] != (height, width):
        raise ImageError("corrupt_image", f"its header says {width}x{height}, and it decodes to another size")
    return render(picture, frame, policy, notes, file.origin)


def image_kind(data: bytes) -> str:
    """What kind of image the bytes are. Raises ImageError ``empty_file`` or ``not_an_image``."""
    if not data:
        raise ImageError("empty_file", "the file has no bytes; fetch or export it again")
    kind = sniff(data)
    if kind in NOT_IMAGES:
        raise ImageError("not_an_image", f"the bytes are {describe(kind)}")
    return kind


def _convert_icon(data: bytes, kind: str, policy: ImagePolicy) -> StoredImage:
    largest = headers.largest_of_icon(data)
    notes = Notes()
    if largest.startswith(png.SIGNATURE):
        file = png.read_whole(largest, policy.max_pixels, "an icon with a damaged picture")
        picture = decode_png(file, notes)
        return render(picture, plan_frame(file.width, file.height, 1, policy), policy, notes, Origin(kind))
    try:
        check_pixels(*headers.icon_size(largest), policy.max_pixels)
    except struct.error:
        raise ImageError("truncated_image", "an icon that ends inside of its picture") from None
    opened = open_file(largest, "ico", policy.max_pixels)
    picture = opened.picture(0, notes)
    height, width, _ = picture.pixels.shape
    return render(picture, plan_frame(width, height, 1, policy), policy, notes, Origin(kind))


def convert_image(data: bytes, policy: ImagePolicy) -> StoredImage:
    """What is stored for the bytes of an image file; of a file with several frames, the first one.

    Pure: equal arguments give equal results, from any thread. Memory is bounded by the pixels of the image
    (docs/images.md), and an image of more than ``policy.max_pixels`` is refused before any is taken. Raises ImageError
    with a code of errors.REJECT_CODES.
    """
    if data.startswith(b"\xff\xd8\xff"):
        return convert_jpeg(data, policy)
    if data.startswith(png.SIGNATURE):
        return convert_png(data, policy)
    return convert_other(data, policy)


def convert_frames(data: bytes, policy: ImagePolicy) -> tuple[StoredImage, ...]:
    """What is stored for each frame of a file, in their order; one image for a file without frames.

    Frames are those of animated GIF, WebP, PNG and AVIF, each as it is seen (laid over the ones before where the format
    says so), and the pages of a TIFF. The further pictures of an MPO (previews, depth, the other eye) are none. All
    frames together may have ``policy.max_pixels``. Raises ImageError, also when a later frame is damaged.
    """
    opened = open_frames(data, policy.max_pixels)
    if opened is None:
        return (convert_image(data, policy),)
    file, numbers = opened
    return tuple(convert_frame(file, number, policy, Notes()) for number in numbers)
