// Labelled inputs: a text area, a select, and the select of an index.

import { useEffect, useRef } from "preact/hooks";
import { html } from "/explorer/html-template.js";
import { t } from "/explorer/i18n.js";
import { useTyped } from "/explorer/routing.js";

// A ref for the field that a view begins with. It gets the focus when the view opens, unless it is filled already.
export function useFocus(isWanted) {
  const field = useRef(null);
  useEffect(() => {
    if (isWanted && document.activeElement === document.body) field.current?.focus({ preventScroll: true });
  }, []);
  return field;
}

export function TextField({ label, value, onCommit, placeholder, lang, rows = 2, focus = false }) {
  const field = useFocus(focus);
  const [typed, type] = useTyped(value, onCommit);
  return html`
    <label class="field wide">
      <span>${label}</span>
      <textarea
        ref=${field}
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
export function Select({ label, value, options, onCommit }) {
  return html`
    <label class="field">
      <span>${label}</span>
      <select value=${value} onChange=${(event) => onCommit(event.target.value)}>
        ${options.map(([name, text]) => html`<option key=${name} value=${name} selected=${name === value}>${text}</option>`)}
      </select>
    </label>
  `;
}

// Hidden if there are fewer than two indexes.
export function IndexSelect({ info, value, onCommit, label = t("app.index") }) {
  if (info.indexes.length < 2) return null;
  return html`<${Select}
    label=${label}
    value=${value}
    options=${info.indexes.map(({ name }) => [name, name])}
    onCommit=${onCommit}
  />`;
}
