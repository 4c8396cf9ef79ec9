// The plan of mixed precision: its measured points, time against error, and the error that each change adds alone.
// In the data null is an infinite error. Without a plan the section stays hidden.

const plan = data.plan;
const SHORT = 25; // rows, until all are asked for
const ownKinds = { results: "results as half", weights: "weights as half", int8: "weights as int8", factors: "factors as TF32", sums: "sums as half", integers: "nodes as int8", bfloat: "stored as bfloat16", pairs: "factors as pairs of bfloat16", several: "several of these" };
const kindText = (change) => ownKinds[change.kind] ?? change.kind;
const measuredError = (change) => change.measured === false ? "not measured" : errorText(change.error);
const errorText = (error) => error === null || error === Infinity ? "∞"
  : error > 0 && error < 1e-3 ? error.toExponential(1).replace(".0e", "e") : String(Number(error.toPrecision(2)));
const countOf = (change) => change.tensors.length + change.nodes.length;
const takenClass = (change) => change.taken === 0 ? "left" : change.taken < countOf(change) ? "part" : "taken";
const reasonText = (change) => change.taken < countOf(change) && change.why ? `: ${change.why}` : "";
const takenText = (change) => ({ left: "left out", part: `${change.taken} of ${countOf(change)} taken`, taken: "taken" })[takenClass(change)];

// The largest error first; the order of equal ones is that of the plan.
const finite = (error) => error === null ? Infinity : error;
const rank = (change) => change.measured === false ? -1 : finite(change.error); // what was not measured alone comes last
const changes = plan ? [...plan.changes].sort((a, b) => rank(a) === rank(b) ? 0 : rank(b) - rank(a)) : [];
const changesOf = new Map();
for (const change of changes) {
  for (const index of change.layers) changesOf.set(index, [...(changesOf.get(index) ?? []), change]);
}

// A logarithmic axis of errors, from 0 to 1. An error of 0 is at its lower end, an infinite one at its upper end, each a decade beyond the others.
const errorAxis = (errors) => {
  const powers = errors.filter((error) => error !== null && error > 0).map(Math.log10);
  const zero = errors.some((error) => error !== null && error <= 0), infinite = errors.includes(null);
  let low = powers.length ? Math.floor(Math.min(...powers) - 0.1) : -1, high = powers.length ? Math.ceil(Math.max(...powers) + 0.1) : 0;
  if (zero) --low;
  if (infinite) ++high;
  const at = (error) => error === null ? 1 : error <= 0 ? 0 : (Math.log10(error) - low) / (high - low);
  const label = (power) => zero && power === low ? "0" : infinite && power === high ? "∞" : `1e${power}`;
  return { low, high, at, label };
};

// Round numbers of seconds from 0 on.
const timeSteps = (most, count) => {
  if (!(most > 0)) return [0];
  const digits = 10 ** Math.floor(Math.log10(most / count));
  const step = [1, 2, 5, 10].map((m) => m * digits).find((s) => s * count >= most);
  return Array.from({ length: Math.floor(most / step) + 1 }, (_, i) => i * step);
};

// Points with the same time and error are one mark with all their names.
const marks = () => {
  const found = new Map();
  for (const point of plan.points) {
    const key = `${point.seconds} ${point.error}`;
    found.set(key, [...(found.get(key) ?? []), point]);
  }
  return [...found.values()];
};
const FAR = [32, 48, 64, 80]; // of a label from its mark, joined by a line
const LISTS = { half: "as half", bfloat: "as bfloat16", int8: "weights as int8", tf32: "nodes with TF32", bf16_pairs: "with bfloat16 pairs", half_sums: "with half sums", integers: "with integers" };
const listText = (point) => Object.entries(LISTS).filter(([key]) => point[key]).map(([key, words]) => `${point[key]} ${words}`).join(", ");
const pointName = (point) => point.name === "mixed" ? "the plan" : point.name;

