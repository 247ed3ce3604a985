// The compare view: the cosines between the words of two sentences, as shades, as a heat map and as a table.
//
// Parameters: a, b (the sentences), index, layer (index, mean, top or a number), token (a3: token 3 of the first sentence, from 0).

import { useRef, useState } from "preact/hooks";
import { html } from "/explorer/html-template.js";
import { number, t } from "/explorer/i18n.js";
import { Await, useRequest } from "/explorer/components/server-request.js";
import { Code } from "/explorer/components/code-block.js";
import { IndexSelect, Select, TextField } from "/explorer/components/form-fields.js";
import { HeatMap, strength } from "/explorer/components/cosine-heatmap.js";
import { CosineScale } from "/explorer/components/cosine-scale.js";
import { chosenIndex, languageOf, useInfo } from "/explorer/components/server-info.js";
import { hasManyLinks, isSameWord, WordLinks } from "/explorer/components/word-links.js";
import { layerHint } from "/explorer/components/layer-sliders.js";
import { TokenButtons } from "/explorer/components/token-buttons.js";
import * as snippets from "/explorer/code-snippets.js";
import { linkTo } from "/explorer/routing.js";

const EXAMPLES = {
  zh: { a: "曹操大怒，欲斩此将。", b: "天色将晚，人马困乏。" },
  en: { a: "He sat on the bank of the river.", b: "She kept her money in the bank." },
};
const NAMED = 3; // nearest words
const FROM_INDEX = "index"; // the layer of an index, in its corrected space: it tells senses apart

export function Compare({ params, navigate }) {
  const info = useInfo();
  const { a = "", b = "" } = params;
  const index = chosenIndex(info, params.index);
  const layer = layerOf(params.layer, info.model.layers, index);
  const swap = () => navigate({ a: b, b: a, token: null }, true);
  const both = a.trim() && b.trim();
  const request = useRequest(both ? "/similarity" : null, compareBody([a, b], layer, index));
  const field = (name, label) => html`
    <${TextField}
      label=${label}
      value=${params[name] ?? ""}
      onCommit=${(text) => navigate({ [name]: text, token: null })}
      lang=${languageOf(info)}
    />
  `;
  return html`
    <div class="form two">${field("a", t("compare.first"))} ${field("b", t("compare.second"))}</div>
    <div class="form">
      <${Select}
        label=${t("compare.layer")}
        value=${String(layer)}
        options=${layerOptions(info, index)}
        onCommit=${(next) => navigate({ layer: next === layerOf(undefined, info.model.layers, index) ? null : next }, true)}
      />
      ${layer === FROM_INDEX && html`<${IndexSelect} info=${info} value=${index.name} onCommit=${(next) => navigate({ index: next }, true)} />`}
      ${(a || b) && html`<button type="button" onClick=${swap}>${t("compare.swap")}</button>`}
    </div>
    ${!both && html`<${Empty} info=${info} />`}
    <${Await} request=${request}>
      ${(data) => html`
        <${Comparison} data=${data} settled=${!request.busy} params=${params} navigate=${navigate} />
        <${Code} lines=${snippets.compare({ texts: [a, b], layer, model: info.model, index: layer === FROM_INDEX ? index : null })} />
      `}
    <//>
  `;
}

function Empty({ info }) {
  const example = corpusExample(info.indexes[0]) ?? EXAMPLES[info.model.language] ?? EXAMPLES.en;
  return html`
    <div class="empty">
      <p>${t("compare.empty")}</p>
      <p><a href=${linkTo("compare", example)}>${t("compare.example")}</a></p>
    </div>
  `;
}

// Two sentences of the corpus; without an index, those above.
function corpusExample(index) {
  const [a, b] = index?.examples.texts ?? [];
  return b && { a, b };
}

// The linked sentences and the heat map. The active word is the pointed one, else the chosen one.
function Comparison({ data, settled, params, navigate }) {
  const [pointed, setPointed] = useState(null);
  const chosen = settled ? chosenWord(params.token, data.tokens) : null;
  const active = (settled && pointed) || chosen;
  const lang = languageOf(useInfo());
  return html`
    <${LinkedSentences} data=${data} chosen=${chosen} active=${active} setPointed=${setPointed} navigate=${navigate} lang=${lang} />
    <${HeatMap}
      first=${data.tokens[0]}
      second=${data.tokens[1]}
      matrix=${data.matrix}
      lang=${lang}
      highlight=${active && { [active.sentence === 0 ? "row" : "column"]: active.position }}
    />
  `;
}

