"""The one place where TensorFlow is imported: when it is first used, never before; and its decoder of images."""

from __future__ import annotations

import contextlib
import functools
import importlib.util
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any

from beam_tfrecord.errors import ConfigError, ImageError
from beam_tfrecord.images import headers, jpeg


class TensorFlowMissingError(ConfigError, ImportError):
    """What was asked for needs TensorFlow, and it is not installed."""


def has_tensorflow() -> bool:
    """Whether TensorFlow is installed. It is not imported."""
    return importlib.util.find_spec("tensorflow") is not None


def tensorflow_version() -> str:
    """The version of TensorFlow, which is imported for it."""
    version: str = import_tensorflow().__version__
    return version


_IMPORT_LOCK = threading.Lock()
_SURROUNDINGS: list[Callable[[], AbstractContextManager[None]]] = [contextlib.nullcontext]  # the last one holds


@contextlib.contextmanager
def surrounded_import(surroundings: Callable[[], AbstractContextManager[None]]) -> Iterator[None]:
    """Within it, what TensorFlow is imported in, should this process come to it: for a program with a word to say then.

    The surroundings are entered once at most, in the thread that needs TensorFlow first, while others that need it
    wait. They are over when this is.
    """
    _SURROUNDINGS.append(surroundings)
    try:
        yield
    finally:
        with _IMPORT_LOCK:
            _SURROUNDINGS.pop()


@functools.cache
def import_tensorflow() -> Any:
    """The module. Raises TensorFlowMissingError, which is a ConfigError and an ImportError."""
    with _IMPORT_LOCK:
        is_there = "tensorflow" in sys.modules
        try:
            with contextlib.nullcontext() if is_there else _SURROUNDINGS[-1]():
                import tensorflow
        except ModuleNotFoundError as error:
            if error.name != "tensorflow":
                raise
            raise TensorFlowMissingError(
                "TensorFlow is not installed: pip install 'beam-tfrecord[tensorflow]' (beam_tfrecord.read needs none)"
            ) from None
        return tensorflow


# ---------------------------------------------------------------------------------------------------------------------
# TensorFlow's own decoder, asked about one image at a time.


def decode_with_tensorflow(data: bytes) -> tuple[int, int, int]:
    """(height, width, channels) of an encoded image as ``tf.io.decode_image`` gives it; safe to call from many threads.

    Of an animation that is one frame. Raises ImageError ``corrupt_image`` with TensorFlow's words when it does not
    decode, and ``animated_image`` for an animated WebP, of which it is not asked: its decoder writes beyond the end of
    its buffer then (seen up to 2.21), and the process dies sooner or later.

    A JPEG with one or three components is first decoded to grey at an eighth of its size: the same decoder reads every
    coded bit, and leaves out only what costs time and cannot fail. (Components of uneven resolutions are where it could
    fail; they are left to the full decoder.) Whatever that refuses is decoded in full, and what comes of it counts.
    """
    if headers.is_animated_webp(data):
        raise ImageError("animated_image", "an animated WebP, which makes TensorFlow crash; store its frames as PNG")
    tensorflow = import_tensorflow()
    with tensorflow.device("/CPU:0"):
        if data.startswith(b"\xff\xd8\xff"):
            size = _size_of_jpeg(tensorflow, data)
            if size is not None:
                return size
        try:
            pixels = tensorflow.raw_ops.DecodeImage(contents=data, expand_animations=True)
        except tensorflow.errors.OpError as error:
            raise ImageError("corrupt_image", f"TensorFlow does not decode it: {_reason(error)}") from None
    height, width, channels = pixels.shape[-3:]
    return height, width, channels


def _size_of_jpeg(tensorflow: Any, data: bytes) -> tuple[int, int, int] | None:
    """The size of a JPEG that decodes to an eighth of it; None when it does not, or is of a rare kind."""
    try:
        header = jpeg.read_header(data)
        if header.components not in (1, 3) or not header.is_evenly_sampled:
            return None
        pixels = tensorflow.raw_ops.DecodeJpeg(contents=data, channels=1, ratio=8)
    except (jpeg.JpegError, tensorflow.errors.OpError):
        return None
    if tuple(pixels.shape) != (-(-header.height // 8), -(-header.width // 8), 1):
        return None
    return header.height, header.width, header.components


def _reason(error: Any) -> str:
    """The part of an error of TensorFlow that is about the image."""
    message = str(error.message).partition("[Op:")[0].strip()
    return message.removeprefix(
        "{{function_node __wrapped__DecodeImage_device_/job:localhost/replica:0/task:0/device:CPU:0}} "
    )
