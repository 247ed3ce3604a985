// html`<p>${text}</p>` makes Preact nodes. Inserted text is never parsed as HTML.

import { h } from "preact";
import htm from "htm";

export const html = htm.bind(h);
