"""How many planted faults this suite catches: measured by its project, and shipped as data with the suite."""

import json
from dataclasses import dataclass
from importlib.resources import files

FILE = "teeth.json"


@dataclass(frozen=True)
class Teeth:
    """The figures.

    Attributes:
        faults: wrong implementations that were written by hand, each with the requirements that it breaks.
        caught: how many of them every requirement named has a case that notices.
        mutants: small changes of the reference implementation that were tried, one at a time.
        noticed: how many of them some case notices.
        catalogue: SHA-256 of the faults as they are written.
    """

    faults: int
    caught: int
    mutants: int
    noticed: int
    catalogue: str

    @property
    def sentence(self) -> str:
        """The figures in words."""
        told = f"this suite catches {self.caught} of {self.faults} planted faults"
        if not self.mutants:
            return told
        return f"{told}, and {self.noticed:,} of {self.mutants:,} mutants of its reference implementation"


def load_teeth() -> Teeth:
    """Return the figures of this suite."""
    fields = json.loads(files(__package__).joinpath(FILE).read_text(encoding="utf-8"))
    return Teeth(**fields["figures"])
