/** Images, documents and audio: data URLs and media types. */
import { BadRequestError } from "./dialect.ts";
import type { Media } from "./model.ts";

/**
 * Returns data in standard base64 with padding (RFC 4648 section 4). Google's SDK sends base64url
 * (section 5), which Gemini accepts and other vendors refuse.
 */
export function standardBase64(data: string): string {
  const standard = data.replaceAll("-", "+").replaceAll("_", "/");
  return standard.endsWith("=")
    ? standard
    : standard.padEnd(Math.ceil(standard.length / 4) * 4, "=");
}

/** A URL as OpenAI clients write it: `https:` or `data:<type>;base64,<data>`. */
export function parseMediaUrl(url: string, param: string): Media {
  if (!/^data:/i.test(url)) return { kind: "url", url, mimeType: mimeTypeOfPath(url) };
  const comma = url.indexOf(",");
  const head = comma < 0 ? "" : url.slice("data:".length, comma);
  const parts = head.split(";");
  if (comma < 0 || parts.at(-1)?.trim().toLowerCase() !== "base64") {
    throw new BadRequestError(`${param} must be a URL or a base64 data URL`, param);
  }
  const mimeType = parts[0]?.trim().toLowerCase();
  return {
    kind: "base64",
    mimeType: mimeType === undefined || mimeType === "" ? "text/plain" : mimeType,
    data: url.slice(comma + 1),
  };
}

export function toMediaUrl(media: Media): string {
  switch (media.kind) {
    case "url":
      return media.url;
    case "base64":
      return `data:${media.mimeType};base64,${media.data}`;
  }
}

const MIME_TYPES: Readonly<Record<string, string>> = {
  png: "image/png",
  jpg: "image/jpeg",
  jpeg: "image/jpeg",
  gif: "image/gif",
  webp: "image/webp",
  heic: "image/heic",
  heif: "image/heif",
  pdf: "application/pdf",
  txt: "text/plain",
};

/** Returns the media type of the path's extension. */
export function mimeTypeOfPath(url: string): string | undefined {
  const path = url.split(/[?#]/, 1)[0] ?? "";
  const extension = /\.([A-Za-z0-9]+)$/.exec(path)?.[1];
  return extension === undefined ? undefined : MIME_TYPES[extension.toLowerCase()];
}
