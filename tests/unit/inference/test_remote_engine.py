"""An engine in a process of its own: what crosses, what does not, and how it ends."""

from __future__ import annotations

import ast
import contextlib
import gc
import json
import os
import signal
import struct
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from safetensors.torch import save_file

from proofmark.errors import StepError
from proofmark.inference.engine import engine_process, protocol
from proofmark.inference.engine.engine_process import EngineFailed, EngineProcess
from proofmark.inference.engine.inside.tensors import SPARE, Inputs, Outputs
from proofmark.inference.engine.place.own_group import OwnGroup, _members
from proofmark.inference.engine.place.process_times import processor_times
from proofmark.inference.engine.remote_engine import UNSEEN, Placed, RemoteEngine
from proofmark.measuring.window import run_window
from proofmark.process.shared_memory import slots
from proofmark.process.shared_memory.layout import BYTES, DTYPES, read_layout, written
from proofmark.process.shared_memory.slots import Pool, Slot
from proofmark.rules.config import EffectiveConfig
from proofmark.vendor.isolation import NOT_ASKED_FOR
from proofmark.wall.isolation import Isolation
from tests.unit.wall.test_wall import has_landlock
from tests.waiting import PATIENCE, until

pytestmark = pytest.mark.usefixtures("warm")
IMPORTED = ("safetensors.torch", "proofmark.inference.engine.inside.main")

ACME = """
from proofmark.vendor import Compiler, Device, StepError, Vendor

class Acme(Vendor):
    compilers = dict.fromkeys(("moody", "forger"), Compiler(frozenset({"fp32"}), consumes="model"))
    default_compiler = "moody"
    def devices(self): return [Device(0, "anvil")]
    def chip(self): return "anvil"
    def synchronize(self): moody.waited.append(1)
    def memory(self): return 5, 10
    def register_memory(self, address, size):
        moody.registered.append((address, size))
        if size > moody.most: raise StepError("no anvil reaches so far")

from . import moody
vendor = Acme()
"""

MOODY = """
import os
from proofmark.vendor import StepError
waited, registered, most = [], [], 1 << 40

class InferModel:
    def __init__(self, config, onnx_path, model): self.model = model
    def __call__(self, inputs):
        mood = int(inputs[1][0])
        if mood == 1: raise RuntimeError("out of anvils\\nand more")
        if mood == 2: raise StepError("no anvils for this")
        if mood == 3: return inputs[0], 0.0
        if mood == 4: inputs[0].zero_()
        if mood == 5: return [inputs[0].to(__import__("torch").complex64)], 0.0
        if mood == 6: return [self.model(inputs[0]).repeat(1, 40_000)], 0.5
        if mood == 7:
            links = [f"/proc/self/fd/{n}" for n in os.listdir("/proc/self/fd") if int(n) > 2]
            listed = [os.readlink(link).split(":")[0] for link in links if os.path.islink(link)]
            raise StepError(f"{sorted(listed)} in {os.getcwd()}, waited {bool(waited)}")
        if mood == 8: os._exit(3)
        if mood == 9:
            address = inputs[0].data_ptr()
            raise StepError(str([size for start, size in registered if start <= address < start + size]))
        if mood == 10: return [self.model(inputs[0].t_().t())], 0.0
        if mood == 11: return [inputs[0].new_ones(4, 2)], 0.0
        if mood == 12: return [self.model(inputs[0]).t().contiguous().t()], 0.0
        return [self.model(inputs[0])], 0.0
"""

FORGER = """
from proofmark.wall.isolation import Isolation
Isolation.model_dump = lambda *given, **more: {"kind": "wall", "landlock": 99, "network": "closed"}

class InferModel:
    foo_time_reason = "it ran"
    def __init__(self, config, onnx_path, model): pass
    def __call__(self, inputs): return inputs, 0.0
"""

CASE = """
import torch
class Case:
    def create_model(self, config): return torch.nn.Linear(3, 2)
"""


def nothing() -> None:
    pass


def orders(root: Path, **changes: Any) -> dict[str, Any]:
    model = torch.nn.Linear(3, 2)
    with torch.no_grad():
        model.weight.copy_(torch.arange(6.0).view(2, 3))
        model.bias.zero_()
    save_file(model.state_dict(), root / "weights")
    config = EffectiveConfig("inference", "anvil", "embedded", "acme", {}, {"exist_compiler_path": None})
    made = {
        "vendor": "acme",
        "vendors_dir": str(root / "vendors"),
        "compiler": "moody",
        "precision": "fp32",
        "config": config.as_dict(),
        "case": ["anvil_case", "Case"],
        "onnx": None,
        "files": [],
        "weights": str(root / "weights"),
        "hidden": [str(root / "weights")],
    }
    return made | changes


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("engine")
    (folder / "vendors/acme").mkdir(parents=True)
    (folder / "vendors/__init__.py").write_text("")
    (folder / "vendors/acme/__init__.py").write_text(ACME)
    (folder / "vendors/acme/moody.py").write_text(MOODY)
    (folder / "vendors/acme/forger.py").write_text(FORGER)
    (folder / "anvil_case.py").write_text(CASE)
    (folder / "own").mkdir()
    return folder


