// The text around a usage, on top of the view. The parameter `read` is the number of the usage.

import { useEffect, useLayoutEffect, useRef, useState } from "preact/hooks";
import { html } from "/explorer/html-template.js";
import { number, t } from "/explorer/i18n.js";
import { Await, useRequest } from "/explorer/components/server-request.js";
import { LinkedWord } from "/explorer/components/corpus-links.js";
import { chosenIndex, languageOf, useInfo } from "/explorer/components/server-info.js";
import { linkTo } from "/explorer/routing.js";
import { splitAt } from "/explorer/text-spans.js";

const SENTENCES = 15; // before and after the usage
const MORE = 30;
const MOST = 1000; // that the server reads at once

export function ReadingPanel({ params, navigate }) {
  const index = chosenIndex(useInfo(), params.index);
  if (!/^\d+$/.test(params.read ?? "") || !index) return null;
  return html`<${Panel} key=${params.read} usage=${Number(params.read)} index=${index} navigate=${navigate} />`;
}

function Panel({ usage, index, navigate }) {
  const dialog = useRef(null);
  const [sentences, setSentences] = useState(SENTENCES);
  const request = useRequest("/passage", { usage, index: index.name, sentences });
  const close = () => navigate({ read: null }, true);
  useEffect(() => {
    const { current } = dialog;
    current.showModal();
    return () => current.close();
  }, []);
  const closeOutside = (event) => event.target === dialog.current && close();
  return html`
    <dialog class="reading" ref=${dialog} aria-labelledby="reading-title" onCancel=${close} onClick=${closeOutside}>
      <div class="reading-page">
        <p class="reading-close">
          <button type="button" class="small" onClick=${close}>${t("reading.close")}</button>
        </p>
        <${Await} request=${request}>
          ${(passage) => html`<${Passage} passage=${passage} more=${sentences < MOST && (() => setSentences(Math.min(sentences + MORE, MOST)))} />`}
        <//>
      </div>
    </dialog>
  `;
}

function Passage({ passage, more }) {
  const lang = languageOf(useInfo());
  const place = useRef(null);
  const top = useRef(null); // where the word was on the screen before more text came
  useLayoutEffect(() => {
    const page = place.current.closest(".reading-page");
    if (top.current === null) place.current.scrollIntoView({ block: "center" });
    else page.scrollTop += place.current.getBoundingClientRect().top - top.current;
  }, [passage]);
  const extend = () => {
    top.current = place.current.getBoundingClientRect().top;
    more();
  };
  const button = (name) => html`<p><button type="button" class="small" onClick=${extend}>${t(name)}</button></p>`;
  return html`
    <h2 id="reading-title" class="title">${passage.title || passage.document}</h2>
    <p class="hint">
      ${t("reading.title", { document: passage.document, line: number(passage.line) })} · <${LinkedWord} word=${passage.word} /> ·${" "}
      <a href=${linkTo("senses", { word: passage.word })}>${t("words.senses", { word: passage.word })}</a>
    </p>
    ${!passage.complete && html`<p class="hint">${t("reading.incomplete")}</p>`}
    ${passage.before && more && button("reading.earlier")}
    <div class="reading-text" lang=${lang}>
      ${passage.paragraphs.map(
        ({ line, text }, i) => html`
          <p key=${`${line} ${i}`} dir="auto">
            <span class="line-number" aria-hidden="true">${line}</span>
            ${i === passage.paragraph ? html`<${Marked} text=${text} passage=${passage} place=${place} />` : text}
          </p>
        `,
      )}
    </div>
    ${passage.after && more && button("reading.later")}
  `;
}

function Marked({ text, passage, place }) {
  const [before, word, after] = splitAt(text, passage.start, passage.stop);
  return html`${before}<mark ref=${place}>${word}</mark>${after}`;
}
