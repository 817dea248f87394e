"""One case for each way to end."""

import os
import sys
import time
import warnings
from collections.abc import Iterator

from steps_backends import host_array
from steps_conformance.case import case
from steps_conformance.compare import same_bits
from steps_conformance.run import Run


@case("PLANT-PASS-001", each={"dtype": ("float32", "float16")})
def identity_keeps_bits(run: Run, dtype: str) -> None:
    result, _ = run.step("IdentityStep").apply(run.array([1.0, -0.0], dtype))
    same_bits(run.read(result), host_array([1.0, -0.0], dtype))


@case("PLANT-PASS-002", needs={"state_files"})
def needs_what_the_target_lacks(run: Run) -> None:
    raise AssertionError("must not be started")


@case("PLANT-FAIL-001")
def wrong_value(run: Run) -> None:
    result, _ = run.step("IdentityStep").apply(run.array([1.0]))
    same_bits(run.read(result), host_array([2.0]))


@case("PLANT-FAIL-001")
def plain_assertion(run: Run) -> None:
    assert 1 + 1 == 3


@case("PLANT-FAIL-001")
def refused(run: Run) -> None:
    run.step("UnknownStep")


@case("PLANT-ERROR-001")
def raises(run: Run) -> None:
    run.step("RaisingStep").apply(run.array([1.0]))


@case("PLANT-ERROR-001")
def warns(run: Run) -> None:
    warnings.warn("look out", RuntimeWarning, stacklevel=1)


@case("PLANT-ERROR-001")
def leaves_with_system_exit(run: Run) -> None:
    raise SystemExit(0)


@case("PLANT-ERROR-001")
def is_a_generator(run: Run) -> Iterator[None]:
    yield


@case("PLANT-CRASH-001")
def ends_the_process_with_success(run: Run) -> None:
    os._exit(0)


@case("PLANT-CRASH-001")
def is_killed(run: Run) -> None:
    sys.stdout.write("last words\n")
    sys.stdout.flush()
    os.abort()


@case("PLANT-TIMEOUT-001")
def hangs(run: Run) -> None:
    time.sleep(600)


@case("PLANT-LAST-001")
def runs_after_all_of_them(run: Run) -> None:
    assert run.read(run.array([1.0])) == host_array([1.0])
