"""The tree keeps the rules, and each rule can fail."""
import pytest

import rules
from source import functions, tree


@pytest.fixture(scope="module")
def files():
    return tree()


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_tree_keeps(rule, files):
    faults = rule(files)
    assert not faults, "\n" + "\n".join(faults)


LONG_BODY = "        x++;\n" * 70
BAD = {
    "folder_graph": {"net/a.c": '#include "gateway/walk.h"\n'},
    "includes_from_root": {"net/loop.h": "", "net/a.c": '#include "loop.h"\n'},
    "library_headers": {"gateway/a.c": "#include <nghttp2/nghttp2.h>\n"},
    "function_size": {"net/a.c": "int f(int x)\n{\n" + LONG_BODY + "}\n"},
    "file_size": {"net/a.h": "\n" * 201},
    "banned_calls": {"net/a.c": "void f(char *p) { strcpy (p, q); }\n"},
    "stock_sql": {"origin/a.c": '"UPDATE item SET n = 1"', "origin/b.c": '"insert into hold "\n"values"'},
    "request_walk": {"ARCHITECTURE.md": "<!-- walk:begin -->\n| `gone` | `net/a.c` |\n<!-- walk:end -->"},
    "own_words": {"README.md": "see ../" + "shared/design.md\n"},
    "finished": {"net/a.c": "/* TO" + "DO: the rest */\n"},
    "honest_tests": {"tests/test_a.py": "time.sle" + "ep(3)\n"},
    "header_pairs": {"net/a.h": "int f(void);\n"},
}


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_rule_can_fail(rule):
    assert rule(BAD[rule.__name__])


@pytest.mark.parametrize("rule", rules.RULES, ids=lambda rule: rule.__name__)
def test_rule_passes_what_is_good(rule):
    good = {
        "net/a.c": '#include "net/a.h"\n\nint f(int x) { return (struct s){ x }.x; }\n',
        "net/a.h": "/* net/a.h - an example. */\nint f(int x);\n",
        "gateway/a.c": '/* strcpy( is only spoken of */\n#include "admission/a.h"\n',
        "origin/a.c": '"UPDATE item SET n = 1"',
        "ARCHITECTURE.md": "<!-- walk:begin -->\n| `f` | `net/a.c` |\n<!-- walk:end -->",
    }
    assert not rule(good)


@pytest.mark.parametrize("limit, text", [
    ("parameters", "int f(int a, int b, int c, int (*d)(int, int), int e, int f, int g)\n{\n}\n"),
    ("nests", "int f(void)\n{\nif (a) {\nfor (;;) {\nwhile (b) {\nif (c) {\ndo {\n} while (d);\n}\n}\n}\n}\n}\n"),
    ("at most 80", "/* lint: long - a table of cases */\nint f(int x)\n{\n" + LONG_BODY + LONG_BODY + "}\n"),
])
def test_function_limits(limit, text):
    assert any(limit in fault for fault in rules.function_size({"net/a.c": text}))


def test_long_functions_with_a_reason_have_80_lines():
    text = "/* lint: long - a table of cases */\nint f(int x)\n{\n" + LONG_BODY + "}\n"
    assert not rules.function_size({"net/a.c": text})


def test_literals_are_not_blocks():
    text = ("int f(void)\n{\nif (a) {\nif (b) {\nif (c) {\nif (d) {\n"
            "x = (struct s){ .y = { 1 } };\nstruct t z = { { 2 } };\nreturn (struct s){ 3 };\n"
            "}\n}\n}\n}\n}\n")
    assert [function.nesting for function in functions(text)] == [4]


def test_functions_are_found_after_structs_and_tables():
    text = ("struct s { int x; };\nstatic const int t[] = { 1, 2 };\n"
            "static __attribute__((noinline)) int f(struct s *s,\n  void (*g)(int))\n{\n}\n"
            "int h(void) {\n}\n")
    assert [(f.name, f.line, f.parameters) for f in functions(text)] == [("f", 3, 2), ("h", 7, 0)]
