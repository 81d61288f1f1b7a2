// Keeps a list of slots up to date. Without it the page works by links and forms alone.
"use strict";

const list = document.querySelector("ol[data-now]");
const news = document.getElementById("news");
const calm = matchMedia("(prefers-reduced-motion: reduce)");
const hour = 3_600_000;
let ahead, alarm;

if (list) {
  // The page was written when its first bytes came.
  const [page] = performance.getEntriesByType("navigation");
  setClock(list.dataset.now, page ? page.responseStart : performance.now());
  beginSlots();
  document.addEventListener("visibilitychange", beginSlots);
  if (list.dataset.events) keepUpToDate();
}

// The time is the service's: a browser's own clock may be wrong.
function setClock(time, heard = performance.now()) {
  ahead = Number(time) - heard;
}

// Slots begin at their time, though the service may be silent by then.
function beginSlots() {
  clearTimeout(alarm);
  const changes = [];
  let next = Infinity;
  for (const item of [...list.children]) {
    if (item.classList.contains("begun")) continue;
    const wait = item.dataset.starts - ahead - performance.now();
    if (wait <= 0) changes.push(begin(item));
    else next = Math.min(next, wait);
  }
  announce(changes);
  if (next < Infinity) alarm = setTimeout(beginSlots, Math.min(next + 1, hour));
}

// As the service writes it, so that its next list finds nothing to change.
function begin(item) {
  const begun = item.cloneNode(true);
  begun.className = "slot begun";
  begun.dataset.state = begun.dataset.begun;
  const state = begun.querySelector(".state");
  state.textContent = begun.dataset.begun;
  state.hidden = false;
  begun.querySelector("button")?.remove();
  replace(item, begun);
  return begun;
}

function keepUpToDate() {
  const live = document.getElementById("live");
  const none = document.getElementById("none");
  const longest = 30_000;
  const silence = 3 * list.dataset.beat;
  let source, timer, patience, wait, ended, stale;

  // A browser has few connections to one host, so a page that nobody sees keeps none.
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pageshow", (event) => event.persisted && open());
  addEventListener("pagehide", close);
  if (!document.hidden) open();

  function open() {
    close();
    if (ended) return;
    // After a time in the background nothing is known yet.
    if (!live.hidden && !stale) say("Looking for changes …");
    source = new EventSource(list.dataset.events);
    expect();
    source.addEventListener("slots", (event) => show(event.data));
    source.addEventListener("beat", (event) => heard(event.data));
    source.addEventListener("viewer", () => {
      close();
      ended = true;
      const again = document.createElement("a");
      again.href = "";
      again.textContent = "Reload the page";
      live.replaceChildren("Your login has changed or ended. ", again, ".");
      live.hidden = false;
      news.textContent = "Your login has changed or ended. Reload the page.";
    });
    source.addEventListener("error", () => {
      lost("The connection is lost; trying again …");
      if (source?.readyState !== EventSource.CLOSED) return expect();
      // After a refusal the browser itself does not try again.
      clearTimeout(patience);
      wait = Math.min(longest, (wait || 1000) * 2);
      timer = setTimeout(open, wait * (0.5 + Math.random() / 2));
    });
  }

  function close() {
    clearTimeout(timer);
    clearTimeout(patience);
    source?.close();
    source = undefined;
  }

  // A service that stands still, or a network that has gone, ends no connection.
  function expect() {
    clearTimeout(patience);
    patience = setTimeout(() => {
      lost("The service is silent: this list may be out of date. Trying again …");
      open();
    }, silence * (1 + Math.random() / 5));
  }

  function heard(time) {
    expect();
    wait = 0;
    setClock(time);
    if (stale) news.textContent = "Changes show again.";
    stale = false;
    say("Changes show by themselves.");
    beginSlots();
  }

  function lost(text) {
    if (!stale) news.textContent = text;
    stale = true;
    say(text);
  }

  function say(text) {
    live.hidden = false;
    if (live.textContent !== text) live.textContent = text;
  }

  // Changes only what has changed: the rest keeps its focus, and is not read out again.
  function show(html) {
    const fresh = document.createElement("template");
    fresh.innerHTML = html; // The server has escaped it.
    const written = fresh.content.querySelector("ol");
    const items = [...written.children];
    const ids = new Set(items.map((item) => item.id));
    for (const item of [...list.children]) if (!ids.has(item.id)) item.remove();
    const changes = [];
    let place = list.firstElementChild;
    for (const item of items) {
      const before = document.getElementById(item.id);
      if (!before) {
        list.insertBefore(item, place);
        changes.push(item);
        continue;
      }
      if (before === place) place = place.nextElementSibling;
      else list.insertBefore(before, place);
      if (!before.isEqualNode(item)) {
        replace(before, item);
        changes.push(item);
      }
    }
    none.hidden = list.children.length > 0;
    showPages([...fresh.content.querySelectorAll("nav")]);
    heard(written.dataset.now);
    announce(changes);
  }

  function showPages(fresh) {
    for (const nav of document.querySelectorAll("nav.pages")) {
      const next = fresh.shift();
      if (nav.isEqualNode(next)) continue;
      const focused = nav.contains(document.activeElement) && document.activeElement.href;
      nav.replaceWith(next);
      if (!focused) continue;
      const same = [...next.querySelectorAll("a")].find((link) => link.href === focused);
      (same ?? document.getElementById("main")).focus({ preventScroll: true });
    }
  }
}

function replace(before, item) {
  const focused = before.contains(document.activeElement);
  before.replaceWith(item);
  if (focused) {
    // Never on to a button that does something else.
    const same = before.dataset.state === item.dataset.state;
    ((same && item.querySelector("button")) || item.querySelector("h2")).focus({
      preventScroll: true,
    });
  }
}

function announce(changes) {
  if (changes.length === 0) return;
  news.textContent =
    changes.length > 3
      ? `${changes.length} slots have changed.`
      : changes.map((item) => `${item.dataset.label}: ${item.dataset.state}.`).join(" ");
  if (calm.matches) return;
  const colours = { backgroundColor: ["var(--note-back)", "var(--card)"] };
  for (const item of changes) item.animate(colours, 2000);
}
