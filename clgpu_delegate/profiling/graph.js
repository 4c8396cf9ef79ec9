// The model's graph, places computed before; and the panel with the facts of the selected node.

const UNIT = 172, LAYER = 74, WIDE = 150, HIGH = 42;
const longest = Math.max(1e-12, ...data.nodes.map((node) => node.profile ? node.profile.device_seconds : 0));
const middle = (at) => [at[0] * UNIT + 10, at[1] * LAYER + HIGH / 2 + 12];
const short = (name, most) => name.length > most ? `${name.slice(0, most - 1)}…` : name;
const heat = (node) => node.profile ? Math.sqrt(node.profile.device_seconds / longest) : 0;

const hasTime = (node) => node.profile !== null && node.profile.launches > 0;
const status = (node) => {
  if (!node.claimed) return "CPU";
  if (hasTime(node)) return time(node.profile.device_seconds);
  return node.fused_into !== null ? node.reason : node.is_view ? "view" : "no kernel";
};
const summary = (node) => [`${node.index} ${node.op}`,
  node.profile ? `${time(node.profile.device_seconds)}, ${percent(node.profile.share)} of all kernels\n${node.candidate}` : node.reason,
].join("\n");
const tensorText = (id) => {
  const tensor = data.tensors[id];
  return `${tensor.name || `tensor ${id}`}, ${tensor.type}${tensor.bytes ? `, ${size(tensor.bytes)}` : ""}`;
};

const drawn = new Map();
const edges = data.edges.map((edge) => {
  // Down through a point in each layer that it passes, vertical there.
  const points = edge.path.map(middle);
  let d = "";
  points.forEach(([x, y], i) => {
    const top = y - HIGH / 2, bottom = y + HIGH / 2;
    if (i === 0) { d = `M${x} ${bottom}`; return; }
    const before = points[i - 1][1] + HIGH / 2, bend = (top - before) * 0.55;
    d += `C${points[i - 1][0]} ${before + bend} ${x} ${top - bend} ${x} ${top}`;
    if (i + 1 < points.length) d += `V${bottom}`;
  });
  const path = make("path", { class: `edge${edge.crosses ? " crosses" : ""}`, d });
  tips.set(path, () => tensorText(edge.tensor) + (edge.crosses ? "\ncrosses between host and device" : ""));
  return { ...edge, drawn: path };
});

const drawNode = (node) => {
  const [x, y] = middle(node.at);
  const kind = !node.claimed ? "cpu-node" : hasTime(node) ? (heat(node) > 0.55 ? "warm" : "") : "idle";
  const group = make("g", { class: `node ${kind}`, transform: `translate(${x - WIDE / 2} ${y - HIGH / 2})`, "data-node": node.index },
    make("rect", { width: WIDE, height: HIGH, rx: 7 }),
    make("text", { x: 9, y: 17 }, short(node.op, 19)),
    make("text", { x: 9, y: 33, class: "small" }, short(`${node.index} · ${status(node)}`, 24)));
  group.style.setProperty("--heat", `${Math.round(heat(node) * 100)}%`);
  tips.set(group, () => summary(node));
  drawn.set(node.index, group);
  return group;
};
const drawEnd = (end) => {
  const [x, y] = middle(end.at);
  const group = make("g", { class: "end", transform: `translate(${x - WIDE / 2} ${y - 13})` },
    make("rect", { width: WIDE, height: 26, rx: 13 }),
    make("text", { x: 12, y: 17 }, short(`${end.kind} ${data.tensors[end.tensor].name}`, 22)));
  tips.set(group, () => `${end.kind} of the model\n${tensorText(end.tensor)}`);
  return group;
};

const scroll = byId("graph-scroll");
const full = [data.size[0] * UNIT + 20, data.size[1] * LAYER + 24];
const picture = make("svg", { viewBox: `0 0 ${full[0]} ${full[1]}`, role: "img" });
picture.append(make("g", {}, ...edges.map((edge) => edge.drawn)), make("g", {}, ...data.ends.map(drawEnd)), make("g", {}, ...data.nodes.map(drawNode)));
scroll.append(picture);

let scale = 1;
const zoomGraph = (factor, x = scroll.clientWidth / 2, y = scroll.clientHeight / 2) => {
  const fit = Math.min(1, (scroll.clientWidth - 2) / full[0]);
  const next = factor === 0 ? Math.max(fit, 0.06) : Math.min(3, Math.max(0.04, scale * factor));
  const frame = picture.getBoundingClientRect(), box = scroll.getBoundingClientRect();
  const at = [(box.left + x - frame.left) / scale, (box.top + y - frame.top) / scale];
  scale = next;
  picture.setAttribute("width", full[0] * scale);
  picture.setAttribute("height", full[1] * scale);
  picture.classList.toggle("far", scale < 0.4);
  const moved = picture.getBoundingClientRect();
  scroll.scrollLeft += moved.left + at[0] * scale - (box.left + x);
  scroll.scrollTop = factor === 0 ? 0 : scroll.scrollTop + moved.top + at[1] * scale - (box.top + y);
  drawMap();
};
zoomable("graph", scroll, zoomGraph);

