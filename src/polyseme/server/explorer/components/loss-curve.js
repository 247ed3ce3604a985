// The loss by training tokens, while a model is trained.

import { html } from "/explorer/html-template.js";
import { number, t } from "/explorer/i18n.js";
import { useElementWidth } from "/explorer/measure-width.js";

const { extent, format, line, scaleLinear } = globalThis.d3;

const SIZE = { height: 170, left: 48, right: 16, top: 10, bottom: 40 };

export function LossCurve({ losses, total }) {
  const [frame, width] = useElementWidth();
  const { height, left, right, top, bottom } = SIZE;
  const x = scaleLinear([0, Math.max(total ?? 0, losses.at(-1).tokens)], [left, width - right]);
  const y = scaleLinear(extent(losses, (point) => point.loss), [height - bottom, top]).nice();
  const draw = line(
    (point) => x(point.tokens),
    (point) => y(point.loss),
  );
  return html`
    <div ref=${frame}>
      <svg class="curves" role="img" aria-label=${t("workspace.lossCurve")} viewBox=${`0 0 ${width} ${height}`}>
        ${y.ticks(4).map(
          (value) => html`
            <g key=${value}>
              <line class="grid" x1=${left} x2=${width - right} y1=${y(value)} y2=${y(value)} />
              <text x=${left - 8} y=${y(value) + 4} text-anchor="end">${number(value, 1)}</text>
            </g>
          `,
        )}
        ${x.ticks(width < 420 ? 3 : 5).map(
          (value) => html`
            <text key=${value} x=${x(value)} y=${height - bottom + 16} text-anchor="middle">${format("~s")(value)}</text>
          `,
        )}
        <text class="axis" x=${(left + width - right) / 2} y=${height - 6} text-anchor="middle">${t("model.tokens")}</text>
        <path class="curve loss" d=${draw(losses)} />
      </svg>
    </div>
  `;
}
