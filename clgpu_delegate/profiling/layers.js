// The table of nodes with kernels of their own; and the first showing of all parts.

const bar = (share) => {
  const inner = make("i");
  inner.style.width = `${Math.min(100, 100 * share)}%`;
  return make("span", { class: "bar" }, inner);
};
// Heading, value to sort by, text, share of a bar; words sort upwards first; what stands in the cell instead of the text.
const columns = [
  ["node", (n) => n.index, (n) => String(n.index)],
  ["op", (n) => n.op, (n) => n.op, null, true],
  ["engine", (n) => n.candidate, (n) => n.candidate, null, true],
  ["output", (n) => n.outputs[0] ? n.outputs[0].reduce((a, b) => a * b, 1) : 0, (n) => n.outputs[0] ? shape(n.outputs[0]) : ""],
  ["device", (n) => n.profile.device_seconds, (n) => time(n.profile.device_seconds), (n) => n.profile.device_seconds / longest],
  ["share", (n) => n.profile.share, (n) => percent(n.profile.share)],
  ["host", (n) => n.profile.host_seconds, (n) => time(n.profile.host_seconds)],
  ["operations", (n) => n.profile.flops, (n) => rate(n.profile.flops, "")],
  ["FLOP/s", (n) => n.profile.flops_per_second, (n) => rate(n.profile.flops_per_second, "")],
  ["B/s", (n) => n.profile.bytes_per_second, (n) => rate(n.profile.bytes_per_second, "")],
  ["of peak", (n) => n.profile.peak_share ?? -1, (n) => percent(n.profile.peak_share), (n) => n.profile.peak_share ?? 0],
  ["bound by", (n) => n.profile.bound, (n) => n.profile.bound, null, true],
];
if (changesOf.size) columns.push(["error alone", errorOf, (n) => errorText(errorOf(n)), null, false, errorLink]);
const timed = data.nodes.filter((node) => node.profile);
let sorting = [4, -1], all = timed.length <= 25;

const drawRow = (node) => {
  const cells = columns.map(([, , textOf, shareOf, words, insteadOf]) => make("td", words ? { class: "words", title: textOf(node) } : {},
    insteadOf ? insteadOf(node) : textOf(node), shareOf ? bar(shareOf(node)) : null));
  return make("tr", { "data-row": node.index, tabindex: 0, class: node.index === selected ? "selected" : "" }, ...cells);
};
const drawRows = () => {
  const [column, sign] = sorting, value = columns[column][1];
  const order = [...timed].sort((a, b) => {
    const [x, y] = [value(a), value(b)];
    return sign * (x < y ? -1 : x > y ? 1 : 0) || a.index - b.index;
  });
  byId("layer-rows").replaceChildren(...(all ? order : order.slice(0, 25)).map(drawRow));
  byId("all-rows").hidden = timed.length <= 25;
  byId("all-rows").textContent = all ? "First 25" : `All ${timed.length}`;
  [...byId("layer-heads").children].forEach((head, i) => {
    if (i === column) head.setAttribute("aria-sort", sign > 0 ? "ascending" : "descending");
    else head.removeAttribute("aria-sort");
  });
};
columns.forEach(([name, , , , words], i) => {
  const button = make("button", { type: "button" }, name);
  const first = words || i === 0 ? 1 : -1;
  button.addEventListener("click", () => { sorting = [i, sorting[0] === i ? -sorting[1] : first]; drawRows(); });
  byId("layer-heads").append(make("th", words ? { class: "words" } : {}, button));
});
byId("all-rows").addEventListener("click", () => { all = !all; drawRows(); });
const pick = (event) => {
  const row = event.target.closest("tr[data-row]");
  if (row && (event.type === "click" || event.key === "Enter")) select(Number(row.dataset.row), "layers");
};
byId("layer-rows").addEventListener("click", pick);
byId("layer-rows").addEventListener("keydown", pick);
listeners.push((index) => {
  for (const row of byId("layer-rows").children) row.classList.toggle("selected", Number(row.dataset.row) === index);
});

drawRows();
if (!byId("roofline").hidden) drawRoofline();
if (!byId("points").hidden) drawPoints();
showTimeline("median");
if (data.memory.length) showMemory(0);
zoomGraph(0);
if (scale < 0.85) zoomGraph(0.85 / scale, scroll.clientWidth / 2, 0);
scroll.scrollTop = 0;
const first = data.ends[0] ?? data.nodes[0];
if (first) scroll.scrollLeft = middle(first.at)[0] * scale - scroll.clientWidth / 2;
showFacts(null);
