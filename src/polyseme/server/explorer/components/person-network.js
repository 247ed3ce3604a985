// Who occurs with whom: persons as dots, joined to those they share most paragraphs with.

import { useMemo } from "preact/hooks";
import { html } from "/explorer/html-template.js";
import { number, t } from "/explorer/i18n.js";
import { COLOURS } from "/explorer/components/usage-map.js";
import { textWidth, useElementWidth } from "/explorer/measure-width.js";

const { forceCollide, forceLink, forceManyBody, forceSimulation, forceX, forceY } = globalThis.d3;

const SIZE = { width: 640, height: 460, edge: 16 };
const EDGES_PER_PERSON = 3;
const STEPS = 240;
const FONT_SIZE = 12;
const [SMALLEST, LARGEST] = [4, 17]; // radius

// chosen: positions of the persons to draw; linkOf: the address of a person; focus: the name of one that stands out.
export function PersonNetwork({ cast, chosen, linkOf, focus, lang, label }) {
  const [frame, width] = useElementWidth();
  const fontSize = FONT_SIZE * Math.max(1, SIZE.width / width); // in units of the drawing: larger if it is shown small
  const { nodes, links } = useMemo(() => layOut(cast, chosen, fontSize), [cast, chosen.join(), fontSize]);
  const most = Math.max(1, ...links.map((link) => link.weight));
  return html`
    <div ref=${frame}>
      <svg class="network" role="group" aria-label=${label} viewBox=${`0 0 ${SIZE.width} ${SIZE.height}`}>
      ${links.map(
        ({ source, target, weight }) => html`
          <line
            key=${`${source.name} ${target.name}`}
            x1=${source.x}
            y1=${source.y}
            x2=${target.x}
            y2=${target.y}
            stroke-width=${0.8 + 4 * Math.sqrt(weight / most)}
          >
            <title>${t("persons.pair", { first: source.name, second: target.name, count: number(weight) })}</title>
          </line>
        `,
      )}
      ${nodes.map(
        ({ name, x, y, radius, group, count }) => html`
          <a key=${name} href=${linkOf(name)} class=${name === focus ? "focus" : ""} aria-label=${t("persons.mentions", { name, count: number(count) })}>
            <circle class=${`dot hue-${group % COLOURS}`} cx=${x} cy=${y} r=${radius} />
            <text x=${x} y=${y - radius - 3} text-anchor="middle" lang=${lang} style=${{ fontSize: `${fontSize}px` }}>${name}</text>
          </a>
        `,
      )}
    </svg>
    </div>
  `;
}

// The strongest pairs of each person, and places that follow from them: the same every time.
function layOut({ persons, pairs }, chosen, fontSize) {
  const largest = Math.max(...chosen.map((n) => persons[n].count));
  const nodes = chosen.map((n) => {
    const { name, group, count } = persons[n];
    const radius = SMALLEST + (LARGEST - SMALLEST) * Math.sqrt(count / largest);
    return { n, name, group, count, radius, half: Math.max(radius, textWidth(name, fontSize) / 2) };
  });
  const byNumber = new Map(nodes.map((node) => [node.n, node]));
  const inside = pairs.filter(([a, b]) => byNumber.has(a) && byNumber.has(b)).sort((a, b) => b[2] - a[2]);
  const degree = new Map();
  const links = [];
  for (const [a, b, weight] of inside) {
    const [first, second] = [degree.get(a) ?? 0, degree.get(b) ?? 0];
    if (first >= EDGES_PER_PERSON && second >= EDGES_PER_PERSON) continue;
    degree.set(a, first + 1).set(b, second + 1);
    links.push({ source: byNumber.get(a), target: byNumber.get(b), weight });
  }
  const { width, height, edge } = SIZE;
  forceSimulation(nodes)
    .force("link", forceLink(links).distance(70).strength((link) => 0.12 + 0.4 * (link.weight / inside[0][2])))
    .force("charge", forceManyBody().strength(-190))
    .force("collide", forceCollide((node) => node.half + fontSize * 0.75))
    .force("x", forceX(width / 2).strength(0.06))
    .force("y", forceY(height / 2).strength(0.1))
    .stop()
    .tick(STEPS);
  const fit = (axis, size, before, after) => {
    const low = Math.min(...nodes.map((node) => node[axis] - before(node)));
    const high = Math.max(...nodes.map((node) => node[axis] + after(node)));
    const scale = Math.min(2.2, (size - 2 * edge) / Math.max(1, high - low));
    for (const node of nodes) node[axis] = size / 2 + (node[axis] - (low + high) / 2) * scale;
    for (const node of nodes) node[axis] = Math.min(Math.max(node[axis], before(node) + 2), size - after(node) - 2);
  };
  fit("x", width, (node) => node.half, (node) => node.half);
  fit("y", height, (node) => node.radius + fontSize + 4, (node) => node.radius);
  return { nodes, links };
}
