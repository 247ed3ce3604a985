// The sentence view: the tokens of a text, and for the chosen one its nearest usages, nearest words and substitutes.
//
// A text may have several sentences. The model reads one at a time, like the corpus of the index, so requests hold
// the tokens of the chosen word's sentence.
//
// Parameters: text, token (position in the text, from 0) or word (the first of that name), index, mix (weights), same (1:
// usages of the same word only).

import { useState } from "preact/hooks";
import { html } from "/explorer/html-template.js";
import { number, t } from "/explorer/i18n.js";
import { Await, useRequest } from "/explorer/components/server-request.js";
import { IndexSelect, TextField } from "/explorer/components/form-fields.js";
import { chosenIndex, languageOf, useInfo } from "/explorer/components/server-info.js";
import { TokenButtons } from "/explorer/components/token-buttons.js";
import { NearestUsages, NoIndex } from "/explorer/components/nearest-usages.js";
import { NearestWords, Substitutes } from "/explorer/components/nearest-words.js";
import { sentenceOf } from "/explorer/text-spans.js";
import { linkTo } from "/explorer/routing.js";

const PAGE = 1500; // tokens before "show more"

// Without an index: in the language of the model, not of the page, each with the word to look at.
const EXAMPLES = {
  zh: [
    ["天色将晚，人马困乏。", "将"],
    ["他在河边坐下，看着流水。", "坐下"],
  ],
  en: [
    ["He sat on the bank of the river.", "bank"],
    ["She kept her money in the bank.", "bank"],
  ],
};

export function Sentence({ params, navigate }) {
  const info = useInfo();
  const text = params.text ?? "";
  const index = chosenIndex(info, params.index);
  const request = useRequest(text.trim() ? "/tokenize" : null, { texts: [text], index: index?.name });
  const edit = (next) => navigate({ text: next, token: null, word: null });
  return html`
    <div class="form">
      <${TextField}
        label=${t("sentence.text")}
        value=${text}
        onCommit=${edit}
        placeholder=${t("sentence.placeholder")}
        lang=${languageOf(info)}
        focus=${!text.trim()}
      />
      <${IndexSelect}
        info=${info}
        value=${index?.name}
        onCommit=${(index) => navigate({ index }, true)}
      />
    </div>
    ${!text.trim() && html`<${Empty} info=${info} index=${index} />`}
    <${Await} request=${request}>
      ${(data) => html`<${Tokens} text=${text} tokens=${data.tokens[0]} settled=${!request.busy} params=${params} navigate=${navigate} />`}
    <//>
  `;
}

function Empty({ info, index }) {
  const corpus = index?.examples.texts.map((text, i) => [text, index.examples.words[i]]);
  const examples = corpus?.length ? corpus : (EXAMPLES[info.model.language] ?? EXAMPLES.en);
  return html`
    <div class="empty">
      <p>${t(index ? "sentence.empty" : "sentence.emptyAlone")}</p>
      <p>${t("sentence.examples")}</p>
      <ul lang=${languageOf(info)}>
        ${examples.map(([text, word]) => html`<li key=${text}><a href=${linkTo("sentence", { text, word })}>${text}</a></li>`)}
      </ul>
    </div>
  `;
}

function Tokens({ text, tokens, settled, params, navigate }) {
  // While a new text is loading, the position in the address refers to that text, not to these tokens.
  const byName = params.token === undefined ? tokens.findIndex((token) => token.text === params.word) : Number(params.token);
  const requested = settled ? byName : -1;
  const position = requested in tokens ? requested : null;
  if (!tokens.length) return html`<p>${t("sentence.none")}</p>`;
  return html`
    <${TokenSection} key=${text} tokens=${tokens} position=${position} navigate=${navigate} />
    ${position !== null && html`<${AboutWord} text=${text} tokens=${tokens} position=${position} params=${params} navigate=${navigate} />`}
  `;
}

// All tokens as buttons; the sentence of the chosen one is highlighted.
function TokenSection({ tokens, position, navigate }) {
  const info = useInfo();
  const [limit, setLimit] = useState(PAGE);
  const shown = tokens.slice(0, Math.max(limit, (position ?? 0) + 1));
  const remaining = tokens.length - shown.length;
  const sentences = tokens.at(-1).sentence + 1;
  const look = (i) => {
    const startsSentence = i > 0 && tokens[i].sentence !== tokens[i - 1].sentence;
    const inSentence = sentences > 1 && position !== null && tokens[i].sentence === tokens[position].sentence;
    return { class: `${startsSentence ? "starts-sentence" : ""} ${inSentence ? "in-sentence" : ""}` };
  };
  return html`
    <section aria-labelledby="tokens-title">
      <h2 id="tokens-title">${t("sentence.tokens")}</h2>
      ${sentences > 1 && html`<p class="hint">${t(info.indexes.length ? "sentence.several" : "sentence.severalAlone", { count: number(sentences) })}</p>`}
      <${TokenButtons}
        words=${shown.map((token) => token.text)}
        chosen=${position}
        choose=${(token) => navigate({ token, word: null }, true)}
        label=${t("sentence.tokens")}
        lang=${languageOf(info)}
        look=${look}
      />
      ${remaining > 0 && html`<button type="button" onClick=${() => setLimit(shown.length + PAGE)}>${t("sentence.more", { count: number(remaining) })}</button>`}
      ${position === null && html`<p class="hint">${t("sentence.choose")}</p>`}
    </section>
  `;
}

function AboutWord({ text, tokens, position, params, navigate }) {
  const sentence = sentenceOf(text, tokens, position);
  const words = sentence.tokens.map((token) => token.text);
  const shared = { text: sentence.text, words, position: sentence.position };
  if (!useInfo().indexes.length) return html`<${WithoutIndex} shared=${shared} token=${sentence.tokens[sentence.position]} params=${params} />`;
  return html`
    <div class="columns">
      <${NearestUsages} ...${shared} params=${params} navigate=${navigate} />
      <div>
        <${Substitutes} ...${shared} token=${sentence.tokens[sentence.position]} />
        <${NearestWords} word=${tokens[position].text} params=${params} />
      </div>
    </div>
  `;
}

function WithoutIndex({ shared, token, params }) {
  return html`
    <div class="columns even">
      <${Substitutes} ...${shared} token=${token} />
      <${NearestWords} word=${token.text} params=${params} />
    </div>
    <${NoIndex} title=${t("own.title")} text=${t("own.text")} />
  `;
}