def process(root: Path) -> EngineProcess:
    return EngineProcess(OwnGroup(root / "own", [str(root), *sys.path]))


SPINS = """
import os, threading
class InferModel:
    def __init__(self, config, onnx_path, model):
        if not os.fork():
            os.setsid()
            while os.getppid() != 1: pass
            os._exit(0)
        threading.Thread(target=self.spin, daemon=True).start()
    def spin(self):
        while True: pass
    def __call__(self, inputs): return [inputs[0] * 2], 0.0
"""


def test_an_engine_that_rests_takes_no_processor_from_others(root: Path) -> None:
    """Neither its threads nor its forks: in the speed gate the other side has its turn."""
    (root / "vendors/acme/spins.py").write_text(SPINS)
    made = RemoteEngine(process(root))
    try:
        made.make(orders(root, compiler="spins", weights=None))
        ones = torch.ones(2, 3)
        assert torch.equal(made([ones])[0][0], ones * 2)
        made.rest()
        own = psutil.Process(made.pid)
        group = [own, *own.children()]
        until(lambda: all(each.status() == psutil.STATUS_STOPPED for each in group), "all to be stopped")
        assert len(group) == 2
        assert torch.equal(made([ones])[0][0], ones * 2)
        made.rest()
    finally:
        made.close()
    assert not psutil.wait_procs(group, timeout=PATIENCE)[1]


COMPILES = """
import os
class InferModel:
    def __init__(self, config, onnx_path, model):
        from proofmark.vendor import StepError
        raise StepError(f"compiled by {os.environ.get('TORCHINDUCTOR_COMPILE_THREADS')}")
    def __call__(self, inputs): return inputs, 0.0
"""


@pytest.mark.skipif(not has_landlock(), reason="this kernel has no Landlock")
def test_behind_the_wall_an_engine_compiles_for_its_device_in_one_process(root: Path) -> None:
    """Others would need /dev/shm, and their end is waited for without end."""
    (root / "vendors/acme/compiles.py").write_text(COMPILES)
    for device, expected in (("acme", "compiled by 1"), ("cpu", "compiled by None")):
        engine = RemoteEngine(process(root))
        try:
            with pytest.raises(EngineFailed, match=expected):
                engine.make(orders(root, compiler="compiles", device=device))
        finally:
            engine.close()


UNREAD = """
from . import vendor
vendor.memory = lambda: 1 / 0
from .moody import InferModel
"""


def test_a_reading_of_memory_that_fails_ends_no_engine(root: Path) -> None:
    (root / "vendors/acme/unread.py").write_text(UNREAD)
    engine = RemoteEngine(process(root))
    try:
        engine.make(orders(root, compiler="unread"))
        assert engine.device_memory() == (None, None)
    finally:
        engine.close()


FORKS = """
import os, threading, zlib
class InferModel:
    def __init__(self, config, onnx_path, model):
        for _ in range(4): threading.Thread(target=self.spin, daemon=True).start()
    def spin(self):
        while True: zlib.crc32(bytes(1 << 22))  # without Python's lock, which a call would wait for at its every turn
    def __call__(self, inputs):
        if not os.fork():
            os.fork()  # an orphan, whom another than its parent waits for
            os._exit(0)
        return [inputs[0] * 2], 0.0
"""


def test_an_engine_that_rests_is_not_said_to_have_run(root: Path) -> None:
    """Whatever its threads were at, and whoever of its forks had just ended."""
    (root / "vendors/acme/forks.py").write_text(FORKS)
    made = RemoteEngine(process(root))
    try:
        made.make(orders(root, compiler="forks", weights=None))
        for _ in range(10):
            for _ in range(3):
                made([torch.ones(2, 3)])
            made.rest()
            time.sleep(0.05)
            made([torch.ones(2, 3)])
    finally:
        made.close()


def turns(made: RemoteEngine, meanwhile: Callable[[], object]) -> None:
    """Until that is found out: on a busy machine what woke may get no processor in some of them."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        made([torch.ones(2, 3)])
        made.rest()
        meanwhile()


def end_a_child_of(pid: int) -> None:
    child = next(each for each in psutil.Process(pid).children() if each.status() != psutil.STATUS_ZOMBIE)
    child.kill()
    until(lambda: child.status() == psutil.STATUS_ZOMBIE, "its end")


WATCHES = """
import ctypes, sys, threading
sys.setswitchinterval(1e-4)
class InferModel:
    def __init__(self, config, onnx_path, model):
        self.ends, self.halves = None, 0
        threading.Thread(target=self.watch, daemon=True).start()
    def watch(self):
        while True:
            if self.ends:
                first, last = (ctypes.c_float.from_address(each) for each in self.ends)
                self.halves += first.value > last.value  # what is laid later has the larger values
    def __call__(self, inputs):
        begin = inputs[0].data_ptr()
        self.ends = begin, begin + inputs[0].nbytes - 4
        return [inputs[0][:, :1] * 0 + self.halves], 0.0
