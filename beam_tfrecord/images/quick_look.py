"""The size of a picture that decodes beyond doubt, without its pixels being made.

Every coded bit is looked at: those of a JPEG by libjpeg-turbo, those of a PNG by zlib and by the rules of
:mod:`.png`. What has a size here is kept by a conversion as it stands and without a remark, and TensorFlow
decodes it to the same height, width and channels. All else is in doubt, for others to decide: damaged files, those that
are not quite right, rare kinds that decoders differ on, other formats.
"""

from __future__ import annotations

from beam_tfrecord.errors import ImageError
from beam_tfrecord.images import jpeg, jpeg_scans, png
from beam_tfrecord.images.png import check_pixel_data, has_wide_window
from beam_tfrecord.images.safety import check_pixels, check_storable

Size = tuple[int, int, int]


def size_beyond_doubt(data: bytes, max_pixels: int) -> Size | None:
    """(height, width, channels) of an encoded image of at most ``max_pixels``; None when it is in doubt.

    May be called from many threads; nearly all of it runs without the GIL.
    """
    try:
        if data.startswith(b"\xff\xd8\xff"):
            return _size_of_jpeg(data, max_pixels)
        if data.startswith(png.SIGNATURE):
            return _size_of_png(data, max_pixels)
    except (jpeg.JpegError, png.PngError, ImageError):
        pass
    return None


def _size_of_jpeg(data: bytes, max_pixels: int) -> Size | None:
    header = jpeg.read_header(data)
    height, width, components = header.height, header.width, header.components
    check_pixels(width, height, max_pixels)
    check_storable("jpeg", width, height, components)
    is_plain = (
        header.is_common
        and header.is_evenly_sampled
        and (components == 3 or components == 1)
        and not header.is_mpo
        and not header.exif_damaged
        and (jpeg_scans.is_one_whole_scan(data, header) or _has_all_scans(data, header))
    )
    return (height, width, components) if is_plain and jpeg.complaint(data) is None else None


def _has_all_scans(data: bytes, header: jpeg.JpegHeader) -> bool:
    found = jpeg_scans.read_scans(data, header)
    return (
        found.end == len(data)
        and not jpeg_scans.too_many_scans(found, header)
        and not jpeg_scans.missing_scans(found, header)
    )


def _size_of_png(data: bytes, max_pixels: int) -> Size | None:
    check_pixels(*png.read_size(data), max_pixels)
    file = png.read_chunks(data)
    check_storable("png", file.width, file.height, file.channels)
    is_plain = file.end == len(data) and not file.oddities and has_wide_window(file)
    return (file.height, file.width, file.channels) if is_plain and not check_pixel_data(file) else None
