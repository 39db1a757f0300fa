"""Writes text files as C strings: embed.py OUT.c NAME=FILE..."""
import sys

out, *pairs = sys.argv[1:]
with open(out, "w") as c:
    c.write('#include "origin/sql.h"\n')
    for pair in pairs:
        name, path = pair.split("=", 1)
        data = open(path, "rb").read()
        c.write(f"\nconst char {name}[] = {{")
        for i, byte in enumerate(data + b"\0"):
            c.write("\n        " if i % 16 == 0 else " ")
            c.write(f"{byte},")
        c.write("\n};\n")
