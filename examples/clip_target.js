// Gradient clipping in JavaScript, behind the protocol of docs/target-protocol.md. Nothing to install:
//   steps-conformance run --target 'node examples/clip_target.js' --id 'CLIP-*'
"use strict";
const path = require("path");
const readline = require("readline");

const VARIANTS = ["per-weight", "per-parameter", "per-layer", "global"];
const HELLO = {
  protocol: 1,
  name: "clip.js",
  version: "1.0",
  capabilities: ["state_form", "trees", "error_form"],
  dtypes: ["float32", "float64"],
  steps: ["GradientClippingStep"],
  lacks: {
    GradientClippingStep: {
      variant: ["per-weight-relative", "per-parameter-relative"],
      metadata: true, set_breakpoint: true, epsilon: true, unit_axis: true,
    },
  },
};

class Refusal extends Error {
  constructor(kind, message) { super(message); this.kind = kind; }
}

// Numbers: "0x1p-3", "+0", "-0", "nan", "inf", "-inf"; a text has at most 53 bits, so Number() is exact.
const NAMED = { "nan": NaN, "inf": Infinity, "-inf": -Infinity, "+0": 0, "-0": -0 };
function scaled(digits, exponent) { // in two halves: 2 ** exponent alone may underflow
  const half = Math.trunc(exponent / 2);
  return digits * 2 ** half * 2 ** (exponent - half);
}
function fromHex(text) {
  if (text in NAMED) return NAMED[text];
  const [, sign, whole, fraction, exponent] = /^(-?)0x([0-9a-f]+)\.?([0-9a-f]*)p([+-]?\d+)$/.exec(text);
  const value = scaled(Number("0x" + whole + fraction), Number(exponent) - 4 * fraction.length);
  return sign ? -value : value;
}
function toHex(x) {
  if (Number.isNaN(x)) return "nan";
  if (!Number.isFinite(x)) return x > 0 ? "inf" : "-inf";
  if (x === 0) return Object.is(x, -0) ? "-0" : "+0";
  let exponent = 0, digits = Math.abs(x);
  while (!Number.isInteger(digits)) { digits *= 2; exponent -= 1; }
  while (digits % 2 === 0) { digits /= 2; exponent += 1; }
  return `${x < 0 ? "-" : ""}0x${BigInt(digits).toString(16)}p${exponent < 0 ? "" : "+"}${exponent}`;
}

// Trees: null, {dict: ...}, {list: ...}, {tuple: ...}, or an array with dtype, shape and values.
function mapped(leaf, tree, where) {
  if (tree === null) return null;
  if (tree.dtype) return leaf(tree, where);
  const [[kind, parts]] = Object.entries(tree);
  if (kind !== "dict") return { [kind]: parts.map((part, i) => mapped(leaf, part, `${where}[${i}]`)) };
  const entries = Object.entries(parts).map(([key, part]) => [key, mapped(leaf, part, `${where}['${key}']`)]);
  return { dict: Object.fromEntries(entries) };
}

