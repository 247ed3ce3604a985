// Two sentences in; the cosines between their words out: as shades, as a heat map, as a table.
//
// Parameters: a, b (the sentences), layer (mean, top, or a number), token (a3: the word 3 of the first, from 0).

import { useRef, useState } from "preact/hooks";
import { html } from "/explorer/html-template.js";
import { number, t } from "/explorer/i18n.js";
import { Answer, useAnswer } from "/explorer/components/server-request.js";
import { Code } from "/explorer/components/code-block.js";
import { Choice, TextField } from "/explorer/components/form-fields.js";
import { HeatMap, strength } from "/explorer/components/cosine-heatmap.js";
import { tongueOf, useInfo } from "/explorer/components/server-info.js";
import { areMany, isTwin, Links } from "/explorer/components/word-links.js";
import { layerText } from "/explorer/components/layer-sliders.js";
import { Tokens } from "/explorer/components/token-buttons.js";
import * as snippets from "/explorer/code-snippets.js";
import { linkTo } from "/explorer/routing.js";

const EXAMPLES = {
  zh: { a: "曹操大怒，欲斩此将。", b: "天色将晚，人马困乏。" },
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
      ${(data) =>
        data.cosine === null
          ? html`<p>${t("compare.noWords")}</p>`
          : html`
              <${Compared} data=${data} settled=${!answer.busy} params=${params} go=${go} />
              <${Code} lines=${snippets.compare({ texts: [a, b], layer, model: info.model })} />
            `}
    <//>
  `;
}

function Empty({ info }) {
  const example = EXAMPLES[info.model.language] ?? ownExample(info.indexes[0]) ?? EXAMPLES.en;
  return html`
    <div class="empty">
      <p>${t("compare.empty")}</p>
      <p><a href=${linkTo("compare", example)}>${t("compare.example")}</a></p>
    </div>
  `;
}

// Two sentences of the corpus, where its language is none of the above.
function ownExample(index) {
  const [a, b] = index?.examples.texts ?? [];
  return b && { a, b };
}

// The words, linked, and the matrix. The word under the pointer counts, else the chosen one.
function Compared({ data, settled, params, go }) {
  const [pointed, point] = useState(null);
  const chosen = settled ? chosenWord(params.token, data.tokens) : null;
  const active = (settled && pointed) || chosen;
  const lang = tongueOf(useInfo());
  return html`
    <${Linked} data=${data} chosen=${chosen} active=${active} point=${point} go=${go} lang=${lang} />
    <${HeatMap}
      one=${data.tokens[0]}
      other=${data.tokens[1]}
      matrix=${data.matrix}
      lang=${lang}
      lit=${active && { [active.side === 0 ? "row" : "column"]: active.place }}
    />
  `;
}

// Both sentences as words: the chosen word shades the other sentence, and lines link the words that stand in both.
function Linked({ data, chosen, active, point, go, lang }) {
  const frame = useRef(null);
  const cosines = chosen && cosinesOf(data.matrix, chosen);
  const row = (side, label) => {
    const [words, others] = [data.tokens[side], data.tokens[1 - side]];
    const look = (at) => {
      const twin = active && active.side !== side && isTwin(words[at], data.tokens[active.side][active.place]);
      return {
        class: `${others.some((other) => isTwin(words[at], other)) ? "shared" : ""} ${twin ? "twin" : ""}`,
        onPointerEnter: () => point({ side, place: at }),
        onPointerLeave: () => point(null),
        ...(chosen && chosen.side !== side && shade(cosines[at])),
      };
    };
    return html`
      <${Tokens}
        words=${words}
        chosen=${chosen?.side === side ? chosen.place : null}
        choose=${(at) => go({ token: `${"ab"[side]}${at}` }, true)}
        label=${label}
        lang=${lang}
        look=${look}
      />
    `;
  };
  return html`
    <section aria-labelledby="words-title">
      <h2 id="words-title">${t("compare.words")}</h2>
      <p class="hint">${t("compare.whole", { cosine: number(data.cosine, 3) })}</p>
      <div class="linked" ref=${frame}>
        <${Links} frame=${frame} tokens=${data.tokens} active=${active} />
        ${row(0, t("compare.one"))} ${row(1, t("compare.other"))}
      </div>
      <p class="hint" role="status">${chosen ? said(data.tokens, chosen, cosines) : t(areMany(data.tokens) ? "compare.hintMany" : "compare.hint")}</p>
    </section>
  `;
}

function cosinesOf(matrix, { side, place }) {
  return side === 0 ? matrix[place] : matrix.map((row) => row[place]);
}

function shade(cosine) {
  const colour = cosine < 0 ? "var(--heat-negative)" : "var(--heat)";
  const pale = `color-mix(in srgb, ${colour} ${strength(cosine) * 100}%, transparent)`;
  return { style: { backgroundColor: pale }, title: number(cosine, 3) };
}

// The nearest words of the other sentence, and how near the same word is there.
function said(tokens, { side, place }, cosines) {
  const [word, others] = [tokens[side][place], tokens[1 - side]];
  const order = others.map((_, at) => at).sort((x, y) => cosines[y] - cosines[x]);
  const best = order.slice(0, NAMED).map((at) => `${others[at]} ${number(cosines[at], 2)}`);
  const twins = others.flatMap((other, at) => (isTwin(word, other) ? [number(cosines[at], 3)] : []));
  const both = twins.length ? `${t("compare.twins", { word, cosine: twins.join(" · ") })} ` : "";
  return both + t("compare.best", { word, others: best.join(" · ") });
}

function chosenWord(token, tokens) {
  const [, letter, place] = /^([ab])(\d+)$/.exec(token ?? "") ?? [];
  const side = letter === "a" ? 0 : 1;
  return letter && Number(place) in tokens[side] ? { side, place: Number(place) } : null;
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
