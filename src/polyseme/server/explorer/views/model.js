// The model view: overview, layers, training curves, card, indexes, tasks, limits and licences. No parameters.

import { factText } from "/explorer/fact-translation.js";
import { html } from "/explorer/html-template.js";
import { number, t } from "/explorer/i18n.js";
import { Code } from "/explorer/components/code-block.js";
import { PerplexityCurves } from "/explorer/components/perplexity-curves.js";
import { ExportButtons } from "/explorer/components/export-buttons.js";
import { useInfo } from "/explorer/components/server-info.js";
import { licenceOf, Markdown } from "/explorer/components/markdown.js";
import { layerHint, layerName } from "/explorer/components/layer-sliders.js";
import { isContextView } from "/explorer/layer-mix.js";
import * as snippets from "/explorer/code-snippets.js";

const LIBRARIES = ["preact", "htm", "d3"];
const NAMED = 5; // documents per index

export function Model() {
  const info = useInfo();
  const { model } = info;
  return html`
    <h2 class="title">${model.name}</h2>
    <div class="columns even">
      <div>
        <${Facts} model=${model} />
        <${Layers} model=${model} />
        <section>
          <h3>${t("model.licence")}</h3>
          <${Licences} model=${model} version=${info.version} />
        </section>
      </div>
      <div>
        <section>
          <h3>${t("model.curves")}</h3>
          ${model.curves.length > 1 && html`<${PerplexityCurves} curves=${model.curves} file=${model.name} />`}
          ${model.curves.length < 2 && html`<p class="hint">${t("model.noCurves")}</p>`}
        </section>
        <${Indexes} indexes=${info.indexes} />
        <${Tasks} tasks=${info.tasks} />
        <${FactList}
          title=${t("model.limits")}
          rows=${Object.entries(info.limits).map(([name, value]) => [t(`model.limit.${name}`) || name, number(value, value % 1 ? 3 : 0)])}
        />
      </div>
    </div>
    <${Code} lines=${snippets.model({ model })} />
    <section class="card">
      <h3>${t("model.card")}</h3>
      ${model.card ? html`<${Markdown} text=${model.card} />` : html`<p class="hint">${t("model.noCard")}</p>`}
    </section>
  `;
}

function Facts({ model }) {
  // Facts saved by training may have any name; unknown names are shown as they are.
  const translate = ([name, value]) => [t(`fact.${name}`) || name.replace(/^origin: /, ""), factText(value)];
  return html`
    <${FactList} title=${t("model.facts")} rows=${model.facts.map(translate)} />
    <${ExportButtons} name=${t("model.facts")} file=${`${model.name}-facts`} csv=${() => model.facts} />
  `;
}

function FactList({ title, rows }) {
  return html`
    <section>
      <h3>${title}</h3>
      <dl class="facts">
        ${rows.map(
          ([name, value]) =>
            html`<div key=${name}>
              <dt>${name}</dt>
              <dd>${value}</dd>
            </div>`,
        )}
      </dl>
    </section>
  `;
}

function Layers({ model }) {
  const numbers = Array.from({ length: model.layers }, (_, layer) => layer);
  return html`
    <section>
      <h3>${t("model.layers")}</h3>
      <p class="hint">${t("model.layersText", { layers: model.layers, size: model.size })}</p>
      <dl class="facts">
        ${numbers.map(
          (layer) =>
            html`<div key=${layer}>
              <dt>${t("layer.name", { layer })}</dt>
              <dd>${layerHint(layer, model.layers)}</dd>
            </div>`,
        )}
      </dl>
    </section>
  `;
}

function Indexes({ indexes }) {
  const documents = (names) =>
    names.slice(0, NAMED).join(", ") + (names.length > NAMED ? ` … (${number(names.length)})` : "");
  const heads = ["Name", "Usages", "Words", "Layer", "Documents"];
  return html`
    <section>
      <h3>${t("app.indexes")}</h3>
      ${!indexes.length && html`<p class="hint">${t("model.noIndexes")}</p>`}
      ${
        indexes.length > 0 &&
        html`
          <div class="scroll" tabindex="0" role="group" aria-label=${t("app.indexes")}>
            <table class="indexes">
              <thead>
                <tr>
                  ${heads.map((name) => html`<th key=${name} scope="col">${t(`model.index${name}`)}</th>`)}
                </tr>
              </thead>
              <tbody>
                ${indexes.map(
                  (index) => html`
                    <tr key=${index.name}>
                      <th scope="row">${index.name}</th>
                      <td>${number(index.usages)}</td>
                      <td>${number(index.words)}</td>
                      <td>${layerName(index.layer)}${isContextView(index) && t("layer.contextView")}</td>
                      <td>${documents(index.documents)}</td>
                    </tr>
                  `,
                )}
              </tbody>
            </table>
          </div>
        `
      }
    </section>
  `;
}

function Tasks({ tasks }) {
  if (!tasks.length) return null;
  return html`<${FactList}
    title=${t("model.tasks")}
    rows=${tasks.map((task) => [task.name, `${task.task}: ${task.labels.join(", ")}`])}
  />`;
}

function Licences({ model, version }) {
  const licence = model.card && licenceOf(model.card);
  const library = (name) => html`<a key=${name} href=${`/explorer/vendor/${name}.LICENSE`}>${name}</a> `;
  return html`
    <p>${model.name}: ${licence ? factText(licence) : t("model.licenceNone")}</p>
    <p>${t("model.licencePage", { version })} ${LIBRARIES.map(library)}</p>
  `;
}
