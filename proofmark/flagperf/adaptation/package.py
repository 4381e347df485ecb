"""The vendor's package: a skeleton that runs on whatever accelerator torch finds, and what FlagPerf's files know."""

from __future__ import annotations

import ast
import re
from importlib.util import find_spec
from pathlib import Path

from proofmark.flagperf.adaptation.layout import class_name
from proofmark.flagperf.adaptation.moved import Moved
from proofmark.flagperf.adaptation.python.code import (
    attributes_in,
    functions_of,
    names_in,
    packages_in,
    returned_by,
    unreadable,
    variables_set,
)
from proofmark.flagperf.adaptation.python.literals import quoted
from proofmark.flagperf.adaptation.settings.environment_files import lowers_precision
from proofmark.rules.yaml.arithmetic import parse_product
from proofmark.rules.yaml.strict import text_of
from proofmark.vendor.hardware.chips import MOST

SKELETON = '''"""Devices of {vendor}, as torch knows them. Made of an adaptation to FlagPerf; drivers know more."""

from __future__ import annotations

from proofmark.vendor import Compiler, Device, Vendor

PRECISIONS = frozenset({precisions})


class {name}(Vendor):
    """The accelerators that torch finds."""

    compilers = {{
{compilers}
    }}
    default_compiler = "{default}"
    framework_precisions = training_precisions = PRECISIONS
    distributed_backend = "{backend}"
    visible_devices_variable = {variable}

    def devices(self) -> list[Device]:
        import torch

        if torch.accelerator.current_accelerator() is None:
            return []
        return [Device(index, self.chip()) for index in range(torch.accelerator.device_count())]

    def devices_sought(self) -> list[str]:
        return ["torch.accelerator.current_accelerator(): none; is the vendor's torch installed?"]

    def synchronize(self) -> None:
        import torch

        torch.accelerator.synchronize()

    def torch_device(self) -> str:
        import torch

        accelerator = torch.accelerator.current_accelerator()
        return accelerator.type if accelerator else "cpu"

    def chip(self) -> str:
        import torch

        found = torch.get_device_module()
        return str(found.get_device_name(0)) if torch.accelerator.device_count() else "no device"


vendor = {name}()
'''

EAGER = '''"""Plain torch on the vendor's device: the engine that adds nothing."""

from __future__ import annotations

from pathlib import Path

import torch

from proofmark.vendor import EffectiveConfig

DTYPES = {"fp32": torch.float32, "tf32": torch.float32, "fp16": torch.float16, "bf16": torch.bfloat16}


class InferModel:
    """The framework's model at the tested precision."""

    def __init__(self, config: EffectiveConfig, onnx_path: Path | None, model: torch.nn.Module) -> None:
        self.dtype, self.device = DTYPES[config.effective_precision], torch.accelerator.current_accelerator()
        self.model = model.to(self.device, self.dtype).eval()

    @torch.inference_mode()
    def __call__(self, inputs: list[torch.Tensor]) -> tuple[list[torch.Tensor], float]:
        moved = [each.to(self.device) for each in inputs]
        output = self.model(*(each.to(self.dtype) if each.is_floating_point() else each for each in moved))
        return [output] if isinstance(output, torch.Tensor) else list(output), 0.0
'''


EITHER = "fp32_or_tf32_flops"


def move_package(moved: Moved) -> None:
    """Write the package, what it needs and its chips."""
    for path in moved.checkout.analyses:
        _move_peaks(moved, path)
    for path in moved.checkout.monitors:
        moved.tell(path, 0, "", None, "by hand", here=f"{moved.package}/__init__.py: monitor()")
    for path in moved.checkout.images:
        made = path.name == "Dockerfile"
        why = "write it there, or give the image by --container IMAGE" if made else "its steps are RUN lines there"
        moved.tell(path, 0, "", None, "by hand", here=f"{moved.package}/Containerfile", why=why)
    for path in moved.checkout.elsewhere:
        moved.tell(path, 0, "", None, "unknown", why="there is no suite of it here")
    engines = _move_engines(moved)
    _write_skeleton(moved, engines)
    _write_needs(moved)
    _write_chips(moved)


def _move_engines(moved: Moved) -> dict[str, str]:
    """Each compiler's module as it is; what its declaration says: whether it takes the exported file or the model, and
    whether it loads what it has compiled before."""
    engines = {}
    root = moved.checkout.root
    for path in moved.checkout.engines:
        if why := unreadable(path, root):
            moved.tell(path, 0, "", None, "refused", why=why)
            continue
        if not path.stem.isidentifier():
            why = "its name cannot be a module's: only letters, digits and underscores may be in it"
            moved.tell(path, 0, "", None, "by hand", here=f"{moved.package}/", why=why)
            continue
        if "__call__" not in {name for name, _ in functions_of(path, root)}:
            moved.tell(path, 0, "", None, "by hand", why="defines no InferModel that can be called")
            continue
        target = f"{moved.package}/{path.stem}.py"
        loads = ", loads_compiled=True" if "exist_compiler_path" in attributes_in(path, root) else ""
        engines[path.stem] = f'consumes="{"onnx" if "onnx_path" in names_in(path, root) else "model"}"{loads}'
        moved.files[target] = text_of(path, root)
        why = "answers are plain tensors; " + _of_foo_time(returned_by(path, root, "__call__"))
        moved.tell(path, 0, "", None, "taken over", here=target, why=why)
        if missing := [name for name in packages_in(path, root) if not _can_be_imported(name)]:
            why = f"it imports what is not installed here: {', '.join(missing)}"
            moved.tell(path, 0, "", None, "by hand", here=target, why=why)
        for name, value, line in variables_set(path, root):
            if lower := lowers_precision(value, name):
                moved.tell(path, line, name, value, "by hand", here=target, why=f"it is set there as it was; {lower}")
    return engines


