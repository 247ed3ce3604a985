// A prediction of a task model in a form to read, by what it holds: frames, clusters, an answer, entities, tags, a text,
// labels. Probabilities are beside it, or shown for what has the pointer or the focus.
//
// A prediction of a task that the page does not know is shown as JSON.

import { html } from "/explorer/html-template.js";
import { number, percent, t } from "/explorer/i18n.js";
import { Detail, MarkedText, Swatch, useDetails } from "/explorer/components/marked-text.js";

const SHOWN_LABELS = 12;
const SHOWN_CLUSTERS = 30;

// texts: of the question; cluster: the number of the chosen cluster, or null.
export function Prediction({ data, texts, lang, cluster, choose }) {
  if (data.frames) return html`<${Frames} frames=${data.frames} text=${texts[0]} lang=${lang} />`;
  if (data.clusters) {
    return html`<${Clusters} clusters=${data.clusters} text=${texts[0]} lang=${lang} chosen=${cluster} choose=${choose} />`;
  }
  if ("answer" in data) return html`<${Answer} data=${data} text=${texts[1]} lang=${lang} />`;
  if (data.spans) return html`<${Spans} spans=${data.spans} text=${texts[0]} lang=${lang} />`;
  if (data.tags) return html`<${Tags} key=${data.tokens.join(" ")} data=${data} lang=${lang} />`;
  if (data.entities) return html`<${Relation} data=${data} text=${texts[0]} lang=${lang} />`;
  if (data.alternatives) return html`<${Written} data=${data} />`;
  if (data.probabilities) return html`<${Labels} probabilities=${data.probabilities} chosen=${data.labels ?? [data.label]} />`;
  if ("number" in data) return html`<p class="predicted" role="status">${number(data.number, 2)}</p>`;
  return html`<pre tabindex="0" aria-label="JSON">${JSON.stringify(data, null, 1)}</pre>`;
}

// The same role has the same colour in all frames.
function Frames({ frames, text, lang }) {
  if (!frames.length) return html`<p class="hint" role="status">${t("tasks.noFrames")}</p>`;
  const labels = colours(frames.flatMap((frame) => frame.roles.map((role) => role.label)));
  return html`
    <p class="hint" role="status">${t(frames.length === 1 ? "tasks.frame" : "tasks.frames", { count: frames.length })}</p>
    ${frames.map((frame) => html`<${MarkedText} key=${frame.predicate} text=${text} spans=${spansOf(frame.roles, labels)} lang=${lang} />`)}
  `;
}

function Spans({ spans, text, lang }) {
  const labels = colours(spans.map((span) => span.label));
  return html`<${MarkedText} text=${text} spans=${spansOf(spans, labels)} lang=${lang} />`;
}

function Tags({ data, lang }) {
  const { tokens, tags, token_probabilities: probabilities } = data;
  const titles = tokens.map((token, i) => titleOf(`${token} · ${tags[i]}`, probabilities?.[i]));
  const details = useDetails(titles);
  return html`
    <p class="tagged" lang=${lang} ref=${details.frame}>
      ${tokens.map(
        (token, i) => html`
          <span key=${i} class="tagged-token" title=${titles[i]} ...${details.props(i)}>${token}<span class="tag">${tags[i]}</span></span>${" "}
        `,
      )}
    </p>
    <${Detail} text=${details.shown} />
  `;
}

const ENTITY_MARKS = /<\/?e[12]>/g;

// Both entities in the text, and the probabilities of the relations. Offsets count in the text without the marks.
function Relation({ data, text, lang }) {
  const title = titleOf(data.label, data.probability);
  const spans = data.entities.map(({ offsets }, i) => ({ start: offsets[0], stop: offsets[1], label: `e${i + 1}`, title: `e${i + 1} · ${title}`, colour: i }));
  return html`
    <${MarkedText} text=${text.replace(ENTITY_MARKS, "")} spans=${spans} lang=${lang} />
    <${Labels} probabilities=${data.probabilities} chosen=${[data.label]} />
  `;
}

// Clusters with several mentions; the chosen one is coloured alone.
function Clusters({ clusters, text, lang, chosen, choose }) {
  const several = clusters.filter((cluster) => cluster.mentions.length > 1);
  if (!several.length) return html`<p class="hint" role="status">${t("tasks.noClusters")}</p>`;
  const spans = several.flatMap(({ name, mentions }, colour) =>
    chosen !== null && chosen !== colour
      ? []
      : mentions.map(({ offsets, probability }) => ({ start: offsets[0], stop: offsets[1], title: titleOf(name, probability), colour })),
  );
  return html`
    <div class="clusters" role="group" aria-label=${t("tasks.clusters")}>
      ${several.slice(0, SHOWN_CLUSTERS).map(
        ({ name, mentions }, colour) => html`
          <button
            key=${colour}
            type="button"
            class="cluster"
            aria-pressed=${String(colour === chosen)}
            onClick=${() => choose(colour === chosen ? null : colour)}
          >
            <${Swatch} colour=${colour} /> <span lang=${lang}>${name}</span> <span class="value">${number(mentions.length)}</span>
          </button>
        `,
      )}
    </div>
    <${MarkedText} text=${text} spans=${spans} lang=${lang} />
  `;
}

function Answer({ data, text, lang }) {
  const probability = percent(data.probability);
  if (data.answer === null) return html`<p role="status">${t("tasks.noAnswer", { probability })}</p>`;
  const [start, stop] = data.offsets;
  return html`
    <p class="predicted" role="status"><span lang=${lang}>${data.answer}</span> <span class="value">${probability}</span></p>
    <${MarkedText} text=${text} spans=${[{ start, stop, colour: 0, title: titleOf(data.answer, data.probability) }]} lang=${lang} />
  `;
}

function Written({ data }) {
  const others = data.alternatives.filter((text) => text !== data.text);
  return html`
    <p class="predicted" role="status" dir="auto">${data.text || t("tasks.nothing")}</p>
    <p class="hint">${t("tasks.textProbability", { probability: number(100 * Math.exp(data.log_probability), 2), log: number(data.log_probability, 2) })}</p>
    ${others.length > 0 &&
    html`
      <h3>${t("tasks.alternatives")}</h3>
      <ul class="sentences">${others.map((text) => html`<li key=${text} dir="auto">${text}</li>`)}</ul>
    `}
  `;
}

function Labels({ probabilities, chosen }) {
  const rows = Object.entries(probabilities).slice(0, SHOWN_LABELS);
  return html`
    <p class="predicted" role="status">${chosen.join(", ") || t("tasks.noLabel")}</p>
    <table class="values">
      <thead><tr><th scope="col">${t("tasks.label")}</th><th scope="col">${t("tasks.probability")}</th></tr></thead>
      <tbody>
        ${rows.map(
          ([label, share]) => html`
            <tr key=${label}>
              <th scope="row">${label}</th>
              <td>
                <span class="share"><span class="track"><span style=${{ width: percent(share) }}></span></span> ${percent(share)}</span>
              </td>
            </tr>
          `,
        )}
      </tbody>
    </table>
  `;
}

// What is shown for a span: "ARG0 · 97%".
function titleOf(text, probability) {
  return probability === undefined || probability === null ? text : `${text} · ${percent(probability)}`;
}

function colours(labels) {
  return [...new Set(labels)].sort();
}

function spansOf(spans, labels) {
  return spans.map(({ label, offsets, probability }) => ({
    start: offsets[0],
    stop: offsets[1],
    label,
    title: titleOf(label, probability),
    colour: labels.indexOf(label),
  }));
}
