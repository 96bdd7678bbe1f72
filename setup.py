"""Packaging of beam_tfrecord. Ranges here are loose on purpose; constraints.txt holds one tested set of exact pins."""

from __future__ import annotations

import re
from pathlib import Path

from setuptools import find_packages, setup

ROOT = Path(__file__).resolve().parent
BEAM = ">=2.74,<3"


def version() -> str:
    """The version, read without importing the package (its dependencies may not be there yet)."""
    text = (ROOT / "beam_tfrecord" / "_version.py").read_text(encoding="utf-8")
    found = re.search(r'^__version__ = "([^"]+)"$', text, re.MULTILINE)
    if found is None:
        raise RuntimeError("beam_tfrecord/_version.py states no __version__")
    return found[1]


def description() -> str:
    """The README, or nothing in a tree that has none (a source archive made for the workers of a cluster)."""
    readme = ROOT / "README.md"
    return readme.read_text(encoding="utf-8") if readme.exists() else ""


REQUIRED = [
    f"apache-beam{BEAM}",
    "certifi>=2024.7.4",
    "google-api-core>=2,<3",
    "google-auth>=2,<3",
    "google-cloud-storage>=3,<4",  # of Beam's own sink
    "google-crc32c>=1.7,<2",
    "grpcio>=1.59,<2",
    "jinja2>=3.1,<4",
    "markupsafe>=2.1,<4",
    "numpy>=1.26,<3",
    "pillow>=11.3,<13",
    "protobuf>=4.25,<8",
    "pycurl>=7.48,<8",
    "pyyaml>=6,<7",
    "requests>=2.32,<3",
    "simplejpeg>=1.8,<2",
    "tenacity>=9,<10",
    "tqdm>=4.66,<5",
    "urllib3>=2.2,<3",
]

TENSORFLOW = ["tensorflow>=2.16,<3"]
TFDS = ["tensorflow-datasets>=4.9.7,<5"]
PARQUET = ["pyarrow>=14,<26"]
PANDAS = ["pandas>=2.0,<4"]
DATAFLOW = [f"apache-beam[gcp]{BEAM}"]
AWS = [f"apache-beam[aws]{BEAM}", "boto3>=1.36,<2"]
AZURE = [f"apache-beam[azure]{BEAM}"]
HADOOP = [f"apache-beam[hadoop]{BEAM}"]
COCO = ["pycocotools>=2.0.7,<3"]
HEIF = ["pillow-heif>=0.18,<2"]
ARRAY_RECORD = ["array_record>=0.5,<1"]
# The second opinions that the tests ask, and the object stores that they talk to.
TEST = [
    *TENSORFLOW,
    *TFDS,
    *PARQUET,
    *PANDAS,
    *DATAFLOW,
    *AWS,
    *AZURE,
    *COCO,
    *HEIF,
    *ARRAY_RECORD,
    "cryptography>=42",
    "gcp-storage-emulator>=2022.6.11",
    "hypothesis>=6.100,<7",
    "moto[s3,server]>=5,<6",
    "pytest>=8,<10",
    "pytest-xdist>=3.5,<4",
]
DOCS = [
    "mkdocs-material>=9.5,<10",
    "mkdocstrings[python]>=0.26,<2",
]
DEV = [
    *TEST,
    *DOCS,
    "build>=1.2,<2",
    "import-linter>=2.3,<3",
    "mypy>=1.14,<3",
    "pandas-stubs",
    "psutil>=6,<8",
    "ruff>=0.9,<1",
    "types-grpcio",
    "types-protobuf",
    "types-pyyaml",
    "types-tqdm",
    "uv>=0.6,<1",
    "vulture>=2.14,<3",
]

setup(
    name="beam-tfrecord",
    version=version(),
    description="Any labelled image collection to complete, reproducible and verified TFRecords, with Apache Beam",
    long_description=description(),
    long_description_content_type="text/markdown",
    license_expression="Apache-2.0",
    keywords=["apache-beam", "tfrecord", "tensorflow", "dataset", "images", "machine-learning"],
    classifiers=[
        "Development Status :: 4 - Beta",
        "Environment :: Console",
        "Intended Audience :: Developers",
        "Intended Audience :: Science/Research",
        "Operating System :: POSIX",
        "Programming Language :: Python :: 3",
        *(f"Programming Language :: Python :: 3.{minor}" for minor in range(10, 14)),
        "Topic :: Scientific/Engineering :: Artificial Intelligence",
        "Topic :: Scientific/Engineering :: Image Processing",
        "Typing :: Typed",
    ],
    python_requires=">=3.10,<3.14",
    packages=find_packages(include=["beam_tfrecord", "beam_tfrecord.*", "pipelines", "pipelines.*"]),
    package_data={"beam_tfrecord": ["py.typed", "__init__.pyi", "**/templates/*"]},
    install_requires=REQUIRED,
    extras_require={
        "tensorflow": TENSORFLOW,
        "tfds": [*TENSORFLOW, *TFDS],
        "parquet": PARQUET,
        "pandas": PANDAS,
        "dataflow": DATAFLOW,
        "aws": AWS,
        "azure": AZURE,
        "hadoop": HADOOP,
        "coco": COCO,
        "heif": HEIF,
        "array_record": ARRAY_RECORD,
        "test": TEST,
        "docs": DOCS,
        "dev": DEV,
    },
    entry_points={"console_scripts": ["beam-tfrecord = pipelines.main:main"]},
    zip_safe=False,
)
