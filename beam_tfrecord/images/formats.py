"""Which kinds of files are decoded, by which Pillow plugin, and what to do with those that are not."""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from types import MappingProxyType
from typing import BinaryIO

from PIL import ImageFile

# Kind as sniff() names it -> module and class of the Pillow plugin. JPEG and PNG have ways of their own. The classes
# are used directly: Image.open() hides what they find wrong, and loads all other plugins when they refuse.
_PLUGINS = MappingProxyType(
    {
        "gif": ("PIL.GifImagePlugin", "GifImageFile"),
        "webp": ("PIL.WebPImagePlugin", "WebPImageFile"),
        "tiff": ("PIL.TiffImagePlugin", "TiffImageFile"),
        "bmp": ("PIL.BmpImagePlugin", "BmpImageFile"),
        "netpbm": ("PIL.PpmImagePlugin", "PpmImageFile"),
        "avif": ("PIL.AvifImagePlugin", "AvifImageFile"),
        "heic": ("pillow_heif", "HeifImageFile"),
        "jpeg2000": ("PIL.Jpeg2KImagePlugin", "Jpeg2KImageFile"),
        "ico": ("PIL.IcoImagePlugin", "IcoImageFile"),
        "psd": ("PIL.PsdImagePlugin", "PsdImageFile"),
        "qoi": ("PIL.QoiImagePlugin", "QoiImageFile"),
        "sgi": ("PIL.SgiImagePlugin", "SgiImageFile"),
        "dds": ("PIL.DdsImagePlugin", "DdsImageFile"),
        "pcx": ("PIL.PcxImagePlugin", "PcxImageFile"),
        "tga": ("PIL.TgaImagePlugin", "TgaImageFile"),
    }
)

_CURES = MappingProxyType(
    {
        "heic": "install pillow-heif (pip install pillow-heif), or convert it to JPEG or PNG",
        "avif": "install a Pillow with AVIF (11.3 or newer), or convert it to JPEG or PNG",
        "raw": "develop it to JPEG, PNG or TIFF",
        "svg": "draw it to PNG at the size you need",
        "eps": "draw it to PNG at the size you need",
        "wmf": "draw it to PNG at the size you need",
        "emf": "draw it to PNG at the size you need",
        "dicom": "export the pixels to 16-bit PNG or TIFF with a window of your choice",
        "openexr": "convert it to 16-bit PNG or TIFF with a scale of your choice",
        "hdr": "convert it to 16-bit PNG or TIFF with a scale of your choice",
        "fits": "convert it to 16-bit PNG or TIFF with a scale of your choice",
    }
)
_USUAL_CURE = "convert it to JPEG or PNG"


@functools.cache
def opener(kind: str) -> Callable[[BinaryIO], ImageFile.ImageFile] | None:
    """What opens a file of ``kind``: reads its header, decodes nothing. None when no decoder is installed."""
    module, name = _PLUGINS.get(kind, ("", ""))
    if not module:
        return None
    try:
        plugin = importlib.import_module(module)
    except ImportError:
        return None
    if not getattr(plugin, "SUPPORTED", True):  # WebP and AVIF, in a Pillow that was built without them
        return None
    found: Callable[[BinaryIO], ImageFile.ImageFile] = getattr(plugin, name)
    return found


def cure(kind: str) -> str:
    """What a person does about a file of a kind that is not decoded here."""
    return _CURES.get(kind, _USUAL_CURE)
