"""``report.html``: what is in a dataset, on one page for a person.

The page is made from what a conversion counted (``conversion.json``, ``statistics.json``) and a few sampled records, so
it costs the same for a thousand records as for a million. It holds everything it needs: no network, no other file. The
same dataset gives the same page.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from beam_tfrecord.storage import Storage


def build_report(folder: str, storage: Storage) -> bytes:
    """The page about the dataset in a folder (no slash at its end), in UTF-8.

    A dataset with a conversion.json is told of from its metadata; of TFRecord files from elsewhere, and where the
    metadata lack statistics, a bounded part of the records is read, and the page says so. A picture that cannot be read
    or drawn is left out, and the page says how many. Raises DatasetError when the folder holds no dataset or its
    metadata are damaged, and what the storage raises when the metadata cannot be read.
    """
    from beam_tfrecord.report.dataset import load_dataset
    from beam_tfrecord.report.insight import draw_insight
    from beam_tfrecord.report.page import page_values, render_page
    from beam_tfrecord.report.pictures import draw_pictures

    dataset = load_dataset(folder, storage)
    values = page_values(dataset, draw_pictures(dataset, storage), draw_insight(dataset, storage))
    return render_page(values)
