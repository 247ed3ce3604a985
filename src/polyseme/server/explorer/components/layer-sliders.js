// A slider for the weight of each layer, and what each layer finds alone.

import { useState } from "preact/hooks";
import { html } from "/explorer/html-template.js";
import { number, t } from "/explorer/i18n.js";
import { candidatesOf, isContextView, isExact, summarizeLayer } from "/explorer/layer-mix.js";

export function layerHint(layer, layers, contextView = false) {
  if (layer === 0) return t(contextView ? "layer.neighbours" : "layer.tokens");
  return layer === layers - 1 ? t("layer.high") : t("layer.low");
}

// The layer of an index ("top", "mean" or a number) as text.
export function layerName(layer) {
  return layer === "top" || layer === "mean" ? t(`layer.${layer}`) : t("layer.name", { layer });
}

function indexText(index, layers) {
  const text = indexLayerText(index, layers);
  return isContextView(index) ? `${text} ${t("mix.contextView")}` : text;
}

// "top" is shown with its number, because the sliders are numbered.
function indexLayerText(index, layers) {
  if (index.layer === "mean") return t("mix.indexMean", { index: index.name });
  const layer = index.layer === "top" ? layers - 1 : index.layer;
  return t(layer === layers - 1 ? "mix.indexTop" : "mix.indexLayer", { index: index.name, layer });
}

// What is mixed, in short: the layer of the index, or the weights.
function mixText(weights, changed, index) {
  if (changed) return weights.map((weight) => number(weight, 2)).join(" · ");
  return layerName(index.layer);
}

export function LayerSliders({ response, weights, changed, indexWeights, word, shown, index, setWeights }) {
  const [isOpen, setOpen] = useState(String(weights) !== String(indexWeights));
  const count = candidatesOf(response).length;
  const [near, others] = [response.usages.length, response.others?.length ?? 0];
  const candidates = t(others ? "mix.candidates" : "mix.nearCandidates", { count, near, others });
  const summaryOf = (layer) => {
    const summary = summarizeLayer(response, layer, weights.length, word, shown);
    const hint = layerHint(layer, weights.length, isContextView(index));
    const values = { ...summary, count, hint, cosine: number(summary.cosine, 2) };
    return t(isExact(layer, indexWeights, index) ? "mix.alone" : "mix.aloneAmong", values);
  };
  const setWeight = (layer, value) => setWeights(weights.map((weight, i) => (i === layer ? value : weight)));
  return html`
    <details class="mixer-fold" open=${isOpen} onToggle=${(event) => setOpen(event.currentTarget.open)}>
      <summary>${t("mix.folded", { mix: mixText(weights, changed, index) })}</summary>
      <fieldset class="mixer">
        <legend class="visually-hidden">${t("mix.title")}</legend>
        <p class="hint">${indexText(index, weights.length)} ${t(changed ? "mix.changed" : "mix.unchanged")} ${candidates}</p>
        ${weights.map(
          (weight, layer) => html`
            <div class="slider" key=${layer}>
              <label for=${`mix-${layer}`}>${t("layer.name", { layer })}</label>
              <input
                id=${`mix-${layer}`}
                type="range"
                min="0"
                max="1"
                step="0.05"
                value=${weight}
                aria-describedby=${`mix-${layer}-alone`}
                onInput=${(event) => setWeight(layer, event.target.valueAsNumber)}
              />
              <output for=${`mix-${layer}`}>${number(weight, 2)}</output>
              <p id=${`mix-${layer}-alone`} class="hint">${summaryOf(layer)}</p>
            </div>
          `,
        )}
        <p>
          <button type="button" class="small" onClick=${() => setWeights(indexWeights)}>${t("mix.reset")}</button>
          ${weights.every((weight) => weight === 0) && html` <span class="hint" role="status">${t("mix.allZero")}</span>`}
        </p>
      </fieldset>
    </details>
  `;
}
