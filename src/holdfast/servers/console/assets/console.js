// Keys, the theme, and times that stay true. Everything here is a convenience: the pages work without it.
(() => {
  "use strict";

  const rows = () => [...document.querySelectorAll("[data-row]")];
  const current = () => document.querySelector("[data-row].current");

  function choose(row) {
    rows().forEach((other) => other.classList.toggle("current", other === row));
    row.scrollIntoView({ block: "nearest" });
    const link = row.querySelector("[data-open]") || row.querySelector("a[href], input, button");
    (link || row).focus({ preventScroll: true });
  }

  function move(step) {
    const all = rows();
    if (!all.length) return;
    const at = all.indexOf(current());
    choose(all[Math.min(Math.max(at + step, 0), all.length - 1)]);
  }

  // In a list the key belongs to the chosen row, on a page of its own to the page.
  function act(name) {
    const place = current() || document;
    const button = place.querySelector(`[data-act="${name}"]`) || document.querySelector(`main > [data-act="${name}"], main form [data-act="${name}"]`);
    if (!button || button.disabled) return;
    button.focus();
    button.click();
  }

  // On a phone the ways to the pages are wider than the screen: where one is can be seen.
  const here = document.querySelector('nav [aria-current="page"]'), ways = here?.closest("nav");
  if (ways && ways.scrollWidth > ways.clientWidth) ways.scrollLeft = here.offsetLeft - (ways.clientWidth - here.offsetWidth) / 2;

  let going = false;
  const KEYS = {
    j: () => move(1),
    k: () => move(-1),
    a: () => act("approve"),
    d: () => act("deny"),
    x: () => act("select"),
    "/": () => document.querySelector("[data-search]")?.focus(),
    "?": () => document.getElementById("help")?.showModal(),
    g: () => { going = true; setTimeout(() => { going = false; }, 1500); },
  };

  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const typing = event.target.closest("input:not([type=checkbox]), textarea, select, dialog");
    if (typing) {
      if (event.key === "Escape") event.target.blur();
      return;
    }
    if (going) {
      going = false;
      const way = document.querySelector(`[data-go="${CSS.escape(event.key)}"]`);
      if (way) { event.preventDefault(); way.click(); }
      return;
    }
    if (Object.hasOwn(KEYS, event.key)) { event.preventDefault(); KEYS[event.key](); }
  });

  document.addEventListener("click", (event) => {
    if (event.target.closest("[data-help]")) document.getElementById("help")?.showModal();
    if (event.target.closest("[data-theme-switch]")) {
      const root = document.documentElement;
      const dark = root.dataset.theme ? root.dataset.theme === "dark" : matchMedia("(prefers-color-scheme: dark)").matches;
      root.dataset.theme = dark ? "light" : "dark";
      localStorage.setItem("theme", root.dataset.theme);
    }
  });

  // A form is sent once: a second click while it is on its way is not a second answer.
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (form.method !== "post" || "again" in form.dataset) return;
    if (form.dataset.sent) { event.preventDefault(); return; }
    form.dataset.sent = "1";
  });
  addEventListener("pageshow", () => document.querySelectorAll("form[data-sent]").forEach((form) => delete form.dataset.sent));

  // The inbox is written anew when something moved: what was selected stays so, here and on the way back to it.
  const list = document.getElementById("inbox-list");
  if (document.querySelector("[data-answered]")) sessionStorage.removeItem("picked");
  if (list) {
    const boxes = () => [...list.querySelectorAll("input[name=pick]")];
    const picked = new Set(JSON.parse(sessionStorage.getItem("picked") || "[]"));
    let at = "", known = null;
    const tell = () => {
      sessionStorage.setItem("picked", JSON.stringify([...picked]));
      const count = boxes().filter((box) => box.checked).length;
      const form = list.closest("form");
      form.dataset.picked = count;
      form.querySelector(".several").hidden = !count;
      form.querySelector("[data-picked-count]").textContent = count;
    };
    const restore = () => {
      const here = rows();
      if (known) here.forEach((row) => row.classList.toggle("fresh", !known.has(row.dataset.row)));
      known = new Set(here.map((row) => row.dataset.row));
      boxes().forEach((box) => { if (box.checked) picked.add(box.value); else box.checked = picked.has(box.value); });
      const row = at && here.find((one) => one.dataset.row === at);
      if (row && !current()) {
        row.classList.add("current");
        if (document.activeElement === document.body) row.querySelector("[data-open]")?.focus({ preventScroll: true });
      }
      tell();
    };
    list.addEventListener("focusin", (event) => { at = event.target.closest("[data-row]")?.dataset.row || at; });
    list.addEventListener("change", (event) => {
      if (event.target.checked) picked.add(event.target.value); else picked.delete(event.target.value);
      tell();
    });
    new MutationObserver(restore).observe(list, { childList: true });
    restore();
  }

  // Whoever looks at a list that lives is told when it does not.
  const lost = (is) => {
    document.querySelector("[data-lost]")?.toggleAttribute("hidden", !is);
    document.querySelector("[data-live]")?.classList.toggle("lost", is);
  };
  document.addEventListener("htmx:sse:before:connection", (event) => {
    if (event.target.id === "follow" && document.querySelector("#story[data-over]"))
      event.detail.connection.cancelled = true; // what was followed is over
  });
  document.addEventListener("htmx:sse:error", () => lost(true));
  document.addEventListener("htmx:sse:after:connection", () => lost(false));

  const STEPS = [[172800, 86400, "d"], [5400, 3600, "h"], [90, 60, "min"], [0, 1, "s"]];
  function ago(at) {
    const away = Math.abs(Date.now() - at) / 1000;
    if (away < 1) return "now";
    const [, size, word] = STEPS.find(([least]) => away >= least);
    const told = `${Math.round(away / size)} ${word}`;
    return at > Date.now() ? `in ${told}` : `${told} ago`;
  }
  setInterval(() => document.querySelectorAll("time[data-ago]").forEach((time) => {
    const text = ago(Date.parse(time.dateTime));
    if (time.textContent !== text) time.textContent = text;
  }), 1000);
})();
