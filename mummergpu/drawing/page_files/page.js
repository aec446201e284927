"use strict";

// Positions are bases on the axes of the joined records, 0-based and half-open, until they are shown.
const data = JSON.parse(document.getElementById("data").textContent);
const canvas = document.getElementById("plot");
const context = canvas.getContext("2d");
const foundBox = document.getElementById("found");
const placeText = document.getElementById("place");
const axes = { x: data.reference, y: data.query };

const MARGIN = { left: 74, right: 14, top: 8, bottom: 48 };
const LEAST_BASES = 40;
const NEAR_PIXELS = 8;
// While the plot moves, only the longest matches are drawn; all follow when it rests.
const MATCHES_IN_MOTION = 30000;
const REST_MILLISECONDS = 150;
// The longest are drawn once more, so that no short ones hide them.
const MATCHES_ON_TOP = 2000;

const [lefts, bottoms, lengths] = columns();
const kinds = bytesOf(data.kinds);
// Matches are in the order of their lengths: those that are long enough are the first ones.
let shownCount = data.count;
const whole = () => ({ x: [0, Math.max(1, axes.x.total)], y: [0, Math.max(1, axes.y.total)] });
let view = whole();
let size = { width: 0, height: 0 };
let resting = 0;

function bytesOf(encoded) {
  const text = atob(encoded);
  const bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  return bytes;
}

function columns() {
  const bytes = bytesOf(data.columns);
  const kinds = data.small ? [Uint32Array, Uint32Array, Int32Array] : [Float64Array, Float64Array, Float64Array];
  return kinds.map((kind, i) => new kind(bytes.buffer, i * data.count * kind.BYTES_PER_ELEMENT, data.count));
}

function plotBox() {
  return {
    x: [MARGIN.left, size.width - MARGIN.right],
    y: [size.height - MARGIN.bottom, MARGIN.top],
  };
}

function toPixel(which, place) {
  const [from, to] = plotBox()[which];
  const [low, high] = view[which];
  return from + ((place - low) / (high - low)) * (to - from);
}

function toPlace(which, pixel) {
  const [from, to] = plotBox()[which];
  const [low, high] = view[which];
  return low + ((pixel - from) / (to - from)) * (high - low);
}

function colour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
}

// The last record that starts at or before a place.
function recordAt(axis, place) {
  let first = 0;
  let last = axis.starts.length - 1;
  while (first < last) {
    const middle = (first + last + 1) >> 1;
    if (axis.starts[middle] <= place) first = middle;
    else last = middle - 1;
  }
  return first;
}

function grouped(number) {
  return Math.round(number).toLocaleString("en-US");
}

// Where a stretch of an axis is in its record, on the record's forward strand, counted from 1.
function inRecord(axis, place, length) {
  const number = recordAt(axis, place);
  const inside = place - axis.starts[number];
  const start = axis.turned[number] ? axis.lengths[number] - inside - length : inside;
  return { number, name: axis.names[number], first: start + 1, last: start + length };
}

function draw(most) {
  const ratio = window.devicePixelRatio || 1;
  context.setTransform(ratio, 0, 0, ratio, 0, 0);
  context.clearRect(0, 0, size.width, size.height);
  const box = plotBox();
  context.save();
  context.beginPath();
  context.rect(box.x[0], box.y[1], box.x[1] - box.x[0], box.y[0] - box.y[1]);
  context.clip();
  drawBorders("x");
  drawBorders("y");
  for (const count of [most, MATCHES_ON_TOP])
    data.colours.forEach((name, kind) => drawMatches(kind, name.startsWith("--") ? colour(name.slice(2)) : name, count));
  context.restore();
  context.strokeStyle = colour("ink");
  context.lineWidth = 1;
  context.strokeRect(box.x[0] - 0.5, box.y[1] - 0.5, box.x[1] - box.x[0] + 1, box.y[0] - box.y[1] + 1);
  drawLabels("x");
  drawLabels("y");
}

function drawBorders(which) {
  const axis = axes[which];
  const other = plotBox()[which === "x" ? "y" : "x"];
  context.strokeStyle = colour("line");
  context.lineWidth = 1;
  context.beginPath();
  let before = -10;
  for (let i = 0; i < axis.starts.length; i++) {
    for (const place of [axis.starts[i], axis.starts[i] + axis.lengths[i]]) {
      if (place < view[which][0] || place > view[which][1]) continue;
      const pixel = Math.round(toPixel(which, place)) + 0.5;
      if (Math.abs(pixel - before) < 3) continue;
      before = pixel;
      if (which === "x") {
        context.moveTo(pixel, other[0]);
        context.lineTo(pixel, other[1]);
      } else {
        context.moveTo(other[0], pixel);
        context.lineTo(other[1], pixel);
      }
    }
  }
  context.stroke();
}

