"""Steps 2 to 6 of an inference case, each leaving its result in the event log."""

from __future__ import annotations

import inspect
import math
import random
import secrets
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from proofmark.inference.case import InferenceCase
from proofmark.inference.engine.engines import Engines
from proofmark.inference.engine.remote_engine import RemoteEngine
from proofmark.inference.outcome.kept import HANDED_OVER
from proofmark.inference.plan import reads_given_onnx
from proofmark.inference.steps.export import check_onnx, export_onnx
from proofmark.inference.steps.given_onnx import check_fits
from proofmark.inference.steps.onnx_file import onnx_compute, onnx_digest
from proofmark.inference.steps.reference import Reference, framework_reference, rehearse_shortfall
from proofmark.inference.steps.step_ending import Undeclared, Unsupported, step_ended
from proofmark.inference.steps.weights import embedded_weights
from proofmark.inference.timing.bench import Bench
from proofmark.inference.timing.honesty_round import HonestyRound
from proofmark.inference.timing.measure import measure
from proofmark.inference.timing.short import ShortRounds
from proofmark.inference.timing.timing import Timing
from proofmark.literal import short
from proofmark.measuring.audible_loader import AudibleLoader
from proofmark.measuring.drawn import drawn_anew, loaded_here
from proofmark.measuring.precision import count_flops, framework_compute, perturbed
from proofmark.measuring.rehearsal import (
    checked_data,
    checked_dataset,
    declared_and_counted,
    first_batch,
    made_model,
    rehearse,
    rehearse_training,
)
from proofmark.measuring.statistics import samples_needed
from proofmark.measuring.window import Apart, Compute
from proofmark.metric import Scoring
from proofmark.record.events.log import Log
from proofmark.record.identity import identify
from proofmark.rules.config import EffectiveConfig
from proofmark.vendor.contract import lacks_torch
from proofmark.vendor.engine import Compiler
from proofmark.vendor.registry import FoundVendor

if TYPE_CHECKING:
    import torch

    from proofmark.case import Batch, Loader
    from proofmark.record.parts import Identity

Report = Callable[..., None]


