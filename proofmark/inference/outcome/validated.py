"""An earlier run that one relies on which validates nothing itself: its framework's accuracy, and whose model an ONNX
file is."""

from __future__ import annotations

from collections.abc import Iterator

from proofmark.errors import UsageError
from proofmark.inference.outcome.record import RunRecord, Score, Validated


def validated_by(record: RunRecord, session: str, sha256: str) -> Validated:
    """What a later run may rely on of a record that was verified, of that session and digest.

    Raises:
        UsageError: it has validated nothing, or exported nothing; the text is part of a sentence.
    """
    values = {each.metric: each.framework_fp32 for each in record.accuracy.scores if each.framework_fp32 is not None}
    if record.accuracy.framework_fp32 is None or record.dataset is None or record.weights is None:
        raise UsageError("its framework was not validated")
    if record.onnx is None or record.step("export").status != "done":
        raise UsageError("it has exported no ONNX file")
    if record.case_hash is None:
        raise UsageError("it does not say of which files of its case its configuration is")
    return Validated(
        session=session,
        record_sha256=sha256,
        suite=record.suite,
        case=record.case,
        profile=record.profile,
        case_hash=record.case_hash,
        vendor=record.vendor,
        started=record.started,
        framework_fp32=values,
        dataset_sha256=record.dataset.sha256,
        weights=record.weights,
        onnx_sha256=record.onnx,
    )


def unvalidated(record: RunRecord) -> list[str]:
    """Why nothing says that the model of a run's engine is the case's; nothing where something does."""
    if record.framework is not None:
        return []
    if record.validated is None:
        return ["no framework validation: nothing says that the engine's model is the case's"]
    return [f"the record given with --validated {what}" for what in _differing(record, record.validated)]


def _differing(record: RunRecord, earlier: Validated) -> Iterator[str]:
    ours, theirs = (f"{each.suite}/{each.case}, profile {each.profile}" for each in (record, earlier))
    if ours != theirs:
        yield f"is of {theirs}; this is {ours}"
        return
    if record.case_hash != earlier.case_hash:
        yield "is of the same case with other numbers in its files (case_hash)"
    if record.dataset is None or record.dataset.sha256 != earlier.dataset_sha256:
        yield "is of another data set"
    if record.onnx is None:
        yield "vouches for an ONNX file, and this run has read none"
    elif record.onnx != earlier.onnx_sha256:
        yield f"exported another ONNX file: SHA-256 {earlier.onnx_sha256[:12]}, this run's is {record.onnx[:12]}"


def held_to(record: RunRecord, score: Score) -> Score:
    """A value with that of the float32 framework which an engine is held to: of this run, or of what it relies on."""
    if record.validated is None or record.framework is not None or unvalidated(record):
        return score
    return score.model_copy(update={"framework_fp32": record.validated.framework_fp32.get(score.metric)})