function drawMatches(kind, style, most) {
  const box = plotBox();
  const scaleX = (box.x[1] - box.x[0]) / (view.x[1] - view.x[0]);
  const scaleY = (box.y[1] - box.y[0]) / (view.y[1] - view.y[0]);
  const count = Math.min(most, shownCount);
  context.strokeStyle = style;
  context.lineWidth = data.width;
  context.lineCap = "round";
  context.beginPath();
  for (let i = 0; i < count; i++) {
    if (kinds[i] !== kind) continue;
    const sign = lengths[i] < 0 ? -1 : 1;
    const length = lengths[i] * sign;
    const left = lefts[i];
    const bottom = bottoms[i];
    if (left > view.x[1] || left + length < view.x[0]) continue;
    if (bottom > view.y[1] || bottom + length < view.y[0]) continue;
    const x = box.x[0] + (left - view.x[0]) * scaleX;
    const begin = sign > 0 ? bottom : bottom + length;
    const y = box.y[0] + (begin - view.y[0]) * scaleY;
    context.moveTo(x, y);
    // Lines of no length would not be drawn.
    context.lineTo(x + Math.max(0.5, length * scaleX), y + sign * length * scaleY);
  }
  context.stroke();
}

function roundStep(bases, most) {
  let power = 1;
  for (;;) {
    for (const factor of [1, 2, 5]) if (bases <= factor * power * most) return factor * power;
    power *= 10;
  }
}

function inUnits(bases, step) {
  if (bases === 0) return "0";
  const [unit, name] = step >= 1e5 ? [1e6, " Mb"] : step >= 100 ? [1e3, " kb"] : [1, ""];
  const digits = step >= unit ? 0 : Math.ceil(Math.log10(unit / step));
  return (bases / unit).toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits }) + name;
}

function drawLabels(which) {
  const axis = axes[which];
  const [from, to] = plotBox()[which];
  const pixels = Math.abs(to - from);
  const [low, high] = view[which];
  const step = roundStep(high - low, Math.max(1, Math.floor(pixels / (which === "x" ? 90 : 45))));
  context.font = "12px system-ui, Arial, sans-serif";
  context.fillStyle = context.strokeStyle = colour("ink");
  context.lineWidth = 1;
  const first = recordAt(axis, low);
  const last = recordAt(axis, high);
  for (let i = first; i <= last && i < axis.starts.length; i++) {
    const start = axis.starts[i];
    const end = start + axis.lengths[i];
    if (axis.lengths[i] >= step) drawTicks(which, axis, i, step);
    const seen = [Math.max(low, start), Math.min(high, end)];
    const room = ((seen[1] - seen[0]) / (high - low)) * pixels - 6;
    if (room >= 16) drawName(which, axis.names[i], toPixel(which, (seen[0] + seen[1]) / 2), room);
  }
}

function drawTicks(which, axis, number, step) {
  const [low, high] = view[which];
  const start = axis.starts[number];
  const length = axis.lengths[number];
  const turned = axis.turned[number];
  const ends = [Math.max(low, start) - start, Math.min(high, start + length) - start];
  const range = turned ? [length - ends[1], length - ends[0]] : ends;
  const only = axis.starts.length === 1;
  for (let at = Math.ceil(range[0] / step) * step; at <= range[1]; at += step) {
    if (at === 0 && !only) continue;
    const pixel = toPixel(which, start + (turned ? length - at : at));
    const text = inUnits(at, step);
    context.beginPath();
    if (which === "x") {
      const bottom = plotBox().y[0];
      context.moveTo(pixel, bottom);
      context.lineTo(pixel, bottom + 5);
      context.textAlign = "center";
      context.textBaseline = "top";
      context.fillText(text, pixel, bottom + 8);
    } else {
      const left = plotBox().x[0];
      context.moveTo(left, pixel);
      context.lineTo(left - 5, pixel);
      context.textAlign = "right";
      context.textBaseline = "middle";
      context.fillText(text, left - 8, pixel);
    }
    context.stroke();
  }
}

