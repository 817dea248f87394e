#!/usr/bin/env bash
# The suite and a speed table on one CUDA machine, in under four minutes, with no network and nothing installed:
# what it needs (PyTorch, CuPy, JAX, each built for CUDA) is in the environment of $PYTHON, or is reported as not run.
#   tools/gpu_check.sh --report DIR                              on a CUDA machine
#   tools/gpu_check.sh --report DIR --device cpu --scale 0.001   tries the script where there is no GPU
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
export PYTHONPATH="$PWD:$PWD/backends:$PWD/conformance${PYTHONPATH:+:$PYTHONPATH}"
# The libraries share one device.
export XLA_PYTHON_CLIENT_PREALLOCATE=false
exec "${PYTHON:-python3}" tools/gpu_check.py "$@"
