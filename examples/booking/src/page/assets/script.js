// Keeps the list of slots up to date. Without it the page works by links and forms alone.
"use strict";

const list = document.getElementById("slots");
if (list) keepUpToDate();

function keepUpToDate() {
  const live = document.getElementById("live");
  const news = document.getElementById("news");
  const none = document.getElementById("none");
  const calm = matchMedia("(prefers-reduced-motion: reduce)");
  const longest = 30_000;
  let source, timer, wait, ended;

  // A browser has few connections to one host, so a page that nobody sees keeps none.
  document.addEventListener("visibilitychange", () => (document.hidden ? close() : open()));
  addEventListener("pageshow", (event) => event.persisted && open());
  addEventListener("pagehide", close);
  if (!document.hidden) open();

  function open() {
    close();
    if (ended) return;
    source = new EventSource(list.dataset.events);
    source.addEventListener("slots", (event) => {
      wait = 0;
      say("Changes show by themselves.");
      show(event.data);
    });
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
      say("The connection is lost; trying again …");
      // After a refusal the browser itself does not try again.
      if (source && source.readyState === EventSource.CLOSED) {
        wait = Math.min(longest, (wait || 1000) * 2);
        timer = setTimeout(open, wait * (0.5 + Math.random() / 2));
      }
    });
  }

  function close() {
    clearTimeout(timer);
    source?.close();
    source = undefined;
  }

  function say(text) {
    live.hidden = false;
    if (live.textContent !== text) live.textContent = text;
  }

  // Changes only what has changed: the rest keeps its focus, and is not read out again.
  function show(html) {
    const fresh = document.createElement("template");
    fresh.innerHTML = html; // The server has escaped it.
    const items = [...fresh.content.children];
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
    announce(changes);
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
}
