// The script of the console. Every page works without it. It acts on attributes of the templates:
//   time[datetime]       shown in the viewer's zone; [data-ago] relative to now; [data-clock] as a running clock
//   [data-group]         a group of the menu: it stays open or closed as the person has left it
//   [data-live=URL]      a table body: the stream at URL sends new rows
//   [data-refresh=N]     an element with an id: replaced every N seconds by the same element of the page
//   form[data-filters]   the filters of a list: they replace each [data-part] of the page while a person types
//   [data-search]        the field that the key / focuses
//   select[data-submit]  a choice that sends its form at once
//   [data-choose-all]    a checkbox that sets all checkboxes of its table
//   [data-needs-choice]  a button that is disabled while no checkbox of its form is set
//   form[data-check=ID]  a form that is sent after a pause in typing; the element ID then gets the content that it has
//                        in the answer
//   [data-busy]          a status that says what runs after a button is pressed

const SHOWN = { year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false };
const MAX_ROWS = 500;
const AGES = [["day", 86400], ["hour", 3600], ["minute", 60], ["second", 1]];
const OLDEST_S = 30 * 86400;
const ago = new Intl.RelativeTimeFormat("en", { numeric: "always", style: "long" });

const inZone = (at) => at.toLocaleString("sv-SE", SHOWN);

function zone(at) {
  const parts = new Intl.DateTimeFormat("en-GB", { timeZoneName: "short" }).formatToParts(at);
  return parts.find((each) => each.type === "timeZoneName").value;
}

function age(at) {
  const seconds = Math.round((at.getTime() - Date.now()) / 1000);
  const [unit, length] = AGES.find((each) => Math.abs(seconds) >= each[1]) || AGES[3];
  return ago.format(Math.trunc(seconds / length), unit);
}

// The column of a time names the zone once. Elsewhere, each time has its zone.
function localTimes(root) {
  for (const each of root.querySelectorAll("time[datetime]:not([data-clock])")) {
    const at = new Date(each.dateTime);
    if (Number.isNaN(at.getTime())) continue;
    const whole = `${inZone(at)} ${zone(at)}`;
    const isRelative = "ago" in each.dataset && Math.abs(Date.now() - at.getTime()) < OLDEST_S * 1000;
    each.title = isRelative ? whole : `${each.dateTime}, ${age(at)}`;
    each.textContent = isRelative ? age(at) : each.closest("td.time") ? inZone(at) : whole;
  }
  for (const each of root.querySelectorAll("th.time:not(:has(.zone))")) {
    const name = document.createElement("span");
    name.className = "zone";
    name.textContent = ` (${zone(new Date())})`;
    each.append(name);
  }
}

function clock(element) {
  const ahead = new Date(element.dateTime).getTime() - Date.now();
  const tick = () => {
    const at = new Date(Date.now() + ahead);
    element.textContent = `${inZone(at)} ${zone(at)}`;
  };
  tick();
  setInterval(tick, 1000);
}

function keepGroup(group) {
  const name = `menu ${group.dataset.group}`;
  const kept = localStorage.getItem(name);
  if (kept && !group.querySelector("[aria-current]")) group.open = kept === "open";
  const heading = group.querySelector("summary");
  heading.addEventListener("click", () => localStorage.setItem(name, group.open ? "closed" : "open"));
}

const streams = new Set();

function live(body) {
  const button = document.querySelector("[data-pause]");
  const state = document.querySelector("[data-state]");
  const stream = new EventSource(body.dataset.live);
  streams.add(stream);
  let waiting = [];
  let paused = false;
  const say = (text) => { if (state) state.textContent = text; };
  const add = (html) => {
    const holder = document.createElement("template");
    holder.innerHTML = html;
    for (const row of [...holder.content.querySelectorAll("tr")]) {
      if (document.getElementById(row.id)) continue;
      localTimes(row);
      row.classList.add("new");
      body.prepend(row);
      setTimeout(() => row.classList.remove("new"), 3000);
    }
    document.querySelectorAll("[data-until-live]").forEach((each) => each.remove());
    while (body.rows.length > MAX_ROWS) body.deleteRow(-1);
  };
  stream.addEventListener("open", () => say(paused ? "paused" : "live"));
  stream.addEventListener("row", (event) => {
    if (paused) {
      waiting.push(event.data);
      say("paused, there are new ones");
    } else {
      add(event.data);
    }
  });
  stream.addEventListener("end", () => { stream.close(); say("ended: reload the page"); });
  stream.addEventListener("error", () => say("reconnecting"));
  if (button) {
    button.hidden = false;
    button.textContent = "Pause";
    button.setAttribute("aria-pressed", "false");
    button.onclick = () => {
      paused = !paused;
      button.textContent = paused ? "Continue" : "Pause";
      button.setAttribute("aria-pressed", String(paused));
      say(paused ? "paused" : "live");
      if (!paused) {
        waiting.forEach(add);
        waiting = [];
      }
    };
  }
}

async function refresh(id) {
  const present = document.getElementById(id);
  if (!present || document.hidden || present.contains(document.activeElement)) return;
  const answer = await fetch(location.href, { headers: { "X-Refresh": "1" }, redirect: "manual" });
  if (!answer.ok) return;
  const page = new DOMParser().parseFromString(await answer.text(), "text/html");
  const next = page.getElementById(id);
  if (next) {
    present.replaceWith(next);
    start(next);
  }
}

