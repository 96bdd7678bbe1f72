"""A PNG file to what is stored.

Kept byte for byte when TensorFlow decodes it as it stands and no option asks for a change. Its checksums, the order of
its chunks and every byte of its pixel data are compared first, without making pixels.
"""

from __future__ import annotations

from beam_tfrecord.core.geometry import PixelFrame
from beam_tfrecord.errors import ImageError
from beam_tfrecord.images import png
from beam_tfrecord.images.decode import decode_png, with_colour_key
from beam_tfrecord.images.orientation import ExifDamagedError, exif_orientation, xmp_orientation
from beam_tfrecord.images.png import check_pixel_data, has_wide_window
from beam_tfrecord.images.render import CHANNELS, Origin, render
from beam_tfrecord.images.resize import is_unchanged, plan_frame
from beam_tfrecord.images.safety import check_pixels, check_storable
from beam_tfrecord.images.sniff import what_follows
from beam_tfrecord.images.stored import Notes, StoredImage
from beam_tfrecord.options.config import ImagePolicy


def convert_png(data: bytes, policy: ImagePolicy) -> StoredImage:
    """What is stored for a PNG. Raises ImageError."""
    notes = Notes()
    try:
        check_pixels(*png.read_size(data), policy.max_pixels)
        file = png.read_chunks(data)
        # What cannot be read of an orientation that is ignored is nobody's concern.
        orientation = _orientation(file, notes if policy.orientation == "upright" else Notes())
        frame = plan_frame(file.width, file.height, orientation, policy)
        is_kept = _is_kept(file, frame, policy)
        if policy.validate != "header" or not is_kept:
            file.oddities.extend(check_pixel_data(file))
    except png.PngError as error:
        raise error.told("a damaged PNG") from None
    if file.is_animated and policy.animated == "reject":
        raise ImageError("animated_image", "an animated PNG, and --animated is reject")
    _judge(file, policy, notes)
    if is_kept:
        return _kept(data, file, frame, notes)
    if file.is_animated:
        notes.change("first_frame")
    picture = decode_png(file, notes)
    if policy.color != "keep" or policy.image_format == "jpeg":
        picture = picture._replace(pixels=with_colour_key(picture.pixels, file))
    return render(picture, frame, policy, notes, Origin("png"))


def _is_kept(file: png.PngFile, frame: PixelFrame, policy: ImagePolicy) -> bool:
    if policy.image_format not in ("keep", "png") or not is_unchanged(frame):
        return False
    return policy.color == "keep" or (file.channels in CHANNELS[policy.color] and file.transparency is None)


def _kept(data: bytes, file: png.PngFile, frame: PixelFrame, notes: Notes) -> StoredImage:
    check_storable("png", file.width, file.height, file.channels)
    if not has_wide_window(file):  # Pillow and browsers decode it all the same, libpng and TensorFlow may not
        notes.change("repaired")
        data = png.with_wide_window(data)
    if file.end is None:
        notes.change("repaired")
        data = png.with_end(data)
    elif file.end < len(data):
        notes.warn("trailing_data", what_follows(data, file.end))
    return StoredImage(
        data,
        "png",
        file.height,
        file.width,
        file.channels,
        file.dtype,
        frame,
        "png",
        tuple(notes.changes),
        tuple(notes.warnings),
    )


def _judge(file: png.PngFile, policy: ImagePolicy, notes: Notes) -> None:
    """What becomes of an image whose pixels are whole, but whose file is not quite right."""
    if not file.oddities:
        return
    oddities = "; ".join(list(dict.fromkeys(file.oddities))[:5])
    if policy.validate == "strict":
        raise ImageError("corrupt_image", f"a damaged PNG: {oddities}; --validate full would keep it")
    notes.warn("decoder_warning", f"the PNG is not quite right: {oddities}")


def _orientation(file: png.PngFile, notes: Notes) -> int:
    orientation = None
    if file.exif:
        try:
            orientation = exif_orientation(file.exif)
        except ExifDamagedError as error:
            notes.warn("exif_damaged", f"the EXIF data cannot be read ({error}); the image is taken as upright")
    if orientation is None and file.xmp:
        orientation = xmp_orientation(file.xmp)
    return orientation or 1