// Both sentences as tokens: the chosen word shades the other sentence, and lines link shared words.
function LinkedSentences({ data, chosen, active, setPointed, navigate, lang }) {
  const frame = useRef(null);
  const cosines = chosen && cosinesOf(data.matrix, chosen);
  const row = (sentence, label) => {
    const [words, otherWords] = [data.tokens[sentence], data.tokens[1 - sentence]];
    const activeWord = active && active.sentence !== sentence ? data.tokens[active.sentence][active.position] : null;
    const look = (position) => {
      const word = words[position];
      const shared = otherWords.some((otherWord) => isSameWord(word, otherWord));
      return {
        class: `${shared ? "shared" : ""} ${isSameWord(word, activeWord) ? "same-word" : ""}`,
        onPointerEnter: () => setPointed({ sentence, position }),
        onPointerLeave: () => setPointed(null),
        ...(chosen && chosen.sentence !== sentence && shade(cosines[position])),
      };
    };
    return html`
      <${TokenButtons}
        words=${words}
        chosen=${chosen?.sentence === sentence ? chosen.position : null}
        choose=${(position) => navigate({ token: `${"ab"[sentence]}${position}` }, true)}
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
        <${WordLinks} frame=${frame} tokens=${data.tokens} active=${active} />
        ${row(0, t("compare.first"))} ${row(1, t("compare.second"))}
      </div>
      <p class="hint" role="status">${chosen ? nearestText(data.tokens, chosen, cosines) : t(hasManyLinks(data.tokens) ? "compare.hintMany" : "compare.hint")}</p>
      ${data.usual && html`<${CosineScale} usual=${data.usual} tokens=${data.tokens} matrix=${data.matrix} lang=${lang} />`}
      ${!data.usual && html`<p class="hint">${t("compare.uncorrected")}</p>`}
    </section>
  `;
}

function cosinesOf(matrix, { sentence, position }) {
  return sentence === 0 ? matrix[position] : matrix.map((row) => row[position]);
}

function shade(cosine) {
  const colour = cosine < 0 ? "var(--heat-negative)" : "var(--heat)";
  const background = `color-mix(in srgb, ${colour} ${strength(cosine) * 100}%, transparent)`;
  return { style: { backgroundColor: background }, title: number(cosine, 3) };
}

// The nearest words in the other sentence, and the cosine of the same word there.
function nearestText(tokens, { sentence, position }, cosines) {
  const [word, otherWords] = [tokens[sentence][position], tokens[1 - sentence]];
  const order = otherWords.map((_, i) => i).sort((a, b) => cosines[b] - cosines[a]);
  const best = order.slice(0, NAMED).map((i) => `${otherWords[i]} ${number(cosines[i], 2)}`);
  const same = otherWords.flatMap((otherWord, i) => (isSameWord(word, otherWord) ? [number(cosines[i], 3)] : []));
  const sameText = same.length ? `${t("compare.sameWord", { word, cosine: same.join(" · ") })} ` : "";
  return sameText + t("compare.best", { word, words: best.join(" · ") });
}

function chosenWord(token, tokens) {
  const [, letter, digits] = /^([ab])(\d+)$/.exec(token ?? "") ?? [];
  const [sentence, position] = [letter === "a" ? 0 : 1, Number(digits)];
  return letter && position in tokens[sentence] ? { sentence, position } : null;
}

function compareBody(texts, layer, index) {
  return layer === FROM_INDEX ? { texts, index: index.name } : { texts, layer };
}

// Without an index, the top layer: the mean of all layers is mostly the word itself.
function layerOf(text, layers, index) {
  const usual = index ? FROM_INDEX : "top";
  if (text === undefined || (text === FROM_INDEX && !index)) return usual;
  if (["mean", "top", FROM_INDEX].includes(text)) return text;
  return Number(text) >= 0 && Number(text) < layers ? Number(text) : usual;
}

function layerOptions(info, index) {
  const layers = Array.from({ length: info.model.layers }, (_, layer) => layer);
  return [
    ...(index ? [[FROM_INDEX, t("compare.fromIndex")]] : []),
    ["top", t("layer.top")],
    ["mean", t("layer.mean")],
    ...layers.map((layer) => [
      String(layer),
      `${t("layer.name", { layer })}: ${layerHint(layer, info.model.layers)}`,
    ]),
  ];
}
