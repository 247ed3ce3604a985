// A route and a body in; the answer, or why there is none yet, out. Outdated requests are aborted.

import { useEffect, useState } from "preact/hooks";
import { ask, known, nameOf, setKey } from "/explorer/api.js";
import { html } from "/explorer/html-template.js";
import { has, isEnglish, number, t } from "/explorer/i18n.js";
import { linkTo, parse } from "/explorer/routing.js";

// Whose own text says all: the server's sentence would only repeat it in English.
const TOLD = ["network", "busy", "loading", "draining", "timeout", "unauthorized", "memory", "internal"];
const IDLE = { data: null, error: null, busy: false, name: null };

// `path` null asks nothing. While a new answer is on its way, `data` is still the old one and `busy` is true.
export function useAnswer(path, body) {
  const name = path && nameOf(path, body);
  const [state, setState] = useState(IDLE);
  const [tries, setTries] = useState(0);
  const ready = name ? known(name) : undefined;
  useEffect(() => {
    if (!name || ready !== undefined) return setState({ ...IDLE, data: ready ?? null });
    const control = new AbortController();
    let timer = 0;
    // The same request once more keeps its error on show; a new one keeps the old data and starts clean.
    setState((before) =>
      before.name === name ? { ...before, busy: true } : { ...before, error: null, busy: true, name },
    );
    ask(path, body, control.signal).then(
      (data) => setState({ ...IDLE, data, name }),
      (error) => {
        if (control.signal.aborted) return;
        setState({ ...IDLE, error, name });
        if (error.retryAfter) timer = setTimeout(() => setTries(tries + 1), error.retryAfter * 1000);
      },
    );
    return () => {
      control.abort();
      clearTimeout(timer);
    };
  }, [name, tries]);
  const again = () => setTries(tries + 1);
  if (!name) return { ...IDLE, again };
  return ready === undefined ? { ...state, again } : { ...IDLE, data: ready, again };
}

// An answer as it should look now: an error, a place holder, or the children, which are a function of the data.
export function Answer({ of, children }) {
  if (of.error?.code === "word_missing") return html`<${Missing} ...${of.error.values} />`;
  if (of.error) return html`<${Failure} error=${of.error} again=${of.again} busy=${of.busy} />`;
  if (of.data === null) return of.busy && html`<p class="loading" role="status">${t("state.loading")}</p>`;
  return html`<div class="answer" aria-busy=${String(of.busy)}>${children(of.data)}</div>`;
}

// A word that the corpus does not have is no mistake: here are those that it has. number: which of several it is.
function Missing({ near, number: which }) {
  const { view, params } = parse(location.hash);
  const kept = view === "senses" ? { ...params, sense: null, box: null } : {};
  return html`
    <p class="missing" role="status">
      ${t(which ? "refusal.word_missing_of" : "refusal.word_missing", { number: which })}
      ${near.length > 0 && html` ${t("refusal.near")}${" "}`}
      ${near.map((word) => html`<a key=${word} href=${linkTo("senses", { ...kept, word })}>${word}</a> `)}
    </p>
  `;
}

// What the server says, in the language of the page where its code is known.
function said({ code, values, type, message }) {
  if (code && has(`refusal.${code}`)) {
    const text = (value) => (typeof value === "number" ? number(value) : [value].flat().join(", "));
    const shown = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, text(value)]));
    return t(`refusal.${code}`, shown);
  }
  if (!message || (TOLD.includes(type) && !isEnglish())) return "";
  return t("refusal.english", { message });
}

function Failure({ error, again, busy }) {
  if (error.status === 401) return html`<${KeyForm} again=${again} />`;
  // What was refused as wrong would be refused again; what went wrong by chance may go right.
  const worthwhile = error.status < 400 || error.status >= 500;
  return html`
    <div class="failure" role="alert" aria-busy=${String(busy)}>
      <p><strong>${t(`error.${error.type}`)}</strong> ${said(error)}</p>
      ${error.retryAfter && html`<p>${t("state.retry", { seconds: error.retryAfter })}</p>`}
      ${!error.retryAfter && worthwhile && html`<button type="button" onClick=${again}>${t("state.again")}</button>`}
    </div>
  `;
}

function KeyForm({ again }) {
  const use = (event) => {
    event.preventDefault();
    setKey(new FormData(event.target).get("key"));
    again();
  };
  return html`
    <form class="failure" onSubmit=${use}>
      <label>${t("state.key")} <input name="key" type="password" autocomplete="off" required /></label>
      <button type="submit">${t("state.useKey")}</button>
      <p class="hint">${t("error.unauthorized")} ${t("state.keyHint")}</p>
    </form>
  `;
}
