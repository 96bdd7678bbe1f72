"""How near --resize comes to a full decode with Pillow and LANCZOS."""

from __future__ import annotations

import io
from pathlib import Path

import numpy as np
from PIL import Image

from beam_tfrecord.images import convert_image
from beam_tfrecord.options.config import ImagePolicy

SIDE = 256


def resize_quality(folder: Path, count: int = 20) -> float:
    """The smallest PSNR in dB among the first pictures of a folder."""
    policy = ImagePolicy(resize=SIDE, image_format="png")
    worst = float("inf")
    for path in sorted(folder.rglob("*.jpg"))[:count]:
        with Image.open(io.BytesIO(convert_image(path.read_bytes(), policy).data)) as image:
            ours = np.asarray(image, np.float64)
        with Image.open(path) as image:
            full = image.convert("RGB").resize((ours.shape[1], ours.shape[0]), Image.Resampling.LANCZOS)
        error = float(np.mean((ours - np.asarray(full, np.float64)) ** 2))
        worst = min(worst, 10 * float(np.log10(255**2 / max(error, 1e-9))))
    return worst
