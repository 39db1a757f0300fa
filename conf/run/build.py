"""Building with meson and ninja; what they print goes to standard error."""
import json
import os
import subprocess
import sys

from run.process import Failed

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def run(*argv, env=None):
    done = subprocess.run(argv, cwd=ROOT, stdout=sys.stderr, stderr=sys.stderr,
                          stdin=subprocess.DEVNULL, env={**os.environ, **(env or {})})
    if done.returncode != 0:
        raise Failed(f"{' '.join(argv)} failed with {done.returncode}")


def differs(folder, option):
    """True when the build in `folder` has another value for `-Dname=value`."""
    name, _, value = option.removeprefix("-D").partition("=")
    with open(os.path.join(folder, "meson-info", "intro-buildoptions.json")) as file:
        have = {row["name"]: row["value"] for row in json.load(file)}[name]
    return value != (",".join(have) if isinstance(have, list) else str(have).lower())


def make(folder, *options, compiler="gcc", targets=()):
    """Sets `folder` up if that was not done yet, and builds it."""
    jobs = str(max(2, len(os.sched_getaffinity(0))))
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        run("meson", "setup", *options, folder, env={"CC": compiler})
    elif any(differs(folder, option) for option in options):
        run("meson", "configure", *options, folder)
    run("ninja", "-j", jobs, "-C", folder, *targets)
