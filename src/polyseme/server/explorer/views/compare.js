// Two sentences in; the cosines between their words out: as shades, as a heat map, as a table.
//
// Parameters: a, b (the sentences), layer (mean, top, or a number), token (a3: the word 3 of the first, from 0).

import { html } from "/explorer/html.js";
import { number, t } from "/explorer/i18n.js";
import { Answer, useAnswer } from "/explorer/parts/answer.js";
import { Code } from "/explorer/parts/code.js";
import { Choice, TextField } from "/explorer/parts/fields.js";
import { HeatMap, strength } from "/explorer/parts/heatmap.js";
import { tongueOf, useInfo } from "/explorer/parts/info.js";
import { layerText } from "/explorer/parts/mixer.js";
import { Tokens } from "/explorer/parts/tokens.js";
import * as snippets from "/explorer/snippets.js";
import { linkTo } from "/explorer/state.js";

const EXAMPLES = {
  zh: { a: "玄德拜关羽为将，赐以兵马。", b: "将酒来，我与你吃三杯。" },
  en: { a: "He sat on the bank of the river.", b: "She kept her money in the bank." },
};
const NAMED = 3; // of the nearest words

export function Compare({ params, go }) {
  const info = useInfo();
  const { a = "", b = "" } = params;
  const layer = layerOf(params.layer, info.model.layers);
  const swap = () => go({ a: b, b: a, token: null }, true);
  const both = a.trim() && b.trim();
  const answer = useAnswer(both ? "/similarity" : null, { texts: [a, b], layer });
  const field = (name, label) => html`
    <${TextField}
      label=${label}
      value=${params[name] ?? ""}
      commit=${(text) => go({ [name]: text, token: null })}
      lang=${tongueOf(info)}
    />
  `;
  return html`
    <div class="form two">${field("a", t("compare.one"))} ${field("b", t("compare.other"))}</div>
    <div class="form">
      <${Choice}
        label=${t("compare.layer")}
        value=${String(layer)}
        options=${layers(info)}
        commit=${(next) => go({ layer: next === "mean" ? null : next }, true)}
      />
      ${(a || b) && html`<button type="button" onClick=${swap}>${t("compare.swap")}</button>`}
    </div>
    ${!both && html`<${Empty} info=${info} />`}
    <${Answer} of=${answer}>
      ${(data) => html`
        <${Linked} data=${data} settled=${!answer.busy} params=${params} go=${go} />
        <${HeatMap} one=${data.tokens[0]} other=${data.tokens[1]} matrix=${data.matrix} lang=${tongueOf(info)} />
        <${Code} lines=${snippets.compare({ texts: [a, b], layer, model: info.model.name })} />
      `}
    <//>
  `;
}

function Empty({ info }) {
  const example = EXAMPLES[info.model.segment] ?? EXAMPLES.en;
  return html`
    <div class="empty">
      <p>${t("compare.empty")}</p>
      <p><a href=${linkTo("compare", example)}>${t("compare.example")}</a></p>
    </div>
  `;
}

// Both sentences as words; the chosen word shades the other sentence.
function Linked({ data, settled, params, go }) {
  const info = useInfo();
  const [one, other] = data.tokens;
  const [side, place] = settled ? chosenWord(params.token, data.tokens) : [null, null];
  const cosines = side === "a" ? data.matrix[place] : data.matrix.map((row) => row[place]);
  const look = (name, words, others) => (at) => ({
    class: others.includes(words[at]) ? "shared" : "",
    ...(side !== null && side !== name && shade(cosines[at])),
  });
  const row = (name, words, others, label) => html`
    <${Tokens}
      words=${words}
      chosen=${side === name ? place : null}
      choose=${(at) => go({ token: `${name}${at}` }, true)}
      label=${label}
      lang=${tongueOf(info)}
      look=${look(name, words, others)}
    />
  `;
  return html`
    <section aria-labelledby="words-title">
      <h2 id="words-title">${t("compare.words")}</h2>
      <p class="hint">${t("compare.whole", { cosine: number(data.cosine, 3) })}</p>
      ${row("a", one, other, t("compare.one"))} ${row("b", other, one, t("compare.other"))}
      <p class="hint" role="status">
        ${side === null && t("compare.hint")} ${side === "a" && nearest(one[place], other, cosines)}
        ${side === "b" && nearest(other[place], one, cosines)}
      </p>
    </section>
  `;
}

function shade(cosine) {
  const colour = cosine < 0 ? "var(--heat-negative)" : "var(--heat)";
  const pale = `color-mix(in srgb, ${colour} ${strength(cosine) * 100}%, transparent)`;
  return { style: { backgroundColor: pale }, title: number(cosine, 3) };
}

function nearest(word, words, cosines) {
  const order = words.map((_, at) => at).sort((x, y) => cosines[y] - cosines[x]);
  const others = order.slice(0, NAMED).map((at) => `${words[at]} ${number(cosines[at], 2)}`);
  return t("compare.best", { word, others: others.join(" · ") });
}

function chosenWord(token, tokens) {
  const [, side, place] = /^([ab])(\d+)$/.exec(token ?? "") ?? [];
  const words = tokens[side === "a" ? 0 : 1];
  return side && Number(place) in words ? [side, Number(place)] : [null, null];
}

function layerOf(text, layers) {
  if (text === undefined || text === "mean" || text === "top") return text ?? "mean";
  return Number(text) >= 0 && Number(text) < layers ? Number(text) : "mean";
}

function layers(info) {
  const names = Array.from({ length: info.model.layers }, (_, layer) => layer);
  return [
    ["mean", t("layer.mean")],
    ["top", t("layer.top")],
    ...names.map((layer) => [
      String(layer),
      `${t("layer.name", { layer })}: ${layerText(layer, info.model.layers)}`,
    ]),
  ];
}
