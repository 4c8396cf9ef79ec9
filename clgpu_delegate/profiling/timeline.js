// One inference: tracks of the host and of the device. Spans are placed in percent, so zooming is
// the width of the box that holds them, and the browser cuts the names.

const time0 = byId("timeline-scroll");
let shown = null, stretch = 1;

const spanKind = (track, facts) => track === "enqueue calls" || facts === null ? "host"
  : facts.kind === "launch" || facts.kind === "cpu" ? facts.kind : "copy";
const drawSpan = (track, [start, end, name, facts]) => {
  const span = make("div", { class: "span", "data-kind": spanKind(track, facts) }, name);
  span.style.left = `${100 * start / shown.end}%`;
  span.style.width = `${100 * (end - start) / shown.end}%`;
  if (facts && facts.kind === "launch") span.dataset.of = facts.node;
  tips.set(span, () => [`${name}: ${time((end - start) * 1e-9)}`, `from ${time(start * 1e-9)} on`,
    ...(facts && facts.kernel ? [`node ${facts.node}, ${facts.engine}`, facts.kernel] : []),
    ...(facts && facts.bytes ? [`${size(facts.bytes)}, ${rate(facts.bytes / Math.max(end - start, 1) * 1e9, "B/s")}`] : [])].join("\n"));
  return span;
};

const drawRuler = () => {
  const ruler = time0.querySelector(".ruler");
  const pixel = shown.end / ruler.clientWidth; // nanoseconds
  const [least, digits] = [pixel * 90, (value) => 10 ** Math.floor(Math.log10(value))];
  const step = [1, 2, 5, 10].map((m) => m * digits(least)).find((s) => s >= least);
  const marks = [];
  const first = Math.floor(time0.scrollLeft * pixel / step);
  for (let i = first; i * step <= Math.min(shown.end, (time0.scrollLeft + time0.clientWidth) * pixel); ++i) {
    const mark = make("span", {}, time(i * step * 1e-9));
    mark.style.left = `${100 * i * step / shown.end}%`;
    marks.push(mark);
  }
  ruler.replaceChildren(...marks);
};

const zoomTimeline = (factor, x = time0.clientWidth / 2) => {
  const at = (time0.scrollLeft + x) / stretch;
  stretch = factor === 0 ? 1 : Math.min(4000, Math.max(1, stretch * factor));
  time0.firstElementChild.style.width = `${stretch * 100}%`;
  time0.scrollLeft = at * stretch - x;
  drawRuler();
};
zoomable("timeline", time0, zoomTimeline);
time0.addEventListener("scroll", drawRuler);
addEventListener("resize", drawRuler);

const showTimeline = (which) => {
  shown = data.timelines[which];
  const tracks = shown.tracks.map((track) => make("div", { class: "track" }, ...track.spans.map((span) => drawSpan(track.title, span))));
  time0.replaceChildren(make("div", {}, make("div", { class: "ruler" }), ...tracks));
  byId("track-labels").replaceChildren(...shown.tracks.map((track) => make("div", {}, track.title)));
  zoomTimeline(0);
  mark(selected);
};
const mark = (index, from) => {
  for (const span of time0.querySelectorAll(".span.selected")) span.classList.remove("selected");
  const spans = index === null ? [] : time0.querySelectorAll(`.span[data-of="${index}"]`);
  for (const span of spans) span.classList.add("selected");
  if (spans.length && from !== "timeline" && stretch > 1) {
    time0.scrollLeft = spans[spans.length - 1].offsetLeft - time0.clientWidth / 2;
  }
};
listeners.push(mark);
time0.addEventListener("click", (event) => {
  const span = event.target.closest(".span[data-of]");
  if (span) select(Number(span.dataset.of), "timeline");
});
for (const which of Object.keys(data.timelines)) {
  byId("which").append(make("option", { value: which }, `${which}: ${time(data.timelines[which].end * 1e-9)}`));
}
byId("which").addEventListener("change", (event) => showTimeline(event.target.value));
