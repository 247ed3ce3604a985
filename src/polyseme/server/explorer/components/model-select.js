// The choice of the model that all views read, if the server has several.

import { html } from "/explorer/html-template.js";
import { t } from "/explorer/i18n.js";
import { formatHash } from "/explorer/routing.js";

const KEPT = ["text", "a", "b", "word"]; // what was typed; indexes, tasks and what is chosen in them are of one model

export function ModelSelect({ info, route }) {
  const choose = (event) => {
    const isFirst = event.target.value === info.models[0];
    location.hash = modelLink(route, isFirst ? null : event.target.value);
  };
  return html`
    <select class="small" aria-label=${t("app.model")} value=${info.model.name} onChange=${choose}>
      ${info.models.map((name) => html`<option key=${name} value=${name} selected=${name === info.model.name}>${name}</option>`)}
    </select>
  `;
}

// A link to the same view with another model: the server's first one if it is null.
export function modelLink({ view, params }, model) {
  const kept = Object.fromEntries(KEPT.map((name) => [name, params[name]]));
  return formatHash(view, { ...kept, lang: params.lang, model });
}
