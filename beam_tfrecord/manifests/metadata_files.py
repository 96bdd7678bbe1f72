"""The ``metadata`` file of a folder of images for Hugging Face's ImageFolder.

Source: datasets 5.2, ``packaged_modules/folder_based_builder``: a file called ``metadata.csv``, ``.jsonl`` or
``.parquet``, whose columns ``file_name`` or ``*_file_name`` name images. Its text columns are what people have captions
in.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from beam_tfrecord.manifests.text.roles import Roles, normal
from beam_tfrecord.manifests.text.uri_text import name_of
from beam_tfrecord.options.config import ManifestConfig

MASK_NAMES = ("mask", "label", "labels", "annotation", "segmentation", "segmentation_mask", "seg", "semantic_mask")
_CAPTION_NAMES = ("captions", "caption", "text")
_FILE_NAME = "_file_name"


def with_metadata_columns(roles: Roles, header: Sequence[str], config: ManifestConfig, uri: str) -> Roles:
    """The roles with the columns that only a file called ``metadata`` has for them; the same ones for any other."""
    if not name_of(uri).lower().startswith("metadata."):
        return roles
    named = {normal(name): name for name in header if normal(name).endswith(_FILE_NAME) and name != roles.image}
    masks = [name for key, name in named.items() if key.removesuffix(_FILE_NAME) in MASK_NAMES]
    images = [name for name in named.values() if name not in masks]
    if roles.image is None and config.image_column is None and len(images) == 1:
        roles = replace(roles, image=images[0])
    if roles.mask is None and len(masks) == 1:
        roles = replace(roles, mask=masks[0])
    return with_captions(roles, header)


def with_captions(roles: Roles, header: Iterable[str]) -> Roles:
    """The roles with the column whose name says that it holds texts about the image."""
    taken = {*roles.needed(), *(roles.boxes.names if roles.boxes is not None else ())}
    names = {normal(name): name for name in header if name not in taken}
    found = next((names[name] for name in _CAPTION_NAMES if name in names), None)
    return replace(roles, captions=found) if found is not None else roles
