"""Find a Python that can run this project and the packages it needs; start over in it.

Written so that Python 2.7 can parse it (see build_site.py): no f-strings, no annotations.
"""

from __future__ import print_function

import os
import re
import subprocess
import sys

OLDEST = (3, 12)
ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
VENV = os.path.join(ROOT, ".venv")


def ensure(groups, offline=False):
    """Return only in an interpreter with every package of these dependency groups; else exit with status 2.

    groups: names of dependency groups in pyproject.toml. Where the running interpreter lacks something, the
    packages go into .venv and the program is started again from there. Nothing is installed twice.
    """
    if sys.version_info >= OLDEST and not missing(groups):
        return
    python = _venv_python()
    if not _works(python):
        _make_venv(python)
    _run([python, "-m", "sitegen.bootstrap"] + groups + (["--offline"] if offline else []))
    if os.path.realpath(sys.prefix) != os.path.realpath(VENV):
        restart([python])


def missing(groups):
    """The pins ("name==version") of these dependency groups that are not installed at that version."""
    from importlib import metadata
    import tomllib

    with open(os.path.join(ROOT, "pyproject.toml"), "rb") as file:
        table = tomllib.load(file)["dependency-groups"]
    result = []
    for pin in [pin for group in groups for pin in table[group]]:
        name, version = pin.split("==")
        try:
            if metadata.version(name) == version:
                continue
        except metadata.PackageNotFoundError:
            pass
        result.append(pin)
    return result


def find_python():
    """Command (a list) of the first Python that is new enough; exits with status 2 if none is."""
    for command in _candidates():
        version = _version(command)
        if version and version >= OLDEST:
            return command
    fail(
        "found no Python %d.%d or newer (with its venv module) among the running one, PATH and pyenv: "
        "install one and run this again" % OLDEST
    )


def restart(command):
    """Run this program again under another Python; does not return."""
    sys.stdout.flush()
    command = command + sys.argv
    if os.name == "nt":  # execv there returns to the shell at once, without the program's status
        sys.exit(subprocess.call(command))
    os.execv(command[0], command)


def fail(message):
    """One line on standard error, exit status 2."""
    sys.stderr.write("error: %s\n" % message)
    sys.exit(2)


def _candidates():
    yield [sys.executable]
    for name in ["python3.14", "python3.13", "python3.12", "python3", "python"]:
        path = _which(name)
        if path:
            yield [path]
    if os.name == "nt" and _which("py"):
        yield [_which("py"), "-3"]
    versions = os.path.join(os.environ.get("PYENV_ROOT") or os.path.expanduser("~/.pyenv"), "versions")
    names = os.listdir(versions) if os.path.isdir(versions) else []
    for name in sorted(filter(re.compile(r"\d+\.\d+").match, names), key=_numbers, reverse=True):
        for python in ["bin/python", "python.exe"]:
            path = os.path.join(versions, name, python)
            if os.path.exists(path):
                yield [path]


def _numbers(text):
    return [int(part) for part in re.findall(r"\d+", text)]


def _which(name):
    """Full path of a program on PATH, or None (Python 2 has no shutil.which)."""
    for folder in os.environ.get("PATH", "").split(os.pathsep):
        path = os.path.join(folder, name + (".exe" if os.name == "nt" else ""))
        if os.access(path, os.X_OK) and not os.path.isdir(path):
            return os.path.abspath(path)
    return None


def _version(command):
    """(major, minor) of a Python that can make a venv; None if it does not run (as some pyenv shims)."""
    code = "import sys, venv, ensurepip; print('%d %d' % sys.version_info[:2])"
    try:
        out = subprocess.check_output(command + ["-c", code], stderr=subprocess.STDOUT)
    except (OSError, subprocess.CalledProcessError):
        return None
    return tuple(_numbers(out.decode("ascii", "replace")))


def _venv_python():
    return os.path.join(VENV, "Scripts" if os.name == "nt" else "bin", "python")


def _works(python):
    """Whether .venv is whole: an interrupted run can leave it without pip, an upgrade without Python."""
    code = "import sys, pip; sys.exit(sys.version_info < %r)" % (OLDEST,)
    try:
        subprocess.check_output([python, "-c", code], stderr=subprocess.STDOUT)
    except (OSError, subprocess.CalledProcessError):
        return False
    return True


def _make_venv(python):
    maker = find_python()
    print("%s .venv with %s" % ("Remaking" if os.path.exists(VENV) else "Making", maker[0]))
    sys.stdout.flush()
    _run(maker + ["-m", "venv", "--clear", VENV])
    if not _works(python):
        fail("%s does not work right after it was made by %s" % (VENV, maker[0]))


def _run(command):
    """Run a step in the repository; where it fails, its message has been printed or its output says why."""
    process = subprocess.Popen(command, cwd=ROOT, stderr=subprocess.PIPE)
    last = last_line(process.communicate()[1])
    if process.returncode:
        fail(last[len("error: ") :] if last.startswith("error: ") else "%s: %s" % (" ".join(command), last))


def last_line(errors):
    """Of what a program (pip, mostly) wrote to standard error, the line that says why it failed."""
    lines = [line.strip() for line in errors.decode("utf-8", "replace").splitlines()]
    lines = [line for line in lines if line and not line.startswith(("[notice]", "WARNING"))]
    return lines[-1] if lines else "no reason given"


def install(groups, offline):
    """Install into the running interpreter what these groups lack; exits with status 2 if that fails."""
    pins = missing(groups)
    if not pins:
        return
    if offline:
        fail("not installed: %s; --offline forbids to install: run once without it" % ", ".join(pins))
    print("Installing into .venv (a minute or two, the first time): %s" % ", ".join(pins))
    sys.stdout.flush()
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
    process = subprocess.Popen(command + pins, stderr=subprocess.PIPE)
    reason = last_line(process.communicate()[1])
    left = missing(groups)
    if process.returncode or left:
        fail("pip could not install %s: %s" % (", ".join(left or pins), reason))


if __name__ == "__main__":
    install([name for name in sys.argv[1:] if not name.startswith("--")], "--offline" in sys.argv)
