/* The desk's own script. Pages work without it: it brings local times, keys, dialogs, copying and live updates.
   It writes no HTML of its own: what the server sent is morphed into the page, other text goes in as text. */
(() => {
  "use strict";
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];
  const root = document.body.dataset.root;

  /* Times: the server writes UTC, the viewer reads local time. */
  const pad = (number) => String(number).padStart(2, "0");
  const day = (at) => `${at.getFullYear()}-${pad(at.getMonth() + 1)}-${pad(at.getDate())}`;
  const minute = (at) => `${pad(at.getHours())}:${pad(at.getMinutes())}`;
  const second = (at) => `${minute(at)}:${pad(at.getSeconds())}`;
  const weekday = (at) => at.toLocaleDateString([], { weekday: "short", day: "2-digit" });
  const forms = {
    clock: second, second, tick: minute, daytick: weekday,
    day: (at) => `${day(at)} ${minute(at)}`,
    full: (at) => `${day(at)} ${second(at)}`,
    nowtick: (at) => `now ${second(at)}`,
  };
  function localise(within) {
    for (const node of $$("[data-as]", within)) {
      const form = forms[node.dataset.as];
      const at = new Date(node.getAttribute("datetime") || node.dataset.time);
      if (form && !Number.isNaN(at.getTime())) node.textContent = form(at);
    }
  }

  /* Morphing is htmx's; an extension is how it hands that out. */
  let morph = (target, fragment) => target.replaceChildren(fragment);
  if (window.htmx) htmx.registerExtension("desk", { init: (api) => { morph = (to, from) => api.morph(to, from, true); } });

  /* Rows that appear or go while the pointer or the focus is in a table wait until the user asks for them. */
  const isBusy = (table) => table.matches(":hover") || table.contains(document.activeElement);
  function hold(shown, fresh) {
    const table = shown.closest("table");
    if (!isBusy(table)) return dropNotice(table);
    const news = new Map([...fresh.children].map((row) => [row.id, row]));
    const kept = [...shown.children].map((row) => {
      const update = news.get(row.id);
      news.delete(row.id);
      if (update) return update;
      const old = row.cloneNode(true);
      old.classList.add("gone");
      return old;
    });
    fresh.replaceChildren(...kept);
    if (!news.size) return dropNotice(table);
    const notice = table.previousElementSibling?.matches(".waiting-rows") ? table.previousElementSibling : newNotice(table);
    notice.textContent = `${news.size} new`;
  }
  function newNotice(table) {
    const notice = document.createElement("button");
    notice.type = "button";
    notice.className = "waiting-rows";
    notice.addEventListener("click", () => { document.activeElement?.blur(); dropNotice(table); refresh({ holds: false }); });
    table.before(notice);
    return notice;
  }
  const dropNotice = (table) => { if (table.previousElementSibling?.matches(".waiting-rows")) table.previousElementSibling.remove(); };

  /* Refreshing: fetch this page's own URL, only its rail and content, and morph them in. */
  /* A page that takes 0.1 s to answer is asked again after 8 s: an open tab costs a busy system an eightieth, no more. */
  const SHARE = 80, LONGEST = 15;
  let busy = false, refreshed = Date.now(), planned = 0, since = null;
  async function refresh({ holds = true } = {}) {
    if (busy) return plan(1000);
    busy = true;
    try {
      const answer = await fetch(location.href, { headers: { "Perdure-Part": "page" }, credentials: "same-origin", signal: AbortSignal.timeout(15000) });
      if (answer.redirected || answer.status === 401) return location.reload();
      if (answer.status >= 500) return away(answer.headers.get("Perdure-Away") || "server");
      show(await answer.text(), holds);
      refreshed = Date.now();
      back();
    } catch { away("server"); } finally { busy = false; }
  }
  function show(html, holds) {
    const fresh = new DOMParser().parseFromString(html, "text/html");
    localise(fresh);
    for (const part of [...fresh.body.children]) {
      const shown = part.id && document.getElementById(part.id);
      if (!shown) continue;
      if (holds) for (const rows of $$("tbody[data-rows]", part)) {
        const before = document.getElementById(rows.id);
        if (before) hold(before, rows);
      }
      for (const at of $$("tr.at", shown)) document.getElementById(at.id) && part.querySelector(`#${CSS.escape(at.id)}`)?.classList.add("at");
      for (const notice of $$(".waiting-rows", shown)) keepNotice(notice, part);
      const fragment = document.createDocumentFragment();
      fragment.append(...[...part.childNodes].map((node) => document.adoptNode(node)));
      morph(shown, fragment);
      if (part.dataset.took) shown.dataset.took = part.dataset.took;
      window.htmx?.process(shown);
    }
    document.dispatchEvent(new CustomEvent("desk:shown"));
  }
  function keepNotice(notice, part) {
    const rows = notice.nextElementSibling && $("tbody", notice.nextElementSibling);
    const table = rows && part.querySelector(`#${CSS.escape(rows.id)}`)?.closest("table");
    if (table) { notice.id ||= `waiting-${rows.id}`; table.before(notice.cloneNode(true)); }
  }
  function plan(wait) { clearTimeout(planned); planned = setTimeout(() => { if (!document.hidden) refresh(); }, wait); }
  function news() {
    const { every, took } = $("#content").dataset;
    const wait = Math.min(Math.max(Number(every), SHARE * Number(took)), LONGEST) * 1000;
    if (Number(every)) plan(Math.max(0, refreshed + wait - Date.now()));
  }

  /* The one stream of this tab: open while it is seen, tried again with growing pauses. */
  const mark = $("#live"), banner = $("#away");
  let stream = null, revision = null, tries = 0, retry = 0;
  const say = (state, word) => { mark.dataset.state = state; $(".word", mark).textContent = word; };
  function away(what) {
    since ||= new Date();
    banner.textContent = `No answer from the ${what} since ${minute(since)}. Retrying…`;
    banner.hidden = false;
    say("away", "away");
    plan(Math.min(1000 * 2 ** Math.min(tries++, 4), 10000));
  }
  function back() {
    since = null; tries = 0; banner.hidden = true;
    if (document.body.dataset.live) say(stream ? "on" : "off", stream ? "live" : "every 10 s");
    if (!stream) listen();
  }
  function listen() {
    if (!document.body.dataset.live || stream || document.hidden || !window.EventSource) return;
    clearTimeout(retry);
    const opened = stream = new EventSource(document.body.dataset.live);
    opened.addEventListener("open", () => { if (!since) say("on", "live"); });
    opened.addEventListener("tick", (event) => {
      if (since) refresh();
      if (event.data !== revision) news(); // also the first one: something may have changed since the page was made
      revision = event.data;
    });
    opened.addEventListener("back", () => refresh());
    opened.addEventListener("away", (event) => { since ||= new Date(JSON.parse(event.data).since); away("database"); });
    opened.addEventListener("error", () => {
      opened.close();
      if (stream === opened) stream = null;
      if (!document.hidden && !leaving) refresh().then(() => { if (!since) say("off", "every 10 s"); });
      retry = setTimeout(() => { news(); listen(); }, 10000);
    });
  }
  function hush() { stream?.close(); stream = null; clearTimeout(retry); clearTimeout(planned); }
  let leaving = false;
  addEventListener("pagehide", () => { leaving = true; hush(); });
  addEventListener("pageshow", (event) => { leaving = false; if (event.persisted) { listen(); refresh(); } });
  document.addEventListener("visibilitychange", () => { if (document.hidden) hush(); else { listen(); refresh(); } });

  /* Dialogs: a command asks before it acts. */
  const confirmation = $("#confirm");
  document.addEventListener("submit", (event) => {
    const form = event.target;
    if (!form.dataset.ask || form.elements.confirmed) return;
    event.preventDefault();
    $("h2", confirmation).textContent = form.dataset.ask;
    $(".detail", confirmation).textContent = form.dataset.detail;
    $(".cli", confirmation).hidden = !form.dataset.cli;
    $(".cli code", confirmation).textContent = form.dataset.cli;
    const button = $("button", form), yes = $("[value=yes]", confirmation);
    yes.textContent = button.textContent.replace("…", "");
    yes.className = button.matches(".bad") ? "btn bad" : "btn main";
    confirmation.returnValue = "";
    $("[name=why]", confirmation).value = "";
    confirmation.showModal();
    confirmation.onclose = () => {
      if (confirmation.returnValue !== "yes") return;
      const add = (name, value) => form.append(Object.assign(document.createElement("input"), { type: "hidden", name, value }));
      add("confirmed", "yes");
      add("why", $("[name=why]", confirmation).value);
      form.submit();
    };
  });
  document.addEventListener("click", async (event) => {
    const opener = event.target.closest("[data-opens]");
    if (opener) return document.getElementById(opener.dataset.opens).showModal();
    if (event.target.closest("[data-theme-switch]")) return switchTheme();
    const copier = event.target.closest("[data-copies]");
    if (!copier) return;
    await copyText(copier.previousElementSibling.textContent);
    copier.textContent = "Copied";
    setTimeout(() => { copier.textContent = "Copy"; }, 1500);
  });
  async function copyText(text) {
    if (navigator.clipboard) return navigator.clipboard.writeText(text);
    const box = Object.assign(document.createElement("textarea"), { value: text });
    document.body.append(box); box.select(); document.execCommand("copy"); box.remove();
  }
  function switchTheme() {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
    const next = now === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    document.cookie = `perdure_theme=${next}; path=${root || "/"}; max-age=31536000; samesite=strict`;
  }

  /* Values of a chart under the pointer, said in its head. */
  document.addEventListener("pointerover", (event) => {
    const hit = event.target.closest?.(".hit");
    const head = event.target.closest?.(".chart")?.querySelector(".readout");
    if (head) head.textContent = hit ? `${minute(new Date(hit.dataset.time))}  ${hit.dataset.said || "nothing"}` : "";
  });

  /* Rows that are chosen by their boxes: the buttons for them appear, and say how many. */
  function countChosen() {
    const number = $$("tbody[data-rows] input[type=checkbox]:checked").length;
    for (const part of $$(".when-chosen")) part.hidden = !number;
    for (const part of $$("[data-chosen]")) part.textContent = number ? `${number} chosen` : part.dataset.chosen;
  }
  document.addEventListener("change", countChosen);
  document.addEventListener("desk:shown", countChosen);

  /* Suggestions below the search box: arrows choose, Tab or Enter takes, Escape closes. */
  const box = $("#search"), offers = $("#suggestions");
  let asked = 0, chosen = -1;
  const begun = () => box.value.slice(0, box.selectionStart).match(/\S*$/)[0];
  function closeOffers() { offers.hidden = true; chosen = -1; box.setAttribute("aria-expanded", "false"); }
  function choose(place) {
    const every = [...offers.children];
    chosen = (place + every.length) % every.length;
    every.forEach((offer, at) => offer.setAttribute("aria-selected", String(at === chosen)));
    box.setAttribute("aria-activedescendant", every[chosen].id);
  }
  function take(offer) {
    const start = box.selectionStart - begun().length, word = offer.dataset.text;
    const gap = /[:.~]$/.test(word) ? "" : " ";
    box.setRangeText(word + gap, start, box.selectionStart, "end");
    closeOffers();
    box.focus();
    if (!gap) suggest();
  }
  async function suggest() {
    const mine = ++asked;
    const answer = await fetch(`${root}/suggestions?q=${encodeURIComponent(box.value.slice(0, box.selectionStart))}`).catch(() => null);
    if (mine !== asked || !answer?.ok || document.activeElement !== box) return;
    const found = await answer.json();
    offers.replaceChildren(...found.map(({ text, hint }, at) => {
      const offer = Object.assign(document.createElement("li"), { id: `offer-${at}`, role: "option" });
      offer.dataset.text = text;
      offer.append(Object.assign(document.createElement("b"), { textContent: text }), Object.assign(document.createElement("small"), { textContent: hint }));
      offer.addEventListener("mousedown", (event) => { event.preventDefault(); take(offer); });
      return offer;
    }));
    chosen = -1;
    offers.hidden = !found.length;
    box.setAttribute("aria-expanded", String(!offers.hidden));
  }
  if (box && offers) {
    let waiting = 0;
    box.addEventListener("input", () => { clearTimeout(waiting); waiting = setTimeout(suggest, 120); });
    box.addEventListener("focus", () => { if (!box.value) suggest(); });
    box.addEventListener("blur", closeOffers);
    box.addEventListener("keydown", (event) => {
      if (offers.hidden) return;
      if (event.key === "ArrowDown") { event.preventDefault(); choose(chosen + 1); }
      if (event.key === "ArrowUp") { event.preventDefault(); choose(chosen - 1); }
      if (event.key === "Escape") { event.stopPropagation(); closeOffers(); }
      if ((event.key === "Tab" || event.key === "Enter") && chosen >= 0) { event.preventDefault(); take(offers.children[chosen]); }
    });
  }

  /* Keys. */
  let leader = false;
  const isTyping = (node) => node.closest("input, textarea, select, [contenteditable]") || $("dialog[open]");
  const rows = () => $$("tbody[data-rows] > tr, .need");
  function step(by) {
    const every = rows();
    const at = every.findIndex((row) => row.classList.contains("at"));
    const next = every[Math.min(Math.max(at + by, 0), every.length - 1)];
    if (!next) return;
    every[at]?.classList.remove("at");
    next.classList.add("at");
    next.scrollIntoView({ block: "nearest" });
    $("a[href]", next)?.focus({ preventScroll: true });
  }
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" && document.activeElement !== document.body && !$("dialog[open]")) return document.activeElement.blur();
    if (isTyping(event.target)) return;
    if (leader) {
      leader = false;
      const entry = $(`#rail [data-key="${CSS.escape(event.key)}"]`);
      if (entry) { event.preventDefault(); entry.click(); }
      return;
    }
    const keys = {
      "/": () => { $("#search").focus(); $("#search").select(); },
      g: () => { leader = true; setTimeout(() => { leader = false; }, 1500); },
      j: () => step(1), k: () => step(-1), r: () => refresh({ holds: false }),
      x: () => $(".at input[type=checkbox]")?.click(),
      "?": () => $("#keys").showModal(),
    };
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  });

  /* Strips that scroll sideways begin at what matters: the page that is open, the tab that is chosen, the present. */
  for (const [strip, point] of [["#rail", ".on"], [".tabs", ".on"], [".timeline", "line.now"]]) {
    const box = $(strip), at = box && $(point, box);
    if (at && box.scrollWidth > box.clientWidth) {
      box.scrollLeft += at.getBoundingClientRect().left - box.getBoundingClientRect().left - box.clientWidth / 2;
    }
  }

  localise(document);
  listen();
})();
