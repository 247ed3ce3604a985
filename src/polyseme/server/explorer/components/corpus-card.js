// One text of the workspace: how far it is, its curves, and what can be done with it.

import { useState } from "preact/hooks";
import { html } from "/explorer/html-template.js";
import { number, percent, t } from "/explorer/i18n.js";
import { corpusLink } from "/explorer/components/corpus-select.js";
import { fromRequest, SettingsFields, sizeText, toRequest } from "/explorer/components/corpus-form.js";
import { LossCurve } from "/explorer/components/loss-curve.js";
import { PerplexityCurves } from "/explorer/components/perplexity-curves.js";
import { Failure, reasonText } from "/explorer/components/server-request.js";
import { act, isActive, useCorpusDetail } from "/explorer/components/workspace-store.js";

const MINUTE = 60;
const HOUR = 3600;
// What can be done in each state.
const ACTIONS = {
  draft: ["delete"],
  waiting: ["pause", "cancel"],
  running: ["pause", "cancel"],
  stopping: ["cancel"],
  paused: ["resume", "cancel", "delete"],
  failed: ["resume", "again", "delete"],
  ready: ["again", "delete"],
};

export function CorpusCard({ corpus, choices, isChosen, lang, children }) {
  const [error, setError] = useState(null);
  const run = async (action, body) => {
    setError(null);
    // The views would read a text that is not there.
    if (isChosen && ["cancel", "delete"].includes(action)) location.hash = corpusLink("workspace", null, lang);
    await act(corpus.name, action, body).catch(setError);
  };
  const id = `corpus-${corpus.name}`;
  return html`
    <li class=${`corpus ${isChosen ? "chosen" : ""}`} aria-labelledby=${id}>
      <div class="corpus-head">
        <h3 id=${id}>${corpus.title}</h3>
        <span class=${`corpus-state ${corpus.state}`} role="status">${t(`workspace.state.${corpus.state}`)}</span>
        <span class="hint">${filesText(corpus.files)}</span>
      </div>
      ${corpus.error && html`<p class="failure">${reasonText(failureOf(corpus))}</p>`}
      ${corpus.stage && html`<${Progress} corpus=${corpus} />`}
      ${corpus.settings?.train && corpus.state !== "draft" && html`<${Curves} corpus=${corpus} />`}
      ${corpus.state === "draft" && corpus.files.length > 0 && html`<${Draft} corpus=${corpus} choices=${choices} run=${run} />`}
      ${children}
      <p class="actions">
        ${
          corpus.state === "ready" &&
          !isChosen &&
          html`<a class="button primary" href=${corpusLink("workspace", corpus.name, lang)}>${t("workspace.explore")}</a>`
        }
        ${ACTIONS[corpus.state].map((action) => html`<${Action} key=${action} action=${action} corpus=${corpus} run=${run} />`)}
      </p>
      ${error && html`<${Failure} error=${error} retry=${() => setError(null)} busy=${false} />`}
    </li>
  `;
}

// Why a job failed, as the errors of requests are.
function failureOf({ error, error_code, error_values }) {
  return { message: error, code: error_code, values: error_values, type: "job" };
}

// "again" cancels what is there, so that other settings can be chosen.
function Action({ action, corpus, run }) {
  const verb = action === "again" ? "cancel" : action;
  const question = t(`workspace.confirm.${verb}`, { title: corpus.title });
  const click = () => (!question || confirm(question)) && run(verb);
  const name = t(`workspace.${action}`);
  return html`<button type="button" aria-label=${`${name}: ${corpus.title}`} onClick=${click}>${name}</button>`;
}

function filesText(files) {
  const encodings = [...new Set(files.map(({ encoding }) => encoding).filter(Boolean))];
  const names = files.length > 3 ? `${files[0].name} … (${number(files.length)})` : files.map(({ name }) => name).join(", ");
  const size = sizeText(files.reduce((sum, file) => sum + file.bytes, 0));
  return files.length ? [names, size, ...encodings].join(" · ") : "";
}

function Progress({ corpus }) {
  const { stage, done, total, state } = corpus;
  const share = total ? Math.min(done / total, 1) : null;
  const name = t(`workspace.stage.${stage}`);
  const left = state === "running" && timeText(corpus.seconds_left);
  return html`
    <p class="corpus-progress">
      <progress max="1" value=${share ?? undefined} aria-label=${`${name}: ${corpus.title}`}></progress>
      <span>${[name, share !== null && percent(share), left].filter(Boolean).join(" · ")}</span>
    </p>
  `;
}

function timeText(seconds) {
  if (seconds === null) return null;
  if (seconds < 1.5 * MINUTE) return t("workspace.left.seconds", { count: number(Math.ceil(seconds)) });
  if (seconds < 1.5 * HOUR) return t("workspace.left.minutes", { count: number(seconds / MINUTE) });
  return t("workspace.left.hours", { count: number(seconds / HOUR, 1) });
}

// The numbers of the training and its curves, which grow while it runs; folded when it is done.
function Curves({ corpus }) {
  const detail = useCorpusDetail(corpus.name, `${corpus.state} ${corpus.stage} ${corpus.done}`);
  const { losses = [], validations = [] } = detail ?? {};
  const numbers = [
    ["loss", number(corpus.loss, 2)],
    ["perplexity", number(corpus.perplexity, 1)],
    ["rate", corpus.rate && number(corpus.rate)],
  ].filter(([name, value]) => value && corpus[name] !== null);
  if (!numbers.length) return null;
  const curves = html`
    <div class="corpus-curves">
      ${losses.length > 1 && html`<${LossCurve} losses=${losses} total=${corpus.stage === "training" ? corpus.total : null} />`}
      ${validations.length > 1 && html`<div><${PerplexityCurves} curves=${validations} file=${corpus.name} /></div>`}
    </div>
  `;
  return html`
    <dl class="numbers">
      ${numbers.map(([name, value]) => html`<div key=${name}><dt>${t(`workspace.${name}`)}</dt><dd>${value}</dd></div>`)}
    </dl>
    ${isActive(corpus) || corpus.state === "paused"
      ? curves
      : losses.length > 1 && html`<details><summary>${t("workspace.lossCurve")}</summary>${curves}</details>`}
  `;
}

// A text that was sent and not started, or whose job was cancelled.
function Draft({ corpus, choices, run }) {
  const [settings, setSettings] = useState(() => fromRequest(corpus.settings));
  const submit = (event) => {
    event.preventDefault();
    run("start", toRequest(settings));
  };
  return html`
    <form onSubmit=${submit}>
      <${SettingsFields} choices=${choices} settings=${settings} change=${(next) => setSettings({ ...settings, ...next })} />
      <button type="submit" class="primary">${t("workspace.start")}</button>
    </form>
  `;
}
