"""Both compilers at full warnings, each header alone, clang-tidy, clang-format."""
import os

import pytest

import compilers
from source import ROOT, tree


@pytest.fixture(scope="module")
def names():
    return sorted(path for path in tree() if path.endswith((".c", ".h")))


def check(questions):
    said = compilers.ask_all(questions)
    assert not said, "\n" + "\n".join(said)


def alone(compiler, path):
    """Compiles a file that includes nothing but this header."""
    return [compiler, *compilers.flags(), "-fsyntax-only", "-Wno-unused-macros", "-include", path,
            "-x", "c", os.path.join(ROOT, "tests/lint/nothing.c")]


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_each_header_compiles_alone(compiler, names):
    check([(alone(compiler, path), path) for path in names if path.endswith(".h")])


def test_clang_has_no_warning_in_tests(names):
    check([(["clang", *compilers.flags_of(path), "-fsyntax-only", path], path)
           for path in names if path.endswith(".c") and path.startswith("tests/")])


def test_clang_tidy_is_content_and_clang_has_no_warning(names):
    """One reading of a file for both: clang's warnings are tidy's clang-diagnostic-*."""
    check([(["clang-tidy", "--quiet", path, "--", *compilers.flags_of(path)], path)
           for path in names if path.endswith(".c") and not path.startswith("tests/")])


def test_clang_format_is_content(names):
    said = compilers.ask_together(["clang-format", "--dry-run", "-Werror"], names)
    assert not said, "\n" + "\n".join(said)


@pytest.mark.parametrize("tool, text", [
    (lambda path: ["gcc", *compilers.flags(), "-fsyntax-only", path], "int f(long x) { return x; }\n"),
    (lambda path: ["clang", *compilers.flags(), "-fsyntax-only", path], "struct s { size_t x; };\n"),
    (lambda path: ["clang-tidy", "--quiet", path, "--", "-std=gnu11"],
     "int f(int *p);\nint f(int *p)\n{\n        p = 0;\n        return *p;\n}\n"),
    (lambda path: ["clang-tidy", "--quiet", path, "--", *compilers.flags()],
     "int f(long x);\nint f(long x)\n{\n        return x;\n}\n"),
    (lambda path: ["clang-format", "--dry-run", "-Werror", path], "int  f( void );\n"),
], ids=["gcc", "clang", "clang-tidy", "clang-by-tidy", "clang-format"])
def test_tool_can_fail(tool, text, tmp_path):
    path = tmp_path / "bad.c"
    path.write_text(text)
    for setting in (".clang-tidy", ".clang-format"):
        (tmp_path / setting).symlink_to(os.path.join(ROOT, setting))
    assert compilers.ask(tool(str(path)), [])
