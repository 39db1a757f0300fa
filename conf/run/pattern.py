"""What takes long to make, made once for many stacks and then copied.

Tests start stacks by the hundred. Where SLUICE_PATTERNS names a folder, the first who
needs a folder of some kind makes it there and everybody gets a copy; without it each
makes its own, as a stack that serves anybody must.
"""
import fcntl
import os
import secrets
import shutil
import subprocess


def fill(folder, kind, make):
    """`folder`, which is not there yet, as make(folder) leaves it."""
    patterns = os.environ.get("SLUICE_PATTERNS")
    if not patterns:
        make(folder)
        return
    pattern = os.path.join(patterns, kind)
    with open(pattern + ".lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not os.path.exists(pattern):
            shutil.rmtree(pattern + ".new", ignore_errors=True)
            make(pattern + ".new")
            os.rename(pattern + ".new", pattern)
    subprocess.run(["cp", "-a", pattern, folder], check=True)


def password():
    """Of a database: a pattern's is known to all who copy it."""
    return os.environ.get("SLUICE_PATTERNS_PASSWORD") or secrets.token_hex(16)
