"""One case for each way in which a target can take its process along, and one after each."""

from steps_backends import host_array
from steps_conformance.case import case
from steps_conformance.compare import same_bits
from steps_conformance.run import Run

WAYS = (
    *("exits", "segfaults", "hangs", "eats-memory", "floods", "floods-and-exits", "half-a-line", "garbage"),
    *("forks", "leaves-a-thread"),
)


@case("VIOLENT-WAY-001", each={"way": WAYS})
def misbehaves(run: Run, way: str) -> None:
    run.make({"step": "ViolentStep", "options": {"way": way}}).apply(run.array([1.0]))


@case("VIOLENT-WAY-002")
def behaves(run: Run) -> None:
    result, _ = run.make({"step": "ViolentStep", "options": {"way": "none"}}).apply(run.array([1.0]))
    same_bits(run.read(result), host_array([1.0]))
