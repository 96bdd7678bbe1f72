"""Label maps and JSON of labels. What is right stands in the texts, and protobuf's own writer makes some of them."""

from __future__ import annotations

import pytest

from beam_tfrecord.manifests.label_map import read_label_map

MSCOCO = """# a comment
item {
  name: "/m/01g317"
  id: 1
  display_name: "person"
}
item <name: '/m/0199g' id: 2 display_name: "bi" "cycle">
"""


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.pbtxt", 'item {\n  id: 2\n  name: "oak"\n}\nitem { name: "elm" id: 1 }', [(1, "elm"), (2, "oak")]),
        ("labels.txt", "item: {\n id: 1, name: 'o\"ak', }\n", [(1, 'o"ak')]),
        ("mscoco.pbtxt", MSCOCO, [(1, "person"), (2, "bicycle")]),
        ("a.pbtxt", 'item { id: 1 name: "b\\303\\244r" display_name: "x" }', [(1, "bär")]),
        ("a.pbtxt", 'item { id: 0 name: "no" } item { id: 7 display_name: "007" }', [(0, "no"), (7, "007")]),
        ("a.pbtxt", 'item { id: 1 name: "a" keypoints { id: 0 label: "nose" } frequency: RARE }', [(1, "a")]),
        ("n.json", '{"elm": 0, "oak": 1}', [(0, "elm"), (1, "oak")]),
        ("n.json", '{"1": "oak", "0": "elm"}', [(0, "elm"), (1, "oak")]),
        ("n.json", '{"7": 0, "8": 1}', [(0, "7"), (1, "8")]),
        ("config.json", '{"model": "x", "id2label": {"0": "elm"}, "label2id": {"elm": 0}}', [(0, "elm")]),
        ("names", '{"elm": 3}', [(3, "elm")]),
        ("n.json", '["oak", "elm"]', [(None, "oak"), (None, "elm")]),
        ("n.json", '[{"id": 5, "name": "oak"}, {"id": 2, "name": "elm"}]', [(2, "elm"), (5, "oak")]),
        ("coco.json", '{"images": [], "categories": [{"id": 1, "name": "a", "supercategory": "b"}]}', [(1, "a")]),
        ("labels.txt", "oak\nelm\n", None),
        ("labels.txt", "{oak}\n{elm}\n", None),
        ("labels.txt", '["a"]\n', None),
    ],
)
def test_a_file_tells_labels_and_their_ids(name: str, text: str, expected: list[tuple[int | None, str]] | None) -> None:
    assert read_label_map(text, name) == expected


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("a.pbtxt", "", "has no labels"),
        ("a.pbtxt", "item {", "is no label map"),
        ("a.pbtxt", 'item { name: "a" }', "gives item 0 \\('a'\\) no id"),
        ("a.pbtxt", "item { id: 1 }", "without a name \\(id 1\\)"),
        ("a.pbtxt", 'item { id: 1 name: "a" } item { id: 1 name: "b" }', "the id 1 to 'a' and to 'b'"),
        ("a.pbtxt", 'item { id: -1 name: "a" }', "'a' the id -1"),
        ("n.json", "{", "is no JSON"),
        ("n.json", "{}", "tells no labels"),
        ("n.json", '{"a": 1.5}', "tells no labels"),
        ("n.json", '{"a": true}', "tells no labels"),
        ("n.json", '{"a": 0, "a": 1}', "the key 'a' twice"),
        ("n.json", '{"a": 0, "b": 0}', "the id 0 to 'a' and to 'b'"),
        ("n.json", "3", "tells no labels"),
        ("n.json", '[{"id": 1}]', "tells no labels"),
        ("n.yaml", "names: [a]", "is a YAML file"),
    ],
)
def test_what_is_wrong_with_such_a_file_is_told(name: str, text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        read_label_map(text, name)
