"use strict";
// One page, seven parts: what all share and the totals here, then graph, timeline, memory, roofline, precision, layers.
// Names of a model are text and stay text: nothing here makes markup of a string.

const data = JSON.parse(document.getElementById("data").textContent);
const byId = (id) => document.getElementById(id);
const nodes = new Map(data.nodes.map((node) => [node.index, node]));

const make = (tag, attributes = {}, ...children) => {
  const svg = ["svg", "g", "rect", "path", "circle", "text"].includes(tag);
  const element = svg ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children.filter((child) => child !== null && child !== undefined));
  return element;
};

// Numbers as people read them.
const scaled = (value, units, base) => {
  let i = 0;
  while (i + 1 < units.length && Math.abs(value) >= base) { value /= base; ++i; }
  const digits = value !== 0 && Math.abs(value) < 100 && i + Math.abs(value) !== Math.round(value) ? 3 : 0;
  return `${digits ? Number(value.toPrecision(digits)) : Math.round(value)} ${units[i]}`;
};
const time = (seconds) => seconds > 0 ? scaled(seconds * 1e9, ["ns", "µs", "ms", "s"], 1000) : "0";
const size = (bytes) => scaled(bytes, ["B", "KiB", "MiB", "GiB"], 1024);
const rate = (value, unit) => scaled(value, ["", "k", "M", "G", "T", "P"].map((p) => p + unit), 1000);
const percent = (share) => share === null || share === undefined ? "–" : `${Number((share * 100).toPrecision(share < 0.1 ? 2 : 3))} %`;
const shape = (extents) => extents.length ? extents.join("×") : "scalar";

