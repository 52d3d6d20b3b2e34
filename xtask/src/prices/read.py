"""Prints one member of a wheel as JSON or as it is. Nothing of the package is run.

A member that is Python code is read as literals: the value of its only annotated assignment.
"""

import ast
import json
import sys
import zipfile


def value(node):
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.List):
        return [value(item) for item in node.elts]
    if isinstance(node, ast.Dict):
        return {value(key): value(item) for key, item in zip(node.keys, node.values)}
    if isinstance(node, ast.Call):
        name = node.func.attr if isinstance(node.func, ast.Attribute) else node.func.id
        given = [value(item) for item in node.args]
        if name == "Decimal":
            return given[0]
        if name == "date":
            return "%04d-%02d-%02d" % tuple(given)
        if name == "time":
            return "%02d:%02d" % tuple(given)
        if given:
            raise ValueError("%s has arguments without a name" % name)
        return {"is": name, **{item.arg: value(item.value) for item in node.keywords}}
    raise ValueError("not a literal: " + ast.dump(node))


wheel, member = sys.argv[1:]
text = zipfile.ZipFile(wheel).read(member).decode()
if member.endswith(".py"):
    (found,) = [node for node in ast.parse(text).body if isinstance(node, ast.AnnAssign)]
    text = json.dumps(value(found.value))
sys.stdout.write(text)
