"""The number of an object for each pixel of the image, as VOC's SegmentationObject has it.

The map is stored whole. It is not taken apart into one mask per object, because its numbers need not be those of the
boxes: datasets of this layout that tools write number the objects in their own order, or have objects without a box.
"""

from __future__ import annotations

from beam_tfrecord.annotations.mask_file import MaskFileKind


class InstanceMapKind(MaskFileKind):
    """Canonical field ``instance_mask``. Values are those of the file (in VOC: 0 background, 255 void)."""

    name = "instance_map"
    field = "instance_mask"
    description = "number of the object at each pixel, as in the map's file"
