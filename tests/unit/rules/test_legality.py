"""Every row of the legality table, for a vendor's file and for the command line."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from proofmark.errors import MOST
from proofmark.literal import literal
from proofmark.rules.case_file import CaseFile, Parameters, Setting
from proofmark.rules.config import OWN_NAMES, EffectiveConfig, Resolution, resolve
from proofmark.rules.legality import HOST_SETTINGS, RESERVED, OverrideLayer, hold_against

FILE, COMMAND_LINE = "vendors/acme/configs/inference/net.yaml", "--set"


def case_file() -> CaseFile:
    return CaseFile(
        suite="inference",
        case="net",
        profile="embedded",
        path="net.yaml",
        parameters=Parameters(
            metric="top1", target=0.9, seed=0, flops=1e6, item="image", warmup=3, image_size=32, training={"epochs": 1}
        ),
        settings={
            "batch_size": Setting(type="int", value=8, min=1, max=1024),
            "fp16": Setting(type="bool", value=False),
            "precision": Setting(type="str", nullable=True, choices=("fp32", "fp16", "bf16")),
            "compiler": Setting(type="str", value="default", nullable=True),
            "repeat": Setting(type="int", value=3, min=1),
            "scenario": Setting(type="str", value="throughput", choices=("throughput", "latency")),
            "no_validation": Setting(type="bool", value=False),
            "scale": Setting(type="float", value=1.0),
            "exist_onnx_path": Setting(type="str", nullable=True),
        },
    )


def held(values: dict[str, Any], origin: str = FILE, closed: bool = False) -> Resolution:
    return resolve(case_file(), "acme", [OverrideLayer(origin, values, closed)], "engine")


def problem_of(values: dict[str, Any], origin: str, closed: bool = False) -> str:
    resolution = held(values, origin, closed)
    assert len(resolution.problems) == 1, resolution.problems
    problem = resolution.problems[0]
    assert problem.where == origin
    assert problem.key in values
    base = case_file()
    key = problem.key
    if key in base.settings:
        assert resolution.config[key] == held({}).config[key]
    return problem.what


@pytest.mark.parametrize("origin", [FILE, COMMAND_LINE])
class TestTable:
    def test_equal_in_type_and_value_is_an_error(self, origin: str) -> None:
        assert "does nothing" in problem_of({"batch_size": 8}, origin)

    def test_null_over_null_is_equal_too(self, origin: str) -> None:
        assert "does nothing" in problem_of({"exist_onnx_path": None}, origin)

    def test_whole_number_for_a_float_is_equal_too(self, origin: str) -> None:
        assert "does nothing" in problem_of({"scale": 1}, origin)

    @pytest.mark.parametrize(
        "key, written, number",
        [
            ("scale", "1e-4", 1e-4),
            ("scale", "2", 2.0),
            ("batch_size", 1e2, 100),
            ("batch_size", "1e2", 100),
            ("batch_size", "16", 16),
        ],
    )
    def test_a_number_is_one_however_it_is_written(self, origin: str, key: str, written: Any, number: Any) -> None:
        resolution = held({key: written}, origin)
        assert not resolution.problems and resolution.config[key] == number
        assert type(resolution.config[key]) is type(number) is type(resolution.config.overrides[0].new)

    @pytest.mark.parametrize(
        "key, written",
        [
            *[("batch_size", value) for value in (1.5, "1.5", "0100", "1_6", "nan", "1e999", "", "9" * 50, "١٦")],
            *[("scale", value) for value in (".inf", "1e", "0x10", "010.5", "1 ", "1e999")],
            *[("repeat", True), ("fp16", "1"), ("no_validation", 1.0)],
        ],
    )
    def test_what_is_no_number_stays_none(self, origin: str, key: str, written: Any) -> None:
        assert f"expected {case_file().settings[key].type}, found" in problem_of({key: written}, origin)

    @pytest.mark.parametrize("written", ["1e2", "16"])
    def test_text_that_looks_like_a_number_is_text_where_text_is_meant(self, origin: str, written: str) -> None:
        assert held({"compiler": written}, origin).config["compiler"] == written

    def test_different_value_is_applied_and_recorded(self, origin: str) -> None:
        resolution = held({"batch_size": 16}, origin)
        assert not resolution.problems
        assert resolution.config.batch_size == 16
        (override,) = [o for o in resolution.config.overrides if o.key == "batch_size"]
        assert (override.old, override.new, override.origin, override.kind) == (8, 16, origin, "changed")

    def test_unknown_key_is_applied_and_recorded_with_what_it_may_mean(self, origin: str) -> None:
        resolution = held({"tensor_cores": True}, origin)
        assert not resolution.problems
        assert resolution.config.tensor_cores is True
        (added,) = [o for o in resolution.config.overrides if o.kind == "added"]
        assert (added.key, added.old, added.new, added.near) == ("tensor_cores", None, True, None)
        (misspelt,) = [o for o in held({"batchsize": 4}, origin).config.overrides if o.kind == "added"]
        assert misspelt.near == "batch_size"

    def test_unknown_key_is_an_error_where_the_list_is_closed(self, origin: str) -> None:
        assert "did you mean 'batch_size'" in problem_of({"batchsize": 16}, origin, closed=True)

    @pytest.mark.parametrize("key, value", [("image_size", 16), ("metric", "top5"), ("training", {}), ("flops", 1.0)])
    def test_parameter_is_an_error(self, origin: str, key: str, value: Any) -> None:
        assert "parameter of the task" in problem_of({key: value}, origin)

    @pytest.mark.parametrize("key", ["target", "seed", "target_acc1", "my_seed", "TARGET_mAP"])
    def test_target_or_seed_is_an_error(self, origin: str, key: str) -> None:
        what = problem_of({key: 0.1}, origin)
        assert "target or a seed" in what or "parameter of the task" in what

    @pytest.mark.parametrize("key", sorted(HOST_SETTINGS))
    def test_host_setting_is_an_error(self, origin: str, key: str) -> None:
        assert "host setting" in problem_of({key: "x"}, origin)

    @pytest.mark.parametrize("key", sorted(RESERVED))
    def test_reserved_name_is_an_error_that_says_what_to_do(self, origin: str, key: str) -> None:
        assert problem_of({key: "x"}, origin) == f"is a reserved name; {RESERVED[key]} (asked for 'x')"

    @pytest.mark.parametrize(
        "key, value",
        [
            ("batch_size", "eight"),
            ("batch_size", 16.5),
            ("batch_size", True),
            ("batch_size", None),
            ("batch_size", [8]),
            ("fp16", 1),
            ("fp16", "yes"),
            ("compiler", 7),
            ("scale", "two"),
            ("scale", float("nan")),
        ],
    )
    def test_wrong_type_is_an_error_that_names_both_values(self, origin: str, key: str, value: Any) -> None:
        what = problem_of({key: value}, origin)
        assert "in force" in what and literal(case_file().settings[key].value) in what

    @pytest.mark.parametrize("key, value", [("batch_size", 0), ("batch_size", 4096), ("precision", "fp12")])
    def test_outside_its_constraint_is_an_error(self, origin: str, key: str, value: Any) -> None:
        assert "expected" in problem_of({key: value}, origin)

    def test_nothing_is_no_override(self, origin: str) -> None:
        assert held({}, origin).config == held({}, COMMAND_LINE).config

    def test_null_is_a_value(self, origin: str) -> None:
        resolution = held({"compiler": None}, origin)
        assert not resolution.problems
        assert resolution.config.compiler is None

    def test_all_problems_at_once(self, origin: str) -> None:
        resolution = held({"batch_size": 0, "seed": 1, "fp16": False, "repeat": 5, "a-b": 1}, origin)
        assert {problem.key for problem in resolution.problems} == {"batch_size", "seed", "fp16", "a-b"}
        assert resolution.config.repeat == 5


def test_the_command_line_is_held_against_what_the_vendor_set() -> None:
    layers = [OverrideLayer(FILE, {"repeat": 5}), OverrideLayer("--repeat", {"repeat": 3})]
    resolution = resolve(case_file(), "acme", layers, "engine")
    assert not resolution.problems
    assert resolution.config.repeat == 3
    again = resolve(case_file(), "acme", [layers[0], OverrideLayer("--repeat", {"repeat": 5})], "engine")
    assert [problem.where for problem in again.problems] == ["--repeat"]


def test_default_compiler_is_resolved_and_recorded() -> None:
    config = held({}).config
    assert config.compiler == "engine"
    assert [(o.key, o.new) for o in config.overrides] == [("compiler", "engine")]


class TestWhatComesToTheSame:
    @pytest.mark.parametrize("origin", [FILE, "--precision", "--compiler", COMMAND_LINE])
    @pytest.mark.parametrize(
        "values, expected",
        [
            ({"compiler": "engine"}, "is 'default', which comes to 'engine' already, so setting it to 'engine' does"),
            ({"precision": "fp32"}, "is null, which comes to 'fp32' already, so setting it to 'fp32' does nothing"),
        ],
    )
    def test_a_name_for_what_is_in_force_does_nothing(self, origin: str, values: dict[str, Any], expected: str) -> None:
        assert problem_of(values, origin).startswith(expected)

    @pytest.mark.parametrize(
        "first, second",
        [
            ({"fp16": True}, {"precision": "fp16"}),
            ({"precision": "fp16"}, {"fp16": True}),
            ({"precision": "fp16"}, {"fp16": False}),
            ({"scenario": "latency"}, {"batch_size": 2}),
            ({"compiler": "other"}, {"compiler": "other"}),
            ({"new_key": [1, None]}, {"new_key": [1, None]}),
        ],
    )
    def test_after_another_layer(self, first: dict[str, Any], second: dict[str, Any]) -> None:
        layers = [OverrideLayer(FILE, first), OverrideLayer(COMMAND_LINE, second)]
        (problem,) = resolve(case_file(), "acme", layers, "engine").problems
        assert problem.where == COMMAND_LINE and "does nothing" in problem.what

    @pytest.mark.parametrize(
        "first, second",
        [
            ({"fp16": True}, {"fp16": False}),
            ({"precision": "bf16"}, {"precision": "fp32"}),
            ({"precision": "bf16"}, {"precision": None}),
            ({"compiler": "other"}, {"compiler": "default"}),
            ({"compiler": "other"}, {"compiler": "engine"}),
            ({"new_key": 1}, {"new_key": True}),
            ({"scenario": "latency"}, {"scenario": "throughput"}),
        ],
    )
    def test_what_changes_something_is_applied(self, first: dict[str, Any], second: dict[str, Any]) -> None:
        layers = [OverrideLayer(FILE, first), OverrideLayer(COMMAND_LINE, second)]
        assert not resolve(case_file(), "acme", layers, "engine").problems


class TestVendorsOwn:
    @pytest.mark.parametrize("values", [{"compiler": None}, {"no_validation": True}])
    def test_a_vendors_file_may_not_leave_out_what_is_judged(self, values: dict[str, Any]) -> None:
        own = resolve(case_file(), "acme", [OverrideLayer(FILE, values, vendors_own=True)], "engine")
        (problem,) = own.problems
        assert problem.where == FILE and "which a vendor's file may not; the user may" in problem.what
        assert (own.config.compiler, own.config.no_validation) == ("engine", False)
        assert not resolve(case_file(), "acme", [OverrideLayer(COMMAND_LINE, values)], "engine").problems

    @pytest.mark.parametrize("path", [".cache/own.key", "/data/labels.json", "/opt/../srv/x", "vendors/acme/x.plan"])
    def test_a_vendors_file_names_no_file_that_its_engine_would_see(self, path: str) -> None:
        own = resolve(case_file(), "acme", [OverrideLayer(FILE, {"exist_onnx_path": path}, vendors_own=True)], "engine")
        (problem,) = own.problems
        assert "names a file that its engine would see" in problem.what and own.config.exist_onnx_path is None
        assert not resolve(case_file(), "acme", [OverrideLayer(COMMAND_LINE, {"exist_onnx_path": path})]).problems

    def test_a_vendors_file_names_no_file_that_the_session_opens(self) -> None:
        """What is in it would stand in the refusal."""
        case = case_file()
        case.settings["begun_with"] = Setting(type="str", nullable=True, users_own=True)
        layer = OverrideLayer(FILE, {"begun_with": "/home/user/.token.json"}, vendors_own=True)
        own = resolve(case, "acme", [layer], "engine")
        (problem,) = own.problems
        assert problem.what.startswith("is the user's alone to set") and own.config.begun_with is None
        layer = OverrideLayer(COMMAND_LINE, {"begun_with": "/tmp/net.json"})
        assert not resolve(case, "acme", [layer], "engine").problems

    def test_everything_else_as_before(self) -> None:
        values = {"compiler": "other", "fp16": True, "exist_onnx_path": "/opt/acme/net.onnx"}
        layer = OverrideLayer(FILE, values, vendors_own=True)
        assert not resolve(case_file(), "acme", [layer], "engine").problems


def test_null_is_told_as_null() -> None:
    values = {"batch_size": None, "image_size": None, "VENDOR": None, "model": None, "precision": None, "seed": None}
    resolution = held({**values, "scale": [None, True]})
    texts = [problem.what for problem in resolution.problems]
    assert len(texts) == 6 and all("null" in line for line in texts), texts
    assert not any("None" in line or "True" in line for line in texts)


def test_fp16_and_another_precision_contradict() -> None:
    assert "contradicts" in held({"fp16": True, "precision": "bf16"}).problems[0].what
    layers = [OverrideLayer(FILE, {"fp16": True}), OverrideLayer("--precision", {"precision": "fp32"})]
    assert "contradicts" in resolve(case_file(), "acme", layers, "engine").problems[0].what
    assert not held({"fp16": True, "precision": "fp16"}).problems
    back = [*layers, OverrideLayer(COMMAND_LINE, {"fp16": False})]
    assert not resolve(case_file(), "acme", back, "engine").problems
    assert held({"fp16": True}).config.effective_precision == "fp16"
    assert held({"precision": "bf16"}).config.effective_precision == "bf16"
    assert held({}).config.effective_precision == "fp32"


class TestFrozen:
    def test_nothing_can_be_set(self) -> None:
        config = held({}).config
        with pytest.raises(AttributeError):
            config.batch_size = 1
        with pytest.raises(TypeError):
            config.configurations["batch_size"] = 1
        with pytest.raises(TypeError):
            config.parameters["training"]["epochs"] = 99

    def test_unknown_attribute_names_the_case(self) -> None:
        with pytest.raises(AttributeError, match="case net has no parameter or configuration 'resnet50_fuse'"):
            held({}).config.resnet50_fuse

    def test_hash_follows_the_task_and_nothing_else(self, tmp_path: Path) -> None:
        one, same, other = held({}).config, held({}, COMMAND_LINE).config, held({"batch_size": 16}).config
        assert one.hash == same.hash != other.hash
        assert len(one.hash) == 64

    def test_survives_a_process_boundary(self) -> None:
        config = held({"batch_size": 16, "extra": [1, {"a": None}]}).config
        again = EffectiveConfig.from_dict(config.as_dict())
        assert again.hash == config.hash
        assert again.as_dict() == config.as_dict()


plain = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.floats() | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner, max_size=2),
    max_leaves=4,
)
names = st.sampled_from([*case_file().settings, "target", "seed", "VENDOR", "vendor", "warmup"]) | st.text(max_size=8)


@given(st.dictionaries(names, plain, max_size=5))
def test_every_override_is_applied_or_refused_and_never_both(values: dict[str, Any]) -> None:
    resolution = held(values)
    refused = {problem.key for problem in resolution.problems if problem.where == FILE}
    applied = {override.key for override in resolution.config.overrides if override.origin == FILE}
    assert refused | applied == set(values)
    assert not refused & applied
    assert resolution.config.parameters == held({}).config.parameters
    assert len(resolution.config.hash) == 64


values = st.fixed_dictionaries(
    {},
    optional={
        "fp16": st.booleans(),
        "precision": st.sampled_from([None, "fp32", "fp16", "bf16"]),
        "compiler": st.sampled_from([None, "default", "engine", "other"]),
        "scenario": st.sampled_from(["throughput", "latency"]),
        "batch_size": st.integers(1, 3),
        "repeat": st.integers(2, 4),
    },
)


@given(st.lists(values, max_size=3), values)
def test_an_override_is_refused_just_where_the_run_is_the_same_without_it(
    before: list[dict[str, Any]], last: dict[str, Any]
) -> None:
    layers = [OverrideLayer(str(number), given) for number, given in enumerate(before)]
    base = resolve(case_file(), "acme", layers, "engine")
    if base.problems:
        return
    for key, value in last.items():
        after = resolve(case_file(), "acme", [*layers, OverrideLayer(COMMAND_LINE, {key: value})], "engine")
        idle = [problem for problem in after.problems if "does nothing" in problem.what]
        other = [problem for problem in after.problems if "does nothing" not in problem.what]
        config = after.config if other or not idle else base.config
        same = {name: config[name] for name in case_file().settings if name not in ("fp16", "precision")}
        was = {name: base.config[name] for name in same}
        if idle:
            assert (same, config.effective_precision) == (was, base.config.effective_precision)
        else:
            assert other or (same, config.effective_precision) != (was, base.config.effective_precision)


def test_the_names_that_nobody_may_set_are_these() -> None:
    """Written out: a name that falls off the list would otherwise go unnoticed."""
    assert {
        *("FLAGPERF_PATH", "FLAGPERF_LOG_PATH", "FLAGPERF_LOG_LEVEL", "LOG_CALL_INFORMATION", "VENDOR", "HOSTS"),
        *("SSH_PORT", "HOSTS_PORTS", "MASTER_PORT", "SHM_SIZE", "ACCE_CONTAINER_OPT", "PIP_SOURCE", "CLEAR_CACHES"),
        *("ACCE_VISIBLE_DEVICE_ENV_NAME", "CASES"),
    } == HOST_SETTINGS
    assert {
        "data_dir": "use --data-dir",
        "log_dir": "use --results-dir",
        "results_dir": "use --results-dir",
        "cache_dir": "use --cache-dir",
        "weights": "use --weights",
        "vendor": "use --vendor",
        "profile": "use --profile",
        "host": "use --host-config",
        "effective_precision": "use --precision",
        "case": "choose cases with -k",
        "suite": "choose a suite by its path: pytest suites/<suite>",
        "framework": "the framework is pytorch",
        **dict.fromkeys(("metrics", "better"), "what a case is judged by is its own"),
        "perf_dir": "nothing uses it here",
        **dict.fromkeys(("parameters", "configurations", "overrides", "hash", "as_dict"), "choose another name"),
        **dict.fromkeys(("from_dict", "keys", "items", "values", "get", "source"), "choose another name"),
    } == RESERVED


def test_no_override_takes_an_attribute_of_the_configuration() -> None:
    assert {name for name in OWN_NAMES if not name.startswith("_")} <= RESERVED.keys()


def test_a_key_that_is_near_to_two_is_said_to_be_near_to_one() -> None:
    settings = {key: Setting(type="int", value=1) for key in ("scales", "scaled")}
    ours = hold_against(OverrideLayer(FILE, {"scale": 2}), {}, settings, {})
    assert not ours.problems and ours.applied[0].near in settings
    (problem,) = hold_against(
        OverrideLayer(FILE, {"scale": 2}, closed=True), dict.fromkeys(settings, 1), {}, {}
    ).problems
    assert problem.what == "is not one of the settings that may be overridden (asked for 2); did you mean 'scales'?"


@pytest.mark.parametrize(
    "key, value, expected",
    [
        (
            "compiler",
            None,
            "null leaves the engine out, which a vendor's file may not; the user may, with --compiler null",
        ),
        (
            *("no_validation", True),
            "leaves out whose model the engine is, which a vendor's file may not; the user may, with --set",
        ),
        *(
            (
                *(key, "/home/acme/net.onnx"),
                "names a file that its engine would see: a vendor's file may name those below"
                " /usr, /opt, /lib, /lib64; the user may name any, with --set",
            )
            for key in ("exist_onnx_path", "exist_compiler_path")
        ),
    ],
)
def test_what_a_vendors_file_may_not_say_is_told_whole(key: str, value: Any, expected: str) -> None:
    layer = OverrideLayer(FILE, {key: value}, vendors_own=True)
    (problem,) = hold_against(layer, {key: False}, case_file().settings, {}).problems
    assert (problem.where, problem.key, problem.what) == (FILE, key, expected)


PLAIN = "expected a finite number, text, true, false, null, or a list or mapping of these, found "


@pytest.mark.parametrize(
    "key, value, closed, expected",
    [
        ("qqq", 2, True, "is not one of the settings that may be overridden (asked for 2)"),
        ("_own", 2, False, "is not a name (letters, digits, underscore)"),
        ("own", float("inf"), False, f"{PLAIN}{literal(float('inf'))}"),
        ("own", [1, {"a": {1, 2}}], False, f"{PLAIN}{literal([1, {'a': {1, 2}}])}"),
        ("own", {1: 2}, False, f"{PLAIN}{literal({1: 2})}"),
    ],
)
def test_a_new_key_is_refused_with_these_words(key: str, value: Any, closed: bool, expected: str) -> None:
    (problem,) = hold_against(OverrideLayer(FILE, {key: value}, closed), {"batch": 1}, {}, {}).problems
    assert problem.what == expected


@pytest.mark.parametrize(
    "old, new", [([1], [1, 2]), ([1, 2], [1]), ({"a": 1}, {"a": 1, "b": 2}), ([1], [1.0]), (1, True)]
)
def test_a_value_that_begins_like_another_is_another(old: Any, new: Any) -> None:
    held_up = hold_against(OverrideLayer(FILE, {"own": new}), {"own": old}, {}, {})
    assert not held_up.problems and [(each.old, each.new) for each in held_up.applied] == [(old, new)]


@pytest.mark.parametrize("value", [1.5, {"a": [1, None, "x"]}, {}, [], False])
def test_any_plain_value_may_be_new(value: Any) -> None:
    ours = hold_against(OverrideLayer(FILE, {"own": value}), {}, {}, {})
    assert not ours.problems and [(each.key, each.new, each.kind) for each in ours.applied] == [("own", value, "added")]


def test_what_follows_from_other_settings_is_on_record() -> None:
    following = held({"scenario": "latency"}).config
    assert following.batch_size == 1 and following.compiler == "engine"
    by_key = {each.key: (each.old, each.new, each.origin, each.kind) for each in following.overrides}
    assert by_key["compiler"] == ("default", "engine", "vendor acme", "changed")
    assert by_key["batch_size"] == (8, 1, "scenario latency", "changed")
    both = [OverrideLayer(FILE, {"batch_size": 1}), OverrideLayer(COMMAND_LINE, {"scenario": "latency"})]
    config = resolve(case_file(), "acme", both, "engine").config
    assert [each.origin for each in config.overrides if each.key == "batch_size"] == [FILE]
    assert [each.key for each in held({}).config.overrides] == ["compiler"] and held({}).config.batch_size == 8


def test_fp16_and_another_precision_contradict_each_other() -> None:
    (problem,) = held({"fp16": True, "precision": "bf16"}).problems
    assert (problem.where, problem.key) == (FILE, "precision")
    assert problem.what == "contradicts fp16: true (precision is 'bf16'); set one of them"
    assert not held({"fp16": True}).problems and not held({"precision": "bf16"}).problems
    layers = [OverrideLayer(FILE, {"precision": "bf16"}, vendors_own=True), OverrideLayer("--set", {"fp16": True})]
    assert [each.where for each in resolve(case_file(), "acme", layers, "engine").problems] == ["--set"]


def test_a_precision_of_the_users_decides_over_fp16_of_others() -> None:
    base = OverrideLayer(FILE, {"fp16": True}, vendors_own=True)
    config = resolve(case_file(), "acme", [base, OverrideLayer("--precision", {"precision": "fp32"})], "engine").config
    assert (config.fp16, config.precision, config.effective_precision) == (False, "fp32", "fp32")
    changes = [(each.new, each.origin) for each in config.overrides if each.key == "fp16"]
    assert changes == [(True, FILE), (False, "precision fp32")]
    both = [base, OverrideLayer("--precision", {"precision": "fp32"}), OverrideLayer("--set", {"fp16": False})]
    assert not resolve(case_file(), "acme", both, "engine").problems
    theirs = [base, OverrideLayer(FILE, {"precision": "bf16"}, vendors_own=True)]
    assert [each.key for each in resolve(case_file(), "acme", theirs, "engine").problems] == ["precision"]


def test_a_vendors_file_serves_all_profiles() -> None:
    """What does nothing in this one is no error where it does something in another; of the user's, it is."""
    case = case_file().model_copy(update={"elsewhere": {"batch_size": (64,), "repeat": (3,), "fp16": (True,)}})
    values = {"batch_size": 8, "repeat": 3, "fp16": False, "compiler": "default"}

    def resolved(own: bool) -> Resolution:
        return resolve(case, "acme", [OverrideLayer(FILE, values, vendors_own=own)], "engine")

    assert {problem.key for problem in resolved(own=True).problems} == {"repeat", "compiler"}
    assert {problem.key for problem in resolved(own=False).problems} == values.keys()
    assert [override.key for override in resolved(own=True).config.overrides] == ["compiler"], (
        "nothing else was changed"
    )


