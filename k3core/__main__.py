"""`python -m k3core`."""

import signal

if __name__ == "__main__":  # and not in the processes of a sweep, which come by here
    try:
        from k3core.cli import main

        status = main()
    except KeyboardInterrupt:  # while modules are loaded
        status = 130
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # nothing is left to stop
    raise SystemExit(status)
