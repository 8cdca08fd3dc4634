/* Reads values off the charts: with the pointer, or with the arrow keys once a chart has the focus. */
"use strict";
for (const figure of document.querySelectorAll("figure.chart")) {
  const held = figure.querySelector("script");
  const plot = figure.querySelector(".plot");
  const out = figure.querySelector("output");
  if (!held || !plot || !out) continue;
  const data = JSON.parse(held.textContent);
  const places = [...new Set(data.lines.flatMap((line) => line.x))].sort((a, b) => a - b);
  if (!places.length) continue;
  const cursor = document.createElement("div");
  cursor.className = "cursor";
  cursor.hidden = true;
  plot.append(cursor);
  let at = places.length - 1;
  const name = (x) =>
    data.time ? new Date(x).toISOString().slice(0, 19).replace("T", " ") + " UTC"
              : String(Math.round(x * 1e4) / 1e4);
  const nearest = (list, x) => {
    let low = 0, high = list.length - 1;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (list[middle] < x) low = middle + 1; else high = middle;
    }
    return low && x - list[low - 1] < list[low] - x ? low - 1 : low;
  };
  const show = () => {
    const x = places[at];
    cursor.hidden = false;
    cursor.style.left = (100 * (x - data.low)) / (data.high - data.low || 1) + "%";
    const told = data.lines
      .filter((line) => line.x.length)
      .map((line) => [line.name, line.y[nearest(line.x, x)]])
      .filter(([, y]) => y !== null)
      .map(([label, y]) => (label ? label + " " : "") + y.toFixed(4));
    out.textContent = name(x) + ": " + (told.join(", ") || "not defined");
  };
  plot.addEventListener("pointermove", (event) => {
    const box = plot.getBoundingClientRect();
    at = nearest(places, data.low + ((event.clientX - box.left) / box.width) * (data.high - data.low));
    show();
  });
  plot.addEventListener("keydown", (event) => {
    const step = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10 }[event.key];
    if (step) at = Math.min(Math.max(at + step, 0), places.length - 1);
    else if (event.key === "Home") at = 0;
    else if (event.key === "End") at = places.length - 1;
    else return;
    event.preventDefault();
    show();
  });
  plot.addEventListener("focus", show);
}
