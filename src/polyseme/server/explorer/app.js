// The address in, the page out: head, tabs, the chosen view, foot.

import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { noteGuarded } from "/explorer/api.js";
import { html } from "/explorer/html-template.js";
import { t } from "/explorer/i18n.js";
import { Answer, useAnswer } from "/explorer/components/server-request.js";
import { indexOf, Info } from "/explorer/components/server-info.js";
import { applyLanguage, applyTheme, rememberLanguage, theme, THEMES } from "/explorer/settings.js";
import { linkTo, useRoute, VIEWS } from "/explorer/routing.js";
import { Compare } from "/explorer/views/compare.js";
import { Model } from "/explorer/views/model.js";
import { Senses } from "/explorer/views/senses.js";
import { Sentence } from "/explorer/views/sentence.js";

const PAGES = { sentence: Sentence, compare: Compare, senses: Senses, model: Model };

function App() {
  const [route, go] = useRoute();
  const info = useAnswer("/info");
  const lang = applyLanguage(route.params.lang);
  noteGuarded(info.data?.key ?? false);
  const name = info.data?.model.name;
  useEffect(() => {
    document.title = `${t(`view.${route.view}`)} · ${name ? `${name} · ` : ""}Polyseme`;
  }, [route.view, name, lang]);
  const Page = PAGES[route.view];
  return html`
    <${Head} route=${route} go=${go} lang=${lang} name=${name} />
    <main id="main" tabindex="-1">
      <h1 class="unseen">${t(`view.${route.view}`)}</h1>
      <${Answer} of=${info}>
        ${(data) => html`
          <${Gone} info=${data} asked=${route.params.index} />
          <${Info.Provider} value=${data}><${Page} params=${route.params} go=${go} /><//>
        `}
      <//>
    </main>
    <footer class="foot">
      <span>Polyseme ${info.data?.version}</span>
      <a href="/docs">${t("app.docs")}</a>
    </footer>
  `;
}

// A permalink may be older than the server: what is shown instead is told, not passed over.
function Gone({ info, asked }) {
  const shown = indexOf(info, asked)?.name;
  if (!asked || !shown || shown === asked) return null;
  return html`<p class="hint" role="status">${t("app.indexGone", { asked, shown })}</p>`;
}

function Head({ route, go, lang, name }) {
  const other = lang === "zh" ? "en" : "zh";
  const change = () => {
    rememberLanguage(other);
    go({ lang: other });
  };
  // A link to #main would change the route, so the jump is made by hand.
  const skip = (event) => {
    event.preventDefault();
    document.getElementById("main").focus();
  };
  return html`
    <a class="skip" href="#main" onClick=${skip}>${t("app.skip")}</a>
    <header class="head">
      <p class="brand"><span class="name">Polyseme</span> <span class="served">${name ?? t("app.about")}</span></p>
      <nav aria-label=${t("app.views")}>
        ${VIEWS.map((view) => {
          const here = view === route.view;
          return html`<a
            key=${view}
            href=${linkTo(view, here ? route.params : undefined)}
            aria-current=${here ? "page" : null}
          >
            ${t(`view.${view}`)}
          </a>`;
        })}
      </nav>
      <div class="settings">
        <button type="button" class="small" lang=${other === "zh" ? "zh-Hans" : "en"} onClick=${change}>
          ${t("app.otherLanguage")}
        </button>
        <${ThemeChoice} />
      </div>
    </header>
  `;
}

function ThemeChoice() {
  const [chosen, setChosen] = useState(theme);
  useEffect(() => applyTheme(chosen), [chosen]);
  return html`
    <select
      class="small"
      aria-label=${t("app.theme")}
      value=${chosen}
      onChange=${(event) => setChosen(event.target.value)}
    >
      ${THEMES.map((name) => html`<option key=${name} value=${name} selected=${name === chosen}>${t(`app.theme.${name}`)}</option>`)}
    </select>
  `;
}

render(html`<${App} />`, document.getElementById("app"));
