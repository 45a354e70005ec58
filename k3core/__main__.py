"""`python -m k3core`."""

from k3core.cli import main

if __name__ == "__main__":
    raise SystemExit(main())
