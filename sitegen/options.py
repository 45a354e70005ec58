"""The command line of build_site.py, read before anything is installed (old-Python syntax, see there)."""

import argparse
import re

EPILOG = """\
examples:
  python build_site.py                     build into site/, then open site/index.html
  python build_site.py --serve --open      build, serve on this machine only, open a browser
  python build_site.py --offline           use only what is installed and cached

The first build fetches the Python runtime for the browser (16 MB) into ~/.cache/k3serve, or into the folder
that the environment variable K3_CACHE names. A build goes to a temporary folder beside DIR and replaces DIR
at the end; if it fails, DIR stays as it was and the exit status is 2."""


def parse(argv):
    """Options of build_site.py; prints usage and exits with status 2 on a mistake."""
    parser = argparse.ArgumentParser(
        prog="build_site.py",
        description="Build the site as plain files that work from a folder or any web host.",
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "--out", metavar="DIR", default=None, help="where to build (default: site/ in the repository)"
    )
    parser.add_argument("--open", action="store_true", help="open the built site in the default browser")
    parser.add_argument(
        "--serve",
        metavar="PORT",
        type=_port,
        nargs="?",
        const=0,
        help="after building, serve the site on 127.0.0.1 (default port: 8000, or a free one)",
    )
    parser.add_argument(
        "--runtime-dir",
        metavar="DIR",
        help="take the browser runtime from this unpacked Pyodide distribution, and from nowhere else",
    )
    parser.add_argument(
        "--offline", action="store_true", help="never touch the network: install and fetch nothing"
    )
    parser.add_argument(
        "--clean",
        action="store_true",
        help="remove the built site and the cached runtime, say what was removed, and stop",
    )
    parser.add_argument(
        "--base-url",
        metavar="URL",
        type=_base_url,
        help="public address of the site, needed only for the sitemap, hreflang, Open Graph and 404 page",
    )
    return parser.parse_args(argv)


def _port(text):
    if not re.match(r"\d{1,5}$", text) or not 0 < int(text) < 65536:
        raise argparse.ArgumentTypeError("PORT is a number from 1 to 65535, not %r" % text)
    return int(text)


def _base_url(text):
    if not re.match(r"https?://[^/\s?#]+(/[^\s?#]*)?$", text):
        raise argparse.ArgumentTypeError("URL looks like https://host/path/, not %r" % text)
    return text.rstrip("/") + "/"
