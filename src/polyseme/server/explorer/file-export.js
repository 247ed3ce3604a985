// Saves charts as SVG and PNG, and tables as CSV.

import { render } from "preact";

const SHAPE_PROPERTIES = [
  "fill",
  "fill-opacity",
  "stroke",
  "stroke-width",
  "stroke-opacity",
  "stroke-dasharray",
  "stroke-linejoin",
  "paint-order",
];
const TEXT_PROPERTIES = ["font-family", "font-size", "font-weight", "text-anchor", "dominant-baseline"];

export function saveSvg(svg, name) {
  save(new Blob([svgText(svg)], { type: "image/svg+xml" }), `${name}.svg`);
}

export async function savePng(svg, name, scale = 2) {
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(svgText(svg))}`;
  await image.decode();
  const { width, height } = sizeOf(svg);
  const canvas = Object.assign(document.createElement("canvas"), { width: width * scale, height: height * scale });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  canvas.toBlob((blob) => save(blob, `${name}.png`), "image/png");
}

// Draws a chart that exists only for export, outside the visible page, and removes it after it was saved.
export function renderOffscreen(chart) {
  const host = Object.assign(document.createElement("div"), { className: "visually-hidden" });
  document.body.append(host);
  render(chart, host);
  setTimeout(() => host.remove());
  return host.firstElementChild;
}

const PLAIN_CSV = "polyseme.csv"; // in the browser's storage: "plain" for files without a byte order mark

// Whether CSV files begin with a byte order mark, without which Excel assumes another encoding and garbles Chinese.
export function isForExcel() {
  try {
    return localStorage.getItem(PLAIN_CSV) !== "plain";
  } catch {
    return true;
  }
}

export function setForExcel(wanted) {
  try {
    localStorage.setItem(PLAIN_CSV, wanted ? "excel" : "plain");
  } catch {
    return;
  }
}

export function saveCsv(rows, name) {
  const parts = isForExcel() ? ["\ufeff", csvText(rows)] : [csvText(rows)];
  save(new Blob(parts, { type: "text/csv;charset=utf-8" }), `${name}.csv`);
}

export function csvText(rows) {
  const quoted = (value) => (/[",\r\n]/.test(value) ? `"${value.replaceAll('"', '""')}"` : value);
  // Spreadsheets run text that starts like a formula: an apostrophe keeps it text. Numbers stay numbers.
  const safe = (value) => (/^[=+\-@＝＋－＠\t\r\n]/.test(value) && Number.isNaN(Number(value)) ? `'${value}` : value);
  return rows.map((row) => `${row.map((value) => quoted(safe(String(value ?? "")))).join(",")}\r\n`).join("");
}

// A standalone drawing: computed styles become attributes, and elements for the screen only are removed.
function svgText(svg) {
  const copy = svg.cloneNode(true);
  const { width, height } = sizeOf(svg);
  const originals = [svg, ...svg.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((element, i) => {
    const style = getComputedStyle(originals[i]);
    const names = element.tagName === "text" || element.tagName === "tspan" ? [...SHAPE_PROPERTIES, ...TEXT_PROPERTIES] : SHAPE_PROPERTIES;
    for (const name of names) element.setAttribute(name, style.getPropertyValue(name));
    element.removeAttribute("class");
  });
  for (const element of copy.querySelectorAll("[data-screen-only]")) element.remove();
  const background = document.createElementNS("http://www.w3.org/2000/svg", "rect");
  const colour = getComputedStyle(document.body).backgroundColor;
  for (const [name, value] of Object.entries({ width, height, fill: colour })) background.setAttribute(name, value);
  copy.prepend(background);
  copy.setAttribute("xmlns", "http://www.w3.org/2000/svg");
  copy.setAttribute("width", width);
  copy.setAttribute("height", height);
  return new XMLSerializer().serializeToString(copy);
}

function sizeOf(svg) {
  const { width, height } = svg.viewBox.baseVal;
  return { width, height };
}

export function save(blob, name) {
  const link = Object.assign(document.createElement("a"), { href: URL.createObjectURL(blob), download: name });
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 10_000);
}