const drawPoints = () => {
  const body = byId("points-body");
  const box = { left: 62, right: 18, top: 30, bottom: 40 };
  const width = Math.max(body.clientWidth, 240), height = 320, right = width - box.right, bottom = height - box.bottom;
  const bound = plan.max_error;
  const axis = errorAxis([...plan.points.map((point) => point.error), ...(bound === null ? [] : [bound])]);
  const most = Math.max(...plan.points.map((point) => point.seconds)) * 1.12;
  const x = (seconds) => box.left + (most > 0 ? seconds / most : 0.5) * (right - box.left);
  const y = (error) => bottom - axis.at(error) * (bottom - box.top);

  const grid = make("g", { class: "grid" }), lines = make("g"), points = make("g"), names = make("g", { class: "names" });
  const label = (parent, at, text, extra = {}) => parent.append(make("text", { x: at[0], y: at[1], ...extra }, text));
  for (const seconds of timeSteps(most, width / 110)) {
    grid.append(make("path", { d: `M${x(seconds)} ${box.top}V${bottom}` }));
    label(grid, [x(seconds), bottom + 16], time(seconds), { "text-anchor": "middle" });
  }
  const every = Math.ceil((axis.high - axis.low) / 8);
  for (let power = axis.low; power <= axis.high; ++power) {
    if ((power - axis.low) % every !== 0 && power !== axis.high) continue;
    const level = bottom - (power - axis.low) / (axis.high - axis.low) * (bottom - box.top);
    grid.append(make("path", { d: `M${box.left} ${level}H${right}` }));
    label(grid, [box.left - 6, level + 4], axis.label(power), { "text-anchor": "end" });
  }
  label(grid, [right, height - 6], "device time of an inference", { "text-anchor": "end" });
  label(grid, [6, 12], `error, ${short(plan.metric, 40)}`);

  const taken = []; // places of labels: left, middle of the height, width
  const wide = (text) => text.length * 6.4;
  if (bound !== null) {
    const line = make("path", { class: "bound", d: `M${box.left} ${y(bound)}H${right}` }), text = `bound, ${errorText(bound)}`;
    tips.set(line, () => `${text}: the largest error that was asked for`);
    lines.append(line);
    label(lines, [right - 4, y(bound) - 5], text, { "text-anchor": "end" });
    taken.push([right - 4 - wide(text), y(bound) - 9, wide(text)]);
  }
  const front = plan.points.filter((point) => point.front).sort((a, b) => a.seconds - b.seconds || a.error - b.error);
  if (front.length) {
    const steps = front.map((point) => `H${x(point.seconds)}V${y(point.error)}`).join("");
    const line = make("path", { class: "front", d: `M${x(front[0].seconds)} ${box.top}${steps}H${right}` });
    tips.set(line, () => "Pareto front: no measured point is below it on its left");
    lines.append(line);
  }

  // The plan and the precisions of the whole find a place for their labels first.
  const all = marks(), least = (same) => Math.min(...same.map(({ name }) => name === "mixed" ? 0 : name.startsWith("candidate") ? 2 : 1));
  for (const same of [...all].sort((a, b) => least(a) - least(b))) {
    const [point] = same, chosen = same.some(({ name }) => name === "mixed"), at = [x(point.seconds), y(point.error)];
    const style = `measured${point.front ? " on-front" : ""}${chosen ? " chosen" : ""}`;
    const circle = make("circle", { class: style, cx: at[0], cy: at[1], r: chosen ? 7 : 5, "data-precision": same.map(({ name }) => name).join(" ") });
    tips.set(circle, () => [same.map(pointName).join(", "), `${time(point.seconds)}, error ${errorText(point.error)}`,
      ...same.map(({ name, bytes }) => `${same.length > 1 ? `${name}: ` : ""}${size(bytes)} of device memory`),
      ...same.map(listText).filter(Boolean),
      point.front ? "on the Pareto front" : "another point is better, or its error is infinite"].join("\n"));
    points.append(circle);
    const text = same.map(pointName).join(", "), length = wide(text);
    const places = [[at[0] + 9, at[1] - 12], [at[0] + 11, at[1]], [at[0] - 11 - length, at[1]], [at[0] - length / 2, at[1] - 16], [at[0] - length / 2, at[1] + 18],
      ...FAR.flatMap((far) => [[at[0] + 9, at[1] - far], [at[0] + 9, at[1] + far], [at[0] - 9 - length, at[1] - far], [at[0] - 9 - length, at[1] + far]])];
    const free = ([left, level]) => left > box.left && left + length < width && level > 6 && level < bottom + 8
      && taken.every(([a, b, w]) => Math.abs(b - level) > 12 || left > a + w || left + length < a)
      && all.every(([other]) => other === point || Math.abs(y(other.error) - level) > 10 || x(other.seconds) < left - 8 || x(other.seconds) > left + length + 8);
    const place = places.find(free);
    if (!place) continue; // the tip has the name
    const [left, level] = place;
    taken.push([left, level, length]);
    if (Math.abs(level - at[1]) > 20) lines.append(make("path", { class: "leader", d: `M${at[0]} ${at[1]}L${left < at[0] ? left + length : left} ${level}` }));
    label(names, [left, level + 4], text);
  }
  body.replaceChildren(make("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": plan.points.map((point) => `${pointName(point)}: ${time(point.seconds)}, error ${errorText(point.error)}`).join("; ") }, grid, lines, points, names));
};

const changeAxis = errorAxis([...changes.filter((change) => change.measured !== false).map((change) => change.error), ...(plan && plan.max_error !== null ? [plan.max_error] : [])]);
const errorBar = (change) => {
  const inner = make("i"), outer = make("span", { class: `bar error ${takenClass(change)}` }, inner);
  inner.style.width = `${100 * changeAxis.at(change.error)}%`;
  if (plan.max_error !== null) {
    const mark = make("b");
    mark.style.left = `${100 * changeAxis.at(plan.max_error)}%`;
    outer.append(mark);
  }
  return outer;
};
const layersText = ({ layers, op }) => layers.length === 0 ? op
  : layers.length === 1 ? `${layers[0]} ${nodes.has(layers[0]) ? nodes.get(layers[0]).op : op}` : `${layers[0]} ${op} and ${plural(layers.length - 1, "other node")}`;