@pytest.mark.parametrize("other, does_nothing", [("default", True), ("engine", True), (None, False)])
def test_what_comes_to_the_same_in_all_profiles_does_nothing(other: str | None, does_nothing: bool) -> None:
    case = case_file().model_copy(update={"elsewhere": {"compiler": (other,)}})
    resolution = resolve(case, "acme", [OverrideLayer(FILE, {"compiler": "engine"}, vendors_own=True)], "engine")
    assert [problem.key for problem in resolution.problems] == (["compiler"] if does_nothing else [])


@pytest.mark.parametrize("kind, written, number", [("float", "1e-4", 1e-4), ("int", 1e2, 100), ("int", "8", 8)])
def test_a_cases_own_number_is_one_however_it_is_written(kind: Any, written: Any, number: Any) -> None:
    value = Setting(type=kind, value=written).value
    assert value == number and type(value) is type(number)
    assert Setting(type="float", value=10).value == 10, "as it stands in the file"
    assert Setting(type="int", value="9" * 18).value == int("9" * 18)
    with pytest.raises(ValidationError):
        Setting(type="int", value="9" * 20)  # no reader of a record takes it
    assert Setting(type="str", value="1e2").value == "1e2"


def test_of_very_many_problems_the_first_are_told() -> None:
    """Nobody reads them all, and each is looked up in its file again by who annotates it."""
    problems = held({f"seed_{number}": 1 for number in range(10_000)}, closed=True).problems
    assert len(problems) == MOST + 1 and problems[-1].what == f"and {10_000 - MOST} more problems"
