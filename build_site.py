#!/usr/bin/env python3
"""Build the site into site/. On a bare clone this needs nothing but some Python: see --help."""

# This file, sitegen/options.py and sitegen/bootstrap.py keep to syntax that every Python from 2.7 on can
# parse, because "python" on the path may be old; bootstrap then finds a newer one and starts over in it.
import sys

from sitegen import bootstrap, options


def main():
    args = options.parse(sys.argv[1:])
    if not args.clean:
        bootstrap.ensure(["build"], offline=args.offline)
    elif sys.version_info < bootstrap.OLDEST:
        bootstrap.restart(bootstrap.find_python())

    from sitegen import cli

    return cli.main(args)


if __name__ == "__main__":
    sys.exit(main())
