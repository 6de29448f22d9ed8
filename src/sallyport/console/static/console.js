// The script of the console. Every page works without it. It acts on attributes of the templates:
//   time[datetime]       shown in the viewer's zone
//   [data-live=URL]      a table body: the stream at URL sends new rows
//   [data-refresh=N]     an element with an id: replaced every N seconds by the same element of the page
//   [data-search]        the field that the key / focuses
//   select[data-submit]  a choice that sends its form at once
//   [data-choose-all]    a checkbox that sets all checkboxes of its table
//   form[data-check=ID]  a form that is sent after a pause in typing; the element ID then gets the content that it has
//                        in the answer
//   [data-busy]          a status that says what runs after a button is pressed

const SHOWN = { year: "numeric", month: "2-digit", day: "2-digit", hour: "2-digit", minute: "2-digit", second: "2-digit", hour12: false };
const MOST_ROWS = 500;

function localTimes(root) {
  for (const each of root.querySelectorAll("time[datetime]")) {
    const at = new Date(each.dateTime);
    if (!Number.isNaN(at.getTime())) {
      each.title = each.dateTime;
      each.textContent = at.toLocaleString("sv-SE", SHOWN);
    }
  }
}

function live(body) {
  const button = document.querySelector("[data-pause]");
  const state = document.querySelector("[data-state]");
  const stream = new EventSource(body.dataset.live);
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
    while (body.rows.length > MOST_ROWS) body.deleteRow(-1);
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
    button.addEventListener("click", () => {
      paused = !paused;
      button.textContent = paused ? "Continue" : "Pause";
      button.setAttribute("aria-pressed", String(paused));
      say(paused ? "paused" : "live");
      if (!paused) {
        waiting.forEach(add);
        waiting = [];
      }
    });
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
    localTimes(next);
    present.replaceWith(next);
  }
}

const TYPED_MS = 400;

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

for (const all of document.querySelectorAll("[data-choose-all]")) {
  all.hidden = false;
  all.addEventListener("change", () => {
    for (const each of all.closest("table").querySelectorAll("td input[type=checkbox]")) each.checked = all.checked;
  });
}
document.addEventListener("submit", busy);
window.addEventListener("pageshow", idle);
for (const each of document.querySelectorAll("a.export")) {
  each.addEventListener("click", () => { say("The file is being made."); setTimeout(idle, BUSY_MOST_MS); });
}

localTimes(document);
document.querySelectorAll("[data-live]").forEach(live);
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
