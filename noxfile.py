"""The project's checks, each in its own environment: `nox`, or `nox -s tests`.

Every session takes the versions of constraints.txt.
Arguments after `--` go to the program: `nox -s tests -- -k clip`.
"""

from pathlib import Path

import nox

ROOT = Path(__file__).parent
CONSTRAINTS = ROOT / "constraints.txt"

# The extra that brings each library, and the rows of the conformance table that are run with it.
BACKENDS = {
    "numpy": ("numpy", ["numpy", "numpy-readonly"]),
    "torch": ("torch", ["torch"]),
    "torch-cuda": ("torch", ["torch-cuda"]),
    "torch-dtensor": ("torch", ["torch-dtensor"]),
    "jax": ("jax", ["jax", "jax-jit", "jax-x64"]),
    "jax-sharded": ("jax", ["jax-sharded"]),
    "jax-cuda": ("jax", ["jax-cuda"]),
    "array-api-strict": (
        "strict",
        ["array-api-strict", "array-api-strict-device1", "array-api-strict-minimal"],
    ),
    "cupy": ("cupy", ["cupy"]),
}

# The random lane runs in one process.
SEARCHED = [backend for backend in BACKENDS if backend != "torch-dtensor"]

# The rows on which compiled steps have a form of their own.
COMPILED = {
    "numpy": ("numba", ["numpy", "numpy-readonly"]),
    "torch": ("torch,numba", ["torch"]),
    "jax": ("jax", ["jax"]),
}

# Other libraries that the suite is run on, and the row that their arrays come from.
PEERS = {"optax": "jax", "torch": "torch", "keras": "jax", "mlx": "numpy"}

nox.needs_version = ">=2025.5.1"
nox.options.sessions = ["lint", "tests", "wheel"]


def install(session: nox.Session, *requirements: str) -> None:
    """Install requirements in the versions of the constraints file."""
    session.install("-c", str(CONSTRAINTS), *requirements)


@nox.session
def tests(session: nox.Session) -> None:
    """Run all tests, on every array library."""
    install(session, "-e", ".[test]")
    session.run("pytest", *session.posargs)


@nox.session
@nox.parametrize("backend", list(BACKENDS), ids=list(BACKENDS))
def conformance(session: nox.Session, backend: str) -> None:
    """Run the conformance suite on the rows of one library; a row that cannot run here is an error."""
    extra, rows = BACKENDS[backend]
    install(session, "-e", f".[conformance,{extra}]")
    named = [argument for row in rows for argument in ("--backend", row)]
    session.run("steps-conformance", "run", *named, *session.posargs)


@nox.session
@nox.parametrize("backend", list(COMPILED), ids=list(COMPILED))
def compiled(session: nox.Session, backend: str) -> None:
    """Run the conformance suite on compiled steps, on the rows of one library."""
    extra, rows = COMPILED[backend]
    install(session, "-e", f".[conformance,{extra}]")
    named = [argument for row in rows for argument in ("--backend", row)]
    target = "steps_conformance.targets.compiled:target"
    session.run("steps-conformance", "run", "--target", target, *named, *session.posargs)


@nox.session
@nox.parametrize("backend", SEARCHED, ids=SEARCHED)
def random(session: nox.Session, backend: str) -> None:
    """Search for failures at random on the rows of one library; it has no part in the verdict."""
    extra, rows = BACKENDS[backend]
    install(session, "-e", f".[conformance,{extra}]")
    for row in rows:
        session.run("steps-conformance", "random", "--backend", row, *session.posargs)


@nox.session
def peers(session: nox.Session) -> None:
    """Run the suite on other libraries, and make docs/peers.md of what it finds."""
    install(session, "-e", ".[peers]")
    reports = Path(session.create_tmp()).resolve() / "peers"
    # JAX compiles each small operation anew, so a case may take long on a slow machine.
    limits = ["--case-seconds", "120", "--jobs", "1"]
    for library, row in PEERS.items():
        target = f"steps_conformance.targets.peers.{library}:target"
        named = ["--target", target, "--backend", row, "--report", str(reports / library)]
        session.run("steps-conformance", "run", *named, *limits, env={"KERAS_BACKEND": "jax"})
    session.run("python", "-m", "steps_conformance.targets.peers.page", str(reports), str(ROOT / "docs"))


@nox.session
def teeth(session: nox.Session) -> None:
    """Try the suite on planted faults and on mutants of steps_core; one that survives is an error."""
    install(session, "-e", ".[conformance,numpy,torch,jax,strict]")
    session.run("python", "-m", "planted", *session.posargs, env={"PYTHONPATH": str(ROOT / "tests")})


@nox.session
def judges(session: nox.Session) -> None:
    """Try the tests of the oracle and the comparers on mutants of those; one that survives is an error."""
    install(session, "-e", ".[conformance,numpy,strict]")
    session.run("python", "-m", "planted.judges", *session.posargs, env={"PYTHONPATH": str(ROOT / "tests")})


@nox.session
def bench(session: nox.Session) -> None:
    """Measure steps beside other libraries and the machine's limit, and write docs/benchmarks."""
    install(session, "-e", ".[bench]")
    session.run("python", "benchmarks/run.py", "--out", str(ROOT / "docs/benchmarks"), *session.posargs)


@nox.session
def lint(session: nox.Session) -> None:
    """Check style, form and types, and the workflows of GitHub."""
    install(session, "-e", ".[conformance,lint]")
    workflows = sorted(map(str, Path(".github/workflows").glob("*.yml")))
    session.run("check-jsonschema", "--builtin-schema", "vendor.github-workflows", *workflows)
    session.run("zizmor", "--offline", "--no-progress", ".github")
    session.run("ruff", "check", ".")
    session.run("ruff", "format", "--check", ".")
    session.run("mypy")


@nox.session
def wheel(session: nox.Session) -> None:
    """Build the distribution, install the wheel where no checkout is in sight, and use it there."""
    install(session, "build")
    elsewhere = Path(session.create_tmp()).resolve()
    built = elsewhere / "dist"
    session.run("python", "-m", "build", "--outdir", str(built), str(ROOT))
    newest = max(built.glob("*.whl"), key=lambda file: file.stat().st_mtime)
    install(session, "--force-reinstall", f"steps-core[conformance] @ {newest.as_uri()}")
    session.chdir(elsewhere)
    session.run("python", "-W", "error", str(ROOT / "tests/packaging/installed.py"))
    session.run("steps-conformance", "list", silent=True)
