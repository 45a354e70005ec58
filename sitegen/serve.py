"""Serve the built site on this machine, as a static host would."""

import errno
import functools
import http.server
from pathlib import Path

from sitegen.failure import Failure

DEFAULT_PORT = 8000


class Handler(http.server.SimpleHTTPRequestHandler):
    extensions_map = {
        **http.server.SimpleHTTPRequestHandler.extensions_map,
        ".mjs": "text/javascript",
        ".js": "text/javascript",
        ".whl": "application/octet-stream",
    }

    def end_headers(self):
        self.send_header("Cache-Control", "no-cache")  # a rebuilt page must show at the next load
        super().end_headers()

    def log_message(self, format, *args):
        pass


def make_server(folder: Path, port: int = 0) -> http.server.ThreadingHTTPServer:
    """A server on 127.0.0.1, bound but not serving yet. port 0: 8000 or, where that is taken, a free one."""
    handler = functools.partial(Handler, directory=str(folder))
    for number in [port] if port else [DEFAULT_PORT, 0]:
        try:
            return http.server.ThreadingHTTPServer(("127.0.0.1", number), handler)
        except OSError as error:
            if port or error.errno != errno.EADDRINUSE:
                raise Failure(f"cannot serve on port {number}: {error.strerror}") from None
    raise AssertionError("port 0 is never in use")


def serve(server: http.server.ThreadingHTTPServer) -> None:
    """Until Ctrl-C."""
    try:
        server.serve_forever()
    except KeyboardInterrupt:
        pass
    finally:
        server.server_close()
