/* The desk's own script. Pages work without it: it brings local times, keys, dialogs, copying and live updates.
   It writes no HTML itself: it morphs the server's HTML into the page, and inserts other text as plain text. */
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

  /* htmx does the morphing, which it offers to extensions only. */
  let morph = (target, fragment) => target.replaceChildren(fragment);
  if (window.htmx) htmx.registerExtension("desk", { init: (api) => { morph = (to, from) => api.morph(to, from, true); } });

  /* While the pointer or the focus is in a table, added and removed rows wait until the user asks for them. */
  const listOf = (rows) => rows.closest("table") || rows;
  const isBusy = (list) => list.matches(":hover") || list.contains(document.activeElement) || list.previousElementSibling?.matches(".waiting-rows:hover");
  function hold(shown, fresh) {
    const list = listOf(shown);
    if (!isBusy(list)) return dropNotice(list);
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
    if (news.size || kept.some((row) => row.matches(".gone"))) list.onpointerleave = () => { list.onpointerleave = null; plan(500); };
    if (!news.size) return dropNotice(list);
    const notice = list.previousElementSibling?.matches(".waiting-rows") ? list.previousElementSibling : newNotice(list);
    notice.textContent = `${news.size} new`;
  }
  function newNotice(list) {
    const notice = document.createElement("button");
    notice.type = "button";
    notice.className = "waiting-rows";
    notice.addEventListener("click", () => { document.activeElement?.blur(); dropNotice(list); refresh({ asked: true }); });
    notice.addEventListener("pointerleave", () => plan(500));
    list.before(notice);
    return notice;
  }
  const dropNotice = (list) => { if (list.previousElementSibling?.matches(".waiting-rows")) list.previousElementSibling.remove(); };

  /* Keep the element under the pointer in place when content above it changes; without a pointer, the one being read. */
  let pointer = null;
  addEventListener("pointermove", (event) => { pointer = event.pointerType === "mouse" ? [event.clientX, event.clientY] : null; }, { passive: true });
  function inPlace(change) {
    const place = pointer || (scrollY ? [innerWidth / 2, innerHeight / 3] : null);
    const held = place && document.elementFromPoint(...place)?.closest("#content [id]"), before = held?.getBoundingClientRect().top;
    change();
    if (held?.isConnected) scrollBy({ top: held.getBoundingClientRect().top - before, behavior: "instant" });
  }

  /* Refreshing: fetch this page's own URL, only its rail and content, and morph them in. A page with a form is refreshed
     only on request, the response to a form never. While a dialog is open, no page refreshes by itself. */
  /* A page that takes 0.1 s is refreshed after 8 s: an open tab uses at most 1/80 of the server's time. */
  const SHARE = 80, LONGEST = 15;
  const content = $("#content"), isStill = () => !Number(content.dataset.every);
  let busy = false, refreshed = Date.now(), planned = 0, since = null;
  async function refresh({ asked = false } = {}) {
    const stays = isStill() && (!asked || "posted" in content.dataset);
    if (stays && !since) return;
    if (busy || (!asked && $("dialog[open]"))) return plan(1000);
    busy = true;
    try {
      const answer = await fetch(stays ? `${root}/` : location.href, { headers: { "Perdure-Part": "page" }, credentials: "same-origin", signal: AbortSignal.timeout(15000) });
      if (answer.redirected || answer.status === 401) return stays ? back() : location.reload();
      if (answer.status >= 500) return away(answer.headers.get("Perdure-Away") || "server");
      const html = await answer.text();
      if (!asked && $("dialog[open]")) return plan(1000);
      if (!stays) show(html, !asked);
      refreshed = Date.now();
      back();
    } catch { away("server"); } finally { busy = false; }
  }
  function show(html, holds) {
    const fresh = new DOMParser().parseFromString(html, "text/html");
    if ($("#content", fresh)?.dataset.title !== content.dataset.title) return location.reload();
    localise(fresh);
    inPlace(() => [...fresh.body.children].forEach((part) => put(part, holds)));
    document.dispatchEvent(new CustomEvent("desk:shown"));
  }
  function put(part, holds) {
    const shown = part.id && document.getElementById(part.id);
    if (!shown) return;
    if (holds) for (const rows of $$("[data-rows]", part)) {
      const before = document.getElementById(rows.id);
      if (before) hold(before, rows);
    }
    for (const at of $$(".at[id]", shown)) part.querySelector(`#${CSS.escape(at.id)}`)?.classList.add("at");
    for (const notice of $$(".waiting-rows", shown)) keepNotice(notice, part);
    const fragment = document.createDocumentFragment();
    fragment.append(...[...part.childNodes].map((node) => document.adoptNode(node)));
    morph(shown, fragment);
    if (part.dataset.took) shown.dataset.took = part.dataset.took;
    window.htmx?.process(shown);
  }
  function keepNotice(notice, part) {
    const list = notice.nextElementSibling, rows = list?.matches("[data-rows]") ? list : list && $("[data-rows]", list);
    const fresh = rows && part.querySelector(`#${CSS.escape(rows.id)}`);
    if (fresh) { notice.id ||= `waiting-${rows.id}`; listOf(fresh).before(notice.cloneNode(true)); }
  }
  function plan(wait) { clearTimeout(planned); planned = setTimeout(() => { if (!document.hidden) refresh(); }, wait); }
  function news() {
    const { every, took } = content.dataset;
    const wait = Math.min(Math.max(Number(every), SHARE * Number(took)), LONGEST) * 1000;
    if (!isStill()) plan(Math.max(0, refreshed + wait - Date.now()));
  }

  /* The only stream of this tab: open while the tab is visible, reconnected with growing delays. */
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
  addEventListener("pageshow", (event) => { leaving = false; if (event.persisted) { sent = 0; listen(); refresh(); } });
  document.addEventListener("visibilitychange", () => { if (document.hidden) hush(); else { listen(); refresh(); } });

  /* Dialogs: a command asks before it acts. A form is sent once, however often its button is pressed. */
  const confirmation = $("#confirm");
  let sent = 0;
  document.addEventListener("submit", (event) => {
    const form = event.target, button = event.submitter, asks = button?.dataset.ask ? button.dataset : form.dataset;
    if (asks.ask && !form.elements.confirmed) {
      event.preventDefault();
      return ask(form, button || $("button", form), asks);
    }
    if (form.method !== "post" || button?.formMethod === "dialog") return;
    if (Date.now() - sent < 10000) return event.preventDefault();
    sent = Date.now();
    button?.classList.add("sent");
  });
  function ask(form, button, { ask, detail = "", cli = "" }) {
    $("h2", confirmation).textContent = ask.replace("{chosen}", chosenRows());
    $(".detail", confirmation).textContent = detail;
    $(".cli", confirmation).hidden = !cli;
    $(".cli code", confirmation).textContent = cli.replace("{ids}", chosenBoxes().map((box) => box.value).join(" "));
    const yes = $("[value=yes]", confirmation);
    yes.textContent = button.textContent.replace("…", "");
    yes.className = button.matches(".bad") ? "btn bad" : "btn main";
    confirmation.returnValue = "";
    $("[name=why]", confirmation).value = "";
    confirmation.showModal();
    confirmation.onclose = () => {
      if (confirmation.returnValue !== "yes") return;
      const given = { confirmed: "yes", why: $("[name=why]", confirmation).value };
      const added = Object.entries(given).map(([name, value]) => Object.assign(document.createElement("input"), { type: "hidden", name, value }));
      form.append(...added);
      form.requestSubmit(button);
      added.forEach((input) => input.remove()); // the question comes again after a return to this page
    };
  }
  document.addEventListener("click", (event) => { for (const menu of $$("details.menu[open]")) if (!menu.contains(event.target)) menu.open = false; });
  document.addEventListener("click", async (event) => {
    const opener = event.target.closest("[data-opens]");
    if (opener) return document.getElementById(opener.dataset.opens).showModal();
    if (event.target.closest("[data-theme-switch]")) return switchTheme();
    const copier = event.target.closest("[data-copies]");
    if (!copier) return;
    const source = copier.dataset.copies === "previous" ? copier.previousElementSibling : document.getElementById(copier.dataset.copies);
    copier.textContent = (await copyText(source.textContent, copier)) ? "Copied" : "Not copied";
    setTimeout(() => { copier.textContent = "Copy"; }, 1500);
  });
  async function copyText(text, beside) {
    try {
      if (navigator.clipboard) return await navigator.clipboard.writeText(text), true;
    } catch { /* not allowed: try the old way */ }
    const box = Object.assign(document.createElement("textarea"), { value: text });
    beside.after(box); // inside an open dialog: the rest of the page cannot be selected then
    box.select();
    const done = document.execCommand("copy");
    box.remove();
    beside.focus({ preventScroll: true });
    return done;
  }
  function switchTheme() {
    const dark = matchMedia("(prefers-color-scheme: dark)").matches;
    const now = document.documentElement.dataset.theme || (dark ? "dark" : "light");
    const next = now === "dark" ? "light" : "dark";
    document.documentElement.dataset.theme = next;
    document.cookie = `perdure_theme=${next}; path=${root || "/"}; max-age=31536000; samesite=strict`;
  }

  /* Show the values under the pointer in the head of their chart. */
  document.addEventListener("pointerover", (event) => {
    const hit = event.target.closest?.(".hit");
    const head = event.target.closest?.(".chart")?.querySelector(".readout");
    if (head) head.textContent = hit ? `${minute(new Date(hit.dataset.time))}  ${hit.dataset.said || "nothing"}` : "";
  });

  /* Chosen rows: show the buttons for them, and their number. */
  const chosenBoxes = () => $$("[data-rows] input[type=checkbox]:checked");
  const chosenRows = () => (chosenBoxes().length === 1 ? "1 job" : `${chosenBoxes().length} jobs`);
  function countChosen() {
    const number = chosenBoxes().length;
    for (const part of $$(".when-chosen")) part.hidden = !number;
    for (const part of $$("[data-chosen]")) part.textContent = number ? `${number} chosen` : part.dataset.chosen;
  }
  document.addEventListener("change", countChosen);
  document.addEventListener("desk:shown", countChosen);

  /* Suggestions below the search box: arrows choose, Tab or Enter takes, Escape closes. */
  const box = $("#search"), offers = $("#suggestions");
  let asked = 0, chosen = -1;
  const begun = () => box.value.slice(0, box.selectionStart).match(/\S*$/)[0];
  function closeOffers() { offers.hidden = true; chosen = -1; box.setAttribute("aria-expanded", "false"); box.removeAttribute("aria-activedescendant"); }
  function choose(place) {
    const every = [...offers.children];
    chosen = (place + every.length) % every.length;
    every.forEach((offer, at) => offer.setAttribute("aria-selected", String(at === chosen)));
    every[chosen].scrollIntoView({ block: "nearest" });
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
    closeOffers();
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
  const rows = () => $$("[data-rows] > [id]");
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
    const menu = event.key === "Escape" && $("details.menu[open]");
    if (menu) { menu.open = false; return $("summary", menu).focus(); }
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
      j: () => step(1), k: () => step(-1), r: () => refresh({ asked: true }),
      x: () => $(".at input[type=checkbox]")?.click(),
      "?": () => $("#keys").showModal(),
    };
    if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
  });

  /* Scroll horizontal strips to what matters: the current page, the chosen tab, the present. */
  for (const [strip, point] of [["#rail", ".on"], [".tabs", ".on"], [".timeline", "line.now"]]) {
    const box = $(strip), at = box && $(point, box);
    if (at && box.scrollWidth > box.clientWidth) {
      box.scrollLeft += at.getBoundingClientRect().left - box.getBoundingClientRect().left - box.clientWidth / 2;
    }
  }

  localise(document);
  listen();
})();
