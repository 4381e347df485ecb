"""Every reader of what comes from a disk or a wire, each with inputs that it must take or refuse in a line."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from hypothesis import strategies as st

from proofmark.affected.rooms import read_rooms
from proofmark.automl.config_yml import read_config_yml
from proofmark.automl.outcome.record import AutoMLRecord
from proofmark.errors import ProofmarkError
from proofmark.flagperf.adaptation.python.source import read_python
from proofmark.flagperf.adaptation.settings.environment_files import exports, requirements
from proofmark.flagperf.host_file import load_host_file
from proofmark.flagperf.perflog_reader import read_perflog
from proofmark.inference.case import InferenceParameters
from proofmark.inference.node.answers import read_node_answer
from proofmark.inference.outcome.collect import collect
from proofmark.inference.outcome.record import RunRecord
from proofmark.launch.cluster.cluster_file import load_cluster
from proofmark.launch.cluster.container.settings import ContainerSettings
from proofmark.launch.cluster.node_logs import NodeLogs
from proofmark.launch.launchers.modelarts import wire
from proofmark.launch.launchers.modelarts.cloud_file import load_cloud
from proofmark.launch.launchers.modelarts.original import converted, read_original
from proofmark.launch.service.ticket import Manifest, Ticket, read_wire
from proofmark.process.answering.answers import read_answer
from proofmark.record.envelope import CaseRecord
from proofmark.record.load import load_record
from proofmark.record.policy import default_policy, load_policy
from proofmark.rules.case_file import load_case_file
from proofmark.rules.config import resolve
from proofmark.rules.legality import OverrideLayer
from proofmark.rules.yaml.strict import load_mapping, parse
from proofmark.rules.yaml.typed import load_model
from proofmark.training.job import LEAVES
from proofmark.training.logs.collect import collect as collect_training
from proofmark.training.outcome.record import TrainingRecord
from proofmark.vendor.hardware.chips import describe_chip
from proofmark.verification.judged import judge_again
from proofmark.verification.verify import verify
from reports.content.provenance import override_line
from reports.content.view import View
from reports.junit import properties
from reports.site.entry import entry_of
from reports.site.files import as_json
from reports.site.league import league
from reports.site.pages import comparable
from reports.site.ranking import standings
from reports.terminal import explanations, summary_lines
from suites.automl.from_config_yml import arguments
from suites.training.report.mllog import mllog
from suites.training.report.perflog import perflog
from tests.fuzz import inputs, samples
from tests.fuzz.files import FILES_READ
from tests.fuzz.searches import searches
from tests.fuzz.wires import WIRES
from tests.suites_there import SUITES, page_of
from tests.unit.records import record


class Reader(NamedTuple):
    """Inputs as bytes, and what reads them out of a folder. It may refuse with `refusal` in a few lines."""

    inputs: st.SearchStrategy[Any]
    read: Callable[[Path, Any], None]
    refusal: tuple[type[Exception], ...] = (ProofmarkError,)


def shown(record: CaseRecord, folder: Path) -> None:
    """Every report of a record; and it comes back from a disk as it was."""
    path = folder / "record.json"
    record.save(path)
    assert type(record).load(path) == record
    json.dumps(View(record).public(), allow_nan=False)
    lines = [*summary_lines([record], suites=SUITES), *explanations([record])]
    assert all(line.isprintable() for line in lines), lines
    assert "<script" not in page_of([record])
    properties(record)
    view = View(record)
    entry = entry_of("0" * 16, view, ())
    as_json([comparable(entry, view), league([entry], standings([entry]), [])])
    if isinstance(record, TrainingRecord):
        for run in record.runs:
            for line in (perflog(record, run) + mllog(record, run)).splitlines():
                json.loads(line[line.index("{") :])


def _record(kind: type[CaseRecord]) -> Callable[[Path, bytes], None]:
    def read(folder: Path, content: bytes) -> None:
        (folder / "in.json").write_bytes(content)
        record = load_record(folder / "in.json", SUITES.get)
        if isinstance(record, kind):  # else its name is of another suite, or of none
            shown(record.with_figures(SUITES[record.suite].figures(record)), folder)

    return read


def _case_log(folder: Path, content: tuple[bytes, bytes]) -> None:
    (folder / "events.jsonl").write_bytes(content[0])
    (folder / "monitor.jsonl").write_bytes(content[1])
    shown(collect(folder / "events.jsonl"), folder)


def _session(folder: Path, content: tuple[bytes, bytes]) -> None:
    run_dir = folder / "inference" / "net"
    run_dir.mkdir(parents=True)
    (folder / "manifest.json").write_bytes(content[0])
    (run_dir / "record.json").write_bytes(content[1])
    verified = verify(folder, SUITES)
    assert not verified.holds and all(str(found).isprintable() for found in (*verified.findings, *verified.notes))
    judge_again(run_dir / "record.json", SUITES)


def _training_logs(folder: Path, content: dict[str, bytes]) -> None:
    for name, written in content.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(written)
    shown(collect_training(folder), folder)


def _perflog(folder: Path, content: bytes) -> None:
    (folder / "rank0.out.log").write_bytes(content)
    shown(read_perflog([folder / "rank0.out.log"]), folder)


def _case_file(folder: Path, content: tuple[bytes, bytes, bytes]) -> None:
    for name, written in zip(("contract.yaml", "net.yaml", "vendor.yaml"), content, strict=True):
        (folder / name).write_bytes(written)
    case = load_case_file(folder / "net.yaml", "inference", "embedded", folder / "contract.yaml", InferenceParameters)
    layer = OverrideLayer("vendor.yaml", load_mapping(folder / "vendor.yaml", folder))
    resolution = resolve(case, "acme", [layer], "engine")
    json.dumps(resolution.config.as_dict(), allow_nan=False)
    lines = [*map(str, resolution.problems), *map(override_line, resolution.config.overrides)]
    assert resolution.config.hash and all(line.isprintable() for line in lines), lines


def _file(load: Callable[[Path], Any]) -> Callable[[Path, bytes], None]:
    def read(folder: Path, content: bytes) -> None:
        (folder / "in.yaml").write_bytes(content)
        load(folder / "in.yaml")

    return read


def _rooms(folder: Path, content: bytes) -> None:
    rooms = read_rooms(content.decode("utf-8", "replace"), "main:ci/rooms.yaml")
    _ = rooms.affects_no_case("docs/a.md"), rooms.may_touch("acme", "vendors/acme/x.py")


def _host_file(path: Path) -> None:
    host = load_host_file(path)
    _ = host.entries, host.left_aside


def _config_yml(path: Path) -> None:
    read = read_config_yml(path)
    assert all(str(fate).isprintable() for fate in read.fates)
    arguments(read, str(path))


def _answer(folder: Path, line: bytes) -> None:
    assert isinstance(read_answer(line), dict)


def _answer_of_host(folder: Path, line: bytes) -> None:
    assert isinstance(read_node_answer(line), dict)


def _end_of_node(folder: Path, line: bytes) -> None:
    logs = NodeLogs(folder, LEAVES)
    logs.end(json.loads(line))
    assert logs.incomplete is None or logs.incomplete.isprintable()


def _answer_of_service(folder: Path, content: bytes) -> None:
    view = wire.read(content, wire.Job, "a job").view()
    assert all(task.name.isprintable() for task in view.tasks)


def _original(path: Path) -> None:
    converted(read_original(path), "in.py", False)


def _adaptation(folder: Path, content: bytes) -> None:
    (folder / "config_Z100x1x8.py").write_bytes(content)
    found = read_python(folder / "config_Z100x1x8.py", folder)
    json.dumps(found.plain, allow_nan=False)
    assert all(line.isprintable() for each in found.refused for line in each.what.splitlines())
    text = content.decode("utf-8", "replace")
    assert all(line.name or line.why for line in [*exports(text), *requirements(text)])


def _wire(path: Path) -> None:
    for kind in (Manifest, Ticket):
        with contextlib.suppress(ValueError):
            read_wire(path, kind)


def _option(folder: Path, text: str) -> None:
    parse(text, "--set")


_MONITORS = inputs.logs(samples.MONITOR)
READERS = {
    "case log": Reader(
        st.tuples(inputs.logs(samples.CASE_EVENTS), _MONITORS), _case_log, (ProofmarkError, samples.no_beginning)
    ),
    "training logs": Reader(
        st.fixed_dictionaries({name: inputs.logs(events) for name, events in samples.TRAINING_LOGS.items()}),
        _training_logs,
        (ProofmarkError, samples.no_beginning),
    ),
    "record": Reader(inputs.jsons(samples.RECORD), _record(RunRecord)),
    "training record": Reader(inputs.jsons(samples.TRAINING_RECORD), _record(TrainingRecord)),
    "a search's record": Reader(inputs.jsons(samples.SEARCH_RECORD), _record(AutoMLRecord)),
    "perflog": Reader(inputs.logs(samples.PERFLOG).map(samples.marked), _perflog),
    "case file": Reader(
        st.tuples(inputs.yamls(samples.CONTRACT), inputs.yamls(samples.CASE), inputs.yamls(samples.OVERRIDES)),
        _case_file,
    ),
    "host file": Reader(inputs.yamls(samples.HOST), _file(_host_file)),
    "rooms": Reader(inputs.yamls(samples.ROOMS), _rooms),
    "cluster file": Reader(inputs.yamls(samples.CLUSTER), _file(load_cluster)),
    "cloud file": Reader(inputs.yamls(samples.CLOUD), _file(load_cloud)),
    "a service's answer": Reader(inputs.jsons(samples.SERVICE_JOB), _answer_of_service),
    "what a service's node leaves": Reader(inputs.jsons(samples.MANIFEST), _file(_wire)),
    "an original's configuration": Reader(
        st.one_of(
            st.text(max_size=200).map(str.encode), inputs.yamls(samples.CLUSTER).map(b"session_config = ".__add__)
        ),
        _file(_original),
    ),
    "container file": Reader(
        inputs.yamls(samples.CONTAINER), _file(lambda path: load_model(path, ContainerSettings, path.parent))
    ),
    "policy": Reader(inputs.yamls(default_policy().model_dump(mode="json")), _file(load_policy)),
    "a session's folder": Reader(
        st.tuples(inputs.jsons(samples.SESSION_MANIFEST), inputs.jsons(record().model_dump(mode="json"))), _session
    ),
    "chips": Reader(inputs.yamls(samples.CHIPS), _file(lambda path: describe_chip("Acme One", 2, "fp16", path))),
    "answer": Reader(st.one_of(map(inputs.jsons, samples.ANSWERS)), _answer, (ValueError,)),
    "a host's answer": Reader(
        st.one_of(map(inputs.jsons, (*samples.ANSWERS, *samples.HOSTS_ANSWERS))), _answer_of_host, (ValueError,)
    ),
    "the original's config.yml": Reader(inputs.yamls(samples.CONFIG_YML), _file(_config_yml)),
    "an adaptation's settings": Reader(
        st.one_of(st.text(max_size=200).map(str.encode), inputs.yamls(samples.CLUSTER).map(b"settings = ".__add__)),
        _adaptation,
    ),
    "an option's value": Reader(st.text(max_size=80), _option),
}
for others in (FILES_READ, WIRES, searches(shown)):
    READERS |= {name: Reader(*each) for name, each in others.items()}
