"""pycurl, loaded so that it finds its own libcurl.

TensorFlow's library has a libcurl inside, an older one, and shows its names to every library that is loaded later:
after ``import tensorflow`` pycurl would call that one, and refuses to be imported. Where the loader can look into a
library's own dependencies first, it is told to (dlopen(3), RTLD_DEEPBIND).
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def _own_names_first() -> Iterator[None]:
    own_first = getattr(os, "RTLD_DEEPBIND", None)  # of Linux with glibc
    if own_first is None:
        yield
        return
    before = sys.getdlopenflags()
    sys.setdlopenflags(os.RTLD_NOW | own_first)
    try:
        yield
    finally:
        sys.setdlopenflags(before)


with _own_names_first():
    import pycurl

__all__ = ["pycurl"]
