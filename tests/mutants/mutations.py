"""The mutants of a file: where they are, how they read, and their code.

source = Source.read(root, "src/sallyport/web/scope.py")
for mutant in source.mutants:
    code = source.compiled(mutant)
"""

import ast
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType

from tests.mutants.operators import replacements, roles, sql_text
from tests.mutants.sql import is_sql

MAX_TEXT = 90
"""Maximum length of the code that describes a mutant."""
_FUNCTION = ast.FunctionDef | ast.AsyncFunctionDef
_COMPOUND = (
    *(ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef, ast.arguments, ast.match_case),
    *(ast.If, ast.While, ast.For, ast.AsyncFor, ast.With, ast.AsyncWith, ast.Try, ast.ExceptHandler, ast.Match),
)
_NOT_CODE = ("annotation", "returns", "decorator_list", "type_params")
"""Fields of the syntax tree without behaviour that tests can see, and decorators, which run at the import."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """A fault. line: that of the statement. function: the qualified name of the function or class; empty in a module.

    change: the code before and after. at_import: whether the import of the module runs the code. name: for code that
    runs at import, what the statement assigns.
    """

    path: str
    line: int
    function: str
    change: str
    at_import: bool
    name: str
    is_role: bool
    """Whether the fault is in the roles of an operation."""
    number: int = field(compare=False)
    """Position among the mutants of the file."""

    @property
    def place(self) -> str:
        """The mutant without its line, so that it stays the same if other code changes."""
        return f"{self.path}\t{self.function}\t{self.change}"


@dataclass(frozen=True, slots=True)
class _Fault:
    """A node of the tree that another node replaces. ancestors: from the module to the node's parent."""

    ancestors: tuple[ast.AST, ...]
    field: str
    index: int | None
    old: ast.AST
    new: ast.AST

    def put(self, node: ast.AST) -> None:
        """Set the place of the fault in the tree."""
        parent = self.ancestors[-1]
        if self.index is None:
            setattr(parent, self.field, node)
        else:
            getattr(parent, self.field)[self.index] = node


class Source:
    """A parsed file with its mutants."""

    def __init__(self, path: str, file: Path) -> None:
        self.path = path
        self.file = file
        self.tree = ast.parse(file.read_text())
        self.statements = [node for node in ast.walk(self.tree) if isinstance(node, ast.stmt)]
        self._faults = list(_faults((self.tree,)))
        seen = Counter[str]()
        self.mutants = [_described(path, number, fault, seen) for number, fault in enumerate(self._faults)]

    def compiled(self, mutant: Mutant) -> CodeType:
        """Return the code of the module with the fault."""
        fault = self._faults[mutant.number]
        fault.put(fault.new)
        try:
            return compile(self.tree, str(self.file), "exec", dont_inherit=True)
        finally:
            fault.put(fault.old)

    def assigned_from(self, names: set[str]) -> set[str]:
        """Return the names that statements of the module make of other names."""
        assigns = (node for node in self.tree.body if isinstance(node, ast.Assign | ast.AnnAssign) and node.value)
        return {_name((node,)) for node in assigns if names & names_in(node.value)} - {""}

    def lines_naming(self, names: set[str]) -> set[int]:
        """Return the lines of the statements that use one of the names."""
        lines = {node.lineno for node in ast.walk(self.tree) if _name_of(node) in names}
        return {node.lineno for node in self.statements if lines & set(range(node.lineno, _head_end(node) + 1))}


def names_in(tree: ast.AST) -> set[str]:
    """Return the names and attributes that code uses."""
    return {_name_of(node) for node in ast.walk(tree)} - {""}


def _name_of(node: ast.AST) -> str:
    return node.id if isinstance(node, ast.Name) else node.attr if isinstance(node, ast.Attribute) else ""


def _head_end(node: ast.stmt) -> int:
    """Return the last line of a statement without the statements in it."""
    inner = [each.lineno for each in ast.iter_child_nodes(node) if isinstance(each, ast.stmt)]
    return min(inner) - 1 if inner else node.end_lineno or node.lineno


def _faults(ancestors: tuple[ast.AST, ...]) -> Iterator[_Fault]:
    """Yield the faults below a node, in the order of the source."""
    parent = ancestors[-1]
    for name, value in ast.iter_fields(parent):
        if name == "decorator_list":
            yield from _faults_of_roles(ancestors, value)
        if name in _NOT_CODE:
            continue
        nodes = enumerate(value) if isinstance(value, list) else [(None, value)]
        for index, node in nodes:
            if isinstance(node, ast.AST) and not _is_ignored(node, parent):
                yield from (
                    _Fault(ancestors, name, index, node, _located(new, node)) for new in replacements(node, parent)
                )
                yield from _faults((*ancestors, node))


def _faults_of_roles(ancestors: tuple[ast.AST, ...], decorators: list[ast.expr]) -> Iterator[_Fault]:
    """Yield other roles for an operation."""
    for decorator in decorators:
        for keyword, new in roles(decorator):
            yield _Fault((*ancestors, decorator, keyword), "value", None, keyword.value, _located(new, keyword.value))