"""


def test_a_large_batch_is_laid_while_its_engine_rests(root: Path) -> None:
    """A thread of it that watches the memory could else work on the rows that are there before the clock runs."""
    (root / "vendors/acme/watches.py").write_text(WATCHES)
    made = RemoteEngine(process(root))
    try:
        made.make(orders(root, compiler="watches", weights=None))
        halves = [made([torch.full((16, UNSEEN >> 6), float(number))])[0][0] for number in range(20)]
        assert not halves[-1].any()
    finally:
        made.close()


WAKES = """
import ctypes, os, signal, time
LIBC, TIMER, OFTEN = ctypes.CDLL(None), ctypes.c_void_p(), (ctypes.c_long * 4)(0, 10**7, 0, 10**7)
def arm():  # and again: a stop discards a SIGCONT that no thread has taken yet, and a timer sends the next once that is
    assert not LIBC.timer_settime(TIMER, 0, OFTEN, None)
class InferModel:
    def __init__(self, config, onnx_path, model):
        ready, says = os.pipe()
        if {forks} and os.fork():
            os.read(ready, 1)
            return
        signal.signal(signal.SIGCONT, lambda *_: None)  # of an ignored signal there would be one
        continues = (ctypes.c_int * 16)(0, 0, signal.SIGCONT, 0)
        assert not LIBC.timer_create(1, ctypes.byref(continues), ctypes.byref(TIMER))
        arm()
        os.write(says, b"!")
        while {forks}:
            time.sleep(0.02)
            arm()
    def __call__(self, inputs):
        if not {forks}: arm()
        return [inputs[0] * 2], 0.0
"""


@pytest.mark.parametrize("forks", [False, True])
def test_an_engine_that_has_itself_woken_while_it_rests(root: Path, forks: bool) -> None:
    """Or a process that it has started. In the speed gate it would be the other side's turn."""
    (root / "vendors/acme/wakes.py").write_text(WAKES.format(forks=forks))
    made = RemoteEngine(process(root))
    try:
        made.make(orders(root, compiler="wakes", weights=None))
        with pytest.raises(EngineFailed, match=r"ended, in \d+ of the \d+ times that it was to rest"):
            turns(made, lambda: time.sleep(0.1))
    finally:
        made.close()


LEAVES = """
import os, time
class InferModel:
    def __init__(self, config, onnx_path, model): pass
    def __call__(self, inputs):
        if not os.fork(): time.sleep(60)
        return [inputs[0] * 2], 0.0
"""


def test_an_engine_whose_processes_end_while_it_rests(root: Path) -> None:
    """They may have run before."""
    (root / "vendors/acme/leaves.py").write_text(LEAVES)
    made = RemoteEngine(process(root))
    try:
        made.make(orders(root, compiler="leaves", weights=None))
        with pytest.raises(EngineFailed, match="ended, in 3 of the 3 times that it was to rest"):
            turns(made, lambda: end_a_child_of(made.pid))
    finally:
        made.close()


def test_what_has_ended_and_was_not_waited_for_is_not_waited_for_by_a_rest(root: Path) -> None:
    (root / "vendors/acme/leaves.py").write_text(LEAVES)
    made = RemoteEngine(process(root))
    try:
        made.make(orders(root, compiler="leaves", weights=None))
        made([torch.ones(2, 3)])
        end_a_child_of(made.pid)
        assert set(processor_times(_members(made.pid))) == {made.pid}
    finally:
        made.close()


def test_an_engine_that_dies_while_it_rests(root: Path) -> None:
    made = RemoteEngine(process(root))
    made.make(orders(root))
    made.rest()
    os.kill(made.pid, signal.SIGKILL)
    with pytest.raises(EngineFailed, match=r"the engine's process died of signal 9 \(SIGKILL\)"):
        made(asked(0))
    made.close()


@pytest.fixture(scope="module")
def engine(root: Path) -> Iterator[RemoteEngine]:
    made = RemoteEngine(process(root))
    made.make(orders(root))
    yield made
    made.close()
    assert not psutil.pid_exists(made.pid)


def asked(mood: int, rows: int = 4) -> list[torch.Tensor]:
    return [torch.arange(3.0 * rows).view(rows, 3), torch.full((rows,), mood)]


FAINT = """
from . import moody
class InferModel:
    def __init__(self, config, onnx_path, model): moody.most = int(config.get("most"))
    def __call__(self, inputs): return [inputs[0].repeat(1, 1000)], 0.0
"""


@pytest.mark.parametrize("most, rows", [(1, 1), (1 << 20, 1000)])
def test_what_a_vendor_says_of_memory_is_said(root: Path, most: int, rows: int) -> None:
    """Of a batch's, and of an answer that is larger than any before."""
    (root / "vendors/acme/faint.py").write_text(FAINT)
    config = EffectiveConfig("inference", "anvil", "embedded", "acme", {}, {"exist_compiler_path": None, "most": most})
    with contextlib.closing(RemoteEngine(process(root))) as engine:
        engine.make(orders(root, compiler="faint", weights=None, config=config.as_dict()))
        with pytest.raises(EngineFailed, match="no anvil reaches so far"):
            engine([torch.ones(rows, 3)])