// The map of the whole in the corner, where the whole is larger than the window.
const map = byId("overview-map");
let mapScale = 1;
const drawMap = () => {
  const inside = full[0] * scale <= scroll.clientWidth + 1 && full[1] * scale <= scroll.clientHeight + 1;
  map.hidden = inside;
  if (inside) return;
  mapScale = Math.min(120 / full[0], (scroll.clientHeight - 20) / full[1]);
  const dots = devicePixelRatio || 1;
  const width = Math.max(24, full[0] * mapScale), height = full[1] * mapScale;
  map.width = width * dots;
  map.height = height * dots;
  map.style.width = `${width}px`;
  map.style.height = `${height}px`;
  const colours = getComputedStyle(document.documentElement);
  const pen = map.getContext("2d");
  pen.scale(dots, dots);
  for (const node of data.nodes) {
    const [x, y] = middle(node.at);
    pen.fillStyle = colours.getPropertyValue(!node.claimed ? "--cpu-line" : hasTime(node) ? "--hot" : "--edge");
    pen.globalAlpha = node.claimed && hasTime(node) ? 0.25 + 0.75 * heat(node) : 0.8;
    const wide = Math.max(2, WIDE * mapScale), high = Math.max(1.2, HIGH * mapScale);
    pen.fillRect(x * mapScale - wide / 2, y * mapScale - high / 2, wide, high);
  }
  pen.globalAlpha = 1;
  pen.strokeStyle = colours.getPropertyValue("--accent");
  pen.lineWidth = 1.5;
  const ratio = mapScale / scale;
  pen.strokeRect(scroll.scrollLeft * ratio, scroll.scrollTop * ratio, Math.min(width, scroll.clientWidth * ratio), Math.min(height, scroll.clientHeight * ratio));
};
scroll.addEventListener("scroll", drawMap);
addEventListener("resize", drawMap);
document.addEventListener("theme", drawMap);
const toMap = (event) => {
  if (event.type === "pointermove" && !(event.buttons & 1)) return;
  const frame = map.getBoundingClientRect(), ratio = scale / mapScale;
  scroll.scrollTo((event.clientX - frame.left) * ratio - scroll.clientWidth / 2, (event.clientY - frame.top) * ratio - scroll.clientHeight / 2);
};
map.addEventListener("pointerdown", toMap);
map.addEventListener("pointermove", toMap);

// Dragging moves the graph; a click that is no drag selects.
let drag = null;
scroll.addEventListener("pointerdown", (event) => {
  if (event.pointerType === "mouse" && event.button === 0) drag = [event.clientX, event.clientY, false];
});
addEventListener("pointermove", (event) => {
  if (!drag) return;
  const [x, y] = [event.clientX - drag[0], event.clientY - drag[1]];
  if (!drag[2] && Math.hypot(x, y) < 4) return;
  drag = [event.clientX, event.clientY, true];
  scroll.classList.add("dragged");
  scroll.scrollBy({ left: -x, top: -y, behavior: "instant" });
});
addEventListener("pointerup", () => setTimeout(() => { drag = null; scroll.classList.remove("dragged"); }));
scroll.addEventListener("click", (event) => {
  const group = event.target.closest(".node");
  if (drag && drag[2]) return;
  select(group ? Number(group.dataset.node) : null, "graph");
});

const reveal = (index) => {
  if (scale < 0.4) zoomGraph(0.8 / scale);
  const [x, y] = middle(nodes.get(index).at), left = Math.max(0, (scroll.clientWidth - full[0] * scale) / 2);
  scroll.scrollTo({ left: left + x * scale - scroll.clientWidth / 2, top: y * scale - scroll.clientHeight / 2, behavior: "smooth" });
};
listeners.push((index, from) => {
  for (const group of picture.querySelectorAll(".selected")) group.classList.remove("selected");
  for (const edge of edges) edge.drawn.classList.toggle("near", index !== null && (edge.from === index || edge.to === index));
  if (index === null) return;
  drawn.get(index).classList.add("selected");
  if (from !== "graph") reveal(index);
});

// Finding: all that match stay, the rest fades; Enter goes from one to the next.
const matches = (node, words) => [`${node.index}`, node.op, node.candidate, ...[...node.input_ids, ...node.output_ids].map((id) => data.tensors[id].name)]
  .some((name) => name.toLowerCase().includes(words));
let hits = [];
byId("find").addEventListener("input", (event) => {
  const words = event.target.value.trim().toLowerCase();
  hits = words ? data.nodes.filter((node) => matches(node, words)).map((node) => node.index) : [];
  const kept = new Set(hits);
  for (const [index, group] of drawn) group.classList.toggle("faded", words !== "" && !kept.has(index));
  for (const edge of edges) edge.drawn.classList.toggle("faded", words !== "");
  byId("found").textContent = words ? plural(hits.length, "node") : "";
});
byId("find").addEventListener("keydown", (event) => {
  if (event.key === "Enter" && hits.length) select(hits[(hits.indexOf(selected) + 1) % hits.length], "find");
});

{
  const entry = (style, label) => make("li", {}, make("i", { class: style }), label);
  byId("graph-legend").append(entry("ramp", "on the device, by time"), entry("cpu", "on the CPU"), entry("idle", "no kernel of its own"),
    entry("dash", "crosses between host and device"));
}
