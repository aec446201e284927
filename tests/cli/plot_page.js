const answers = {};
const plot = document.getElementById("plot");
// A browser without a window may draw no frame for a while: a timer takes its place.
window.requestAnimationFrame = (draw) => setTimeout(() => draw(performance.now()), 16);
const frame = () => new Promise((done) => setTimeout(done, 500));

// The middle of the axes is known by what is said of positions: ask for the bases at two pixels.
function tells(x, y) {
  const box = plot.getBoundingClientRect();
  const at = { clientX: box.left + x, clientY: box.top + y, pointerId: 1, bubbles: true };
  plot.dispatchEvent(new PointerEvent("pointermove", at));
  const found = document.getElementById("found");
  return { place: document.getElementById("place").textContent,
    found: found.hidden ? null : found.textContent };
}

function colours() {
  const { data } = plot.getContext("2d").getImageData(0, 0, plot.width, plot.height);
  const seen = {};
  for (let i = 0; i < data.length; i += 4) {
    if (data[i + 3] < 255) continue;
    const name = "#" + [0, 1, 2].map((j) => data[i + j].toString(16).padStart(2, "0")).join("");
    seen[name] = (seen[name] || 0) + 1;
  }
  return seen;
}

function search() {
  const told = new Set();
  for (let x = 0; x < plot.clientWidth; x += 5)
    for (let y = 0; y < plot.clientHeight; y += 5) {
      const { found } = tells(x, y);
      if (found) told.add(found);
    }
  return [...told];
}

async function ask() {
  await frame();
  answers.size = [plot.clientWidth, plot.clientHeight];
  answers.colours = colours();
  answers.found = search();
  answers.corner = tells(80, 20).place;
  answers.outside = tells(5, 5);
  const box = plot.getBoundingClientRect();
  const half = [plot.clientWidth / 2, plot.clientHeight / 2];
  const middle = { clientX: box.left + half[0], clientY: box.top + half[1] };
  const before = [tells(200, 200).place, tells(...half).place];
  for (let i = 0; i < 3; i++)
    plot.dispatchEvent(new WheelEvent("wheel", { ...middle, deltaY: -400, cancelable: true }));
  await frame();
  const after = [tells(200, 200).place, tells(...half).place];
  answers.zoomed = { before, after };
  const drag = (kind, x) => plot.dispatchEvent(new PointerEvent(kind,
    { clientX: box.left + x, clientY: box.top + 200, pointerId: 1, bubbles: true }));
  plot.setPointerCapture = () => undefined;
  drag("pointerdown", 300);
  drag("pointermove", 400);
  drag("pointerup", 400);
  answers.dragged = tells(300, 200).place;
  plot.dispatchEvent(new KeyboardEvent("keydown", { key: "0", cancelable: true }));
  await frame();
  answers.reset = tells(200, 200).place;
  const slider = document.getElementById("least");
  answers.filtered = [];
  for (const value of [0, 500, 1000]) {
    slider.value = value;
    slider.dispatchEvent(new Event("input"));
    await frame();
    answers.filtered.push([document.getElementById("shown").textContent, search().length]);
  }
  document.getElementById("answers").textContent = JSON.stringify(answers);
}
ask().catch((error) => { document.getElementById("answers").textContent = String(error); });
