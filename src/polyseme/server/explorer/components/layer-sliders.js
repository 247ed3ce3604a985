// Weights of the layers in; sliders out, and what each layer would find alone.

import { html } from "/explorer/html-template.js";
import { number, t } from "/explorer/i18n.js";
import { candidatesOf, isWhole, layerAlone } from "/explorer/layer-mix.js";

export function layerText(layer, layers, view) {
  if (layer === 0) return t(view === "context" ? "layer.beside" : "layer.tokens");
  return layer === layers - 1 ? t("layer.high") : t("layer.low");
}

// The layer of an index, "top", "mean" or a number, for people.
export function layerName(layer) {
  return layer === "top" || layer === "mean" ? t(`layer.${layer}`) : t("layer.name", { layer });
}

// What the index holds, in a sentence or two; "top" has a number, too, and the sliders are numbered.
function holds(index, layers) {
  const held = holdsLayer(index, layers);
  return index.view === "context" ? `${held} ${t("mix.ofPlaces")}` : held;
}

function holdsLayer(index, layers) {
  if (index.layer === "mean") return t("mix.holdsMean", { index: index.name });
  const layer = index.layer === "top" ? layers - 1 : index.layer;
  return t(layer === layers - 1 ? "mix.holdsTop" : "mix.holds", { index: index.name, layer });
}

export function Mixer({ answer, weights, moved, usual, word, shown, index, change }) {
  const count = candidatesOf(answer).length;
  const [near, others] = [answer.usages.length, answer.others?.length ?? 0];
  const among = t(others ? "mix.among" : "mix.amongNear", { count, near, others });
  const alone = (layer) => {
    const found = layerAlone(answer, layer, weights.length, word, shown);
    const values = { ...found, count, text: layerText(layer, weights.length, index.view), cosine: number(found.cosine, 2) };
    return t(isWhole(layer, usual, index.view) ? "mix.alone" : "mix.aloneAmong", values);
  };
  const set = (layer, value) => change(weights.map((weight, at) => (at === layer ? value : weight)));
  return html`
    <fieldset class="mixer">
      <legend>${t("mix.title")}</legend>
      <p class="hint">${holds(index, weights.length)} ${t(moved ? "mix.moved" : "mix.untouched")} ${among}</p>
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
              onInput=${(event) => set(layer, event.target.valueAsNumber)}
            />
            <output for=${`mix-${layer}`}>${number(weight, 2)}</output>
            <p id=${`mix-${layer}-alone`} class="hint">${alone(layer)}</p>
          </div>
        `,
      )}
      <p>
        <button type="button" class="small" onClick=${() => change(usual)}>${t("mix.reset")}</button>
        ${weights.every((weight) => weight === 0) && html` <span class="hint" role="status">${t("mix.silent")}</span>`}
      </p>
    </fieldset>
  `;
}
