"""A target that makes two steps, which the first measure needs, and then takes its time."""

import time

from steps_conformance.targets.protocol import Description, TargetStep
from steps_conformance.targets.steps_core import PackageTarget


class StallingTarget(PackageTarget):
    def make(self, description: Description) -> TargetStep:
        if len(_made) == 2:
            time.sleep(600)
        _made.append(description)
        return super().make(description)


_made: list[Description] = []
target = StallingTarget()
