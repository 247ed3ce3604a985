// The markdown of a model card in, elements out: headings, paragraphs, lists, tables, code, bold.
//
// Everything else stays as it was written. No HTML is parsed, so a card cannot bring any along.

import { html } from "/explorer/html-template.js";

const STARTS = /^(#{1,6} |\s*[-*] |\||```)/;

export function Markdown({ text }) {
  return blocks(text.split(/\r?\n/)).map((block, at) => html`<${Block} key=${at} ...${block} />`);
}

// The paragraph or the section on the licence, as text, or null.
export function licenceOf(text) {
  const paragraph = /\*\*Licen[cs]e\.?\*\*:?\s*([^\n]+(?:\n(?!\s*\n)[^\n]+)*)/i.exec(text);
  const section = /^#+ *Licen[cs]e[^\n]*\n+([^\n#]+(?:\n(?!\s*\n)[^\n#]+)*)/im.exec(text);
  return (paragraph ?? section)?.[1].replace(/\s*\n\s*/g, " ") ?? null;
}

function blocks(lines) {
  const found = [];
  let at = 0;
  const take = (fits) => {
    const start = at;
    while (at < lines.length && fits(lines[at])) at++;
    return lines.slice(start, at);
  };
  while (at < lines.length) {
    const heading = /^(#{1,6}) (.*)/.exec(lines[at]);
    if (!lines[at].trim()) at++;
    else if (heading)
      found.push({ kind: "heading", level: heading[1].length, text: lines[at++].slice(heading[1].length + 1) });
    else if (lines[at].startsWith("```")) {
      at++;
      found.push({ kind: "code", text: take((line) => !line.startsWith("```")).join("\n") });
      at++;
    } else if (lines[at].startsWith("|"))
      found.push({ kind: "table", rows: rowsOf(take((line) => line.startsWith("|"))) });
    else if (/^\s*[-*] /.test(lines[at]))
      found.push({ kind: "list", items: take((line) => /^\s*[-*] /.test(line)) });
    else
      found.push({
        kind: "text",
        text: [lines[at++], ...take((line) => line.trim() && !STARTS.test(line))].join(" "),
      });
  }
  return found;
}

function rowsOf(lines) {
  const cells = lines.map((line) =>
    line
      .replace(/^\||\|\s*$/g, "")
      .split("|")
      .map((cell) => cell.trim()),
  );
  return cells.filter((row) => !row.every((cell) => /^:?-+:?$/.test(cell)));
}

function Block({ kind, level, text, items, rows }) {
  if (kind === "heading") {
    // The card stands below a heading of the page, so its own begin at the third level.
    const name = `h${Math.min(6, level + 2)}`;
    return html`<${name}>${inline(text)}<//>`;
  }
  if (kind === "code") return html`<pre tabindex="0"><code>${text}</code></pre>`;
  if (kind === "list")
    return html`<ul>
      ${items.map((item, at) => html`<li key=${at}>${inline(item.replace(/^\s*[-*] /, ""))}</li>`)}
    </ul>`;
  if (kind === "table") return html`<${Table} rows=${rows} />`;
  return html`<p>${inline(text)}</p>`;
}

function Table({ rows: [head, ...rows] }) {
  const named = head.some((cell) => cell);
  return html`
    <div class="scroll" tabindex="0" role="group">
      <table>
        ${
          named &&
          html`<thead>
            <tr>
              ${head.map((cell, at) =>
                cell ? html`<th key=${at} scope="col">${inline(cell)}</th>` : html`<td key=${at}></td>`,
              )}
            </tr>
          </thead>`
        }
        <tbody>
          ${rows.map(
            (row, at) =>
              html`<tr key=${at}>
                ${row.map((cell, place) => html`<td key=${place}>${inline(cell)}</td>`)}
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
  `;
}

// **bold** and `code`; a link is left as its text, because the page leads nowhere else.
function inline(text) {
  return text.split(/(\*\*[^*]+\*\*|`[^`]+`)/).map((part) => {
    if (/^\*\*.+\*\*$/.test(part)) return html`<strong>${part.slice(2, -2)}</strong>`;
    if (/^`.+`$/.test(part)) return html`<code>${part.slice(1, -1)}</code>`;
    return part;
  });
}