const drawChange = (change) => {
  const row = make("tr", { "data-change": changes.indexOf(change), tabindex: 0 },
    make("td", { class: "words" }, layersText(change)), make("td", { class: "words" }, kindText(change)),
    make("td", {}, measuredError(change), ...(change.measured === false ? [] : [errorBar(change)])), make("td", {}, change.seconds < 0 ? `−${time(-change.seconds)}` : time(change.seconds)),
    make("td", {}, size(change.bytes)), make("td", { class: "words" }, takenText(change)));
  const names = change.tensors.filter((id) => data.tensors[id]).map((id) => data.tensors[id].name || `tensor ${id}`);
  tips.set(row, () => [`${layersText(change)}: ${kindText(change)}`, `error ${measuredError(change)} alone, ${takenText(change)}${reasonText(change)}`,
    ...(change.layers.length > 1 ? [`nodes ${change.layers.join(", ")}`] : []), ...names.slice(0, 6), ...(names.length > 6 ? [`and ${names.length - 6} more`] : [])].join("\n"));
  return row;
};
let allChanges = changes.length <= SHORT;
const markChanges = (index) => {
  for (const row of byId("change-rows").children) row.classList.toggle("selected", changes[row.dataset.change].layers.includes(index));
};
const drawChanges = () => {
  byId("change-rows").replaceChildren(...(allChanges ? changes : changes.slice(0, SHORT)).map(drawChange));
  byId("all-changes").hidden = changes.length <= SHORT;
  byId("all-changes").textContent = allChanges ? `First ${SHORT} changes` : `All ${changes.length} changes`;
  markChanges(selected);
};

// From the table of layers: the largest error of a node's changes, as a link to their bars.
const errorOf = (node) => changesOf.has(node.index) ? rank(changesOf.get(node.index)[0]) : -1;
const errorLink = (node) => {
  const own = changesOf.get(node.index);
  if (!own) return "";
  const button = make("button", { type: "button", class: "link" }, measuredError(own[0]));
  tips.set(button, () => own.map((change) => `${kindText(change)}: ${measuredError(change)}, ${takenText(change)}${reasonText(change)}`).join("\n"));
  button.addEventListener("click", () => {
    if (!allChanges) { allChanges = true; drawChanges(); }
    byId("change-rows").children[changes.indexOf(own[0])].scrollIntoView({ block: "center" });
  });
  return button;
};

if (plan) {
  byId("precision").hidden = false;
  document.querySelector('nav a[href="#precision"]').hidden = false;
  const facts = [plan.source === "kept" ? "The plan that the cache has for this model." : "The plan that was given as the option precision."];
  if (plan.max_error !== null) facts.push(`Its bound is an error of ${errorText(plan.max_error)} (${plan.metric}).`);
  if (plan.device !== null) {
    facts.push(`It was measured on ${plan.device}${plan.device === data.device ? "" : ", not on the device of this profile"}:`,
      `${plural(plan.samples, "sample")} for the search, ${plan.held_back} held back; error of the plan ${errorText(plan.error)}.`);
    if (!plan.complete) facts.push(plan.interrupted ? "The tuning was interrupted." : "The budget ended the search.");
    const [own, floats] = ["mixed", "fp32"].map((name) => plan.points.find((point) => point.name === name));
    if (own && floats) facts.push(`It takes ${size(own.bytes)} of device memory, fp32 takes ${size(floats.bytes)}.`);
  }
  if (!plan.points.length && !changes.length) {
    facts.push("Measured points and changes are not known, as for a plan that was given as a text or that an earlier version kept. clgpu tune MODEL --max-error ERROR --samples FILE measures them.");
  }
  byId("plan-facts").textContent = facts.join(" ");
  byId("points").hidden = !plan.points.length;
  byId("changes").hidden = !changes.length;
  if (plan.points.length) addEventListener("resize", drawPoints);
  for (const [name, words] of [["node", true], ["change", true], ["error alone"], ["time saved"], ["memory saved"], ["in the plan", true]]) {
    byId("change-heads").append(make("th", words ? { class: "words" } : {}, name));
  }
  if (changes.length) {
    for (const [style, text] of [["taken", "taken"], ["part", "taken in part"], ["left", "left out"]]) {
      byId("precision-legend").append(make("li", {}, make("i", { class: style }), text));
    }
  }
  byId("all-changes").addEventListener("click", () => { allChanges = !allChanges; drawChanges(); });
  const pickChange = (event) => {
    const row = event.target.closest("tr[data-change]");
    if (!row || (event.type === "keydown" && event.key !== "Enter")) return;
    const [index] = changes[row.dataset.change].layers;
    if (index !== undefined) select(index, "precision");
  };
  byId("change-rows").addEventListener("click", pickChange);
  byId("change-rows").addEventListener("keydown", pickChange);
  listeners.push(markChanges);
  drawChanges();
} else byId("points").hidden = true;
