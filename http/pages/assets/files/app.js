// The only script of the pages. Every page works without it; what it adds is bound to attributes of the elements:
//   data-copy=ID        a button that copies the text of an element
//   data-live=URL       an element whose parts a stream of events replaces while the page is visible
//   data-live-state     an element that tells whether that stream is up to date: its children have data-when="fresh|stale|ended"
//   data-check=URL      a field whose text is judged by the server while it is typed; the answer replaces the element data-into=ID
//   data-focus          takes the focus when the page opens: the summary of a form that was refused
//   data-print          a button that prints the page
//   data-busy           is shown while the form that it is in is being sent
//   data-typed=TEXT     a form whose button waits until its field data-typed-in holds TEXT
// Answers of the server are markup that it escaped. One policy for Trusted Types lets them in, and nothing else.

const policy = window.trustedTypes ? trustedTypes.createPolicy("lieudit", { createHTML: text => text }) : { createHTML: text => text };

const replace = (id, html) => {
  const element = document.getElementById(id);
  if (!element) return;
  const focused = element.contains(document.activeElement) && document.activeElement.id;
  element.innerHTML = policy.createHTML(html);
  bind(element);
  if (focused) document.getElementById(focused)?.focus();
};

const copyText = async button => {
  const text = document.getElementById(button.dataset.copy).textContent;
  try {
    await navigator.clipboard.writeText(text);
  } catch { // without permission, or over plain http: the old way
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  const [label, done] = button.querySelectorAll("span");
  label.hidden = true;
  done.hidden = false;
  setTimeout(() => { label.hidden = false; done.hidden = true; }, 2000);
};

// live keeps one stream open for an element while the page is visible: a browser allows six connections to a host.
const live = element => {
  let source;
  const show = state => document.querySelectorAll("[data-live-state] [data-when]").forEach(e => { e.hidden = e.dataset.when !== state; });
  const open = () => {
    if (source || document.hidden) return;
    source = new EventSource(element.dataset.live);
    source.addEventListener("fragment", e => { const { id, html } = JSON.parse(e.data); replace(id, html); });
    source.addEventListener("fresh", () => show("fresh"));
    source.addEventListener("stale", () => show("stale"));
    source.addEventListener("end", () => { close(); show("ended"); });
    source.onopen = () => show("fresh");
    source.onerror = () => show("stale"); // the browser tries again by itself
  };
  const close = () => { source?.close(); source = null; };
  document.addEventListener("visibilitychange", () => document.hidden ? close() : open());
  addEventListener("pagehide", close);
  addEventListener("pageshow", open);
  open();
};

// judge asks the server about the text of a field, 200 ms after the last key. An answer to an older text is dropped.
const judge = field => {
  let timer, latest = 0;
  if (field.form.method === "get") field.form.addEventListener("submit", e => { // what is typed in another form of the page stays
    e.preventDefault();
    field.dispatchEvent(new Event("input"));
  });
  field.addEventListener("input", () => {
    clearTimeout(timer);
    timer = setTimeout(async () => {
      const turn = ++latest;
      const query = new URLSearchParams([[field.name, field.value]]); // other fields may hold what belongs in no log of addresses
      try {
        const answer = await fetch(`${field.dataset.check}?${query}`, { headers: { Accept: "text/html" } });
        const text = await answer.text();
        if (answer.ok && turn === latest) replace(field.dataset.into, text);
      } catch { /* the form itself is judged when it is sent */ }
    }, 200);
  });
};

// guardTwice lets a form be sent once: a second click would do the same again.
const guardTwice = form => {
  form.addEventListener("submit", e => {
    if (form.dataset.sent) { e.preventDefault(); return; }
    form.dataset.sent = "1";
    form.querySelectorAll("button:not([name], [type=button])").forEach(b => b.setAttribute("aria-disabled", "true"));
    form.querySelectorAll("[data-busy]").forEach(e => { e.hidden = false; });
  });
};

const awaitTyped = form => {
  const field = form.querySelector("[data-typed-in]"), button = form.querySelector("button:not([name], [type=button])");
  const check = () => button.toggleAttribute("disabled", field.value.trim() !== form.dataset.typed);
  field.addEventListener("input", check);
  check();
};

const bind = root => {
  root.querySelectorAll("[data-copy]").forEach(b => { b.hidden = false; b.addEventListener("click", () => copyText(b)); });
  root.querySelectorAll("[data-live]").forEach(live);
  root.querySelectorAll("[data-check]").forEach(judge);
  root.querySelectorAll("form[method=post]").forEach(guardTwice);
  root.querySelectorAll("form[data-typed]").forEach(awaitTyped);
  root.querySelectorAll("[data-print]").forEach(b => { b.hidden = false; b.addEventListener("click", () => print()); });
  root.querySelector("[data-focus]")?.focus();
};

bind(document);

// A page that the browser kept (the back button) may be sent again. A menu closes by Escape and by a click elsewhere.
addEventListener("pageshow", () => document.querySelectorAll("form[data-sent]").forEach(f => {
  delete f.dataset.sent;
  f.querySelectorAll("[aria-disabled]").forEach(b => b.removeAttribute("aria-disabled"));
  f.querySelectorAll("[data-busy]").forEach(e => { e.hidden = true; });
}));
const closeMenus = except => document.querySelectorAll("details.menu[open]").forEach(d => { if (!d.contains(except)) d.open = false; });
document.addEventListener("click", e => closeMenus(e.target));
document.addEventListener("keydown", e => {
  const menu = document.querySelector("details.menu[open]");
  if (e.key === "Escape" && menu) { menu.open = false; menu.querySelector("summary").focus(); }
});
