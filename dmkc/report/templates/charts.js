// Picking a cluster, looking at a row; without this script the page says the same, all at once.
(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("rows").textContent);
  const all = (what) => [...document.querySelectorAll(what)];
  const map = document.getElementById("map");
  const panel = document.getElementById("row");
  const tip = document.getElementById("tip");
  const points = map ? [...map.querySelectorAll("circle")] : [];
  const byX = data.x.map((_, i) => i).sort((a, b) => data.x[a] - data.x[b]);
  let picked = "";
  let here = -1;
  let before = null;
  document.documentElement.classList.add("js");

  function make(tag, text, parent, kind) {
    const made = document.createElement(tag);
    made.textContent = text;
    if (kind) made.className = kind;
    parent.append(made);
    return made;
  }

  function pick(cluster) {
    picked = cluster;
    for (const each of all("[data-k]"))
      each.classList.toggle("off", picked !== "" && each.dataset.k !== picked);
    for (const each of all("[data-pick]"))
      each.setAttribute("aria-pressed", String(each.dataset.pick === picked));
    if (here >= 0 && !isShown(here)) point(-1);
  }

  const isShown = (i) => picked === "" || String(data.k[i]) === picked;
  const named = (i) => (data.k[i] < 0 ? "noise" : "cluster " + data.k[i]);

  function point(i) {
    if (here >= 0 && points[here]) points[here].classList.remove("here");
    here = i;
    tip.hidden = i < 0;
    if (i < 0 || !points[i]) return;
    points[i].classList.add("here");
    map.append(points[i]); // in front of the others
    tip.replaceChildren();
    make("b", "Row " + data.ids[i] + ", " + named(i), tip);
    for (let j = 0; j < Math.min(4, data.columns.length); j++)
      make("span", data.columns[j] + ": " + data.values[j][i], tip);
    const box = map.getBoundingClientRect();
    const left = box.left + (data.x[i] / data.width) * box.width + 14;
    const top = box.top + (data.y[i] / data.height) * box.height + 10;
    tip.style.left = Math.max(4, Math.min(left, innerWidth - tip.offsetWidth - 8)) + "px";
    tip.style.top = Math.max(4, Math.min(top, innerHeight - tip.offsetHeight - 8)) + "px";
  }

  function show(i) {
    if (panel.hidden) before = document.activeElement;
    panel.replaceChildren();
    const head = make("h3", "", panel);
    const k = data.k[i];
    make("i", "", head, "dot " + (k < 0 ? "kn" : k < 12 ? "k" + k : "ko"));
    head.append("Row " + data.ids[i] + ", " + named(i));
    const close = make("button", "Close", panel, "close");
    close.type = "button";
    close.addEventListener("click", hide);
    if (data.sure[i] !== null)
      make("p", "Chance of this label by fits of other rows: " + data.sure[i], panel);
    const table = make("table", "", panel);
    const top = make("tr", "", make("thead", "", table));
    for (const text of ["column", "this row", data.k[i] < 0 ? "" : "its cluster"])
      make("th", text, top).scope = "col";
    const body = make("tbody", "", table);
    data.columns.forEach((name, j) => {
      const line = make("tr", "", body);
      make("th", name, line).scope = "row";
      make("td", data.values[j][i], line);
      make("td", data.k[i] < 0 ? "" : data.middle[j][data.k[i]], line);
    });
    panel.hidden = false;
    close.focus();
  }

  function hide() {
    panel.hidden = true;
    if (before) before.focus();
  }

  function nearest(event) {
    const box = map.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * data.width;
    const y = ((event.clientY - box.top) / box.height) * data.height;
    let best = -1;
    let least = (16 * data.width) / box.width;
    for (let i = 0; i < points.length; i++) {
      const far = Math.hypot(data.x[i] - x, data.y[i] - y);
      if (far < least && isShown(i)) [best, least] = [i, far];
    }
    return best;
  }

  function step(by) {
    const shown = byX.filter(isShown);
    const at = shown.indexOf(here);
    point(shown[at < 0 ? 0 : (at + by + shown.length) % shown.length]);
  }

  if (map) {
    points.sort((a, b) => a.dataset.i - b.dataset.i);
    map.setAttribute("tabindex", "0");
    map.addEventListener("pointermove", (event) => point(nearest(event)));
    map.addEventListener("pointerleave", () => point(-1));
    map.addEventListener("blur", () => point(-1));
    map.addEventListener("click", (event) => {
      const i = nearest(event);
      if (i >= 0) show(i);
    });
    map.addEventListener("keydown", (event) => {
      const by = { ArrowRight: 1, ArrowUp: 1, ArrowLeft: -1, ArrowDown: -1 }[event.key];
      if (by) step(by);
      else if ((event.key === "Enter" || event.key === " ") && here >= 0) show(here);
      else return;
      event.preventDefault();
    });
  }
  document.addEventListener("click", (event) => {
    const chosen = event.target.closest("[data-pick]");
    if (chosen) pick(chosen.dataset.pick === picked ? "" : chosen.dataset.pick);
    const row = event.target.closest("[data-row]");
    if (row) show(Number(row.dataset.row));
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    if (!panel.hidden) hide();
    else pick("");
  });
  addEventListener("beforeprint", () => {
    pick("");
    point(-1);
    for (const each of all("details")) each.open = true;
  });
})();
