/** Origins of web pages and names of hosts, in options and flags. */
import { isIP } from "node:net";
import * as z from "zod";

/** Without `*`: an origin is compared as a whole. */
const SCHEMED = /^[a-z][a-z0-9+.-]*:\/\/[^\s/?#@\\*]+$/;

/** Returns whether a text is an origin as browsers send it: without a path, in lower case. */
function isOrigin(text: string): boolean {
  if (!SCHEMED.test(text)) return false;
  // Other schemes, such as a browser extension's, have no origin in URL's sense.
  return !/^https?:/.test(text) || URL.parse(text)?.origin === text;
}

function isHost(text: string): boolean {
  if (isIP(text) === 6) return true;
  return text !== "" && !text.endsWith(".") && URL.parse(`http://${text}/`)?.host === text;
}

/** An origin (RFC 6454 section 6.2) such as `https://inspector.example.com`. */
export const originSchema = z
  .string()
  .max(300)
  .refine(isOrigin, "must be an origin such as https://inspector.example.com, without a path");

/** A host name in lower case or an IP address, without a port and without brackets. */
export const hostSchema = z
  .string()
  .max(253)
  .refine(
    (text) => isHost(text) && (isIP(text) === 6 || !text.includes(":")),
    "must be a host such as svc.example.com, in lower case and without a port",
  );
