"""An adapter as the pages for a vendor print it is right under strict mypy too."""

from __future__ import annotations

import ast
import re
from pathlib import Path

from mypy import api

ROOT = Path(__file__).parents[3]
CONTRACT = ast.parse((ROOT / "proofmark" / "vendor" / "engine.py").read_text(encoding="utf-8"))

SETTINGS = f"""
[mypy]
strict = true
disallow_untyped_decorators = false
explicit_package_bases = true
mypy_path = {ROOT}
follow_imports = silent
[mypy-torch.*]
follow_imports = skip
"""
"""Torch has its types, and half a minute of them. Its decorators are untyped without."""

BODIES = {"InferFromModel": "self.model = model.eval()", "InferFromOnnx": "assert onnx_path is not None"}


def engine_of(protocol: str) -> str:
    """A class with the signatures that the contract prints."""
    named = {node.name: node for node in CONTRACT.body if isinstance(node, ast.ClassDef)}
    methods = [*named[protocol].body, *named["InferModel"].body]
    lines = [f"class Engine{protocol}:"]
    for method in methods:
        if isinstance(method, ast.FunctionDef):
            body = BODIES[protocol] if method.name == "__init__" else "return inputs, 0.0"
            assert method.returns is not None
            arguments, returns = ast.unparse(method.args), ast.unparse(method.returns)
            lines += [f"    def {method.name}({arguments}) -> {returns}:", f"        {body}"]
    return "\n".join([*lines, f"kept{protocol}: type[{protocol}] = Engine{protocol}", ""])


def test_what_the_pages_print(tmp_path: Path) -> None:
    page = (ROOT / "docs" / "vendor-first-day.md").read_text(encoding="utf-8")
    files = dict(
        re.findall(r"^## [^\n]*`vendors/(acme/\w+\.py)`\n.*?^```python\n(.*?)^```", page, re.DOTALL | re.MULTILINE)
    )
    assert len(files) == 2
    imports = (
        "from __future__ import annotations\nfrom pathlib import Path\nimport torch\nfrom proofmark.vendor import *\n"
    )
    files["acme/contract.py"] = imports + "\n".join(map(engine_of, BODIES))
    (tmp_path / "acme").mkdir()
    for name, text in files.items():
        (tmp_path / name).write_text(text, encoding="utf-8")
    settings = tmp_path / "mypy.ini"
    settings.write_text(SETTINGS, encoding="utf-8")
    output, errors, code = api.run(
        ["--config-file", str(settings), "--cache-dir", str(tmp_path / "cache"), str(tmp_path / "acme")]
    )
    assert code == 0, output + errors
