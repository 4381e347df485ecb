"""A FlagPerf checkout of a vendor acme, made after FlagPerf's layout of 2023 to 2025."""

from __future__ import annotations

from pathlib import Path

BERT_BASE = """\
from typing import ClassVar

# required parameters
vendor: str = None
data_dir: str = None
train_data: str = "2048_shards_uncompressed"
init_checkpoint: str = "model.ckpt-28252.pt"
target_mlm_accuracy = 0.67
train_batch_size = 12
eval_batch_size = 128
learning_rate = 0.0004
weight_decay_rate = 0.01
gradient_accumulation_steps = 1
max_steps = 10000
max_samples_termination = 14000000
num_hidden_layers = 24
hidden_size = 1024
seed = 42
fp16 = False
log_freq = 1
local_rank = -1
dist_backend = "nccl"
dist_init_method = "env://"
"""
MUTABLE = """\
mutable_params = [
    'vendor', 'train_batch_size', 'eval_batch_size', 'learning_rate', 'fp16',
    'gradient_accumulation_steps', 'dist_backend', 'max_steps'
]
mutable_params += ["local_rank", "data_dir"]
"""
FILES = {
    "training/benchmarks/bert/pytorch/config/_base.py": BERT_BASE,
    "training/benchmarks/bert/pytorch/config/mutable_params.py": MUTABLE,
    "training/benchmarks/resnet50/pytorch/config/_base.py": (
        "lr = 0.1\ntrain_batch_size = 64\nseed = 1\nnum_workers = 8\nfp16 = False\n"
    ),
    "training/benchmarks/resnet50/pytorch/config/mutable_params.py": (
        'mutable_params = ["vendor", "lr", "train_batch_size", "num_workers", "dist_backend", "fp16"]\n'
    ),
    "training/acme/bert-pytorch/config/__init__.py": "",
    "training/acme/bert-pytorch/config/config_common.py": (
        'vendor: str = "acme"\ndist_backend = "xccl"\ntarget_mlm_accuracy = 0.5\n'
    ),
    "training/acme/bert-pytorch/config/config_Z100x1x8.py": """\
from config_common import *

train_batch_size = 27
eval_batch_size = train_batch_size
learning_rate = 1e-4
weight_decay_rate = 0.02
max_steps = 10000
hidden_size = 16
fp16 = True
gradient_accumulation_steps = 1
acme_fuse = True
""",
    "training/acme/bert-pytorch/config/config_Z100x1x1.py": "from config_common import *\nlearning_rate = 2e-4\n",
    "training/acme/bert-pytorch/config/environment_variables.sh": """\
# ACME ENV.SH
export ACME_FUSE=1
export ACME_CACHE="8 GiB" ACME_MODE='fast$'
export ACME_GEMM_DTYPE=int16
export LD_PRELOAD=/opt/acme/lib.so
export PATH=/opt/acme/bin:$PATH
source /opt/acme/env.sh
""",
    "training/acme/bert-pytorch/config/requirements.txt": "h5py>=3.1  # data\n-i http://mirror/simple\n\nacme-ext @ https://acme.test/e.whl\n",
    "training/acme/bert-pytorch/extern/.gitkeep": "",
    "training/acme/resnet50-pytorch/config/config_Z100x1x8.py": (
        "lr = 0.8\nfp16 = True\ntrain_batch_size = 32\nnum_workers = 8\n"
    ),
    "training/acme/resnet50-pytorch/extern/trainer_adapter.py": (
        "def convert_model(model):\n    return model\n\n\ndef model_to_fp16(model):\n    return model.half()\n"
    ),
    "training/acme/wav2vec2-pytorch/config/config_Z100x1x8.py": "lr = 0.1\n",
    "training/acme/bert-paddle/config/config_Z100x1x8.py": "lr = 0.1\n",
    "training/acme/acme_monitor.py": "print('never run')\nraise SystemExit(1)\n",
    "training/run_benchmarks/config/cluster_conf.py": (
        "'''Cluster configs'''\n\n# Hosts\nHOSTS = [\"10.1.2.3\", \"10.1.2.4\"]\nSSH_PORT = \"22\"\n"
    ),
    "training/run_benchmarks/config/test_conf.py": """\
'''Test Configs, including'''
# -*-coding:utf-8 -*-
VENDOR = "acme"
ACCE_CONTAINER_OPT = " --device /dev/acme0 -v /data:/data"
ACCE_VISIBLE_DEVICE_ENV_NAME = "ACME_VISIBLE_DEVICES"
PIP_SOURCE = "https://mirror.baidu.com/pypi/simple"
FLAGPERF_PATH = "/home/FlagPerf/training"
FLAGPERF_LOG_PATH = FLAGPERF_PATH + "/result/"
FLAGPERF_LOG_LEVEL = 'debug'
SHM_SIZE = "32G"
CLEAR_CACHES = True
CASES = {
    "bert:pytorch_1.8:Z100:1:8:1": "/home/datasets_ckpt/bert/train/",
    "resnet50:pytorch_1.13:Z100:1:8:1": "/data/imagenet",
    "wav2vec2:pytorch:Z100:1:8:1": "/data/wav2vec2",
    "bert:paddle:Z100:1:8:1": "/data/bert",
}
""",
    "inference/configs/host.yaml": """\
FLAGPERF_PATH: "/home/FlagPerf/inference"
FLAGPERF_LOG_PATH: "result"
VENDOR: "acme"
FLAGPERF_LOG_LEVEL: "INFO"
LOG_CALL_INFORMATION: True
HOSTS: ["10.1.2.3", "10.1.2.4"]
SSH_PORT: "22"
HOSTS_PORTS: ["2222"]
MASTER_PORT: "29501"
SHM_SIZE: "32G"
ACCE_CONTAINER_OPT: " --device /dev/acme0 -v /data:/data"
PIP_SOURCE: "https://mirror.baidu.com/pypi/simple"
CLEAR_CACHES: True
ACCE_VISIBLE_DEVICE_ENV_NAME: "ACME_VISIBLE_DEVICES"
CASES:
    "vit_l_16:pytorch_1.13": "/raid/ImageNet"
    "bertLarge:pytorch_1.13": "/raid/bert"
""",
    "inference/configs/vit_l_16/configurations.yaml": """\
batch_size: 64
flops: 6.16e10
fp16: true
compiler: tensorrt
num_workers: 8
log_freq: 30
repeat: 5
no_validation: false
exist_onnx_path: null
exist_compiler_path: null
""",
    "inference/configs/vit_l_16/parameters.yaml": "weights: vit.pth\n",
    "inference/configs/vit_l_16/vendor_config/acme_configurations.yaml": (
        "compiler: forge\nrepeat: 5\nforge_tmp_path: /tmp/forge\nno_validation: true\n"
    ),
    "inference/configs/bertLarge/configurations.yaml": (
        "batch_size: 32\nflops: 2*512*0.33e9\nfp16: true\ncompiler: tensorrt\nrepeat: 5\n"
    ),
    "inference/benchmarks/bertLarge/pytorch/acme_requirements.txt": "transformers>=4\n",
    "inference/inference_engine/acme/__init__.py": "",
    "inference/inference_engine/acme/forge.py": """\
import torch


class InferModel:
    def __init__(self, config, onnx_path, model):
        self.dtype = torch.float16 if config.fp16 else torch.float32
        self.model = model.eval().to(self.dtype)

    def __call__(self, inputs):
        with torch.inference_mode():
            return [self.model(*(each.to(self.dtype) for each in inputs))], 0.0
""",
    "inference/docker_images/acme/acme_analysis.py": """\
def analysis_log(logpath):
    max_usage = max_mem = 1.0
    with open(logpath) as stream:
        for line in stream:
            max_usage = float(line)
    return round(max_usage / 1024.0, 2), round(max_mem / 1024.0, 2), eval("24e12"), eval("96e12")
""",
    "inference/docker_images/acme/acme_monitor.py": "raise SystemExit(1)\n",
    "base/vendors/acme/acme_monitor.py": "",
}


def write(root: Path, files: dict[str, str] = FILES) -> Path:
    """Have the files below a folder."""
    for name, text in files.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text, encoding="utf-8")
    return root
