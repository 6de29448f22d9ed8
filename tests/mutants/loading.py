"""Import of the project's files with other code: with recorded statements, or with a fault."""

import ast
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib.abc import MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

RECORD = "__ran__"
"""The built-in function that instrumented code calls before each statement, with a number."""

Code = Callable[[], CodeType]


def import_with(codes: Mapping[Path, Code]) -> None:
    """Import these files with this code from now on."""
    sys.meta_path.insert(0, _Finder({str(file): code for file, code in codes.items()}))


def instrumented(tree: ast.Module, file: Path, first: int, lines: list[int]) -> CodeType:
    """Return the code of a module that calls RECORD before each statement in a function.

    first: the number of the first statement. lines: gets the line of each statement.
    """
    _Instrument(first, lines).visit(tree)
    return compile(ast.fix_missing_locations(tree), str(file), "exec", dont_inherit=True)


class _Instrument(ast.NodeTransformer):
    """Puts the calls into the lists of statements of functions."""

    def __init__(self, first: int, lines: list[int]) -> None:
        self._first = first
        self._lines = lines
        self._depth = 0

    def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.AST:
        return self._in_function(node)

    def visit_AsyncFunctionDef(self, node: ast.AsyncFunctionDef) -> ast.AST:
        return self._in_function(node)

    def generic_visit(self, node: ast.AST) -> ast.AST:
        super().generic_visit(node)
        if self._depth:
            for name in ("body", "orelse", "finalbody"):
                statements = getattr(node, name, None)
                if isinstance(statements, list):
                    setattr(node, name, [each for one in statements for each in (*self._call(one), one)])
        return node

    def _in_function(self, node: ast.AST) -> ast.AST:
        self._depth += 1
        self.generic_visit(node)
        self._depth -= 1
        return node

    def _call(self, statement: ast.stmt) -> list[ast.stmt]:
        """Return the call before a statement. A docstring has none, because it must stay first."""
        if isinstance(statement, ast.Expr) and isinstance(statement.value, ast.Constant):
            return []
        number = self._first + len(self._lines)
        self._lines.append(statement.lineno)
        call = ast.Expr(ast.Call(ast.Name(RECORD, ast.Load()), [ast.Constant(number)], []))
        return [ast.copy_location(call, statement)]


class _Loader(SourceFileLoader):
    def __init__(self, name: str, path: str, code: Code) -> None:
        super().__init__(name, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType:
        return self._code()


class _Finder(MetaPathFinder):
    def __init__(self, codes: Mapping[str, Code]) -> None:
        self._codes = codes

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        spec = PathFinder.find_spec(fullname, path, target)
        if spec is None or spec.origin not in self._codes:
            return None
        spec.loader = _Loader(fullname, spec.origin, self._codes[spec.origin])
        return spec
