// Objects of the arena: launches from left to right, addresses downwards; what they hold, and when.

const drawBlock = (block, object, moments, names) => {
  const element = make("div", { class: `block ${block.kind}` }, block.tensor);
  element.style.left = `${100 * (block.first + 1) / moments}%`;
  element.style.width = `${100 * (block.last - block.first + 1) / moments}%`;
  element.style.top = `${100 * block.offset / object.bytes}%`;
  element.style.height = `${100 * block.bytes / object.bytes}%`;
  const moment = (i) => i < 0 ? "the upload" : i >= moments - 2 ? "the download" : names[i] ? `launch ${i} (${names[i].join(" ")})` : `launch ${i}`;
  tips.set(element, () => `${block.tensor}${block.kind === "scratch" ? " (scratch)" : ""}\n${size(block.bytes)} at ${size(block.offset)}\nfrom ${moment(block.first)}\nto ${moment(block.last)}`);
  return element;
};

const drawUse = (objects, moments) => {
  const use = new Array(moments).fill(0);
  for (const block of objects.flatMap((object) => object.blocks)) {
    for (let i = block.first; i <= block.last; ++i) use[i + 1] += block.bytes;
  }
  const most = Math.max(1, ...use);
  const steps = use.map((bytes, i) => `V${100 - 96 * bytes / most}H${i + 1}`).join("");
  return [make("svg", { class: "use", viewBox: `0 0 ${moments} 100`, preserveAspectRatio: "none", role: "img", "aria-label": "Arena in use" },
    make("path", { d: `M0 100${steps}V100Z` })), most];
};

const showMemory = (number) => {
  const part = data.memory[number], body = byId("memory-body");
  const arena = part.objects.filter((object) => object.kind === "arena");
  const weights = part.objects.filter((object) => object.kind === "weights");
  const moments = part.launches + 2, total = (objects) => objects.reduce((sum, object) => sum + object.bytes, 0);
  const [use, most] = drawUse(arena, moments);
  body.replaceChildren(make("p", { class: "hint" },
    `Arena ${size(total(arena))} in ${plural(arena.length, "object")} (${part.layout}), at most ${size(most)} in use at a time; ` +
    `weights ${size(total(weights))} in ${plural(weights.length, "object")}.`));
  if (!arena.length) return;
  const largest = Math.max(...arena.map((object) => object.bytes));
  const axis = () => make("div", { class: "axis" }, ...["upload", "launches", "download"].map((word) => make("span", {}, word)));
  body.append(make("h3", {}, "In use"), use, axis());
  arena.forEach((object, i) => {
    const box = make("div", { class: "map" }, ...object.blocks.map((block) => drawBlock(block, object, moments, data.launches[number] || [])));
    box.style.height = `${Math.max(18, Math.round(300 * object.bytes / largest))}px`;
    body.append(make("h3", {}, `Object ${i}, ${size(object.bytes)}`), box);
  });
};
data.memory.forEach((_, i) => byId("memory-partition").append(make("option", { value: i }, `partition ${i}`)));
byId("memory-partition").hidden = data.memory.length < 2;
byId("memory-partition").addEventListener("change", (event) => showMemory(Number(event.target.value)));