function drawName(which, name, pixel, room) {
  let text = name;
  // Names are alike in the middle, and differ at their ends.
  for (let kept = name.length - 1; context.measureText(text).width > room; kept--) {
    if (kept < 2) return;
    const head = Math.ceil(kept / 2);
    text = name.slice(0, head) + "…" + name.slice(name.length - (kept - head));
  }
  context.save();
  context.textAlign = "center";
  context.textBaseline = "middle";
  if (which === "x") context.translate(pixel, size.height - 12);
  else {
    context.translate(10, pixel);
    context.rotate(-Math.PI / 2);
  }
  context.fillText(text, 0, 0);
  context.restore();
}

function drawSoon(inMotion) {
  clearTimeout(resting);
  const few = inMotion && data.count > MATCHES_IN_MOTION;
  requestAnimationFrame(() => draw(few ? MATCHES_IN_MOTION : data.count));
  if (few) resting = setTimeout(() => draw(data.count), REST_MILLISECONDS);
}

// Keep the view inside the records, and not narrower than a few bases.
function setView(which, low, high) {
  const total = whole()[which][1];
  const span = Math.min(total, Math.max(high - low, Math.min(LEAST_BASES, total)));
  const from = Math.min(Math.max(0, (low + high - span) / 2), total - span);
  view[which] = [from, from + span];
}

function zoom(factor, x, y) {
  for (const [which, pixel] of [["x", x], ["y", y]]) {
    const place = toPlace(which, pixel);
    const [low, high] = view[which];
    setView(which, place - (place - low) * factor, place + (high - place) * factor);
  }
  drawSoon(true);
}

function move(pixelsX, pixelsY) {
  for (const [which, pixels] of [["x", pixelsX], ["y", pixelsY]]) {
    const bases = toPlace(which, 0) - toPlace(which, pixels);
    setView(which, view[which][0] + bases, view[which][1] + bases);
  }
  drawSoon(true);
}

function nearestMatch(x, y) {
  const box = plotBox();
  const scaleX = (box.x[1] - box.x[0]) / (view.x[1] - view.x[0]);
  const scaleY = (box.y[1] - box.y[0]) / (view.y[1] - view.y[0]);
  let best = -1;
  let least = NEAR_PIXELS * NEAR_PIXELS;
  for (let i = 0; i < shownCount; i++) {
    const falls = lengths[i] < 0;
    const length = Math.abs(lengths[i]);
    const startX = box.x[0] + (lefts[i] - view.x[0]) * scaleX - x;
    const breadth = length * scaleX;
    if (startX > NEAR_PIXELS || startX + breadth < -NEAR_PIXELS) continue;
    const startY = box.y[0] + (bottoms[i] + (falls ? length : 0) - view.y[0]) * scaleY - y;
    const rise = (falls ? -length : length) * scaleY;
    const square = breadth * breadth + rise * rise;
    const along = square ? Math.min(1, Math.max(0, -(startX * breadth + startY * rise) / square)) : 0;
    const awayX = startX + along * breadth;
    const awayY = startY + along * rise;
    const distance = awayX * awayX + awayY * awayY;
    if (distance < least) {
      least = distance;
      best = i;
    }
  }
  return best;
}

function inBox(x, y) {
  const box = plotBox();
  return x >= box.x[0] && x <= box.x[1] && y >= box.y[1] && y <= box.y[0];
}

function tell(x, y) {
  const inside = inBox(x, y);
  placeText.textContent = inside ? [placeIn("x", x), placeIn("y", y)].filter(Boolean).join(" · ") : "";
  const best = inside ? nearestMatch(x, y) : -1;
  foundBox.hidden = best < 0;
  if (best < 0) return;
  const length = Math.abs(lengths[best]);
  const reference = inRecord(axes.x, lefts[best], length);
  const query = inRecord(axes.y, bottoms[best], length);
  const isReverse = lengths[best] < 0 !== axes.y.turned[query.number];
  foundBox.textContent = [
    `${axes.x.title} ${reference.name}: ${grouped(reference.first)}–${grouped(reference.last)}`,
    `${axes.y.title} ${query.name}: ${grouped(query.first)}–${grouped(query.last)}`,
    `${grouped(length)} bp, ${isReverse ? "reverse" : "forward"}${data.colours[0].startsWith("--") ? "" : `, ${data.labels[kinds[best]]} equal`}`,
  ].join("\n");
  const { offsetWidth: width, offsetHeight: height } = foundBox;
  foundBox.style.left = `${Math.max(0, Math.min(x + 14, size.width - width))}px`;
  foundBox.style.top = `${y + 14 + height > size.height ? Math.max(0, y - 14 - height) : y + 14}px`;
}

