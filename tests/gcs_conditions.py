"""gcp-storage-emulator with the one thing that it lacks: ``ifGenerationMatch`` on uploads and deletions.

As Cloud Storage documents it ("Request preconditions"): 0 means that there is no such object; a condition that does not
hold is answered with 412. The emulator serves one request after another, so look and write are one step.

    python -m tests.gcs_conditions PORT
"""

from __future__ import annotations

import io
import json
import re
import sys
from functools import partial
from http import server
from urllib.parse import parse_qs, unquote, urlsplit

from gcp_storage_emulator.exceptions import NotFound
from gcp_storage_emulator.server import RequestHandler
from gcp_storage_emulator.storage import Storage

_PLACE = re.compile(r"(?:/upload)?/storage/v1/b/(?P<bucket>[^/]+)/o(?:/(?P<name>.+))?")


class ConditionalHandler(RequestHandler):
    """Answers 412 where a condition does not hold, and leaves everything else to the emulator."""

    def do_POST(self) -> None:  # noqa: N802 - by http.server
        if self._holds():
            super().do_POST()

    def do_DELETE(self) -> None:  # noqa: N802 - by http.server
        if self._holds():
            super().do_DELETE()

    def _holds(self) -> bool:
        split = urlsplit(self.path)
        wanted = parse_qs(split.query).get("ifGenerationMatch")
        if not wanted:
            return True
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.rfile = io.BytesIO(body)
        place = _PLACE.fullmatch(split.path)
        assert place is not None, self.path
        name = unquote(place["name"]) if place["name"] else _name_in(body)
        try:
            generation = self.storage.get_file_obj(unquote(place["bucket"]), name)["generation"]
        except NotFound:
            generation = "0"
        if generation == wanted[0]:
            return True
        answer = (
            b'{"error": {"code": 412, "message": "At least one of the pre-conditions you specified did not hold."}}'
        )
        self.send_response(412)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(answer)))
        self.end_headers()
        self.wfile.write(answer)
        return False


def _name_in(body: bytes) -> str:
    """The name in the first part of a multipart upload, which is JSON."""
    start = body.index(b"{")
    values, _ = json.JSONDecoder().raw_decode(body[start:].decode("utf-8", "surrogateescape"))
    name: str = values["name"]
    return name


class _Server(server.HTTPServer):
    request_queue_size = 128  # of connections that wait; the sixth of five is dropped, and comes again after a second


if __name__ == "__main__":
    storage = Storage(use_memory_fs=True)
    _Server(("127.0.0.1", int(sys.argv[1])), partial(ConditionalHandler, storage)).serve_forever()
