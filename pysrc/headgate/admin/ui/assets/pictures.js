// Pictures that somebody chooses, made small enough to be sent. They are drawn on a canvas: the page's policy lets it load
// pictures of its own server only.

import { h } from "./dom.js";

const MOST_PIXELS = 1024;
const QUALITY = 0.85;
// Of a data URL, in characters: four pictures are well below what a request of the page may have (1 MiB).
const MOST_TEXT = 180_000;
const SHOWN_PIXELS = 220;

function canvasOf(bitmap, most, attributes) {
  const scale = Math.min(1, most / Math.max(bitmap.width, bitmap.height));
  const canvas = h("canvas", attributes);
  canvas.width = Math.max(1, Math.round(bitmap.width * scale));
  canvas.height = Math.max(1, Math.round(bitmap.height * scale));
  canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  return canvas;
}

/** Return a data URL that is not too long: as PNG if that will do, else as JPEG, smaller and smaller. */
function urlOf(bitmap, png) {
  let most = MOST_PIXELS;
  let url = png ? canvasOf(bitmap, most, {}).toDataURL("image/png") : null;
  while (url === null || (url.length > MOST_TEXT && most > SHOWN_PIXELS)) {
    url = canvasOf(bitmap, most, {}).toDataURL("image/jpeg", QUALITY);
    most = Math.round(most * 0.8);
  }
  return url;
}

/** Return {name, url, canvas()} of a file: a data URL, and what shows it. Throws an Error if it is no picture. */
export async function picture(file) {
  let bitmap;
  try {
    bitmap = await createImageBitmap(file);
  } catch {
    throw new Error(`${file.name} is no picture that this browser can read`);
  }
  return { name: file.name, url: urlOf(bitmap, file.type === "image/png"), canvas: () => canvasOf(bitmap, SHOWN_PIXELS, { class: "picture", role: "img", "aria-label": file.name }) };
}
