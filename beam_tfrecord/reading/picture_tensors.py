"""Pictures in records to pixels of the wanted size. Runs inside of a tf.data graph.

Another size has the values of ``tf.image.resize``, bilinear with antialiasing, in less time. TensorFlow's kernel first
weighs whole rows, which is quick, then the pixels of each row, a few channels at a time, which takes longer than
decoding a JPEG does. Here it weighs whole rows twice: in between the picture is turned, so that columns are rows. The
same numbers are added in the same order.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from beam_tfrecord.reading.element_plan import MIXED, PixelType, Target
from beam_tfrecord.reading.tensorflow_import import import_tensorflow


def resized(image: Any, size: tuple[Any, Any], finish: Callable[[Any], Any]) -> Any:
    """A picture ``[height, width, channels]`` of integers in the size (height, width): numbers, or int32 scalars.

    finish: what is made of each value of the result, a float32, or an integer when the picture has the size already. It
    comes before the picture is turned back, which takes less time with a smaller dtype.
    """
    tf = import_tensorflow()
    height, width = size
    if all(isinstance(side, int) for side in size) and image.shape[:2].as_list() == [height, width]:
        return finish(image)
    own_height, own_width, channels = (
        found if known is None else known for known, found in zip(image.shape, tf.unstack(tf.shape(image)), strict=True)
    )
    rows = _with_rows(tf, tf.reshape(image, [own_height, own_width * channels]), height)
    columns = tf.reshape(tf.transpose(rows), [own_width, channels * height])
    values = finish(tf.reshape(_with_rows(tf, columns, width), [width * channels, height]))
    return tf.reshape(tf.transpose(values), [height, width, channels])


def rounded(values: Any, dtype: Any) -> Any:
    """Resized values as uint8 or uint16, halves to the even neighbour.

    No weight is negative, but those of very many pixels can add up to a little more than one.
    """
    tf = import_tensorflow()
    dtype = tf.as_dtype(dtype)
    if dtype != tf.uint8:
        return tf.cast(tf.minimum(tf.round(values), dtype.max), dtype)
    # The same for 8 bits in one step, as the range is that of the type.
    quantized = tf.raw_ops.QuantizeV2(
        input=values, min_range=0.0, max_range=255.0, T=tf.quint8, mode="SCALED", round_mode="HALF_TO_EVEN"
    )
    return tf.bitcast(quantized.output, tf.uint8)


def _with_rows(tf: Any, values: Any, count: Any) -> Any:
    """Float32 ``[count, n]``, each row weighed from those of ``[own, n]`` that lie around its place."""
    own = tf.cast(tf.shape(values)[0], tf.float32)
    weighed = tf.raw_ops.ScaleAndTranslate(
        images=values[tf.newaxis, :, tf.newaxis, :],
        size=tf.stack([count, 1]),
        scale=tf.stack([tf.cast(count, tf.float32) / own, 1.0]),
        translation=tf.zeros([2]),
        kernel_type="triangle",
        antialias=True,
    )
    return tf.squeeze(weighed, [0, 2])


Decode = Callable[..., Any]


def picture_decoder(pixels: PixelType, target: Target) -> Decode:
    """Decodes an encoded picture (a scalar string) to ``[height, width, channels]``.

    dtype: float32 when it is scaled; int32 for a mask of mixed depth, whose values stay as they are; else that of the
    pixels.
    """
    tf = import_tensorflow()

    def decode(data: Any) -> Any:
        if pixels.is_mask:
            image = _exact_values(tf, data, pixels)
        else:
            # TensorFlow decodes grey with alpha, but cannot be asked for it.
            asked = pixels.channels if pixels.channels != 2 else 0
            image = tf.io.decode_image(data, asked, tf.dtypes.as_dtype(pixels.dtype), expand_animations=False)
        image = tf.ensure_shape(image, [*target.stored, pixels.channels])
        return fit(image, target, is_mask=pixels.is_mask)

    return decode


def raw_decoder(pixels: PixelType, target: Target) -> Decode:
    """Decodes raw pixels: row-major HWC, little-endian, with their height, width, channels and dtype beside them.

    Of pixels that have 16 bits here and 8 there the upper 8 bits are given. Channels are as they are stored.
    """
    tf = import_tensorflow()

    def decode(data: Any, height: Any, width: Any, channels: Any, dtype: Any) -> Any:
        shape = tf.stack([height, width, channels])

        def wide() -> Any:
            return tf.reshape(tf.io.decode_raw(data, tf.uint16), shape)

        def narrow() -> Any:
            return tf.reshape(tf.io.decode_raw(data, tf.uint8), shape)

        if pixels.dtype == MIXED:
            image = tf.cond(
                dtype == "uint16",
                lambda: tf.cast(tf.bitwise.right_shift(wide(), tf.constant(8, tf.uint16)), tf.uint8),
                narrow,
            )
        else:
            image = wide() if pixels.dtype == "uint16" else narrow()
        return fit(tf.ensure_shape(image, [*target.stored, pixels.channels]), target, is_mask=False)

    return decode


def _exact_values(tf: Any, data: Any, pixels: PixelType) -> Any:
    """The values of a PNG mask.

    Where it is not known whether they have 8 or 16 bits all are decoded to 16, for which TensorFlow multiplies those of
    8 bits by 257; the depth stands in the 25th byte of a PNG (its IHDR chunk), and tells which ones to divide.
    """
    if pixels.dtype != MIXED:
        return tf.io.decode_png(data, channels=0, dtype=tf.dtypes.as_dtype(pixels.dtype))
    image = tf.cast(tf.io.decode_png(data, channels=0, dtype=tf.uint16), tf.int32)
    return tf.where(tf.strings.substr(data, 24, 1) == b"\x10", image, image // 257)


def fit(image: Any, target: Target, *, is_mask: bool) -> Any:
    """A picture ``[height, width, channels]`` in the wanted size and range."""
    tf = import_tensorflow()
    dtype = image.dtype

    def finish(values: Any) -> Any:
        if target.scale:
            return tf.cast(values, tf.float32) / dtype.max
        return values if values.dtype == dtype else rounded(values, dtype)

    if target.size is None:
        return image if is_mask else finish(image)
    height, width = target.size
    if target.mode == "crop":
        image = _cropped(tf, image, target.size)
    is_padded = target.mode == "pad"
    inner_height, inner_width, top, left = padded_place(image, target.size) if is_padded else (height, width, 0, 0)
    if is_mask:
        image = tf.image.resize(image, [inner_height, inner_width], method="nearest")
    else:
        image = resized(image, (inner_height, inner_width), finish)
    if is_padded:
        image = tf.image.pad_to_bounding_box(image, top, left, height, width)
    image.set_shape([height, width, image.shape[-1]])
    return image


def padded_place(image: Any, size: tuple[int, ...]) -> tuple[Any, Any, Any, Any]:
    """(height, width, top, left) of a picture within the size, padded to it: int32 scalars."""
    tf = import_tensorflow()
    own = tf.shape(image)[:2]
    ratio = tf.reduce_min(tf.constant(size, tf.float64) / tf.cast(own, tf.float64))
    inner = tf.clip_by_value(tf.cast(tf.round(tf.cast(own, tf.float64) * ratio), tf.int32), 1, size)
    margin = (tf.constant(size) - inner) // 2
    return inner[0], inner[1], margin[0], margin[1]


def _cropped(tf: Any, image: Any, size: tuple[int, ...]) -> Any:
    """The largest part in the middle that has the ratio of the size."""
    own = tf.shape(image)[:2]
    ratio = tf.reduce_min(tf.cast(own, tf.float64) / tf.constant(size, tf.float64))
    inner = tf.clip_by_value(tf.cast(tf.round(tf.constant(size, tf.float64) * ratio), tf.int32), 1, own)
    top, left = (own - inner)[0] // 2, (own - inner)[1] // 2
    return tf.image.crop_to_bounding_box(image, top, left, inner[0], inner[1])


def over_all(decode: Decode, columns: tuple[Any, ...], target: Target, pixels: PixelType) -> Any:
    """Decodes a list of pictures: ``[n]`` strings (or their parts) to ``[n, height, width, channels]``.

    All pictures of one list must be of one size unless the target has one. Of an empty list comes
    ``[0, 0, 0, channels]``, or with the target's size.
    """
    tf = import_tensorflow()
    first = columns[0]
    if isinstance(first, tf.RaggedTensor):
        return first.with_flat_values(over_all(decode, (first.flat_values,), target, pixels))
    dtype = decoded_dtype(tf, pixels, target)
    height, width = target.known_size

    def mapped() -> Any:
        signature = tf.TensorSpec([height, width, pixels.channels], dtype)
        return tf.map_fn(lambda parts: decode(*parts), columns, fn_output_signature=signature)

    def empty() -> Any:
        return tf.zeros([0, height or 0, width or 0, pixels.channels], dtype)

    images = tf.cond(tf.size(first) > 0, mapped, empty)
    return tf.ensure_shape(images, [None, height, width, pixels.channels])


def decoded_dtype(tf: Any, pixels: PixelType, target: Target) -> Any:
    """The dtype that :func:`picture_decoder` and :func:`raw_decoder` give."""
    if pixels.is_mask:
        return tf.int32 if pixels.dtype == MIXED else tf.dtypes.as_dtype(pixels.dtype)
    return tf.float32 if target.scale else tf.dtypes.as_dtype(pixels.dtype or "uint8")
