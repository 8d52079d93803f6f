// Local times, regions that refresh themselves, and forms that do not leave the page. Nothing else.
"use strict";

function showLocalTimes(root) {
  for (const time of root.querySelectorAll("time[datetime]")) {
    const at = new Date(time.dateTime);
    if (!Number.isNaN(at.getTime())) {
      time.textContent = at.toLocaleString(undefined, { dateStyle: "medium", timeStyle: "medium" });
    }
  }
}

let hideNotice;
function notify(text, isBad) {
  const notice = document.getElementById("notice");
  notice.textContent = text;
  notice.classList.toggle("bad", isBad);
  notice.hidden = false;
  clearTimeout(hideNotice);
  hideNotice = setTimeout(() => { notice.hidden = true; }, isBad ? 10000 : 4000);
}

// Only the newest answer for the address that is shown counts. Others belong to another page and are dropped.
const newest = new WeakMap();
async function refresh(region) {
  const address = location.href;
  const mine = (newest.get(region) || 0) + 1;
  newest.set(region, mine);
  const answer = await fetch(address, { headers: { Accept: "text/html" } });
  if (!answer.ok) throw new Error(`the page could not be loaded: ${answer.status}`);
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const fresh = page.getElementById(region.id);
  if (fresh && address === location.href && mine === newest.get(region)) {
    if (!region.contains(document.activeElement)) {
      region.replaceChildren(...fresh.childNodes);
      showLocalTimes(region);
    }
  }
}

function refreshAll() {
  for (const region of document.querySelectorAll("[data-refresh]")) {
    refresh(region).catch((error) => notify(String(error.message || error), true));
  }
}

// A form with data-action sends its fields as JSON, or no body at all if it has none. Number fields are sent as numbers.
async function send(form) {
  const fields = Object.fromEntries(new FormData(form));
  for (const input of form.querySelectorAll("input[type=number][name]")) {
    if (fields[input.name] !== "") fields[input.name] = Number(fields[input.name]);
  }
  const options = { method: form.dataset.method || "POST", headers: { Accept: "application/json" } };
  if (Object.keys(fields).length > 0) {
    options.body = JSON.stringify(fields);
    options.headers["Content-Type"] = "application/json";
  }
  const answer = await fetch(form.dataset.action, options);
  if (!answer.ok) {
    const problem = await answer.json().catch(() => ({}));
    throw new Error(problem.detail || `the server answered ${answer.status}`);
  }
}

document.addEventListener("submit", (event) => {
  const form = event.target;
  if (!form.dataset.action) return;
  event.preventDefault();
  const button = form.querySelector("button");
  button.disabled = true;
  send(form)
    .then(() => {
      if (form.dataset.next) { location.assign(form.dataset.next); return; } // this page is gone, or not needed any more
      notify(form.dataset.done || "Done", false);
      button.blur();
      refreshAll();
    })
    .catch((error) => notify(String(error.message || error), true))
    .finally(() => { button.disabled = false; });
});

document.addEventListener("DOMContentLoaded", () => {
  showLocalTimes(document);
  for (const region of document.querySelectorAll("[data-refresh]")) {
    setInterval(() => {
      if (!document.hidden) refresh(region).catch((error) => notify(String(error.message || error), true));
    }, Number(region.dataset.refresh) * 1000);
  }
});
