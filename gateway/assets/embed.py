#!/usr/bin/env python3
"""embed.py OUT CSS JS: the page's style and script as C literals, each with
the hash by which the page's content security policy names it. Indentation and
comment lines are left out."""
import base64
import hashlib
import sys


def lean(path):
    lines = (line.strip() for line in open(path, encoding="utf-8"))
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def literal(text):
    out = text.replace("\\", "\\\\").replace('"', '\\"')
    return "\n".join(f'        "{line}\\n"' for line in out.split("\n"))


def main(out, css, js):
    with open(out, "w", encoding="utf-8") as f:
        f.write("/* made by gateway/assets/embed.py */\n")
        for name, path in (("STYLE", css), ("SCRIPT", js)):
            text = lean(path) + "\n"
            digest = base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
            f.write(f"#define GW_PAGE_{name}_SHA256 \"{digest}\"\n")
            f.write(f"static const char gw_page_{name.lower()}[] =\n{literal(text.rstrip(chr(10)))};\n")


main(*sys.argv[1:])