@dataclass(eq=False)
class Pipeline:
    """What the steps of one case run hand on to each other, inside the case's own process."""

    case: InferenceCase
    found: FoundVendor
    compiler: Compiler | None
    config: EffectiveConfig
    run_dir: Path
    log: Log
    report: Report
    engines: Engines
    loader: Loader = field(init=False)
    first: list[torch.Tensor] = field(init=False, default_factory=list)
    bench: Bench = field(init=False)
    model: torch.nn.Module | None = field(init=False, default=None)
    onnx_path: Path | None = field(init=False, default=None)
    vouched_for: bool = field(init=False, default=False)
    engine: RemoteEngine | None = field(init=False, default=None)
    timing: Timing = field(init=False)
    short: ShortRounds | None = field(init=False, default=None)

    def run(self, step: str) -> dict[str, Any]:
        """Run a step; how it ended is the answer."""
        lacks = self._undeclared() if step in ("compile", "engine_inference") else None
        undeclared = f"compiler {self.config.compiler} does not declare {lacks}, and it failed" if lacks else None
        return step_ended(getattr(self, step), Path(inspect.getfile(type(self.case))).resolve().parent, undeclared)

    def data_and_model(self) -> None:
        """Step 2: unless `no_validation`, the model; the loader; what both are held to at once; the model's weights.

        A given file and the model first: it takes seconds to see that one is broken or that weights don't fit, and
        minutes to read a large data set. Training weights takes longest, and so comes when all else is known to be
        right.
        """
        config, model = self.config, None
        vendor = self.found.vendor
        if self.compiler is None and (why := lacks_torch(vendor, vendor.torch_device())):
            raise Unsupported(f"vendor {self.found.name} runs no framework, and compiler is null: {why}")
        self._take_given_onnx()
        if not config.no_validation:
            self._seed()
            model = made_model(self.case, config).eval()
        self._seed()
        self.loader = self.case.build_dataloader(config)
        checked_data(self.loader, "build_dataloader", ("dataset", "__len__", "__iter__"))
        checked_dataset(self.loader.dataset, "build_dataloader")
        batch = first_batch(loaded_here(self.loader))
        self.log.write("dataset", **self.loader.dataset.identity.model_dump())
        self.first = self.engines.example = batch[0]
        if self.onnx_path is not None:
            check_fits(self.onnx_path, self.first, self.case.output_names)
        if model is not None:
            rehearse(self.case, config, model, batch)
            rehearse_shortfall(self.case, model, self.first)
            counted = count_flops(model, self.first)
            self.log.write("flops", counted=counted)
            declared_and_counted(self.case, config, counted)
            self.log.write("weights", **self._weights(model, batch).model_dump())
            self.model = model.eval()
            self._seed()
        self.loader, order = drawn_anew(self.loader)
        self.bench = Bench(
            config,
            AudibleLoader(self.loader, self.report, self.first),
            self.first,
            lambda: Scoring.of(self.case, config),
            self.found.vendor,
            self.log,
            self.report,
            order=order,
        )

    def _take_given_onnx(self) -> None:
        """The file to compile, if the user gives one."""
        given = self.config.exist_onnx_path
        if given and reads_given_onnx(self.config, self.compiler):
            self.onnx_path = Path(given)
            check_onnx(self.onnx_path)
            digest = onnx_digest(self.onnx_path)
            self.log.write("onnx", sha256=digest)
            self.vouched_for = digest == self.config.host.validated_onnx

    def _seed(self) -> None:
        """Chance begins anew."""
        import torch

        random.seed(self.config.seed)
        torch.manual_seed(self.config.seed)

    def _weights(self, model: torch.nn.Module, batch: Batch) -> Identity:
        """The user's, which the model was made with, or those that the suite trains."""
        if self.config.host.weights:  # and so data of published size: it takes long until there is an engine
            self._rehearse_engine()
            return identify(model, self.config.host.weights)
        return embedded_weights(
            self.case,
            model,
            self.config,
            lambda text: self.report(note=text),
            self._training_progress,
            lambda: self._rehearse_training(model, batch),
        )

    def _rehearse_training(self, model: torch.nn.Module, batch: Batch) -> None:
        """Where weights are to be trained now: that they can be, that the model can be exported then, and an engine be
        had."""
        rehearse_training(self.case, model, batch)
        self._rehearse_engine()
        given = self.config.exist_onnx_path or self.config.exist_compiler_path
        if self.compiler is not None and self.compiler.consumes == "onnx" and not given:
            with tempfile.TemporaryDirectory(prefix=HANDED_OVER, dir=self.run_dir) as folder:
                self._export(model, Path(folder) / "rehearsal.onnx")

    def _rehearse_engine(self) -> None:
        """What a vendor's installation lacks is known at once. A precision that isn't declared may fail later."""
        compiler = self.config.compiler if self.compiler is not None and not self._undeclared() else None
        if compiler is not None or self.found.vendor.torch_device() != "cpu":
            self._isolated("engine", self.engines.rehearse(compiler))

    def framework_validation(self) -> None:
        """Step 3: the framework's accuracy in fp32 and its accuracy and speed at the tested precision."""
        assert self.model is not None
        vendor, precision = self.found.vendor, self.config.effective_precision
        tested = precision if precision in vendor.framework_precisions else "fp32"
        if self.compiler is None and tested != precision:
            declares = f"declares no {precision} of the framework (framework_precisions)"
            raise Unsupported(f"vendor {self.found.name} {declares}, and compiler is null")
        if tested != "fp32":
            self._measure_framework("framework_fp32", "fp32", rounds=1)
        self.log.write("framework_precision", precision=tested)
        rounds = self.config.repeat if self.compiler else self._rounds()
        self._measure_framework("framework", tested, rounds=rounds, ranked=not self.compiler)

    def _measure_framework(self, name: str, precision: str, rounds: int, ranked: bool = False) -> None:
        """A device is held to the processor's answers; where the case is ranked by it, it is probed like an engine."""
        assert self.model is not None
        compute = self._framework(precision)
        reference = self._reference(self.model) if isinstance(compute, Apart) else None
        how: dict[str, Any] = {"ranked": ranked, "probed": ranked and reference is not None, "reference": reference}
        measure(self.bench, name, compute, rounds, precision=precision, **how)
        self.engines.close()

    def _framework(self, precision: str) -> Compute:
        """In this process on the processor; elsewhere torch's back end is the vendor's code, and has a process."""
        assert self.model is not None
        if self.found.vendor.torch_device() == "cpu":
            return framework_compute(self.model, "cpu", precision)
        return self._isolated("framework", self.engines.framework(precision, self.model))

    def _isolated(self, of: str, engine: RemoteEngine) -> RemoteEngine:
        self.log.write("isolated", of=of, isolation=engine.isolation.model_dump(mode="json"))
        return engine

    def export(self) -> None:
        """Step 4: the model as an ONNX file."""
        assert self.model is not None
        self.onnx_path = self._export(self.model, self.run_dir / "model.onnx")
        self.log.write("onnx", sha256=onnx_digest(self.onnx_path))

    def _export(self, model: torch.nn.Module, path: Path) -> Path:
        export_onnx(model, self.first, path, self.case.input_names, self.case.output_names)
        return path

    def compile(self) -> None:
        """Step 5: the vendor's InferModel, compiled."""
        self._load_engine()

    def _load_engine(self) -> None:
        self.engine = self._isolated("engine", self.engines.compiled(self.onnx_path, self.model))
        if (reason := self.engine.foo_time_reason) is not None:
            self.log.write("foo_time", of="engine", reason=reason)

    def engine_inference(self) -> None:
        """Step 6: the engine's accuracy and speed, in the same rounds."""
        if self.engine is None:
            self._load_engine()
        assert self.engine is not None
        rounds = self._rounds()
        reference = self._engines_like()
        self.timing = measure(self.bench, "engine", self.engine, rounds, ranked=True, probed=True, reference=reference)
        if self._undeclared():
            raise Undeclared(
                f"compiler {self.config.compiler} does not declare {self._undeclared()}, yet it ran: "
                f"add it to the compiler's precisions{self._listed()}"
            )

    def audit(self) -> None:
        """Beyond the seven steps: the same model with other weights, under another name, compiled a second time.

        An engine that knows the model answers as before, or is slower now. Weights that could be known beforehand would
        be known as well as the model's own.
        """
        assert self.model is not None and self.engine is not None and self.compiler is not None
        other = perturbed(self.model, secrets.randbits(62))
        path = None
        if self.compiler.consumes == "onnx":
            path = self._export(other, self.run_dir / "subject.onnx")
        engine = self._isolated("engine", self.engines.compiled(path, other, artifacts="audit"))
        HonestyRound(self.bench, "engine", self.engine, None).audit(engine, self._reference(other), self.timing)

    def short_round(self) -> None:
        """Beyond the seven steps, as often as asked: what was measured last, for a fraction of a second more."""
        if self.short is None:
            target = self.engine or self._framework(str(self.config.effective_precision))
            reference = self._engines_like() if isinstance(target, Apart) else None
            self.short = ShortRounds(self.bench, target, reference)
        self.short.time()

    def _engines_like(self) -> Compute | None:
        """What the engine must answer like: the framework, or the ONNX file that an earlier run vouches for."""
        if self.model is not None:
            return self._reference(self.model)
        found = self.vouched_for and self.onnx_path
        return Reference(onnx_compute(found), self._alive) if found else None

    def _reference(self, model: torch.nn.Module) -> Compute:
        """The framework in float32 on the processor."""
        return framework_reference(self.case, model, self._alive)

    def _alive(self) -> None:
        self.report(alive="setup")

    def _rounds(self) -> int:
        """`repeat`, or as many as a 99th percentile of latency needs."""
        rounds = int(self.config.repeat)
        if self.config.get("scenario") == "latency":
            return max(rounds, math.ceil(samples_needed(99) / len(self.loader)))
        return rounds

    def _undeclared(self) -> str | None:
        """The tested precision, if the vendor does not declare that the compiler supports it."""
        precision: str = self.config.effective_precision
        return None if self.compiler is None or precision in self.compiler.precisions else precision

    def _listed(self) -> str:
        """That a vendor's list says the opposite of what was seen."""
        config, file = self.config, self.found.unsupported_file
        case = f"{config.suite}/{config.case}"
        listed = self.found.expects_unsupported(case, config.compiler, config.effective_precision)
        return f", and remove it from {short(file)}" if listed else ""

    def _training_progress(self, **figures: Any) -> None:
        self.report(phase="training weights", **figures)
        self.report(alive="calls" if figures["step"] < figures["steps"] else "setup")
