// useRequest: a route and a body -> data, error and progress. <Await>: shows them. Outdated requests are aborted.

import { useEffect, useState } from "preact/hooks";
import { cachedResponse, fetchJson, requestKey, setKey } from "/explorer/api.js";
import { html } from "/explorer/html-template.js";
import { hasText, isEnglish, number, t } from "/explorer/i18n.js";
import { useInfo } from "/explorer/components/server-info.js";
import { linkTo, parseHash } from "/explorer/routing.js";

// Error types whose translated text is complete: the English message of the server would add nothing.
const SELF_EXPLANATORY = ["network", "busy", "loading", "draining", "timeout", "unauthorized", "memory", "internal"];
const IDLE = { data: null, error: null, busy: false, key: null };

// `path` null sends nothing. While a new response is loading, `data` keeps the old one and `busy` is true.
export function useRequest(path, body) {
  const key = path && requestKey(path, body);
  const [state, setState] = useState(IDLE);
  const [attempts, setAttempts] = useState(0);
  const cached = key ? cachedResponse(key) : undefined;
  useEffect(() => {
    if (!key || cached !== undefined) return setState({ ...IDLE, data: cached ?? null });
    const control = new AbortController();
    let timer = 0;
    // A retry keeps the error on screen. A new request keeps the old data and clears the error.
    setState((before) =>
      before.key === key ? { ...before, busy: true } : { ...before, error: null, busy: true, key },
    );
    fetchJson(path, body, control.signal).then(
      (data) => setState({ ...IDLE, data, key }),
      (error) => {
        if (control.signal.aborted) return;
        setState({ ...IDLE, error, key });
        if (error.retryAfter) timer = setTimeout(() => setAttempts(attempts + 1), error.retryAfter * 1000);
      },
    );
    return () => {
      control.abort();
      clearTimeout(timer);
    };
  }, [key, attempts]);
  const retry = () => setAttempts(attempts + 1);
  if (!key) return { ...IDLE, retry };
  return cached === undefined ? { ...state, retry } : { ...IDLE, data: cached, retry };
}

// An error, a loading message, or the children: a function of the data. `loading` is the message for work that takes long.
export function Await({ request, children, loading }) {
  if (request.error?.code === "word_missing") return html`<${MissingWord} ...${request.error.values} />`;
  // The server goes on with it, and the request is sent again by itself.
  if (request.error?.type === "computing") return html`<p class="loading" role="status">${loading ?? t("error.computing")}</p>`;
  if (request.error) return html`<${Failure} error=${request.error} retry=${request.retry} busy=${request.busy} />`;
  if (request.data === null) return request.busy && html`<p class="loading" role="status">${loading ?? t("state.loading")}</p>`;
  return html`<div class="response" aria-busy=${String(request.busy)}>${children(request.data)}</div>`;
}

// A word outside the corpus is not an error: similar spellings are offered. `number` is its position in a list.
function MissingWord({ near, number: position }) {
  const { view, params } = parseHash(location.hash);
  const hasIndex = useInfo()?.indexes.length !== 0;
  const ofWord = ["senses", "concordance"].includes(view);
  const keptParams = ofWord ? { ...params, sense: null, area: null, near: null, usage: null } : {};
  const link = (word) => linkTo(ofWord ? view : "concordance", { ...keptParams, word });
  return html`
    <p class="missing" role="status">
      ${t(position ? "reason.word_missing_of" : hasIndex ? "reason.word_missing" : "reason.word_unknown", { number: position })}
      ${near.length > 0 && html` ${t("reason.near")}${" "}`}
      ${near.map((word) => (hasIndex ? html`<a key=${word} href=${link(word)}>${word}</a> ` : html`<span key=${word}>${word} </span>`))}
    </p>
  `;
}

// The reason for an error: translated if its code is known, else the message of the server.
export function reasonText({ code, values, type, message }) {
  if (code && hasText(`reason.${code}`)) {
    const format = (value) => (typeof value === "number" ? number(value) : [value].flat().join(", "));
    const formatted = Object.fromEntries(Object.entries(values).map(([name, value]) => [name, format(value)]));
    return t(`reason.${code}`, formatted);
  }
  if (!message || (SELF_EXPLANATORY.includes(type) && !isEnglish())) return "";
  return t("reason.english", { message });
}

export function Failure({ error, retry, busy }) {
  if (error.status === 401) return html`<${KeyForm} retry=${retry} />`;
  // A 4xx error would only repeat.
  const canRetry = error.status < 400 || error.status >= 500;
  return html`
    <div class="failure" role="alert" aria-busy=${String(busy)}>
      <p><strong>${t(`error.${error.type}`)}</strong> ${reasonText(error)}</p>
      ${error.retryAfter && html`<p>${t("state.retryIn", { seconds: error.retryAfter })}</p>`}
      ${!error.retryAfter && canRetry && html`<button type="button" onClick=${retry}>${t("state.retry")}</button>`}
    </div>
  `;
}

function KeyForm({ retry }) {
  const submit = (event) => {
    event.preventDefault();
    setKey(new FormData(event.target).get("key"));
    retry();
  };
  return html`
    <form class="failure" onSubmit=${submit}>
      <label>${t("state.key")} <input name="key" type="password" autocomplete="off" required /></label>
      <button type="submit">${t("state.useKey")}</button>
      <p class="hint">${t("error.unauthorized")} ${t("state.keyHint")}</p>
    </form>
  `;
}
