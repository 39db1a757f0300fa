"""What the kernel says about a process and all that it started."""
import os
import time

from run.process import Failed


def read(path):
    try:
        with open(path, encoding="ascii", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


def tasks(pid):
    try:
        return [f"/proc/{pid}/task/{task}" for task in os.listdir(f"/proc/{pid}/task")]
    except OSError:
        return []


def tree(pid):
    """The process and its descendants, parents first."""
    pids = [pid]
    for one in pids:
        for task in tasks(one):
            pids += map(int, read(f"{task}/children").split())
    return pids


def cpu_ns(pid):
    """CPU time of all threads of the tree, in the scheduler's nanoseconds."""
    times = [read(f"{task}/schedstat").split() for one in tree(pid) for task in tasks(one)]
    if not any(times):
        raise Failed(f"process {pid} is gone, or the kernel keeps no schedstat")
    return sum(int(fields[0]) for fields in times if fields)


def settled_cpu_ns(pid, at_most_s=3):
    """The same once the server has come to rest: closing connections is its work, too."""
    deadline = time.monotonic() + at_most_s
    last = cpu_ns(pid)
    while True:
        time.sleep(0.05)
        now = cpu_ns(pid)
        if now - last < 500_000 or time.monotonic() > deadline:
            return now
        last = now


def pss_kib(pid):
    """Memory of the tree; a page that several processes share is divided among them."""
    rows = [line.split() for one in tree(pid)
            for line in read(f"/proc/{one}/smaps_rollup").splitlines()]
    return sum(int(row[1]) for row in rows if row[0] == "Pss:")