const TYPED_MS = 400;

// Starts the parts of a page, or of an element that has come later.
function start(root) {
  localTimes(root);
  root.querySelectorAll("[data-live]").forEach(live);
  root.querySelectorAll("form[data-filters]").forEach(filterWhileTyping);
  root.querySelectorAll("[data-choose-all]").forEach(chooseAll);
  root.querySelectorAll("[data-needs-choice]").forEach(needsChoice);
  for (const each of root.querySelectorAll("a.export")) {
    each.addEventListener("click", () => { say("The file is being made."); setTimeout(idle, BUSY_MOST_MS); });
  }
}

function chooseAll(all) {
  all.hidden = false;
  all.addEventListener("change", () => {
    for (const each of all.closest("table").querySelectorAll("td input[type=checkbox]")) each.checked = all.checked;
  });
}

function needsChoice(button) {
  const update = () => {
    button.disabled = ![...button.form.elements].some((each) => each.type === "checkbox" && each.checked);
  };
  update();
  button.closest("[data-part]").addEventListener("change", update);
}

function filterWhileTyping(form) {
  let timer = 0;
  let latest = 0;
  let hasColumns = new URLSearchParams(location.search).has("column");
  const apply = async () => {
    const number = ++latest;
    const filled = [...new FormData(form)].filter(([name, value]) => value !== "" && (name !== "column" || hasColumns));
    const url = `${location.pathname}?${new URLSearchParams(filled)}`;
    const answer = await fetch(url, { redirect: "manual" });
    if (number !== latest) return;
    if (!answer.ok) {  // a page that takes longer, or an error: the browser opens it
      location.assign(url);
      return;
    }
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const [present, next] = [document, page].map((each) => [...each.querySelectorAll("[data-part]")]);
    if (number !== latest) return;
    if (present.length !== next.length) {
      location.assign(url);
      return;
    }
    streams.forEach((each) => each.close());
    streams.clear();
    history.replaceState(null, "", url);
    present.forEach((each, place) => {
      each.replaceWith(next[place]);
      start(next[place]);
    });
  };
  const soon = (delay) => {
    clearTimeout(timer);
    timer = setTimeout(() => apply().catch(() => {}), delay);
  };
  form.addEventListener("input", (event) => {
    hasColumns ||= event.target.name === "column";
    soon(event.target.type === "search" ? TYPED_MS : 0);
  });
  form.addEventListener("submit", (event) => {
    event.preventDefault();
    soon(0);
  });
}

function checkWhileTyping(form) {
  let timer = 0;
  let latest = 0;
  const check = async () => {
    const number = ++latest;
    const body = new URLSearchParams(new FormData(form));
    const answer = await fetch(location.href, { method: "POST", body, headers: { "X-Refresh": "1" }, redirect: "manual" });
    const page = new DOMParser().parseFromString(await answer.text(), "text/html");
    const [present, next] = [document, page].map((each) => each.getElementById(form.dataset.check));
    if (number === latest && present && next) present.replaceChildren(...next.childNodes);
  };
  form.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(() => check().catch(() => {}), TYPED_MS);
  });
}

// A pressed button is busy until the next page is there. A second press of the same form sends nothing.
const BUSY_AFTER_MS = 300;
const BUSY_MOST_MS = 10000;

function say(text) {
  for (const each of document.querySelectorAll("[data-busy]")) each.textContent = text;
}

function idle() {
  say("");
  document.querySelectorAll("[aria-busy]").forEach((each) => each.removeAttribute("aria-busy"));
  document.querySelectorAll("form[data-sent]").forEach((each) => each.removeAttribute("data-sent"));
}

function busy(event) {
  const form = event.target;
  if (form.dataset.sent) {
    event.preventDefault();
    return;
  }
  form.dataset.sent = "yes";
  const button = event.submitter || form.querySelector("button");
  if (button) button.setAttribute("aria-busy", "true");
  const text = button ? button.textContent.trim() : "";
  const timer = setTimeout(() => say(`Please wait: ${text}`), BUSY_AFTER_MS);
  setTimeout(() => { clearTimeout(timer); idle(); }, BUSY_MOST_MS);  // the person may have stopped the request
}

document.addEventListener("submit", (event) => { if (!event.defaultPrevented) busy(event); });
window.addEventListener("pageshow", idle);
start(document);
document.querySelectorAll("time[data-clock]").forEach(clock);
document.querySelectorAll("[data-group]").forEach(keepGroup);
setInterval(() => localTimes(document), 30000);
for (const each of document.querySelectorAll("[data-refresh][id]")) {
  setInterval(() => refresh(each.id).catch(() => {}), 1000 * Number(each.dataset.refresh));
}
document.querySelectorAll("form[data-check]").forEach(checkWhileTyping);
for (const each of document.querySelectorAll("select[data-submit]")) {
  each.addEventListener("change", () => each.form.requestSubmit());
}
document.addEventListener("keydown", (event) => {
  const typing = event.target.closest("input, textarea, select, [contenteditable]");
  const field = document.querySelector("[data-search]");
  if (event.key === "/" && !typing && !event.ctrlKey && !event.metaKey && !event.altKey && field) {
    event.preventDefault();
    field.focus();
    field.select();
  }
});
