// Renders the Markdown of a model card: headings, paragraphs, lists, tables, code, bold.
//
// Everything else is shown as written. HTML is not parsed, so a card cannot inject any.

import { html } from "/explorer/html-template.js";

const BLOCK_START = /^(#{1,6} |\s*[-*] |\||```)/;

export function Markdown({ text }) {
  return parseBlocks(text.split(/\r?\n/)).map((block, i) => html`<${Block} key=${i} ...${block} />`);
}

// The text of the paragraph or section about the licence, or null.
export function licenceOf(text) {
  const paragraph = /\*\*Licen[cs]e\.?\*\*:?\s*([^\n]+(?:\n(?!\s*\n)[^\n]+)*)/i.exec(text);
  const section = /^#+ *Licen[cs]e[^\n]*\n+([^\n#]+(?:\n(?!\s*\n)[^\n#]+)*)/im.exec(text);
  return (paragraph ?? section)?.[1].replace(/\s*\n\s*/g, " ") ?? null;
}

function parseBlocks(lines) {
  const blocks = [];
  let at = 0; // the next line
  const takeWhile = (condition) => {
    const start = at;
    while (at < lines.length && condition(lines[at])) at++;
    return lines.slice(start, at);
  };
  while (at < lines.length) {
    const heading = /^(#{1,6}) (.*)/.exec(lines[at]);
    if (!lines[at].trim()) at++;
    else if (heading)
      blocks.push({ kind: "heading", level: heading[1].length, text: lines[at++].slice(heading[1].length + 1) });
    else if (lines[at].startsWith("```")) {
      at++;
      blocks.push({ kind: "code", text: takeWhile((line) => !line.startsWith("```")).join("\n") });
      at++;
    } else if (lines[at].startsWith("|"))
      blocks.push({ kind: "table", rows: rowsOf(takeWhile((line) => line.startsWith("|"))) });
    else if (/^\s*[-*] /.test(lines[at]))
      blocks.push({ kind: "list", items: takeWhile((line) => /^\s*[-*] /.test(line)) });
    else
      blocks.push({
        kind: "text",
        text: [lines[at++], ...takeWhile((line) => line.trim() && !BLOCK_START.test(line))].join(" "),
      });
  }
  return blocks;
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
    // The headings of the card are below a heading of the page, so they start at level three.
    const name = `h${Math.min(6, level + 2)}`;
    return html`<${name}>${inline(text)}<//>`;
  }
  if (kind === "code") return html`<pre tabindex="0"><code>${text}</code></pre>`;
  if (kind === "list")
    return html`<ul>
      ${items.map((item, i) => html`<li key=${i}>${inline(item.replace(/^\s*[-*] /, ""))}</li>`)}
    </ul>`;
  if (kind === "table") return html`<${Table} rows=${rows} />`;
  return html`<p>${inline(text)}</p>`;
}

function Table({ rows: [head, ...rows] }) {
  const hasHead = head.some((cell) => cell);
  return html`
    <div class="scroll" tabindex="0" role="group">
      <table>
        ${
          hasHead &&
          html`<thead>
            <tr>
              ${head.map((cell, column) =>
                cell ? html`<th key=${column} scope="col">${inline(cell)}</th>` : html`<td key=${column}></td>`,
              )}
            </tr>
          </thead>`
        }
        <tbody>
          ${rows.map(
            (row, i) =>
              html`<tr key=${i}>
                ${row.map((cell, column) => html`<td key=${column}>${inline(cell)}</td>`)}
              </tr>`,
          )}
        </tbody>
      </table>
    </div>
  `;
}

// **bold** and `code`. Links stay plain text: the page links to no other site.
function inline(text) {
  return text.split(/(\*\*[^*]+\*\*|`[^`]+`)/).map((part) => {
    if (/^\*\*.+\*\*$/.test(part)) return html`<strong>${part.slice(2, -2)}</strong>`;
    if (/^`.+`$/.test(part)) return html`<code>${part.slice(1, -1)}</code>`;
    return part;
  });
}