def test_what_needs_no_weights_is_seen_without(root: Path) -> None:
    (root / "vendors/acme/lacks.py").write_text("import runtime_of_acme\n")
    given = {key: value for key, value in orders(root).items() if key not in ("weights", "case", "precision")}
    with contextlib.closing(RemoteEngine(process(root))) as engine:
        engine.rehearse(given)
        assert engine.isolation.kind == "wall" or not has_landlock()
    for device, reason in {"cpu:0": None, "meta:": "Invalid device string"}.items():
        (root / "vendors/farther").mkdir(exist_ok=True)
        elsewhere = f"{ACME}\nAcme.torch_device = lambda self: {device!r}\n"
        (root / "vendors/farther/__init__.py").write_text(elsewhere)
        (root / "vendors/farther/moody.py").write_text(MOODY)
        (root / "vendors/farther/forger.py").write_text(FORGER)
        failing = pytest.raises(EngineFailed, match=reason) if reason else contextlib.nullcontext()
        with contextlib.closing(RemoteEngine(process(root))) as engine, failing:
            engine.rehearse(given | {"vendor": "farther"})
    without = pytest.raises(EngineFailed, match="No module named 'runtime_of_acme'")
    with contextlib.closing(RemoteEngine(process(root))) as engine, without:
        engine.rehearse(given | {"compiler": "lacks"})


class TestOneThatRuns:
    """All in one process."""

    def test_it_answers_with_the_referees_weights(self, engine: RemoteEngine) -> None:
        inputs = asked(0)
        window = run_window(engine, inputs, nothing)
        assert torch.equal(window.answer[0], inputs[0] @ torch.arange(6.0).view(2, 3).T)
        assert window.foo_seconds == 0.0 and window.given is not inputs

    def test_a_larger_answer_than_any_before(self, engine: RemoteEngine) -> None:
        window = run_window(engine, asked(6), nothing)
        assert window.answer[0].shape == (4, 80_000) and window.foo_seconds == 0.5
        again = run_window(engine, asked(6), nothing)
        assert torch.equal(window.outputs[0], again.answer[0])  # a copy of its own

    @pytest.mark.parametrize("after", [0.0, 0.05])
    def test_a_call_that_was_to_come_soon_and_does_not(self, engine: RemoteEngine, after: float) -> None:
        """Whatever comes next, and whether its process still looks for it or sleeps again by then."""
        placed = engine.place(asked(0))
        time.sleep(after)
        assert engine.device_memory() == (5, 10)
        engine.place(placed)
        time.sleep(after)
        larger = engine.place(asked(0, rows=3000))  # in a slot that is made first
        assert engine.read(engine.ask(placed))[0][0].shape == (4, 2)
        assert engine.read(engine.ask(larger))[0][0].shape == (3000, 2)

    def test_an_answer_of_another_form_than_the_one_before(self, engine: RemoteEngine) -> None:
        shapes = [
            run_window(engine, asked(mood, rows), nothing).answer[0].shape for mood, rows in ((0, 4), (6, 4), (0, 3))
        ]
        assert shapes == [(4, 2), (4, 80_000), (3, 2)]

    def test_answers_that_look_as_the_one_before(self, engine: RemoteEngine) -> None:
        """Without a second look at their form: at how they lie, and for how many samples they are, there is one."""
        inputs = asked(0)
        for mood in (0, 12, 0):
            answer = run_window(engine, [inputs[0], asked(mood)[1]], nothing).answer[0]
            assert torch.equal(answer, inputs[0] @ torch.arange(6.0).view(2, 3).T), mood
        assert run_window(engine, asked(11), nothing).answer[0].shape == (4, 2)
        with pytest.raises(EngineFailed, match=r"output 0 has shape \(4, 2\); expected one row for each of 3 samples"):
            run_window(engine, asked(11, rows=3), nothing)

    def test_an_engine_that_turns_its_inputs_round_finds_the_next_as_they_are(self, engine: RemoteEngine) -> None:
        inputs = asked(10)
        placed = engine.place(inputs)
        for _ in range(3):  # in one slot
            answer = run_window(engine, placed, nothing).answer[0]
            assert torch.equal(answer, inputs[0] @ torch.arange(6.0).view(2, 3).T)

    def test_a_call_made_ready_before_the_slot_for_its_answer_was_another(self, root: Path) -> None:
        engine = RemoteEngine(process(root))
        engine.make(orders(root))
        inputs = asked(0)
        ready = engine.place(inputs)
        engine(asked(6))  # needs a larger one
        outputs, _ = engine.read(engine.ask(ready))
        assert torch.equal(outputs[0], inputs[0] @ torch.arange(6.0).view(2, 3).T)
        assert isinstance(ready, Placed) and ready.call is None  # none is made twice
        engine.close()

    def test_what_it_writes_into_its_inputs_is_seen(self, engine: RemoteEngine) -> None:
        inputs = asked(4)
        window = run_window(engine, inputs, nothing)
        assert not window.given[0].any() and inputs[0].any()

    @pytest.mark.parametrize(
        "mood, expected, detailed",
        [
            (1, r"RuntimeError: out of anvils \(\S+/vendors/acme/moody.py:\d+, traceback in worker.log\)", True),
            (2, "no anvils for this", False),
            (3, r"the outputs are a Tensor; expected a list of tensors \((\S+/)?vendors/acme/moody\.py\)", False),
            (5, "the outputs have a tensor of type complex64; expected one of float32", False),
        ],
    )
    def test_what_is_no_answer(self, engine: RemoteEngine, mood: int, expected: str, detailed: bool) -> None:
        with pytest.raises(EngineFailed, match=expected) as caught:
            run_window(engine, asked(mood), nothing)
        assert bool(caught.value.detail) == detailed

    def test_what_it_has(self, engine: RemoteEngine, root: Path) -> None:
        run_window(engine, asked(0), nothing)
        with pytest.raises(EngineFailed) as caught:
            run_window(engine, asked(7), nothing)
        listed, _, rest = str(caught.value).partition(" in ")
        assert rest == f"{root / 'own'}, waited True"
        own = {"socket", f"/proc/{engine.pid}/task"}
        assert {name for name in ast.literal_eval(listed) if "memfd" not in name} <= own

    def test_its_vendor_knows_the_memory_that_batches_come_in(self, engine: RemoteEngine) -> None:
        run_window(engine, asked(0), nothing)
        with pytest.raises(EngineFailed) as caught:
            run_window(engine, asked(9), nothing)
        (size,) = ast.literal_eval(str(caught.value))
        assert size >= sum(tensor.nbytes for tensor in asked(9))

    def test_its_memory(self, engine: RemoteEngine) -> None:
        assert engine.device_memory() == (5, 10)
        engine.reset_peak()
        assert (engine.peak_resident_bytes() or 0) > 1 << 20

    def test_slots_are_used_again(self, engine: RemoteEngine) -> None:
        for _ in range(50):
            run_window(engine, asked(0), nothing)
        gc.collect()
        assert engine._pool._made < 12

    def test_nothing_is_copied_twice(self, engine: RemoteEngine) -> None:
        placed = engine.place(asked(0))
        assert isinstance(placed, Placed) and engine.place(placed) is placed