// The norm is scale * root: with the largest element scaled to about 1, no square overflows, and one that
// vanishes is too small to count.
function norm(arrays) {
  let largest = 0, bad = 0;
  for (const values of arrays) for (const x of values) {
    if (Number.isFinite(x)) largest = Math.max(largest, Math.abs(x));
    else bad = Number.isNaN(bad + Math.abs(x)) ? NaN : Infinity;
  }
  if (bad !== 0 || largest === 0) return { scale: 1, root: bad };
  const scale = 2 ** Math.min(1023, Math.max(-1021, Math.floor(Math.log2(largest))));
  let sum = 0, lost = 0; // Kahan: lost is what the last addition rounded away
  for (const values of arrays) for (const x of values) {
    const square = (x / scale) ** 2 - lost, next = sum + square;
    lost = next - sum - square;
    sum = next;
  }
  return { scale, root: Math.sqrt(sum) };
}
function limited(values, { scale, root }, t) {
  if (root <= t / scale) return values; // bit for bit
  const factor = t / root / scale;
  if (factor >= 2 ** -1022 && factor < Infinity) return values.map((x) => x * factor);
  return values.map((x) => (x / scale) * (t / root)); // a subnormal factor has lost its bits
}
function clip({ variant, threshold: t }, gradients) {
  const leaves = [];
  mapped((leaf, where) => {
    if (!HELLO.dtypes.includes(leaf.dtype)) {
      throw new Refusal("TypeError", `${where} must be an array of ${HELLO.dtypes}, got ${leaf.dtype}`);
    }
    leaves.push(leaf.values.map(fromHex));
  }, gradients, "gradients");
  const everything = norm(leaves);
  const rule = {
    "per-weight": (values) => values.map((x) => Math.min(Math.max(x, -t), t)),
    "per-layer": (values) => limited(values, norm([values]), t),
    "global": (values) => limited(values, everything, t),
  }[variant.replace("parameter", "weight")];
  return mapped((leaf) => {
    let values = leaves.shift();
    if (t === 0) values = values.map(() => 0);
    else if (t !== Infinity) values = rule(values);
    return { ...leaf, values: values.map((x) => toHex(leaf.dtype === "float32" ? Math.fround(x) : x)) };
  }, gradients);
}

function make(description) {
  const { step, options } = description ?? {};
  if (typeof step !== "string" || options === null || typeof options !== "object") {
    throw new Refusal("ValueError", `a description has a step and options, got ${JSON.stringify(description)}`);
  }
  const { variant = "per-parameter", threshold = 1, ...unknown } = options;
  if (step !== "GradientClippingStep") throw new Refusal("KeyError", `no step is called '${step}'`);
  for (const name of Object.keys(unknown)) throw new Refusal("ValueError", `there is no option '${name}'`);
  if (variant !== null && !VARIANTS.includes(variant)) {
    throw new Refusal("ValueError", `variant must be one of ${VARIANTS}, got '${variant}'`);
  }
  const isFloat = threshold !== null && typeof threshold === "object" && "float" in threshold;
  if (threshold !== null && !isFloat && typeof threshold !== "number") {
    const kind = { boolean: "bool", string: "str" }[typeof threshold] ?? "list";
    const shown = kind === "bool" ? (threshold ? "True" : "False") : JSON.stringify(plain(threshold));
    throw new Refusal("TypeError", `threshold must be a number, got ${shown} (${kind})`);
  }
  const number = threshold === null ? Infinity : isFloat ? fromHex(threshold.float) : threshold;
  if (!(number >= 0)) {
    throw new Refusal("ValueError", `threshold must be at least 0, got ${shownNumber(number, isFloat)}`);
  }
  return { variant: variant ?? "global", threshold: variant === null ? Infinity : number };
}
const plain = (value) => Array.isArray(value) ? value.map(plain) : value?.float ? shownFloat(fromHex(value.float)) : value;
const shownFloat = (x) => Number.isInteger(x) ? x.toFixed(1) : String(x).toLowerCase().replace("infinity", "inf");
const shownNumber = (x, isFloat) => (isFloat ? `${shownFloat(x)} (float)` : `${x} (int)`);

const steps = [];
const METHODS = {
  hello: () => ({ ...HELLO, path: path.resolve(__filename) }),
  make: ({ description }) => ({ step: steps.push(make(description)) - 1 }),
  init: () => ({ state: { dict: {} } }),
  apply: ({ step, gradients, state }) => {
    if (state !== null && !(state.dict && Object.keys(state.dict).length === 0)) {
      throw new Refusal("ValueError", `state must be an empty dict, got ${JSON.stringify(state)}`);
    }
    return { gradients: clip(steps[step], gradients), state: { dict: {} } };
  },
};
readline.createInterface({ input: process.stdin, terminal: false }).on("line", (line) => {
  const request = JSON.parse(line);
  let answer;
  try {
    answer = { result: METHODS[request.do](request) };
  } catch (error) {
    answer = error instanceof Refusal
      ? { refused: { kind: error.kind, message: error.message } }
      : { error: { message: String(error.stack) } };
  }
  process.stdout.write(JSON.stringify({ id: request.id, ...answer }) + "\n");
});
