"""Wrong state files and descriptions."""

import pickle
from pathlib import Path

from ..catalogue import fault


@fault(
    ":save_state",
    breaks=("FILE-006",),
    source="open(file, 'wb') before it is known what there is to write",
)
def empties_the_old_file_first(save_state, core):
    def wrong(state, file):
        Path(file).write_bytes(b"")
        save_state(state, file)

    return wrong


@fault(
    "state_files:_restored",
    breaks=("FILE-004",),
    source="peers.md, 2: keras warns, and skips what does not fit",
)
def skips_entries_that_do_not_fit(_restored, core):
    def wrong(path, like, values, note):
        try:
            return _restored(path, like, values, note)
        except core["errors"].StateError:
            return like

    return wrong


@fault(
    "state_files:_as_stored",
    breaks=("FILE-001",),
    source="the imaginary part is dropped with a warning",
)
def stores_real_parts_alone(_as_stored, core):
    return lambda values: _as_stored(values.real + 0j if values.dtype.kind == "c" else values)


@fault(
    "state_files:leaf_paths",
    breaks=("FILE-003",),
    source="keys joined by dots: {'a.b': x} and {'a': {'b': x}} are one entry",
)
def joins_keys_by_dots(leaf_paths, core):
    def wrong(structure, root):
        return [".".join(map(str, keys)) for keys in core["trees"].key_paths(structure)]

    return wrong


@fault(
    "state_files:_read",
    breaks=("FILE-005", "FILE-007"),
    source="torch.load and pickle run code that a file holds",
)
def unpickles_what_is_no_state_file(_read, core):
    def wrong(file):
        try:
            return _read(file)
        except core["errors"].StateError:
            return pickle.loads(Path(file).read_bytes())

    return wrong


@fault(
    "state_files:_FORMAT",
    breaks=("FILE-007",),
    source="any safetensors file is taken for a state",
)
def knows_no_format(name_of_the_format, core):
    class Anything(str):
        """A text that equals every other."""

        __slots__ = ()

        def __ne__(self, other):
            return False

        __eq__ = str.__eq__
        __hash__ = str.__hash__

    return Anything(name_of_the_format)


@fault(
    "state_files:from_numpy",
    breaks=("FILE-002",),
    source="moments in half precision, to save space",
)
def loads_what_was_rounded(from_numpy, core):
    def wrong(values, like):
        if values.dtype == "float32":
            values = values.astype("float16").astype("float32")
        return from_numpy(values, like)

    return wrong


@fault(
    "contract:options_beyond_defaults",
    breaks=("DESCRIBE-002",),
    source="descriptions that change with every new option",
)
def describes_defaults_too(options_beyond_defaults, core):
    def wrong(step):
        hidden = ("metadata", "set_breakpoint")
        return {name: getattr(step, name) for name in type(step).__dataclass_fields__ if name not in hidden}

    return wrong


@fault(
    "descriptions:described",
    breaks=("DESCRIBE-003",),
    source="vectors in decimals: 0.1 is not what was meant",
)
def writes_floats_in_decimals(described, core):
    return lambda value: round(value, 6) if isinstance(value, float) else described(value)


@fault(
    "building:_built_float",
    breaks=("DESCRIBE-003",),
    source="float() of a text that float.hex() wrote",
)
def reads_floats_in_single_precision(_built_float, core):
    def wrong(text, path):
        number = _built_float(text, path)
        return core["tunable"].in_float32(number) if 1e-30 < abs(number) < 1e30 else number

    return wrong


@fault(
    "building:_unknown",
    breaks=("CLIP-OPTION-006", "CONTRACT-012"),
    source="TypeError: unexpected keyword argument, which no caller expects",
)
def raises_a_plain_error_for_unknown_names(_unknown, core):
    return lambda path, name, known: RuntimeError(f"{path}: {name} is not known")


@fault(
    "steps.chain:ChainedStep.describe",
    breaks=("DESCRIBE-004",),
    source="a list of steps loses which slots are empty",
)
def describes_a_chain_by_position(describe, core):
    def wrong(self):
        found = describe(self)
        options = {f"step{n}": step for n, step in enumerate(found["options"].values(), start=1)}
        return {**found, "options": options}

    return wrong


@fault(
    "schedules:DescribedSchedule.describe",
    breaks=("DESCRIBE-005",),
    source="a schedule described by its class alone",
)
def describes_schedules_without_options(describe, core):
    return lambda self: {**describe(self), "options": {}}


@fault(
    "steps.clipping:GradientClippingStep.normal_spellings",
    breaks=("DESCRIBE-002",),
    source="a default that is described because it has two spellings",
)
def takes_a_normalised_default_for_an_option(normal_spellings, core):
    return {}


@fault(
    "steps.custom:CustomStep.describe",
    breaks=("CUSTOM-017",),
    source="a description that loses what was overridden",
)
def describes_a_graph_without_overrides(describe, core):
    def wrong(self):
        found = describe(self)
        found["options"].pop("overrides", None)
        return found

    return wrong


@fault(
    ":check_end_to_end",
    breaks=("CONTRACT-011",),
    source="a check that is called and does nothing",
)
def checks_nothing(check_end_to_end, core):
    return lambda step: None
