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
        ("classes.csv", "elm,0\noak,1\n", [(0, "elm"), (1, "oak")]),
        ("classes.csv", '1,"oak, red"\r\n0,elm\r\n', [(0, "elm"), (1, "oak, red")]),
        ("classes.csv", "7,0\nx8,1\n", [(0, "7"), (1, "x8")]),
        ("classes.csv", "Class,ID\n7,0\n8,1\n", [(0, "7"), (1, "8")]),
        ("classes.csv", "name,r,g,b\nsky,0,0,1\ntree,0,1,0\n", [(None, "sky"), (None, "tree")]),
        ("classes.csv", "label\nsky\ntree\n", [(None, "sky"), (None, "tree")]),
        ("classes.csv", "sky\ntree\n", [(None, "sky"), (None, "tree")]),
        ("classes.tsv", "n01440764\t0\nn01443537\t1\n", [(0, "n01440764"), (1, "n01443537")]),
        ("data.yaml", "nc: 2\nnames: [elm, oak]\n", [(None, "elm"), (None, "oak")]),
        ("data.yaml", "names:\n  1: no\n  0: 007\n", [(0, "007"), (1, "no")]),
        ("names.yml", "- elm\n- oak\n", [(None, "elm"), (None, "oak")]),
        ("labels.txt", "oak,1\nelm,0\n", None),
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
        ("classes.csv", "elm,0\noak,0\n", "the id 0 to 'elm' and to 'oak'"),
        ("classes.csv", "elm,0\noak,x\n", "must be a name and an id"),
        ("classes.csv", "5,0\n6,1\n", "must be a name and an id"),
        ("classes.csv", "elm,0\noak\n", "the line 'oak' has 1 cells, and the first has 2"),
        ("classes.csv", "name,id\nelm,0\noak,1.5\n", "gives 'oak' the id '1.5'"),
        ("classes.csv", "elm,0,1\noak,1,2\n", "has 3 columns and no head"),
        ("classes.csv", '"elm,0\n', "quotes do not match"),
        ("classes.csv", "", "has no labels"),
        ("data.yaml", "train: x\n", "the YAML tells no labels"),
        ("data.yaml", "names: elm\n", "the YAML tells no labels"),
        ("data.yaml", "names: [elm, [oak]]\n", "the YAML tells no labels"),
        ("n.json", "3", "tells no labels"),
        ("n.json", '[{"id": 1}]', "tells no labels"),
        ("n.yaml", "names: [a", "line 1"),
    ],
)
def test_what_is_wrong_with_such_a_file_is_told(name: str, text: str, told: str) -> None:
    with pytest.raises(ValueError, match=told):
        read_label_map(text, name)
