"""The rules a machine checks. Each takes {path: text} and returns its faults,
`path:line: what`; test_rules.py proves of each that it can fail."""
import re

from source import bare, c_files, functions, line_of, without_comments

FOLDERS = {
    "admission": set(),
    "net": set(),
    "conf": {"net"},
    "origin": {"conf", "net"},
    "gateway": {"admission", "conf", "net"},
    "loadgen": {"admission", "net"},
}

# Which files may include a library's headers.
LIBRARIES = {
    r"ev\.h": r"net/loop\.c",
    r"nghttp2/": r"net/h2_\w+\.[ch]",
    r"llhttp": r"net/(h1_|http11_)\w+\.[ch]",
    r"openssl/": r"net/(tls|jw|sha256|mac|random)\w*\.[ch]|admission/(account|ticket|pass|mac)\w*\.c"
                 r"|gateway/guest\w*\.c|loadgen/peers/visits\.c",
    r"libpq-fe\.h": r"origin/(pool\w*|db\w*)\.[ch]|loadgen/strategies/\w+\.[ch]",
    r"hiredis": r"gateway/store_redis\.c|origin/relay_redis\.c|loadgen/strategies/\w+\.[ch]",
    r"yaml\.h": r"conf/\w+\.c",
}

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]+[<"]([^>"]+)[>"]', re.MULTILINE)


def includes(text):
    code = without_comments(text)
    return [(line_of(code, match.start(1)), match[1]) for match in INCLUDE.finditer(code)]


def folder_graph(files):
    """A folder includes only what the graph allows."""
    faults = []
    for path, text in c_files(files).items():
        folder = path.partition("/")[0]
        if folder not in FOLDERS:
            continue
        for line, name in includes(text):
            other = name.partition("/")[0]
            if other in FOLDERS and other != folder and other not in FOLDERS[folder]:
                faults.append(f"{path}:{line}: {folder} must not include {name}")
    return faults


def includes_from_root(files):
    """Headers of ours are named from the root: `net/loop.h`, never `loop.h`."""
    ours = {path.rpartition("/")[2]: path for path in files if path.endswith(".h")}
    return [f"{path}:{line}: include {ours[name]} by its whole name"
            for path, text in c_files(files).items() for line, name in includes(text)
            if name in ours and f"<{name}>" not in text and not path.startswith("tests/")]


def library_headers(files):
    """A library's headers stay in the few files that hide it."""
    return [f"{path}:{line}: {name} belongs in {allowed}"
            for path, text in c_files(files).items() for line, name in includes(text)
            for library, allowed in LIBRARIES.items()
            if re.match(library, name) and not path.startswith("tests/")
            and not re.fullmatch(allowed, path)]


LONG = re.compile(r"lint: long\W+\w+")
LIBRARY_FILES = re.compile(r"(net/(tls|h1_|http11_|h2_)\w*|tests/unit/h2_oracle)\.c")


def function_size(files):
    """60 lines; 80 under a comment `lint: long` with the reason. 6 parameters, save
    in callbacks, whose prototype is a library's. Nesting 4."""
    faults = []
    for path, text in c_files(files).items():
        lines = text.splitlines()
        for function in functions(text):
            above = "\n".join(lines[max(0, function.line - 8):function.line])
            most = 80 if LONG.search(above) else 60
            where = f"{path}:{function.line}: {function.name}"
            if function.body_lines > most:
                faults.append(f"{where} has {function.body_lines} lines, at most {most}")
            if function.parameters > 6 and not (
                    function.name.startswith(("on_", "read_")) and LIBRARY_FILES.fullmatch(path)):
                faults.append(f"{where} has {function.parameters} parameters, at most 6")
            if function.nesting > 4:
                faults.append(f"{where} nests {function.nesting} deep, at most 4")
    return faults


def file_size(files):
    """600 lines a .c file, 200 a header."""
    faults = []
    for path, text in c_files(files).items():
        most = 200 if path.endswith(".h") else 600
        count = text.count("\n")
        if count > most:
            faults.append(f"{path}:{count}: {count} lines, at most {most}")
    return faults


BANNED = re.compile(r"\b(strcpy|strcat|sprintf|vsprintf|strtok|atoi|atol|gmtime|localtime|alloca|gets)\s*\(")


def banned_calls(files):
    """Calls that cannot be made safe, or that hide a static buffer."""
    return [f"{path}:{line_of(code, match.start())}: {match[1]} is banned"
            for path, text in c_files(files).items() for code in [bare(text)]
            for match in BANNED.finditer(code)]


STOCK_WRITE = re.compile(r"\b(?:INSERT\s+INTO|UPDATE|DELETE\s+FROM|MERGE\s+INTO)\s+"
                         r"(?:ONLY\s+)?(?:\w+\.)?(?:items?|holds?)\b", re.IGNORECASE)


def stock_sql(files):
    """SQL that writes stock stands in one file."""
    writers = {}
    for path, text in files.items():
        if path.startswith(("tests/", "docs/", "loadgen/strategies/")) or not path.endswith((".c", ".h", ".sql", ".in")):
            continue
        code = re.sub(r'"\s*\n\s*"', "\n", without_comments(text))
        match = STOCK_WRITE.search(code)
        if match:
            writers[path] = match[0]
    if len(writers) <= 1:
        return []
    return [f"{path}:1: writes stock ({' '.join(words.split())}), as do others: {', '.join(writers)}"
            for path, words in sorted(writers.items())]


WALK = re.compile(r"<!-- walk:begin -->(.*?)<!-- walk:end -->", re.DOTALL)


def request_walk(files):
    """The functions that ARCHITECTURE.md names in its table of the request walk
    exist, in the file that the row names."""
    text = files.get("ARCHITECTURE.md", "")
    section = WALK.search(text)
    rows = [line for line in section[1].splitlines() if line.startswith("|")] if section else []
    steps = [(row, name) for row in rows for name in re.findall(r"`([a-z]\w*)(?:\(\))?`", row)]
    if not steps:
        return ["ARCHITECTURE.md:1: no table of the request walk that names functions"]
    defined = {}
    for path, code in c_files(files).items():
        for function in functions(code):
            defined.setdefault(function.name, []).append(path)
    faults = []
    for row, name in steps:
        paths = re.findall(r"\b(\w+/\w+\.c)\b", row)
        if not set(defined.get(name, [])) & set(paths or defined.get(name, [])):
            faults.append(f"ARCHITECTURE.md:1: the walk names {name} ({', '.join(paths)}), "
                          f"which is defined in {defined.get(name, 'no file')}")
    return faults


WORKPLACE = re.compile("|".join([r"\.\./" + "shared", "/wor" + r"k/(main|shared|\.lib)", "/tmp/" + "notes",
                                 "sub-?" + "agent"]), re.IGNORECASE)


def own_words(files):
    """The project speaks of itself alone, not of the place it is written at."""
    return [f"{path}:{line_of(text, match.start())}: names something of the workplace: {match[0]}"
            for path, text in files.items() for match in WORKPLACE.finditer(text)]


UNFINISHED = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|XX" + r"X|HA" + r"CK)\b|not imple" + "mented|place" + "holder|for no" + r"w\b")


