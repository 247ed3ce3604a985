// The page: header, tabs, the view that the address names, footer.

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { setCorpus, setKeyRequired, setModel } from "/explorer/api.js";
import { html } from "/explorer/html-template.js";
import { t } from "/explorer/i18n.js";
import { Await, useRequest } from "/explorer/components/server-request.js";
import { chosenIndex, Info } from "/explorer/components/server-info.js";
import { CorpusSelect, corpusLink } from "/explorer/components/corpus-select.js";
import { ModelSelect, modelLink } from "/explorer/components/model-select.js";
import { applyLanguage, applyTheme, rememberLanguage, savedTheme, THEMES } from "/explorer/settings.js";
import { linkTo, useRoute, VIEWS } from "/explorer/routing.js";
import { PageFiles, StoredText } from "/explorer/components/page-files.js";
import { ReadingPanel } from "/explorer/components/reading-panel.js";
import { Compare } from "/explorer/views/compare.js";
import { ConcordanceView } from "/explorer/views/concordance.js";
import { Model } from "/explorer/views/model.js";
import { Persons } from "/explorer/views/persons.js";
import { Senses } from "/explorer/views/senses.js";
import { Sentence } from "/explorer/views/sentence.js";
import { Tasks } from "/explorer/views/tasks.js";
import { TimelineView } from "/explorer/views/timeline.js";
import { Workspace } from "/explorer/views/workspace.js";

const PAGES = {
  sentence: Sentence,
  concordance: ConcordanceView,
  compare: Compare,
  senses: Senses,
  timeline: TimelineView,
  persons: Persons,
  tasks: Tasks,
  model: Model,
  workspace: Workspace,
};

const NO_CORPUS = ["corpus_missing", "corpus_not_ready", "corpus_damaged"]; // error codes

function App() {
  const [route, navigate] = useRoute();
  setCorpus(route.params.corpus);
  setModel(route.params.corpus ? null : route.params.model); // a text of the workspace has one model
  const info = useRequest("/info");
  const lang = applyLanguage(route.params.lang);
  setKeyRequired(info.data?.key ?? false);
  const modelName = info.data?.model.name;
  useEffect(() => {
    document.title = `${t(`view.${route.view}`)} · ${modelName ? `${modelName} · ` : ""}Polyseme`;
  }, [route.view, modelName, lang]);
  const Page = PAGES[route.view];
  return html`
    <${Header} route=${route} navigate=${navigate} lang=${lang} info=${info.data} />
    <main id="main" tabindex="-1">
      <h1 class="visually-hidden">${t(`view.${route.view}`)}</h1>
      ${NO_CORPUS.includes(info.error?.code) && html`<${MissingCorpus} route=${route} />`}
      ${info.error?.code === "model_missing" && html`<p><a href=${modelLink(route, null)}>${t("app.firstModel")}</a></p>`}
      <${Await} request=${info}>
        ${(data) => html`
          <${MissingIndex} info=${data} requested=${route.params.index} />
          <${StoredText} />
          <${Info.Provider} value=${data}>
            <${Page} params=${route.params} navigate=${navigate} />
            <${ReadingPanel} params=${route.params} navigate=${navigate} />
          <//>
        `}
      <//>
    </main>
    <footer class="foot">
      <span>Polyseme ${info.data?.version}</span>
      <a href="/docs">${t("app.docs")}</a>
      <${PageFiles} info=${info.data} route=${route} />
    </footer>
  `;
}

// A permalink may name a text that was deleted.
function MissingCorpus({ route }) {
  return html`<p>${t("workspace.missing")} <a href=${corpusLink("workspace", null, route.params.lang)}>${t("workspace.leave")}</a></p>`;
}

// A permalink may name an index that this server does not have.
function MissingIndex({ info, requested }) {
  const shown = chosenIndex(info, requested)?.name;
  if (!requested || !shown || shown === requested) return null;
  return html`<p class="hint" role="status">${t("app.indexMissing", { requested, shown })}</p>`;
}

function Header({ route, navigate, lang, info }) {
  const hasWorkspace = info?.workspace ?? false;
  const hasModels = info?.models.length > 1 && !route.params.corpus;
  const otherLanguage = lang === "zh" ? "en" : "zh";
  const switchLanguage = () => {
    rememberLanguage(otherLanguage);
    navigate({ lang: otherLanguage });
  };
  // A link to #main would change the route, so the focus is set here.
  const skip = (event) => {
    event.preventDefault();
    document.getElementById("main").focus();
  };
  return html`
    <a class="skip" href="#main" onClick=${skip}>${t("app.skip")}</a>
    <header class="head">
      <p class="brand"><span class="name">Polyseme</span> ${
        hasModels
          ? html`<${ModelSelect} info=${info} route=${route} />`
          : html`<span class="model-name">${info?.model.name ?? t("app.about")}</span>`
      }</p>
      <nav aria-label=${t("app.views")}>
        ${VIEWS.filter((view) => view !== "workspace" || hasWorkspace).map((view) => {
          const isCurrent = view === route.view;
          return html`<a
            key=${view}
            href=${linkTo(view, isCurrent ? route.params : undefined)}
            aria-current=${isCurrent ? "page" : null}
          >
            ${t(`view.${view}`)}
          </a>`;
        })}
      </nav>
      <div class="settings">
        <${CorpusSelect} enabled=${hasWorkspace} route=${route} />
        <button type="button" class="small" lang=${otherLanguage === "zh" ? "zh-Hans" : "en"} onClick=${switchLanguage}>
          ${t("app.otherLanguage")}
        </button>
        <${ThemeSelect} />
      </div>
    </header>
  `;
}

function ThemeSelect() {
  const [theme, setTheme] = useState(savedTheme);
  useEffect(() => applyTheme(theme), [theme]);
  return html`
    <select
      class="small"
      aria-label=${t("app.theme")}
      value=${theme}
      onChange=${(event) => setTheme(event.target.value)}
    >
      ${THEMES.map((name) => html`<option key=${name} value=${name} selected=${name === theme}>${t(`app.theme.${name}`)}</option>`)}
    </select>
  `;
}

render(html`<${App} />`, document.getElementById("app"));
