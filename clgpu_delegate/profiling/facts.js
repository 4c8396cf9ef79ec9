// The panel with the facts of the selected node.

const writers = new Map(data.nodes.flatMap((node) => node.output_ids.map((id) => [id, node.index])));
const readers = (id) => data.nodes.filter((node) => node.input_ids.includes(id)).map((node) => node.index);

const toNode = (index) => {
  const button = make("button", { type: "button", class: "link" }, `${index} ${nodes.get(index).op}`);
  button.addEventListener("click", () => select(index, "facts"));
  return button;
};
const list = (pairs) => make("dl", {}, ...pairs.filter(([, value]) => value !== "").flatMap(([key, value]) => [make("dt", {}, key), make("dd", {}, value)]));

const tensorItem = (id, extents, others) => make("li", {}, `${tensorText(id)}, ${shape(extents)}`,
  ...others.flatMap((index) => [" ", make("br"), toNode(index)]));

const causes = {
  memory: "Above 100 %: caches hold a part of its bytes, so it waits less for memory.",
  arithmetic: "Above 100 %: its algorithm needs fewer operations than its definition has, or integer units compute it.",
};
const timesOf = (node) => {
  const p = node.profile;
  if (!p) return [];
  const peak = p.peak_share === null ? "" : `${percent(p.peak_share)}, bound by ${p.bound}`;
  return [make("h3", {}, "Time"), list([
    ["on the device", `${time(p.device_seconds)}, ${percent(p.share)} of all kernels`],
    ["to enqueue", time(p.host_seconds)], ["launches", String(p.launches)],
    ["operations", rate(p.flops, "FLOP")], ["reads", size(p.bytes_read)], ["writes", size(p.bytes_written)],
    ["rates", `${rate(p.flops_per_second, "FLOP/s")}, ${rate(p.bytes_per_second, "B/s")}`], ["of the peak", peak],
  ]), ...(p.peak_share > 1 ? [make("p", { class: "hint" }, causes[p.bound])] : [])];
};
const enginesOf = (node) => {
  if (!node.candidate) return [];
  const others = node.candidates.filter((name) => name !== node.candidate);
  const refused = Object.entries(node.refused).map(([name, why]) => make("li", {}, `${name}: ${why}`));
  return [make("h3", {}, "Engine"), list([["family", node.family], ["engine", `${node.candidate} (${node.chosen})`], ["others", others.join(", ")]]),
    ...(refused.length ? [make("details", {}, make("summary", {}, `${refused.length} that cannot`), make("ul", {}, ...refused))] : [])];
};
const errorsOf = (node) => {
  const own = changesOf.get(node.index) ?? [];
  if (!own.length) return [];
  return [make("h3", {}, "Error of its changes alone"), make("ul", {}, ...own.map((change) =>
    make("li", {}, `${kindText(change)}: ${errorText(change.error)}, ${takenText(change)}${change.layers.length > 1 ? `, with ${plural(change.layers.length - 1, "other node")}` : ""}`)))];
};

const showFacts = (index) => {
  const panel = byId("facts");
  if (index === null) {
    const slow = data.nodes.filter((node) => node.profile).sort((a, b) => b.profile.device_seconds - a.profile.device_seconds).slice(0, 8);
    panel.replaceChildren(make("h3", {}, "Longest nodes"),
      make("ul", {}, ...slow.map((node) => make("li", {}, toNode(node.index), ` ${time(node.profile.device_seconds)}, ${percent(node.profile.share)}`))),
      make("p", { class: "hint" }, "Click a node for its facts."));
    return;
  }
  const node = nodes.get(index);
  const where = node.claimed ? `device${node.partition === null ? "" : `, partition ${node.partition}`}` : "CPU";
  panel.replaceChildren(
    make("h3", {}, `Node ${node.index}`), make("div", { class: "op" }, node.op), list([["runs on", where]]),
    ...(node.profile ? [] : [make("p", { class: `say${node.claimed ? "" : " cpu-say"}` }, node.reason)]),
    ...(node.hint ? [make("p", { class: "say" }, node.hint)] : []),
    ...timesOf(node), ...errorsOf(node), ...enginesOf(node),
    make("h3", {}, "Inputs"),
    make("ul", {}, ...node.input_ids.map((id, i) => tensorItem(id, node.inputs[i], writers.has(id) ? [writers.get(id)] : []))),
    make("h3", {}, "Outputs"),
    make("ul", {}, ...node.output_ids.map((id, i) => tensorItem(id, node.outputs[i], readers(id)))));
  panel.scrollTop = 0;
};
listeners.push(showFacts);
