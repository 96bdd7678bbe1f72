"""The way in: the bytes of an image file to what is stored.

The rule: a JPEG or PNG that TensorFlow decodes as it stands is kept byte for byte unless an option asks for a change.
Everything else is decoded, changed by named steps in a fixed order and encoded anew. ``docs/images.md`` has the table.
"""

from __future__ import annotations

from beam_tfrecord.images import png
from beam_tfrecord.images.frames import open_frames
from beam_tfrecord.images.from_jpeg import convert_jpeg
from beam_tfrecord.images.from_other import convert_frame, convert_other
from beam_tfrecord.images.from_png import convert_png
from beam_tfrecord.images.notes import Notes
from beam_tfrecord.images.stored import StoredImage
from beam_tfrecord.options.config import ImagePolicy


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