@pytest.fixture
def slot() -> Slot:
    slot, descriptor = Slot.make(1, 4096)
    os.close(descriptor)
    return slot


def test_an_engine_that_moves_its_inputs_finds_the_next_where_they_lie(slot: Slot) -> None:
    """Not behind the wall, where there is no /dev/shm to move them to."""
    lying, batch, text = Inputs(slot), torch.ones(4, 3), written([torch.ones(4, 3)])
    for fill in (1.0, 2.0, 3.0):
        slot.lay(read_layout(text), [batch.fill_(fill)])
        (given,), _ = lying.take(bytearray(text))
        assert torch.equal(given, batch)
        given.share_memory_()


def test_each_call_gets_inputs_of_its_own(slot: Slot) -> None:
    lying, forms = Inputs(slot), [(4, 3), (2, 3), (1, 3), (4, 2), (3, 1)]
    for number in range(3 * SPARE):
        shape = forms[0] if number % 3 else forms[number % len(forms)]
        batch = [torch.full(shape, float(number)), torch.ones(2)]
        text = written(batch)
        slot.lay(read_layout(text), batch)
        inputs, rows = lying.take(bytearray(text))
        assert all(map(torch.equal, inputs, batch)) and rows == shape[0]
        inputs[0].unsqueeze_(0)


