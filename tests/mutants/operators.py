"""The kinds of faults: the nodes of the syntax tree that may replace a node."""

import ast
from collections.abc import Iterator, Sequence
from copy import copy

_COMPARISONS: dict[type[ast.cmpop], tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
}
"""The boundary and the opposite of each comparison."""
_ARITHMETIC: dict[type[ast.operator], type[ast.operator]] = {
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.FloorDiv,
    ast.Div: ast.Mult,
    ast.FloorDiv: ast.Mult,
    ast.Mod: ast.FloorDiv,
    ast.LShift: ast.RShift,
    ast.RShift: ast.LShift,
    ast.BitAnd: ast.BitOr,
    ast.BitOr: ast.BitAnd,
    ast.BitXor: ast.BitAnd,
}
_PLAIN = (ast.Name, ast.Attribute, ast.Call, ast.Await, ast.NamedExpr, ast.Subscript)
"""Conditions that no other kind of fault changes."""


def replacements(node: ast.AST) -> Iterator[ast.AST]:
    """Yield the faults for a node of the syntax tree."""
    match node:
        case ast.Compare():
            yield from _comparisons(node)
        case ast.BoolOp():
            yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
        case ast.BinOp() | ast.AugAssign() if type(node.op) in _ARITHMETIC:
            yield _with(node, op=_ARITHMETIC[type(node.op)]())
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node.operand
        case ast.Constant():
            yield from (_with(node, value=value) for value in _constants(node.value))
        case ast.Set():
            yield from _smaller_sets(node)
        case ast.Call():
            yield from _swapped_arguments(node)
        case ast.If() | ast.While() | ast.IfExp() if isinstance(node.test, _PLAIN):
            yield _with(node, test=ast.UnaryOp(ast.Not(), node.test))
        case ast.comprehension() if node.ifs and isinstance(node.ifs[0], _PLAIN):
            yield _with(node, ifs=[ast.UnaryOp(ast.Not(), node.ifs[0]), *node.ifs[1:]])
        case ast.Return() if node.value is not None and not isinstance(node.value, ast.Constant):
            yield _with(node, value=ast.Constant(None))
        case ast.Break():
            yield ast.Continue()
    if _may_be_deleted(node):
        yield ast.Pass()


def _may_be_deleted(node: ast.AST) -> bool:
    """Return whether a statement can be missing without an unknown name after it."""
    match node:
        case ast.Expr():
            return isinstance(node.value, ast.Call | ast.Await)
        case ast.Assign():
            return all(isinstance(target, ast.Attribute | ast.Subscript) for target in node.targets)
        case ast.AugAssign() | ast.Raise() | ast.Delete() | ast.Continue():
            return True
    return False


def _comparisons(node: ast.Compare) -> Iterator[ast.AST]:
    for at, operator in enumerate(node.ops):
        for other in _COMPARISONS[type(operator)]:
            yield _with(node, ops=[*node.ops[:at], other(), *node.ops[at + 1 :]])


def _constants(value: object) -> Sequence[object]:
    """Return other values. A text with a space is for people, and is left alone."""
    match value:
        case bool():
            return (not value,)
        case int() | float():
            return (value + 1,)
        case str():
            return () if " " in value else (value + "XX",)
        case bytes():
            return (value + b"XX",)
    return ()


def _smaller_sets(node: ast.Set) -> Iterator[ast.AST]:
    """Yield the set without each of its elements."""
    if len(node.elts) == 1:
        yield ast.Call(ast.Name("set", ast.Load()), [], [])
        return
    for at in range(len(node.elts)):
        yield _with(node, elts=[*node.elts[:at], *node.elts[at + 1 :]])


def _swapped_arguments(node: ast.Call) -> Iterator[ast.AST]:
    """Yield the call with two neighbouring arguments in the other order."""
    for at, (first, second) in enumerate(zip(node.args, node.args[1:], strict=False)):
        is_starred = isinstance(first, ast.Starred) or isinstance(second, ast.Starred)
        if not is_starred and ast.dump(first) != ast.dump(second):
            yield _with(node, args=[*node.args[:at], second, first, *node.args[at + 2 :]])


def _with(node: ast.AST, **fields: object) -> ast.AST:
    """Return a copy of a node with other fields."""
    other = copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other
