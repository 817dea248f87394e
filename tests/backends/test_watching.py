"""What a row sees of code that reads values on the host, or moves arrays between devices."""

import operator

import pytest
import steps_backends
from steps_backends import HostReadError, host_array

SEEING = ("array-api-strict", "array-api-strict-device1", "torch", "jax", "jax-jit", "jax-x64")
READS = {
    "float": lambda tree: float(tree["a"]),
    "bool": lambda tree: bool(tree["a"] > 1),
    "int": lambda tree: int(tree["a"]),
    "if": lambda tree: tree if tree["a"] > 1 else None,
}


@pytest.fixture(params=SEEING)
def backend(request):
    row = steps_backends.get(request.param)
    probe = row.probe()
    if not probe.runs:
        pytest.skip(probe.reason)
    return row


@pytest.mark.parametrize("read", READS.values(), ids=READS)
def test_a_read_of_a_value_is_seen(backend, read):
    tree = {"a": backend.array(host_array(2.0))}

    with pytest.raises(HostReadError, match=r"value|called|traced"):
        backend.unread(read, tree)


def test_arithmetic_and_shapes_are_no_reads(backend):
    tree = {"a": backend.array(host_array([[1.0, 2.0]])), "b": None}

    backend.unread(lambda given: given["a"] * given["a"].shape[1], tree)


def test_another_error_is_no_read(backend):
    with pytest.raises(LookupError, match="missing"):
        backend.unread(lambda tree: tree["missing"], {"a": backend.array(host_array([1.0]))})


def test_a_copy_to_the_cpu_is_seen_of_tensors_without_values():
    pytest.importorskip("torch")
    backend = steps_backends.get("torch")

    for copy in (lambda x: x.cpu(), lambda x: x.to("cpu"), lambda x: x.sum().item()):
        with pytest.raises(HostReadError, match=r"host|value"):
            backend.unread(copy, backend.array(host_array([1.0, 2.0])))


@pytest.mark.parametrize("read", ["__array__", "__dlpack__"])
def test_an_export_of_a_strict_array_is_seen_and_the_class_is_left_as_it_was(read):
    pytest.importorskip("array_api_strict")
    backend = steps_backends.get("array-api-strict")
    array = backend.array(host_array([1.0]))
    before = getattr(type(array), read)

    with pytest.raises(HostReadError, match=read):
        backend.unread(lambda x: getattr(x, read)(), array)
    assert getattr(type(array), read) is before
    assert operator.index(backend.array(steps_backends.HostArray("int32", (), (3,)))) == 3


@pytest.mark.parametrize("name", ["array-api-strict", "array-api-strict-device1"])
def test_moves_are_told_by_shape(name):
    pytest.importorskip("array_api_strict")
    backend = steps_backends.get(name)
    here = backend.array(host_array([1.0, 2.0]))
    there = backend.elsewhere(here)

    assert backend.device_of(here) != backend.device_of(there)
    assert backend.moves(lambda x, y: x.to_device(y.device), here, there) == [(2,)]
    assert backend.moves(lambda x, y: x.to_device(x.device), here, there) == []
