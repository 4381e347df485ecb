"""What the four switches leave of the seven steps, and which combinations cannot be run.

Source: the FlagPerf inference specification, section 2.2.3. `compiler: null` ends after framework
validation; `no_validation` skips the model, its validation and export and demands `exist_onnx_path`;
`exist_onnx_path` skips export; `exist_compiler_path` skips compilation.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from proofmark.errors import Problem
from proofmark.rules.config import EffectiveConfig
from proofmark.vendor.engine import Compiler


@dataclass
class Plan:
    """Which steps, the audit among them, are skipped and why; `problems` is what makes the combination impossible."""

    skipped: dict[str, str] = field(default_factory=dict)
    problems: list[Problem] = field(default_factory=list)
    warnings: list[str] = field(default_factory=list)


def make_plan(config: EffectiveConfig, compiler: Compiler | None, here: bool = True) -> Plan:
    """Plan a case run.

    Args:
        config: the effective configuration.
        compiler: what the vendor declares of the compiler, None where `compiler` is null.
        here: whether it runs on this machine, so that its files must be here.
    """
    plan = Plan()
    if compiler is not None and compiler.consumes == "model":
        plan.skipped["export"] = f"compiler {config.compiler} takes the framework's model"
    if config.exist_compiler_path is not None:
        plan.skipped["compile"] = f"exist_compiler_path is {config.exist_compiler_path}"
        plan.skipped.setdefault("export", "exist_compiler_path makes it unnecessary")
    if config.exist_onnx_path is not None:
        unread = compiler is not None and "export" in plan.skipped
        if unread and not config.no_validation:  # which demands one, if only a word
            plan.warnings.append(f"exist_onnx_path has no effect: {plan.skipped['export']}")
        plan.skipped.setdefault("export", f"exist_onnx_path is {config.exist_onnx_path}")
    if config.no_validation:
        plan.skipped["framework_validation"] = "no_validation is true"
        plan.skipped.setdefault("export", "no_validation is true")
    if compiler is None:
        plan.skipped |= dict.fromkeys(("export", "compile", "engine_inference"), "compiler is null")
        plan.warnings += [
            f"{key} has no effect while compiler is null"
            for key in ("exist_onnx_path", "exist_compiler_path")
            if config[key] is not None
        ]
    if why := _unaudited(config, compiler):
        plan.skipped["audit"] = why
    plan.problems += _contradictions(config, compiler)
    plan.problems += _missing_files(config, compiler) if here else []
    return plan


def reads_given_onnx(config: EffectiveConfig, compiler: Compiler | None) -> bool:
    """Whether the run opens the file in `exist_onnx_path`, if there is one."""
    return compiler is not None and compiler.consumes == "onnx" and config.exist_compiler_path is None


def _unaudited(config: EffectiveConfig, compiler: Compiler | None) -> str | None:
    """Why no second engine can be held against the measured one: both must be made of the framework's model."""
    if config.no_validation or compiler is None or config.exist_compiler_path is not None:
        return "an audit compiles the framework's model a second time"
    if config.exist_onnx_path is not None and reads_given_onnx(config, compiler):  # another graph than an export's
        return "an audit compiles an export of the framework's model, and the engine is of the file in exist_onnx_path"
    return None


def _contradictions(config: EffectiveConfig, compiler: Compiler | None) -> list[Problem]:
    where = f"case {config.case}"
    problems = []
    if config.no_validation and config.exist_onnx_path is None:
        problems.append(Problem(where, "no_validation", "true requires exist_onnx_path: there is no model to export"))
    if config.no_validation and compiler is None:
        what = "true and compiler null leave nothing to measure; change one of them"
        problems.append(Problem(where, "no_validation", what))
    if config.no_validation and compiler is not None and compiler.consumes == "model":
        what = f"true leaves no model, which compiler {config.compiler} takes; use a compiler that takes ONNX"
        problems.append(Problem(where, "no_validation", what))
    if config.exist_compiler_path is not None and compiler is not None and not compiler.loads_compiled:
        what = f"compiler {config.compiler} cannot load a compiled engine; remove it"
        problems.append(Problem(where, "exist_compiler_path", what))
    return problems


def _missing_files(config: EffectiveConfig, compiler: Compiler | None) -> list[Problem]:
    """Files that the run will open. The ONNX path may be any word where no ONNX file is read."""
    problems = []
    opened = {"exist_onnx_path": reads_given_onnx(config, compiler), "exist_compiler_path": compiler is not None}
    for key, read in opened.items():
        if read and (path := config[key]) is not None and not Path(path).is_file():
            what = f"{path} is a folder; expected a file" if Path(path).is_dir() else f"no such file: {path}"
            problems.append(Problem(f"case {config.case}", key, what))
    return problems
