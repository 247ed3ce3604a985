// Template strings in, Preact nodes out: html`<p>${text}</p>`. Text is never parsed as HTML.

import { h } from "preact";
import htm from "htm";

export const html = htm.bind(h);