function placeIn(which, pixel) {
  const axis = axes[which];
  const place = Math.floor(toPlace(which, pixel));
  if (!axis.starts.length) return "";
  const found = inRecord(axis, place, 1);
  const isInside = found.first >= 1 && found.first <= axis.lengths[found.number];
  return isInside ? `${found.name}: ${grouped(found.first)}` : "";
}

const pointers = new Map();

function at(event) {
  const box = canvas.getBoundingClientRect();
  return { x: event.clientX - box.left, y: event.clientY - box.top };
}

canvas.addEventListener("pointerdown", (event) => {
  pointers.set(event.pointerId, at(event));
  canvas.setPointerCapture(event.pointerId);
  canvas.classList.add("moving");
  foundBox.hidden = true;
});

canvas.addEventListener("pointermove", (event) => {
  const now = at(event);
  const before = pointers.get(event.pointerId);
  if (!before) {
    tell(now.x, now.y);
    return;
  }
  const other = [...pointers].find(([id]) => id !== event.pointerId)?.[1];
  pointers.set(event.pointerId, now);
  if (!other) {
    move(now.x - before.x, now.y - before.y);
    return;
  }
  const distance = (point) => Math.max(1, Math.hypot(point.x - other.x, point.y - other.y));
  zoom(distance(before) / distance(now), (now.x + other.x) / 2, (now.y + other.y) / 2);
});

for (const name of ["pointerup", "pointercancel"]) {
  canvas.addEventListener(name, (event) => {
    pointers.delete(event.pointerId);
    if (!pointers.size) canvas.classList.remove("moving");
  });
}

canvas.addEventListener("pointerleave", () => {
  foundBox.hidden = true;
  placeText.textContent = "";
});

canvas.addEventListener(
  "wheel",
  (event) => {
    event.preventDefault();
    const { x, y } = at(event);
    const lines = event.deltaMode === 1 ? 16 : 1;
    zoom(Math.exp(Math.max(-1, Math.min(1, event.deltaY * lines * 0.002))), x, y);
    tell(x, y);
  },
  { passive: false },
);

// The slider goes from the shortest match to the longest in equal factors.
const leastSlider = document.getElementById("least");
const shownText = document.getElementById("shown");

function filter() {
  const longest = data.count ? Math.abs(lengths[0]) : 1;
  const shortest = data.count ? Math.max(1, Math.abs(lengths[data.count - 1])) : 1;
  const share = leastSlider.value / leastSlider.max;
  const least = Math.floor(shortest * Math.pow(longest / shortest, share));
  let low = 0;
  let high = data.count;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (Math.abs(lengths[middle]) >= least) low = middle + 1;
    else high = middle;
  }
  shownCount = low;
  shownText.textContent = `${grouped(least)} bp: ${grouped(shownCount)} of ${grouped(data.count)}`;
}

leastSlider.addEventListener("input", () => {
  filter();
  drawSoon(true);
});

function showAll() {
  view = whole();
  drawSoon(false);
}

canvas.addEventListener("dblclick", showAll);

canvas.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const middle = { x: size.width / 2, y: size.height / 2 };
  const step = 60;
  const actions = {
    "+": () => zoom(1 / 1.4, middle.x, middle.y),
    "=": () => zoom(1 / 1.4, middle.x, middle.y),
    "-": () => zoom(1.4, middle.x, middle.y),
    0: showAll,
    ArrowLeft: () => move(step, 0),
    ArrowRight: () => move(-step, 0),
    ArrowUp: () => move(0, step),
    ArrowDown: () => move(0, -step),
  };
  if (!actions[event.key]) return;
  event.preventDefault();
  actions[event.key]();
});

function fit() {
  const ratio = window.devicePixelRatio || 1;
  size = { width: canvas.clientWidth, height: canvas.clientHeight };
  canvas.width = Math.round(size.width * ratio);
  canvas.height = Math.round(size.height * ratio);
  draw(data.count);
}

new ResizeObserver(fit).observe(canvas);
filter();
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawSoon(false));
fit();
