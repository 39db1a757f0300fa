"""Building with meson and ninja; what they print goes to standard error."""
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


def make(folder, *options, compiler="gcc", targets=()):
    """Sets `folder` up if that was not done yet, and builds it."""
    jobs = str(max(2, len(os.sched_getaffinity(0))))
    if not os.path.exists(os.path.join(folder, "build.ninja")):
        run("meson", "setup", *options, folder, env={"CC": compiler})
    elif options:
        run("meson", "configure", *options, folder)
    run("ninja", "-j", jobs, "-C", folder, *targets)
