// Labelled inputs: a text that is typed, a choice from a list, the choice of an index.

import { html } from "/explorer/html-template.js";
import { t } from "/explorer/i18n.js";
import { useTyped } from "/explorer/routing.js";

export function TextField({ label, value, commit, placeholder, lang, rows = 2 }) {
  const [typed, type] = useTyped(value, commit);
  return html`
    <label class="field wide">
      <span>${label}</span>
      <textarea
        rows=${rows}
        lang=${lang}
        dir="auto"
        spellcheck=${false}
        placeholder=${placeholder}
        value=${typed}
        onInput=${(event) => type(event.target.value, event.isComposing)}
        onCompositionEnd=${(event) => type(event.target.value)}
      ></textarea>
    </label>
  `;
}

// options: [[value, text], …]
export function Choice({ label, value, options, commit }) {
  return html`
    <label class="field">
      <span>${label}</span>
      <select value=${value} onChange=${(event) => commit(event.target.value)}>
        ${options.map(([name, text]) => html`<option key=${name} value=${name} selected=${name === value}>${text}</option>`)}
      </select>
    </label>
  `;
}

// Nothing to choose, nothing to see: one index needs no list.
export function IndexChoice({ info, value, commit, label = t("app.index") }) {
  if (info.indexes.length < 2) return null;
  return html`<${Choice}
    label=${label}
    value=${value}
    options=${info.indexes.map(({ name }) => [name, name])}
    commit=${commit}
  />`;
}
