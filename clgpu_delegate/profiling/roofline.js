// Each node's arithmetic rate over its operations per byte, below the lines that the device's measured rates draw.

const chart = byId("roofline-body");
const computing = data.nodes.filter((node) => hasTime(node) && node.profile.flops > 0 && node.profile.device_seconds > 0);
const intensity = ({ profile: p }) => p.flops / Math.max(p.bytes_read + p.bytes_written, 1);

// [name, rate]: level lines are operations per second, slopes are bytes per second.
const roofs = () => {
  const { fma_flops: fma, copy_bytes: memory, cache_bytes: cache } = data.peaks;
  const cores = data.peaks[{ fp16: "mma_f16_flops", tf32: "mma_tf32_flops" }[data.precision]];
  const levels = [["multiply-adds", fma]], slopes = [["device memory", memory]];
  if (cores && computing.some((node) => node.profile.tensor_cores)) levels.push(["tensor cores", cores]);
  if (cache > memory) slopes.push(["caches", cache]);
  return { levels, slopes };
};

const drawRoofline = () => {
  const { levels, slopes } = roofs();
  const box = { left: 62, right: 14, top: 30, bottom: 40 };
  const width = Math.max(chart.clientWidth, 240), height = 400;
  const most = Math.max(...levels.map(([, rate]) => rate)), widest = Math.max(...slopes.map(([, rate]) => rate));
  const xs = [...computing.map(intensity), ...slopes.map(([, rate]) => most / rate)];
  const ys = [...computing.map((node) => node.profile.flops_per_second), most];
  const span = (values) => [Math.floor(Math.log10(Math.min(...values)) - 0.2), Math.ceil(Math.log10(Math.max(...values)) + 0.2)];
  const [x0, x1] = span(xs), [y0, y1] = span(ys);
  const x = (value) => box.left + (Math.log10(value) - x0) / (x1 - x0) * (width - box.left - box.right);
  const y = (value) => height - box.bottom - (Math.log10(value) - y0) / (y1 - y0) * (height - box.top - box.bottom);

  const grid = make("g", { class: "grid" }), lines = make("g"), points = make("g"), names = make("g", { class: "names" });
  const label = (parent, at, text, extra = {}) => parent.append(make("text", { x: at[0], y: at[1], ...extra }, text));
  const every = Math.ceil((x1 - x0) / (width / 90));
  for (let power = x0; power <= x1; ++power) {
    grid.append(make("path", { d: `M${x(10 ** power)} ${box.top}V${height - box.bottom}` }));
    if ((power - x0) % every === 0) label(grid, [x(10 ** power), height - box.bottom + 16], rate(10 ** power, ""), { "text-anchor": "middle" });
  }
  for (let power = y0; power <= y1; ++power) {
    grid.append(make("path", { d: `M${box.left} ${y(10 ** power)}H${width - box.right}` }));
    label(grid, [box.left - 6, y(10 ** power) + 4], rate(10 ** power, ""), { "text-anchor": "end" });
  }
  label(grid, [width - box.right, height - 6], "operations per byte", { "text-anchor": "end" });
  label(grid, [6, 12], "operations per second");

  for (const [name, rate_] of levels) {
    const from = Math.max(10 ** x0, rate_ / widest);
    const line = make("path", { class: "roof", d: `M${x(from)} ${y(rate_)}H${width - box.right}` });
    tips.set(line, () => `${name}: at most ${rate(rate_, "FLOP/s")}`);
    lines.append(line);
    label(lines, [width - box.right - 4, y(rate_) - 5], `${name}, ${rate(rate_, "FLOP/s")}`, { "text-anchor": "end" });
  }
  for (const [name, rate_] of slopes) {
    const from = Math.max(10 ** x0, 10 ** y0 / rate_), to = Math.min(10 ** x1, most / rate_);
    const [a, b] = [[x(from), y(from * rate_)], [x(to), y(to * rate_)]];
    const line = make("path", { class: name === "caches" ? "roof caches" : "roof", d: `M${a[0]} ${a[1]}L${b[0]} ${b[1]}` });
    tips.set(line, () => `${name}: at most ${rate(rate_, "B/s")}`);
    lines.append(line);
    const turn = Math.atan2(b[1] - a[1], b[0] - a[0]) * 180 / Math.PI;
    const at = [a[0] + 12, a[1] + 12 * (b[1] - a[1]) / (b[0] - a[0]) - 6];
    label(lines, at, `${name}, ${rate(rate_, "B/s")}`, { transform: `rotate(${turn} ${at[0]} ${at[1]})` });
  }

  const taken = [];
  for (const node of [...computing].sort((a, b) => b.profile.device_seconds - a.profile.device_seconds)) {
    const p = node.profile, at = [x(intensity(node)), y(p.flops_per_second)], radius = 3 + 13 * Math.sqrt(p.share);
    const point = make("circle", { class: "point", cx: at[0], cy: at[1], r: radius, "data-point": node.index });
    tips.set(point, () => [summary(node), `${rate(intensity(node), "FLOP/B")}, ${rate(p.flops_per_second, "FLOP/s")}, ${rate(p.bytes_per_second, "B/s")}`,
      `${percent(p.peak_share)} of the peak, bound by ${p.bound}`].join("\n"));
    points.prepend(point); // short nodes are drawn over long ones
    const text = `${node.index} ${node.op}`, wide = text.length * 6.2;
    const left = at[0] + radius + wide + 4 < width ? at[0] + radius + 3 : at[0] - radius - 3 - wide;
    if (taken.length < 8 && left > box.left && taken.every(([a, b, w]) => Math.abs(b - at[1]) > 13 || left > a + w || left + wide < a)) {
      taken.push([left, at[1], wide]);
      label(names, [left, at[1] + 4], text);
    }
  }
  chart.replaceChildren(make("svg", { width, height, viewBox: `0 0 ${width} ${height}`, role: "img",
    "aria-label": `Rates of ${plural(computing.length, "node")} below the device's measured rates` }, grid, lines, points, names));
  markPoint(selected);
};
const markPoint = (index) => {
  for (const point of chart.querySelectorAll(".point")) point.classList.toggle("selected", Number(point.dataset.point) === index);
};

if (data.peaks && computing.length) {
  const without = data.nodes.filter(hasTime).length - computing.length;
  byId("roofline-left").textContent = without ? ` ${plural(without, "node")} without arithmetic or a measured time ${without === 1 ? "is" : "are"} left out.` : "";
  chart.addEventListener("click", (event) => {
    const point = event.target.closest("[data-point]");
    if (point) select(Number(point.dataset.point), "roofline");
  });
  listeners.push(markPoint);
  addEventListener("resize", drawRoofline);
} else {
  byId("roofline").hidden = true;
  document.querySelector('nav a[href="#roofline"]').hidden = true;
}
