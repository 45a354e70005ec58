"""Find the Chromium that the browser tests drive, or get one."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

# The first one has no window, so it does less.
NAMES = ["chromium-headless-shell", "chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome",
         "msedge"]
PLACES = [
    "/Applications/Google Chrome.app/Contents/MacOS/Google Chrome",
    "/Applications/Chromium.app/Contents/MacOS/Chromium",
    r"%ProgramFiles%\Google\Chrome\Application\chrome.exe",
    r"%ProgramFiles(x86)%\Google\Chrome\Application\chrome.exe",
    r"%LocalAppData%\Google\Chrome\Application\chrome.exe",
    r"%ProgramFiles(x86)%\Microsoft\Edge\Application\msedge.exe",
]


def find_browser() -> str:
    """Path of a Chromium: $K3_BROWSER, an installed one, else a downloaded one; exits with 2 without one."""
    wanted = os.environ.get("K3_BROWSER")
    if wanted:
        return shutil.which(wanted) or _fail(f"K3_BROWSER={wanted} is not a program")
    for find in [_installed, _playwright, _download_playwright, _apt_get]:
        path = find()
        if path:
            return path
    return _fail("found no Chromium or Chrome and could not get one: install one, or name it in K3_BROWSER")


def _installed() -> str | None:
    found = [shutil.which(name) for name in NAMES] + [
        shutil.which(os.path.expandvars(place)) for place in PLACES
    ]
    return next(filter(None, found), None)


def _playwright() -> str | None:
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        path = playwright.chromium.executable_path
    return path if Path(path).is_file() else None


def _download_playwright() -> str | None:
    print("No Chromium or Chrome is installed; asking Playwright to download one", flush=True)
    try:
        subprocess.run([sys.executable, "-m", "playwright", "install", "chromium"], check=True, timeout=600)
    except (subprocess.CalledProcessError, subprocess.TimeoutExpired) as error:
        print(f"Playwright could not: {error}", flush=True)
        return None
    return _playwright()


def _apt_get() -> str | None:
    if not shutil.which("apt-get") or os.geteuid() != 0:
        return None
    print("Installing chromium-headless-shell with apt-get", flush=True)
    environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
    for command in [["update", "-qq"], ["install", "-qq", "-y", "chromium-headless-shell", "fonts-noto-cjk"]]:
        if subprocess.run(["apt-get", *command], env=environment).returncode:
            return None
    return _installed()


def _fail(message: str):
    print(f"error: {message}", file=sys.stderr)
    raise SystemExit(2)