class TestAnswersThatLookAlike:
    """Those that look as the last one did are laid at once; all others have yet to be looked at."""

    @pytest.fixture
    def outputs(self) -> Outputs:
        outputs = Outputs()
        outputs.look(([torch.zeros(4, 3), torch.zeros(4, dtype=torch.int64)], 0.0), 4)
        return outputs

    def test_they_are_laid(self, outputs: Outputs, slot: Slot) -> None:
        asked = [torch.rand(4, 3), torch.arange(4)]
        assert outputs.lay_alike((asked, 0.5), 4, slot) == written(asked)
        assert all(map(torch.equal, slot.tensors(read_layout(written(asked))), asked))

    def test_those_of_several_sizes_are(self, outputs: Outputs, slot: Slot) -> None:
        smaller = [torch.rand(1, 3), torch.arange(1)]
        outputs.look((smaller, 0.0), 1)
        for asked in ([torch.rand(4, 3), torch.arange(4)], smaller):
            assert outputs.lay_alike((asked, 0.5), len(asked[0]), slot) == written(asked)
            assert all(map(torch.equal, slot.tensors(read_layout(written(asked))), asked))

    @pytest.mark.parametrize(
        "first",
        [
            torch.rand(3, 4).t(),
            torch.rand(4, 6)[:, ::2],
            torch._neg_view(torch.rand(4, 3)),
            torch.rand(4, 3, dtype=torch.complex64).conj().imag,
        ],
    )
    def test_in_whatever_way_they_lie(self, outputs: Outputs, slot: Slot, first: torch.Tensor) -> None:
        asked = [first, torch.arange(4)]
        assert outputs.lay_alike((asked, 0.0), 4, slot) == written(asked)
        assert all(map(torch.equal, slot.tensors(read_layout(written(asked))), asked))

    @pytest.mark.parametrize(
        "first",
        [
            torch.rand(4, 4),
            torch.rand(5, 3),
            torch.rand(4, 3, dtype=torch.float64),
            torch.rand(4, 3, device="meta"),
            torch.eye(4, 3).to_sparse(),
            torch.rand(4, 3).to_mkldnn(),
            torch.nn.Parameter(torch.rand(4, 3)),
            [[0.0] * 3] * 4,
            None,
        ],
    )
    def test_others_are_not(self, outputs: Outputs, slot: Slot, first: Any) -> None:
        assert outputs.lay_alike(([first, torch.arange(4)], 0.0), 4, slot) is None

    @pytest.mark.parametrize(
        "returned",
        [
            None,
            [],
            [[torch.zeros(4, 3), torch.arange(4)], 0.0],
            ([torch.zeros(4, 3), torch.arange(4)],),
            ([torch.zeros(4, 3), torch.arange(4)], 0),
            ((torch.zeros(4, 3), torch.arange(4)), 0.0),
            ([torch.zeros(4, 3)], 0.0),
            ([torch.zeros(4, 3), torch.arange(4), torch.arange(4)], 0.0),
        ],
    )
    def test_nor_is_what_is_no_answer(self, outputs: Outputs, slot: Slot, returned: Any) -> None:
        assert outputs.lay_alike(returned, 4, slot) is None

    def test_nor_is_one_to_another_number_of_samples(self, outputs: Outputs, slot: Slot) -> None:
        assert outputs.lay_alike(([torch.zeros(4, 3), torch.arange(4)], 0.0), 5, slot) is None

    def test_nor_is_one_for_which_the_slot_is_too_small(self) -> None:
        outputs, large = Outputs(), [torch.zeros(4, 1024)]
        outputs.look((large, 0.0), 4)
        slot, descriptor = Slot.make(1, 4096)
        os.close(descriptor)
        assert outputs.lay_alike((large, 0.0), 4, slot) is None

    @pytest.mark.parametrize("returned", [[], [torch.rand(4, 3)], [torch.rand(4, 0)]])
    def test_nor_is_one_after_one_without_elements(self, slot: Slot, returned: list[torch.Tensor]) -> None:
        for before in (
            [torch.zeros(4, 0)],
            [torch.zeros(4, 0), torch.zeros(4, 3)],
            [torch.zeros(4, 3), torch.zeros(4, 0)],
        ):
            outputs = Outputs()
            outputs.look((before, 0.0), 4)
            assert outputs.lay_alike((returned, 0.0), 4, slot) is None


def test_one_that_dies(root: Path) -> None:
    engine = process(root)
    os.kill(engine.pid, signal.SIGKILL)
    with pytest.raises(EngineFailed, match=r"the engine's process died of signal 9 \(SIGKILL\)"):
        engine.receive()
    with pytest.raises(EngineFailed):
        engine.send(b"o{}")
    engine.close()


HANDS_ON = """
import os, time
class InferModel:
    def __init__(self, config, onnx_path, model): pass
    def __call__(self, inputs):
        if not hasattr(self, "forked"):
            self.forked = True
            parent = os.getpid()
            if os.fork(): os._exit(3)
            os.setsid()
            while os.getppid() == parent: time.sleep(0.01)  # it may take its time
        time.sleep(0.2)
        return [inputs[0] * 2], 0.0
"""