// One tooltip: the element under the pointer, or one around it, says what.
const tips = new WeakMap();
const tip = byId("tip");
document.addEventListener("pointermove", (event) => {
  let element = event.target;
  while (element instanceof Element && !tips.has(element)) element = element.parentElement;
  tip.hidden = !(element instanceof Element);
  if (tip.hidden) return;
  tip.textContent = tips.get(element)();
  const { offsetWidth: width, offsetHeight: height } = tip;
  tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - width - 6))}px`;
  tip.style.top = `${event.clientY + 20 + height < innerHeight ? event.clientY + 16 : event.clientY - height - 10}px`;
});

// The selected node; each part that shows nodes listens. `from` is the part that was clicked.
const listeners = [];
let selected = null;
const select = (index, from) => {
  selected = nodes.has(index) ? index : null;
  for (const listener of listeners) listener(selected, from);
};

// Zooming of a part: buttons, and the wheel with Ctrl, which a pinch is too.
const zooms = {};
const zoomable = (name, box, zoom) => {
  zooms[name] = zoom;
  box.addEventListener("wheel", (event) => {
    if (!event.ctrlKey && !event.metaKey) return;
    event.preventDefault();
    const frame = box.getBoundingClientRect();
    zoom(Math.exp(-event.deltaY * 0.004), event.clientX - frame.left, event.clientY - frame.top);
  }, { passive: false });
};
document.addEventListener("click", (event) => {
  const button = event.target instanceof Element && event.target.closest("[data-zoom]");
  if (button) zooms[button.dataset.zoom]({ "-1": 1 / 1.5, 1: 1.5, 0: 0 }[button.dataset.step]);
});

const dark = matchMedia("(prefers-color-scheme: dark)");
const theme = (name) => {
  document.documentElement.dataset.theme = name;
  document.dispatchEvent(new Event("theme"));
};
theme(dark.matches ? "dark" : "light");
dark.addEventListener("change", () => theme(dark.matches ? "dark" : "light"));
byId("theme").addEventListener("click", () => theme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"));

const plural = (count, noun) => `${count} ${noun}${count === 1 ? "" : "s"}`;

const parts = [
  ["Kernels", "kernels", data.totals.kernel_seconds, "the device computes"],
  ["Transfers", "transfers", data.totals.transfer_seconds, "the device only copies"],
  ["Gaps", "gaps", data.totals.gap_seconds, "a partition runs and the device is idle: launches, waiting, host copies"],
  ["CPU", "cpu", data.totals.cpu_seconds, "nodes that are left on the CPU, and the runtime"],
];
{
  byId("name").textContent = data.name;
  byId("device").textContent = `${data.device} · ${data.platform} · ${data.precision} · medians of ${plural(data.inferences, "inference")}`;
  const claimed = data.nodes.filter((node) => node.claimed).length;
  const tiles = [
    [time(data.totals.wall_seconds), "an inference"],
    ...parts.map(([name, , seconds]) => [time(seconds), name.toLowerCase()]).filter(([, name]) => name !== "cpu"),
    [time(data.totals.cpu_seconds), "CPU"],
    [`${claimed} of ${data.nodes.length}`, "nodes on the device"],
    [`${data.partitions.length} / ${data.totals.launches}`, "partitions / launches"],
    [size(data.totals.bytes_up + data.totals.bytes_down), "copied"],
    [size(data.peak_bytes), "device memory"],
  ];
  byId("tiles").append(...tiles.map(([value, name]) => make("div", { class: "tile" }, make("b", {}, value), make("span", {}, name))));
  const whole = parts.reduce((sum, [, , seconds]) => sum + seconds, 0) || 1;
  for (const [name, style, seconds, meaning] of parts) {
    const bar = make("div", { class: style });
    bar.style.width = `${100 * seconds / whole}%`;
    tips.set(bar, () => `${name}: ${time(seconds)}, ${percent(seconds / whole)}\n${meaning}`);
    byId("parts").append(bar);
    byId("parts-legend").append(make("li", {}, make("i", { class: style }), `${name} ${percent(seconds / whole)}: ${meaning}`));
  }
  byId("parts").setAttribute("aria-label", parts.map(([name, , seconds]) => `${name} ${time(seconds)}`).join(", "));
}
{
  const row = (tag, cells) => make("tr", {}, ...cells.map((cell) => make(tag, {}, String(cell))));
  const heads = ["partition", "nodes", "launches", "up", "down", "arena", "weights", "peak"];
  const rows = data.partitions.map((p, i) => row("td", [i, p.nodes.length, p.launches, size(p.bytes_up), size(p.bytes_down),
    size(p.arena_bytes), size(p.weights_bytes), size(p.peak_bytes)]));
  const body = byId("more-body");
  body.append(make("table", {}, make("thead", {}, row("th", heads)), make("tbody", {}, ...rows)));
  const border = (tensor, arrow, end) => make("li", {}, `${arrow} ${tensor.tensor}, ${shape(tensor.shape)}, ${size(tensor.bytes)} ${end}, by ${tensor.road.replace("_", " ")}`);
  data.partitions.forEach((p, i) => {
    const [ins, outs] = [p.inputs ?? [], p.outputs ?? []];
    if (!ins.length && !outs.length) return;
    const bytes = [...ins, ...outs].reduce((sum, tensor) => sum + tensor.bytes, 0);
    body.append(make("details", {}, make("summary", {}, `Borders of partition ${i}: ${size(bytes)}`),
      make("ul", {}, ...ins.map((t) => border(t, "→", `from ${t.from}`)), ...outs.map((t) => border(t, "←", `to ${t.to}`)))));
  });
  if (data.peaks) {
    const peaks = [["Multiply-adds", rate(data.peaks.fma_flops, "FLOP/s")], ["Memory", rate(data.peaks.copy_bytes, "B/s")],
      ["Caches", rate(data.peaks.cache_bytes, "B/s")],
      ["Upload", rate(data.peaks.upload_bytes, "B/s")], ["Download", rate(data.peaks.download_bytes, "B/s")],
      ["A launch", time(data.peaks.launch_seconds)]];
    body.append(make("h3", {}, "Measured peaks of the device"), make("dl", {}, ...peaks.flatMap(([k, v]) => [make("dt", {}, k), make("dd", {}, v)])));
  }
  body.append(...data.notes.map((note) => make("p", { class: "say" }, note)));
}
