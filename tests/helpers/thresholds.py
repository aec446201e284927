"""The thresholds of a tree of modules, read off the source: what numbers are compared with."""

import ast
from pathlib import Path

COMPARING = {"clip", "max", "maximum", "min", "minimum", "searchsorted"}
"""Functions that compare their arguments."""
ORDERED = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)


def thresholds(root):
    """Where each number that a module of a tree has a name for decides: (file, name, function).

    A number decides where it is a part of what is compared by order, of an argument of a function
    that compares, or alone says how often a loop runs at most. Where it is an index it does not.
    The file is that in which the number has its name; the function may be in another one.
    """
    trees = {
        path.relative_to(root).as_posix(): ast.parse(path.read_text())
        for path in sorted(Path(root).rglob("*.py"))
    }
    numbers = {file: _numbers(tree) for file, tree in trees.items()}
    found = set()
    for file, tree in trees.items():
        own = {name: (file, name) for name in numbers[file]}
        for node in ast.walk(tree):
            if isinstance(node, ast.ImportFrom) and node.module:
                source = _file_of(node.module, numbers)
                for alias in node.names:
                    if alias.name in numbers.get(source, ()):
                        own[alias.asname or alias.name] = (source, alias.name)
        for function in (node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)):
            for side in _compared(function):
                found |= {(*own[name], function.name) for name in _names(side) if name in own}
    return found


def _file_of(module, numbers):
    words = module.split(".")
    tails = ("/".join(words[at:]) + ".py" for at in range(len(words)))
    return next((tail for tail in tails if tail in numbers), None)


def _numbers(tree):
    """The names of numbers at the top of a module."""
    names = set()
    for node in tree.body:
        if isinstance(node, ast.AnnAssign) and node.value is not None:
            pairs = [(node.target, node.value)]
        elif isinstance(node, ast.Assign):
            (target,) = node.targets
            pairs = [(target, node.value)]
            if isinstance(target, ast.Tuple) and isinstance(node.value, ast.Tuple):
                pairs = list(zip(target.elts, node.value.elts, strict=True))
        else:
            continue
        names |= {one.id for one, value in pairs if isinstance(one, ast.Name) and _is_number(value)}
    return names


def _is_number(value):
    """Whether a value is made of numbers, and of names of other constants."""
    if isinstance(value, ast.Constant):
        return type(value.value) in (int, float)
    if isinstance(value, ast.Name):
        return value.id.isupper()
    if isinstance(value, ast.BinOp):
        return _is_number(value.left) and _is_number(value.right)
    if isinstance(value, ast.Call):
        converts = isinstance(value.func, ast.Name) and value.func.id in ("int", "float")
        return converts and len(value.args) == 1 and _is_number(value.args[0])
    return isinstance(value, ast.UnaryOp) and _is_number(value.operand)


def _compared(function):
    """What a function compares with something, without the functions inside it."""
    for node in _own_nodes(function):
        if isinstance(node, ast.Compare):
            sides = [node.left, *node.comparators]
            for place, operator in enumerate(node.ops):
                if isinstance(operator, ORDERED):
                    yield from sides[place : place + 2]
        elif isinstance(node, ast.Call):
            called = getattr(node.func, "id", getattr(node.func, "attr", None))
            if called in COMPARING or (called == "range" and len(node.args) == 1):
                yield from node.args


def _own_nodes(function):
    for child in ast.iter_child_nodes(function):
        if not isinstance(child, ast.FunctionDef):
            yield child
            yield from _own_nodes(child)


def _names(side):
    """The names in an expression, but for those of indices."""
    if isinstance(side, ast.Name):
        yield side.id
    parts = [side.value] if isinstance(side, ast.Subscript) else ast.iter_child_nodes(side)
    for part in parts:
        yield from _names(part)
