"""The TensorRT engine over a played TensorRT and CUDA, and its types against the real bindings."""

from __future__ import annotations

import importlib
import json
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

import onnx
import pytest
import torch
from onnx import TensorProto, helper, numpy_helper

from proofmark.rules.config import HostSettings
from proofmark.vendor import StepError
from tests.vendors.conftest import config_of, linear
from tests.vendors.played_tensorrt import ROW, Played, play_cuda, tensorrt
from tests.vendors.test_contract import ROOT


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> Played:
    return Played()


@pytest.fixture
def module(played: Played, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.setitem(sys.modules, "tensorrt", tensorrt(played))
    monkeypatch.delitem(sys.modules, "vendors.nvidia.tensorrt", raising=False)
    play_cuda(played, monkeypatch)
    found = importlib.import_module("vendors.nvidia.tensorrt")
    monkeypatch.delitem(sys.modules, "vendors.nvidia.tensorrt")
    return found


@pytest.fixture
def host(tmp_path: Path) -> HostSettings:
    (tmp_path / "artifacts").mkdir()
    return HostSettings(cache_dir=str(tmp_path / "cache"), artifact_dir=str(tmp_path / "artifacts"))


@pytest.mark.parametrize("with_graph", [False, True])
def test_answers_are_right_and_new_at_every_batch_size(
    module: ModuleType, played: Played, onnx_path: Path, host: HostSettings, with_graph: bool
) -> None:
    engine = module.InferModel(config_of(host, cuda_graph=with_graph), onnx_path, None)
    kept = []
    for rows in (8, 8, 5, 8, 1, 5):
        inputs = torch.randn(rows, ROW)
        outputs, foo_seconds = engine([inputs])
        assert foo_seconds == 0.0
        kept.append((outputs[0], inputs))
    assert all(torch.equal(output, 2 * inputs) for output, inputs in kept)
    assert len({output.untyped_storage().data_ptr() for output, _ in kept}) == len(kept)
    launches = [call for call in played.calls if call[0] in ("launch", "replay")]
    one_each = [("launch", 8), ("replay",), ("launch", 5), ("replay",), ("launch", 1), ("replay",)]
    assert launches == (one_each if with_graph else [("launch", rows) for rows in (8, 8, 5, 8, 1, 5)])


@pytest.mark.parametrize("precision", ["tf32", "bf16"])
def test_what_came_with_newer_gpus_is_refused_on_older_ones(
    module: ModuleType, played: Played, onnx_path: Path, monkeypatch: pytest.MonkeyPatch, precision: str
) -> None:
    monkeypatch.setattr("vendors.nvidia.nvml.capability", lambda: (7, 5))
    with pytest.raises(StepError, match=f"this GPU has no {precision}"):
        module.InferModel(config_of(precision=precision), onnx_path, None)
    assert not played.calls


def test_buffers_are_allocated_once(module: ModuleType, played: Played, onnx_path: Path, host: HostSettings) -> None:
    engine = module.InferModel(config_of(host), onnx_path, None)
    engine([torch.randn(8, ROW)])
    before = [call for call in played.calls if call[0] == "allocate"]
    assert before == [("allocate", "cuda"), ("allocate", "cuda")]
    for rows in (8, 3, 8):
        engine([torch.randn(rows, ROW)])
    assert [call for call in played.calls if call[0] == "allocate"] == before


def test_a_batch_beyond_the_profile(module: ModuleType, onnx_path: Path, host: HostSettings) -> None:
    engine = module.InferModel(config_of(host), onnx_path, None)
    with pytest.raises(StepError, match="a batch of 9 is more than the 8 that the engine was built for"):
        engine([torch.randn(9, ROW)])


def test_a_model_of_a_fixed_batch_answers_a_short_one(
    module: ModuleType, played: Played, onnx_path: Path, host: HostSettings
) -> None:
    played.fixed_batch = 8
    engine = module.InferModel(config_of(host), onnx_path, None)
    assert not [call for call in played.calls if call[0] == "profile"]
    inputs = torch.randn(3, ROW)
    assert torch.equal(engine([inputs])[0][0], 2 * inputs)


@pytest.mark.parametrize(
    "precision, types, tf32",
    [
        ("fp32", TensorProto.FLOAT, "clear"),
        ("tf32", TensorProto.FLOAT, "set"),
        ("fp16", TensorProto.FLOAT16, "clear"),
        ("bf16", TensorProto.BFLOAT16, "clear"),
    ],
)
def test_the_network_gets_the_types_that_are_asked_for(
    module: ModuleType, played: Played, onnx_path: Path, host: HostSettings, precision: str, types: int, tf32: str
) -> None:
    module.InferModel(config_of(host, precision=precision), onnx_path, None)
    assert ("types", {types}) in played.calls and (tf32, "TF32") in played.calls
    assert ("profile", "x", (1, ROW), (8, ROW), (8, ROW)) in played.calls


def test_int8_needs_quantization_in_the_model(
    module: ModuleType, onnx_path: Path, host: HostSettings, tmp_path: Path
) -> None:
    with pytest.raises(StepError, match="int8 needs a model with QuantizeLinear and DequantizeLinear nodes"):
        module.InferModel(config_of(host, precision="int8"), onnx_path, None)
    quantized = linear(
        tmp_path / "qdq.onnx",
        helper.make_node("Constant", [], ["s"], value=numpy_helper.from_array(numpy_helper.np.float32([0.1])[0:1])),
        helper.make_node("QuantizeLinear", ["product", "s"], ["q"]),
        helper.make_node("DequantizeLinear", ["q", "s"], ["y"]),
    )
    module.InferModel(config_of(host, precision="int8"), quantized, None)


def test_inputs_and_outputs_are_in_the_models_order_whatever_the_engines(
    module: ModuleType, played: Played, onnx_path: Path, host: HostSettings
) -> None:
    played.wrong.add("order")
    inputs = torch.randn(2, ROW)
    engine = module.InferModel(config_of(host), onnx_path, None)
    assert engine.names == ["x", "y"] and torch.equal(engine([inputs])[0][0], 2 * inputs)


def test_a_plan_is_left_and_loaded_again(
    module: ModuleType, played: Played, onnx_path: Path, host: HostSettings
) -> None:
    module.InferModel(config_of(host), onnx_path, None)
    plan = Path(str(host.artifact_dir)) / "model.engine"
    played.wrong.add("build")
    inputs = torch.randn(2, ROW)
    loaded = module.InferModel(config_of(host, exist_compiler_path=str(plan)), None, None)
    assert torch.equal(loaded([inputs])[0][0], 2 * inputs)


@pytest.fixture
def two_inputs(played: Played, tmp_path: Path) -> Path:
    """y = 2 * x - b, of tensors that look alike and whose names are in another order than they are."""
    played.inputs = "xb"
    alike = [helper.make_tensor_value_info(name, TensorProto.FLOAT, ["batch", ROW]) for name in "xby"]
    nodes = [helper.make_node("Add", ["x", "x"], ["double"]), helper.make_node("Sub", ["double", "b"], ["y"])]
    model = helper.make_model(helper.make_graph(nodes, "two", alike[:2], alike[2:]))
    onnx.save(model, tmp_path / "two.onnx")
    return tmp_path / "two.onnx"


def test_a_plan_says_in_which_order_its_inputs_come(
    module: ModuleType, played: Played, two_inputs: Path, host: HostSettings
) -> None:
    """Their types and shapes need not tell: swapped ones are a wrong answer, and no error."""
    played.wrong.add("order")
    inputs = [torch.randn(2, ROW), torch.randn(2, ROW)]
    built = module.InferModel(config_of(host), two_inputs, None)
    loaded = module.InferModel(config_of(host, exist_compiler_path=f"{host.artifact_dir}/model.engine"), None, None)
    assert [engine.names for engine in (built, loaded)] == [["x", "b", "y"]] * 2
    assert torch.equal(loaded(inputs)[0][0], 2 * inputs[0] - inputs[1])


@pytest.mark.parametrize("name", ["Unnamed Network 0", "", "0,1", "0,0,1", "0,1,3", "-1,0,1"])
def test_a_plan_of_somebody_elses_is_refused_where_there_is_a_choice(
    module: ModuleType, played: Played, tmp_path: Path, host: HostSettings, name: str
) -> None:
    plan = tmp_path / "other.engine"
    plan.write_text(json.dumps({"largest": 8, "name": name}))
    config = config_of(host, exist_compiler_path=str(plan))
    assert module.InferModel(config, None, None).names == ["x", "y"]
    played.inputs = "xb"
    with pytest.raises(StepError, match=r"other\.engine: does not say in which order the model has b, x, y: build it"):
        module.InferModel(config, None, None)


@pytest.mark.parametrize(
    "wrong, expected",
    [
        ("parse", "TensorRT 11.0.0 cannot parse it: no importer for operator Tiny"),
        ("build", "TensorRT 11.0.0 cannot build an engine"),
        ("shape", r"input x has shape \(-1, -1\); only the batch may be dynamic"),
        ("context", "cannot create an execution context"),
        ("type", "torch has no buffer for it"),
    ],
)
def test_each_refusal_of_tensorrt_is_said(
    module: ModuleType, played: Played, onnx_path: Path, host: HostSettings, wrong: str, expected: str
) -> None:
    played.wrong.add(wrong)
    with pytest.raises(StepError, match=expected):
        module.InferModel(config_of(host), onnx_path, None)


def test_a_launch_that_fails(module: ModuleType, played: Played, onnx_path: Path, host: HostSettings) -> None:
    engine = module.InferModel(config_of(host), onnx_path, None)
    played.wrong.add("launch")
    with pytest.raises(StepError, match="could not launch"):
        engine([torch.randn(8, ROW)])


def test_a_plan_of_another_version_or_device(module: ModuleType, tmp_path: Path, host: HostSettings) -> None:
    (tmp_path / "old.engine").write_bytes(b"rubbish")
    with pytest.raises(StepError, match="old.engine: no engine for TensorRT 11.0.0 on this device; build it again"):
        module.InferModel(config_of(host, exist_compiler_path=str(tmp_path / "old.engine")), None, None)


@pytest.mark.parametrize("compiler", ["inductor", "onnxruntime"])
def test_without_cuda_the_compilers_say_so(compiler: str, onnx_path: Path, host: HostSettings) -> None:
    if torch.cuda.is_available():
        pytest.skip("this machine has CUDA")
    infer_model = importlib.import_module(f"vendors.nvidia.{compiler}").InferModel
    with pytest.raises(StepError, match="no CUDA device|has no CUDAExecutionProvider"):
        infer_model(config_of(host), onnx_path, torch.nn.Linear(4, 3))


CONFIGURATION = """
[mypy]
strict = true
python_version = 3.11
explicit_package_bases = true
follow_imports = silent
mypy_path = {stubs}:{root}
disallow_any_generics = false
warn_return_any = false
warn_unused_ignores = false
[mypy-tensorrt.*]
ignore_errors = true
[mypy-torch.*,onnx.*,onnxruntime.*,pynvml.*,pydantic.*,psutil.*]
follow_imports = skip
ignore_missing_imports = true
"""


@pytest.mark.skipif(not (shutil.which("cc") and shutil.which("nm")), reason="no C compiler to make empty libraries")
def test_types_against_the_real_bindings(tmp_path: Path) -> None:
    """The bindings' wheel has no stubs; they are made from the signatures that the real module describes itself with.

    Its libraries are not on PyPI. Importing it calls none of their functions, so empty ones of the same names do.
    """
    spec = find_spec("tensorrt_bindings")
    assert spec and spec.submodule_search_locations, "tensorrt-cu12-bindings of requirements-dev.txt is not installed"
    bindings = Path(spec.submodule_search_locations[0]) / "tensorrt.so"
    _empty_libraries(bindings, tmp_path)
    run = [sys.executable, "-c", "from mypy import stubgen; stubgen.main()"]
    subprocess.run(
        [*run, "--inspect-mode", "--quiet", "-m", "tensorrt_bindings.tensorrt", "-o", str(tmp_path)],
        env={"LD_LIBRARY_PATH": str(tmp_path), "PATH": ""},
        check=True,
        timeout=600,
    )
    (tmp_path / "stubs" / "tensorrt").mkdir(parents=True)
    stub = (tmp_path / "tensorrt_bindings" / "tensorrt.pyi").read_text(encoding="utf-8")
    (tmp_path / "stubs" / "tensorrt" / "__init__.pyi").write_text(_completed(stub), encoding="utf-8")
    (tmp_path / "mypy.ini").write_text(CONFIGURATION.format(stubs=tmp_path / "stubs", root=ROOT), encoding="utf-8")
    command = [sys.executable, "-m", "mypy", "--config-file", str(tmp_path / "mypy.ini"), "--cache-dir", "/dev/null"]
    done = subprocess.run(
        [*command, "vendors/nvidia/tensorrt.py"], cwd=ROOT, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stdout


def _empty_libraries(bindings: Path, directory: Path) -> None:
    """Libraries of the names that the bindings ask for, with the functions that they lack, doing nothing."""
    needed = subprocess.run(["objdump", "-p", str(bindings)], capture_output=True, text=True, check=True).stdout
    names = [line.split()[1] for line in needed.splitlines() if "NEEDED" in line and "libnv" in line]
    symbols = subprocess.run(
        ["nm", "-D", "--undefined-only", str(bindings)], capture_output=True, text=True, check=True
    )
    lacking = [line.split()[1] for line in symbols.stdout.splitlines() if "@" not in line and " U " in line]
    functions = "".join(f"void *{name}(void) {{ return 0; }}\n" for name in lacking if not name.startswith(("Py", "_")))
    for name in names:
        (directory / "empty.c").write_text(functions if name.startswith("libnvinfer.so") else "", encoding="ascii")
        target = ["-Wl,-soname," + name, "-o", str(directory / name), str(directory / "empty.c")]
        subprocess.run(["cc", "-shared", "-fPIC", *target], check=True)


def _completed(stub: str) -> str:
    """What the module can and its description leaves out: sequences and buffers, which pybind11 adds in C."""
    # one signature has a required argument behind optional ones; a constant hides the type bool
    wrong = ("    def add_scale_nd(", "bool: DataType")
    lines = [line for line in stub.splitlines() if not line.startswith(wrong)]
    text = "\n".join(lines) + "\n__version__: str\n"
    text = text.replace("class Dims:\n", "class Dims:\n    def __iter__(self) -> typing.Iterator[int]: ...\n", 1)
    buffer = "    def __buffer__(self, flags: int, /) -> memoryview: ...\n"
    text = text.replace("class IHostMemory:\n", f"class IHostMemory:\n{buffer}", 1)
    return text.replace("def get_error(self, *args, **kwargs):", "def get_error(self, index: int) -> ParserError:")
