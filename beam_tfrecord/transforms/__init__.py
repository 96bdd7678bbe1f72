"""PTransforms and DoFns: wiring only.

Importing this package imports Apache Beam, without the warning that Beam gives where it has Google's client of Cloud
Storage and not that of BigQuery, as in a default installation.
"""

import logging


def _is_news(record: logging.LogRecord) -> bool:
    return not record.getMessage().startswith("apitools not found")


logging.root.addFilter(_is_news)
try:
    import apache_beam  # noqa: F401
finally:
    logging.root.removeFilter(_is_news)
