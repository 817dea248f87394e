"""Every row: arrays come back as they were made, and the probe tells the truth."""

import math
import subprocess
import sys

import pytest
import steps_backends
from steps_backends import LEAF_DTYPES, TRAITS, Declaration, HostArray, host_array

ROWS = steps_backends.names()


@pytest.fixture(params=ROWS)
def backend(request):
    """A row that runs here; one that does not is skipped with its reason."""
    row = steps_backends.get(request.param)
    probe = row.probe()
    if not probe.runs:
        pytest.skip(probe.reason)
    return row


def test_there_are_the_required_rows():
    required = {
        *("numpy", "numpy-readonly", "torch", "torch-cuda", "jax", "jax-jit", "jax-x64", "cupy"),
        *("jax-sharded", "jax-cuda", "torch-dtensor"),
        *("array-api-strict", "array-api-strict-device1", "array-api-strict-minimal"),
    }

    assert required == set(ROWS)


def test_naming_the_rows_imports_no_library():
    code = (
        "import sys, steps_backends; steps_backends.names(); "
        "print(sorted({'numpy', 'torch', 'jax', 'cupy', 'array_api_strict', 'ml_dtypes'} & set(sys.modules)))"
    )

    printed = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout

    assert printed.strip() == "[]"


def test_an_unknown_row_is_refused_with_the_known_ones():
    with pytest.raises(KeyError, match=r"no backend is called 'nunpy'; there are numpy, "):
        steps_backends.get("nunpy")


@pytest.mark.parametrize("name", ROWS)
def test_the_probe_says_that_it_runs_or_why_not(name):
    probe = steps_backends.get(name).probe()

    assert (probe.reason is None) == probe.runs
    assert probe.deviations == ()
    assert probe.version or "is not installed; pip install" in probe.reason


def test_cuda_rows_without_a_device_give_the_words_of_the_runtime():
    for name in ("cupy", "torch-cuda", "jax-cuda"):
        probe = steps_backends.get(name).probe()
        assert probe.runs or "no CUDA device: " in probe.reason or "is not installed" in probe.reason


@pytest.mark.parametrize("dtype", LEAF_DTYPES)
def test_an_array_comes_back_bit_for_bit(backend, dtype):
    if dtype not in backend.declaration.dtypes:
        with pytest.raises(TypeError, match=dtype):
            backend.array(host_array([1.0], dtype))
        return
    smallest = steps_backends.format_of(dtype).smallest_subnormal
    largest = steps_backends.format_of(dtype).largest
    values = [1 / 3, -0.0, smallest, -largest, math.inf]
    host = host_array([values, values], dtype)

    back = backend.read(backend.array(host))

    assert (back.dtype, back.shape) == (dtype, (2, 5))
    assert list(map(repr, host.values)) == list(map(repr, back.values))


@pytest.mark.parametrize("shape", [(), (0,), (2, 0, 3), (1, 2, 1)])
def test_every_rank_and_size_comes_back(backend, shape):
    host = host_array([0.5] * math.prod(shape), shape=shape)

    assert backend.read(backend.array(host)) == host


def test_nan_comes_back_as_nan(backend):
    (value,) = backend.read(backend.array(host_array([math.nan]))).values

    assert math.isnan(value)


@pytest.mark.parametrize(("dtype", "value"), [("int32", -7), ("bool", True)])
def test_arrays_that_are_no_leaves_can_be_made_too(backend, dtype, value):
    host = HostArray(dtype, (1,), (value,))

    assert backend.read(backend.array(host)) == host


def test_only_arrays_of_the_library_are_held(backend):
    foreign = [1.0, (1.0,), None, "text", {"a": 1.0}]

    assert backend.holds(backend.array(host_array([1.0])))
    assert not any(backend.holds(value) for value in foreign)


def test_arrays_lie_on_the_declared_device(backend):
    device = backend.device_of(backend.array(host_array([1.0])))

    assert device.split(":")[0] == backend.declaration.device


def test_a_call_gives_what_the_function_gives(backend):
    array = backend.array(host_array([1.0, 2.0]))

    result = backend.call(lambda tree, nothing: {"twice": tree["a"] + tree["a"]}, {"a": array}, None)
    backend.synchronize([result["twice"]])

    assert backend.read(result["twice"]) == host_array([2.0, 4.0])


def test_an_exception_leaves_a_call_as_it_is(backend):
    def fail(array):
        raise LookupError("mine")

    with pytest.raises(LookupError, match="mine"):
        backend.call(fail, backend.array(host_array([1.0])))


def test_numpy_scalars_are_no_arrays():
    np = pytest.importorskip("numpy")

    assert not steps_backends.get("numpy").holds(np.float32(1))


def test_the_read_only_row_forbids_writing_in_arrays_that_a_target_made():
    np = pytest.importorskip("numpy")
    row = steps_backends.get("numpy-readonly")

    def write(tree):
        tree["state"][0][0] = 1.0

    with pytest.raises(ValueError, match="read-only"):
        row.call(write, {"state": [np.zeros(2, dtype=np.float32)]})


def test_the_jit_row_compiles_a_function_once():
    row = steps_backends.get("jax-jit")
    if not row.probe().runs:
        pytest.skip("jax is not installed")
    traced = []

    def function(array):
        traced.append(type(array).__name__)
        return array * 2

    array = row.array(host_array([1.0]))
    row.call(function, array)
    row.call(function, array)

    assert len(traced) == 1


def test_a_declaration_names_only_what_there_is():
    with pytest.raises(ValueError, match=r"traits must come from eager, .*, got 'fast'"):
        Declaration("x", "x", "x", "cpu", ("float32",), frozenset({"fast"}))
    with pytest.raises(ValueError, match=r"dtypes must come from .*, got 'int32'"):
        Declaration("x", "x", "x", "cpu", ("float32", "int32"))
    with pytest.raises(ValueError, match="device must come from cpu, cuda, device1, got 'tpu'"):
        Declaration("x", "x", "x", "tpu", ("float32",))
    with pytest.raises(ValueError, match="must contain float32"):
        Declaration("x", "x", "x", "cpu", ("float64",))


def test_every_trait_is_used_by_a_row():
    used = {trait for name in ROWS for trait in steps_backends.get(name).declaration.traits}

    assert used == set(TRAITS)
