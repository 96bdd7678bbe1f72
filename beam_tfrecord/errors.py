"""Every error the project raises on purpose, and every code it reports.

The tree::

    BeamTfrecordError
    ├── ConfigError        a wrong option, or options that do not go together; raised before any work; exit 2
    ├── ManifestError      a source that cannot be read at all; the job ends; exit 1
    ├── StorageError       a place that cannot be read or written (permissions, credentials, disk); exit 1
    ├── DatasetError       a finished dataset that is damaged or contradicts its own metadata; exit 1
    ├── JobError           an engine that cannot be reached or gave the job up; exit 1
    └── ElementError       concerns one item only; becomes a line of rejects.jsonl, never ends the job
        ├── RowError            the row itself: a missing cell, a label out of the vocabulary
        ├── ImageError          the image: missing, cut, corrupt, too large, of an unknown kind
        └── AnnotationError     a box, mask or keypoint that cannot be right

Only an :class:`ElementError` becomes a reject. Any other exception inside a pipeline is a bug and fails the job with
its traceback. Messages say what, where and how to mend it.

``REJECT_CODES``, ``WARNING_CODES`` and ``CHANGE_REASONS`` are the complete lists of what ``conversion.json`` may count;
the troubleshooting page of the documentation is generated from them.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from types import MappingProxyType
from typing import NamedTuple

from beam_tfrecord.core.public_text import public_text


class BeamTfrecordError(Exception):
    """Base of every error that is raised on purpose. Its message tells no password and no signature of an address."""

    def __init__(self, *told: object) -> None:
        super().__init__(*(public_text(value) if isinstance(value, str) else value for value in told))


class ConfigError(BeamTfrecordError):
    """A wrong option, or options that do not go together. Raised before the graph is built."""


class ManifestError(BeamTfrecordError):
    """A source that cannot be read at all."""


class AmbiguousManifestError(ManifestError):
    """A source that can be read in more than one way. The message names the options that say which."""


class StorageError(BeamTfrecordError):
    """A place that cannot be read or written, whatever the item: permissions, credentials, a full disk."""


class DatasetError(BeamTfrecordError):
    """A dataset on disk that is damaged, incomplete or not one of ours."""


class JobError(BeamTfrecordError):
    """An engine cannot be reached, or gave the job up. ``--resume`` continues it, there or on another engine."""


class Explanation(NamedTuple):
    """What a code means and how a person mends it."""

    meaning: str
    cure: str


class ElementError(BeamTfrecordError):
    """One item cannot be converted. ``code`` is one of :data:`REJECT_CODES`."""

    def __init__(self, code: str, message: str) -> None:
        if code not in REJECT_CODES:
            raise ValueError(f"{code!r} is not listed in errors.REJECT_CODES")
        message = public_text(message)
        super().__init__(code, message)
        self.code = code
        self.message = message

    def __str__(self) -> str:
        return self.message


class RowError(ElementError):
    """The row cannot become an entry."""


class ImageError(ElementError):
    """The image cannot be read, decoded or stored."""


class AnnotationError(ElementError):
    """An annotation of the item cannot be right."""


REJECT_CODES: Mapping[str, Explanation] = MappingProxyType(
    {
        "missing_file": Explanation(
            "The image that the row names does not exist.",
            "Correct the path, or give the folder that relative paths start from with --images.",
        ),
        "empty_file": Explanation("The file has no bytes.", "Fetch or export the file again."),
        "not_an_image": Explanation(
            "The bytes are not of any image format.",
            "Look at the file: often an error page or a text was saved under the name of an image.",
        ),
        "unsupported_format": Explanation(
            "The bytes are an image of a format that cannot be decoded here.",
            "Install the decoder that the message names, or convert the file.",
        ),
        "truncated_image": Explanation(
            "The image ends before its last pixel, or lacks scans of all of them.", "Fetch or export the file again."
        ),
        "corrupt_image": Explanation("The image does not decode.", "Fetch or export the file again."),
        "too_many_pixels": Explanation(
            "The image has more pixels than --max_pixels allows.",
            "Raise --max_pixels if the image is wanted; it is refused by its header, before any memory is taken.",
        ),
        "animated_image": Explanation(
            "The image has several frames and --animated is reject.",
            "Choose --animated first to keep the first frame.",
        ),
        "bad_row": Explanation(
            "The row has no image, the wrong number of cells, or a cell that is not of its declared type.",
            "Correct the line that the origin names.",
        ),
        "missing_label": Explanation("The label cell is empty.", "Fill the cell, or leave the row out."),
        "unknown_label": Explanation(
            "The label is not in the vocabulary given with --labels.",
            "Correct the label (the nearest one is named), or add it to the vocabulary file.",
        ),
        "duplicate_id": Explanation(
            "The id was used by an earlier row and --duplicates is drop.",
            "Give rows distinct ids, or use --duplicates keep.",
        ),
        "bad_box": Explanation(
            "A bounding box is inverted, empty, not a number or far outside of the image.",
            "Correct the box, or choose --bad_boxes visible, clip or drop.",
        ),
        "bad_mask": Explanation(
            "A mask cannot be read or does not fit the image.",
            "Correct the mask file, polygon or run-length code.",
        ),
        "bad_keypoints": Explanation("Keypoints are incomplete or not numbers.", "Correct the keypoints."),
        "bad_annotation": Explanation(
            "The annotation of the image cannot be read.", "Correct the annotation file that the origin names."
        ),
        "unknown_category": Explanation(
            "The annotation uses a category that is not declared.", "Declare the category or correct its id."
        ),
        "unknown_split": Explanation(
            "The split of the row is not one that can be used.",
            "Use a name made of letters, digits, _ and -.",
        ),
        "unsafe_path": Explanation(
            "An archive member is named so that it lies outside of its archive.",
            "Make the archive again with relative names and without links that lead out of it.",
        ),
        "encrypted_archive": Explanation("The archive member is encrypted.", "Unpack it and make it anew without."),
        "damaged_archive": Explanation("The archive member cannot be read.", "Fetch or make the archive again."),
        "damaged_record": Explanation(
            "A record of a TFRecord file has a wrong checksum, ends early, or is no tf.train.Example.",
            "Fetch the file again; verify tells all that is wrong with it.",
        ),
        "read_failed": Explanation(
            "Reading the file failed, also when it was tried again.", "See the message; run again with --resume."
        ),
    }
)

WARNING_CODES: Mapping[str, Explanation] = MappingProxyType(
    {
        "duplicate_id": Explanation("An id is used by more than one row.", "Give --id_column, or --duplicates drop."),
        "conflicting_label": Explanation("Rows with one id have different labels.", "Correct the labels."),
        "duplicate_content": Explanation("Two ids have images with the same bytes.", "Remove one of them."),
        "split_leak": Explanation(
            "The same image bytes lie in different splits.",
            "Remove one, or give both a common value in --group_column.",
        ),
        "exif_damaged": Explanation("The EXIF data cannot be read; the image is taken as upright.", "None needed."),
        "icc_damaged": Explanation("The colour profile cannot be read; it is left out.", "None needed."),
        "profile_ignored": Explanation(
            "A colour profile could not be applied to such pixels; they are stored as they are.",
            "Convert the image to sRGB, or to 8 bits.",
        ),
        "decoder_warning": Explanation("The decoder complained but produced all pixels.", "Look at the image."),
        "trailing_data": Explanation(
            "Bytes follow the end of the image.", "None needed; give a second picture a file of its own."
        ),
        "size_mismatch": Explanation(
            "The annotation states another image size than the image has; the image wins.",
            "Correct the annotation.",
        ),
        "ambiguous_orientation": Explanation(
            "The image is turned by its EXIF tag and nothing tells whether its annotations are turned already.",
            "State the frame with --box_frame.",
        ),
        "box_clipped": Explanation(
            "A box reached over the edge and was cut at it.", "Correct the box, or choose --bad_boxes drop or reject."
        ),
        "box_dropped": Explanation(
            "A box that cannot be right, or lies mostly outside of the image, was left out.",
            "Correct the box; --bad_boxes clip keeps what lies inside.",
        ),
        "mask_dropped": Explanation("A mask that cannot be right was left out.", "Correct the mask."),
        "keypoint_outside": Explanation("A keypoint lies outside of the image.", "Correct the keypoint."),
        "box_format_assumed": Explanation(
            "What the four numbers of the boxes are is told by nothing but the layout of the file.",
            "State it with --box_format.",
        ),
        "annotation_ignored": Explanation("A part of the annotation is not used.", "See the message."),
        "own_output": Explanation(
            "A folder that this tool wrote lies in the input: it is left out, with all that lies in it.",
            "Write to a place outside of the input.",
        ),
        "labels_not_read": Explanation(
            "Files that look like labels of the images lie beside them and were not read.",
            "Name their format with --format, or move them away.",
        ),
        "no_label_files": Explanation(
            "The input is of a format with a label file for each image (Tiny ImageNet: for each class), and none or "
            "fewer than half of the images have one, or a class has none.",
            "Put the label files where the format expects them; the message names one that belongs to no image.",
        ),
        "label_files_unused": Explanation(
            "Label files belong to no image: more than half of them, or some where images have none.",
            "Put them where the format expects them, under the names of their images.",
        ),
        "columns_not_read": Explanation(
            "Columns whose names look like boxes, labels or splits were not read, or none but that of the image was.",
            "Name them with an option such as --label_column, or keep them with --columns.",
        ),
        "doubtful_reading": Explanation(
            "What the input says can be read in another way as well.",
            "The message tells which way was taken, and what to do where it is the wrong one.",
        ),
        "no_group": Explanation(
            "The row has nothing in --group_column, so that nothing keeps it in the split of those it belongs to.",
            "Fill the cell; a value of its own says that the row belongs to no other.",
        ),
        "choice_unmatched": Explanation(
            "An option that chooses rows or labels names something that no row has.",
            "Correct the name; the nearest one is told. --strict refuses it.",
        ),
        "images_not_named": Explanation(
            "Images lie among those that the manifest names, and no row names them.",
            "Add them to the manifest, or move them away.",
        ),
        "near_duplicate": Explanation(
            "Two pictures of one split are the same but for size, encoding, brightness or being mirrored.",
            "Remove one of them, or let --near_duplicates drop keep the first of them.",
        ),
        "near_leak": Explanation(
            "Nearly the same picture lies in different splits, or in different groups.",
            "Keep them in one split with --near_duplicates group, or only one of them with drop; or give both a common "
            "value in --group_column.",
        ),
        "near_duplicate_dropped": Explanation(
            "--near_duplicates drop left the row out: its picture is that of another row, or nearly so.",
            "None needed; other names the picture that is kept.",
        ),
        "near_duplicates_straddle": Explanation(
            "Pictures that --near_duplicates group keeps together lie in several splits that their source names.",
            "Name one split for them, or leave the split out where --splits is to decide.",
        ),
        "label_conflict": Explanation(
            "The same picture, or nearly the same, has different labels.", "Correct the labels, or remove both."
        ),
        "blank_image": Explanation("The picture is of one colour all over.", "Look at it; leave it out."),
        "dark_image": Explanation("Hardly anything can be seen in the picture: it is black.", "Look at it."),
        "overexposed_image": Explanation("Hardly anything can be seen in the picture: it is white.", "Look at it."),
        "low_detail": Explanation("The picture is blurred, or nearly flat.", "Look at it."),
        "letterboxed": Explanation("Bars of one colour frame the picture.", "Cut them off before the conversion."),
        "odd_size": Explanation(
            "The picture is far larger or smaller than the others of the collection.", "Look whether it belongs to it."
        ),
        "odd_aspect": Explanation(
            "The ratio of width to height is far from that of the others of the collection.",
            "Look whether it belongs to it.",
        ),
        "box_covers_all": Explanation("A box covers the whole picture.", "Draw it around the object, or remove it."),
        "tiny_box": Explanation("A box is less than 3 pixels wide or high.", "Look whether it is a slip of the hand."),
        "stacked_boxes": Explanation(
            "Two boxes of one class overlap by more than 0.95: one object was annotated twice.", "Remove one of them."
        ),
        "object_counts_outlier": Explanation(
            "The picture has far more objects than the others of the collection.", "Look whether all are right."
        ),
        "class_only_in_one_split": Explanation(
            "All uses of a label lie in one of several splits.", "Give --stratify, or correct the splits."
        ),
    }
)

CHANGE_REASONS: Mapping[str, str] = MappingProxyType(
    {
        "rotated": "pixels turned upright as the EXIF orientation says",
        "orientation_removed": "only the orientation tag was rewritten",
        "cmyk_to_rgb": "CMYK or YCCK converted to RGB",
        "color_converted": "converted to the channels that --color asks for",
        "transparency_composited": "transparency laid on --background",
        "palette_expanded": "palette turned into channels",
        "depth_scaled": "16-bit or floating point values scaled to 8 bit",
        "first_frame": "the first of several frames was taken",
        "transcoded": "encoded anew because the format cannot be stored as it is, or another was asked for",
        "resized": "resized as --resize asks",
        "profile_converted": "colour profile converted to sRGB",
        "repaired": "a missing end marker was added, or too small a window of compressed data set right",
        "decoded_to_raw": "stored as raw pixels",
    }
)


def is_nearly(name: str, known: Iterable[str]) -> bool:
    """Whether a name is so near to a known one that it can hardly be another."""
    candidates = [candidate.casefold() for candidate in known]
    return bool(difflib.get_close_matches(name.casefold(), candidates, n=1, cutoff=0.8))


def nearest(name: str, known: Iterable[str]) -> str:
    """`` (did you mean 'x'?)`` for the known name nearest to ``name``, or nothing when none is near."""
    candidates = {candidate.casefold(): candidate for candidate in known}
    found = difflib.get_close_matches(name.casefold(), candidates, n=1, cutoff=0.6)
    found = found or [candidate for candidate in candidates if name and candidate.startswith(name.casefold())][:1]
    return f" (did you mean {candidates[found[0]]!r}?)" if found else ""
