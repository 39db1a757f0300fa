"""Reading C just well enough: comments and strings blanked, functions found."""
import os
import re
import subprocess
from dataclasses import dataclass

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def tree():
    """{path: text} of all that belongs to the project, committed or about to be."""
    names = subprocess.run(["git", "ls-files", "-co", "--exclude-standard", "-z"], cwd=ROOT,
                           check=True, stdout=subprocess.PIPE, text=True).stdout.split("\0")
    files = {}
    for name in filter(None, names):
        try:
            with open(os.path.join(ROOT, name), encoding="utf-8") as file:
                files[name] = file.read()
        except (UnicodeDecodeError, FileNotFoundError, IsADirectoryError):
            continue
    return files


def c_files(files):
    return {path: text for path, text in files.items() if path.endswith((".c", ".h"))}


TOKEN = re.compile(r'/\*.*?\*/|//[^\n]*|"(?:[^"\\\n]|\\.)*"|\'(?:[^\'\\\n]|\\.)*\'', re.DOTALL)


def without_comments(text):
    """Comments become blanks; lines and columns stay. Strings stay."""
    def blank(match):
        word = match[0]
        return re.sub(r"[^\n]", " ", word) if word.startswith("/") else word
    return TOKEN.sub(blank, text)


def bare(text):
    """Comments, strings and preprocessor lines become blanks; columns stay."""
    text = TOKEN.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)
    directive = re.compile(r"^[ \t]*#(?:[^\n]*\\\n)*[^\n]*", re.MULTILINE)
    return directive.sub(lambda match: re.sub(r"[^\n]", " ", match[0]), text)


def line_of(text, offset):
    return text.count("\n", 0, offset) + 1


@dataclass
class Function:
    name: str
    line: int        # of its name
    body_lines: int  # from the opening to the closing brace, both counted
    parameters: int
    nesting: int     # deepest block inside the body; the body itself is 0


OPENING = re.compile(r"\b(\w+)\s*\(((?:[^()]|\((?:[^()]|\([^()]*\))*\))*)\)\s*\{")
BLOCK = re.compile(r"(\)|\belse|\bdo)\s*$|(:|;|\{|\})\s*$")
CONTROL = {"if", "while", "for", "switch"}


def matching_brace(code, start):
    depth = 0
    for offset in range(start, len(code)):
        if code[offset] == "{":
            depth += 1
        elif code[offset] == "}":
            depth -= 1
            if depth == 0:
                return offset
    return len(code) - 1


def count_parameters(inside):
    inside = inside.strip()
    if inside in ("", "void"):
        return 0
    depth, count = 0, 1
    for char in inside:
        depth += (char in "([") - (char in ")]")
        count += char == "," and depth == 0
    return count


def deepest_block(body):
    """Counts braces that open statements, not initialisers or literals."""
    depth = deepest = 0
    stack = []
    for offset, char in enumerate(body):
        if char == "{":
            before = body[:offset]
            is_block = (all(stack[-1:]) and bool(BLOCK.search(before))
                        and not opens_literal(before))
            stack.append(is_block)
            depth += is_block
            deepest = max(deepest, depth)
        elif char == "}" and stack:
            depth -= stack.pop()
    return deepest


def opens_literal(before):
    """True when `(type)` and not `if (…)` stands before the brace."""
    before = before.rstrip()
    if not before.endswith(")"):
        return False
    depth = 0
    for offset in range(len(before) - 1, -1, -1):
        depth += (before[offset] == ")") - (before[offset] == "(")
        if depth == 0:
            word = re.search(r"(\w+)\s*$", before[:offset])
            return not word or word[1] == "return" or not (
                word[1] in CONTROL or word[1].endswith("_for_each") or word[1].isupper()
                or "foreach" in word[1])
    return False


def functions(text):
    code = bare(text)
    found, offset = [], 0
    while True:
        brace = code.find("{", offset)
        if brace < 0:
            return found
        end = matching_brace(code, brace)
        head_from = max(code.rfind(mark, 0, brace) for mark in ";}")
        head = code[max(head_from, offset - 1) + 1:brace + 1]
        match = None
        for match in OPENING.finditer(head):
            pass
        if match and match[1] not in CONTROL | {"__attribute__"} and match.end() == len(head):
            line = line_of(code, brace + 1 - len(head) + match.start(1))
            found.append(Function(match[1], line,
                                  line_of(code, end) - line_of(code, brace) + 1,
                                  count_parameters(match[2]),
                                  deepest_block(code[brace + 1:end])))
        offset = end + 1