def _can_be_imported(package: str) -> bool:
    """Whether a package could be imported here, which this does not do."""
    try:
        return find_spec(package) is not None
    except ValueError:  # of one that is imported and has none
        return True


def _of_foo_time(returned: list[ast.expr]) -> str:
    """What to do about the second value that a call returns."""
    if len(returned) == 2 and isinstance(returned[1], ast.Constant) and returned[1].value == 0:
        return "foo_time stays 0.0"
    return "its foo_time may be other than 0.0, which is FAIL_HONESTY unless InferModel.foo_time_reason says why"


def _write_skeleton(moved: Moved, engines: dict[str, str]) -> None:
    facts, vendor = moved.facts, moved.checkout.vendor
    moved.files.setdefault(f"{moved.package}/eager.py", EAGER)
    compilers = {"eager": 'consumes="model"'} | engines
    lines = [f'        "{name}": Compiler(PRECISIONS, {how}),' for name, how in compilers.items()]
    precisions = sorted({"fp32"} | facts.precisions)
    moved.files[f"{moved.package}/__init__.py"] = SKELETON.format(
        vendor=vendor,
        name=class_name(vendor),
        precisions="{" + ", ".join(f'"{each}"' for each in precisions) + "}",
        compilers="\n".join(lines),
        default=facts.compiler if facts.compiler in engines else "eager",
        backend=facts.backend[0] if facts.backend else "gloo",
        variable=f'"{facts.visible_devices_variable}"' if facts.visible_devices_variable else "None",
    )


def _write_needs(moved: Moved) -> None:
    cases = {
        name: {key: value for key, value in vars(needs).items() if value} for name, needs in moved.facts.needs.items()
    }
    given = {name: needs for name, needs in cases.items() if needs}
    if given:
        moved.write_yaml(
            f"{moved.package}/environment.yaml",
            {"cases": given},
            "Of FlagPerf's environment_variables.sh and requirements.txt",
        )


def _write_chips(moved: Moved) -> None:
    """One chip, if the adaptation is of one: whose peak it is, no file of FlagPerf's says of several."""
    chips = sorted(filter(None, moved.facts.chips))
    if not moved.facts.peaks:
        return
    if len(chips) != 1:
        of = f"the adaptation is of {', '.join(chips)}" if chips else "no settings at a scale name the chip"
        moved.not_written(moved.chips_file, f"{of}: write into {moved.chips_file} which chip's peak it is")
        return
    peaks = {
        precision: {"flops": f"{flops / 1e12:.12g}e12", "source": f"FlagPerf's {file}; name the data sheet"}
        for precision, (flops, file) in sorted(moved.facts.peaks.items())
    }
    chip = {"name": chips[0], "match": re.escape(chips[0]).replace(r"\-", "-"), "peaks": peaks}
    remark = "match is searched for in the detected chip's name; dense peaks"
    moved.write_yaml(moved.chips_file, {"chips": [chip]}, remark)


def _move_peaks(moved: Moved, path: Path) -> None:
    """The last two of the four that analysis_log returns: peaks at fp32 (tf32 where a chip has it) and fp16, FLOP/s.

    No file says which of the two the first is of, so that it is taken for neither.
    """
    parts = returned_by(path, moved.checkout.root, "analysis_log")
    if len(parts) != 4:
        why = unreadable(path, moved.checkout.root)
        moved.tell(path, 0, "" if why else "analysis_log()", None, "refused", why=why or "returns no four figures")
        return
    for key, part in zip((EITHER, "fp16_flops"), parts[2:], strict=True):
        flops = _number(part)
        if flops is None:
            moved.tell(path, part.lineno, key, None, "refused", why="is computed; write it into chips.yaml")
        elif not 1 <= flops < MOST:
            moved.tell(
                path, part.lineno, key, flops, "illegal", why="is not a chip's peak: remove it; there is then no MFU"
            )
        elif key == EITHER:
            why = "FlagPerf's figure is of fp32, or of tf32 where the chip has it: write it under the one it is of"
            moved.tell(path, part.lineno, key, flops, "by hand", here=f"{moved.chips_file}: peaks", why=why)
        else:
            fate, remarks = moved.take_peak("fp16", flops, path)
            moved.tell(path, part.lineno, key, flops, fate, **remarks)


def _number(part: ast.expr) -> float | None:
    """A number, or FlagPerf's eval("312e12"), which is read and not evaluated."""
    if isinstance(part, ast.Call) and quoted(part.func) in ("eval", "float") and len(part.args) == 1:
        part = part.args[0]
    try:
        return parse_product(part.value if isinstance(part, ast.Constant) else None)
    except ValueError:
        return None