def _located(new: ast.AST, old: ast.AST) -> ast.AST:
    """Give a new node the line of the old one."""
    return ast.fix_missing_locations(ast.copy_location(new, old))


def _is_ignored(node: ast.AST, parent: ast.AST) -> bool:
    """Return whether a node has no behaviour, or only that of the log: docstrings, texts for people, types."""
    match node:
        case ast.JoinedStr() | ast.Constant():
            return _is_ignored_text(node, parent)
        case ast.Expr(value=ast.Constant()) | ast.Assert():
            return True
        case (
            ast.Expr(value=ast.Call(func=ast.Attribute(value=ast.Name(id="log"))))
            | ast.Assign(targets=[ast.Name(id="__slots__" | "__all__")])
        ):
            return True
        case ast.If(test=ast.Name(id="TYPE_CHECKING")) | ast.ClassDef(bases=[ast.Name(id="Protocol")]):
            return True
        case ast.Subscript() | ast.BinOp(op=ast.BitOr()):
            return isinstance(parent, ast.Module | ast.ClassDef) or _is_type(node)
    return False


def _is_ignored_text(node: ast.JoinedStr | ast.Constant, parent: ast.AST) -> bool:
    """Return whether a text is a part of an f-string, or an f-string that is not SQL."""
    if isinstance(node, ast.JoinedStr):
        return not is_sql(sql_text(node))
    return isinstance(parent, ast.JoinedStr)


def _is_type(node: ast.AST) -> bool:
    """Return whether an expression is a type with parameters, such as `list[int]`."""
    name = getattr(getattr(node, "value", None), "id", "")
    return (name[:1].isupper() and not name.isupper()) or name in {"dict", "list", "set", "tuple", "frozenset", "type"}


def _described(path: str, number: int, fault: _Fault, seen: Counter[str]) -> Mutant:
    """Return the description of a fault. seen: how often a description has been used in this file."""
    nodes = (*fault.ancestors, fault.old)
    function = ".".join(node.name for node in fault.ancestors if isinstance(node, _FUNCTION | ast.ClassDef))
    change = _change(fault)
    seen[f"{function} {change}"] += 1
    if (count := seen[f"{function} {change}"]) > 1:
        change += f" #{count}"
    outermost = next((at for at, node in enumerate(nodes) if isinstance(node, _FUNCTION)), None)
    # the import of a module evaluates decorators and the defaults of parameters
    at_import = outermost is None or not isinstance(nodes[outermost + 1], ast.stmt) or _is_of_returned_lambda(nodes)
    is_role = isinstance(fault.old, ast.Name)  # no other fault replaces a name
    statement = next(node for node in reversed(nodes) if isinstance(node, ast.stmt))
    if isinstance(statement, _FUNCTION) and at_import:  # otherwise the outer function runs the decorators
        statement = next((node for node in statement.body if not _is_ignored(node, statement)), statement.body[0])
    return Mutant(path, statement.lineno, function, change, at_import, _name(nodes), is_role, number)


def _is_of_returned_lambda(nodes: tuple[ast.AST, ...]) -> bool:
    """Return whether a fault is in a lambda that a function returns: the import may have called the function."""
    returned = [node.value for node in nodes if isinstance(node, ast.Return)]
    return any(isinstance(value, ast.Lambda) and value in nodes for value in returned)


def _change(fault: _Fault) -> str:
    """Return the code before and after the fault, with as much of its statement as is short."""
    shown = fault.old
    for node in reversed(fault.ancestors):
        if isinstance(node, _COMPOUND):
            break
        if isinstance(node, ast.expr | ast.stmt) and len(ast.unparse(node)) <= MAX_TEXT:
            shown = node
    before = _text(shown)
    fault.put(fault.new)
    after = _text(fault.new if shown is fault.old else shown)
    fault.put(fault.old)
    begin = _begin_of_difference(before, after) if max(len(before), len(after)) > 2 * MAX_TEXT else 0
    return f"{before[begin:][: 2 * MAX_TEXT]} -> {after[begin:][: 2 * MAX_TEXT]}"


def _begin_of_difference(before: str, after: str) -> int:
    """Return a position in both texts a few words before their difference."""
    same = next((at for at, (a, b) in enumerate(zip(before, after, strict=False)) if a != b), 0)
    return before.rfind(" ", 0, max(same - MAX_TEXT // 2, 0)) + 1


def _text(node: ast.AST) -> str:
    """Return the code of a node in one line. Of a condition with a block, return the condition."""
    text = ast.unparse(node.test if isinstance(node, ast.If | ast.While) else node)
    return " ".join(text.split())


def _name(nodes: tuple[ast.AST, ...]) -> str:
    """Return the name that a statement outside of functions assigns, or that of the function with a default."""
    for node in reversed(nodes):
        match node:
            case ast.Assign(targets=[ast.Name(id=name), *_]) | ast.AnnAssign(target=ast.Name(id=name)):
                return name
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                return name
    return ""
