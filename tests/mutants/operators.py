"""The kinds of faults: the nodes of the syntax tree that may replace a node."""

import ast
import re
from collections.abc import Iterator, Sequence
from copy import copy
from typing import TypeVar

from tests.mutants.sql import is_sql, sql_faults

ItemT = TypeVar("ItemT")

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
_OPPOSITE = {"min": "max", "max": "min", "any": "all", "all": "any"}
_NORMALIZING = {"strip", "lstrip", "rstrip", "lower", "upper", "casefold", "title"}
"""Methods without arguments that return another form of the same text."""
_NOT_NORMALIZING = {
    *(
        "len",
        "range",
        "isinstance",
        "issubclass",
        "cast",
        "super",
        "iter",
        "next",
        "hash",
        "id",
        "enumerate",
        "reversed",
    ),
    *("frozenset", "set", "tuple", "list", "dict", "bool", "int", "float", "str", "bytes", "bytearray", "memoryview"),
}
"""Functions whose result has another type than the argument, or the same elements."""
_WIDER = {"ADMINS": ("OPERATORS",), "OPERATORS": ("READERS", "ADMINS"), "READERS": ("OPERATORS",)}
"""The roles beside each set of roles, in the decorators of operations."""


def replacements(node: ast.AST, parent: ast.AST) -> Iterator[ast.AST]:
    """Yield the faults for a node of the syntax tree."""
    yield from _of_parts(node, parent)
    match node:
        case ast.Compare():
            yield from _comparisons(node)
        case ast.BoolOp():
            yield _with(node, op=ast.Or() if isinstance(node.op, ast.And) else ast.And())
            yield from _smaller_conditions(node)
        case ast.BinOp() | ast.AugAssign() if type(node.op) in _ARITHMETIC:
            yield _with(node, op=_ARITHMETIC[type(node.op)]())
        case ast.UnaryOp(op=ast.Not() | ast.USub()):
            yield node.operand
        case ast.Constant():
            yield from (_with(node, value=value) for value in _constants(node.value))
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


def _of_parts(node: ast.AST, parent: ast.AST) -> Iterator[ast.AST]:
    """Yield the node without one of its parts, or with parts in another order."""
    match node:
        case ast.JoinedStr():
            yield from _sql_in(node)
        case ast.Set():
            yield from _smaller_sets(node)
        case ast.Call():
            yield from _swapped_arguments(node)
            yield from _fewer_arguments(node)
            yield from _other_calls(node, parent)
        case ast.Tuple() | ast.List() if _is_choice(node, parent):
            yield from (_with(node, elts=rest) for rest in _without_one(node.elts))
        case ast.Match() if len(node.cases) > 1:
            yield from (_with(node, cases=rest) for rest in _without_one(node.cases))


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
    """Return other values. A text with a space is SQL, or is for people and is not changed."""
    match value:
        case bool():
            return (not value,)
        case int() | float():
            return (value + 1,)
        case str():
            if is_sql(value):
                return tuple(sql_faults(value))
            return () if " " in value else (value + "XX",)
        case bytes():
            return (value + b"XX",)
    return ()


def _smaller_sets(node: ast.Set) -> Iterator[ast.AST]:
    """Yield the set without each of its elements."""
    if len(node.elts) == 1:
        yield ast.Call(ast.Name("set", ast.Load()), [], [])
        return
    for rest in _without_one(node.elts):
        yield _with(node, elts=rest)


def _swapped_arguments(node: ast.Call) -> Iterator[ast.AST]:
    """Yield the call with two neighbouring arguments in the other order."""
    for at, (first, second) in enumerate(zip(node.args, node.args[1:], strict=False)):
        is_starred = isinstance(first, ast.Starred) or isinstance(second, ast.Starred)
        if not is_starred and ast.dump(first) != ast.dump(second):
            yield _with(node, args=[*node.args[:at], second, first, *node.args[at + 2 :]])


def _smaller_conditions(node: ast.BoolOp) -> Iterator[ast.AST]:
    """Yield the condition without each of its operands."""
    for rest in _without_one(node.values):
        yield rest[0] if len(rest) == 1 else _with(node, values=rest)


def _fewer_arguments(node: ast.Call) -> Iterator[ast.AST]:
    """Yield the call without each of its keyword arguments. A parameter of SQL must be there."""
    if isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Name) and node.func.value.id == "tx":
        return
    for at, keyword in enumerate(node.keywords):
        if keyword.arg is not None:
            yield _with(node, keywords=[*node.keywords[:at], *node.keywords[at + 1 :]])


def _other_calls(node: ast.Call, parent: ast.AST) -> Iterator[ast.AST]:
    """Yield the opposite function, and the argument in place of what a function makes of it."""
    name = node.func.id if isinstance(node.func, ast.Name) else ""
    if name in _OPPOSITE:
        yield _with(node, func=ast.Name(_OPPOSITE[name], ast.Load()))
    if isinstance(parent, ast.Expr | ast.Await | ast.Raise):
        return
    if isinstance(node.func, ast.Attribute) and node.func.attr in _NORMALIZING and not node.keywords:
        yield node.func.value
    is_function = name[:1].islower() or (isinstance(node.func, ast.Attribute) and bool(node.args))
    if not is_function or name in _NOT_NORMALIZING or name in _OPPOSITE or node.keywords:
        return
    if len(node.args) == 1 and not isinstance(node.args[0], ast.Starred | ast.GeneratorExp):
        yield node.args[0]


def _is_choice(node: ast.Tuple | ast.List, parent: ast.AST) -> bool:
    """Return whether the order of the elements has no meaning: values of a constant, of `in`, or of `except`."""
    is_place = isinstance(parent, ast.Assign | ast.AnnAssign | ast.Call | ast.Compare | ast.ExceptHandler)
    plain = (ast.Constant, ast.Name, ast.Attribute)
    return is_place and len(node.elts) > 1 and all(isinstance(each, plain) for each in node.elts)


def _sql_in(node: ast.JoinedStr) -> Iterator[ast.AST]:
    """Yield the faults of SQL in an f-string."""
    text = sql_text(node)
    for other in sql_faults(text) if is_sql(text) else ():
        parts = [each for each in _PLACEHOLDER.split(other) if each]
        yield _with(
            node, values=[node.values[int(part[1:-1])] if part[0] == "\0" else ast.Constant(part) for part in parts]
        )


_PLACEHOLDER = re.compile("(\0\\d+\0)")


def sql_text(node: ast.JoinedStr) -> str:
    """Return the text of an f-string with a placeholder for each value."""
    return "".join(
        str(each.value) if isinstance(each, ast.Constant) else f"\0{at}\0" for at, each in enumerate(node.values)
    )


def roles(node: ast.AST) -> Iterator[tuple[ast.keyword, ast.AST]]:
    """Yield the argument with the roles of an operation, in its decorator, and each other set of roles."""
    if isinstance(node, ast.Call):
        for keyword in node.keywords:
            if keyword.arg == "roles" and isinstance(keyword.value, ast.Name):
                for other in _WIDER.get(keyword.value.id, ()):
                    yield keyword, ast.Name(other, ast.Load())


def _without_one(items: Sequence[ItemT]) -> Iterator[list[ItemT]]:
    for at in range(len(items)):
        yield [*items[:at], *items[at + 1 :]]


def _with(node: ast.AST, **fields: object) -> ast.AST:
    """Return a copy of a node with other fields."""
    other = copy(node)
    for name, value in fields.items():
        setattr(other, name, value)
    return other
