"""Asking gcc, clang and clang-tidy about single files, remembering good answers.

The memory is a folder of empty files below build/, named by a hash of all that
the answer depends on, so that an unchanged file is not asked about again.
"""
import concurrent.futures
import functools
import hashlib
import json
import os
import re
import shlex
import subprocess

from source import ROOT

BUILD = os.path.join(ROOT, "build")
MEMORY = os.path.join(BUILD, "lint")
PACKAGES = ["libnghttp2", "openssl", "jansson", "yaml-0.1", "libpq"]
WARNINGS = ["-Wall", "-Wextra", "-Wshadow", "-Wconversion", "-Wstrict-prototypes",
            "-Wmissing-prototypes", "-Wswitch-enum", "-Wvla", "-Wundef", "-Wformat=2", "-Werror"]


def library_flags():
    text = subprocess.run(["pkg-config", "--cflags", *PACKAGES], check=True,
                          stdout=subprocess.PIPE, text=True).stdout
    return [flag.replace("-I", "-isystem", 1) for flag in shlex.split(text)] + [
        "-isystem/usr/share/include"]


@functools.cache
def flags():
    return ["-std=gnu11", "-D_GNU_SOURCE", '-DSLUICE_VERSION="lint"', f"-I{ROOT}", *WARNINGS,
            *library_flags()]


def flags_of(path):
    """The same, with the folders and words that the build gives this file."""
    own = []
    try:
        with open(os.path.join(BUILD, "compile_commands.json")) as file:
            rows = json.load(file)
    except OSError:
        rows = []
    for row in rows:
        if os.path.realpath(os.path.join(row["directory"], row["file"])) == os.path.join(ROOT, path):
            words = shlex.split(row["command"])
            own = [f"-I{os.path.join(row['directory'], word[2:])}" if word.startswith("-I") else word
                   for word in words if word.startswith(("-I", "-D"))]
            break
    return [*(flag for flag in flags() if not own or not flag.startswith("-D")),
            *dict.fromkeys(own)]


def remembered(question, paths):
    """The file whose presence says that `question` about `paths` had no fault."""
    digest = hashlib.sha256("\0".join(question).encode())
    for path in paths:
        with open(os.path.join(ROOT, path), "rb") as file:
            digest.update(path.encode() + b"\0" + file.read() + b"\0")
    return os.path.join(MEMORY, digest.hexdigest()[:40])


def ask(command, paths):
    """None when the command is content, else what it said."""
    os.makedirs(MEMORY, exist_ok=True)
    memory = remembered(command, paths)
    if os.path.exists(memory):
        return None
    done = subprocess.run(command, cwd=ROOT, stdin=subprocess.DEVNULL, text=True,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, errors="replace")
    if done.returncode != 0:
        said = [line for line in done.stdout.splitlines() if "error:" in line]
        return f"{command[0]}: " + "\n".join(said or [done.stdout])
    open(memory, "w").close()
    return None


SETTINGS = (".clang-tidy", ".clang-format")
INCLUDE = re.compile(rb'^[ \t]*#[ \t]*include[ \t]+"([^"]+)"', re.MULTILINE)


def closure(path, known=None):
    """The file and the headers of ours that it includes, at any depth."""
    known = {} if known is None else known
    if path in known or not os.path.exists(os.path.join(ROOT, path)):
        return known
    known[path] = True
    with open(os.path.join(ROOT, path), "rb") as file:
        for name in INCLUDE.findall(file.read()):
            closure(name.decode(), known)
    return known


def ask_together(command, paths, at_once=25):
    """For a tool that takes many files and needs no more than a moment for each: asked
    one by one only where it is not content with some of them."""
    new = [path for path in paths if not os.path.exists(remembered([*command, path],
                                                                   [path, *SETTINGS]))]
    os.makedirs(MEMORY, exist_ok=True)
    for start in range(0, len(new), at_once):
        some = new[start:start + at_once]
        if subprocess.run([*command, *some], cwd=ROOT, stdin=subprocess.DEVNULL,
                          stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL).returncode == 0:
            for path in some:
                open(remembered([*command, path], [path, *SETTINGS]), "w").close()
    said = [ask([*command, path], [path, *SETTINGS]) for path in paths]
    return [each for each in said if each]


def ask_all(questions):
    """questions: (command, the file it is about). What was said about bad ones."""
    with concurrent.futures.ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        asked = [pool.submit(ask, command, [*closure(path), *SETTINGS])
                 for command, path in questions]
        return [said for said in (job.result() for job in asked) if said]
