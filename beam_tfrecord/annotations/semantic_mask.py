"""A class for each pixel of the image."""

from __future__ import annotations

from beam_tfrecord.annotations.mask_file import MaskFileKind


class SemanticMaskKind(MaskFileKind):
    """Canonical field ``mask``. Values are those of the file (in VOC: 0 background, 255 void), no ids of labels."""

    name = "semantic_mask"
    field = "mask"
    description = "class of each pixel, as in the mask file"
