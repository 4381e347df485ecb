"""What others call our settings: one table, from which every hint is made and every import renames.

Names of cases are not here: each case's YAML says in `known_as` what others call it.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Mapping

ALIKE = 0.75
"""The least share of two names that is alike where one of them may be meant for itself."""

BRING = "python -m proofmark.flagperf import CHECKOUT --vendor NAME --out DIR"
"""The command that brings an adaptation to FlagPerf along."""

_ALSO = {
    "learning_rate": "lr base_lr init_lr max_lr peak_lr",
    "weight_decay": "weight_decay_rate wd opt_weight_decay",
    "train_batch_size": "batch_size train_bs bs per_device_train_batch_size per_gpu_batch_size micro_batch_size",
    "batch_size": "train_batch_size batchsize bs infer_batch_size",
    "global_batch_size": "global_bs gbs total_batch_size",
    "eval_batch_size": "val_batch_size test_batch_size eval_bs per_device_eval_batch_size",
    "gradient_accumulation_steps": "gradient_accumulation grad_accum accumulate_steps accum_iter update_freq",
    "num_workers": "dataloader_num_workers num_worker workers nworkers dataloader_workers",
    "log_freq": "log_interval print_freq logging_steps log_steps",
    "checkpoint_steps": "save_interval save_steps checkpoint_interval save_checkpoints_steps save_freq",
    "activation_checkpointing": "gradient_checkpointing checkpoint_activations recompute use_recompute",
    "compile": "torch_compile use_compile",
    "exist_onnx_path": "onnx_path",
    "exist_compiler_path": "compiler_path engine_path",
    "no_validation": "skip_validation",
    "min_seconds": "min_duration",
    "warmup": "warmup_proportion warmup_ratio",
    "eval_interval_samples": "eval_iter_samples",
    "max_epoch": "max_epochs num_epochs epochs epoch num_train_epochs",
    "max_samples_termination": "max_samples",
    "max_seq_length": "max_seq_len seq_length seq_len max_sequence_length",
    "image_size": "img_size input_size",
    "hidden_share": "mask_ratio",
    "schedule": "lr_decay_style",
    "n_layer": "num_layers",
    "num_hidden_layers": "num_layers",
    "n_embd": "hidden_size",
    "n_head": "num_attention_heads",
    "n_positions": "max_position_embeddings",
}
"""Ours, and what else it is called."""


def meant(name: str, known: Iterable[str], also: Mapping[str, str] | None = None) -> str | None:
    """Which of the known names a name is another word for, or else is most like; None if none.

    Args:
        name: what somebody wrote.
        known: what there is.
        also: further names of what there is.
    """
    there = list(known)
    near = difflib.get_close_matches(name, there, 1)
    return renamed(name, there, also) or (near[0] if near else None)


def renamed(name: str, known: Iterable[str], also: Mapping[str, str] | None = None) -> str | None:
    """The known name that `name` is another word for, however spelled; None if there is none."""
    ours = [key for key in known if _spelled(name) in map(_spelled, [key, *_ALSO.get(key, "").split()])]
    others = {_spelled(theirs): ours for theirs, ours in (also or {}).items()}
    return ours[0] if ours else others.get(_spelled(name))


def misspelled(name: str, known: str) -> bool:
    """Whether a name that may be right as it is must be another one misspelled: 'dataset' is not 'target'."""
    return bool(renamed(name, [known])) or difflib.SequenceMatcher(None, name, known).ratio() >= ALIKE


def hint(name: str, known: Iterable[str], also: Mapping[str, str] | None = None) -> str:
    """A hint to append to a message: the known name that may have been meant."""
    near = meant(name, known, also)
    return f"; did you mean '{near}'?" if near else ""


def misnamed(name: str, there: Iterable[str]) -> str:
    """A hint to append to a message where `name` is expected and something like it is `there`."""
    return f"; did you mean '{name}'?" if any(meant(each, [name]) for each in there) else ""


def _spelled(name: str) -> str:
    return re.sub(r"[^a-z0-9/]", "", name.lower())
