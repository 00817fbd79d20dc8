// Plots of the traffic, a list that does not grow without end, and files read into a form. Pages work without it.
(() => {
  "use strict";

  const MOST_ROWS = 200;
  const EVERY_MS = 5000;
  const box = document.querySelector("[data-traffic]");
  let plots = [];
  let span = null;

  const ink = (name) => getComputedStyle(document.documentElement).getPropertyValue(name).trim();

  function told(ms) {
    if (ms == null) return "-";
    if (ms === 0) return "0";
    if (ms < 1) return `${Math.round(ms * 1000)} µs`;
    return ms < 1000 ? `${+ms.toPrecision(3)} ms` : `${+(ms / 1000).toPrecision(3)} s`;
  }

  function axis(values) {
    return { stroke: ink("--muted"), grid: { stroke: ink("--line"), width: 1 }, ticks: { show: false }, size: 48, font: "12px ui-sans-serif, system-ui, sans-serif", ...(values ? { values } : {}) };
  }

  // In UTC, as every other time here; the day only where a plot spans several.
  const clocks = (_, all) => all.map((at) => {
    const text = new Date(at * 1000).toISOString();
    return span === "7d" ? text.slice(5, 10) : text.slice(11, 16);
  });

  function drawn(place, series, data, values) {
    const plot = new uPlot({
      width: place.clientWidth, height: tall(), legend: { show: false }, cursor: { drag: { x: false, y: false }, points: { size: 6 } },
      scales: { x: { time: true }, y: { range: (_, low, high) => [0, high > 0 ? high * 1.1 : 1] } },
      axes: [{ ...axis(clocks), size: 28 }, axis(values)], series: [{}, ...series],
    }, data, place);
    plots.push({ plot, place });
  }

  const tall = () => (innerWidth < 832 ? 120 : 180);
  // A line needs two points: one alone is drawn as what it is.
  const alone = (plot, which) => plot.data[which].filter((value) => value != null).length === 1;
  const line = (name, fill) => ({ stroke: ink(name), width: 1.5, points: { show: alone }, spanGaps: true, ...(fill ? { fill: ink(fill) } : {}) });

  function draw(traffic) {
    span = traffic.span;
    plots.forEach(({ plot }) => plot.destroy());
    plots = [];
    const [calls, latency] = [box.querySelector('[data-plot="calls"]'), box.querySelector('[data-plot="latency"]')];
    drawn(calls, [line("--accent", "--accent-soft"), line("--bad"), line("--warn")], [traffic.at, traffic.calls, traffic.failed, traffic.refused]);
    drawn(latency, [line("--calm"), line("--odd")], [traffic.at, traffic.p50, traffic.p95], (_, all) => all.map(told));
    for (const name of ["calls", "failed", "refused"]) box.querySelector(`[data-figure="${name}"]`).textContent = traffic.total[name].toLocaleString("en");
    box.querySelector('[data-figure="slowest"]').textContent = told(traffic.total.slowest);
    box.querySelectorAll("[data-span]").forEach((one) => one.setAttribute("aria-pressed", String(one.dataset.span === span)));
  }

  async function again(wanted) {
    const answer = await fetch(`/live/traffic.json?span=${encodeURIComponent(wanted)}`, { headers: { "HX-Request": "true" } });
    if (answer.ok) draw(await answer.json());
  }

  if (box && window.uPlot) {
    const first = JSON.parse(box.dataset.traffic);
    draw(first);
    box.addEventListener("click", (event) => { const one = event.target.closest("[data-span]"); if (one) again(one.dataset.span); });
    setInterval(() => { if (!document.hidden) again(span).catch(() => {}); }, EVERY_MS);
    addEventListener("resize", () => plots.forEach(({ plot, place }) => plot.setSize({ width: place.clientWidth, height: tall() })));
    new MutationObserver(() => again(span).catch(() => {})).observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme"] });
  }

  // What comes in is told now and then, not row by row.
  const list = document.querySelector("[data-feed]");
  const heard = document.querySelector("[data-heard]");
  let count = 0;
  if (list) {
    new MutationObserver((changes) => {
      const came = changes.flatMap((change) => [...change.addedNodes]).filter((node) => node.nodeType === 1 && node.classList.contains("fresh"));
      count += came.length;
      if (came.length) { document.querySelector("[data-none]")?.remove(); list.closest(".waits")?.classList.remove("waits"); }
      while (list.rows.length > MOST_ROWS) list.rows[list.rows.length - 1].remove();
    }).observe(list, { childList: true });
    setInterval(() => {
      if (count && heard) heard.textContent = `${count} new call${count === 1 ? "" : "s"}`;
      count = 0;
    }, 10000);
  }

  document.addEventListener("change", async (event) => {
    const from = event.target.closest("[data-from]");
    const file = from?.files?.[0];
    if (!file) return;
    const place = from.closest(".file");
    place.querySelector("[data-into]").value = await file.text();
    place.querySelector('[name="file"]').value = file.name;
  });
})();
