"""The page itself: its values, its parts, and how they are put together."""

from __future__ import annotations

import base64
import functools
import hashlib
import re
from importlib import resources
from typing import TYPE_CHECKING, Any

from markupsafe import Markup, escape

from beam_tfrecord.conversion.writing.statistics import MIN_SAMPLES
from beam_tfrecord.report import details, findings, images, inputs, overview
from beam_tfrecord.report.classes import class_balance
from beam_tfrecord.report.dataset import Dataset
from beam_tfrecord.report.insight import InsightSection
from beam_tfrecord.report.overlays import style_rules
from beam_tfrecord.report.pictures import Pictures, box_styles
from beam_tfrecord.report.text import clean, shorten

if TYPE_CHECKING:
    import jinja2

TEMPLATE = "report.html.j2"
_FLAG = re.compile(r"--[a-z_]+")


def page_values(dataset: Dataset, pictures: Pictures, insight: InsightSection | None = None) -> dict[str, Any]:
    """Everything that the template shows."""
    conversion = dataset.conversion
    statistics = dataset.statistics
    balance = class_balance(conversion)
    stored = statistics.get("images")
    objects = statistics.get("objects")
    num_shards = sum(len(split["shards"]) for split in conversion["splits"].values())
    sizes, other_sizes = images.common_sizes(stored) if stored else ([], "")
    formats, other_formats = images.formats(conversion.get("image_formats", {}))
    rejects = conversion["rejected"]["total"]
    failed = pictures.failed | (insight.failed if insight else frozenset())
    return {
        "name": shorten(clean(conversion.get("name", "")), 100),
        "facts": _head_facts(dataset),
        "has_metadata": dataset.has_metadata,
        "tiles": overview.tiles(dataset, balance),
        "notices": overview.notices(dataset, balance, has_pictures=pictures.has_any, failed=len(failed)),
        "rows": overview.row_bar(conversion) if dataset.has_metadata else None,
        "conversion": conversion,
        "inputs": overview.input_rows(conversion),
        "accounts": inputs.input_accounts(conversion),
        "num_inputs": len(conversion.get("inputs", ())),
        "splits": overview.split_rows(conversion),
        "balance": balance,
        "image_charts": images.image_charts(stored) if stored else [],
        "frame_chart": images.frame_chart(statistics["frames"]) if "frames" in statistics else None,
        "formats": formats,
        "other_formats": other_formats,
        "sizes": sizes,
        "other_sizes": other_sizes,
        "object_charts": images.object_charts(objects) if objects and objects["share"]["count"] else [],
        "pictures": pictures,
        "insight": insight,
        "drawings": "Annotations" if pictures.has_overlays else "Boxes" if pictures.has_boxes else "",
        "picture_groups": _picture_groups(dataset, pictures),
        "changes": findings.change_reasons(dataset, pictures),
        "warnings": findings.warning_reasons(dataset, pictures),
        "reject_reasons": findings.reject_reasons(dataset),
        "reject_rows": findings.reject_rows(dataset.rejects),
        "rejects": rejects,
        "shard_chart": images.shard_chart(conversion["splits"]),
        "shards": overview.shard_rows(conversion),
        "num_shards": num_shards,
        "columns": details.column_rows(dataset.columns),
        "scan": dataset.scan,
        "features": details.feature_rows(conversion),
        "options": details.option_rows(conversion),
        "versions": [(clean(name), clean(version)) for name, version in conversion.get("versions", {}).items()],
    }


def _head_facts(dataset: Dataset) -> list[str]:
    conversion = dataset.conversion
    facts = [f"tf.train.{conversion['message']}"] if "message" in conversion else []
    if "keys" in conversion:
        facts.append(f"{conversion['keys']} keys")
    if "compression" in conversion:
        compression = conversion["compression"]
        facts.append("not compressed" if compression == "none" else f"{compression} compression")
    return [clean(fact) for fact in facts]


def _picture_groups(dataset: Dataset, pictures: Pictures) -> list[dict[str, Any]]:
    """Pictures by class, the most frequent first, those without a label at the end."""
    uses: dict[str, int] = {}
    for counts in dataset.conversion.get("classes", {}).values():
        for label, count in counts.items():
            uses[label] = uses.get(label, 0) + count
    style_of = box_styles(dataset.conversion.get("labels", []))
    ordered = sorted(pictures.classes, key=lambda label: (-uses.get(label, 0), label))
    groups = [
        {
            "name": shorten(clean(label), 60),
            "title": clean(label),
            "uses": uses.get(label, 0),
            "pictures": group,
            "style": style_of(label) if pictures.has_boxes else None,
        }
        for label in ordered
        if (group := pictures.classes[label])
    ]
    if pictures.unlabelled:
        name = f"Without {'an object' if 'objects' in dataset.statistics else 'a label'}" if groups else ""
        shown = pictures.unlabelled[: MIN_SAMPLES if groups else None]
        groups.append({"name": name, "title": name, "uses": 0, "pictures": shown, "style": None})
    return groups


def _flags(text: str) -> Markup:
    """A text in which the flags of commands are not broken at the end of a line."""
    return Markup(_FLAG.sub(r'<span class="flag">\g<0></span>', str(escape(text))))


def _breakable(text: str) -> Markup:
    """A text with paths that may be broken behind each slash."""
    return Markup(escape(text).replace("/", Markup("/<wbr>")))


def read_part(name: str) -> str:
    """A file of the page, as text."""
    return (resources.files("beam_tfrecord") / "templates" / name).read_text(encoding="utf-8")


@functools.cache
def load_template(name: str) -> jinja2.Template:
    """A template of the package; values are escaped, and one that is missing is an error."""
    import jinja2  # slow to import

    environment = jinja2.Environment(
        loader=jinja2.FunctionLoader(read_part),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters.update(flags=_flags, breakable=_breakable)
    return environment.get_template(name)


def render_page(values: dict[str, Any]) -> bytes:
    """The page as UTF-8. Every value is escaped; the script is allowed by its hash, and nothing can be loaded."""
    script = read_part("report.js")
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    style = f"{style_rules()}\n{read_part('report.css')}"
    text = load_template(TEMPLATE).render(**values, script=script, script_hash=f"sha256-{digest}", style=style)
    return text.lstrip().encode("utf-8", "backslashreplace")