def finished(files):
    """No unfinished words in code."""
    return [f"{path}:{line_of(text, match.start())}: unfinished: {match[0]}"
            for path, text in files.items()
            if path.endswith((".c", ".h", ".py", ".sh", ".sql", ".html", ".js"))
            for match in UNFINISHED.finditer(text)]


SKIPS = re.compile(r"pytest\.(mark\.)?sk" + r"ip|xfa" + r"il|time\.sle" + r"ep\(\s*([1-9]|0?\.[2-9])|\bsk" + r"ip\(\)")


def honest_tests(files):
    """No test is skipped or expected to fail; none waits on time."""
    return [f"{path}:{line_of(text, match.start())}: {match[0]}"
            for path, text in files.items() if path.startswith("tests/") and path.endswith((".py", ".c"))
            for match in SKIPS.finditer(text)]


def header_pairs(files):
    """Every .c but a main has its header, and opens with what it is."""
    faults = []
    for path, text in c_files(files).items():
        if path.startswith("tests/"):
            continue
        if path.endswith(".h") and not text.startswith(f"/* {path} - "):
            faults.append(f"{path}:1: opens with `/* {path} - what this is`")
    return faults


RULES = [folder_graph, includes_from_root, library_headers, function_size, file_size,
         banned_calls, stock_sql, request_walk, own_words, finished, honest_tests, header_pairs]
