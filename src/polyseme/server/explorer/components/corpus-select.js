// The choice of what all views read: the models of the server, or a text of the workspace.

import { html } from "/explorer/html-template.js";
import { t } from "/explorer/i18n.js";
import { useWorkspace } from "/explorer/components/workspace-store.js";
import { formatHash, VIEWS } from "/explorer/routing.js";

export function CorpusSelect({ enabled, route }) {
  const { data } = useWorkspace(enabled);
  const ready = (data?.corpora ?? []).filter(({ state }) => state === "ready");
  const chosen = route.params.corpus ?? "";
  if (!enabled || (!ready.length && !chosen)) return null;
  const known = ready.map(({ name, title }) => [name, title]);
  const missing = chosen && !known.some(([name]) => name === chosen) ? [[chosen, chosen]] : [];
  const choose = (event) => (location.hash = corpusLink(route.view, event.target.value || null, route.params.lang));
  return html`
    <select class="small corpus-select" aria-label=${t("corpus.choose")} value=${chosen} onChange=${choose}>
      ${[["", t("corpus.served")], ...known, ...missing].map(
        ([name, title]) => html`<option key=${name} value=${name} selected=${name === chosen}>${title}</option>`,
      )}
    </select>
  `;
}

// A link to a view that reads a corpus, or the server's own models if it is null. A word or an index of another corpus
// would lead nowhere, so the other parameters are left out.
export function corpusLink(view, corpus, lang, params = {}) {
  return formatHash(VIEWS.includes(view) ? view : VIEWS[0], { ...params, lang, corpus });
}
