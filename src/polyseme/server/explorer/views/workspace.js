// The workspace view: add a text, watch the server train on it and index it, then look up its words.
//
// Parameters: corpus (shared by all views), word (whose nearest words are shown).

import { html } from "/explorer/html-template.js";
import { t } from "/explorer/i18n.js";
import { CodeLines } from "/explorer/components/code-block.js";
import { CorpusCard } from "/explorer/components/corpus-card.js";
import { CorpusForm } from "/explorer/components/corpus-form.js";
import { corpusLink } from "/explorer/components/corpus-select.js";
import { NearestWords } from "/explorer/components/nearest-words.js";
import { languageOf, useInfo } from "/explorer/components/server-info.js";
import { Await } from "/explorer/components/server-request.js";
import { refresh, useWorkspace } from "/explorer/components/workspace-store.js";
import { linkTo, useTyped, VIEWS } from "/explorer/routing.js";

// Views that show the words of a text.
const WORD_VIEWS = VIEWS.filter((view) => !["compare", "tasks", "model", "workspace"].includes(view));

export function Workspace({ params, navigate }) {
  const info = useInfo();
  const { data, error } = useWorkspace(info.workspace);
  if (!info.workspace) return html`<${Off} />`;
  return html`
    <${Await} request=${{ data: error ? null : data, error, busy: data === null, retry: refresh }}>
      ${({ corpora, choices, limits }) => html`
        <div class="columns even">
          <section aria-labelledby="new-corpus">
            <h2 id="new-corpus">${t("workspace.new")}</h2>
            <p class="hint">${t("workspace.intro")}</p>
            <${CorpusForm} choices=${choices} limits=${limits} />
          </section>
          <section class=${corpora.length ? "has-corpora" : ""} aria-labelledby="corpora">
            <h2 id="corpora">${t("workspace.list")}</h2>
            ${!corpora.length && html`<p class="hint">${t("workspace.none")}</p>`}
            <ul class="corpora">
              ${corpora.map((corpus) => {
                const isChosen = corpus.name === params.corpus && corpus.state === "ready";
                return html`
                  <${CorpusCard} key=${corpus.name} corpus=${corpus} choices=${choices} isChosen=${isChosen} lang=${params.lang}>
                    ${isChosen && html`<${Words} key=${params.word} info=${info} params=${params} navigate=${navigate} />`}
                  <//>
                `;
              })}
            </ul>
          </section>
        </div>
      `}
    <//>
  `;
}

function Off() {
  return html`
    <div class="empty">
      <p>${t("workspace.off")}</p>
      <${CodeLines} name=${t("code.cli")} text="polyseme serve en --workspace texts" />
    </div>
  `;
}

// A first look at the chosen text: the nearest words of a word, and links to the views that show more.
function Words({ info, params, navigate }) {
  const word = params.word ?? "";
  const [typed, type] = useTyped(word, null);
  const lang = languageOf(info);
  const examples = info.indexes[0]?.examples.words ?? [];
  const submit = (event) => {
    event.preventDefault();
    navigate({ word: typed.trim() }, true);
  };
  return html`
    <p>
      ${t("workspace.inUse")}${" "}
      ${WORD_VIEWS.map((view) => html`<a key=${view} href=${linkTo(view, view === "senses" && word ? { word } : {})}>${t(`view.${view}`)}</a> `)}
      <a href=${corpusLink("workspace", null, params.lang)}>${t("workspace.leave")}</a>
    </p>
    <form class="form" onSubmit=${submit}>
      <label class="field grow">
        <span>${t("workspace.word")}</span>
        <input value=${typed} lang=${lang} onInput=${(event) => type(event.target.value, true)} />
      </label>
      <button type="submit">${t("words.title")}</button>
    </form>
    ${
      examples.length > 0 &&
      html`<p>
        ${t("workspace.try")}${" "}
        ${examples.map((example) => html`<a key=${example} lang=${lang} href=${linkTo("workspace", { word: example })}>${example}</a> `)}
      </p>`
    }
    ${word && html`<${NearestWords} word=${word} params=${params} />`}
  `;
}