@pytest.mark.parametrize("spins", [False, True])
def test_one_that_dies_and_hands_its_calls_on_to_a_process_that_it_forked(
    root: Path, spins: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where its answers are there before the referee would sleep."""
    if spins:
        monkeypatch.setattr(engine_process, "SPIN_NS", 10**12)
        monkeypatch.setattr(engine_process, "QUICK_NS", 10**12)
    (root / "vendors/acme/hands_on.py").write_text(HANDS_ON)
    engine = RemoteEngine(process(root))
    engine.make(orders(root, compiler="hands_on", weights=None))
    answers = list[object]()
    with pytest.raises(EngineFailed, match="the engine's process ended with exit code 3"):
        answers.extend(engine(asked(0)) for _ in range(5))
    assert len(answers) <= 1  # to the call during which it died
    engine.close()


def test_it_goes_with_its_referee(root: Path, tmp_path: Path) -> None:
    child = os.fork()
    if child == 0:
        try:
            (tmp_path / "pid").write_text(str(process(root).pid))
            time.sleep(600)
        finally:
            os._exit(0)
    until(lambda: (tmp_path / "pid").is_file() and (tmp_path / "pid").read_text(), "its engine's process")
    engine = psutil.Process(int((tmp_path / "pid").read_text()))
    time.sleep(0.3)
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    engine.wait(PATIENCE)


class Peer:
    """A process that answers what a test wants; it has mapped every slot."""

    pid = 0
    isolation = None

    def __init__(self, *answers: Callable[[bytes], bytes]) -> None:
        self._answers, self._last = list(answers), b""

    def send(self, message: bytes, descriptors: Any = ()) -> None:
        self._last = message

    def awake(self) -> None:
        pass

    def exchange(self, message: bytes) -> int:
        self.send(message)
        return len(self.receive())

    def answered(self) -> None:
        pass

    def receive(self) -> bytes:
        if self._last[0] == protocol.SLOT:
            _, number, _ = protocol.SLOT_FORM.unpack(self._last)
            return protocol.MAPPED_FORM.pack(protocol.MAPPED, number)
        self.buffer = bytearray(message := self._answers.pop(0)(self._last))
        return message


def number_of(call: bytes) -> int:
    return int(protocol.CALL_FORM.unpack_from(call)[4])


def answer(layout: bytes, by: int = 0) -> Callable[[bytes], bytes]:
    return lambda call: protocol.ANSWER_FORM.pack(protocol.ANSWER, number_of(call) ^ by, 0.0) + layout


@pytest.mark.parametrize(
    "said, expected",
    [
        (answer(written([torch.ones(4)]), by=1), "it is to a call that was not made"),
        (lambda call: b"m" + answer(written([torch.ones(4)]))(call)[1:], "a message of another kind"),
        (answer(written([torch.ones(4)])[:-1]), "a tensor's shape is cut off"),
        (answer(struct.pack("<BB1Q", 99, 1, 4)), "a tensor of no known form"),
        (answer(struct.pack("<BB1Q", 0, 1, 1 << 62)), "more than 1 TiB"),
        (answer(struct.pack("<BB2Q", 0, 2, 0, 1 << 63)), "more than 1 TiB"),
        (answer(struct.pack("<BB1Q", 0, 1, 1 << 20)), "4194304 bytes in a slot of 65536"),
        (lambda call: protocol.LARGER_FORM.pack(protocol.LARGER, number_of(call), 1 << 41), "asks for a slot of"),
        (lambda call: protocol.LARGER_FORM.pack(protocol.LARGER, 7, 1 << 20), "asks for a slot of"),
        (lambda _: protocol.MAPPED_FORM.pack(protocol.MAPPED, 1), "a message of another kind"),
        (lambda _: b"a", "unpack_from requires"),
        (lambda _: b"t[", "not JSON"),
        (lambda _: b't{"failed": 3}', "failed"),
        (lambda _: b't{"failed": " "}', "failed, and does not say why"),
        (lambda _: b't{"failed": "no \\u001b[2Jmemory"}', r"^no \\x1b\[2Jmemory$"),
    ],
)
@pytest.mark.parametrize("before", [0, 1, 2])
def test_an_answer_that_is_none(said: Callable[[bytes], bytes], expected: str, before: int) -> None:
    """The first one, and one after others that were: of those, one that looks alike is looked at no further."""
    good = [answer(written([torch.ones(4)]))] * before
    engine = RemoteEngine(Peer(*good, said))  # type: ignore[arg-type]
    for _ in good:
        engine([torch.ones(4, 2)])
    with pytest.raises(EngineFailed, match=expected) as caught:
        engine([torch.ones(4, 2)])
    assert len(str(caught.value).splitlines()) == 1


def test_an_answer_of_a_known_form_lies_in_the_slot_that_was_made_since() -> None:
    form, large = written([torch.ones(4)]), [torch.ones(4, 1 << 15)]
    size = read_layout(written(large)).size

    def laid(value: float) -> Callable[[bytes], bytes]:
        def say(call: bytes) -> bytes:
            assert engine._answer is not None
            engine._answer.lay(read_layout(form), [torch.full((4,), value)])
            return answer(form)(call)

        return say

    def went_on(message: bytes) -> bytes:
        number = protocol.GO_ON_FORM.unpack(message)[2]
        return protocol.ANSWER_FORM.pack(protocol.ANSWER, number, 0.0) + written(large)

    larger: Callable[[bytes], bytes] = lambda call: protocol.LARGER_FORM.pack(protocol.LARGER, number_of(call), size)  # noqa: E731
    engine = RemoteEngine(Peer(laid(1.0), larger, went_on, laid(2.0)))  # type: ignore[arg-type]
    found = [engine([torch.ones(4, 2)])[0][0] for _ in range(3)]
    assert found[0].tolist() == [1.0] * 4 and found[1].shape == (4, 1 << 15) and found[2].tolist() == [2.0] * 4


@pytest.mark.parametrize(
    "shapes, expected",
    [
        ([], "the outputs are a list of 0; expected a list of tensors"),
        ([(4, 2), (3, 2)], r"output 1 has shape \(3, 2\); expected one row for each of 4 samples"),
        ([()], r"output 0 has shape \(\); expected one row for each of 4 samples"),
    ],
)
def test_an_answer_that_is_not_to_all_samples(shapes: list[tuple[int, ...]], expected: str) -> None:
    """Refused by the referee itself, whatever an engine's own process lets pass."""
    engine = RemoteEngine(Peer(answer(written([torch.ones(shape) for shape in shapes]))))  # type: ignore[arg-type]
    with pytest.raises(StepError, match=expected):
        run_window(engine, [torch.ones(4, 2)], nothing)


def test_a_word_that_nobody_asked_for() -> None:
    peer = Peer(lambda _: b"x")
    engine = RemoteEngine(peer)  # type: ignore[arg-type]
    with pytest.raises(EngineFailed, match="sent an unexpected message"):
        engine.device_memory()
    peer._answers.append(lambda _: b't{"done": [1, "all"]}')
    with pytest.raises(EngineFailed, match="did not return two whole numbers"):
        engine.device_memory()


KEPT = Isolation().model_dump(mode="json")


def tells(**content: Any) -> Callable[[bytes], bytes]:
    return lambda _: protocol.as_json(protocol.REPLY, content)


@pytest.mark.parametrize(
    "said, expected",
    [
        ({"foo_time_reason": ["late"]}, "foo_time_reason"),
        ({"foo_time_reason": ""}, "expected a line of text"),
        ({"foo_time_reason": "late\x1b[2J"}, "expected a line of text"),
        ({"foo_time_reason": "late " * 1000}, "at most"),
        ({"foo_time_reason": None, "honest": True}, "honest"),
        ({}, "foo_time_reason"),
    ],
)
def test_a_reason_for_foo_time_that_is_none(said: dict[str, Any], expected: str) -> None:
    engine = RemoteEngine(Peer(tells(isolation=KEPT), tells(done=said)))  # type: ignore[arg-type]
    with pytest.raises(EngineFailed, match=expected) as caught:
        engine.make({})
    assert len(str(caught.value).splitlines()) == 1 and engine.foo_time_reason is None


@pytest.mark.parametrize(
    "said, expected",
    [
        ([tells(done={"foo_time_reason": None})], "did not begin by saying how it is isolated"),
        ([tells(isolation={"kind": "fortress"})], "isolation"),
        ([tells(isolation=KEPT), tells(isolation={**KEPT, "kind": "wall"})], "a second time"),
        ([tells(isolation=KEPT), tells(done={"foo_time_reason": None, "isolation": KEPT})], "isolation"),
    ],
)
def test_how_it_is_kept_is_its_first_word_and_no_other(said: list[Callable[[bytes], bytes]], expected: str) -> None:
    engine = RemoteEngine(Peer(*said))  # type: ignore[arg-type]
    with pytest.raises(EngineFailed, match=expected) as caught:
        engine.make({})
    assert len(str(caught.value).splitlines()) == 1 and engine.isolation.kind == "process"


def test_its_vendor_does_not_change_how_it_is_said_to_be_kept(root: Path) -> None:
    engine = RemoteEngine(process(root))
    asked = orders(root, compiler="forger")
    asked["config"]["host"]["isolation"] = "process"
    try:
        engine.make(asked)
    finally:
        engine.close()
    assert engine.isolation == Isolation.none(NOT_ASKED_FOR) and engine.foo_time_reason == "it ran"


def test_what_cannot_cross() -> None:
    with pytest.raises(ValueError, match="complex64"):
        written([torch.ones(1, dtype=torch.complex64)])
    with pytest.raises(ValueError, match="64 at most"):
        written([torch.ones(1)] * 65)


@pytest.mark.parametrize("name", DTYPES)
def test_a_layout_is_read_as_it_was_written(name: str) -> None:
    tensors = [torch.ones(3, 0, 5, dtype=getattr(torch, name)), torch.ones((), dtype=getattr(torch, name))]
    layout = read_layout(written([*tensors, torch.ones(7)]))
    assert [place.shape for place in layout.places] == [(3, 0, 5), (), (7,)]
    assert layout.size == 128 and tensors[1].element_size() == BYTES[DTYPES.index(name)]


class TestSlots:
    """Shared memory."""

    def test_nobody_changes_their_size(self) -> None:
        _, descriptor = Slot.make(1, 4096)
        for size in (0, 8192):
            with pytest.raises(PermissionError):
                os.ftruncate(descriptor, size)
        os.close(descriptor)

    def test_one_is_free_when_its_last_view_is_gone(self) -> None:
        pool = Pool(lambda slot, descriptor: None)
        slot = pool.make(4096)
        layout = read_layout(written([torch.ones(4, 2), torch.ones(0)]))
        tensors = slot.tensors(layout, lambda: pool.give_back(slot))
        kept = tensors[0][1:].numpy()
        del tensors
        assert pool.take(16) is None
        del kept
        assert pool.take(16) is slot

    def test_memory_that_is_not_there(self, monkeypatch: pytest.MonkeyPatch) -> None:
        with pytest.raises(StepError, match=r"no \S+ MiB of shared memory .* set a smaller batch_size"):
            Slot.make(1, 1 << 50)

        def full(*_: int) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(slots.os, "posix_fallocate", full)
        with pytest.raises(StepError, match="No space left on device; free memory, or set a smaller batch_size"):
            Slot.make(1, 4096)


def test_a_message_too_long() -> None:
    with pytest.raises(ValueError, match="expected 131072 at most"):
        protocol.as_json(protocol.REPLY, json.loads('"' + "x" * (1 << 17) + '"'))
